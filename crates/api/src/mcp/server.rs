//! The MCP server: one for every client, of both eras of the protocol.

use super::approving::{self, Approver, Said};
use super::hands::Hands;
use super::live::Telling;
use super::tools::{Tool, Toolset};
use super::{answer, prompts, resources};
use crate::bounds::MCP_CALLS_MAX;
use crate::ops::app::App;
use crate::ops::caller::Caller;
use crate::ops::failure::Failure;
use crate::serving::Open;
use crate::wire::{CURRENT, VERSION};
use avfs_runtime::ErrorKind;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ErrorData, GetPromptRequestParams, GetPromptResponse,
    GetPromptResult, Implementation, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// What a client has asked to be given.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub sets: Vec<Toolset>,
    /// The vault that is meant where a call names none.
    pub vault: String,
}

impl Default for Wanted {
    fn default() -> Wanted {
        Wanted {
            sets: vec![Toolset::Core],
            vault: CURRENT.into(),
        }
    }
}

/// One client's server.
#[derive(Clone)]
pub(crate) struct Server {
    app: Arc<App>,
    client: Client,
    calls: Arc<Semaphore>,
}

/// Who the client is.
#[derive(Clone)]
pub(crate) enum Client {
    /// As its connection said in the beginning.
    Connected(Box<Connected>),
    /// As every request says anew.
    Requests,
}

/// The client of a connection that carries lines.
#[derive(Clone)]
pub(crate) struct Connected {
    pub caller: Caller,
    pub wanted: Wanted,
    pub open: Open,
}

const INSTRUCTIONS: &str = include_str!("instructions.txt");

impl Server {
    pub fn new(app: Arc<App>, client: Client) -> Server {
        Server {
            app,
            client,
            calls: Arc::new(Semaphore::new(MCP_CALLS_MAX)),
        }
    }

    async fn who(&self, context: &RequestContext<RoleServer>) -> Result<(Caller, Wanted), Failure> {
        match &self.client {
            Client::Connected(it) => {
                // A request of HTTP was counted when it came.
                it.open.take_turn(&self.app)?;
                Ok((it.caller.clone(), it.wanted.clone()))
            }
            Client::Requests => {
                let (caller, named) = super::of_request(&context.extensions)?;
                let wanted = super::settle(&self.app, &caller, named).await;
                Ok((caller, wanted))
            }
        }
    }

    async fn hands(
        &self,
        context: &RequestContext<RoleServer>,
        rows: &'static [&'static str],
    ) -> Result<(Hands, Wanted), Failure> {
        let (caller, wanted) = self.who(context).await?;
        let hands = Hands {
            app: Arc::clone(&self.app),
            caller,
            vault: wanted.vault.clone(),
            rows,
            telling: Telling::of(context),
        };
        Ok((hands, wanted))
    }
}

/// The tool of that name. The first set that has it is meant.
fn find(wanted: &Wanted, name: &str) -> Option<&'static Tool> {
    let mut tools = wanted.sets.iter().flat_map(|set| set.tools());
    tools.find(|tool| tool.name == name)
}

/// A failure where there is no answer to put it in.
pub(crate) fn protocol_error(failure: &Failure) -> ErrorData {
    let problem = failure.problem();
    let data = Some(answer::told(problem, None));
    match ErrorKind::parse(&problem.kind) {
        Some(ErrorKind::NotFound) => ErrorData::resource_not_found(problem.detail.clone(), data),
        Some(ErrorKind::Bug | ErrorKind::Corrupt) => {
            ErrorData::internal_error(problem.detail.clone(), data)
        }
        _ => ErrorData::invalid_params(problem.detail.clone(), data),
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_prompts()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("agentvfs", VERSION))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let (_, wanted) = self.who(&context).await.map_err(|it| protocol_error(&it))?;
        Ok(ListToolsResult::with_all_items(described(&wanted)))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let (mut hands, wanted) = self
            .hands(&context, &[])
            .await
            .map_err(|it| protocol_error(&it))?;
        let Some(tool) = find(&wanted, &request.name) else {
            let name = answer::beginning(&request.name, 100);
            let what = format!("there is no tool {name:?}; tools/list names those that are there");
            return Err(ErrorData::invalid_params(what, None));
        };
        hands.rows = tool.rows;
        let Ok(_place) = self.calls.try_acquire() else {
            let what = format!("{MCP_CALLS_MAX} calls of this client are under way already");
            let failure = Failure::new(ErrorKind::Unavailable, what);
            let next = "wait for some of them, then call again".into();
            return Ok(answer::failed(&failure, Some(next)).into());
        };
        let approver = Approver::of(&hands.caller, &context);
        Ok(called(tool, &hands, request, approver).await)
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let (_, wanted) = self.who(&context).await.map_err(|it| protocol_error(&it))?;
        let listed = resources::listed(&wanted.vault);
        Ok(ListResourcesResult::with_all_items(listed))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let templates = resources::templates();
        Ok(ListResourceTemplatesResult::with_all_items(templates))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let hands = self.hands(&context, resources::ROWS).await;
        let (hands, _) = hands.map_err(|it| protocol_error(&it))?;
        let Ok(_place) = self.calls.try_acquire() else {
            return Err(ErrorData::internal_error(
                "too many calls are under way",
                None,
            ));
        };
        let read = resources::read(&hands, &request.uri).await;
        let contents = read.map_err(|it| protocol_error(&it))?;
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(prompts::listed()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let task = arguments.get("task").and_then(|task| task.as_str());
        let task = task.ok_or_else(|| ErrorData::invalid_params("a prompt needs a task", None))?;
        let Some((about, message)) = prompts::get(&request.name, task) else {
            return Err(ErrorData::invalid_params("there is no such prompt", None));
        };
        let mut result = GetPromptResult::new(vec![message]);
        result.description = Some(about);
        Ok(result.into())
    }
}

/// Runs a tool. What waits for approval is asked of the client's user, if the owner named this client as an approver.
async fn called(
    tool: &Tool,
    hands: &Hands,
    request: CallToolRequestParams,
    approver: Option<Approver>,
) -> CallToolResponse {
    let arguments = request.arguments.unwrap_or_default();
    let Some(approver) = approver else {
        return tool.run(hands, arguments).await.into();
    };
    let mut run = arguments.clone();
    if let Some(state) = &request.request_state {
        let brought = (state.as_str(), request.input_responses.as_ref());
        match approver.hear(hands, tool.name, &arguments, brought).await {
            Ok(Said::Yes(id)) => drop(run.insert("approval".into(), id.to_string().into())),
            Ok(Said::Neither) => return tool.run(hands, arguments).await.into(),
            Ok(Said::Nothing) => {}
            Ok(Said::No) => {
                let failure = Failure::new(ErrorKind::Denied, "the user said no");
                return answer::failed(&failure, Some("do without it".into())).into();
            }
            Err(failure) => return answer::failed(&failure, None).into(),
        }
    }
    let result = tool.run(hands, run).await;
    let Some(id) = approving::waits_for(&result) else {
        return result.into();
    };
    match approver.ask(hands, tool.name, &arguments, &id).await {
        Ok(question) => question.into(),
        // It waits in the queue.
        Err(_) => result.into(),
    }
}

/// Every tool of the wanted sets, in a fixed order, each name once.
pub(crate) fn described(wanted: &Wanted) -> Vec<rmcp::model::Tool> {
    let mut tools: Vec<rmcp::model::Tool> = Vec::new();
    for tool in wanted.sets.iter().flat_map(|set| set.tools()) {
        if !tools.iter().any(|other| other.name == tool.name) {
            tools.push(tool.describe());
        }
    }
    tools
}
