//! Bytes counted and slowed down as they pass.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// What one command, or all of a sandbox, have moved, and what they may.
#[derive(Debug, Default)]
pub(crate) struct Account {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    used: u64,
    max: Option<u64>,
    per_second: Option<u64>,
    /// When everything taken so far will have been paid for at the rate.
    paid_at: Option<Instant>,
}

/// How long a command may go above its rate after a silence.
const BURST: Duration = Duration::from_millis(100);
/// No single pause is longer, so that a change of the rate takes hold.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

impl Account {
    pub(crate) fn set_max(&self, max: Option<u64>) {
        self.lock().max = max;
    }

    /// What was taken at another rate is not paid for at this one.
    pub(crate) fn set_rate(&self, rate: Option<u64>) {
        let mut state = self.lock();
        if state.per_second != rate {
            state.per_second = rate;
            state.paid_at = None;
        }
    }

    /// The most bytes, if more have been asked for.
    pub(crate) fn spent(&self) -> Option<u64> {
        let state = self.lock();
        state.max.filter(|max| state.used > *max)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes bytes, and says how long to pause. `None` when there are no more to take.
    fn take(&self, bytes: u64, now: Instant) -> Option<Duration> {
        let mut state = self.lock();
        state.used = state.used.saturating_add(bytes);
        if state.max.is_some_and(|max| state.used > max) {
            return None;
        }
        let Some(rate) = state.per_second else {
            return Some(Duration::ZERO);
        };
        let earliest = now.checked_sub(BURST).unwrap_or(now);
        let cost = Duration::from_secs_f64(bytes as f64 / rate as f64);
        let begun = state.paid_at.map_or(earliest, |paid| paid.max(earliest));
        let paid_at = begun + cost.min(Duration::from_secs(3600));
        state.paid_at = Some(paid_at);
        Some(paid_at.saturating_duration_since(now))
    }
}

/// The bytes of one connection, taken from every account that it may belong to.
#[derive(Debug)]
pub(crate) struct Meter {
    accounts: Vec<Arc<Account>>,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
    /// Those that came in from what is kept.
    bytes_kept: AtomicU64,
}

impl Meter {
    pub(crate) fn new(accounts: Vec<Arc<Account>>) -> Meter {
        Meter {
            accounts,
            bytes_in: AtomicU64::new(0),
            bytes_out: AtomicU64::new(0),
            bytes_kept: AtomicU64::new(0),
        }
    }

    /// How many of the bytes that came in were kept here.
    pub(crate) fn kept(&self) -> u64 {
        self.bytes_kept.load(Ordering::Relaxed)
    }

    /// Counts bytes that go into the sandbox from a file of ours, and waits as long as they take at its rate.
    pub(crate) async fn pass(&self, bytes: usize, kept: bool) -> io::Result<()> {
        if kept {
            self.bytes_kept.fetch_add(bytes as u64, Ordering::Relaxed);
        }
        if let Some(pause) = self.take(&self.bytes_in, bytes)? {
            pause.await;
        }
        Ok(())
    }

    /// How many bytes came in and went out.
    pub(crate) fn moved(&self) -> (u64, u64) {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (read(&self.bytes_in), read(&self.bytes_out))
    }

    /// The most bytes of a command that it may belong to, if that has used them up.
    pub(crate) fn spent(&self) -> Option<u64> {
        self.accounts.iter().find_map(|account| account.spent())
    }

    fn take(&self, count: &AtomicU64, bytes: usize) -> io::Result<Option<Pin<Box<Sleep>>>> {
        count.fetch_add(bytes as u64, Ordering::Relaxed);
        let pause = self.pause(bytes as u64, Instant::now());
        let pause = pause.ok_or_else(|| io::Error::other("the limit of bytes is reached"))?;
        Ok((!pause.is_zero()).then(|| Box::pin(sleep(pause))))
    }

    /// How long to wait after these bytes; none if an account has no more.
    fn pause(&self, bytes: u64, now: Instant) -> Option<Duration> {
        let mut pause = Duration::ZERO;
        for account in &self.accounts {
            pause = pause.max(account.take(bytes, now)?);
        }
        Some(pause.min(LONGEST_PAUSE))
    }
}

/// A connection to a host, whose bytes are counted and slowed down.
pub(crate) struct Metered<S> {
    inner: S,
    meter: Arc<Meter>,
    reading: Option<Pin<Box<Sleep>>>,
    writing: Option<Pin<Box<Sleep>>>,
}

impl<S> Metered<S> {
    pub(crate) fn new(inner: S, meter: Arc<Meter>) -> Metered<S> {
        Metered {
            inner,
            meter,
            reading: None,
            writing: None,
        }
    }
}

fn wait(pause: &mut Option<Pin<Box<Sleep>>>, cx: &mut Context<'_>) -> Poll<()> {
    if let Some(sleep) = pause {
        ready!(sleep.as_mut().poll(cx));
        *pause = None;
    }
    Poll::Ready(())
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(wait(&mut this.reading, cx));
        let before = buf.filled().len();
        ready!(Pin::new(&mut this.inner).poll_read(cx, buf))?;
        let bytes = buf.filled().len() - before;
        this.reading = this.meter.take(&this.meter.bytes_in, bytes)?;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        ready!(wait(&mut this.writing, cx));
        let bytes = ready!(Pin::new(&mut this.inner).poll_write(cx, buf))?;
        this.writing = this.meter.take(&this.meter.bytes_out, bytes)?;
        Poll::Ready(Ok(bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        ready!(wait(&mut this.writing, cx));
        let bytes = ready!(Pin::new(&mut this.inner).poll_write_vectored(cx, bufs))?;
        this.writing = this.meter.take(&this.meter.bytes_out, bytes)?;
        Poll::Ready(Ok(bytes))
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Moves pieces by each connection in turn, none of which takes its next before it has waited; gives how long all took.
    fn moved(meters: &[Meter], pieces: usize, bytes: u64) -> Duration {
        let begun = Instant::now();
        let mut free = vec![begun; meters.len()];
        for _ in 0..pieces {
            let next = (0..meters.len()).min_by_key(|one| free[*one]).unwrap();
            let pause = meters[next].pause(bytes, free[next]).unwrap();
            free[next] += pause;
        }
        *free.iter().max().unwrap() - begun
    }

    fn shared(rate: u64, connections: usize) -> Vec<Meter> {
        let all = Arc::new(Account::default());
        all.set_rate(Some(rate));
        let own = || Arc::new(Account::default());
        let meters = (0..connections).map(|_| Meter::new(vec![own(), Arc::clone(&all)]));
        meters.collect()
    }

    /// A rate is for all connections together: many take as long as one for the same bytes.
    #[test]
    fn a_rate_is_shared() {
        // 100 pieces of 1,000 bytes at 10,000 a second, but for the burst.
        let expected = Duration::from_secs(10) - BURST;
        for connections in [1, 2, 7] {
            let took = moved(&shared(10_000, connections), 100, 1_000);
            assert_eq!(took.as_millis(), expected.as_millis(), "{connections}");
        }
    }

    #[test]
    fn bytes_are_for_one_account_and_a_silence_saves_little() {
        let account = Arc::new(Account::default());
        account.set_max(Some(1_000));
        let meter = Meter::new(vec![Arc::clone(&account)]);
        let now = Instant::now();
        assert_eq!(meter.pause(1_000, now), Some(Duration::ZERO));
        assert_eq!(meter.pause(1, now), None);
        assert_eq!(account.spent(), Some(1_000));
        let meters = shared(1_000, 1);
        assert_eq!(meters[0].pause(100, now), Some(Duration::ZERO));
        let hour = now + Duration::from_secs(3600);
        assert_eq!(meters[0].pause(100, hour), Some(Duration::ZERO));
        assert_eq!(meters[0].pause(500, hour), Some(Duration::from_millis(500)));
        // No pause is long, so that another rate takes hold.
        assert_eq!(meters[0].pause(1 << 30, hour), Some(LONGEST_PAUSE));
    }
}
