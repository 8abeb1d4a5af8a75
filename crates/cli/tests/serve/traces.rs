//! Traces: what a collector gets.

use super::{PATIENCE, Server, bearer, home, key};
use avfs_testkit::wait_for;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A collector on this machine: all spans that were sent to it.
struct Collector {
    address: SocketAddr,
    spans: Arc<Mutex<Vec<Value>>>,
}

impl Collector {
    fn new() -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let spans = Arc::<Mutex<Vec<Value>>>::default();
        let taken = Arc::clone(&spans);
        // It ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { return };
                take(stream, &taken);
            }
        });
        Collector { address, spans }
    }

    fn spans(&self) -> Vec<Value> {
        self.spans.lock().expect("no panic").clone()
    }
}

/// One message of spans.
fn take(mut stream: TcpStream, spans: &Mutex<Vec<Value>>) {
    let mut seen = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&seen).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let head = head.to_ascii_lowercase();
            let length = head
                .lines()
                .find_map(|it| it.strip_prefix("content-length: "));
            let length: usize = length.and_then(|it| it.parse().ok()).expect("a length");
            if body.len() >= length {
                assert!(head.starts_with("post /otel/v1/traces "), "{head}");
                let message: Value = serde_json::from_str(body).expect("JSON");
                let resource = &message["resourceSpans"][0];
                let all = resource["scopeSpans"][0]["spans"].as_array();
                spans
                    .lock()
                    .expect("no panic")
                    .extend(all.expect("spans").clone());
                break;
            }
        }
        let mut piece = [0; 4096];
        match stream.read(&mut piece) {
            Ok(read) if read > 0 => seen.extend_from_slice(&piece[..read]),
            _ => return,
        }
    }
    let answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
    let _ = stream.write_all(answer.as_bytes());
}

fn attribute<'a>(span: &'a Value, key: &str) -> Option<&'a str> {
    let all = span["attributes"].as_array()?;
    let found = all.iter().find(|it| it["key"] == key)?;
    let value = &found["value"];
    value["stringValue"].as_str().or(value["intValue"].as_str())
}

#[test]
fn requests_and_commands_are_spans_that_name_nothing() {
    let collector = Collector::new();
    let home = home();
    home.ok(&["vault", "create", "secret-vault"]);
    let good = bearer(&key(&home, "secret-key", &["--scope", "read,write,exec"]));
    let url = format!("http://{}/otel", collector.address);
    let server = Server::start(home, &["--otlp-endpoint", &url]);
    let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let headers = format!("{good}\r\ntraceparent: {parent}");
    let body = r#"{"shell":"echo secret-word; exit 3"}"#;
    let ran = server.ask(&headers, "POST", "/v1/vaults/secret-vault/exec", body);
    assert_eq!(ran.status, 200, "{ran:?}");
    assert_eq!(server.ask(&good, "GET", "/v1/vaults/none", "").status, 404);
    assert!(wait_for(PATIENCE, || collector.spans().len() >= 3));
    let spans = collector.spans();
    let named = |name: &str| spans.iter().find(|it| it["name"] == name).expect("a span");
    let (request, command) = (named("exec"), named("command"));
    assert_eq!(request["traceId"], "0af7651916cd43dd8448eb211c80319c");
    assert_eq!(request["parentSpanId"], "b7ad6b7169203331");
    assert_eq!(command["traceId"], request["traceId"]);
    assert_eq!(command["parentSpanId"], request["spanId"]);
    assert_eq!(attribute(command, "process.exit.code"), Some("3"));
    let exec = ran.json()["result"]["exec"].clone();
    assert_eq!(attribute(command, "avfs.exec.id"), exec.as_str());
    assert_eq!(
        attribute(request, "http.route"),
        Some("/v1/vaults/{vault}/exec")
    );
    let missing = named("vault_info");
    assert_eq!(attribute(missing, "http.response.status_code"), Some("404"));
    assert_ne!(missing["traceId"], request["traceId"]);
    for span in &spans {
        let (begin, end) = (&span["startTimeUnixNano"], &span["endTimeUnixNano"]);
        let number = |it: &Value| it.as_str().and_then(|it| it.parse::<u128>().ok());
        assert!(number(begin).expect("a time") <= number(end).expect("a time"));
    }
    let text = format!("{spans:?}");
    assert!(!text.contains("secret"), "{text}");
}

/// A collector that takes nothing keeps nobody waiting.
#[test]
fn a_collector_that_is_not_there_changes_nothing() {
    let home = home();
    let good = key(&home, "good", &["--scope", "read"]);
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", silent.local_addr().expect("an address"));
    let server = Server::start(home, &["--otlp-endpoint", &url]);
    for _ in 0..50 {
        assert_eq!(server.get(&good, "/v1/vaults").status, 200);
    }
    server.home.ok(&["daemon", "stop"]);
}
