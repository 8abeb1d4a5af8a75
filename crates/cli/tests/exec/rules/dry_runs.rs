//! A dry run of what publishes runs without a question; the real thing does not.

use super::homes;

const REPOSITORY: &str = "git init -q --bare /remote.git && git init -q /repo && cd /repo && \
    git remote add origin /remote.git && git -c user.name=a -c user.email=a@example.test \
    commit -q --allow-empty -m first && git branch -M main";

#[test]
fn a_dry_run_pushes_nothing_and_is_not_asked_about() {
    for home in homes() {
        home.ok(&["vault", "create", "v"]);
        let made = home.shell(REPOSITORY);
        assert_eq!(made["result"]["exit_code"], 0, "{made:#}");
        let in_repo = |text: &str| {
            let words = ["exec", "--cwd", "/repo", "--shell", text];
            home.json(&words)["result"].clone()
        };
        let dry = in_repo("git push --dry-run origin main");
        assert_eq!(dry["exit_code"], 0, "{dry:#}");
        assert!(
            dry["stderr"].to_string().contains("[new branch]"),
            "{dry:#}"
        );
        let refs = in_repo("git ls-remote /remote.git");
        assert_eq!(refs["stdout"], "", "{refs:#}");
        for real in [
            "git push origin main",
            "git push -o --dry-run origin main",
            "git push --dry-run --no-dry-run origin main",
            "npm --loglevel silent publish",
        ] {
            let asked = in_repo(real);
            assert_eq!(asked["status"], "needs_approval", "{real}: {asked:#}");
        }
    }
}
