//! `workflow propose`: has a model of this machine's settings write a change, and prints it as a proposal. Nothing is
//! stored: the caller sends the proposal to the server whose workflow it changes.

use std::{io::Write, time::Duration};

use mainspring_authoring::change_request::{Call, ChangeRequest, Draft, Intent, Tokens, mistakes};
use mainspring_effects::{CancelHandle, Executor, sandbox::Profiles, shell::contain::Scripts};
use mainspring_engine::clock::now_ms;
use mainspring_kernel::{
    budget::Usage,
    definition::{Compiled, denied_calls},
    diagnostic::Diagnostic,
    document::Document,
    effect::{Attempt, AttemptFlags, Outcome},
    effect_policy::EffectPolicy,
    failure::{Class, Failure},
    hash::Hash,
    json::compact,
    key::ExecutionKey,
    secret::SecretUses,
    time::rfc3339,
    value::Value,
};
use mainspring_review::{Version, review};
use tokio::time::timeout;

use super::{Answer, arguments::Propose, block_on, payload, run::invalid, say};
use crate::{
    error::{CliError, Exit},
    evaluator::compile,
    idempotency::hash_mismatch,
    models, read_limited,
    secrets::NodeSecrets,
    server_settings::{ObjectSettings, object_settings},
    tool_policy,
    tool_servers::{self, ToolServers},
};

/// Longest wait for one answer of the model, and for the lists of tools.
const CALL_TIMEOUT: Duration = Duration::from_secs(120);
const TOOLS_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) fn propose(propose: &Propose) -> Answer {
    match proposal(propose) {
        Ok(proposal) => (Exit::Fine, envelope("proposal_created", proposal, Value::Null)),
        Err(error) => {
            say(&error.failure.message);
            (error.exit, envelope("proposal_failed", Value::Null, error.failure.to_value()))
        }
    }
}

fn envelope(status: &str, proposal: Value, error: Value) -> Value {
    let is_ok = proposal != Value::Null;
    Value::map([("ok", is_ok.into()), ("status", status.into()), ("proposal", proposal), ("error", error)])
}

fn proposal(propose: &Propose) -> Result<Value, CliError> {
    let bytes = read_limited::stdin().map_err(|why| CliError::bad_input("unreadable", why))?;
    let document = payload::read_workflow(&bytes)?;
    let base = compile(&document).map_err(|diagnostics| invalid(&diagnostics))?;
    check_base(propose, &base)?;
    let settings = object_settings()?;
    let policy = tool_policy::of_settings(&settings)?;
    block_on(async {
        let writing = Writing { propose, settings: &settings, policy: &policy, base: &base };
        let (draft, compiled) = writing.draft(&document.value).await?;
        let sides = [&base, &compiled].map(|compiled| Version { compiled, source: None });
        let [old, new] = sides;
        let report = review(old, new);
        Ok(Value::map([
            ("baseHash", base.plan.workflow_hash.prefixed().into()),
            ("proposedWorkflow", draft.definition),
            ("summary", draft.summary.into()),
            ("rationale", draft.rationale.into()),
            ("riskLevel", report.risk.name().into()),
            ("diff", report.diff.as_str().into()),
        ]))
    })
}

/// Checks that the change is one of the caller's definition, and that this permits changes.
fn check_base(propose: &Propose, base: &Compiled) -> Result<(), CliError> {
    let Some(wanted) = Hash::parse(&propose.base_hash) else {
        let message =
            format!("--base-hash: {:?} is not a SHA-256; `workflow validate` prints the hash", propose.base_hash);
        return Err(CliError::contract("hash_mismatch", message));
    };
    if wanted != base.plan.workflow_hash {
        return Err(hash_mismatch("the definition has", base.plan.workflow_hash, wanted));
    }
    if base.plan.constraints.allow_self_modification {
        return Ok(());
    }
    let message = format!(
        "self-modification is disabled for the workflow `{}`: its definition must have `constraints.allowSelfModification: true`",
        propose.workflow_id
    );
    Err(CliError { exit: Exit::Policy, failure: Failure::new(Class::Policy, "self_modification_disabled", message) })
}

/// A proposal that is being written.
struct Writing<'a> {
    propose: &'a Propose,
    settings: &'a ObjectSettings,
    policy: &'a EffectPolicy,
    base: &'a Compiled,
}

impl Writing<'_> {
    /// Repeats the request until an answer is another definition that compiles.
    async fn draft(&self, present: &Value) -> Result<(Draft, Compiled), CliError> {
        let secrets = NodeSecrets::of(self.settings)?;
        let ToolServers { source, list, .. } =
            tool_servers::open(self.settings, (&Scripts::Uncontained, &Profiles::default()), Some(&secrets))?;
        let agents = models::executor(self.settings, source, Some(&secrets));
        let tools = match list {
            Some(list) => timeout(TOOLS_TIMEOUT, list.list(None)).await.unwrap_or_default(),
            None => Vec::new(),
        };
        let terms = models::terms(self.settings)?.unwrap_or_default();
        let max_tokens = terms.of(None).and_then(|term| term.max_tokens);
        let intent = Intent { text: &self.propose.intent, present, tools: &tools };
        let refused = |why| CliError::bad_input("bad_request", format!("--intent: {why}"));
        let mut request = ChangeRequest::new(&intent, None, max_tokens).map_err(refused)?;
        loop {
            let call = request.next_call().map_err(|why| not_written(&why))?;
            let answer = self.call(&*agents, &call).await?;
            let Some(draft) = request.take(&answer) else { continue };
            match self.checked(&draft.definition) {
                Ok(compiled) if compiled.plan.workflow_hash == self.base.plan.workflow_hash => {
                    request.reject("The definition is the present one: nothing is changed".into());
                }
                Ok(compiled) => return Ok((draft, compiled)),
                Err(found) => request.reject(mistakes(&found)),
            }
        }
    }

    /// Compiles a definition, and refuses calls that the policy of this machine denies.
    fn checked(&self, definition: &Value) -> Result<Compiled, Vec<Diagnostic>> {
        let document = Document::placeless(definition.clone());
        let compiled = compile(&document)?;
        match denied_calls(&compiled, &document, self.policy, None) {
            denied if denied.is_empty() => Ok(compiled),
            denied => Err(denied),
        }
    }

    /// Performs one call. It is printed as an event before and after it.
    async fn call(&self, agents: &dyn Executor, call: &Call) -> Result<Value, CliError> {
        let reserved = Usage { tokens: call.reserved, ..Usage::default() };
        self.event("proposal.model_call", call, [("request", digest(&call.params)), ("reserved", reserved.to_value())]);
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|error| CliError::internal("no_randomness", error.to_string()))?;
        let attempt = attempt(call, Hash::of(&random));
        let (cancel, signal) = CancelHandle::pair();
        let outcome = timeout(CALL_TIMEOUT, agents.perform(&attempt, signal)).await;
        cancel.cancel();
        match outcome {
            Ok(Outcome::Done(answer)) => {
                let used =
                    Tokens::of_answer(&answer).map_or(call.reserved, |used| used.input.saturating_add(used.output));
                let used = Usage { tokens: used, ..Usage::default() };
                self.event("proposal.model_answer", call, [("answer", digest(&answer)), ("used", used.to_value())]);
                Ok(answer)
            }
            Ok(Outcome::Failed(failure)) => Err(CliError { exit: Exit::Failed, failure }),
            Ok(_) => {
                Err(not_written("the connection to the model ended before its answer; the call may have been paid for"))
            }
            Err(_) => Err(not_written(&format!("the model did not answer within {} seconds", CALL_TIMEOUT.as_secs()))),
        }
    }

    /// Prints an event on standard error.
    fn event<const N: usize>(&self, kind: &str, call: &Call, more: [(&'static str, Value); N]) {
        let own = [
            ("type", Value::from(kind)),
            ("workflowId", self.propose.workflow_id.as_str().into()),
            ("round", (call.round as u64).into()),
            ("ts", rfc3339(now_ms()).into()),
        ];
        let event = Value::map(own.into_iter().chain(more));
        // A closed pipe does not change the result.
        let _ = writeln!(std::io::stderr().lock(), "{}", compact(&event));
    }
}

fn digest(value: &Value) -> Value {
    Hash::of(compact(value).as_bytes()).prefixed().into()
}

fn not_written(why: &str) -> CliError {
    let failure = Failure::new(Class::Unavailable, "proposal_not_written", format!("no change was proposed: {why}"));
    CliError { exit: Exit::Failed, failure }
}

fn attempt(call: &Call, intent: Hash) -> Attempt {
    let execution = ExecutionKey::new(0, [0; 10]);
    Attempt {
        execution,
        root: execution,
        execution_id: "propose".into(),
        organization: None,
        workflow_id: None,
        step: "propose".into(),
        number: 1,
        effect: "agent".into(),
        params: call.params.clone(),
        intent,
        flags: AttemptFlags::default(),
        handed_out_at: now_ms(),
        workspace: None,
        secrets: SecretUses::default(),
        progress: None,
    }
}
