//! Agents: a loop of turns. A turn is a call of a model, and then the tool calls that the model asks for.
//!
//! An agent is a [`Loop`](super::Loop) over [`Over::Turns`]. Its block has two steps: the model call, and a loop over the
//! tool calls ([`Over::Calls`]) with one step, the call of one tool. Each call is a step instance with an intent,
//! attempts and a receipt of its own.

use alloc::{collections::BTreeMap, string::String, vec::Vec};

use super::{Guard, Loop, Over, Plan, Work};
use crate::{
    budget::Budget,
    template::Template,
    value::{Map, Value},
};

/// The settings and bounds of a conversation with a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Agent {
    /// The parameters of every model call, as `{goal, context, instructions, model, …}`. They are resolved once.
    pub settings: Template,
    /// The tools that the model may call: `SERVER.TOOL`, `SERVER.*`, `workflow:NAME`, `http`, `bash` and `ask`.
    pub tools: Vec<String>,
    /// The JSON Schemas of the inputs of the workflows among the tools, set when an execution starts.
    pub input_schemas: Map,
    /// The guards of single calls, by tool or entry of `tools`, set when an execution starts. If it is empty, the guard of
    /// the step applies to each call; plans of older releases have none.
    pub tool_guards: BTreeMap<String, Option<Guard>>,
    /// The number of turns after which the agent fails.
    pub max_turns: u32,
    /// The number of tool calls after which the agent fails.
    pub max_tool_calls: u32,
    /// The JSON Schema of the final answer.
    pub answer_schema: Option<Value>,
    /// The budget of its calls; that of the execution applies as well.
    pub budget: Option<Budget>,
    /// The name of the conversation that it continues, and in which it gets messages.
    pub conversation: Option<String>,
}

/// The start of the name of a tool that is a workflow.
pub const WORKFLOW_TOOL: &str = "workflow:";

/// The tool with which an agent proposes a change of its own workflow, and the kind of its effect.
pub const PROPOSE_TOOL: &str = "propose_change";

impl Agent {
    /// The names of the workflows among its tools.
    pub fn workflows(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().filter_map(|tool| tool.strip_prefix(WORKFLOW_TOOL))
    }

    /// True if an entry of its tools has this text.
    pub(crate) fn lists(&self, entry: &str) -> bool {
        self.tools.iter().any(|listed| listed == entry)
    }

    /// Returns the guard of a call: that of the tool, or the strictest one of the entries with `*` that match. A tool that
    /// none matches has the guard of the step.
    pub(crate) fn guard_of(&self, tool: &str, of_step: Option<Guard>) -> Option<Guard> {
        if let Some(guard) = self.tool_guards.get(tool) {
            return *guard;
        }
        let entries = self.tool_guards.iter().filter_map(|(entry, guard)| Some((entry.strip_suffix('*')?, *guard)));
        let matching = entries.filter(|(prefix, _)| tool.starts_with(prefix)).map(|(_, guard)| guard);
        let rank = |guard: &Option<Guard>| guard.map(|guard| (guard.is_denied, guard.class));
        matching.max_by_key(rank).unwrap_or(of_step)
    }

    /// True if it lists tools of tool servers.
    pub fn uses_tool_servers(&self) -> bool {
        let is_built_in = |tool: &str| matches!(tool, "http" | "bash" | "ask") || tool.starts_with(WORKFLOW_TOOL);
        self.tools.iter().any(|tool| !is_built_in(tool))
    }

    /// True if the model may call the tool.
    pub fn permits(&self, tool: &str) -> bool {
        self.tools.iter().any(|listed| match listed.strip_suffix('*') {
            Some(server) if !listed.starts_with(WORKFLOW_TOOL) => tool.len() > server.len() && tool.starts_with(server),
            _ => listed == tool,
        })
    }
}

/// The part of an agent that a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentPart {
    /// The call of the model.
    Model,
    /// The loop over the tool calls of an answer.
    Calls,
    /// The call of one tool.
    Call,
}

impl AgentPart {
    /// Returns the end of the step's id. No id that is written in a definition contains `#`.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Model => "#model",
            Self::Calls => "#calls",
            Self::Call => "#call",
        }
    }
}

impl Plan {
    /// Returns the plan with the input schemas of the workflows that agents may start; `None` if there are none.
    pub fn with_input_schemas(&self, schema_of: impl Fn(&str) -> Option<Value>) -> Option<Self> {
        let has_workflows = |work: &Work| match work {
            Work::Loop(Loop { over: Over::Turns(agent), .. }) => agent.workflows().next().is_some(),
            _ => false,
        };
        if !self.steps.iter().any(|step| has_workflows(&step.work)) {
            return None;
        }
        let mut plan = self.clone();
        for step in &mut plan.steps {
            if let Work::Loop(Loop { over: Over::Turns(agent), .. }) = &mut step.work {
                let schemas = agent.workflows().filter_map(|name| Some((name.into(), schema_of(name)?)));
                let schemas: Map = schemas.collect();
                agent.input_schemas = schemas;
            }
        }
        Some(plan)
    }

    /// Returns the part of an agent that a step is; `None` for steps outside of agents.
    pub fn agent_part(&self, step: u32) -> Option<AgentPart> {
        let Work::Loop(around) = &self.step(self.parent(step)?).work else { return None };
        match (&around.over, &self.step(step).work) {
            (Over::Turns(_), Work::Loop(_)) => Some(AgentPart::Calls),
            (Over::Turns(_), _) => Some(AgentPart::Model),
            (Over::Calls, _) => Some(AgentPart::Call),
            _ => None,
        }
    }

    /// Returns the agent whose tools a step calls, with the number of the agent's step; `None` for other steps.
    pub fn agent_of_call(&self, step: u32) -> Option<(u32, &Agent)> {
        if self.agent_part(step) != Some(AgentPart::Call) {
            return None;
        }
        let owner = self.parent(self.parent(step)?)?;
        Some((owner, self.agent_of(owner)?))
    }

    /// Returns the agent that a step is.
    pub(crate) fn agent_of(&self, step: u32) -> Option<&Agent> {
        match &self.step(step).work {
            Work::Loop(Loop { over: Over::Turns(agent), .. }) => Some(agent),
            _ => None,
        }
    }

    /// Returns the agent whose model or tools a step calls, with the number of the agent's step; `None` for other steps.
    pub(crate) fn agent_of_part(&self, step: u32) -> Option<(u32, &Agent)> {
        if self.agent_part(step) != Some(AgentPart::Model) {
            return self.agent_of_call(step);
        }
        let owner = self.parent(step)?;
        Some((owner, self.agent_of(owner)?))
    }

    /// Returns the steps inside an agent's block, the model call and the loop of tool calls with its step.
    pub(crate) fn agent_steps(&self, block: u32) -> Option<AgentSteps> {
        let [model, calls] = self.block(block).steps.as_slice() else { return None };
        let Work::Loop(of) = &self.step(*calls).work else { return None };
        let call = *self.block(of.block).steps.first()?;
        Some(AgentSteps { model: *model, calls: *calls, call })
    }
}

/// The numbers of the steps inside an agent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AgentSteps {
    pub(crate) model: u32,
    pub(crate) calls: u32,
    pub(crate) call: u32,
}
