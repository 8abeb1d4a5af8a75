//! `avfs serve`: run the daemon.

use crate::args::{ServeArgs, SharedServeArgs};
use crate::environment;
use crate::error::{Error, Result};
use crate::output::{Output, note, raw};
use avfs_api::daemon::{ServeConfig, WriteLine, serve};
use avfs_api::http::{Hosts, Issuer, KeySource, Listen, Plaintext, ServiceUrl, TlsFiles};
use avfs_api::start::{self, greeting};
use avfs_api::{Client, DaemonPaths};
use avfs_runtime::{HostFacts, IfLost};
use rustix::fs::Mode;
use serde::Serialize;
use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Serialize)]
struct Listening {
    pid: u32,
    socket: String,
    /// The address on the network, if it listens there.
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
}

pub fn run(args: ServeArgs, output: Output) -> Result<()> {
    if args.detached {
        // Fails only if this process is a session leader already.
        let _ = rustix::process::setsid();
    }
    rustix::process::umask(Mode::from_raw_mode(0o022));
    let place = environment::place()?;
    let socket = place.socket();
    let scheme = if args.shared.tls_cert.is_some() {
        "https"
    } else {
        "http"
    };
    let (listen, collector) = (listen(&args.shared)?, collector(&args.shared)?);
    if listen.is_some() {
        take_over(&place)?;
    }
    let config = ServeConfig {
        place,
        listen,
        collector,
        log: args.shared.log_requests.then(line_writer),
        binary: environment::binary()?,
        host: HostFacts {
            git_name: args.shared.git_name,
            git_email: args.shared.git_email,
            ..avfs_api::environment::host_facts()
        },
        layers: environment::layers(args.shared.layers)?,
        if_lost: match args.rebuild {
            true => IfLost::Rebuild,
            false => IfLost::Refuse,
        },
        idle_timeout: Some(Duration::from_millis(args.idle_timeout.millis()))
            .filter(|time| !time.is_zero()),
    };
    if !args.detached {
        let ready = |address: Option<SocketAddr>| {
            let listening = Listening {
                pid: std::process::id(),
                socket: socket.display().to_string(),
                address: address.map(|address| address.to_string()),
            };
            // The client that started this daemon may have ended; others are served.
            let _ = match (output.is_json(), &listening.address) {
                (true, _) => output.value(&listening),
                (false, None) => note(&format!("listening on {}", listening.socket)),
                (false, Some(address)) => note(&format!(
                    "listening on {} and {scheme}://{address}",
                    listening.socket
                )),
            };
        };
        return Ok(serve(config, ready)?);
    }
    match serve(config, |_| greet(greeting::READY)) {
        Err(avfs_api::Error::HomeTaken { .. }) => {
            greet(greeting::TAKEN);
            Ok(())
        }
        Err(error) => {
            let error = Error::from(error);
            let hint = error.hint();
            let hint = hint.map_or_else(String::new, |hint| format!("{}{hint}", greeting::HINT));
            greet(&format!("{}{hint}", error.message()));
            Err(error)
        }
        Ok(()) => Ok(()),
    }
}

/// Where to listen on the network, if anywhere.
pub(super) fn listen(args: &SharedServeArgs) -> Result<Option<Listen>> {
    let Some(address) = args.listen else {
        return Ok(None);
    };
    let hosts = Hosts::new(&args.hosts).ok_or_else(|| Error::Invalid {
        text: "--host takes a name or an address, without a port".into(),
        hint: None,
    })?;
    let plaintext = match args.insecure_plaintext {
        true => Plaintext::Anywhere,
        false => Plaintext::Loopback,
    };
    let tls = match (&args.tls_cert, &args.tls_key) {
        (Some(certificate), Some(key)) => Some(TlsFiles {
            certificate: absolute(certificate)?,
            key: absolute(key)?,
        }),
        _ => None,
    };
    let issuer = match (&args.jwt_issuer, &args.jwt_audience, &args.jwt_keys) {
        (Some(issuer), Some(audience), Some(keys)) => Some(Issuer {
            issuer: issuer.clone(),
            audience: audience.clone(),
            keys: key_source(keys)?,
        }),
        _ => None,
    };
    let listen = Listen {
        address,
        hosts,
        plaintext,
        tls,
        issuer,
    };
    // Before the daemon that runs is ended for it.
    listen.check()?;
    Ok(Some(listen))
}

pub(super) fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(Error::io("cannot resolve a path"))
}

/// What has a scheme is a URL; all else is a file.
fn key_source(text: &OsStr) -> Result<KeySource> {
    match text.to_str().filter(|text| text.contains("://")) {
        Some(url) => service(url).map(KeySource::Url),
        None => Ok(KeySource::File(absolute(Path::new(text))?)),
    }
}

/// A service that the owner names.
fn service(url: &str) -> Result<ServiceUrl> {
    ServiceUrl::parse(url).map_err(|text| Error::Invalid { text, hint: None })
}

/// Writes log lines to standard error, one write for each.
fn line_writer() -> WriteLine {
    Box::new(|line| {
        // Whoever read them may have ended; clients are served all the same.
        let _ = note(&line);
    })
}

/// Where traces go, if anywhere: a collector takes them at this path behind its address.
pub(super) fn collector(args: &SharedServeArgs) -> Result<Option<ServiceUrl>> {
    let Some(url) = &args.otlp_endpoint else {
        return Ok(None);
    };
    let joined = service(url)?.join("/v1/traces");
    joined
        .map(Some)
        .map_err(|text| Error::Invalid { text, hint: None })
}

/// Ends a daemon that a client has started by itself, if it has no work: it would keep the home from this one.
fn take_over(place: &DaemonPaths) -> Result<()> {
    let mut client = match Client::connect(place) {
        Ok(client) => client,
        Err(avfs_api::Error::NoDaemon { .. }) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let state = client.daemon()?;
    if state.is_busy() {
        return Ok(());
    }
    start::stop(&mut client, false)?;
    Ok(())
}

/// Prints one line for the waiting client, then closes standard output.
fn greet(line: &str) {
    // The client may have ended; the daemon serves the next one.
    let _ = raw(format!("{}\n", line.replace('\n', " ")).as_bytes());
    if let Ok(nowhere) = OpenOptions::new().write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(&nowhere);
    }
}
