//! Released files, whose addresses name a version, from hosts that say nothing about keeping them.

use super::*;

const WHEEL: &str = "/files/probe-1.0-py3-none-any.whl";

#[test]
fn a_released_file_is_kept_although_its_host_says_nothing() {
    alone(
        "cache::releases::a_released_file_is_kept_although_its_host_says_nothing",
        || {
            let place = place(16 * MIB);
            let registry = Registry::start(|head| script("", head.as_bytes()));
            let released = [
                WHEEL,
                "/files/probe-1.0.tar.gz",
                "/probe/-/probe-1.0.0.tgz",
                "/crates/probe/probe-1.0.0.crate",
                "/crates/probe/1.0.0/download",
            ];
            for path in released {
                let before = registry.count();
                let (_, first, kept) = place.get(path, "");
                assert_eq!(kept, 0, "{path}");
                let (head, second, kept) = place.get(path, "");
                assert_eq!((&first, kept), (&second, first.len() as u64), "{path}");
                assert_eq!(registry.count(), before + 1, "{path}");
                // How long it is kept here is not what the host said.
                assert!(!head.contains("cache-control"), "{head}");
            }
            // Indexes, and addresses that name no version, are asked for each time.
            for path in [
                "/simple/probe/",
                "/probe",
                "/pr/ob/probe",
                "/files/probe.whl",
                "/files/probe-1.0.tgz?x",
            ] {
                for _ in 0..2 {
                    let before = registry.count();
                    let (_, _, kept) = place.get(path, "");
                    assert_eq!((registry.count(), kept), (before + 1, 0), "{path}");
                }
            }
        },
    );
}

#[test]
fn a_released_file_that_is_for_one_client_is_not_kept() {
    alone(
        "cache::releases::a_released_file_that_is_for_one_client_is_not_kept",
        || {
            let place = place(16 * MIB);
            let registry = Registry::start(|head| {
                let headers = match head.split(' ').nth(1).unwrap() {
                    "/cookie-1.0.tgz" => "Set-Cookie: a=b\r\n",
                    "/page-1.0.tgz" => "Content-Type: text/html\r\n",
                    "/private-1.0.tgz" => "Cache-Control: private\r\n",
                    "/old-1.0.tgz" => "Expires: 0\r\n",
                    "/pragma-1.0.tgz" => "Pragma: no-cache\r\n",
                    "/vary-1.0.tgz" => "Vary: *\r\n",
                    _ => "",
                };
                script(headers, head.as_bytes())
            });
            for (path, headers) in [
                ("/cookie-1.0.tgz", ""),
                ("/page-1.0.tgz", ""),
                ("/private-1.0.tgz", ""),
                ("/old-1.0.tgz", ""),
                ("/pragma-1.0.tgz", ""),
                ("/vary-1.0.tgz", ""),
                ("/own-1.0.tgz", "Authorization: Bearer mine\r\n"),
                ("/own-1.0.tgz", "Cookie: mine\r\n"),
            ] {
                for _ in 0..2 {
                    let before = registry.count();
                    let (_, _, kept) = place.get(path, headers);
                    let seen = (registry.count(), kept);
                    assert_eq!(seen, (before + 1, 0), "{path} {headers}");
                }
            }
            // With credentials of the host's, it is kept for those who have them.
            let with = |value: &str| {
                let hosts = "r.test:80".parse().unwrap();
                let secret = Secret::new(hosts, "X-Token", value, true).unwrap();
                Terms {
                    secrets: vec![secret],
                    ..registries()
                }
            };
            let before = registry.count();
            for value in ["canary-one", "canary-one", "canary-two"] {
                let (_, body, _) = place.get_with(with(value), HOST, WHEEL, "");
                assert!(String::from_utf8(body).unwrap().contains(value));
            }
            assert_eq!(registry.count(), before + 2);
        },
    );
}

#[test]
fn ten_sandboxes_at_once_download_a_released_file_once() {
    alone(
        "cache::releases::ten_sandboxes_at_once_download_a_released_file_once",
        || {
            let place = place(16 * MIB);
            let registry = Registry::start(|_| script("", &[7; 300_000]));
            std::thread::scope(|scope| {
                for _ in 0..10 {
                    scope.spawn(|| {
                        let (_, body, _) = place.get(WHEEL, "");
                        assert_eq!(body.len(), 300_000);
                    });
                }
            });
            assert_eq!(registry.count(), 1);
        },
    );
}
