//! Files with holes: a file of terabytes that holds a few bytes costs a few bytes, on every way in and out.

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use avfs_testkit::Home;
use serde_json::Value;

use crate::AVFS;
const SIZE: u64 = 4 << 40;
const MIB: u64 = 1 << 20;
/// Makes a file that ends 4 bytes behind its hole.
const MAKE: &str = "truncate -s 4T /big && printf tail >> /big";

fn shell(home: &Home, vault: &str, text: &str) -> Value {
    let words = ["--vault", vault, "exec", "--timeout", "0", "--shell", text];
    let mut envelope = home.json(&words);
    assert_eq!(
        envelope["success"],
        true,
        "{}: {text}: {envelope}",
        home.user()
    );
    envelope["result"].take()
}

fn said(home: &Home, vault: &str, text: &str) -> String {
    let result = shell(home, vault, text);
    result["stdout"].as_str().unwrap().trim().to_owned()
}

/// What tells one content from another.
fn hash(home: &Home, vault: &str, path: &str) -> String {
    let stat = home.json(&["--vault", vault, "stat", path]);
    let hash = stat["content_id"].as_str();
    hash.unwrap_or_else(|| panic!("{stat}")).to_owned()
}

/// A copy on the host has the size, the end, and next to nothing on the disk.
fn check_copy(path: &Path, blocks_max: u64) {
    let file = fs::File::open(path).unwrap();
    let stat = file.metadata().unwrap();
    assert_eq!(stat.len(), SIZE + 4);
    assert!(
        stat.blocks() * 512 <= blocks_max,
        "{} blocks",
        stat.blocks()
    );
    let mut end = [1; 6];
    file.read_exact_at(&mut end, SIZE - 2).unwrap();
    assert_eq!(&end, b"\0\0tail");
}

fn check_memory(home: &Home) {
    let bytes = home.peak_memory();
    assert!(bytes < 150 * MIB, "{} MiB", bytes / MIB);
}

#[test]
fn a_file_of_terabytes_is_committed_shown_forked_and_copied_up() {
    for home in Home::of_every_user(AVFS) {
        home.ok(&["vault", "create", "v"]);
        let made = shell(&home, "v", MAKE);
        assert_eq!(made["changed_files"], serde_json::json!(["/big"]), "{made}");
        let first = hash(&home, "v", "/big");
        let offset = SIZE.to_string();
        let range = ["cat", "/big", "--offset", &offset, "--limit", "100"];
        assert_eq!(home.ok(&range), "tail");

        home.ok(&["checkpoint", "save", "before"]);
        home.ok(&["vault", "fork", "v", "f"]);
        // In the fork it is the stored one that is seen.
        let seen = said(
            &home,
            "f",
            "stat -c %s /big; tail -c 4 /big; echo; du -k /big",
        );
        let lines: Vec<&str> = seen.lines().collect();
        assert_eq!(lines[..2], [&*(SIZE + 4).to_string(), "tail"]);
        let kib: u64 = lines[2].split_whitespace().next().unwrap().parse().unwrap();
        assert!(kib <= 128, "{seen}");
        // A command that changes it has its own copy, with the same holes.
        let change =
            "printf X | dd of=/big bs=1 seek=1000000 conv=notrunc status=none && du -k /big";
        let seen = said(&home, "f", change);
        let kib: u64 = seen.split_whitespace().next().unwrap().parse().unwrap();
        assert!(kib <= 256, "{seen}");
        assert_ne!(hash(&home, "f", "/big"), first);
        let range = [
            "--vault", "f", "cat", "/big", "--offset", "999999", "--limit", "3",
        ];
        assert_eq!(home.ok(&range).as_bytes(), b"\0X\0");
        let range = ["--vault", "f", "cat", "/big", "--offset", &offset];
        assert_eq!(home.ok(&range), "tail");

        shell(
            &home,
            "v",
            "truncate -s 3T /big; cp --sparse=always /big /copy",
        );
        assert_eq!(home.json(&["stat", "/big"])["size"], 3_u64 << 40);
        assert_eq!(hash(&home, "v", "/copy"), hash(&home, "v", "/big"));
        home.ok(&["checkpoint", "restore", "before"]);
        assert_eq!(hash(&home, "v", "/big"), first);

        let diff = home.ok(&["diff", "HEAD", "vault:f", "--patch"]);
        assert!(diff.contains("/big") && diff.contains("Binary"), "{diff}");
        let found = home.avfs(&["grep", "tail", "/"]);
        assert!(!String::from_utf8_lossy(&found.stdout).contains("big"));
        assert_eq!(home.json(&["fsck"])["clean"], true);
        home.ok(&["gc"]);
        assert_eq!(said(&home, "v", "tail -c 4 /big"), "tail");
        check_memory(&home);
    }
}

#[test]
fn verbs_pass_holes_on() {
    for home in Home::of_every_user(AVFS) {
        home.ok(&["vault", "create", "v"]);
        shell(&home, "v", MAKE);
        let first = hash(&home, "v", "/big");
        home.ok(&["cp", "/big", "/other"]);
        assert_eq!(hash(&home, "v", "/other"), first);
        home.ok(&["write", "/other", "more", "--append"]);
        let range = ["cat", "/other", "--offset", &SIZE.to_string()];
        assert_eq!(home.ok(&range), "tailmore");
        let edited = home.avfs(&["edit", "/big", "--old", "tail", "--new", "x"]);
        assert!(!edited.status.success(), "it is too large to edit");
        // While a command runs, the same goes through its view.
        home.ok(&["job", "start", "--", "sleep", "1000"]);
        home.ok(&["cp", "/big", "/third"]);
        home.ok(&["write", "/other", "and", "--append"]);
        assert_eq!(said(&home, "v", "tail -c 7 /other"), "moreand");
        let kib = said(&home, "v", "du -k /third | cut -f1");
        assert!(kib.parse::<u64>().unwrap() <= 256, "{kib}");
        assert_eq!(hash(&home, "v", "/third"), first);
        // Also where a file that is there gets new content.
        home.ok(&["cp", "/big", "/other"]);
        let kib = said(&home, "v", "tail -c 4 /other; du -k /other | cut -f1");
        let kib = kib.strip_prefix("tail").unwrap().parse::<u64>().unwrap();
        assert!(kib <= 256, "{kib}");
        assert_eq!(hash(&home, "v", "/other"), first);
        check_memory(&home);
    }
}

#[test]
fn a_directory_goes_out_and_comes_in_with_its_holes() {
    for home in Home::of_every_user(AVFS) {
        home.ok(&["vault", "create", "v"]);
        shell(&home, "v", MAKE);
        let out = home.path().join("user/out");
        home.ok(&["export", "/", out.to_str().unwrap()]);
        check_copy(&out.join("big"), MIB);
        home.ok(&["vault", "create", "w"]);
        home.ok(&["--vault", "w", "import", out.to_str().unwrap(), "/"]);
        assert_eq!(hash(&home, "w", "/big"), hash(&home, "v", "/big"));
        check_memory(&home);
    }
}

fn host(home: &Home, script: &str) {
    let mut command = home.host_command("bash");
    let output = command.args(["-ec", script]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {script}: {said}", home.user());
}

#[test]
fn archives_hold_the_data_alone() {
    for home in Home::of_every_user(AVFS) {
        home.ok(&["vault", "create", "v"]);
        // More pieces than fit in a header, and a hole at the end of another file.
        let pieces = "for n in $(seq 1 40); do \
             printf $n | dd of=/big bs=1 seek=$((n * 1000000000)) conv=notrunc status=none; done";
        shell(
            &home,
            "v",
            &format!("{MAKE}; {pieces}; truncate -s 1T /empty"),
        );
        let user = home.path().join("user");
        let tar = user.join("v.tar");
        home.ok(&["export", "/", "--tar", tar.to_str().unwrap()]);
        assert!(fs::metadata(&tar).unwrap().len() < 10 * MIB);
        home.ok(&["vault", "create", "w"]);
        home.ok(&["--vault", "w", "import", tar.to_str().unwrap(), "/"]);
        // GNU tar reads ours, and we read what it makes of that.
        let dir = user.display();
        host(
            &home,
            &format!(
                "mkdir {dir}/x && tar -xf {dir}/v.tar -C {dir}/x && tar -cSf {dir}/g.tar -C {dir}/x ."
            ),
        );
        check_copy(&user.join("x/big"), 4 * MIB);
        home.ok(&["vault", "create", "g"]);
        let tar = user.join("g.tar");
        home.ok(&["--vault", "g", "import", tar.to_str().unwrap(), "/"]);
        for path in ["/big", "/empty"] {
            let expected = hash(&home, "v", path);
            assert_eq!(hash(&home, "w", path), expected, "{path}");
            assert_eq!(hash(&home, "g", path), expected, "{path}");
        }
        check_memory(&home);
    }
}

/// Steps of a program that makes a file, the same on the host and in a vault.
fn steps(seed: u64) -> String {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = |most: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % most
    };
    let mut script = String::new();
    for _ in 0..12 {
        // Around the edges of blocks as often as anywhere.
        let near = [0, 1, 4095, 65_535, 65_536, 65_537][next(6) as usize];
        let at = match next(3) {
            0 => next(40) * 65_536 + near,
            1 => next(1 << 23),
            _ => next(10 << 40),
        };
        let length = 1 + next(200_000);
        script += &match next(6) {
            0 => format!("truncate -s {at} $F\n"),
            1 => format!("truncate -s +{} $F\n", next(3 << 40)),
            2 => format!("fallocate -p -o {at} -l {length} $F\n"),
            3 => format!(
                "head -c {length} /dev/zero | dd of=$F bs=1M oflag=seek_bytes iflag=fullblock seek={at} conv=notrunc status=none\n"
            ),
            _ => format!(
                "yes {seed}x{length} | head -c {length} | dd of=$F bs=1M oflag=seek_bytes iflag=fullblock seek={at} conv=notrunc status=none\n"
            ),
        };
    }
    script
}

#[test]
fn random_sparse_files_are_what_the_host_makes_of_them() {
    for home in Home::of_every_user(AVFS) {
        home.ok(&["vault", "create", "v"]);
        home.ok(&["vault", "create", "host"]);
        let dir = home.path().join("user/files");
        host(&home, &format!("mkdir {}", dir.display()));
        let mut made = String::new();
        for seed in 1..9 {
            // The second half is done on what the first has stored.
            for (round, half) in [seed, seed + 100].into_iter().enumerate() {
                let script = format!("touch $F\n{}", steps(half));
                let path = dir.join(seed.to_string());
                host(&home, &format!("F={}\n{script}", path.display()));
                let vault = format!("v{}", if round == 0 { "" } else { &made });
                shell(&home, &vault, &format!("F=/{seed}\n{script}"));
                if round == 0 {
                    made = seed.to_string();
                    home.ok(&["vault", "fork", "v", &format!("v{seed}")]);
                }
            }
        }
        home.ok(&["--vault", "host", "import", dir.to_str().unwrap(), "/"]);
        for seed in 1..9 {
            let path = format!("/{seed}");
            let (ours, theirs) = (
                hash(&home, &format!("v{seed}"), &path),
                hash(&home, "host", &path),
            );
            assert_eq!(ours, theirs, "{}: seed {seed}", home.user());
        }
        assert_eq!(home.json(&["fsck"])["clean"], true);
        check_memory(&home);
    }
}

#[test]
fn very_many_pieces_take_no_memory() {
    for home in Home::of_every_user(AVFS) {
        home.ok(&["vault", "create", "v"]);
        let make = "import os\n\
            f = os.open('/many', os.O_CREAT | os.O_WRONLY)\n\
            for n in range(2500): os.pwrite(f, b'%d' % n, n << 17)\n\
            os.ftruncate(f, 1 << 42)\n";
        let envelope = home.json(&["exec", "--timeout", "0", "--", "python3", "-c", make]);
        assert_eq!(envelope["success"], true, "{envelope}");
        let range = [
            "cat",
            "/many",
            "--offset",
            &(2499_u64 << 17).to_string(),
            "--limit",
            "4",
        ];
        assert_eq!(home.ok(&range), "2499");
        home.ok(&["vault", "fork", "v", "f"]);
        let copy = "printf x >> /many; tail -c 1 /many";
        assert_eq!(said(&home, "f", copy), "x");
        check_memory(&home);
    }
}

#[test]
fn what_is_larger_than_the_quota_is_refused_by_its_apparent_size() {
    for home in Home::of_every_user(AVFS) {
        let dir = home.path().join("user/d");
        host(
            &home,
            &format!(
                "mkdir {0} && truncate -s 4T {0}/big && tar -cSf {0}.tar -C {0} big",
                dir.display()
            ),
        );
        for limit in ["max_size_mb", "max_file_size_mb"] {
            home.ok(&["vault", "create", limit]);
            home.ok(&["vault", "use", limit]);
            home.ok(&["quota", "set", limit, "1"]);
            for source in [dir.clone(), dir.with_extension("tar")] {
                let refused = home.json(&["import", source.to_str().unwrap(), "/"]);
                assert_eq!(refused["error"], "Quota", "{refused}");
                assert!(
                    refused["message"].as_str().unwrap().contains("/big"),
                    "{refused}"
                );
            }
            // A command is told, and so is whoever reads its report.
            let envelope = home.json(&["exec", "--shell", "truncate -s 4T /big"]);
            assert!(
                envelope.to_string().to_lowercase().contains("quota"),
                "{envelope}"
            );
            assert!(!home.avfs(&["stat", "/big"]).status.success());
            home.ok(&["exec", "--", "rm", "/big"]);
            home.ok(&["exec", "--", "touch", "/small"]);
        }
    }
}
