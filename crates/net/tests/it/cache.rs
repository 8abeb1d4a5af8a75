//! What registries answered, kept for all sandboxes.
//!
//! Who may lie: a sandbox, about what it wants and about how fast it reads; a host, about lengths and about what may be kept;
//! the disk. Each request here is made by a sandbox of its own, so nothing but what is kept is shared.

mod releases;
mod room;
mod waiting;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use avfs_net::{Bounds, Cache, CachePlace, ExecKey, Guard, Roots, Secret, Terms, Upstream};

use crate::client::head;
use crate::space::{alone, listen_on};
use crate::world::{Sandbox, World, terms};

const HOST: &str = "r.test";
const AT: &str = "127.0.6.1:80";
const LIST: &str = "r.test:80,other.test:80,127.0.6.1";

/// Opens once for each thing that is sent to it.
type Gate = Arc<Mutex<Receiver<()>>>;

/// What a host sends: the head, and the body piece by piece. A piece waits for its turn if there is a gate.
struct Script {
    head: String,
    pieces: Vec<Vec<u8>>,
    gate: Option<Gate>,
}

fn script(headers: &str, body: &[u8]) -> Script {
    Script {
        head: format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n{headers}\r\n",
            body.len()
        ),
        pieces: vec![body.to_vec()],
        gate: None,
    }
}

/// A registry that answers by script, and the heads that it got.
#[derive(Clone, Default)]
struct Registry {
    heads: Arc<Mutex<Vec<String>>>,
}

impl Registry {
    fn start(answers: impl Fn(&str) -> Script + Send + Sync + 'static) -> Registry {
        let registry = Registry::default();
        let (noted, answers) = (registry.clone(), Arc::new(answers));
        let listener = listen_on(AT.parse().unwrap()).unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (noted, answers) = (noted.clone(), Arc::clone(&answers));
                std::thread::spawn(move || noted.serve(stream.unwrap(), &*answers));
            }
        });
        registry
    }

    fn serve(&self, mut stream: TcpStream, answers: &dyn Fn(&str) -> Script) {
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        loop {
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                match reader.read_line(&mut head) {
                    Ok(0) | Err(_) => return,
                    Ok(_) => {}
                }
            }
            self.heads.lock().unwrap().push(head.clone());
            let script = answers(&head);
            let _ = stream.write_all(script.head.as_bytes());
            for piece in &script.pieces {
                if let Some(gate) = &script.gate {
                    gate.lock().unwrap().recv().unwrap();
                }
                if stream.write_all(piece).is_err() {
                    return;
                }
            }
            let whole: usize = script.pieces.iter().map(Vec::len).sum();
            if !script.head.contains(&format!("Length: {whole}\r\n")) {
                return;
            }
        }
    }

    fn count(&self) -> usize {
        self.heads.lock().unwrap().len()
    }

    fn last(&self) -> String {
        self.heads.lock().unwrap().last().unwrap().to_lowercase()
    }
}

struct Place {
    world: World,
    cache: Cache,
    dir: tempfile::TempDir,
}

fn place(max_bytes: u64) -> Place {
    let dir = tempfile::tempdir().unwrap();
    let cache = Cache::new(CachePlace {
        directory: dir.path().join("downloads"),
        max_bytes,
        keep_free: 0,
    });
    let world = World::keeping(
        Bounds::default(),
        Upstream::default(),
        Roots::Given(Vec::new()),
        Some(cache.clone()),
    );
    for name in [HOST, "other.test"] {
        world.names.set(name, &["127.0.6.1"]);
    }
    Place { world, cache, dir }
}

/// How often a host is asked for an answer that always breaks off.
const TRIED: usize = 4;
const MIB: u64 = 1 << 20;
/// For what must happen, so that a failed test ends.
const LATE: Duration = Duration::from_secs(30);

fn registries() -> Terms {
    Terms {
        registries: "r.test:80".parse().unwrap(),
        ..terms(LIST)
    }
}

impl Place {
    fn sandbox(&self, terms: Terms) -> (Sandbox, Guard) {
        let sandbox = self.world.sandbox();
        let guard = sandbox.served.enter(ExecKey(1), terms).unwrap();
        (sandbox, guard)
    }

    /// One request by a sandbox of its own: head, body, and how many bytes had been kept.
    fn get(&self, path: &str, headers: &str) -> (String, Vec<u8>, u64) {
        self.get_with(registries(), HOST, path, headers)
    }

    fn get_with(
        &self,
        terms: Terms,
        host: &str,
        path: &str,
        headers: &str,
    ) -> (String, Vec<u8>, u64) {
        let (sandbox, guard) = self.sandbox(terms);
        let mut stream = ask(&sandbox, host, path, headers);
        let (head, body) = read(&mut stream);
        let attempts = guard.leave();
        let kept = attempts.list.iter().map(|attempt| attempt.bytes_kept).sum();
        (head, body, kept)
    }

    /// Waits until this many answers are kept: a client has all of one just before it is.
    fn settled(&self, answers: u64) {
        let until = Instant::now() + LATE;
        while self.cache.usage().answers != answers {
            assert!(Instant::now() < until, "{:?}", self.cache.usage());
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// The files of bodies.
    fn bodies(&self) -> Vec<std::path::PathBuf> {
        let items = std::fs::read_dir(self.dir.path().join("downloads"));
        let items = items.into_iter().flatten().map(|item| item.unwrap().path());
        items
            .filter(|path| path.extension().is_some_and(|it| it == "body"))
            .collect()
    }
}

fn ask(sandbox: &Sandbox, host: &str, path: &str, headers: &str) -> TcpStream {
    let mut stream = sandbox.dial(host, 80).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\n"
    )
    .unwrap();
    stream
}

fn read(stream: &mut TcpStream) -> (String, Vec<u8>) {
    let head = head(stream).to_lowercase();
    let mut body = Vec::new();
    let _ = stream.read_to_end(&mut body);
    (head, body)
}

const GOOD: &str = "Cache-Control: public, max-age=600\r\n";

#[test]
fn an_answer_is_downloaded_once_for_all_sandboxes() {
    alone(
        "cache::an_answer_is_downloaded_once_for_all_sandboxes",
        || {
            let place = place(16 * MIB);
            let registry = Registry::start(|_| {
                script(&format!("{GOOD}Set-Cookie: a=b\r\nX-Kept: 1\r\n"), b"wheel")
            });
            let (first, body, kept) = place.get(
                "/f",
                "X-Evil: 1\r\nUser-Agent: evil\r\nForwarded: host=evil\r\n",
            );
            assert_eq!((&*body, kept), (&b"wheel"[..], 0), "{first}");
            place.settled(1);
            let seen = registry.last();
            assert!(
                !seen.contains("evil") && seen.contains("user-agent: agentvfs/"),
                "{seen}"
            );
            let (second, body, kept) = place.get("/f", "");
            assert_eq!((&*body, kept), (&b"wheel"[..], 5), "{second}");
            assert!(
                second.contains("x-kept: 1") && second.contains("\r\nage: "),
                "{second}"
            );
            assert!(!second.contains("set-cookie"), "{second}");
            assert_eq!(registry.count(), 1);
            assert_eq!(place.cache.usage().answers, 1);
            use std::os::unix::fs::PermissionsExt;
            let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode(&place.dir.path().join("downloads")), 0o700);
            assert!(place.bodies().iter().all(|path| mode(path) == 0o600));
            // A host that is no registry for this command is asked as ever, and so is this one for others.
            let (_, _, kept) = place.get_with(terms(LIST), HOST, "/f", "");
            assert_eq!((registry.count(), kept), (2, 0));
            place.get_with(registries(), "other.test", "/f", "");
            assert_eq!(registry.count(), 3);
            assert_eq!(place.cache.clear().answers, 1);
            assert_eq!(place.cache.usage().bytes, 0);
            assert!(place.bodies().is_empty());
        },
    );
}

#[test]
fn what_is_for_one_client_is_not_kept() {
    alone("cache::what_is_for_one_client_is_not_kept", || {
        let place = place(16 * MIB);
        let registry = Registry::start(|head| {
            let headers = match head.split(' ').nth(1).unwrap() {
                "/no-store" => "Cache-Control: no-store\r\n",
                "/private" => "Cache-Control: private, max-age=600\r\n",
                "/any" => "Cache-Control: max-age=600\r\nVary: *\r\n",
                "/nothing" => "",
                _ => GOOD,
            };
            script(headers, head.as_bytes())
        });
        let own = [
            ("/no-store", ""),
            ("/private", ""),
            ("/any", ""),
            ("/nothing", ""),
            ("/f", "Authorization: Bearer mine\r\n"),
            ("/f", "Cookie: mine\r\n"),
            ("/f", "Range: bytes=0-1\r\n"),
            ("/f", "Cache-Control: no-store\r\n"),
        ];
        for (path, headers) in own {
            for _ in 0..2 {
                let before = registry.count();
                let (_, _, kept) = place.get(path, headers);
                assert_eq!(
                    (registry.count(), kept),
                    (before + 1, 0),
                    "{path} {headers}"
                );
            }
        }
        // Each of these has an answer of its own.
        for (path, headers) in [
            ("/f", ""),
            ("/f?", ""),
            ("/f?a", ""),
            ("/F", ""),
            ("/x/../f", ""),
            ("/%66", ""),
            ("/f", "Accept: a\r\n"),
            ("/f", "Accept: a\r\nAccept: b\r\n"),
            ("/f", "Accept-Encoding: gzip\r\n"),
        ] {
            let before = registry.count();
            let (_, first, _) = place.get(path, headers);
            assert_eq!(registry.count(), before + 1, "{path} {headers}");
            let (_, second, kept) = place.get(path, headers);
            assert_eq!(registry.count(), before + 1, "{path} {headers}");
            assert_eq!((&first, kept), (&second, first.len() as u64));
            let line = format!("GET {path} ");
            assert!(
                String::from_utf8(first).unwrap().starts_with(&line),
                "{line}"
            );
        }
    });
}

#[test]
fn credentials_keep_answers_apart() {
    alone("cache::credentials_keep_answers_apart", || {
        let place = place(16 * MIB);
        let registry = Registry::start(|head| script(GOOD, head.as_bytes()));
        let with = |value: &str| {
            let hosts = "r.test:80".parse().unwrap();
            let secret = Secret::new(hosts, "X-Token", value, true).unwrap();
            Terms {
                secrets: vec![secret],
                ..registries()
            }
        };
        for (at, value) in ["canary-one", "canary-two"].iter().enumerate() {
            for _ in 0..2 {
                let (_, body, _) =
                    place.get_with(with(value), HOST, "/f", "X-Token: placeholder\r\n");
                assert!(String::from_utf8(body).unwrap().contains(value));
            }
            assert_eq!(registry.count(), at + 1);
        }
        let (_, body, _) = place.get("/f", "");
        assert!(!String::from_utf8(body).unwrap().contains("canary"));
        assert_eq!(registry.count(), 3);
        for item in std::fs::read_dir(place.dir.path().join("downloads")).unwrap() {
            let path = item.unwrap().path();
            if path.extension().is_some_and(|it| it == "head") {
                let text = std::fs::read_to_string(path).unwrap();
                assert!(!text.contains("canary"), "{text}");
            }
        }
    });
}

#[test]
fn a_host_is_asked_whether_an_old_answer_is_still_right() {
    alone(
        "cache::a_host_is_asked_whether_an_old_answer_is_still_right",
        || {
            let place = place(16 * MIB);
            let registry = Registry::start(|head| {
                match head.to_lowercase().contains("if-none-match: \"one\"") {
            true => Script {
                head: "HTTP/1.1 304 Not Modified\r\nETag: \"one\"\r\nCache-Control: no-cache\r\nX-Length: 0\r\nContent-Length: 0\r\n\r\n".into(),
                pieces: Vec::new(),
                gate: None,
            },
            false => script("ETag: \"one\"\r\nCache-Control: no-cache\r\n", b"index"),
        }
            });
            place.get("/i", "");
            place.settled(1);
            let (again, body, kept) = place.get("/i", "");
            assert!(again.starts_with("http/1.1 200"), "{again}");
            assert_eq!((&*body, kept, registry.count()), (&b"index"[..], 5, 2));
            assert!(registry.last().contains("if-none-match"));
            // A client that has it already is told so.
            let (known, body, _) = place.get("/i", "If-None-Match: W/\"one\"\r\n");
            assert!(
                known.starts_with("http/1.1 304") && body.is_empty(),
                "{known}"
            );
            let (other, body, _) = place.get("/i", "If-None-Match: \"two\"\r\n");
            assert!(
                other.starts_with("http/1.1 200") && !body.is_empty(),
                "{other}"
            );
        },
    );
}

#[test]
fn a_cut_download_and_damage_are_misses() {
    alone("cache::a_cut_download_and_damage_are_misses", || {
        let place = place(16 * MIB);
        let asked = Arc::new(Mutex::new(0));
        let counted = Arc::clone(&asked);
        let registry = Registry::start(move |_| {
            let mut asked = counted.lock().unwrap();
            *asked += 1;
            let mut whole = script(GOOD, b"a whole answer");
            if *asked <= TRIED {
                whole.pieces = vec![b"a who".to_vec()];
            }
            whole
        });
        let (_, cut, _) = place.get("/f", "");
        assert!(cut.len() < 14, "{cut:?}");
        assert!(place.bodies().is_empty());
        assert_eq!(registry.count(), TRIED);
        let (_, whole, kept) = place.get("/f", "");
        assert_eq!(
            (&*whole, kept, registry.count()),
            (&b"a whole answer"[..], 0, TRIED + 1)
        );
        place.settled(1);
        for damage in [&b"a whoLe answer"[..], b"a whole", b""] {
            std::fs::write(&place.bodies()[0], damage).unwrap();
            let before = registry.count();
            let (_, whole, kept) = place.get("/f", "");
            assert_eq!((&*whole, kept), (&b"a whole answer"[..], 0));
            place.settled(1);
            assert_eq!((registry.count(), place.bodies().len()), (before + 1, 1));
        }
        std::fs::write(&place.bodies()[0], "x").unwrap();
        assert_eq!(place.cache.check(), 1);
        assert_eq!(place.cache.usage().answers, 0);
    });
}

#[test]
fn the_next_daemon_finds_whole_answers_and_nothing_else() {
    alone(
        "cache::the_next_daemon_finds_whole_answers_and_nothing_else",
        || {
            let first = place(16 * MIB);
            let registry =
                Registry::start(|head| script(GOOD, head.split(' ').nth(1).unwrap().as_bytes()));
            first.get("/a", "");
            first.get("/b", "");
            first.settled(2);
            let dir = first.dir.path().join("downloads");
            let heads = || {
                let items = std::fs::read_dir(&dir)
                    .unwrap()
                    .map(|item| item.unwrap().path());
                items
                    .filter(|path| path.extension().is_some_and(|it| it == "head"))
                    .collect::<Vec<_>>()
            };
            // Somebody gives one answer the name of another, and leaves other files.
            let [one, other] = <[_; 2]>::try_from(heads()).unwrap();
            std::fs::copy(&one, &other).unwrap();
            for name in ["tmp-7", "99.body", "x.head"] {
                std::fs::write(dir.join(name), "x").unwrap();
            }
            let next = Place {
                dir: tempfile::tempdir().unwrap(),
                ..place(16 * MIB)
            };
            std::fs::rename(&dir, next.dir.path().join("downloads")).unwrap();
            let cache = Cache::new(CachePlace {
                directory: next.dir.path().join("downloads"),
                max_bytes: 16 * MIB,
                keep_free: 0,
            });
            assert_eq!(cache.usage().answers, 1);
            assert_eq!(next.bodies().len(), 1);
            assert_eq!(registry.count(), 2);
        },
    );
}
