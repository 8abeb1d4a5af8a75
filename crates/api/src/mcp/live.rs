//! What a client is told while a tool works, and how it says that it does not wait any more.

use crate::ops::handler::Listener;
use crate::wire::{ExecEvent, OutputChunk};
use avfs_runtime::{Progress, Watcher};
use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

/// Pieces that a slow client may leave waiting. A command never waits for it: all that it wrote is in the answer.
const QUEUE: usize = 64;
/// With so many bytes a notification takes no more, and so often there is one at most.
const ENOUGH: usize = 4 << 10;
const PAUSE: Duration = Duration::from_millis(100);

/// The client of one call.
#[derive(Clone)]
pub(crate) struct Telling {
    /// Where progress goes, if the client gave a token for it.
    to: Option<(Peer<RoleServer>, ProgressToken)>,
    cancelled: CancellationToken,
}

impl Telling {
    pub fn of(context: &RequestContext<RoleServer>) -> Telling {
        let token = context.meta.get_progress_token();
        Telling {
            to: token.map(|token| (context.peer.clone(), token)),
            cancelled: context.ct.clone(),
        }
    }

    /// Nobody listens, and nobody cancels.
    pub fn nobody() -> Telling {
        Telling {
            to: None,
            cancelled: CancellationToken::new(),
        }
    }

    /// Waits for the work. When the client cancels the call, or is gone, the work is told and ends by itself.
    pub async fn attend<T>(
        &self,
        mut work: JoinHandle<T>,
        mut listening: Listening,
    ) -> Result<T, JoinError> {
        let mut told = Told::default();
        let mut pause = tokio::time::interval(PAUSE);
        pause.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = self.cancelled.cancelled(), if !listening.is_gone() => listening.leave(),
                _ = pause.tick(), if told.is_waiting() => self.tell(&mut told).await,
                Some(piece) = listening.pieces.recv(), if told.has_room() => told.add(&piece),
            }
        }
    }

    async fn tell(&self, told: &mut Told) {
        let text = std::mem::take(&mut told.text);
        let Some((peer, token)) = &self.to else {
            return;
        };
        told.count += 1.0;
        let progress = ProgressNotificationParam::new(token.clone(), told.count);
        // A client that cannot be told is soon found to be gone.
        let _ = peer.notify_progress(progress.with_message(text)).await;
    }
}

/// What is to be told next.
#[derive(Default)]
struct Told {
    text: String,
    count: f64,
}

impl Told {
    fn is_waiting(&self) -> bool {
        !self.text.is_empty()
    }

    fn has_room(&self) -> bool {
        self.text.len() < ENOUGH
    }

    fn add(&mut self, piece: &str) {
        self.text.push_str(piece);
    }
}

/// The other end of [`Live`]. When it goes, nobody waits for the work any more.
pub(crate) struct Listening {
    pieces: mpsc::Receiver<String>,
    gone: Arc<AtomicBool>,
}

impl Listening {
    fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    fn leave(&self) {
        self.gone.store(true, Ordering::Release);
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.leave();
    }
}

/// What a handler tells, on a thread that may wait.
pub(crate) struct Live {
    pieces: mpsc::Sender<String>,
    gone: Arc<AtomicBool>,
}

impl Live {
    pub fn new() -> (Live, Listening) {
        let (sender, pieces) = mpsc::channel(QUEUE);
        let gone = Arc::<AtomicBool>::default();
        let live = Live {
            pieces: sender,
            gone: Arc::clone(&gone),
        };
        (live, Listening { pieces, gone })
    }

    fn output(&self, chunk: &OutputChunk) {
        let text = String::from_utf8_lossy(chunk.bytes());
        // Whoever reads slowly misses some of it, not the answer.
        let _ = self.pieces.try_send(text.into_owned());
    }
}

impl Listener<ExecEvent> for Live {
    fn tell(&self, event: ExecEvent, _: &dyn Fn() -> bool) {
        match &event {
            ExecEvent::Stdout(chunk) | ExecEvent::Stderr(chunk) => self.output(chunk),
            ExecEvent::Waiting(waiting) => {
                let text = format!("waits for the owner: approval {}", waiting.approval_id);
                let _ = self.pieces.try_send(text);
            }
            ExecEvent::Started(_) => {}
        }
    }

    fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }
}

impl Watcher for Live {
    fn progress(&self, progress: Progress) {
        let text = format!("{} files, {} bytes", progress.files, progress.bytes);
        let _ = self.pieces.try_send(text);
    }

    fn cancelled(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }
}
