//! Tests of the policy through its public interface.

mod arithmetic;
mod bash_calls;
mod bash_writes;
mod deep;
mod disguises;
mod dry_runs;
mod embedded;
mod everyday;
mod fragments;
mod generated;
mod grammar;
mod hosts;
mod programs;
mod properties;
mod rules;
mod strictness;
mod strings;
mod support;
mod working_day;
