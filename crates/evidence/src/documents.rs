//! The readable documents of an execution: receipts, approvals, rules and a summary. They derive from the journal alone, so a
//! check derives them again.

use std::fmt::Write;

use mainspring_kernel::{
    effect::{ChildEnd, Outcome},
    frame::Frame,
    hash::Hash,
    input::Input,
    json,
    plan::{Guard, Plan, Work},
    receipt::status_of,
    record::{Purpose, Record},
    state::State,
    time::rfc3339,
    value::Value,
};

/// Broken signatures that a summary lists. `signatures.ndjson` has all of them.
const BROKEN_SHOWN_MAX: usize = 100;

/// Reads the documents of an execution, frame by frame.
#[derive(Debug, Default)]
pub struct Documents {
    receipts: Vec<Value>,
    approvals: Vec<Value>,
    steps: Vec<(String, String)>,
    attempts: u64,
    erased: u64,
    frames: u64,
    started: Option<Started>,
    ended_at: Option<u64>,
    migrations: Vec<String>,
}

#[derive(Debug)]
struct Started {
    id: String,
    workflow: String,
    hash: String,
    by: String,
    at: u64,
    trigger: String,
}

impl Documents {
    /// Adds a frame, with the state after it and the number of its erased values.
    pub fn add(&mut self, state: &State, frame: &Frame, erased: usize) {
        self.frames += 1;
        self.erased += erased as u64;
        let plan = &*state.plan;
        if let Input::Receipt { instance, attempt, outcome } = &frame.input {
            self.receipts.push(Value::map([
                ("at", Value::from(rfc3339(frame.now))),
                ("attempt", (*attempt).into()),
                ("outcome", status_of(outcome).into()),
                ("outputSha256", output_of(outcome).map(digest).into()),
                ("sequence", frame.sequence.into()),
                ("step", instance.name(plan).into()),
            ]));
        }
        for record in &frame.records {
            self.record(state, frame, record);
        }
    }

    fn record(&mut self, state: &State, frame: &Frame, record: &Record) {
        let plan = &*state.plan;
        match record {
            Record::Started { execution_id, workflow_hash, by, .. } => {
                let start = state.start.as_ref();
                let trigger = start.and_then(|start| start.trigger.get("type")).and_then(Value::as_text);
                self.started = Some(Started {
                    id: execution_id.clone(),
                    workflow: plan.name.clone().unwrap_or_else(|| "(unnamed)".into()),
                    hash: workflow_hash.prefixed(),
                    by: by.clone(),
                    at: frame.now,
                    trigger: trigger.unwrap_or("manual").into(),
                });
            }
            Record::AttemptStarted { .. } => self.attempts += 1,
            Record::GateOpened { instance, gate, question, approvers, count, expires_at, on_timeout, purpose } => {
                self.approvals.push(Value::map([
                    ("approvers", approvers.iter().map(|name| Value::from(name.as_str())).collect::<Vec<_>>().into()),
                    ("at", rfc3339(frame.now).into()),
                    ("count", (*count).into()),
                    ("event", "opened".into()),
                    ("expiresAt", rfc3339(*expires_at).into()),
                    ("gate", (*gate).into()),
                    ("onTimeout", on_timeout.name().into()),
                    ("purpose", purpose_name(*purpose).into()),
                    ("question", question.value().clone()),
                    ("step", instance.name(plan).into()),
                ]));
            }
            Record::GateDecided { instance, gate, decision, by, reason } => {
                self.approvals.push(Value::map([
                    ("at", Value::from(rfc3339(frame.now))),
                    ("by", by.as_deref().into()),
                    ("decision", decision.name().into()),
                    ("event", "decided".into()),
                    ("gate", (*gate).into()),
                    ("reason", reason.value().clone()),
                    ("step", instance.name(plan).into()),
                ]));
            }
            Record::Migrated { workflow_hash, by, reason, .. } => self.migrations.push(format!(
                "- Continued with the definition {} at {}, by {}: {}",
                workflow_hash.prefixed(),
                rfc3339(frame.now),
                plain(by),
                plain(reason)
            )),
            Record::Ended { .. } => self.ended_at = Some(frame.now),
            ended if ended.ends_step() => self.step(plan, ended),
            _ => {}
        }
    }

    fn step(&mut self, plan: &Plan, record: &Record) {
        let Some(instance) = record.instance() else { return };
        let text = match record {
            Record::StepCompleted { .. } => "completed".into(),
            Record::StepFailed { fault, .. } => format!("failed ({})", fault.code),
            Record::StepCancelled { reason, .. } => format!("cancelled ({reason})"),
            Record::StepSkipped { reason, .. } => format!("skipped, since {}", reason.description()),
            _ => return,
        };
        self.steps.push((instance.name(plan), text));
    }

    /// Returns the receipts: one line for each.
    pub fn receipts(&self) -> Vec<u8> {
        lines(&self.receipts)
    }

    /// Returns the questions and decisions: one line for each.
    pub fn approvals(&self) -> Vec<u8> {
        lines(&self.approvals)
    }

    /// Returns the summary in plain language, as Markdown.
    pub fn summary(&self, state: &State) -> Vec<u8> {
        let mut out = String::new();
        let Some(started) = &self.started else { return Vec::new() };
        let Started { id, workflow, hash, by, at, trigger } = started;
        let _ = writeln!(out, "# Execution {}\n", plain(id));
        let _ = writeln!(out, "- Workflow: {} (definition {hash})", plain(workflow));
        let _ = writeln!(out, "- Started by {} at {}, trigger: {}", plain(by), rfc3339(*at), plain(trigger));
        for migration in &self.migrations {
            let _ = writeln!(out, "{migration}");
        }
        match self.ended_at {
            Some(ended) => {
                let _ = writeln!(out, "- Ended at {}: {}", rfc3339(ended), state.status().name());
            }
            None => {
                let _ = writeln!(out, "- Has not ended in this journal: {}", state.status().name());
            }
        }
        let _ = writeln!(
            out,
            "- The journal has {} frames, {} attempts of calls, {} receipts",
            self.frames,
            self.attempts,
            self.receipts.len()
        );
        let _ = writeln!(out, "- Erased values: {}", self.erased);
        let _ = writeln!(out, "\n## Steps\n");
        for (step, text) in &self.steps {
            let _ = writeln!(out, "- {}: {}", plain(step), plain(text));
        }
        let _ = writeln!(out, "\n## Approvals\n");
        let field = |approval: &Value, key: &str| plain(approval.get(key).and_then(Value::as_text).unwrap_or_default());
        for approval in &self.approvals {
            let step = field(approval, "step");
            let at = field(approval, "at");
            match approval.get("event").and_then(Value::as_text) {
                Some("opened") => {
                    let question = approval.get("question").map(|question| field(question, "prompt"));
                    let _ = writeln!(out, "- {at}: {step} asks: {}", question.unwrap_or_default());
                }
                _ => {
                    let by = approval.get("by").and_then(Value::as_text).map_or("the time limit".into(), plain);
                    let _ = writeln!(out, "- {at}: {step}: {} by {by}", field(approval, "decision"));
                }
            }
        }
        if self.approvals.is_empty() {
            let _ = writeln!(out, "None was asked for.");
        }
        out.into_bytes()
    }
}

/// Returns the section of the summary about broken signatures; empty if there are none.
pub(crate) fn broken_signatures(broken: &[String]) -> Vec<u8> {
    let mut out = String::new();
    if !broken.is_empty() {
        let _ = writeln!(out, "\n## Broken signatures\n");
        let _ = writeln!(out, "The receipts below are not proven. {} in all.\n", broken.len());
    }
    for why in broken.iter().take(BROKEN_SHOWN_MAX) {
        let _ = writeln!(out, "- signature broken at {}", plain(why));
    }
    out.into_bytes()
}

/// Returns the verdict for a call, as a configuration writes it.
fn verdict(guard: Option<Guard>) -> &'static str {
    guard.map_or("allow", |guard| guard.verdict().name())
}

/// Returns the rules for the calls of a plan, as they were when the execution started.
pub fn policy(plan: &Plan) -> Vec<u8> {
    let steps = (0..plan.steps.len() as u32).filter(|step| plan.step(*step).work.goes_out());
    let call = |step: u32| {
        let planned = plan.step(step);
        let of_tools = plan.agent_of_call(step).map(|(_, agent)| &agent.tool_guards).filter(|tools| !tools.is_empty());
        let effect = match &planned.work {
            Work::Effect { effect, .. } => effect.as_str(),
            work => work.kind(),
        };
        let tools = of_tools.map(|tools| {
            let tools = tools.iter().map(|(tool, guard)| (tool.clone(), verdict(*guard).into()));
            ("tools", Value::Map(tools.collect()))
        });
        let call = [
            ("effect", Value::from(effect)),
            ("step", plan.id(step).into()),
            ("verdict", verdict(planned.guard).into()),
        ];
        Value::map(call.into_iter().chain(tools))
    };
    lines(&steps.map(call).collect::<Vec<_>>())
}

/// Writes one line of canonical JSON for each value.
pub fn lines(values: &[Value]) -> Vec<u8> {
    let mut out = Vec::new();
    for value in values {
        out.extend_from_slice(json::canonical(value).as_bytes());
        out.push(b'\n');
    }
    out
}

/// Removes what would have a meaning in Markdown or to a terminal.
fn plain(text: &str) -> String {
    let is_plain = |letter: char| !letter.is_control() && !"`*_#<>[]|\\".contains(letter);
    let text: String = text.chars().map(|letter| if is_plain(letter) { letter } else { ' ' }).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn digest(value: &Value) -> String {
    Hash::of(json::canonical(value).as_bytes()).hex()
}

fn output_of(outcome: &Outcome) -> Option<&Value> {
    match outcome {
        Outcome::Done(output)
        | Outcome::Child { end: ChildEnd::Done(output), .. }
        | Outcome::ChildWithUsage { end: ChildEnd::Done(output), .. } => Some(output),
        _ => None,
    }
}

fn purpose_name(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Approval => "approval",
        Purpose::Interrupted => "interrupted",
        Purpose::Call => "call",
        Purpose::Budget => "budget",
        Purpose::Question => "question",
        Purpose::Form => "form",
    }
}
