//! In and out over HTTP: by a path of the host, or as a stream of bytes.

use super::bodies;
use super::content::{Arriving, pass_on};
use super::errors::Failure;
use super::files::{at, vault_path};
use super::items;
use super::retried::Noted;
use super::routes::{Reply, Routes, parse_vault, query};
use super::watch::{Caller, Here};
use super::{App, Ask};
use crate::bounds::lane_of;
use crate::wire::{
    ArchiveRead, ArchiveWrite, BackItem, BackWord, Base64, Export, ExportArchive, ExportChanges,
    Exported, ExportedChanges, HostPath, Import, Imported, Operation, RunsByItselfItem, from_text,
    to_text,
};
use avfs_runtime::{
    Back, BackAction, BackMode, ExportReport, ExportTo, Gitignores, Hooks, ImportFilter,
    ImportFrom, OnDamage, RunsByItself, Select, Standing, VaultPath, Watcher,
};
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, put};
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

/// Pieces of a stream that may wait for the other side.
const QUEUE: usize = 2;
const PIECE: usize = 256 << 10;

pub(crate) fn routes(routes: Routes) -> Routes {
    routes
        .watched::<Import>(import)
        .watched::<Export>(export)
        .watched::<ExportArchive>(export_archive)
        .watched::<ExportChanges>(export_changes)
        .add::<ArchiveWrite>(put(archive_write))
        .add::<ArchiveRead>(get(archive_read))
}

fn import(ask: &Ask, vault: Select, request: Import, watcher: &dyn Watcher) -> Reply<Import> {
    let at = vault_path(&request.path, request.path_b64.as_ref())?;
    let host = host_path(&request.host_dir, request.host_dir_b64.as_ref())?;
    let from = match request.git_rev {
        Some(revision) => ImportFrom::Revision {
            repository: host,
            revision,
        },
        None => ImportFrom::Host(host),
    };
    let filter = ImportFilter {
        exclude: request.exclude,
        gitignores: match request.gitignore {
            true => Gitignores::Heeded,
            false => Gitignores::Taken,
        },
        max_depth: request.max_depth,
    };
    let import = avfs_runtime::Import {
        vault,
        at,
        from,
        filter,
    };
    bring_in(ask, import, watcher)
}

fn bring_in(
    ask: &Ask,
    import: avfs_runtime::Import<'_>,
    watcher: &dyn Watcher,
) -> Result<Imported, Failure> {
    let place = import.at.clone();
    let imported = ask.session.import(import, watcher);
    let imported = imported.map_err(at(&place))?;
    let report = imported.report;
    let (vfs_path, vfs_path_b64) = items::path(&place);
    Ok(Imported {
        vfs_path,
        vfs_path_b64,
        files_imported: report.files,
        dirs_created: report.directories,
        total_bytes: report.bytes,
        files_reused: report.reused,
        version: imported.version,
        skipped: report.skipped.into_iter().map(items::skipped).collect(),
    })
}

fn export(ask: &Ask, vault: Select, request: Export, watcher: &dyn Watcher) -> Reply<Export> {
    let path = vault_path(&request.path, request.path_b64.as_ref())?;
    let host = host_path(&request.host_dir, request.host_dir_b64.as_ref())?;
    let standing = match request.overwrite {
        true => Standing::Replaced,
        false => Standing::Nothing,
    };
    let to = ExportTo {
        host_dir: &host,
        standing,
        on_damage: on_damage(request.keep_going),
    };
    let hooks = hooks(request.allow_hooks);
    let report = ask.session.export(vault, &path, to, hooks, watcher);
    Ok(exported(&path, host, report.map_err(at(&path))?))
}

fn export_archive(
    ask: &Ask,
    vault: Select,
    request: ExportArchive,
    watcher: &dyn Watcher,
) -> Reply<ExportArchive> {
    let path = vault_path(&request.path, request.path_b64.as_ref())?;
    let host = host_path(&request.host_file, request.host_file_b64.as_ref())?;
    let to = (&*host, on_damage(request.keep_going));
    let report = ask.session.export_archive(vault, &path, to, watcher);
    Ok(exported(&path, host, report.map_err(at(&path))?))
}

fn exported(path: &VaultPath, host: PathBuf, report: ExportReport) -> Exported {
    let (vfs_path, vfs_path_b64) = items::path(path);
    let (real_path, real_path_b64) = to_text(host.into_os_string().into_vec());
    Exported {
        vfs_path,
        vfs_path_b64,
        real_path,
        real_path_b64,
        files_exported: report.files,
        dirs_created: report.directories,
        total_bytes: report.bytes,
        skipped: report.skipped.into_iter().map(items::skipped).collect(),
        runs_by_itself: runs_by_itself(report.runs_by_itself),
        missing: report.missing.into_iter().map(items::skipped).collect(),
    }
}

fn on_damage(keep_going: bool) -> OnDamage {
    match keep_going {
        true => OnDamage::KeepGoing,
        false => OnDamage::Stop,
    }
}

fn hooks(allowed: bool) -> Hooks {
    match allowed {
        true => Hooks::Write,
        false => Hooks::Refuse,
    }
}

fn runs_by_itself(found: Vec<RunsByItself>) -> Vec<RunsByItselfItem> {
    let items = found.into_iter().map(|it| {
        let (path, path_b64) = to_text(it.path);
        RunsByItselfItem {
            path,
            path_b64,
            why: it.why.into(),
            guarded: it.guarded,
        }
    });
    items.collect()
}

fn export_changes(
    ask: &Ask,
    vault: Select,
    request: ExportChanges,
    watcher: &dyn Watcher,
) -> Reply<ExportChanges> {
    let host = host_path(&request.host_dir, request.host_dir_b64.as_ref())?;
    let path = request.path.as_deref();
    let path = path.map(|path| vault_path(path, request.path_b64.as_ref()));
    let back = Back {
        vault,
        host_dir: host,
        at: path.transpose()?,
        mode: match request.dry_run {
            true => BackMode::Plan,
            false => BackMode::Apply,
        },
        hooks: hooks(request.allow_hooks),
    };
    let report = ask.session.export_changes(back, watcher)?;
    let changes = report.changes.into_iter().map(|(path, action)| {
        let (path, path_b64) = to_text(path);
        let action = match action {
            BackAction::Created => BackWord::Created,
            BackAction::Replaced => BackWord::Replaced,
            BackAction::Deleted => BackWord::Deleted,
            BackAction::Mode => BackWord::Mode,
        };
        BackItem {
            path,
            path_b64,
            action,
        }
    });
    let (vfs_path, vfs_path_b64) = items::path(&report.at);
    let (real_path, real_path_b64) = to_text(report.host_dir.as_os_str().as_bytes().to_vec());
    Ok(ExportedChanges {
        vfs_path,
        vfs_path_b64,
        real_path,
        real_path_b64,
        files_exported: report.files,
        files_deleted: report.deleted,
        dirs_created: report.directories,
        total_bytes: report.bytes,
        dry_run: request.dry_run,
        changes: changes.collect(),
        skipped: report.skipped.into_iter().map(items::skipped).collect(),
        runs_by_itself: runs_by_itself(report.runs_by_itself),
    })
}

/// The daemon's own directory means nothing to a client, so only absolute paths do.
pub(crate) fn host_path(path: &HostPath, exact: Option<&Base64>) -> Result<PathBuf, Failure> {
    let text = path.as_str();
    let path = PathBuf::from(OsString::from_vec(from_text(text, exact)));
    if path.is_absolute() {
        Ok(path)
    } else {
        Err(Failure::invalid(format!(
            "the host path {text:?} is not absolute"
        )))
    }
}

async fn archive_write(
    State(app): State<Arc<App>>,
    Path(vault): Path<String>,
    request: Request,
) -> Result<Response, Failure> {
    let (at_work, log) = (app.enter(), app.place.log());
    let select = parse_vault(&vault)?;
    let (caller, asked, body) = query::<ArchiveWrite>(request)?;
    let at = vault_path(&asked.path, asked.path_b64.as_ref())?;
    let turn = app
        .lanes
        .enter(lane_of(ArchiveWrite::NAME), &caller)
        .await?;
    let bodies = Arc::clone(&app.bodies);
    let ask = Ask::new(app, caller);
    let here = Here::default();
    let gone = here.0.clone();
    let (pieces, mut arriving) = Arriving::new();
    let work = tokio::task::spawn_blocking(move || {
        let _under_way = (at_work, turn);
        let exclude = asked.exclude.lines().map(str::to_owned).collect();
        let import = avfs_runtime::Import {
            vault: select,
            at,
            from: ImportFrom::Stream(&mut arriving),
            filter: ImportFilter {
                exclude,
                gitignores: Gitignores::Taken,
                max_depth: asked.max_depth,
            },
        };
        Noted::of(|| {
            let done = bring_in(&ask, import, &Caller { gone });
            done.map(|answer| bodies::write(&answer, Vec::new()))
        })
    });
    pass_on(body, pieces).await;
    let answer = work.await;
    drop(here);
    let answer = answer.map_err(|_| Failure::panicked(&log))?;
    Ok(answer.send(&bodies).await)
}

async fn archive_read(
    State(app): State<Arc<App>>,
    Path(vault): Path<String>,
    request: Request,
) -> Result<Response, Failure> {
    let (at_work, log) = (app.enter(), app.place.log());
    let select = parse_vault(&vault)?;
    let (caller, asked, _) = query::<ArchiveRead>(request)?;
    let path = vault_path(&asked.path, asked.path_b64.as_ref())?;
    let turn = app.lanes.enter(lane_of(ArchiveRead::NAME), &caller).await?;
    let ask = Ask::new(app, caller);
    let (begun, first) = tokio::sync::oneshot::channel();
    let (pieces, queue) = mpsc::channel::<io::Result<Vec<u8>>>(QUEUE);
    tokio::task::spawn_blocking(move || {
        let _under_way = (at_work, turn);
        let mut leaving = Leaving {
            pieces: pieces.clone(),
            begun: Some(begun),
            piece: Vec::with_capacity(PIECE),
        };
        let written = ask.session.archive(select, &path, &mut leaving);
        match written.map_err(at(&path)) {
            Ok(()) => drop(leaving.flush()),
            Err(failure) => match leaving.begun.take() {
                Some(begun) => drop(begun.send(Err(failure))),
                // Too late for an answer: the stream breaks, and the client sees that.
                None => {
                    let detail = failure.problem().detail.clone();
                    drop(pieces.blocking_send(Err(io::Error::other(detail))));
                }
            },
        }
    });
    match first.await {
        Ok(Ok(())) => {}
        Ok(Err(failure)) => return Err(failure),
        Err(_) => return Err(Failure::panicked(&log)),
    }
    let body = Body::from_stream(ReceiverStream::new(queue));
    Ok(([(CONTENT_TYPE, "application/x-tar")], body).into_response())
}

/// An answer's body, from a thread that may wait. The answer begins with the first piece.
struct Leaving {
    pieces: mpsc::Sender<io::Result<Vec<u8>>>,
    begun: Option<tokio::sync::oneshot::Sender<Result<(), Failure>>>,
    piece: Vec<u8>,
}

impl Write for Leaving {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.piece.extend_from_slice(bytes);
        if self.piece.len() >= PIECE {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if let Some(begun) = self.begun.take() {
            let _ = begun.send(Ok(()));
        }
        let piece = std::mem::take(&mut self.piece);
        let sent = self.pieces.blocking_send(Ok(piece));
        sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}
