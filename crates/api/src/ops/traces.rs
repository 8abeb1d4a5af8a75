//! Traces for OpenTelemetry: a span for every request and one for every command, sent as OTLP in JSON. No vault, path,
//! command or principal is named.

use crate::outbound::ServiceUrl;
use crate::wire::VERSION;
use serde_json::{Value, json};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc;

/// Spans that wait to be sent; more are dropped.
const WAITING_MAX: usize = 4096;
/// Spans of one message, and how long it waits for more.
const BATCH: usize = 256;
const PAUSE: Duration = Duration::from_millis(500);

/// Where a span belongs (W3C Trace Context).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct TraceContext {
    trace: u128,
    /// The caller's span.
    parent: Option<u64>,
    /// The request's own.
    span: u64,
}

impl TraceContext {
    /// Of a request with this `traceparent`, or without a usable one.
    pub fn new(header: Option<&str>) -> TraceContext {
        let given = header.and_then(parse);
        TraceContext {
            trace: given.map_or_else(random, |it| it.0),
            parent: given.map(|it| it.1),
            span: random() as u64 | 1,
        }
    }

    /// For work within this span.
    fn inside(self) -> TraceContext {
        TraceContext {
            parent: Some(self.span),
            span: random() as u64 | 1,
            ..self
        }
    }
}

/// `00-TRACE-SPAN-FLAGS`, of which neither id is zero.
fn parse(text: &str) -> Option<(u128, u64)> {
    let parts: Vec<&str> = text.trim().split('-').collect();
    let ["00", trace, span, flags] = parts[..] else {
        return None;
    };
    let is_hex = |text: &str| {
        let mut bytes = text.bytes();
        bytes.all(|it| it.is_ascii_digit() || (b'a'..=b'f').contains(&it))
    };
    let fits = trace.len() == 32 && span.len() == 16 && flags.len() == 2;
    if !fits || ![trace, span, flags].iter().all(|it| is_hex(it)) {
        return None;
    }
    let trace = u128::from_str_radix(trace, 16).ok()?;
    let span = u64::from_str_radix(span, 16).ok()?;
    (trace != 0 && span != 0).then_some((trace, span))
}

fn random() -> u128 {
    let mut bytes = [0; 16];
    // An id that is not random is still an id.
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    u128::from_le_bytes(bytes) | 1
}

/// The spans of a daemon, if its owner wants them.
#[derive(Default)]
pub(crate) struct Traces(OnceLock<mpsc::Sender<Value>>);

impl Traces {
    /// Sends spans there from now on.
    pub fn begin(&self, collector: ServiceUrl) {
        let (spans, waiting) = mpsc::channel(WAITING_MAX);
        if self.0.set(spans).is_ok() {
            tokio::spawn(send(collector, waiting));
        }
    }

    pub fn is_on(&self) -> bool {
        self.0.get().is_some()
    }

    /// A request that is over.
    pub fn request(&self, context: Option<TraceContext>, ended: &Ended<'_>) {
        if let (Some(spans), Some(context)) = (self.0.get(), context) {
            // A collector that is slower than the daemon misses some.
            let _ = spans.try_send(ended.span(context, SERVER));
        }
    }

    /// A command of a request.
    pub fn command(&self, context: Option<TraceContext>, ended: &Ended<'_>) {
        if let (Some(spans), Some(context)) = (self.0.get(), context) {
            let _ = spans.try_send(ended.span(context.inside(), INTERNAL));
        }
    }
}

const INTERNAL: u32 = 1;
const SERVER: u32 = 2;

/// Work that is over.
pub(crate) struct Ended<'a> {
    pub name: &'a str,
    pub took: Duration,
    pub failed: bool,
    pub attributes: Vec<(&'static str, Value)>,
}

impl Ended<'_> {
    fn span(&self, context: TraceContext, kind: u32) -> Value {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let end = now.unwrap_or_default();
        let begin = end.saturating_sub(self.took);
        let attribute = |(key, value): &(&'static str, Value)| {
            let value = match value {
                Value::Number(number) => json!({ "intValue": number.to_string() }),
                Value::String(text) => json!({ "stringValue": text }),
                other => json!({ "stringValue": other.to_string() }),
            };
            json!({ "key": key, "value": value })
        };
        let attributes: Vec<Value> = self.attributes.iter().map(attribute).collect();
        let mut span = json!({
            "traceId": format!("{:032x}", context.trace),
            "spanId": format!("{:016x}", context.span),
            "name": self.name,
            "kind": kind,
            "startTimeUnixNano": begin.as_nanos().to_string(),
            "endTimeUnixNano": end.as_nanos().to_string(),
            "attributes": attributes,
            "status": { "code": if self.failed { 2 } else { 0 } },
        });
        if let Some(parent) = context.parent {
            span["parentSpanId"] = format!("{parent:016x}").into();
        }
        span
    }
}

/// Sends what is waiting, until the daemon ends. What a collector does not take is lost.
async fn send(collector: ServiceUrl, mut waiting: mpsc::Receiver<Value>) {
    let mut batch = Vec::new();
    while waiting.recv_many(&mut batch, BATCH).await > 0 {
        if batch.len() < BATCH {
            tokio::time::sleep(PAUSE).await;
            while batch.len() < BATCH
                && let Ok(span) = waiting.try_recv()
            {
                batch.push(span);
            }
        }
        let _ = collector.post(message(std::mem::take(&mut batch))).await;
    }
}

fn message(spans: Vec<Value>) -> Vec<u8> {
    let service = json!([
        { "key": "service.name", "value": { "stringValue": "agentvfs" } },
        { "key": "service.version", "value": { "stringValue": VERSION } },
    ]);
    let scope = json!({ "name": "agentvfs", "version": VERSION });
    let all = json!({ "resourceSpans": [{
        "resource": { "attributes": service },
        "scopeSpans": [{ "scope": scope, "spans": spans }],
    }] });
    all.to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_belongs_to_the_trace_that_it_names() {
        let header = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let context = TraceContext::new(Some(header));
        assert_eq!(context.trace, 0x0af7651916cd43dd8448eb211c80319c);
        assert_eq!(context.parent, Some(0xb7ad6b7169203331));
        let inside = context.inside();
        assert_eq!(
            (inside.trace, inside.parent),
            (context.trace, Some(context.span))
        );
        let zeros = format!("00-{}-b7ad6b7169203331-01", "0".repeat(32));
        for wrong in [
            "",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "00-+af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            &zeros,
        ] {
            let context = TraceContext::new(Some(wrong));
            assert_eq!(context.parent, None, "{wrong}");
            assert!(context.trace != 0 && context.span != 0);
        }
    }
}
