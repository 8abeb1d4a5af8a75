//! Clients that wait for one download, and what becomes of it when one of them goes.

use super::*;

/// A gate with as many openings as are sent.
fn gate() -> (Sender<()>, Option<Gate>) {
    let (opens, gate) = channel();
    (opens, Some(Arc::new(Mutex::new(gate))))
}

#[test]
fn many_wait_for_one_download_and_a_slow_client_keeps_nobody() {
    alone(
        "cache::waiting::many_wait_for_one_download_and_a_slow_client_keeps_nobody",
        || {
            let place = place(64 * MIB);
            let (opens, gate) = gate();
            let body = vec![7; 4 << 20];
            let sent = body.clone();
            let registry = Registry::start(move |_| {
                let mut script = script(GOOD, &sent);
                script.pieces = sent.chunks(1 << 20).map(<[u8]>::to_vec).collect();
                script.gate = gate.clone();
                script
            });
            // The first one never reads.
            let (slow, _guard) = place.sandbox(registries());
            let unread = ask(&slow, HOST, "/f", "");
            let others: Vec<_> = (0..9).map(|_| place.sandbox(registries())).collect();
            let mut streams: Vec<TcpStream> = others
                .iter()
                .map(|(sandbox, _)| ask(sandbox, HOST, "/f", ""))
                .collect();
            opens.send(()).unwrap();
            // A part is there for all before the rest has come.
            for stream in &mut streams {
                head(stream);
                let mut part = vec![0; 1 << 20];
                stream.read_exact(&mut part).unwrap();
            }
            (0..3).for_each(|_| opens.send(()).unwrap());
            for stream in &mut streams {
                let mut rest = Vec::new();
                stream.read_to_end(&mut rest).unwrap();
                assert_eq!(rest.len(), 3 << 20);
            }
            assert_eq!(registry.count(), 1);
            drop(unread);
            let (_, all, kept) = place.get("/f", "");
            assert_eq!((all == body, kept), (true, 4 << 20));
            assert_eq!(registry.count(), 1);
        },
    );
}

#[test]
fn another_takes_over_when_the_first_goes() {
    alone(
        "cache::waiting::another_takes_over_when_the_first_goes",
        || {
            let place = place(16 * MIB);
            let (asks, asked) = channel();
            let (answers, answer) = channel::<()>();
            let (asks, answer) = (Mutex::new(asks), Mutex::new(answer));
            let registry = Registry::start(move |_| {
                asks.lock().unwrap().send(()).unwrap();
                answer.lock().unwrap().recv().unwrap();
                script(GOOD, b"late")
            });
            let (first, guard) = place.sandbox(registries());
            let leaving = ask(&first, HOST, "/f", "");
            asked.recv().unwrap();
            let (second, _guard) = place.sandbox(registries());
            let mut waiting = ask(&second, HOST, "/f", "");
            // The first one's command ends, and with it its connection.
            drop((leaving, guard, first));
            asked.recv().unwrap();
            (0..2).for_each(|_| answers.send(()).unwrap());
            let (head, body) = read(&mut waiting);
            assert_eq!(body, b"late", "{head}");
            assert_eq!(registry.count(), 2);
        },
    );
}

/// A registry whose first answer is `first`, of which a part comes, and whose second is whole. Pieces come one by one.
fn breaks_once(first: Script, second: Script) -> Registry {
    let answers = Mutex::new(vec![second, first]);
    Registry::start(move |_| answers.lock().unwrap().pop().unwrap())
}

#[test]
fn a_download_that_breaks_off_goes_on_for_all_who_read_it() {
    alone(
        "cache::waiting::a_download_that_breaks_off_goes_on_for_all_who_read_it",
        || {
            let place = place(64 * MIB);
            let (opens, gate) = gate();
            let body: Vec<u8> = (0..3u32 << 18).flat_map(u32::to_be_bytes).collect();
            let whole = || script(GOOD, &body);
            let cut = Script {
                pieces: vec![body[..1 << 20].to_vec(), body[1 << 20..2 << 20].to_vec()],
                gate,
                ..whole()
            };
            let registry = breaks_once(cut, whole());
            let readers: Vec<_> = (0..5).map(|_| place.sandbox(registries())).collect();
            let mut streams: Vec<TcpStream> = readers
                .iter()
                .map(|(sandbox, _)| ask(sandbox, HOST, "/f", ""))
                .collect();
            opens.send(()).unwrap();
            let mut got: Vec<Vec<u8>> = Vec::new();
            for stream in &mut streams {
                head(stream);
                let mut part = vec![0; 1 << 20];
                stream.read_exact(&mut part).unwrap();
                got.push(part);
            }
            // All of them are in the middle of it when it breaks off.
            opens.send(()).unwrap();
            for (stream, got) in streams.iter_mut().zip(&mut got) {
                stream.read_to_end(got).unwrap();
                assert!(*got == body, "{} of {}", got.len(), body.len());
            }
            assert_eq!(registry.count(), 2);
            place.settled(1);
            let (_, kept, bytes) = place.get("/f", "");
            assert_eq!((kept == body, bytes), (true, body.len() as u64));
            assert_eq!(registry.count(), 2);
        },
    );
}

#[test]
fn two_answers_are_never_joined() {
    alone("cache::waiting::two_answers_are_never_joined", || {
        let place = place(16 * MIB);
        let seen = Mutex::new(std::collections::HashSet::new());
        let (opens, gate) = gate();
        let registry = Registry::start(move |head| {
            let path = head.split(' ').nth(1).unwrap();
            if seen.lock().unwrap().insert(path.to_owned()) {
                return Script {
                    pieces: vec![vec![b'a'; 50_000], vec![b'a'; 50_000]],
                    gate: gate.clone(),
                    ..script(&format!("{GOOD}ETag: \"one\"\r\n"), &[b'a'; 300_000])
                };
            }
            // The second answer begins as the first and has another tag, or has its tag and begins otherwise.
            let (tag, beginning) = match path {
                "/tag" => ("two", b'a'),
                _ => ("one", b'b'),
            };
            let body = [vec![beginning; 100_000], vec![b'c'; 200_000]].concat();
            script(&format!("{GOOD}ETag: \"{tag}\"\r\n"), &body)
        });
        for path in ["/tag", "/bytes"] {
            let before = registry.count();
            let (sandbox, _guard) = place.sandbox(registries());
            let mut stream = ask(&sandbox, HOST, path, "");
            opens.send(()).unwrap();
            head(&mut stream);
            let mut body = vec![0; 50_000];
            stream.read_exact(&mut body).unwrap();
            opens.send(()).unwrap();
            let _ = stream.read_to_end(&mut body);
            assert!(body.iter().all(|byte| *byte == b'a'), "{path}");
            assert!(body.len() <= 100_000, "{path}");
            assert_eq!(registry.count(), before + 2, "{path}");
            // Who asks now gets the second one, and all of it.
            let (_, next, _) = place.get(path, "");
            assert_eq!(next.len(), 300_000, "{path}");
            assert_eq!(next[200_000..], [b'c'; 100_000], "{path}");
        }
    });
}
