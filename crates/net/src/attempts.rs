//! What commands tried to reach: counted, not listed one by one.

use std::collections::HashMap;

use avfs_policy::{Host, HostRule};
use serde::Serialize;

use crate::exec_key::ExecKey;

/// Longer host texts, which no host has, are cut.
const MAX_HOST_TEXT: usize = 256;

/// What was tried one or more times.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Attempt {
    /// The host in its canonical form, or what the client wrote where that is no host.
    pub host: String,
    /// 0 for a name that was only looked up.
    pub port: u16,
    pub door: Door,
    pub outcome: Outcome,
    /// The rule that allowed it, or why it was not allowed.
    pub rule: String,
    /// The command that would allow it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow: Option<String>,
    pub count: u64,
    /// From the host to the sandbox.
    pub bytes_in: u64,
    /// From the sandbox to the host.
    pub bytes_out: u64,
    /// Those to the sandbox that did not come from the host now, but had been kept.
    pub bytes_kept: u64,
    /// The commands that it may come from. Several where that is not certain.
    pub candidates: Vec<ExecKey>,
}

/// How a host was named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Door {
    Dns,
    /// CONNECT at the HTTP proxy.
    Connect,
    /// A request to the HTTP proxy, or one for the host whose address was dialled.
    Http,
    Socks,
    /// TLS to the address of a name.
    Tls,
    /// Any other connection to the address of a name, or to a listed address.
    Raw,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Allowed,
    /// Not listed, and let through because the terms say to observe.
    Observed,
    Denied,
    /// Allowed, but the host could not be reached.
    Failed,
}

/// The attempts of one command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Attempts {
    pub list: Vec<Attempt>,
    /// How many more there were, of kinds that are not in the list.
    pub more: u64,
}

impl Attempts {
    pub fn is_empty(&self) -> bool {
        self.list.is_empty() && self.more == 0
    }

    /// Adds what was tried at another time by the same command.
    pub fn add(&mut self, other: Attempts) {
        self.more += other.more;
        for new in other.list {
            let same = |it: &&mut Attempt| {
                (&it.host, it.port, &it.rule) == (&new.host, new.port, &new.rule)
                    && (it.door, it.outcome) == (new.door, new.outcome)
            };
            match self.list.iter_mut().find(same) {
                Some(known) => {
                    known.count += new.count;
                    known.bytes_in += new.bytes_in;
                    known.bytes_out += new.bytes_out;
                    known.bytes_kept += new.bytes_kept;
                    known.candidates = new.candidates;
                }
                None => self.list.push(new),
            }
        }
        sort(&mut self.list);
    }

    /// The smallest list that would have sufficed: each host on each port that was let through, and not refused
    /// afterwards for its address or for what it was sent.
    pub fn smallest_list(&self) -> Vec<HostRule> {
        let reached = self.list.iter().filter(|attempt| {
            let through = matches!(attempt.outcome, Outcome::Allowed | Outcome::Observed);
            let refused = self.list.iter().any(|other| {
                other.outcome == Outcome::Denied
                    && (&other.host, other.port) == (&attempt.host, attempt.port)
            });
            through && !refused && attempt.port != 0
        });
        let rules = reached.filter_map(|attempt| {
            let host = Host::parse(&attempt.host).ok()?;
            Some(HostRule::exactly(host, attempt.port))
        });
        let mut rules: Vec<HostRule> = rules.collect();
        rules.sort();
        rules.dedup();
        rules
    }
}

/// What makes two attempts one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Kind {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) door: Door,
    pub(crate) outcome: Outcome,
    pub(crate) rule: String,
}

impl Kind {
    pub(crate) fn attempt(
        &self,
        count: u64,
        allow: Option<String>,
        candidates: Vec<ExecKey>,
    ) -> Attempt {
        Attempt {
            host: self.host.clone(),
            port: self.port,
            door: self.door,
            outcome: self.outcome,
            rule: self.rule.clone(),
            allow,
            count,
            bytes_in: 0,
            bytes_out: 0,
            bytes_kept: 0,
            candidates,
        }
    }

    /// A text that may be anything, in printable characters and of bounded length.
    pub(crate) fn printable(text: &str) -> String {
        let shown = text.chars().flat_map(|c| match c.is_control() {
            true => c.escape_default().collect::<Vec<_>>(),
            false => vec![c],
        });
        shown.take(MAX_HOST_TEXT).collect()
    }
}

/// The attempts of one command, with a bound.
#[derive(Default)]
pub(crate) struct Table {
    counts: HashMap<Kind, Attempt>,
    more: u64,
}

impl Table {
    /// Counts an attempt; says whether it is the first of its kind that is kept.
    pub(crate) fn count(&mut self, kind: &Kind, attempt: &Attempt, max: usize) -> bool {
        if let Some(known) = self.counts.get_mut(kind) {
            known.count += 1;
            for candidate in &attempt.candidates {
                if !known.candidates.contains(candidate) {
                    known.candidates.push(*candidate);
                }
            }
            return false;
        }
        if self.counts.len() >= max {
            self.more += 1;
            return false;
        }
        self.counts.insert(kind.clone(), attempt.clone());
        true
    }

    /// Adds the bytes that a connection of this kind moved. Its first count may have been taken away meanwhile.
    pub(crate) fn moved(&mut self, kind: &Kind, passed: (u64, u64, u64), candidates: &[ExecKey]) {
        if passed == (0, 0, 0) {
            return;
        }
        let known = self.counts.entry(kind.clone());
        let known = known.or_insert_with(|| kind.attempt(0, None, candidates.to_vec()));
        known.bytes_in += passed.0;
        known.bytes_out += passed.1;
        known.bytes_kept += passed.2;
    }

    /// What has been counted since this was last asked. The kinds stay known, so that each is told of as new only once, and the
    /// bound is one for as long as the command runs.
    pub(crate) fn take(&mut self) -> Attempts {
        let more = std::mem::take(&mut self.more);
        let mut list = Vec::new();
        for attempt in self.counts.values_mut() {
            let bytes = attempt.bytes_in + attempt.bytes_out + attempt.bytes_kept;
            if attempt.count + bytes > 0 {
                list.push(attempt.clone());
                attempt.count = 0;
                (attempt.bytes_in, attempt.bytes_out, attempt.bytes_kept) = (0, 0, 0);
            }
        }
        sort(&mut list);
        Attempts { list, more }
    }
}

fn sort(list: &mut [Attempt]) {
    list.sort_by(|a, b| (&a.host, a.port, &a.rule).cmp(&(&b.host, b.port, &b.rule)));
}
