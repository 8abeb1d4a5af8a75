//! What can be read by address: files, differences, output, envelopes, rules, and what waits for the owner.

use super::hands::Hands;
use crate::ops::failure::Failure;
use crate::wire::{
    ApprovalList, ApprovalShow, Base64, CURRENT, Cat, Diff, JobPoll, Journal, Output, PolicyList,
    StreamWord, from_text,
};
use avfs_runtime::ErrorKind;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use rmcp::model::{Resource, ResourceContents, ResourceTemplate};
use serde::Serialize;

/// The operations that resources are made of.
pub(crate) const ROWS: &[&str] = &[
    "cat",
    "diff",
    "output",
    "journal",
    "job_poll",
    "policy_list",
    "approval_list",
    "approval_show",
];

/// What every address begins with.
const SCHEME: &str = "avfs://";
/// Bytes of a resource. What is larger is read by a tool, part by part.
const BYTES: u64 = 256 << 10;

/// What may stand in an address as it is.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'@')
    .remove(b':');

pub(crate) fn diff_uri(vault: &str, from: &str, to: &str) -> String {
    let part = |text| utf8_percent_encode(text, PLAIN);
    format!(
        "{SCHEME}vault/{}/diff/{}/{}",
        part(vault),
        part(from),
        part(to)
    )
}

/// Those that are always there.
pub(crate) fn listed(vault: &str) -> Vec<Resource> {
    let about = |what: &str| format!("{SCHEME}vault/{}/{what}", utf8_percent_encode(vault, PLAIN));
    let json = |uri: String, name: &str| Resource::new(uri, name).with_mime_type(JSON);
    vec![
        Resource::new(
            diff_uri(vault, "BASE", "HEAD"),
            "what changed since the vault began",
        )
        .with_mime_type(DIFF),
        json(about("policy"), "the rules for commands"),
        json(format!("{SCHEME}approvals"), "what waits for the owner"),
    ]
}

const JSON: &str = "application/json";
const DIFF: &str = "text/x-diff";

pub(crate) fn templates() -> Vec<ResourceTemplate> {
    let template = |uri: &str, name: &str| ResourceTemplate::new(format!("{SCHEME}{uri}"), name);
    vec![
        template("vault/{vault}/file/{+path}", "a file of a vault"),
        template(
            "vault/{vault}/diff/{from}/{to}",
            "what differs between two states",
        ),
        template("vault/{vault}/policy", "the rules for commands in a vault"),
        template("exec/{exec}", "what is recorded of an exec"),
        template(
            "exec/{exec}/{stream}",
            "what an exec wrote to stdout or stderr",
        ),
        template("job/{job_id}", "a job, with its envelope once it is over"),
        template("approval/{id}", "a request for approval"),
    ]
}

/// Reads one.
pub(crate) async fn read(hands: &Hands, uri: &str) -> Result<ResourceContents, Failure> {
    let parts = parts(uri)?;
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    match parts.as_slice() {
        ["vault", vault, "file", path @ ..] if !path.is_empty() => {
            file(hands, uri, vault, &format!("/{}", path.join("/"))).await
        }
        ["vault", vault, "diff", from, to] => diff(hands, uri, vault, from, to).await,
        ["vault", vault, "policy"] => json(uri, &hands.ask(vault, &PolicyList {}).await?),
        ["exec", exec, "stdout"] => output(hands, uri, exec, StreamWord::Stdout).await,
        ["exec", exec, "stderr"] => output(hands, uri, exec, StreamWord::Stderr).await,
        ["exec", exec] => recorded(hands, uri, exec).await,
        ["job", id] => {
            let job_id = id.parse().map_err(|_| unknown(uri))?;
            let poll = JobPoll {
                job_id,
                envelope: true,
                limit: Some(BYTES / 2),
                ..JobPoll::default()
            };
            json(uri, &hands.ask("", &poll).await?)
        }
        ["approvals"] => {
            let vault = (hands.vault != CURRENT).then(|| hands.vault.clone());
            let list = ApprovalList {
                vault,
                ..ApprovalList::default()
            };
            json(uri, &hands.ask("", &list).await?)
        }
        ["approval", id] => {
            let id = (*id).to_owned();
            json(uri, &hands.ask("", &ApprovalShow { id }).await?)
        }
        _ => Err(unknown(uri)),
    }
}

/// The parts of an address, each decoded by itself: an encoded slash separates nothing.
fn parts(uri: &str) -> Result<Vec<String>, Failure> {
    let rest = uri.strip_prefix(SCHEME).ok_or_else(|| unknown(uri))?;
    let decode = |part: &str| {
        let decoded = percent_decode_str(part).decode_utf8();
        decoded
            .map(|text| text.into_owned())
            .map_err(|_| unknown(uri))
    };
    rest.split('/').map(decode).collect()
}

fn unknown(uri: &str) -> Failure {
    let what = format!(
        "there is no resource {:?}",
        super::answer::beginning(uri, 200)
    );
    Failure::new(ErrorKind::NotFound, what).hint("resources/templates/list shows the addresses")
}

fn json(uri: &str, value: &impl Serialize) -> Result<ResourceContents, Failure> {
    let text = serde_json::to_string(value).expect("wire types are plain data");
    Ok(ResourceContents::text(text, uri).with_mime_type(JSON))
}

fn content(uri: &str, text: String, exact: Option<Base64>) -> ResourceContents {
    match exact {
        None => ResourceContents::text(text, uri),
        Some(exact) => {
            let blob = super::answer::word(exact);
            ResourceContents::blob(blob, uri).with_mime_type("application/octet-stream")
        }
    }
}

async fn file(
    hands: &Hands,
    uri: &str,
    vault: &str,
    path: &str,
) -> Result<ResourceContents, Failure> {
    let cat = Cat {
        path: path.to_owned(),
        path_b64: None,
        version: None,
        offset: 0,
        limit: Some(BYTES),
    };
    let body = hands.ask(vault, &cat).await?;
    if body.more {
        let what = format!(
            "{path} has {} bytes, more than one resource holds",
            body.size
        );
        return Err(Failure::invalid(what).hint("read it part by part with the tool `read`"));
    }
    Ok(content(uri, body.content, body.content_b64))
}

async fn diff(
    hands: &Hands,
    uri: &str,
    vault: &str,
    from: &str,
    to: &str,
) -> Result<ResourceContents, Failure> {
    let diff = Diff {
        from: from.to_owned(),
        to: to.to_owned(),
        patch: true,
        ..Diff::default()
    };
    let report = hands.ask(vault, &diff).await?;
    let mut text = report.patch.unwrap_or_default();
    if report.patch_truncated {
        text.push_str("\n[the rest does not fit; compare below a path]\n");
    }
    Ok(ResourceContents::text(text, uri).with_mime_type(DIFF))
}

async fn output(
    hands: &Hands,
    uri: &str,
    exec: &str,
    stream: StreamWord,
) -> Result<ResourceContents, Failure> {
    let output = Output {
        exec: exec.to_owned(),
        stream,
        from: 0,
        to: Some(BYTES),
    };
    let part = hands.ask("", &output).await?;
    let mut text =
        String::from_utf8_lossy(&from_text(&part.data, part.data_b64.as_ref())).into_owned();
    if part.to < part.kept {
        let rest = part.kept - part.to;
        text.push_str(&format!(
            "\n[{rest} more bytes; read on with the tool `read`]\n"
        ));
    }
    Ok(ResourceContents::text(text, uri))
}

/// What the journal has of an exec: the decision, how it ended, what it changed.
async fn recorded(hands: &Hands, uri: &str, exec: &str) -> Result<ResourceContents, Failure> {
    let journal: Journal = serde_json::from_value(serde_json::json!({
        "exec": exec,
        "vault": (hands.vault != CURRENT).then_some(&hands.vault),
        "oldest_first": true,
    }))
    .expect("these are fields of it");
    json(uri, &hands.ask("", &journal).await?.entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_its_place() {
        let uri = diff_uri("a/../b", "v 1", "vault:c");
        let back = parts(&uri).unwrap();
        assert_eq!(back, ["vault", "a/../b", "diff", "v 1", "vault:c"]);
        assert!(parts("file:///etc/passwd").is_err());
        assert!(parts("avfs://vault/%ff/policy").is_err());
    }
}
