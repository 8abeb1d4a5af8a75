//! Ports of workspaces: an agent finds what the owner opened, and opens nothing itself.

use crate::AVFS;
use crate::raw::Raw;
use avfs_testkit::with_vault;
use serde_json::json;

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
