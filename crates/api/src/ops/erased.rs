//! A row without the types of its request and answer: text in, text out. So the code of a surface is compiled once, not
//! once for each operation.

use super::app::App;
use super::caller::{Ask, Caller};
use super::events::Followed;
use super::failure::Failure;
use super::handler::{Feed, Handler, Listener, Opened, Resume, Served};
use super::jobs::Following;
use crate::table::{EachRow, Method, OPERATIONS, Operation, Row, each_row};
use crate::wire::{ExecEvent, versioned};
use avfs_runtime::{HeldOutput, Select, Watcher};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::any::Any;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// A request of some operation's type.
pub(crate) struct Request(Box<dyn Any + Send>);

impl Request {
    /// Of a program that has it as a value already.
    pub fn new<O: Operation>(request: O) -> Request {
        Request(Box::new(request))
    }

    fn take<O: Operation>(self) -> O {
        let request = self.0.downcast::<O>();
        *request.expect("what a row has read is given to that row alone")
    }
}

/// An answer in JSON, and the memory reserved for it.
pub(crate) struct Answer {
    pub json: Vec<u8>,
    pub held: Vec<HeldOutput>,
}

impl Answer {
    fn new(answer: &impl Serialize, held: Vec<HeldOutput>) -> Answer {
        let json = serde_json::to_vec(answer).expect("wire types are plain data");
        let mut json = versioned(json);
        json.shrink_to_fit();
        Answer { json, held }
    }
}

type Answered = Result<Answer, Failure>;

type AdmitFn = fn(Arc<App>, Caller, Select, &Request) -> Result<(Ask, Select), Failure>;
pub(crate) type AnswerFn =
    Arc<dyn Fn(&Ask, Select, Request, &dyn Watcher) -> Answered + Send + Sync>;
pub(crate) type ReceiveFn =
    Arc<dyn Fn(&Ask, Select, Request, &mut dyn Read, &dyn Watcher) -> Answered + Send + Sync>;
pub(crate) type SendFn =
    Arc<dyn Fn(&Ask, Select, Request, &mut dyn Write) -> Result<(), Failure> + Send + Sync>;
pub(crate) type OpenFn =
    Arc<dyn Fn(&Ask, Select, Request) -> Result<Opened, Failure> + Send + Sync>;
pub(crate) type RunFn =
    Arc<dyn Fn(&Ask, Select, Request, &dyn Listener<ExecEvent>) -> Answered + Send + Sync>;
pub(crate) type OnceFn = Arc<dyn Fn(&Ask, Request, Resume) -> Answered + Send + Sync>;
pub(crate) type FollowFn =
    Arc<dyn Fn(&Ask, Request, Resume) -> Result<Following, Failure> + Send + Sync>;
pub(crate) type PageFn = Arc<dyn Fn(&Ask, Request, Option<u64>) -> Answered + Send + Sync>;
pub(crate) type TellFn =
    Arc<dyn Fn(Ask, Request, Option<u64>) -> Result<Followed, Failure> + Send + Sync>;
pub(crate) type FeedFn = Arc<dyn Fn(&Ask, Request) -> Result<Feeding, Failure> + Send + Sync>;

/// See [`Handler`].
pub(crate) enum Serve {
    Answer(AnswerFn),
    Watched(AnswerFn),
    Receives(ReceiveFn),
    Sends(&'static str, SendFn),
    Opens(OpenFn),
    Runs(RunFn),
    Follows { once: OnceFn, follow: FollowFn },
    Tells { page: PageFn, follow: TellFn },
    Feeds(FeedFn),
}

/// See [`Feed`].
pub(crate) struct Feeding {
    pub pipe: OwnedFd,
    pub done: Box<dyn FnOnce(u64) -> Answered + Send>,
}

/// One operation, served.
pub(crate) struct Erased {
    pub row: Row,
    pub serve: Serve,
    /// See [`has_post`].
    pub has_post: bool,
    json: fn(&[u8]) -> Result<Request, Failure>,
    query: fn(&str) -> Result<Request, Failure>,
    admit: AdmitFn,
}

impl Erased {
    fn new<O: Served>() -> Erased {
        Erased {
            row: O::ROW,
            serve: serve::<O>(),
            has_post: has_post(&O::ROW, &O::HANDLER),
            json: |text| {
                let request = read_object::<O>(text)?;
                Ok(Request(Box::new(request)))
            },
            query: |text| Ok(Request(Box::new(read_fields::<O>(text)?))),
            admit: |app, caller, vault, request| {
                let request = request.0.downcast_ref::<O>();
                let request = request.expect("what a row has read is given to that row alone");
                Ask::admit::<O>(app, caller, vault, request)
            },
        }
    }

    /// A request from its JSON; an empty body means no fields.
    pub fn read_json(&self, text: &[u8]) -> Result<Request, Failure> {
        (self.json)(if text.is_empty() { b"{}" } else { text })
    }

    /// A request from the query of an address.
    pub fn read_query(&self, text: &str) -> Result<Request, Failure> {
        (self.query)(text)
    }

    /// Admits a request: see [`Ask::admit`].
    pub fn admit(
        &self,
        app: Arc<App>,
        caller: Caller,
        vault: Select,
        request: &Request,
    ) -> Result<(Ask, Select), Failure> {
        (self.admit)(app, caller, vault, request)
    }
}

fn serve<O: Served>() -> Serve {
    let plain = |answer: &O::Response| Answer::new(answer, Vec::new());
    match O::HANDLER {
        Handler::Answer(serve) => Serve::Answer(Arc::new(move |ask, _, request, _| {
            serve(ask, request.take()).map(|it| plain(&it))
        })),
        Handler::OnVault(serve) => Serve::Answer(Arc::new(move |ask, vault, request, _| {
            serve(ask, vault, request.take()).map(|it| plain(&it))
        })),
        Handler::Attended(serve) => Serve::Answer(Arc::new(move |ask, vault, request, watcher| {
            serve(ask, vault, request.take(), watcher).map(|it| plain(&it))
        })),
        Handler::Watched(serve) => Serve::Watched(Arc::new(move |ask, vault, request, watcher| {
            serve(ask, vault, request.take(), watcher).map(|it| plain(&it))
        })),
        Handler::Receives(serve) => {
            Serve::Receives(Arc::new(move |ask, vault, request, bytes, watcher| {
                serve(ask, vault, request.take(), bytes, watcher).map(|it| plain(&it))
            }))
        }
        Handler::Sends(media_type, serve) => Serve::Sends(
            media_type,
            Arc::new(move |ask, vault, request, out| serve(ask, vault, request.take(), out)),
        ),
        Handler::Opens(open) => Serve::Opens(Arc::new(move |ask, vault, request| {
            open(ask, vault, request.take())
        })),
        Handler::Runs(serve) => Serve::Runs(Arc::new(move |ask, vault, request, listener| {
            let (answer, held) = serve(ask, vault, request.take(), listener)?;
            Ok(Answer::new(&answer, held))
        })),
        Handler::Follows { once, follow } => Serve::Follows {
            once: Arc::new(move |ask, request, resume| {
                once(ask, request.take(), resume).map(|it| plain(&it))
            }),
            follow: Arc::new(move |ask, request, resume| follow(ask, request.take(), resume)),
        },
        Handler::Tells { page, follow } => Serve::Tells {
            page: Arc::new(move |ask, request, resume| {
                page(ask, request.take(), resume).map(|it| plain(&it))
            }),
            follow: Arc::new(move |ask, request, resume| follow(ask, request.take(), resume)),
        },
        Handler::Feeds(open) => Serve::Feeds(Arc::new(move |ask, request| {
            let Feed { pipe, done } = open(ask, request.take())?;
            Ok(Feeding {
                pipe,
                done: Box::new(move |bytes| done(bytes).map(|it| Answer::new(&it, Vec::new()))),
            })
        })),
    }
}

/// Serde would also read the fields of a request from a list, by their order.
pub(crate) fn is_object(text: &[u8]) -> Result<(), Failure> {
    let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
    match first {
        Some(b'[') => Err(Failure::unprocessable("the body is a list, not an object")),
        _ => Ok(()),
    }
}

/// The value of an object in JSON.
pub(crate) fn read_object<T: DeserializeOwned>(text: &[u8]) -> Result<T, Failure> {
    is_object(text)?;
    serde_json::from_slice(text).map_err(unread)
}

/// The fields in the query of an address.
pub(crate) fn read_fields<T: Serialize + DeserializeOwned>(text: &str) -> Result<T, Failure> {
    let invalid =
        |error: &dyn std::fmt::Display| Failure::invalid(format!("the query is invalid: {error}"));
    let fields: T = serde_html_form::from_str(text).map_err(|error| invalid(&error))?;
    let pairs: Vec<(String, String)> =
        serde_html_form::from_str(text).map_err(|error| invalid(&error))?;
    // A number without a value would be taken for a field that is not there.
    for (name, _) in pairs.iter().filter(|(_, value)| value.is_empty()) {
        let read = serde_json::to_value(&fields).map_err(|error| invalid(&error))?;
        if read.get(name).is_none_or(serde_json::Value::is_null) {
            return Err(invalid(&format_args!("{name} has no value")));
        }
    }
    Ok(fields)
}

/// A body that is no JSON is a bad request; JSON that is no such request cannot be processed.
fn unread(error: serde_json::Error) -> Failure {
    let detail = format!("the body is invalid: {error}");
    match error.is_data() {
        true => Failure::unprocessable(detail),
        false => Failure::invalid(detail),
    }
}

/// Whether a read may also be sent by `POST` with a JSON body, for fields that are too long for a query.
pub(crate) fn has_post<O: Served>(row: &Row, handler: &Handler<O>) -> bool {
    let is_whole = matches!(
        handler,
        Handler::Answer(_) | Handler::OnVault(_) | Handler::Attended(_)
    );
    let same = |it: &&Row| it.route == row.route && it.method == Method::Post;
    row.method == Method::Get && is_whole && !OPERATIONS.iter().any(|it| same(&it))
}

/// Every operation of the table.
pub(crate) fn all() -> Vec<Erased> {
    struct All(Vec<Erased>);
    impl EachRow for All {
        fn row<O: Served>(&mut self) {
            self.0.push(Erased::new::<O>());
        }
    }
    let mut all = All(Vec::new());
    each_row(&mut all);
    all.0
}
