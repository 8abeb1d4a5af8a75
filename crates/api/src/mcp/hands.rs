//! What a tool works with: the rows of the table that it is made of, asked in the name of the client's agent.

use super::live::{Live, Telling};
use crate::ops::app::App;
use crate::ops::caller::{Caller, may_ask};
use crate::ops::erased::{self, Answer, Erased, Serve};
use crate::ops::failure::Failure;
use crate::ops::parse_vault;
use crate::table::Operation;
use crate::wire::{Envelope, Exec};
use avfs_runtime::{ErrorKind, Select, noting};
use serde::de::DeserializeOwned;
use std::sync::{Arc, LazyLock};
use std::time::Instant;
use tokio::task::spawn_blocking;

/// Every row, served.
static ROWS: LazyLock<Vec<Arc<Erased>>> =
    LazyLock::new(|| erased::all().into_iter().map(Arc::new).collect());

/// The way from one call of a tool, or one read of a resource, to the daemon.
#[derive(Clone)]
pub(crate) struct Hands {
    pub app: Arc<App>,
    pub caller: Caller,
    /// The vault that is meant where a call names none.
    pub vault: String,
    /// The rows that may be asked for.
    pub rows: &'static [&'static str],
    /// Where live output goes, and how the client says that it does not want the answer any more.
    pub telling: Telling,
}

impl Hands {
    /// The vault that a call names, or the one that is meant.
    pub fn vault<'a>(&'a self, named: Option<&'a str>) -> &'a str {
        named.unwrap_or(&self.vault)
    }

    /// Asks for one operation. `vault` is not looked at by operations that concern no single vault.
    pub async fn ask<O: Operation>(
        &self,
        vault: &str,
        request: &O,
    ) -> Result<O::Response, Failure> {
        let request = serde_json::to_vec(request).expect("wire types are plain data");
        let begun = Instant::now();
        let done = self.perform(O::NAME, vault, request).await;
        let status = done.as_ref().map_or_else(|it| it.problem().status, |_| 200);
        let by = Some(self.caller.principal);
        self.app.served(O::NAME, status, begun.elapsed(), by);
        read(done?)
    }

    /// Runs a command, and tells what it writes meanwhile to whoever wants to know.
    pub async fn run(&self, vault: &str, request: &Exec) -> Result<Envelope, Failure> {
        self.ask(vault, request).await
    }

    /// A row from JSON to JSON: the same gate, turns and bounds as everywhere.
    async fn perform(
        &self,
        name: &'static str,
        vault: &str,
        request: Vec<u8>,
    ) -> Result<Answer, Failure> {
        let row = ROWS.iter().find(|row| row.row.name == name);
        let row = row.filter(|_| self.rows.contains(&name));
        let Some(row) = row.map(Arc::clone) else {
            let what = format!("this tool is not made of {name}");
            return Err(Failure::new(ErrorKind::Bug, what));
        };
        self.check_home(&row)?;
        may_ask(&row.row, &self.caller)?;
        if request.len() > row.row.body_max {
            return Err(Failure::too_large(name, row.row.body_max));
        }
        let at_work = self.app.enter();
        let select = match row.row.route.contains("{vault}") {
            true => parse_vault(vault)?,
            false => Select::Current,
        };
        let place = self.app.lanes.enter(row.row.lane, &self.caller).await?;
        let (app, caller) = (Arc::clone(&self.app), self.caller.clone());
        let (live, listening) = Live::new();
        let work = spawn_blocking(move || {
            let _under_way = (at_work, place);
            let figures = Arc::clone(&app);
            let work = || {
                let request = row.read_json(&request)?;
                let (ask, select) = row.admit(app, caller, select, &request)?;
                match &row.serve {
                    Serve::Answer(serve) | Serve::Watched(serve) => {
                        serve(&ask, select, request, &live)
                    }
                    Serve::Runs(serve) => serve(&ask, select, request, &live),
                    _ => Err(Failure::new(ErrorKind::Bug, "a stream is no answer")),
                }
            };
            // What was tried again is in an envelope; other answers are as if it had not been.
            let (done, _) = noting(work);
            done.map_err(|failure| failure.with_figures(&figures.runtime))
        });
        let done = self.telling.attend(work, listening).await;
        done.map_err(|_| Failure::panicked(&self.app.place.log()))?
    }

    /// As the routes of HTTP do: nothing is done to another home, or to one that can only be read.
    fn check_home(&self, row: &Erased) -> Result<(), Failure> {
        if self.app.place.is_lost() {
            self.app.home_lost.notify_one();
            return Err(Failure::home_lost(self.app.place.home()));
        }
        if row.row.effect.changes_home() {
            self.app.runtime.check_writable()?;
        }
        Ok(())
    }
}

fn read<T: DeserializeOwned>(answer: Answer) -> Result<T, Failure> {
    serde_json::from_slice(&answer.json)
        .map_err(|error| Failure::new(ErrorKind::Bug, format!("an answer of our own: {error}")))
}
