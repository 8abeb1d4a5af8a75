//! Files of sandboxes.

use super::answer::done;
use super::asker::{Asker, Asks};
use crate::ops::failure::Failure;
use crate::wire::{Base64, Cat, Rm, Write};
use axum::extract::Path;
use axum::response::Response;
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;

#[derive(Copy, Clone, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Coding {
    #[default]
    Utf8,
    Base64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    content: String,
    #[serde(default)]
    encoding: Coding,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Files {
    /// Text by path.
    files: BTreeMap<String, String>,
}

/// The rest of an address is a path from the top.
fn absolute(path: &str) -> String {
    format!("/{}", path.trim_start_matches('/'))
}

pub(in crate::http) async fn read(
    Path((name, path)): Path<(String, String)>,
    asker: Asker,
) -> Result<Response, Failure> {
    let cat = Cat {
        path: absolute(&path),
        path_b64: None,
        version: None,
        offset: 0,
        limit: None,
    };
    let body = asker.asks().ask(&name, cat).await?;
    if body.more {
        let what = format!("{} has {} bytes: too many for JSON", body.path, body.size);
        return Err(Failure::invalid(what)
            .hint("GET /v1/vaults/{vault}/files/content reads files of any size"));
    }
    let (content, encoding) = match body.content_b64 {
        None => (json!(body.content), "utf8"),
        Some(bytes) => (json!(bytes), "base64"),
    };
    Ok(done(
        json!({ "content": content, "encoding": encoding, "size": body.size }),
    ))
}

pub(in crate::http) async fn write(
    Path((name, path)): Path<(String, String)>,
    asker: Asker,
) -> Result<Response, Failure> {
    let (asks, content) = asker.read::<Content>().await?;
    let exact = match content.encoding {
        Coding::Utf8 => None,
        Coding::Base64 => {
            let exact = serde_json::from_value::<Base64>(json!(content.content));
            Some(exact.map_err(|_| Failure::invalid("the content is no base64"))?)
        }
    };
    let path = absolute(&path);
    let size = put(&asks, &name, &path, content.content, exact).await?;
    Ok(done(format!("Wrote {size} bytes to {path}")))
}

async fn put(
    asks: &Asks,
    name: &str,
    path: &str,
    content: String,
    exact: Option<Base64>,
) -> Result<u64, Failure> {
    let write = Write {
        path: path.to_owned(),
        path_b64: None,
        content: if exact.is_some() {
            String::new()
        } else {
            content
        },
        content_b64: exact,
        append: false,
        parents: true,
        mode: None,
    };
    Ok(asks.ask(name, write).await?.size)
}

pub(in crate::http) async fn write_all(
    Path(name): Path<String>,
    asker: Asker,
) -> Result<Response, Failure> {
    let (asks, files) = asker.read::<Files>().await?;
    let count = files.files.len();
    for (path, content) in files.files {
        put(&asks, &name, &absolute(&path), content, None).await?;
    }
    Ok(done(format!("Wrote {count} files")))
}

pub(in crate::http) async fn remove(
    Path((name, path)): Path<(String, String)>,
    asker: Asker,
) -> Result<Response, Failure> {
    let path = absolute(&path);
    let rm = Rm {
        path: path.clone(),
        path_b64: None,
        recursive: false,
        force: false,
    };
    asker.asks().ask(&name, rm).await?;
    Ok(done(format!("Deleted {path}")))
}
