//! How the tests ask for a decision on shell text.

use avfs_policy::{CommandForm, Decision, Network, Request, Rules, decide};

/// What the defaults say to this text.
pub fn shell(text: &str, network: Network) -> Decision {
    let request = Request {
        command: CommandForm::Shell(text),
        cwd: b"/workspace",
        network,
        env: &[],
    };
    decide(&Rules::defaults(), &request)
}
