//! The library as a program sees it.

mod asynchronous;
mod common;
mod faces;
mod programs;
