//! The goals of a skeleton: each branch, each skipped step, each handled failure, each denied gate.

use mainspring_kernel::{
    condition::Condition,
    plan::{EdgeKind, Loop, OnError, Order, Over, Plan, Work},
};

use super::{
    case::Observed,
    solver,
    world::{self, World},
};

/// A goal for one case.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Goal {
    /// A conditional takes `then` or `else`.
    Branch(u32, bool),
    /// A step runs.
    Runs(u32),
    /// A step with a `when` is skipped.
    Skipped(u32),
    /// The effect of a step fails.
    Fails(u32),
    /// A gate is denied: that of an approval, or one that the policy opens before a call.
    Denied(u32),
    /// A gate before a tool call of an agent is approved (true) or denied.
    AgentAsks(u32, bool),
}

/// Returns all goals of a plan, in the order of its steps.
pub(super) fn goals(plan: &Plan) -> Vec<Goal> {
    let mut goals = Vec::new();
    let steps = (0..plan.steps.len() as u32).filter(|step| plan.agent_part(*step).is_none());
    for number in steps.filter(|step| !is_body(plan, *step)) {
        let step = plan.step(number);
        if step.when.is_some() {
            goals.push(Goal::Skipped(number));
        }
        match &step.work {
            Work::Conditional { .. } => goals.extend([Goal::Branch(number, true), Goal::Branch(number, false)]),
            Work::Approval(_) => goals.push(Goal::Denied(number)),
            _ if world::asks(plan, number) => goals.push(Goal::Denied(number)),
            _ if world::guarded_call(plan, number).is_some() => {
                goals.extend([Goal::AgentAsks(number, true), Goal::AgentAsks(number, false)]);
            }
            _ => {}
        }
        if failing_effect(plan, number).is_some()
            && (step.on_error == OnError::Continue || leads_on(plan, number, EdgeKind::OnFailure))
        {
            goals.push(Goal::Fails(number));
        }
        let is_each = matches!(step.work, Work::Loop(Loop { is_each: true, .. }));
        if !step.work.is_container() || step.work.is_agent() || is_each {
            goals.push(Goal::Runs(number));
        }
    }
    goals
}

/// True for the body of a `forEach`, except that of a conditional or another container inside.
fn is_body(plan: &Plan, step: u32) -> bool {
    plan.is_body_of_each(step) && !plan.step(step).work.is_container()
}

/// Returns the step whose scripted result fails a step: the step itself, or the body of a `forEach`.
fn failing_effect(plan: &Plan, number: u32) -> Option<u32> {
    match &plan.step(number).work {
        Work::Effect { .. } => plan.conversation_of_message(number).is_none().then_some(number),
        work if work.is_agent() => Some(number),
        Work::Loop(Loop { is_each: true, block, .. }) => failing_effect(plan, *plan.block(*block).steps.first()?),
        _ => None,
    }
}

/// True if an edge of a kind leads from a step.
fn leads_on(plan: &Plan, number: u32, kind: EdgeKind) -> bool {
    sources_of(plan).any(|(from, _, of)| from == number && of == kind)
}

/// Returns the edges of a plan, as source, target and kind.
fn sources_of(plan: &Plan) -> impl Iterator<Item = (u32, u32, EdgeKind)> + '_ {
    plan.blocks.iter().flat_map(|block| {
        let edges: Vec<(u32, u32, EdgeKind)> = match &block.order {
            Order::Edges(graph) => (0..block.steps.len())
                .flat_map(|place| {
                    let to = block.steps[place];
                    graph
                        .incoming(place as u32)
                        .iter()
                        .map(move |edge| (block.steps[edge.from as usize], to, edge.kind))
                })
                .collect(),
            _ => Vec::new(),
        };
        edges
    })
}

impl Goal {
    fn step(&self) -> u32 {
        match self {
            Self::Branch(step, _) | Self::AgentAsks(step, _) => *step,
            Self::Runs(step) | Self::Skipped(step) | Self::Fails(step) | Self::Denied(step) => *step,
        }
    }

    /// Returns the name of the case.
    pub(super) fn title(&self, plan: &Plan) -> String {
        let id = plan.id(self.step());
        match self {
            Self::Branch(_, true) => format!("{id} takes then"),
            Self::Branch(_, false) => format!("{id} takes else"),
            Self::Runs(_) => format!("{id} runs"),
            Self::Skipped(_) => format!("{id} is skipped"),
            Self::Fails(_) => format!("{id} fails"),
            Self::Denied(_) => format!("{id} is denied"),
            Self::AgentAsks(_, true) => format!("{id} calls a tool that asks first"),
            Self::AgentAsks(_, false) => format!("a tool call of {id} is denied"),
        }
    }

    /// True if a run has reached the goal.
    pub(super) fn is_met(&self, plan: &Plan, observed: &Observed) -> bool {
        let id = plan.id(self.step());
        let status = || observed.steps.get(id).map(String::as_str);
        let is_denied = || observed.error_code.as_deref() == Some("approval_denied");
        match self {
            Self::Branch(_, side) => observed.branches.get(id).is_some_and(|taken| taken.contains(side)),
            Self::Runs(_) => {
                let is_return = matches!(plan.step(self.step()).work, Work::Return { .. });
                observed.completed.contains(id) || is_return && status() == Some("completed")
            }
            Self::Skipped(_) => observed.skipped.contains(id),
            Self::Fails(_) => observed.failed.contains(id),
            Self::Denied(_) => is_denied() && status().is_none_or(|status| status == "cancelled"),
            Self::AgentAsks(step, true) => {
                world::guarded_call(plan, *step).is_some_and(|(call, _)| observed.used.contains(&call))
            }
            Self::AgentAsks(..) => is_denied() && status() == Some("cancelled"),
        }
    }

    /// Returns the conditions on the way to the goal, each with the value that it must have.
    pub(super) fn wanted(&self, plan: &Plan) -> Vec<(Condition, bool)> {
        let number = self.step();
        let mut wanted = Vec::new();
        reach(plan, number, !matches!(self, Self::Skipped(_)), &mut wanted);
        if let (Self::Branch(_, side), Work::Conditional { condition, .. }) = (self, &plan.step(number).work) {
            wanted.push((number, condition, *side));
        }
        let of_first_item = |(step, condition, truth)| (solver::of_first_item(condition, step, plan), truth);
        wanted.into_iter().map(of_first_item).collect()
    }

    /// Changes the values that no condition describes.
    pub(super) fn apply(&self, plan: &Plan, world: &mut World) {
        match self {
            Self::Fails(step) => world.failing.extend(failing_effect(plan, *step)),
            Self::Denied(step) => world.denied = Some(*step),
            Self::AgentAsks(step, approves) => {
                world.calling = Some(*step);
                world.denied = (!approves).then_some(*step);
            }
            Self::Runs(step) => {
                // A failure handler runs after a failure only.
                let handled = sources_of(plan).filter(|(_, to, kind)| to == step && *kind == EdgeKind::OnFailure);
                world.failing.extend(handled.filter_map(|(from, ..)| failing_effect(plan, from)));
            }
            _ => {}
        }
    }
}

/// Adds the conditions under which a step runs: its own, those of the blocks around it, and those of its edges.
fn reach<'p>(plan: &'p Plan, number: u32, runs: bool, wanted: &mut Vec<(u32, &'p Condition, bool)>) {
    let step = plan.step(number);
    if let Some(owner) = plan.parent(number) {
        reach(plan, owner, true, wanted);
        match &plan.step(owner).work {
            Work::Conditional { condition, then, .. } => wanted.push((owner, condition, step.block == *then)),
            Work::Loop(Loop { over: Over::While { condition, .. }, .. }) => wanted.push((owner, condition, true)),
            _ => {}
        }
    }
    let block = plan.block(step.block);
    if let Order::Edges(graph) = &block.order
        && let Some(place) = block.steps.iter().position(|other| *other == number)
    {
        for edge in graph.incoming(place as u32) {
            wanted.extend(edge.condition.iter().map(|condition| (number, condition, true)));
            if edge.kind == EdgeKind::Skip {
                let source = plan.step(block.steps[edge.from as usize]);
                wanted.extend(source.when.iter().map(|when| (number, when, false)));
            }
        }
    }
    wanted.extend(step.when.iter().map(|when| (number, when, runs)));
}
