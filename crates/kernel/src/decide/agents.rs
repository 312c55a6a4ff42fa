//! Agents: starts turns and tool calls, and accepts or rejects the final answer.

use alloc::{format, string::String, vec::Vec};

use super::{Decider, evaluations::Purpose};
use crate::{
    agent::{contents, extended, is_interrupted, output, read_answer, rejection, rejections, tool_calls},
    apply::IllegalTransition,
    cbor,
    decide_version::{AGENTS_SINCE, MESSAGES_SINCE, SENT_MESSAGES_SINCE},
    failure::{Class, Failure},
    hash::Hash,
    instance::Instance,
    limits::{AGENT_CONVERSATION_BYTES_MAX, AGENT_REPAIRS_MAX, REASON_CHARS_MAX},
    plan::{Agent, AgentPart, Loop, Over, PROPOSE_TOOL, Plan, WORKFLOW_TOOL, Work},
    record::Record,
    state::{CHILD_EFFECT, MESSAGES_OF_CALL},
    value::{Map, Value},
};

/// The kind of effect of a model call.
const MODEL_EFFECT: &str = "agent";

/// The tool by which a model reads what is left of its budget.
pub(super) const BUDGET: &str = "budget";

/// The tool by which a model asks a person.
pub(super) const ASK: &str = "ask";

impl Decider<'_> {
    /// Starts an agent. Its settings are resolved now and do not change.
    pub(super) fn begin_agent(&mut self, instance: &Instance, agent: &Agent) -> Result<(), IllegalTransition> {
        if self.state.decide_version < AGENTS_SINCE {
            let id = self.state.plan.id(instance.step);
            let message = format!("step `{id}`: agents need a newer release on every node; upgrade the other nodes");
            return self.fail(instance, Failure::new(Class::Unavailable, "agents_need_upgrade", message));
        }
        if agent.conversation.is_some() && self.state.decide_version < MESSAGES_SINCE {
            let id = self.state.plan.id(instance.step);
            let message =
                format!("step `{id}`: conversations need a newer release on every node; upgrade the other nodes");
            return self.fail(instance, Failure::new(Class::Unavailable, "agents_need_upgrade", message));
        }
        if let Some(failure) = self.needs_newer_rules(agent.budget.is_some()) {
            return self.fail(instance, failure);
        }
        let settings = match agent.settings.resolve(&self.view(instance)) {
            Ok(settings) => settings,
            Err(miss) => return self.fail_for_miss(instance, &miss),
        };
        let encoded = cbor::encode(&settings);
        if self.refuses_input(instance, &settings, encoded.len())? {
            return Ok(());
        }
        // The intents of all calls depend on the settings through this hash.
        self.started(instance, settings, Some(Hash::of(&encoded)))
    }

    /// Starts the loop over the tool calls of the answer before it.
    pub(super) fn begin_calls(&mut self, instance: &Instance) -> Result<(), IllegalTransition> {
        let plan = self.state.plan.clone();
        let Some((owner, agent)) = agent_around(&plan, instance) else { return Ok(()) };
        let answer = self.answer_beside(instance);
        let calls = tool_calls(&answer);
        let earlier = self.state.blocks.loops.get(&owner).map_or(0, |turns| {
            turns.outputs.iter().filter_map(|turn| turn.get("results")?.as_list()).map(<[_]>::len).sum()
        });
        if earlier + calls.len() > agent.max_tool_calls as usize {
            let max = agent.max_tool_calls;
            let id = plan.id(owner.step);
            let message = format!("step `{id}`: the model asks for more than {max} tool calls; raise maxToolCalls");
            let code = format!("max_tool_calls_exceeded:{max}");
            return self.fail(instance, Failure::new(Class::Policy, code, message));
        }
        let ids = calls.iter().map(|call| call.get("id").cloned().unwrap_or_default());
        let ids: Vec<Value> = ids.collect();
        self.started(instance, ids.into(), None)
    }

    /// Returns the output of the model call in the turn of a step.
    fn answer_beside(&self, instance: &Instance) -> Value {
        let scope = instance.scope(&self.state.plan);
        let model = self.state.plan.block(scope.block).steps.first().map(|model| scope.instance(*model));
        let answer = model.and_then(|model| self.state.steps.get(&model)).map(|model| model.output.clone());
        answer.unwrap_or_default()
    }

    /// Returns the kind of effect of a call inside an agent and its recorded parameters, or the failure of a tool call
    /// that is not made.
    pub(super) fn agent_call(&self, instance: &Instance, part: AgentPart) -> Result<(String, Value), Failure> {
        let plan = &self.state.plan;
        match part {
            AgentPart::Call => {
                let call = self.tool_call(instance);
                let (effect, params) = tool_effect(plan, instance, &call)?;
                let id = call.get("id").cloned().unwrap_or_default();
                let input = Value::map([("id", id), ("effect", effect.as_str().into()), ("params", params)]);
                Ok((effect, input))
            }
            AgentPart::Model | AgentPart::Calls => {
                let scope = instance.scope(plan);
                let turn = instance.rounds.last().copied().unwrap_or_default();
                let owner = scope.owner(plan);
                let turns = owner.as_ref().and_then(|owner| self.state.blocks.loops.get(owner));
                let settings = owner.and_then(|owner| self.state.steps.get(&owner)?.intent).unwrap_or_default();
                let mut conversation = turns.map(|turns| turns.conversation).unwrap_or_default();
                let messages = self.state.messages_to_send(instance);
                if !messages.is_empty() {
                    conversation = extended(&conversation, &contents(messages));
                }
                let conversation = Hash::of_parts(&[&settings.0, &conversation.0]).prefixed();
                let mut input =
                    Map::from([("turn".into(), (turn + 1).into()), ("conversation".into(), conversation.into())]);
                if !messages.is_empty() {
                    input.insert(MESSAGES_OF_CALL.into(), (messages.len() as u64).into());
                }
                if let Some(tokens) = self.answer_cap(instance) {
                    input.insert("maxTokens".into(), tokens.into());
                }
                let input = Value::Map(input);
                Ok((MODEL_EFFECT.into(), input))
            }
        }
    }

    /// Returns the tool call that a step instance makes, as the model wrote it.
    fn tool_call(&self, instance: &Instance) -> Value {
        let plan = &self.state.plan;
        let place = instance.rounds.last().copied().unwrap_or_default() as usize;
        let calls = instance.scope(plan).owner(plan);
        let answer = calls.map(|calls| self.answer_beside(&calls)).unwrap_or_default();
        tool_calls(&answer).get(place).cloned().unwrap_or_default()
    }

    /// Examines the loop over the tool calls of an answer.
    pub(super) fn consider_calls(&mut self, instance: &Instance, of: &Loop) -> Result<(), IllegalTransition> {
        let Some(rounds) = self.state.blocks.loops.get(instance) else { return Ok(()) };
        let (count, begun, open) = (rounds.count.unwrap_or_default(), rounds.begun, rounds.open);
        if begun == count && open == 0 {
            // The results are in the steps of the calls, and the turn takes them from there.
            return self.complete(instance, Value::Null);
        }
        if begun < count && open < of.concurrency.min(self.max_parallel()) {
            return self.record(Record::RoundStarted { instance: instance.clone(), round: begun });
        }
        Ok(())
    }

    /// Examines an agent: starts the next turn, or ends the agent.
    pub(super) fn consider_agent(&mut self, instance: &Instance, agent: &Agent) -> Result<(), IllegalTransition> {
        let Some(turns) = self.state.blocks.loops.get(instance) else { return Ok(()) };
        if turns.open > 0 || self.is_asked(instance) {
            return Ok(());
        }
        let conversation = self.state.conversation_of_agent(instance).map(|(_, conversation)| conversation);
        if agent.conversation.is_some() && conversation.is_none() {
            // Another agent continues the conversation. Its end lets this one begin.
            return Ok(());
        }
        let past_bytes = conversation.map_or(0, |conversation| conversation.past_bytes);
        let Some(last) = turns.outputs.last() else { return self.begin_turn(instance, 0, agent) };
        if self.state.decide_version < SENT_MESSAGES_SINCE
            && turns.output_bytes + past_bytes > AGENT_CONVERSATION_BYTES_MAX
        {
            return self.fail_for_conversation(instance);
        }
        let answer = last.get("answer").cloned().unwrap_or_default();
        let begun = turns.begun;
        // A message that came before the final answer was complete is read in a turn of its own, if one is left.
        let has_messages = begun < agent.max_turns && self.state.has_unread_messages(instance) && self.fits(instance);
        let is_interrupted = conversation.is_some() && is_interrupted(&answer);
        if !tool_calls(&answer).is_empty() || last.get("rejected").is_some() || is_interrupted || has_messages {
            return self.begin_turn(instance, begun, agent);
        }
        match &agent.answer_schema {
            None => self.complete_agent(instance, Value::Null),
            Some(schema) => match read_answer(&crate::agent::text_of(&answer)) {
                Err(why) => self.reject_answer(instance, &format!("{why}")),
                Ok(value) => {
                    self.ask_check(schema.clone(), value.clone(), Purpose::Answer(instance.clone(), value));
                    Ok(())
                }
            },
        }
    }

    /// True if the next turn of an agent may send the conversation: its turns, those that it continues, and new messages.
    fn fits(&self, agent: &Instance) -> bool {
        if self.state.decide_version < SENT_MESSAGES_SINCE {
            return true;
        }
        let own = self.state.blocks.loops.get(agent).map_or(0, |turns| turns.output_bytes);
        let before = self.state.conversation_of_agent(agent).map_or(0, |(_, conversation)| {
            let unread = conversation.unread.iter().map(|message| cbor::byte_count(&message.content) as u64);
            conversation.past_bytes + unread.sum::<u64>()
        });
        own + before <= AGENT_CONVERSATION_BYTES_MAX
    }

    fn fail_for_conversation(&mut self, instance: &Instance) -> Result<(), IllegalTransition> {
        let id = self.state.plan.id(instance.step);
        let message = format!(
            "step `{id}`: the conversation takes more than {AGENT_CONVERSATION_BYTES_MAX} bytes; have tools return less"
        );
        self.fail(instance, Failure::new(Class::Policy, "agent_conversation_too_large", message))
    }

    fn begin_turn(&mut self, instance: &Instance, turn: u32, agent: &Agent) -> Result<(), IllegalTransition> {
        if !self.fits(instance) {
            return self.fail_for_conversation(instance);
        }
        if turn < agent.max_turns {
            return self.record(Record::RoundStarted { instance: instance.clone(), round: turn });
        }
        let (id, max) = (self.state.plan.id(instance.step), agent.max_turns);
        let message = format!("step `{id}`: {max} turns have not led to a final answer; raise maxTurns");
        self.fail(instance, Failure::new(Class::Policy, format!("max_turns_exceeded:{max}"), message))
    }

    /// Ends an agent with its final answer.
    pub(super) fn complete_agent(&mut self, instance: &Instance, value: Value) -> Result<(), IllegalTransition> {
        let turns = self.state.blocks.loops.get(instance).map_or(&[][..], |turns| &turns.outputs);
        let output = output(turns, value);
        let (size, bytes_max) = (cbor::byte_count(&output), self.output_bytes_max());
        if size > bytes_max {
            let id = self.state.plan.id(instance.step);
            let message = format!("step `{id}`: its output takes {size} bytes and at most {bytes_max} are kept");
            return self.fail(instance, Failure::new(Class::Policy, "output_too_large", message));
        }
        self.complete(instance, output)
    }

    /// Rejects a final answer. The model gets the reason and answers again, a bounded number of times.
    pub(super) fn reject_answer(&mut self, instance: &Instance, why: &str) -> Result<(), IllegalTransition> {
        let turns = self.state.blocks.loops.get(instance).map_or(&[][..], |turns| &turns.outputs);
        if rejections(turns) < AGENT_REPAIRS_MAX {
            let reason = Value::from(rejection(why));
            return self.record(Record::AnswerRejected { instance: instance.clone(), reason: reason.into() });
        }
        let id = self.state.plan.id(instance.step);
        let message =
            format!("step `{id}`: the answer does not match its outputSchema after {AGENT_REPAIRS_MAX} repairs: {why}");
        self.fail(instance, Failure::new(Class::Invalid, "agent_answer_invalid", message))
    }
}

/// Returns the agent around the loop of tool calls.
fn agent_around<'p>(plan: &'p Plan, calls: &Instance) -> Option<(Instance, &'p Agent)> {
    let owner = calls.scope(plan).owner(plan)?;
    match &plan.step(owner.step).work {
        Work::Loop(Loop { over: Over::Turns(agent), .. }) => Some((owner, agent)),
        _ => None,
    }
}

/// Translates a tool call to an effect. A call of a tool that the step does not list is not made.
fn tool_effect(plan: &Plan, instance: &Instance, call: &Value) -> Result<(String, Value), Failure> {
    let refused = |class, code: &str, message: String| Err(Failure::new(class, code, message));
    let calls = instance.scope(plan).owner(plan);
    let agent = calls.as_ref().and_then(|calls| agent_around(plan, calls)).map(|(_, agent)| agent);
    let name = call.get("name").and_then(Value::as_text).unwrap_or_default();
    if !agent.is_some_and(|agent| agent.permits(name)) {
        let listed = agent.map_or_else(String::new, |agent| agent.tools.join(", "));
        let message =
            format!("the tool {} is not among the tools of the step: {listed}", crate::diagnostic::quoted(name));
        return refused(Class::Policy, "tool_not_listed", message);
    }
    let is_workflow = name.starts_with(WORKFLOW_TOOL);
    let Some(arguments) = call.get("arguments").and_then(Value::as_map) else {
        let message = format!("the arguments of `{name}` are not a JSON object");
        return refused(Class::Invalid, "tool_arguments_invalid", message);
    };
    if is_workflow {
        let workflow = name.strip_prefix(WORKFLOW_TOOL).unwrap_or_default();
        let (input, variables) = (arguments.clone().into(), Map::new().into());
        let params = Value::map([("workflow", workflow.into()), ("input", input), ("variables", variables)]);
        return Ok((CHILD_EFFECT.into(), params));
    }
    Ok(match name {
        "http" | PROPOSE_TOOL => (name.into(), arguments.clone().into()),
        BUDGET => (BUDGET.into(), Value::Map(Map::new())),
        ASK => {
            let question = arguments.get("question").filter(|question| {
                question.as_text().is_some_and(|text| (1..=REASON_CHARS_MAX).contains(&text.trim().chars().count()))
            });
            let (Some(question), 1) = (question, arguments.len()) else {
                let message =
                    format!("the arguments of `ask` are {{question}}, a text of at most {REASON_CHARS_MAX} characters");
                return refused(Class::Invalid, "tool_arguments_invalid", message);
            };
            (ASK.into(), Value::map([("question", question.clone())]))
        }
        "bash" => {
            let command = arguments.get("command").filter(|command| command.as_text().is_some());
            let (Some(command), 1) = (command, arguments.len()) else {
                let message = "the arguments of `bash` are {command}, a text".into();
                return refused(Class::Invalid, "tool_arguments_invalid", message);
            };
            ("bash".into(), Value::map([("command", command.clone())]))
        }
        tool => {
            let arguments: Map = arguments.clone();
            ("tool".into(), Value::map([("tool", tool.into()), ("arguments", arguments.into())]))
        }
    })
}

/// Returns the parameters of a model call as they are sent: the settings, the tools and the turns so far. None of them is
/// recorded again.
pub(super) fn model_params(state: &crate::state::State, instance: &Instance) -> Option<Value> {
    let plan = &state.plan;
    let owner = instance.scope(plan).owner(plan)?;
    let Work::Loop(Loop { over: Over::Turns(agent), .. }) = &plan.step(owner.step).work else { return None };
    let mut params = state.steps.get(&owner)?.input.as_map()?.clone();
    let turns = state.blocks.loops.get(&owner).map_or(&[][..], |turns| &turns.outputs);
    let tools: Vec<Value> = agent.tools.iter().map(|tool| tool.as_str().into()).collect();
    if let Some(tokens) = state.steps.get(instance).and_then(|step| step.input.get("maxTokens")) {
        params.insert("maxTokens".into(), tokens.clone());
    }
    if let Some(model) = plan.models.as_ref().and_then(|models| models.default.as_deref()) {
        params.entry("model".into()).or_insert_with(|| model.into());
    }
    params.insert("tools".into(), tools.into());
    if !agent.input_schemas.is_empty() {
        params.insert("inputSchemas".into(), agent.input_schemas.clone().into());
    }
    params.insert("turns".into(), crate::agent::to_value(turns));
    let opening = state.blocks.loops.get(&owner).map_or(&[][..], |turns| &turns.opening);
    if !opening.is_empty() {
        params.insert("messages".into(), opening.to_vec().into());
    }
    let past = state.conversation_of_agent(&owner).map_or(&[][..], |(_, conversation)| &conversation.past);
    if !past.is_empty() {
        params.insert("past".into(), past.to_vec().into());
    }
    if let Some(schema) = &agent.answer_schema {
        params.insert("outputSchema".into(), schema.clone());
    }
    Some(params.into())
}
