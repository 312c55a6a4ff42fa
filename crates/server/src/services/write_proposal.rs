//! Proposals that a language model writes: sends requests to the model, compiles its answers, and creates a proposal of
//! the first one that compiles.
//!
//! The audit log has each call twice: before it begins, with the most that it may use, and after its answer. A call
//! without the second entry was interrupted, and may have been paid for.

use std::time::Duration;

use mainspring_authoring::change_request::{Call, ChangeRequest, Draft, Intent, Tokens, Tool, mistakes};
use mainspring_effects::CancelHandle;
use mainspring_engine::clock::now_ms;
use mainspring_kernel::{
    budget::Usage,
    document::Document,
    effect::{Attempt, AttemptFlags, Outcome},
    failure::Failure,
    hash::Hash,
    json,
    key::ExecutionKey,
    secret::SecretUses,
    value::Value,
};
use mainspring_store::Change;
use tokio::time::timeout;

use crate::{
    app::App,
    auth::{caller::Caller, credential_lookup::reauthorize, permission::Permission, token::random},
    http::{
        body::Data,
        problem::{Code, Problem, Result},
    },
    resources::{
        Workflow, Written,
        repository::{Stored, apply, entry},
    },
    services::{
        compile::{CompileError, compile},
        proposal_checks::{check_base, check_permits, check_text},
        proposals::{self, NewProposal, Shown},
        writers::Writers,
    },
};

/// Longest wait for one answer of a model.
const CALL_TIMEOUT: Duration = Duration::from_secs(120);

/// Longest wait for the lists of tools. Without them, the model has only the tools of the current definition.
const TOOLS_TIMEOUT: Duration = Duration::from_secs(5);

/// Characters of the name of a model in a request.
const MODEL_CHARS_MAX: usize = 200;

/// A change in prose.
#[derive(Debug, Clone)]
pub(crate) struct IntentRequest {
    /// Hash of the definition to change; `None` for the present one.
    pub base_hash: Option<String>,
    pub intent: String,
    pub model: Option<String>,
}

/// Has a model write a change of a workflow, and creates the proposal.
pub(crate) async fn write<F>(app: &App, caller: &Caller, request: IntentRequest, find: F) -> Result<Shown>
where
    F: Fn(&App) -> Result<Stored<Workflow>> + Clone + Send + 'static,
{
    let Some(writers) = app.settings.configured.writers.clone() else {
        return Err(no_model("This server has no model."));
    };
    if !caller.is_person() {
        let message = "A session or an agent cannot have a model of the server write a proposal: send the definition.";
        return Err(Problem::new(Code::Forbidden, message));
    }
    check_text("model", request.model.as_deref(), MODEL_CHARS_MAX)?;
    let (base_hash, by, finder) = (request.base_hash.clone(), caller.clone(), find.clone());
    let workflow = app.run(move |app| {
        let workflow = finder(app)?;
        check_permits(app, &by, &workflow)?;
        base_hash.map_or(Ok(()), |base| check_base(&base, &workflow))?;
        Ok(workflow)
    });
    let workflow = workflow.await?;
    let tools = tools(&writers, caller).await;
    let intent = Intent { text: &request.intent, present: &workflow.body.data.0, tools: &tools };
    let max_tokens = writers.terms.of(request.model.as_deref()).and_then(|term| term.max_tokens);
    let conversation = ChangeRequest::new(&intent, request.model.as_deref(), max_tokens)
        .map_err(|why| Problem::field("intent", why))?;
    let permit = writers.begin(&caller.organization, now_ms())?;
    let writing = Writing { app, caller, writers: &writers, workflow: &workflow, request: &request };
    let (draft, written) = writing.draft(conversation).await?;
    drop(permit);
    let Draft { definition, summary, rationale } = draft;
    let new = NewProposal {
        id: None,
        base_hash: workflow.body.hash.clone(),
        data: Data(definition),
        summary: Some(summary),
        rationale,
        execution: None,
        expires_at: None,
        written: Some(written),
    };
    let (by, id, calls) =
        (caller.clone(), workflow.id.clone(), new.written.as_ref().map_or(0, |written| written.calls));
    app.run(move |app| {
        let now = still_permitted(app, &by, &id, calls)?;
        proposals::create(app, &now, &new, || find(app))
    })
    .await
}

/// The caller with the present role. A conversation with a model takes minutes, in which a credential can be revoked.
fn still_permitted(app: &App, caller: &Caller, workflow: &str, calls: u64) -> Result<Caller> {
    let checked = reauthorize(app, caller, Permission::ProposalsWrite).and_then(|now| match now.is_person() {
        true => Ok(now),
        false => Err(Problem::new(Code::Forbidden, "Only people request changes in prose.")),
    });
    checked.map_err(|problem| {
        let why = match problem.code {
            Code::Unauthorized => "the credential of the request was revoked or has expired",
            Code::Forbidden => {
                "the member of the request has lost the permission `proposals:write`, or is not a person any more"
            }
            _ => return problem,
        };
        let counted = if calls == 1 { "1 call".into() } else { format!("{calls} calls") };
        let message =
            format!("No change of the workflow `{workflow}` was proposed, after {counted} of a model: {why}.");
        Problem::new(problem.code, message).with(serde_json::json!({ "calls": calls }))
    })
}

fn no_model(why: &str) -> Problem {
    let message = format!("{why} Add `models` to its settings, or propose a definition (`--from FILE`).");
    Problem::new(Code::NotAvailable, message)
}

async fn tools(writers: &Writers, caller: &Caller) -> Vec<Tool> {
    let Some(list) = &writers.tools else { return Vec::new() };
    timeout(TOOLS_TIMEOUT, list.list(Some(&caller.organization))).await.unwrap_or_default()
}

/// A proposal that is being written.
struct Writing<'a> {
    app: &'a App,
    caller: &'a Caller,
    writers: &'a Writers,
    workflow: &'a Stored<Workflow>,
    request: &'a IntentRequest,
}

impl Writing<'_> {
    /// Repeats the request until an answer is another definition that compiles.
    async fn draft(&self, mut request: ChangeRequest) -> Result<(Draft, Written)> {
        let mut used = Tokens::default();
        loop {
            let call = request.next_call().map_err(|why| self.failed(&why, request.calls()))?;
            let (by, id, calls) = (self.caller.clone(), self.workflow.id.clone(), call.round as u64 - 1);
            self.app.run(move |app| still_permitted(app, &by, &id, calls)).await?;
            let answer = self.call(&call).await?;
            let counted = Tokens::of_answer(&answer).unwrap_or_else(|| reserved(&call));
            used = used.plus(counted);
            let Some(draft) = request.take(&answer) else { continue };
            match self.mistakes_of(&draft.definition).await? {
                None => {
                    let Tokens { input, output, .. } = used;
                    let model = answer.get("model").and_then(Value::as_text).map(short);
                    let written = Written {
                        intent: self.request.intent.trim().into(),
                        model: model.or_else(|| self.request.model.clone()).unwrap_or_default(),
                        calls: request.calls() as u64,
                        input_tokens: input,
                        output_tokens: output,
                    };
                    return Ok((draft, written));
                }
                Some(why) => request.reject(why),
            }
        }
    }

    fn failed(&self, why: &str, calls: usize) -> Problem {
        let message = format!("No change of the workflow `{}` was proposed: {why}", self.workflow.id);
        Problem::new(Code::ModelFailed, message).with(serde_json::json!({ "calls": calls }))
    }

    /// The reason why a definition cannot be proposed.
    async fn mistakes_of(&self, definition: &Value) -> Result<Option<String>> {
        let (caller, present) = (self.caller.clone(), self.workflow.body.hash.clone());
        let document = Document::placeless(definition.clone());
        let compiled = self.app.run(move |app| match compile(app, &caller.organization, &document) {
            Ok(compiled) if compiled.workflow_hash.prefixed() == present => {
                Ok(Some("The definition is the present one: nothing is changed".into()))
            }
            Ok(_) => Ok(None),
            Err(CompileError::Invalid(found)) => Ok(Some(mistakes(&found))),
            Err(failed) => Err(failed.into()),
        });
        compiled.await
    }

    /// Performs one call, with its entries in the audit log.
    async fn call(&self, call: &Call) -> Result<Value> {
        let request = Hash::of(json::compact(&call.params).as_bytes()).prefixed();
        let own = [("round", Value::from(call.round as u64)), ("model", self.request.model.as_deref().into())];
        let before = [("request", request.as_str().into()), ("reserved", self.usage(reserved(call)))];
        self.audit("proposal.model_call", own.iter().cloned().chain(before)).await?;
        let attempt = self.attempt(call)?;
        let (cancel, signal) = CancelHandle::pair();
        let outcome = timeout(CALL_TIMEOUT, self.writers.executor.perform(&attempt, signal)).await;
        cancel.cancel();
        let (answer, after) = match outcome {
            Ok(Outcome::Done(answer)) => {
                let digest = Hash::of(json::compact(&answer).as_bytes()).prefixed();
                let used = Tokens::of_answer(&answer).unwrap_or_else(|| reserved(call));
                let said = answer.get("model").and_then(Value::as_text).map(short);
                let after =
                    vec![("answer", digest.into()), ("answeredBy", said.as_deref().into()), ("used", self.usage(used))];
                (Ok(answer), after)
            }
            Ok(Outcome::Failed(failure)) => (Err(self.refused(&failure, call)), vec![("failure", failure.code.into())]),
            Ok(_) => {
                let why = "the connection to the model ended before its answer; the call may have been paid for";
                (Err(self.failed(why, call.round)), vec![("failure", "interrupted".into())])
            }
            Err(_) => {
                let why = format!("the model did not answer within {} seconds", CALL_TIMEOUT.as_secs());
                (Err(self.failed(&why, call.round)), vec![("failure", "timeout".into())])
            }
        };
        self.audit("proposal.model_answer", own.into_iter().chain(after)).await?;
        answer
    }

    /// The error for a failed call.
    fn refused(&self, failure: &Failure, call: &Call) -> Problem {
        match (&self.request.model, failure.code.as_str()) {
            (Some(_), "model_unknown") => Problem::field("model", &failure.message),
            (None, "model_unknown") => no_model(&format!("No model can write it: {}.", failure.message)),
            _ => self.failed(&failure.message, call.round),
        }
    }

    /// Tokens with their cost, if the model has a price.
    fn usage(&self, tokens: Tokens) -> Value {
        let terms = &self.writers.terms;
        let price = terms.of(self.request.model.as_deref()).and_then(|term| term.price);
        let cost = price.map_or(0, |price| price.cost(tokens.input, tokens.cached, tokens.output));
        let usage = Usage { tokens: tokens.input.saturating_add(tokens.output), cost, ..Usage::default() }.to_value();
        match (usage, &terms.currency) {
            (Value::Map(mut map), Some(currency)) if price.is_some() => {
                map.insert("currency".into(), currency.as_str().into());
                Value::Map(map)
            }
            (usage, _) => usage,
        }
    }

    async fn audit(&self, action: &'static str, details: impl Iterator<Item = (&'static str, Value)>) -> Result<()> {
        let entry = entry(self.caller, action, &self.workflow.id, Value::map(details));
        let written = self.app.run(move |app| {
            let change = Change { audit: vec![entry], sealing: *app.engine.key(), ..Change::default() };
            apply(app.catalogue(), &change)?.map_err(|_| Problem::concurrent_change())
        });
        written.await
    }

    fn attempt(&self, call: &Call) -> Result<Attempt> {
        let execution = ExecutionKey::new(0, [0; 10]);
        Ok(Attempt {
            execution,
            root: execution,
            execution_id: "propose".into(),
            organization: Some(self.caller.organization.clone()),
            workflow_id: Some(self.workflow.id.clone()),
            step: "propose".into(),
            number: 1,
            effect: "agent".into(),
            params: call.params.clone(),
            intent: Hash::of(random(16)?.as_bytes()),
            flags: AttemptFlags::default(),
            handed_out_at: now_ms(),
            workspace: None,
            secrets: SecretUses::default(),
            progress: None,
        })
    }
}

/// The reservation of a call, as tokens of a request and of an answer. All count as the dearer ones.
fn reserved(call: &Call) -> Tokens {
    Tokens { output: call.reserved, ..Tokens::default() }
}

/// The name of a model as its provider gives it, which is foreign text.
fn short(name: &str) -> String {
    name.chars().filter(|letter| !letter.is_control()).take(100).collect()
}
