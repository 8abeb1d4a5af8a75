//! Ports and networks of workspaces: an agent finds what the owner opened, narrows it, and opens nothing itself.

use crate::AVFS;
use crate::raw::Raw;
use avfs_testkit::with_vault;
use serde_json::{Value, json};

#[test]
fn the_owner_opens_ports_and_an_agent_finds_them() {
    with_vault(AVFS, |home| {
        let mut client = Raw::start(home, &["--toolset", "guide"]);
        let meant = json!({"workspace_id": "v", "guest_port": 3000});
        let refused = client.refused("port_forward", meant.clone());
        assert_eq!(refused["error"], "Denied", "{refused}");
        let hint = "ask the owner to run `avfs port forward v 3000`";
        assert_eq!(refused["hint"], hint);
        let opened = home.json(&["port", "forward", "v", "3000"]);
        home.ok(&["port", "forward", "v", "/run/app.sock"]);
        let found = client.call("port_forward", meant.clone());
        assert_eq!(found["host_port"], opened["host_port"], "{found}");
        assert_eq!(found["host"], "127.0.0.1");
        let other = json!({"workspace_id": "v", "guest_port": 3000, "host_port": 1});
        let refused = client.refused("port_forward", other);
        assert_eq!(refused["error"], "Denied", "{refused}");
        let forwards = json!([
            {"guest_port": 3000, "host_port": opened["host_port"], "host": "127.0.0.1"}
        ]);
        let workspace = json!({"workspace_id": "v"});
        let address = client.call("workspace_ip", workspace.clone());
        assert_eq!(
            (&address["ip"], &address["port_forwards"]),
            (&json!("127.0.0.1"), &forwards)
        );
        let info = client.call("workspace_info", workspace);
        assert_eq!(info["network"]["port_forwards"], forwards, "{info}");
        let refused = client.refused("port_forward_remove", meant.clone());
        let hint = "ask the owner to run `avfs port remove v 3000`";
        assert_eq!(
            (&refused["error"], &refused["hint"]),
            (&json!("Denied"), &json!(hint))
        );
        home.ok(&["port", "remove", "v", "3000"]);
        let gone = client.call("port_forward_remove", meant);
        assert_eq!(gone["removed"], false, "{gone}");
        let missing = json!({"workspace_id": "nobody", "guest_port": 3000});
        assert_eq!(client.refused("port_forward", missing)["error"], "NotFound");
    });
}

#[test]
fn an_agent_narrows_the_network_of_a_workspace() {
    with_vault(AVFS, |home| {
        home.ok(&["network", "set", "*:80,*:443,*:8443"]);
        let mut client = Raw::start(home, &["--toolset", "guide"]);
        let mut policy = |more: Value| {
            let mut asked = json!({"workspace_id": "v"});
            asked
                .as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            client.call("network_policy", asked)["network_policy"].take()
        };
        let shown = policy(json!({}));
        assert_eq!(shown["allow_internet"], true, "{shown}");
        assert_eq!(shown["allowed_ports"], json!([80, 443, 8443]), "{shown}");
        let narrowed = policy(json!({"allow_internet": true, "allowed_ports": [443]}));
        assert_eq!(narrowed["allowed_ports"], json!([443]), "{narrowed}");
        assert_eq!(home.json(&["network", "show"])["hosts"], json!(["*:443"]));
        let off = policy(json!({"allow_internet": false}));
        assert_eq!(off["allow_internet"], false, "{off}");
        let wider = json!({"workspace_id": "v", "allow_internet": true, "allowed_ports": [22]});
        assert_eq!(client.refused("network_policy", wider)["error"], "Denied");
        assert_eq!(home.json(&["network", "show"])["hosts"], json!([]));
    });
}

/// A command in a fresh sandbox reaches the domains that it names, and no others that the owner gives.
#[test]
fn a_sandbox_reaches_the_domains_that_it_names() {
    with_vault(AVFS, |home| {
        home.ok(&[
            "vault",
            "set",
            "--default",
            "network=a.example.test,b.example.test",
        ]);
        let mut client = Raw::start(home, &["--toolset", "sandbox"]);
        let both = "getent ahosts a.example.test > /dev/null && echo a; getent ahosts b.example.test > /dev/null && echo b; true";
        for (network, expected) in [
            (json!({}), "a\nb\n"),
            (json!({"allowed_domains": ["a.example.test"]}), "a\n"),
            (json!({"allowed_domains": ["b.example.test"]}), "b\n"),
        ] {
            let asked = json!({"command": both, "network": network});
            let id = client.ask_tool("sandbox_run", asked);
            let answer = client.answer(id);
            assert_eq!(answer["result"]["content"][0]["text"], expected, "{answer}");
        }
        let wider = json!({"command": "true", "network": {"allowed_domains": ["c.example.test"]}});
        assert_eq!(client.refused("sandbox_run", wider)["error"], "Denied");
    });
}
