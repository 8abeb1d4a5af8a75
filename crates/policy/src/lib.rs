//! Request and rules in, decision out. Pure: no I/O, no clock, no environment.
//!
//! The sandbox is what holds a command; this crate only decides whether a command runs at
//! once, runs after a checkpoint, waits for the owner, or is refused, and says why. Shell text is
//! parsed by a real parser, every nested command is judged, and what cannot be understood is
//! never answered with `allow`.
//!
//! One request goes through four folders. `shell` reads text and expands words, `programs` knows what
//! a program does with its arguments, `judge` walks over the request and collects findings with the
//! help of both, and `rules` makes a decision of the findings. Each folder uses only those
//! named before it. `hosts` stands beside them: which hosts a command may reach.

mod hosts;
mod judge;
mod programs;
mod rules;
mod shell;

pub use hosts::{
    AddressRange, Denial, Hint, Host, HostError, HostList, HostName, HostPattern, HostPort,
    HostRule, Ports, Special, Verdict, address_is_special,
};
pub use judge::{CommandForm, Network, Request};
pub use programs::{Categories, Category};
pub use rules::{
    Action, Decision, Error, Example, Level, ListedRule, Part, RuleFile, RuleOrigin, Rules,
};

/// Decides on a request. The verdict of a compound is that of its strictest part.
pub fn decide(rules: &Rules, request: &Request) -> Decision {
    let findings = judge::Judge::new(request, rules.look_at_paths).findings(request);
    rules::conclude(&findings, rules, request.network)
}
