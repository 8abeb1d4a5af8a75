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
