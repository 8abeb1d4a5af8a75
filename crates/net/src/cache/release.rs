//! Addresses of released files: they name a package and its version, so what they lead to does not change.

/// The endings of released files: wheels and source archives of Python, packages of npm, crates.
const ENDINGS: [&str; 7] = [
    ".whl", ".tar.gz", ".tar.bz2", ".tar.xz", ".zip", ".tgz", ".crate",
];
/// cargo's other form: `/NAME/VERSION/download`.
const DOWNLOAD: &str = "download";

/// Whether a path with its query is that of a released file. An index document never is: it changes with each release.
pub(crate) fn is_release(path: &str) -> bool {
    // What a query does is the host's to know.
    if path.contains(['?', '%', '\\']) || path.contains("//") || path.contains("/.") {
        return false;
    }
    let mut parts = path.rsplit('/');
    let (last, before) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
    if last == DOWNLOAD {
        return is_version(before);
    }
    let stem = ENDINGS.iter().find_map(|ending| last.strip_suffix(ending));
    // NAME-VERSION, and after a wheel's version what it is built for.
    stem.is_some_and(|stem| {
        let versions = stem.match_indices('-').map(|(at, _)| &stem[at + 1..]);
        !stem.starts_with('-') && versions.into_iter().any(is_version)
    })
}

/// Whether a text begins as a version of at least two numbers does: `1.0`, `2.28.1-py3-none-any`, `0.4.0+build`.
fn is_version(text: &str) -> bool {
    let first = text.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let digits = text.len() - first.len();
    let second = first.strip_prefix('.').unwrap_or("");
    digits > 0 && second.starts_with(|letter: char| letter.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::is_release;

    #[test]
    fn only_addresses_that_name_a_version_are_releases() {
        for path in [
            "/packages/ab/cd/requests-2.28.1-py3-none-any.whl",
            "/simple/requests/requests-2.28.1.tar.gz",
            "/left-pad/-/left-pad-1.3.0.tgz",
            "/@team/tool/-/tool-0.1.0-beta.2.tgz",
            "/crates/serde/serde-1.0.200.crate",
            "/api/v1/crates/serde/1.0.200/download",
        ] {
            assert!(is_release(path), "{path}");
        }
        for path in [
            "",
            "/",
            "/simple/requests/",
            "/simple/requests-2.28.1/",
            "/left-pad",
            "/left-pad/1.3.0",
            "/se/rd/serde",
            "/config.json",
            "/requests-latest.whl",
            "/requests.tar.gz",
            "/-1.0.tgz",
            "/requests-2.28.1.tar.gz?token=1",
            "/requests-2.28.1.html",
            "/a/../requests-2.28.1.tgz",
            "/a//requests-2.28.1.tgz",
            "/a%2frequests-2.28.1.tgz",
            "/crates/serde/latest/download",
            "/download",
        ] {
            assert!(!is_release(path), "{path}");
        }
    }
}
