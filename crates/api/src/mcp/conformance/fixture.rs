//! A server with the content that the suite asks for, which `content.json` describes.
#![expect(deprecated, reason = "the era before has logging, sampling and roots")]

use crate::mcp::answer;
use crate::ops::failure::Failure;
use avfs_runtime::ErrorKind;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities,
    CompleteRequestParams, CompleteResult, CompletionInfo, ConstString, ContentBlock, ErrorData,
    GetPromptRequestParams, GetPromptResponse, GetPromptResult, InputRequest, InputRequests,
    InputRequiredResult, InputResponses, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, LoggingLevel, LoggingMessageNotificationParam,
    PaginatedRequestParams, ProgressNotificationParam, ProtocolVersion, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, Resource, ResourceTemplate, ServerCapabilities,
    ServerConfig, SetLevelRequestMethod, SetLevelRequestParams, SubscribeRequestMethod,
    SubscribeRequestParams, UnsubscribeRequestMethod, UnsubscribeRequestParams,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

static CONTENT: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("content.json")).expect("JSON"));

type Context = RequestContext<RoleServer>;

/// One of these serves a session of the handshake era, or one request of the current one.
#[derive(Clone)]
pub struct Fixture {
    /// Seals what clients bring back.
    pub key: Arc<[u8; 32]>,
    /// Whether clients may subscribe to resources, as the era before has it. Our server has no subscriptions.
    pub subscribes: bool,
}

fn read<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{error}: {value}"))
}

/// The entries of a part of the content, with a name that is known.
fn entry(part: &str, name: &str) -> Result<&'static Value, ErrorData> {
    let unknown = || ErrorData::invalid_params(format!("there is no {name:?}"), None);
    CONTENT[part].get(name).ok_or_else(unknown)
}

fn names(part: &str) -> impl Iterator<Item = (&'static String, &'static Value)> {
    CONTENT[part].as_object().expect("an object").iter()
}

fn text(text: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text.into())])
}

async fn pause() {
    tokio::time::sleep(Duration::from_millis(50)).await;
}

/// What a round of input comes to.
enum Round {
    Asks(InputRequiredResult),
    Over,
}

impl Fixture {
    /// A state that only this server makes.
    fn seal(&self, name: &str, round: usize) -> String {
        let plain = format!("{name}.{round}");
        let mark = blake3::keyed_hash(&self.key, plain.as_bytes());
        format!("{plain}.{mark}")
    }

    /// The round that a state was made for.
    fn open(&self, name: &str, state: &str) -> Result<usize, ErrorData> {
        let round = state.split('.').nth(1).and_then(|it| it.parse().ok());
        let good = round.filter(|round| self.seal(name, *round) == state);
        good.ok_or_else(|| ErrorData::invalid_params("this state was not made here", None))
    }

    fn round(
        &self,
        name: &str,
        entry: &Value,
        brought: (Option<&InputResponses>, Option<&str>),
        able: &ClientCapabilities,
    ) -> Result<Round, ErrorData> {
        let rounds = entry["rounds"].as_array().expect("rounds");
        let (responses, state) = brought;
        let at = state.map_or(Ok(0), |state| self.open(name, state))?;
        let requests = &rounds[at.min(rounds.len() - 1)];
        let is_answered = |key: &String| {
            let response = responses.and_then(|all| all.get(key));
            response.is_some_and(Value::is_object)
        };
        let asked = asked(requests, able);
        let answered = !asked.is_empty() && asked.keys().all(is_answered);
        let next = at + usize::from(answered);
        if next == rounds.len() {
            return Ok(Round::Over);
        }
        let mut result = InputRequiredResult::from_input_requests(self::asked(&rounds[next], able));
        if entry["sealed"] == true {
            result.request_state = Some(self.seal(name, next));
        }
        Ok(Round::Asks(result))
    }
}

/// The requests that a client can answer.
fn asked(requests: &Value, able: &ClientCapabilities) -> InputRequests {
    let requests = requests.as_object().expect("requests").iter();
    let can = |request: &Value| match request["method"].as_str() {
        Some("elicitation/create") => able.elicitation.is_some(),
        Some("sampling/createMessage") => able.sampling.is_some(),
        _ => able.roots.is_some(),
    };
    let requests = requests.filter(|(_, request)| can(request));
    let requests = requests.map(|(key, request)| (key.clone(), request_of(request)));
    requests.collect()
}

/// Read by its method: the types of two requests fit each other's JSON.
fn request_of(request: &Value) -> InputRequest {
    match request["method"].as_str() {
        Some("elicitation/create") => InputRequest::Elicitation(read(request.clone())),
        Some("sampling/createMessage") => InputRequest::CreateMessage(read(request.clone())),
        _ => InputRequest::ListRoots(read(request.clone())),
    }
}

fn capabilities(context: &Context) -> ClientCapabilities {
    context.client_capabilities().unwrap_or_default()
}

fn is_current(context: &Context) -> bool {
    context.protocol_version() == Some(ProtocolVersion::V_2026_07_28)
}

/// The current era has this method no more.
fn before_only<M: ConstString>(context: &Context) -> Result<(), ErrorData> {
    match is_current(context) {
        true => Err(ErrorData::method_not_found::<M>()),
        false => Ok(()),
    }
}

/// What a tool does before it answers. In the current era a request says whether it wants logs.
async fn work(entry: &Value, context: &Context) {
    let logs = !is_current(context) || context.meta.log_level().is_some();
    for message in entry["logs"]
        .as_array()
        .filter(|_| logs)
        .into_iter()
        .flatten()
    {
        let log = LoggingMessageNotificationParam::new(LoggingLevel::Info, message.clone());
        let _ = context.peer.notify_logging_message(log).await;
        pause().await;
    }
    let Some(token) = context.meta.get_progress_token() else {
        return;
    };
    for step in entry["progress"].as_array().into_iter().flatten() {
        let progress =
            ProgressNotificationParam::new(token.clone(), step.as_f64().expect("a number"));
        let _ = context
            .peer
            .notify_progress(progress.with_total(100.0))
            .await;
        pause().await;
    }
}

/// Asks the client of the handshake era for something.
async fn ask_client(
    entry: &Value,
    argument: &Value,
    context: &Context,
) -> Result<CallToolResult, ErrorData> {
    let failed = |error: rmcp::ServiceError| ErrorData::internal_error(error.to_string(), None);
    if let Some(elicits) = entry.get("elicits") {
        let message = argument.as_str().unwrap_or("Please fill this in");
        let schema = json!({ "type": "object", "properties": elicits["properties"], "required": elicits["required"] });
        let params = json!({ "mode": "form", "message": message, "requestedSchema": schema });
        let answer = context
            .peer
            .create_elicitation(read(params))
            .await
            .map_err(failed)?;
        let (action, content) = (json!(answer.action), json!(answer.content));
        let says = elicits["says"].as_str().expect("a text");
        let action = action.as_str().unwrap_or_default().to_owned();
        return Ok(text(format!("{says}: action={action}, content={content}")));
    }
    let message = json!({ "role": "user", "content": { "type": "text", "text": argument } });
    let params = json!({ "messages": [message], "maxTokens": 100 });
    let answer = context
        .peer
        .create_message(read(params))
        .await
        .map_err(failed)?;
    let said = json!(answer)["content"]["text"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    Ok(text(format!("LLM response: {said}")))
}

impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        let mut capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_prompts()
            .enable_completions()
            .enable_logging()
            .build();
        if let Some(resources) = &mut capabilities.resources {
            resources.subscribe = self.subscribes.then_some(true);
        }
        ServerConfig::new(capabilities)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = names("tools").map(|(name, entry)| {
            let properties = match entry["takes"].as_str() {
                Some(argument) => json!({ argument: { "type": "string" } }),
                None => json!({}),
            };
            let required: Vec<&str> = entry["takes"].as_str().into_iter().collect();
            let schema =
                json!({ "type": "object", "properties": properties, "required": required });
            read(json!({ "name": name, "description": "For tests.", "inputSchema": schema }))
        });
        Ok(ListToolsResult::with_all_items(tools.collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        let entry = entry("tools", &request.name)?;
        let able = capabilities(&context);
        if entry["needs"] == "sampling" && able.sampling.is_none() {
            let needed = read(json!({ "sampling": {} }));
            return Err(ErrorData::missing_required_client_capability(needed));
        }
        if entry.get("rounds").is_some() {
            let brought = (
                request.input_responses.as_ref(),
                request.request_state.as_deref(),
            );
            return Ok(match self.round(&request.name, entry, brought, &able)? {
                Round::Asks(result) => result.into(),
                Round::Over => text("Thank you: state-ok").into(),
            });
        }
        work(entry, &context).await;
        if entry["is_error"] == true {
            // As our tools fail.
            let said = entry["content"][0]["text"].as_str().expect("a text");
            let failure = Failure::new(ErrorKind::Conflict, said);
            return Ok(answer::failed(&failure, None).into());
        }
        if entry.get("elicits").is_some() || request.name == "test_sampling" {
            let arguments = json!(request.arguments.unwrap_or_default());
            let argument = entry["takes"]
                .as_str()
                .map_or(&Value::Null, |name| &arguments[name]);
            return Ok(ask_client(entry, argument, &context).await?.into());
        }
        Ok(match entry.get("content") {
            Some(content) => CallToolResult::success(read(content.clone())),
            None => text("It is done."),
        }
        .into())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        let resources = names("resources").map(|(uri, entry)| {
            let resource = Resource::new(uri, uri.trim_start_matches("test://"));
            let resource = resource.with_description("For tests.");
            resource.with_mime_type(entry["mimeType"].as_str().expect("a type"))
        });
        Ok(ListResourcesResult::with_all_items(resources.collect()))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let template = ResourceTemplate::new("test://template/{id}/data", "data");
        let template = template.with_mime_type("application/json");
        Ok(ListResourceTemplatesResult::with_all_items(vec![template]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = &request.uri;
        let id = uri
            .strip_prefix("test://template/")
            .and_then(|it| it.strip_suffix("/data"));
        let contents = match (CONTENT["resources"].get(uri), id) {
            (Some(found), _) => found.clone(),
            (None, Some(id)) => {
                let data =
                    json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
                json!({ "uri": uri, "mimeType": "application/json", "text": data.to_string() })
            }
            (None, None) => {
                let failure = Failure::new(ErrorKind::NotFound, "there is no such resource");
                return Err(crate::mcp::server::protocol_error(&failure));
            }
        };
        Ok(ReadResourceResult::new(vec![read(contents)]).into())
    }

    async fn subscribe(
        &self,
        _: SubscribeRequestParams,
        context: Context,
    ) -> Result<(), ErrorData> {
        before_only::<SubscribeRequestMethod>(&context)
    }

    async fn unsubscribe(
        &self,
        _: UnsubscribeRequestParams,
        context: Context,
    ) -> Result<(), ErrorData> {
        before_only::<UnsubscribeRequestMethod>(&context)
    }

    async fn set_level(&self, _: SetLevelRequestParams, context: Context) -> Result<(), ErrorData> {
        before_only::<SetLevelRequestMethod>(&context)
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: Context,
    ) -> Result<CompleteResult, ErrorData> {
        let values = vec!["paris".into(), "park".into()];
        let completion = CompletionInfo::with_all_values(values);
        completion
            .map(CompleteResult::new)
            .map_err(|error| ErrorData::internal_error(error, None))
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        let prompts = names("prompts").map(|(name, entry)| {
            let arguments = entry["arguments"].as_array().into_iter().flatten();
            let arguments = arguments
                .map(|it| json!({ "name": it, "description": "For tests.", "required": true }));
            let arguments: Vec<Value> = arguments.collect();
            read(json!({ "name": name, "description": "For tests.", "arguments": arguments }))
        });
        Ok(ListPromptsResult::with_all_items(prompts.collect()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        let entry = entry("prompts", &request.name)?;
        if entry.get("rounds").is_some() {
            let brought = (
                request.input_responses.as_ref(),
                request.request_state.as_deref(),
            );
            let able = capabilities(&context);
            if let Round::Asks(result) = self.round(&request.name, entry, brought, &able)? {
                return Ok(result.into());
            }
        }
        let mut messages = entry["messages"].to_string();
        for (name, value) in request.arguments.unwrap_or_default() {
            let value = value.as_str().unwrap_or_default();
            messages = messages.replace(&format!("{{{name}}}"), value);
        }
        let messages = serde_json::from_str(&messages).expect("messages");
        Ok(GetPromptResult::new(messages).into())
    }
}
