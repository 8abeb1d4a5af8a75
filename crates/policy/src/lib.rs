//! Request and rules in, decision out. Pure: no I/O, no clock, no environment
