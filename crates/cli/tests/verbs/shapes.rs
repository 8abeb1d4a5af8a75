//! The JSON other tools already read: keys and types.

use crate::AVFS;
use avfs_testkit::with_vault;
use serde_json::{Value, json};

/// Panics unless every key of `shape` is in `value` with the same type of content.
fn has_shape(value: &Value, shape: &Value) {
    for (key, want) in shape.as_object().expect("a shape is an object") {
        let got = &value[key];
        let same = match want {
            Value::Null => value.get(key).is_some(),
            Value::Bool(_) => got.is_boolean(),
            Value::Number(_) => got.is_number(),
            Value::String(_) => got.is_string(),
            Value::Array(_) => got.is_array(),
            Value::Object(_) => {
                has_shape(got, want);
                true
            }
        };
        assert!(same, "{key} should be like {want} in {value}");
    }
}

#[test]
fn vaults() {
    with_vault(AVFS, |home| {
        let created = home.json(&["vault", "create", "w"]);
        assert_eq!(created["created"], "w");
        assert_eq!(created["current"], false, "only the first becomes current");
        has_shape(&created, &json!({"backend": ""}));
        let list = home.json(&["vault", "list"]);
        let items = list.as_array().unwrap();
        assert_eq!(items.len(), 2);
        for item in items {
            has_shape(
                item,
                &json!({"name": "", "current": true, "size": 0, "backend": ""}),
            );
        }
        let info = home.json(&["vault", "info"]);
        has_shape(
            &info,
            &json!({"name": "", "current": true, "size": 0, "created_at": "",
            "path": "", "backend": ""}),
        );
        assert_eq!(info["name"], "v");
        let forked = home.json(&["vault", "fork", "v", "f", "--use"]);
        has_shape(
            &forked,
            &json!({"source": "", "name": "", "current": true, "backend": "",
            "path": "", "copy_on_write": true}),
        );
        assert_eq!(forked["current"], true);
        assert_eq!(home.json(&["vault", "use", "v"]), json!({"current": "v"}));
        assert_eq!(
            home.json(&["vault", "delete", "f", "-y"]),
            json!({"deleted": "f"})
        );
        let log = home.json(&["vault", "log"]);
        has_shape(
            &log[0],
            &json!({"version": 0, "created_at": "", "hash": ""}),
        );
    });
}

#[test]
fn files() {
    with_vault(AVFS, |home| {
        assert_eq!(
            home.json(&["mkdir", "/d"]),
            json!({"path": "/d", "created": true})
        );
        let written = home.json(&["write", "/d/f", "hello"]);
        has_shape(&written, &json!({"path": "", "size": 0, "appended": false}));
        assert_eq!(written["size"], 5);
        let list = home.json(&["ls", "/d"]);
        has_shape(
            &list[0],
            &json!({"name": "", "type": "", "size": 0, "modified": ""}),
        );
        assert_eq!(list[0]["type"], "file");
        let file = home.json(&["cat", "/d/f"]);
        has_shape(
            &file,
            &json!({"path": "", "content": "", "size": 0, "version": 0}),
        );
        assert_eq!(file["content"], "hello");
        let moved = home.json(&["mv", "/d/f", "/d/g"]);
        assert_eq!(
            moved,
            json!({"source": "/d/f", "destination": "/d/g", "moved": true})
        );
        assert_eq!(
            home.json(&["rm", "/d/g"]),
            json!({"path": "/d/g", "removed": true})
        );
        assert_eq!(
            home.json(&["rm", "-f", "/d/g"]),
            json!({"path": "/d/g", "removed": false})
        );
        assert_eq!(home.json(&["rm", "/d/g"])["error"], "NotFound");
    });
}

#[test]
fn checkpoints() {
    with_vault(AVFS, |home| {
        home.ok(&["write", "/f", "one"]);
        let saved = home.json(&["checkpoint", "save", "first", "-d", "before the storm"]);
        has_shape(
            &saved,
            &json!({"name": "", "created_at": "", "file_count": 0, "total_size": 0,
            "total_size_human": "", "description": ""}),
        );
        let info = home.json(&["checkpoint", "info", "first"]);
        assert_eq!(info["description"], "before the storm");
        let refused = home.json(&["checkpoint", "save", "second", "-d", "two\nlines"]);
        assert_eq!(refused["error"], "Invalid");
        home.ok(&["write", "/f", "two"]);
        let list = home.json(&["snapshot", "list"]);
        assert_eq!(list["snapshots"][0]["name"], "first");
        let restored = home.json(&["checkpoint", "restore", "first"]);
        has_shape(
            &restored,
            &json!({"snapshot": "", "undo": "", "version": 0, "changes": 0}),
        );
        assert_eq!(home.ok(&["cat", "/f"]), "one");
        home.ok(&["checkpoint", "restore", restored["undo"].as_str().unwrap()]);
        assert_eq!(home.ok(&["cat", "/f"]), "two");
        let deleted = home.json(&["checkpoint", "delete", "first"]);
        assert_eq!(deleted, json!({"action": "delete", "name": "first"}));
        assert_eq!(
            home.json(&["checkpoint", "restore", "first"])["error"],
            "NotFound"
        );
    });
}

fn envelope_shape() -> Value {
    json!({
        "schema_version": 1, "kind": "", "success": true,
        "request": {
            "vault": "", "cwd": "", "readonly": false, "keep_mount": false, "mountpoint": null,
            "checkpoint_mode": "", "command": "", "command_mode": "", "timeout": null,
        },
        "result": {
            "vault": "", "mountpoint": "", "cwd": "", "command": "", "exit_code": null,
            "stdout": "", "stderr": "", "readonly": false, "kept_mounted": false, "duration_ms": 0,
            "checkpoint": null, "changed_files": [], "state": "", "timed_out": false,
            "decision": {"action": "", "categories": [], "reason": null},
        },
    })
}

#[test]
fn every_exec_has_the_same_envelope() {
    with_vault(AVFS, |home| {
        home.ok(&["mkdir", "/workspace"]);
        let success = home.exec(&["sh", "-c", "echo 'a b' > f"]);
        let failure = home.shell("exit 3");
        let timeout = home.json(&["exec", "--timeout", "100", "--", "sleep", "9"]);
        let denied = home.exec(&["cat", "/etc/shadow"]);
        let missing = home.exec(&["no-such-program"]);
        for envelope in [&success, &failure, &timeout, &denied, &missing] {
            has_shape(envelope, &envelope_shape());
            assert_eq!(envelope["schema_version"], 1);
            assert_eq!(envelope["kind"], "proxy_exec_result");
        }
        assert_eq!(success["success"], true);
        assert_eq!(
            success["request"]["command"],
            "sh -c 'echo '\\''a b'\\'' > f'"
        );
        assert_eq!(success["request"]["command_mode"], "argv");
        assert_eq!(success["request"]["timeout"], json!({"millis": 300000}));
        assert_eq!(success["result"]["cwd"], "/workspace");
        assert_eq!(success["result"]["changed_files"], json!(["/workspace/f"]));
        assert_eq!(success["result"]["state"], "completed");
        assert_eq!(
            success["result"]["decision"]["action"],
            "allow_with_checkpoint"
        );
        assert!(success["result"]["checkpoint"].is_string());

        assert_eq!(failure["success"], false);
        assert_eq!(failure["result"]["exit_code"], 3);
        assert_eq!(failure["request"]["command_mode"], "shell");
        assert_eq!(timeout["result"]["exit_code"], Value::Null);
        assert_eq!(timeout["result"]["timed_out"], true);
        assert_eq!(timeout["request"]["timeout"], json!({"millis": 100}));
        assert_eq!(denied["result"]["decision"]["action"], "deny");
        assert_eq!(denied["result"]["exit_code"], Value::Null);
        assert_eq!(denied["result"]["status"], "denied");
        assert_eq!(missing["result"]["status"], "not_found");
        let no_limit = home.json(&["exec", "--timeout", "0", "--", "true"]);
        assert_eq!(no_limit["request"]["timeout"], "none");
    });
}

#[test]
fn bytes_that_are_no_text_come_exactly_too() {
    with_vault(AVFS, |home| {
        let envelope = home.shell(r"printf 'a\377' ; printf x > /n$(printf '\377')");
        assert_eq!(envelope["result"]["stdout_b64"], "Yf8=");
        assert_eq!(envelope["result"]["changed_files_b64"][0], "L27/");
        assert_eq!(home.json(&["ls", "/"])[0]["name_b64"], "bv8=");
    });
}

#[test]
fn a_denied_command_is_in_the_journal() {
    with_vault(AVFS, |home| {
        let envelope = home.exec(&["cat", "/etc/shadow"]);
        let journal = home.json(&["audit", "--limit", "10"]);
        let entries = journal["entries"].as_array().unwrap();
        has_shape(
            &entries[0],
            &json!({"id": 0, "timestamp": "", "operation": "", "path": null,
            "details": {}}),
        );
        let exec = &envelope["result"]["exec"];
        let found = entries.iter().find(|entry| entry["exec"] == *exec);
        let found = found.unwrap_or_else(|| panic!("{exec} is not in {journal}"));
        assert!(found["details"].to_string().contains("deny"), "{found}");
        assert_eq!(home.json(&["audit", "verify"])["valid"], true);
    });
}
