//! What a command runs under, who may weaken it, and what cannot be chosen together.

use super::*;

fn settings(text: &[(&str, &str)]) -> Settings {
    let mut settings = Settings::default();
    for (key, value) in text {
        settings.set(&key.parse().unwrap(), value).unwrap();
    }
    settings
}

#[test]
fn what_is_said_for_the_command_goes_first() {
    let vault = settings(&[
        ("memory", "1g"),
        ("profile", "restrictive"),
        ("timeout", "5s"),
    ]);
    let unsaid = Terms::new(&ExecOptions::default(), &vault);
    assert_eq!(
        unsaid.limits.memory,
        Some(1 << 30),
        "a limit before a profile"
    );
    assert_eq!(unsaid.limits.pids, Some(128), "the profile fills the rest");
    assert_eq!(unsaid.timeout, Some(Duration::from_secs(5)));
    let asked = ExecOptions {
        profile: Some(Profile::Permissive),
        timeout: Timeout::Never,
        limits: Limits {
            pids: Some(7),
            ..Limits::default()
        },
        ..ExecOptions::default()
    };
    let terms = Terms::new(&asked, &vault);
    assert_eq!(
        (terms.limits.memory, terms.limits.pids),
        (Some(UNLIMITED), Some(7))
    );
    assert!(!terms.leaves_reserve());
    assert_eq!(terms.timeout, None);
    let bare = Terms::new(&ExecOptions::default(), &Settings::default());
    assert_eq!(bare.timeout, Some(DEFAULT_TIMEOUT));
    assert_eq!(bare.given, Limits::default());
    assert_eq!(bare.limits, Limits::of_this_host());
    assert!(bare.leaves_reserve() && bare.disk_growth().is_none());
}

#[test]
fn a_mode_is_what_a_vault_does_not_say_itself() {
    let terms = |text: &[(&str, &str)]| Terms::new(&ExecOptions::default(), &settings(text));
    let plain = terms(&[("mode", "agentkernel")]);
    assert_eq!(plain.profile, Some(Profile::Moderate));
    assert_eq!(plain.timeout, Some(Duration::from_secs(30)));
    let said = terms(&[("mode", "agentkernel"), ("timeout", "5m")]);
    assert_eq!(said.timeout, Some(Duration::from_secs(300)));
    let said = terms(&[("mode", "claude"), ("profile", "restrictive")]);
    assert_eq!(said.limits.pids, Some(128));
    assert_eq!(said.timeout, Some(Duration::from_secs(60)));
    let said = terms(&[("mode", "codex"), ("memory", "1g")]);
    assert_eq!(said.limits.memory, Some(1 << 30));
    assert_eq!(said.limits.pids, Some(128), "the mode fills the rest");
    let env = |text: &[(&str, &str)]| settings(text).with_environment(&[], &ExecNetwork::default());
    let word = |text: &str| text.as_bytes().to_vec();
    let usual = [
        (word("GEMINI_CLI"), word("1")),
        (word("SANDBOX"), word("avfs")),
    ];
    assert_eq!(env(&[("mode", "gemini")]), usual);
    let own = env(&[("mode", "claude"), ("env.CLAUDECODE", "0")]);
    assert_eq!(own, [(word("CLAUDECODE"), word("0"))]);
    // A default of time can be exceeded, the limits of its profile cannot.
    let longer = |profile| ExecOptions {
        timeout: Timeout::After(Duration::from_secs(3600)),
        profile,
        ..ExecOptions::default()
    };
    let vault = settings(&[("mode", "claude")]);
    assert!(longer(None).check(Principal::AGENT, &vault).is_ok());
    let more = longer(Some(Profile::Permissive));
    assert!(more.check(Principal::AGENT, &vault).is_err());
    let vault = settings(&[("mode", "codex")]);
    assert!(longer(None).check(Principal::AGENT, &vault).is_err());
    for mode in Mode::ALL {
        assert_eq!(mode.as_str().parse::<Mode>().ok(), Some(mode));
    }
    assert!("Claude".parse::<Mode>().is_err());
}

#[test]
fn only_the_owner_weakens() {
    let vault = settings(&[("memory", "1g")]);
    let weaker = [
        ExecOptions {
            network: NetworkAsk::Host,
            ..ExecOptions::default()
        },
        ExecOptions {
            driver: Driver::Process,
            ..ExecOptions::default()
        },
        ExecOptions {
            checkpoint: CheckpointMode::Never,
            ..ExecOptions::default()
        },
        ExecOptions {
            profile: Some(Profile::Permissive),
            ..ExecOptions::default()
        },
    ];
    for options in &weaker {
        assert!(
            options.check(Principal::OWNER, &vault).is_ok(),
            "{options:?}"
        );
        let refused = options.check(Principal::AGENT, &vault);
        assert!(
            matches!(refused, Err(Error::OwnerOnly { .. })),
            "{options:?}"
        );
    }
    // Where the vault says nothing, the host's defaults are not to be lifted either.
    for limits in [
        Limits {
            memory: Some(UNLIMITED),
            ..Limits::default()
        },
        Limits {
            disk: Some(UNLIMITED),
            ..Limits::default()
        },
        Limits::LIFTED,
    ] {
        let options = ExecOptions {
            limits,
            ..ExecOptions::default()
        };
        let refused = options.check(Principal::AGENT, &Settings::default());
        assert!(refused.is_err(), "{limits:?}");
    }
    let lower = ExecOptions {
        limits: Limits {
            memory: Some(1 << 20),
            ..Limits::default()
        },
        ..ExecOptions::default()
    };
    assert!(lower.check(Principal::AGENT, &vault).is_ok());
}

#[test]
fn a_checkpoint_is_not_taken_where_it_would_not_stay() {
    let named = |branch| ExecOptions {
        checkpoint: CheckpointMode::Named("before".parse().unwrap()),
        branch,
        ..ExecOptions::default()
    };
    let check = |branch| named(branch).check(Principal::OWNER, &Settings::default());
    assert!(check(Branch::Here).is_ok() && check(Branch::KeepOnSuccess).is_ok());
    let refused = check(Branch::Throwaway).unwrap_err();
    assert_eq!(refused.kind(), crate::ErrorKind::Invalid);
}

/// Every way to say how long, against every way in which a vault can limit it.
#[test]
fn an_agent_shortens_time_and_never_lengthens_it() {
    let after = |seconds| Timeout::After(Duration::from_secs(seconds));
    let unlimited = settings(&[]);
    let five = settings(&[("timeout", "5s")]);
    let by_profile = settings(&[("profile", "restrictive")]);
    for (vault, timeout, allowed) in [
        (&unlimited, Timeout::Never, true),
        (&unlimited, after(100_000), true),
        (&five, Timeout::Unsaid, true),
        (&five, Timeout::Open, true),
        (&five, after(5), true),
        (&five, after(6), false),
        (&five, Timeout::Never, false),
        (&by_profile, Timeout::Open, true),
        (&by_profile, after(60), true),
        (&by_profile, after(61), false),
        (&by_profile, Timeout::Never, false),
    ] {
        let options = ExecOptions {
            timeout,
            ..ExecOptions::default()
        };
        let checked = options.check(Principal::AGENT, vault);
        assert_eq!(checked.is_ok(), allowed, "{timeout:?} in {vault:?}");
        assert!(options.check(Principal::OWNER, vault).is_ok());
    }
    // A job has no limit of its own, but keeps the vault's.
    let open = ExecOptions {
        timeout: Timeout::Open,
        ..ExecOptions::default()
    };
    let limited = Terms::new(&open, &five).timeout;
    assert_eq!(limited, Some(Duration::from_secs(5)));
    // A milder profile lengthens it, too.
    let milder = ExecOptions {
        profile: Some(Profile::Moderate),
        ..ExecOptions::default()
    };
    assert!(milder.check(Principal::AGENT, &by_profile).is_err());
}
