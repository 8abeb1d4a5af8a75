//! `avfs serve`: run the daemon.

use crate::args::ServeArgs;
use crate::environment;
use crate::error::{Error, Result};
use crate::output::{Output, note, raw};
use avfs_api::daemon::{ServeConfig, serve};
use avfs_api::start::greeting;
use avfs_runtime::{HostFacts, IfLost};
use rustix::fs::Mode;
use serde::Serialize;
use std::fs::OpenOptions;
use std::time::Duration;

#[derive(Serialize)]
struct Listening {
    pid: u32,
    socket: String,
}

pub fn run(args: ServeArgs, output: Output) -> Result<()> {
    if args.detached {
        // Fails only if this process is a session leader already.
        let _ = rustix::process::setsid();
    }
    rustix::process::umask(Mode::from_raw_mode(0o022));
    let place = environment::place()?;
    let socket = place.socket();
    let config = ServeConfig {
        place,
        binary: environment::binary()?,
        host: HostFacts {
            git_name: args.git_name,
            git_email: args.git_email,
            ..avfs_api::environment::host_facts()
        },
        layers: environment::layers(args.layers)?,
        if_lost: match args.rebuild {
            true => IfLost::Rebuild,
            false => IfLost::Refuse,
        },
        idle_timeout: Some(Duration::from_secs(args.idle_timeout)).filter(|time| !time.is_zero()),
    };
    if !args.detached {
        let ready = || {
            let listening = Listening {
                pid: std::process::id(),
                socket: socket.display().to_string(),
            };
            // The client that started this daemon may have ended; others are served.
            let _ = match output.is_json() {
                true => output.value(&listening),
                false => note(&format!("listening on {}", listening.socket)),
            };
        };
        return Ok(serve(config, ready)?);
    }
    match serve(config, || greet(greeting::READY)) {
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

/// Prints one line for the waiting client, then closes standard output.
fn greet(line: &str) {
    // The client may have ended; the daemon serves the next one.
    let _ = raw(format!("{}\n", line.replace('\n', " ")).as_bytes());
    if let Ok(nowhere) = OpenOptions::new().write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(&nowhere);
    }
}
