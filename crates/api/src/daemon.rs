//! The daemon: owns a home, listens on its socket, and ends on request, on a signal, or when idle.

use crate::auth::Auth;
use crate::auth::jwt::Tokens;
use crate::auth::keys::Keys;
use crate::bounds::{CONNECTIONS_MAX, CONNECTIONS_OF_ONE_MAX, THREADS};
use crate::crowd::Room;
use crate::daemon_paths::DaemonPaths;
use crate::error::{Error, Result, is_full};
use crate::http::{Listen, router};
use crate::ops::app::App;
use crate::ops::caller::Peer;
pub use crate::ops::logs::WriteLine;
use crate::outbound::ServiceUrl;
use crate::serving::{self, Door};
use avfs_runtime::{Config, ErrorKind, HostFacts, IfLost, Runtime};
use rustix::process::{Resource, Rlimit, geteuid, getrlimit, setrlimit};
use std::fs::{self, File};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::net::{UnixListener, UnixStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::{JoinSet, spawn_blocking};

/// How long requests that were sent before the socket was removed may still arrive.
const DRAIN: Duration = Duration::from_millis(50);
/// How long clients may take to read their last answer.
const LAST_ANSWERS: Duration = Duration::from_secs(5);

/// How often an idle daemon checks whether its socket still exists.
const LOOK_FOR_SOCKET: Duration = Duration::from_secs(5);
/// How often it checks its home, and how often again if that is gone and something still runs.
const LOOK_FOR_HOME: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// The configuration of a daemon.
pub struct ServeConfig {
    pub place: DaemonPaths,
    /// This program, which is executed again in other roles.
    pub binary: PathBuf,
    pub host: HostFacts,
    /// Where the owner wants layers.
    pub layers: Option<PathBuf>,
    /// What to do if the home's database is lost.
    pub if_lost: IfLost,
    /// The daemon ends after this time without work; `None` means never.
    pub idle_timeout: Option<Duration>,
    /// Where to listen besides the socket.
    pub listen: Option<Listen>,
    /// Where traces are sent, if anywhere.
    pub collector: Option<ServiceUrl>,
    /// Where log lines go, if anywhere.
    pub log: Option<WriteLine>,
}

/// After this time without a request caches are freed.
const REST_AFTER: Duration = Duration::from_secs(5);
/// How often a daemon checks its memory.
const TRIM_EVERY: Duration = Duration::from_secs(1);
/// How long a thread waits for another request. When the daemon rests, all have ended: each holds blocks that it has freed, and
/// those keep the pages around them.
const THREADS_WAIT: Duration = Duration::from_secs(2);
const _: () = assert!(TRIM_EVERY.as_secs() * 2 + THREADS_WAIT.as_secs() < REST_AFTER.as_secs());

/// Serves a home until the daemon ends. `ready` is called once clients can connect, with the TCP address.
///
/// [`Error::HomeTaken`] means that another daemon serves this home.
pub fn serve(config: ServeConfig, ready: impl FnOnce(Option<SocketAddr>)) -> Result<()> {
    serving::check_clock(SystemTime::now())?;
    avfs_runtime::economize();
    forbid_core_files()?;
    config.place.prepare()?;
    let home = config.place.home();
    // Open, so that its inode number is not reused while this daemon compares with it.
    let _home = File::open(home).map_err(failed("open", home))?;
    if let Some(listen) = &config.listen {
        listen.check()?;
    }
    let runtime = open_runtime(Config {
        home: home.into(),
        runtime_dir: config.place.dir().into(),
        binary: config.binary,
        host: config.host,
        layers: config.layers,
        if_lost: config.if_lost,
    })?;
    let auth = open_auth(config.place.home(), config.listen.as_ref())?;
    let hosts = config.listen.as_ref().map(|listen| listen.hosts.clone());
    // Clients on the network cannot start it again.
    let idle_timeout = config.idle_timeout.filter(|_| config.listen.is_none());
    let app = App::new(
        runtime,
        config.place,
        idle_timeout,
        auth,
        hosts.unwrap_or_default(),
    );
    if let Some(write) = config.log {
        app.logs.begin(write).map_err(Error::Setup)?;
    }
    let app = Arc::new(app);
    let event_loop = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(THREADS)
        .thread_keep_alive(THREADS_WAIT)
        .build()
        .map_err(Error::Setup)?;
    let served = event_loop.block_on(listen(
        Arc::clone(&app),
        config.listen,
        config.collector,
        ready,
    ));
    // Clients that do not read their answer are dropped.
    event_loop.shutdown_timeout(Duration::from_millis(100));
    served
}

/// A crash leaves no file with what was in memory, secrets among it. A limit of 1 also keeps the kernel from giving it to a program, which a
/// limit of 0 does not.
fn forbid_core_files() -> Result<()> {
    // It can only be lowered.
    let most = getrlimit(Resource::Core).maximum.unwrap_or(1).min(1);
    let least = Rlimit {
        current: Some(most),
        maximum: Some(most),
    };
    let limited = setrlimit(Resource::Core, least);
    limited.map_err(|errno| Error::Setup(errno.into()))
}

/// Opens a home that nobody else has open.
pub(crate) fn open_runtime(config: Config) -> Result<Runtime> {
    let home = config.home.clone();
    Runtime::open(config).map_err(|error| match error.kind() {
        ErrorKind::Conflict => Error::HomeTaken { home },
        _ => Error::Runtime(error),
    })
}

/// The credentials of a home. The network is served only if there is a valid one.
pub(crate) fn open_auth(home: &Path, listen: Option<&Listen>) -> Result<Auth> {
    let keys = Keys::open(home);
    let keys = keys.map_err(|reason| Error::Credentials { reason })?;
    let issuer = listen.and_then(|it| it.issuer.clone());
    let tokens = issuer.map(Tokens::open).transpose();
    let tokens = tokens.map_err(|reason| Error::Issuer { reason })?;
    let auth = Auth::new(keys, tokens);
    match listen.is_some() && !auth.is_set_up() {
        true => Err(Error::NoCredential),
        false => Ok(auth),
    }
}

async fn listen(
    app: Arc<App>,
    network: Option<Listen>,
    collector: Option<ServiceUrl>,
    ready: impl FnOnce(Option<SocketAddr>),
) -> Result<()> {
    let mut ending = Ending::watch()?;
    if let Some(collector) = collector {
        app.traces.begin(collector);
    }
    let bound = app.runtime.starting(Error::is_full, || bind(&app.place));
    let listener = OwnUser {
        listener: bound?,
        place: app.place.clone(),
    };
    let network = match network {
        Some(network) => Some(network.bind().await?),
        None => None,
    };
    let address = network.as_ref().map(|network| network.address);
    address.map(|address| app.listening.set(address));
    ready(address);
    let (close, closed) = watch::channel(());
    let serving = tokio::spawn({
        let (app, router) = (Arc::clone(&app), router(Arc::clone(&app)));
        async move {
            let at_socket =
                serving::serve(listener, Arc::clone(&app), router.clone(), closed.clone());
            match network {
                Some(network) => {
                    let remote = serving::serve(network, app, router, closed);
                    tokio::join!(at_socket, remote);
                }
                None => at_socket.await,
            }
        }
    });

    let beside = beside_requests(&app);
    let why = ending.wait(&app).await;
    // Whatever the reason was: nothing may be written where the home was.
    let why = if app.place.is_lost() { Why::Lost } else { why };
    drop(beside);
    // New clients now find no socket and start the next daemon, which waits for the home's lock.
    vacate(&app.place);
    tokio::time::sleep(DRAIN).await;
    drop(close);
    match why {
        Why::Idle => {
            app.end_sessions();
            let _ = serving.await;
            shut_down(&app).await;
        }
        Why::Asked => {
            // Ends running commands first, so that their callers get their envelopes.
            shut_down(&app).await;
            app.end_sessions();
            let _ = tokio::time::timeout(LAST_ANSWERS, serving).await;
        }
        Why::Lost => {
            app.end_sessions();
            let _ = tokio::time::timeout(LAST_ANSWERS, serving).await;
            // Exits as if killed, which loses nothing: the next daemon of the home recovers. Closing the database would unlink its
            // log by name, and that name may belong to another home now.
            std::mem::forget(app);
        }
    }
    Ok(())
}

/// Work that goes on beside requests, until it is dropped.
fn beside_requests(app: &Arc<App>) -> JoinSet<()> {
    let mut work = JoinSet::new();
    work.spawn(rest_when_idle(Arc::clone(app)));
    work.spawn(stay_small(Arc::clone(app)));
    let app = Arc::clone(app);
    work.spawn(async move { app.auth.keep_fresh().await });
    work
}

async fn shut_down(app: &Arc<App>) {
    let app = Arc::clone(app);
    // The panic handler has reported it; the daemon ends either way.
    let _ = spawn_blocking(move || app.runtime.shutdown()).await;
}

/// Binds the socket. The home's lock is held, so an existing socket is stale.
fn bind(place: &DaemonPaths) -> Result<UnixListener> {
    if place.is_lost() {
        return Err(Error::HomeLost {
            home: place.home().into(),
        });
    }
    place.prepare()?;
    let socket = place.socket();
    clear(&socket)?;
    let listener = UnixListener::bind(&socket).map_err(failed("listen on", &socket))?;
    fs::set_permissions(&socket, fs::Permissions::from_mode(0o600))
        .map_err(failed("guard", &socket))?;
    // Both are hints. Without disk space for them, clients find the daemon through its home.
    let pid = place.pid_file();
    tolerate_full(fs::write(&pid, format!("{}\n", std::process::id())))
        .map_err(failed("write", &pid))?;
    let signpost = place.signpost();
    let made = clear(&signpost).and_then(|()| {
        let made = symlink(&socket, &signpost);
        made.map_err(failed("make", &signpost))
    });
    match made {
        // A read-only home has none.
        Err(Error::File { source, .. }) if is_full(&source) || is_forbidden(&source) => {
            Ok(listener)
        }
        made => made.map(|()| listener),
    }
}

fn is_forbidden(error: &io::Error) -> bool {
    use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem)
}

/// A daemon must start on a full disk.
fn tolerate_full(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if is_full(&error) => Ok(()),
        done => done,
    }
}

fn clear(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("remove", path)(error)),
        _ => Ok(()),
    }
}

fn failed(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::File { what, path, source }
}

fn vacate(place: &DaemonPaths) {
    // These are hints for others; only the lock counts, so a failure does not matter.
    let (signpost, socket) = (place.signpost(), place.socket());
    if fs::read_link(&signpost).is_ok_and(|named| named == socket) {
        let _ = fs::remove_file(signpost);
    }
    for path in [socket, place.pid_file()] {
        let _ = fs::remove_file(path);
    }
}

/// Why a daemon ends.
enum Why {
    /// By signal or request: running commands are ended.
    Asked,
    /// It was idle for long enough.
    Idle,
    /// Its home was moved, replaced or removed.
    Lost,
}

struct Ending {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

impl Ending {
    fn watch() -> Result<Ending> {
        Ok(Ending {
            terminate: signal(SignalKind::terminate()).map_err(Error::Setup)?,
            interrupt: signal(SignalKind::interrupt()).map_err(Error::Setup)?,
        })
    }

    async fn wait(&mut self, app: &App) -> Why {
        tokio::select! {
            _ = self.terminate.recv() => Why::Asked,
            _ = self.interrupt.recv() => Why::Asked,
            () = app.stop.notified() => Why::Asked,
            () = left_alone(app) => Why::Idle,
            () = home_lost(app) => Why::Lost,
        }
    }
}

/// Frees memory under load, now and then.
async fn stay_small(app: Arc<App>) {
    loop {
        tokio::time::sleep(TRIM_EVERY).await;
        // After that it takes no thread any more.
        if app.idle_for().is_none_or(|idle| idle < TRIM_EVERY) {
            let app = Arc::clone(&app);
            // A failure only leaves memory in use.
            let _ = spawn_blocking(move || app.runtime.stay_small()).await;
        }
    }
}

/// Frees memory whenever the daemon has been idle for a while.
async fn rest_when_idle(app: Arc<App>) {
    let mut rested = false;
    loop {
        tokio::time::sleep(TRIM_EVERY).await;
        let is_idle = app.idle_for().is_some_and(|idle| idle >= REST_AFTER);
        if is_idle && !rested {
            let app = Arc::clone(&app);
            // A failure only leaves memory in use.
            let _ = spawn_blocking(move || app.runtime.release_caches()).await;
        }
        rested = is_idle;
    }
}

/// Ends when the daemon has been idle for the idle time.
async fn left_alone(app: &App) {
    let Some(limit) = app.idle_timeout else {
        return std::future::pending().await;
    };
    loop {
        let idle = app.idle_for().filter(|_| !app.is_needed());
        let rest = match idle {
            Some(idle) if idle >= limit => return,
            Some(idle) => limit - idle,
            None => limit,
        };
        tokio::time::sleep(rest.max(Duration::from_millis(10))).await;
    }
}

/// Ends when the home is not where it was, once nothing runs in it.
async fn home_lost(app: &App) {
    loop {
        // A request has just noticed it, or it is time to check.
        let _ = tokio::time::timeout(LOOK_FOR_HOME, app.home_lost.notified()).await;
        while app.place.is_lost() {
            if app.idle_for().is_some() {
                return;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }
}

/// A listener that accepts only this user and root, and binds again if its socket was removed, as cleaners of temporary
/// directories do.
pub(crate) struct OwnUser {
    listener: UnixListener,
    place: DaemonPaths,
}

impl Door for OwnUser {
    type Stream = UnixStream;
    type Open = UnixStream;

    const ROOM: Room = Room {
        total: CONNECTIONS_MAX,
        of_one: CONNECTIONS_OF_ONE_MAX,
        closes_idle: false,
    };

    async fn accept(&mut self) -> (UnixStream, Peer) {
        loop {
            match tokio::time::timeout(LOOK_FOR_SOCKET, self.listener.accept()).await {
                Ok(Ok((stream, _))) if is_own_user(&stream) => {
                    let peer = Peer::of(&stream);
                    return (stream, peer);
                }
                Ok(Ok(_)) => {}
                // Most likely out of descriptors: wait until a connection ends.
                Ok(Err(_)) => tokio::time::sleep(Duration::from_millis(50)).await,
                Err(_) => self.listen_anew(),
            }
        }
    }

    fn open(
        &self,
        stream: UnixStream,
    ) -> impl Future<Output = io::Result<UnixStream>> + Send + 'static {
        std::future::ready(Ok(stream))
    }

    fn tell(&self, stream: &UnixStream, bytes: &[u8]) -> io::Result<usize> {
        stream.try_write(bytes)
    }
}

impl OwnUser {
    fn listen_anew(&mut self) {
        if !self.place.socket().exists()
            && let Ok(listener) = bind(&self.place)
        {
            self.listener = listener;
        }
    }
}

fn is_own_user(stream: &UnixStream) -> bool {
    let own = geteuid().as_raw();
    stream
        .peer_cred()
        .is_ok_and(|peer| peer.uid() == own || peer.uid() == 0)
}
