//! The policy through its public face.

mod arithmetic;
mod bash_calls;
mod bash_writes;
mod carriers;
mod disguises;
mod everyday;
mod fragments;
mod generated;
mod grammar;
mod programs;
mod properties;
mod rules;
mod strictness;
mod strings;
mod support;
mod working_day;
