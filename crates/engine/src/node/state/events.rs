//! The events of a node that wait to be handled. While several organizations have work, each has its own queue. An
//! organization with thousands of costly events delays another by one event at a time.

use std::collections::{HashMap, VecDeque};

use mainspring_kernel::key::ExecutionKey;

use crate::{
    evaluator::tenant_of,
    node::protocol::NodeEvent,
    shard::{
        Event, LoadAnswer,
        tenants::{Tenant, Turns},
    },
};

/// Events that wait: those not sorted yet, in their order, and those of several organizations. Events of one
/// execution stay in order: while one waits, later ones join the same queue, even if its organization becomes known in
/// the meantime.
#[derive(Debug, Default)]
pub(in crate::node) struct Events {
    pub(in crate::node) arrived: VecDeque<NodeEvent>,
    pub(in crate::node) turns: Turns<(ExecutionKey, NodeEvent)>,
    /// The queue and the number of waiting events of each execution.
    pub(in crate::node) executions: HashMap<ExecutionKey, (Tenant, usize)>,
}

impl Events {
    pub(in crate::node) fn is_empty(&self) -> bool {
        self.arrived.is_empty() && self.turns.is_empty()
    }

    /// The number of events that were not sorted yet.
    pub(in crate::node) fn arrived(&self) -> usize {
        self.arrived.len()
    }

    pub(in crate::node) fn arrive(&mut self, event: NodeEvent) {
        self.arrived.push_back(event);
    }

    pub(in crate::node) fn push(&mut self, execution: ExecutionKey, tenant: Tenant, event: NodeEvent) {
        let (tenant, count) = self.executions.entry(execution).or_insert((tenant, 0));
        *count += 1;
        self.turns.push(*tenant, (execution, event));
    }

    /// The organizations with events, the one that has waited longest first.
    pub(in crate::node) fn tenants(&self) -> impl Iterator<Item = Tenant> {
        self.turns.tenants()
    }

    /// Returns the next event of an organization.
    pub(in crate::node) fn pop(&mut self, tenant: Tenant) -> Option<NodeEvent> {
        let (execution, event) = self.turns.pop_of(tenant)?;
        if let Some((_, count)) = self.executions.get_mut(&execution) {
            *count -= 1;
            if *count == 0 {
                self.executions.remove(&execution);
            }
        }
        Some(event)
    }
}

/// The organization that an event names. Journals that were read back would otherwise count as one organization.
pub(in crate::node) fn organization_of(event: &Event) -> Option<&str> {
    match event {
        Event::Start(new_execution) => Some(new_execution.row.organization.as_deref().unwrap_or_default()),
        Event::Loaded(_, _, answer) => match &**answer {
            LoadAnswer::Journal(journal) => Some(tenant_of(&journal.state)),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use mainspring_kernel::{
        decide::decide,
        definition::{Syntax, compile, read},
        input::{Input, ORGANIZATION_IN_TRIGGER},
        state::State,
        stored_frame::Head,
        value::Value,
    };

    use super::*;
    use crate::{journal_loader::Journal, start_request::StartRequest};

    #[test]
    fn a_journal_that_was_read_waits_for_its_own_organization() {
        let definition = r#"{"steps":[{"type":"signal","id":"s","signal":"go"}]}"#;
        let plan = compile(&read(definition.as_bytes(), Syntax::Guess).unwrap()).unwrap().plan;
        let (execution, mut request) = (ExecutionKey([1; 16]), StartRequest::new(plan.into(), "me"));
        request.trigger = Value::map([(ORGANIZATION_IN_TRIGGER, "a".into())]);
        let mut state = State::new(execution, request.plan.clone());
        decide(&mut state, &Input::Start(Box::new(request.start(execution))), 1).unwrap();
        let head = Head::sealed(&[1; 32], execution, 0, Default::default());
        let journal = Journal { state, head, bytes: 0, remote: Vec::new() };
        assert_eq!(organization_of(&Event::Loaded(execution, 1, Box::new(journal.into()))), Some("a"));
        assert_eq!(organization_of(&Event::Loaded(execution, 1, Box::new(LoadAnswer::Unknown))), None);
    }

    #[test]
    fn events_of_one_execution_stay_in_order() {
        let (mut queued, [a, b]) = (Events::default(), ["a", "b"].map(Tenant::of));
        let [first, second] = [1, 2].map(|number| ExecutionKey([number; 16]));
        let notification = |number| NodeEvent::Notified(vec![number]);
        queued.push(first, Tenant::default(), notification(1));
        queued.push(second, b, notification(2));
        queued.push(first, a, notification(3));
        queued.push(second, b, notification(4));
        let mut numbers = Vec::new();
        let mut next = || {
            let tenant = queued.tenants().next()?;
            queued.pop(tenant)
        };
        while let Some(NodeEvent::Notified(partitions)) = next() {
            numbers.extend(partitions);
        }
        assert_eq!(numbers, [1, 2, 3, 4]);
        assert!(queued.is_empty() && queued.executions.is_empty());
        queued.push(first, a, notification(5));
        assert_eq!(queued.executions[&first], (a, 1), "the organization is known by now");
    }
}
