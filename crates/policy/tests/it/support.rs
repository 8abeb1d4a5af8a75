//! What the tests share: asking for decisions, numbers of cases, repeatable random numbers.

use avfs_policy::{
    Category, CommandForm, Decision, Level, Network, Request, RuleFile, Rules, decide,
};
use proptest::test_runner::{Config, RngSeed};

/// The networks that a command may have.
pub const NETWORKS: [Network; 3] = Network::ALL;

/// The rules of this text, as a file of the user.
pub fn rules(text: &str) -> Rules {
    Rules::load(&[file(Level::User, text)]).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

pub fn file(level: Level, text: &str) -> RuleFile {
    RuleFile {
        level,
        name: format!("{}.toml", level.as_str()),
        text: text.to_owned(),
    }
}

/// Rules that allow every category. Text that cannot be parsed is in none.
pub fn permissive() -> Rules {
    let rule =
        |category: &Category| format!("[[rule]]\ncategory = \"{category}\"\naction = \"allow\"\n");
    rules(&Category::ALL.iter().map(rule).collect::<String>())
}

/// The decision of the defaults on shell text.
pub fn shell(text: &str, network: Network) -> Decision {
    shell_under(&Rules::defaults(), text, network)
}

/// The decision of some rules on shell text.
pub fn shell_under(rules: &Rules, text: &str, network: Network) -> Decision {
    decided(rules, CommandForm::Shell(text), network)
}

/// The decision of the defaults on a command that is given word by word.
pub fn argv(words: &[&str], network: Network) -> Decision {
    let words: Vec<Vec<u8>> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
    decided(&Rules::defaults(), CommandForm::Argv(&words), network)
}

fn decided(rules: &Rules, command: CommandForm<'_>, network: Network) -> Decision {
    let request = Request {
        command,
        cwd: b"/workspace",
        network,
        env: &[],
    };
    decide(rules, &request)
}

/// The decision of the defaults on a program without arguments, with this directory and these variables, offline.
pub fn surrounded(program: &str, cwd: &[u8], env: &[(&str, &str)]) -> Decision {
    let bytes = |text: &str| text.as_bytes().to_vec();
    let env: Vec<_> = env
        .iter()
        .map(|(name, value)| (bytes(name), bytes(value)))
        .collect();
    let request = Request {
        command: CommandForm::Argv(&[bytes(program)]),
        cwd,
        network: Network::None,
        env: &env,
    };
    decide(&Rules::defaults(), &request)
}

/// How many cases a test tries. `AVFS_TEST_CASES` asks for another number than the usual one.
pub fn cases(usual: u32) -> u32 {
    let asked = std::env::var("AVFS_TEST_CASES").ok();
    asked.and_then(|cases| cases.parse().ok()).unwrap_or(usual)
}

/// The configuration of properties. Its seed is fixed, so that every run tries equal cases.
pub fn properties(usual: u32) -> Config {
    Config {
        cases: cases(usual),
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(6),
        ..Config::default()
    }
}

/// A generator of numbers (splitmix64), so that a run can be repeated.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    pub fn pick<'l, T: ?Sized>(&mut self, list: &[&'l T]) -> &'l T {
        list[self.below(list.len())]
    }
}
