//! Approvals by the user of a client, where the owner named that client as an approver: its key asks its user.
//!
//! A command that needs approval is then answered with a question for that user, and the client repeats the call with what
//! the user said. Everybody else's command goes to the queue, whatever a client can ask or brings along. The agent behind the
//! client stays an agent: what is approved is approved in the key's name, as the owner's.

use super::hands::Hands;
use crate::ops::caller::{Caller, Share};
use crate::ops::failure::Failure;
use crate::wire::{ApprovalDetails, ApprovalShow};
use avfs_runtime::{APPROVAL_LIFETIME, ApprovalId, ErrorKind, Principal, PrincipalName, Proof};
use rmcp::RoleServer;
use rmcp::model::{
    CallToolResult, ElicitResult, ElicitationAction, InputRequest, InputRequests,
    InputRequiredResult, InputResponses, JsonObject, ProtocolVersion,
};
use rmcp::service::RequestContext;
use rustix::rand::{GetRandomFlags, getrandom};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::OnceLock;

/// The rows that a question is made of.
const ROWS: &[&str] = &["approval_show"];
/// The name of the question, and of the field that is filled in.
const QUESTION: &str = "approval";
const FIELD: &str = "approve";

/// Somebody whose user may be asked. Only [`Approver::of`] makes one.
pub(crate) struct Approver(PrincipalName);

/// What a client brings back with a question: only as it was given to it.
#[derive(Serialize, Deserialize)]
struct State {
    id: String,
    /// The fingerprint of what was shown.
    shown: String,
    approver: String,
    /// The call that it belongs to.
    call: String,
}

/// What the user said.
pub(crate) enum Said {
    Yes(ApprovalId),
    No,
    /// Neither: it stays in the queue.
    Neither,
    /// The question was not answered.
    Nothing,
}

impl Approver {
    /// The approver that a caller is, if its client can ask its user.
    pub fn of(caller: &Caller, context: &RequestContext<RoleServer>) -> Option<Approver> {
        let Share::Credential(name) = caller.share else {
            return None;
        };
        let is_named = caller.grant.asks_user;
        let is_current = context.protocol_version() == Some(ProtocolVersion::V_2026_07_28);
        let able = context.client_capabilities()?.elicitation?;
        let has_forms = able.form.is_some() || able.url.is_none();
        (is_named && is_current && has_forms).then_some(Approver(name))
    }

    /// A question about the approval that a command waits for.
    pub async fn ask(
        &self,
        hands: &Hands,
        tool: &str,
        arguments: &JsonObject,
        id: &str,
    ) -> Result<InputRequiredResult, Failure> {
        let hands = Hands {
            rows: ROWS,
            ..hands.clone()
        };
        let show = ApprovalShow { id: id.to_owned() };
        let details = hands.ask("", &show).await?;
        let state = State {
            id: id.to_owned(),
            shown: details.shown.clone(),
            approver: self.0.as_str().to_owned(),
            call: call(tool, arguments),
        };
        let schema = json!({
            "type": "object",
            "properties": { FIELD: { "type": "boolean", "title": "Run it once" } },
            "required": [FIELD],
        });
        let params =
            json!({ "mode": "form", "message": message(&details), "requestedSchema": schema });
        let request = json!({ "method": "elicitation/create", "params": params });
        let request = serde_json::from_value(request).map_err(|error| {
            Failure::new(ErrorKind::Bug, format!("a question of our own: {error}"))
        })?;
        let request = InputRequest::Elicitation(request);
        let requests = InputRequests::from([(QUESTION.to_owned(), request)]);
        let mut result = InputRequiredResult::from_input_requests(requests);
        result.request_state = Some(seal(&state)?);
        Ok(result)
    }

    /// Takes the answer to a question. What the user allows is approved.
    pub async fn hear(
        &self,
        hands: &Hands,
        tool: &str,
        arguments: &JsonObject,
        (state, responses): (&str, Option<&InputResponses>),
    ) -> Result<Said, Failure> {
        let state = open(state)?;
        if state.approver != self.0.as_str() || state.call != call(tool, arguments) {
            return Err(Failure::invalid("this state belongs to another call"));
        }
        let response = responses.and_then(|all| all.get(QUESTION)).cloned();
        let Some(response) = response else {
            return Ok(Said::Nothing);
        };
        let response: ElicitResult = serde_json::from_value(response)
            .map_err(|_| Failure::invalid("the answer is not one of a form"))?;
        let allowed = response.content.as_ref().map(|content| &content[FIELD]);
        let id: ApprovalId = crate::ops::parse(&state.id)?;
        match (response.action, allowed) {
            (ElicitationAction::Accept, Some(Value::Bool(true))) => {
                self.approve(hands, id, state.shown).await?;
                Ok(Said::Yes(id))
            }
            (ElicitationAction::Cancel, _) => Ok(Said::Neither),
            _ => {
                self.deny(hands, id).await?;
                Ok(Said::No)
            }
        }
    }

    async fn approve(&self, hands: &Hands, id: ApprovalId, shown: String) -> Result<(), Failure> {
        let name = self.0;
        self.answer(hands, move |session| {
            let proof = Proof::Key { name };
            session.approval_approve(id, &shown, &proof, APPROVAL_LIFETIME)
        })
        .await
    }

    async fn deny(&self, hands: &Hands, id: ApprovalId) -> Result<(), Failure> {
        self.answer(hands, move |session| session.approval_deny(id))
            .await
    }

    /// Answers in the key's name.
    async fn answer<T: Send + 'static>(
        &self,
        hands: &Hands,
        answer: impl FnOnce(&avfs_runtime::Session) -> avfs_runtime::Result<T> + Send + 'static,
    ) -> Result<(), Failure> {
        hands.app.runtime.check_writable()?;
        let session = hands.app.runtime.by(Principal::owner(Some(self.0)));
        let answered = tokio::task::spawn_blocking(move || answer(&session)).await;
        let answered = answered.map_err(|_| Failure::panicked(&hands.app.place.log()))?;
        Ok(answered.map(drop)?)
    }
}

/// The approval that an answer of a tool waits for.
pub(crate) fn waits_for(result: &CallToolResult) -> Option<String> {
    let said = result.structured_content.as_ref()?;
    let waits = result.is_error == Some(true) && said["status"] == "needs_approval";
    let id = said["approval_id"].as_str()?;
    waits.then(|| id.to_owned())
}

/// What the user reads: what would run, where and why. Nothing of it can draw on the screen: it is escaped already.
fn message(details: &ApprovalDetails) -> String {
    let item = &details.approval;
    let vault = item.vault.as_deref().unwrap_or("a vault");
    let mut lines = vec![format!("Run this in {} of vault {vault}?", item.cwd)];
    lines.extend(item.lines.iter().map(|line| format!("  {line}")));
    lines.extend(
        item.reason
            .iter()
            .map(|reason| format!("Why it asks: {reason}")),
    );
    lines.push(format!("Rule: {}. Network: {}.", item.rule, item.network));
    lines.extend(item.env.iter().map(|pair| format!("With {pair}")));
    lines.extend(item.terms.iter().map(|term| format!("With {term}")));
    if details.changed_since_asked_count > 0 {
        let count = details.changed_since_asked_count;
        lines.push(format!(
            "{count} paths of the vault changed since it was asked for."
        ));
    }
    lines.join("\n")
}

/// The fingerprint of a call.
fn call(tool: &str, arguments: &JsonObject) -> String {
    let call = json!([tool, arguments]).to_string();
    blake3::hash(call.as_bytes()).to_string()
}

/// The key of this daemon: what another one sealed is not opened.
fn key() -> Result<&'static [u8; 32], Failure> {
    static KEY: OnceLock<[u8; 32]> = OnceLock::new();
    if let Some(key) = KEY.get() {
        return Ok(key);
    }
    let mut bytes = [0; 32];
    match getrandom(&mut bytes, GetRandomFlags::empty()) {
        Ok(32) => Ok(KEY.get_or_init(|| bytes)),
        _ => Err(Failure::new(
            ErrorKind::Unavailable,
            "the kernel gives no random numbers",
        )),
    }
}

fn seal(state: &State) -> Result<String, Failure> {
    let plain = serde_json::to_string(state).expect("plain data");
    let mark = blake3::keyed_hash(key()?, plain.as_bytes());
    Ok(format!("{mark}{plain}"))
}

fn open(text: &str) -> Result<State, Failure> {
    let foreign = || {
        Failure::invalid("this state was not made by this daemon")
            .hint("call the tool again without it")
    };
    let (mark, plain) = text.split_at_checked(64).ok_or_else(foreign)?;
    let mark = blake3::Hash::from_hex(mark).map_err(|_| foreign())?;
    // Compared in constant time.
    if blake3::keyed_hash(key()?, plain.as_bytes()) != mark {
        return Err(foreign());
    }
    serde_json::from_str(plain).map_err(|_| foreign())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> State {
        State {
            id: "id".into(),
            shown: "shown".into(),
            approver: "claude".into(),
            call: "call".into(),
        }
    }

    #[test]
    fn only_what_was_sealed_here_is_opened() {
        let sealed = seal(&state()).expect("a key");
        assert_eq!(open(&sealed).expect("ours").id, "id");
        let plain = serde_json::to_string(&state()).expect("plain data");
        let forged = format!("{}{plain}", blake3::hash(plain.as_bytes()));
        for other in [
            "",
            "x",
            &plain,
            &forged,
            &sealed.replace("claude", "chloe"),
            &format!("{sealed} "),
            &"ä".repeat(40),
        ] {
            assert!(open(other).is_err(), "{other}");
        }
    }

    #[test]
    fn a_call_is_known_by_its_tool_and_arguments() {
        let arguments = |text: &str| JsonObject::from_iter([("command".into(), json!(text))]);
        assert_eq!(call("exec", &arguments("a")), call("exec", &arguments("a")));
        assert_ne!(call("exec", &arguments("a")), call("exec", &arguments("b")));
        assert_ne!(call("exec", &arguments("a")), call("job", &arguments("a")));
    }

    #[test]
    fn only_our_own_word_says_that_something_waits() {
        let mut result = CallToolResult::error(Vec::new());
        result.structured_content = Some(json!({ "status": "needs_approval", "approval_id": "x" }));
        assert_eq!(waits_for(&result).as_deref(), Some("x"));
        result.is_error = Some(false);
        assert_eq!(waits_for(&result), None);
        result.structured_content = Some(json!({ "stdout": "needs_approval" }));
        assert_eq!(waits_for(&result), None);
    }
}
