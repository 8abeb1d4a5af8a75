//! How much network a vault's commands may use: connections, bandwidth and bytes.

use crate::{WITHOUT_VARIABLES, World, agent, has, result, succeeded, with_names};
use serde_json::{Value, json};

const A: &str = "127.0.0.1 a.example.test";

fn curl(world: &World, path: &str) -> Value {
    let url = format!("http://a.example.test:{}{path}", world.site.port);
    let words = ["exec", "--", "curl", "-sS", "-w", "\n%{http_code}", &url];
    result(world.home.json(&words))
}

/// Opens this many connections through the proxy one after the other, keeps them, and says what each was answered.
const MANY: &str = "
import socket, sys
held = []
for _ in range(int(sys.argv[3])):
    stream = socket.create_connection(('127.0.0.1', 808), 20)
    stream.sendall(f'CONNECT {sys.argv[1]}:{sys.argv[2]} HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'.encode())
    held.append(stream)
    print(stream.recv(4096).decode().split()[1])
";

#[test]
fn connections_have_a_limit_which_a_change_lifts() {
    with_names(&[A], |world| {
        let home = &world.home;
        home.ok(&["network", "set", &world.list(&["a.example.test"])]);
        home.ok(&["vault", "set", "connections=3"]);
        home.ok(&["write", "/many.py", MANY]);
        let port = world.site.port.to_string();
        let words = [
            "exec",
            "--",
            "python3",
            "/many.py",
            "a.example.test",
            &port,
            "5",
        ];
        let ran = result(home.json(&words));
        assert_eq!(succeeded(&ran), "200\n200\n200\n403\n403\n");
        let denied = &ran["network"]["denied"];
        let port = Some(world.site.port);
        assert!(
            has(denied, "a.example.test", port, "limit:connections"),
            "{ran:#}"
        );
        assert_eq!(ran["network"]["limits"]["connections"], 3);
        let log = home.json(&["network", "log", "--denied"]).to_string();
        assert!(log.contains("limit:connections"), "{log}");
        home.ok(&["vault", "set", "connections=5"]);
        assert_eq!(succeeded(&result(home.json(&words))), "200\n".repeat(5));
        home.ok(&["vault", "unset", "connections"]);
        let shown = home.json(&["network", "show"]);
        assert_eq!(shown["limits"], Value::Null, "{shown}");
    });
}

#[test]
fn bytes_of_a_command_have_a_limit() {
    with_names(&[A], |world| {
        let home = &world.home;
        world.site.put("/small", vec![b'x'; 1000]);
        world.site.put("/big", vec![b'x'; 3_000_000]);
        home.ok(&["network", "set", &world.list(&["a.example.test"])]);
        home.ok(&["vault", "set", "traffic=1m"]);
        let big = curl(world, "/big");
        assert_ne!(big["exit_code"], 0, "{}", big["stderr"]);
        let port = Some(world.site.port);
        let denied = &big["network"]["denied"];
        assert!(
            has(denied, "a.example.test", port, "limit:traffic"),
            "{denied:#}"
        );
        assert_eq!(big["network"]["limits"]["bytes"], 1 << 20);
        // The next command begins again; within one command, what is used up stays so, and the refusal says what would help.
        assert!(succeeded(&curl(world, "/small")).ends_with("200"));
        let url = |path: &str| format!("http://a.example.test:{}{path}", world.site.port);
        let both = format!(
            "curl -so /dev/null {}; curl -sS {}",
            url("/big"),
            url("/small")
        );
        let ran = result(home.json(&["exec", "--shell", &both]));
        let problem: Value = serde_json::from_str(succeeded(&ran)).unwrap();
        assert_eq!(problem["rule"], "limit:traffic");
        let allow = problem["allow"].as_str().unwrap();
        let words: Vec<&str> = allow.split(' ').skip(1).collect();
        assert_eq!(words, ["vault", "set", "traffic=2097152"]);
        home.ok(&["vault", "set", "traffic=4m"]);
        assert!(succeeded(&curl(world, "/big")).ends_with("200"));
        // Without a proxy the connection is reset.
        home.ok(&["vault", "set", "traffic=1m"]);
        let url = url("/big");
        let raw = ["curl", "-sS", "-o", "/dev/null", &url];
        let raw = [&["exec", "--"], &WITHOUT_VARIABLES[..], &raw].concat();
        let raw = result(home.json(&raw));
        assert_eq!(raw["exit_code"], 56, "{raw:#}");
        assert!(
            has(
                &raw["network"]["denied"],
                "a.example.test",
                port,
                "limit:traffic"
            ),
            "{raw:#}"
        );
    });
}

/// Two commands at once are never faster than the rate, however long they take. That they share it exactly is a test of the meter.
#[test]
fn bandwidth_is_for_all_commands_together() {
    with_names(&[A], |world| {
        let home = &world.home;
        world.site.put("/big", vec![b'x'; 4_000_000]);
        home.ok(&["network", "set", &world.list(&["a.example.test"])]);
        home.ok(&["vault", "set", "bandwidth=2m/s"]);
        let url = format!("http://a.example.test:{}/big", world.site.port);
        let begun = std::time::Instant::now();
        let words = ["job", "start", "--", "curl", "-sSfo", "/dev/null", &url];
        let jobs = [0, 1].map(|_| home.json(&words)["job_id"].to_string());
        for job in &jobs {
            let ended = home.json(&["job", "wait", job, "--timeout", "60s"]);
            assert_eq!(ended["exit_code"], 0, "{ended:#}");
        }
        // Load can only make it less. A silence has saved a tenth of a second, and nobody waits after the last piece of each, which is
        // as large as the proxy reads at once.
        let last_pieces = 2.0 * f64::from(512 << 10);
        let rate = (8_000_000.0 - last_pieces) / (begun.elapsed().as_secs_f64() + 0.1);
        assert!(rate <= f64::from(2 << 20), "{rate}");
        home.ok(&["vault", "unset", "bandwidth"]);
    });
}

#[test]
fn limits_are_the_owners_and_forks_have_them() {
    with_names(&[], |world| {
        let home = &world.home;
        for word in ["connections=9", "bandwidth=1m", "traffic=1m"] {
            let refused = agent(home, &["vault", "set", word]);
            assert_eq!(refused["error"], "Denied", "{refused}");
        }
        for wrong in [
            "connections=0",
            "connections=1025",
            "bandwidth=fast",
            "bandwidth=1m/h",
            "traffic=0",
            "traffic=-1",
        ] {
            let (kind, answer) = home.refused(&["vault", "set", wrong]);
            assert_eq!(kind, "Invalid", "{wrong}: {answer}");
        }
        home.ok(&[
            "vault",
            "set",
            "connections=9",
            "bandwidth=1m/s",
            "traffic=2g",
        ]);
        let expected = json!({"connections": 9, "bytes_per_second": 1 << 20, "bytes": 2_u64 << 30});
        assert_eq!(home.json(&["network", "show"])["limits"], expected);
        home.ok(&["vault", "fork", "v", "w"]);
        let forked = home.json(&["--vault", "w", "network", "show"]);
        assert_eq!(forked["limits"], expected);
        let journal = home.json(&["audit", "--limit", "10"]).to_string();
        assert!(journal.contains("bandwidth"), "{journal}");
        let info = home.json(&["vault", "info", "v"]).to_string();
        assert!(info.contains("1048576/s"), "{info}");
    });
}
