//! The driver's time, shared between organizations. While several organizations have work, each has its own queue of
//! commands, and the queues take turns. An organization with thousands of costly commands delays another by one command
//! at a time.

use std::{collections::HashMap, time::Duration};

use mainspring_kernel::key::ExecutionKey;
use tokio::time::Instant;

use super::{Command, Driver, queue::Sent};
use crate::{
    evaluator::tenant_of,
    shard::{
        Event, LoadAnswer,
        tenants::{Tenant, Turns},
    },
};

/// Time limit of each part of a round: queued commands, messages, and outputs. New commands, timers and the next commit are
/// delayed by three of them and one command at most.
const ROUND: Duration = Duration::from_micros(500);

/// Commands that wait, by organization. Commands of one execution stay in order: while one waits, later ones join the
/// same queue, even if its organization becomes known in the meantime.
#[derive(Default)]
pub(super) struct PendingInput {
    turns: Turns<(ExecutionKey, Command)>,
    /// The queue and the number of waiting commands of each execution.
    executions: HashMap<ExecutionKey, (Tenant, usize)>,
}

impl PendingInput {
    pub(super) fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    fn push(&mut self, execution: ExecutionKey, tenant: Tenant, command: Command) {
        let (tenant, count) = self.executions.entry(execution).or_insert((tenant, 0));
        *count += 1;
        self.turns.push(*tenant, (execution, command));
    }

    fn pop(&mut self) -> Option<Command> {
        let (execution, command) = self.turns.pop()?;
        if let Some((_, count)) = self.executions.get_mut(&execution) {
            *count -= 1;
            if *count == 0 {
                self.executions.remove(&execution);
            }
        }
        Some(command)
    }
}

impl Driver {
    /// Handles commands in their order, or by turns while several organizations share the driver. The rest after a
    /// round is handled in the next one.
    pub(super) fn handle_commands(&mut self, commands: &mut Vec<Sent>) {
        for command in commands.drain(..) {
            let command = command.into_command();
            let is_queued = self.shard.is_shared() || !self.queued.is_empty();
            match self.subject(&command).filter(|_| is_queued) {
                Some((execution, tenant)) => self.queued.push(execution, tenant, command),
                None => self.handle_one_command(command),
            }
        }
        let began = Instant::now();
        while let Some(command) = self.queued.pop() {
            self.handle_one_command(command);
            if self.has_used_round(began) {
                return;
            }
        }
    }

    /// True if other work has waited for a round.
    pub(super) fn has_used_round(&self, began: Instant) -> bool {
        self.shard.is_shared() && began.elapsed() >= ROUND
    }

    /// The execution that a command concerns, and its organization if known.
    fn subject(&self, command: &Command) -> Option<(ExecutionKey, Tenant)> {
        let (execution, organization) = match command {
            Command::Ask(_, _, event) => (event.execution(), organization_of(event)),
            Command::Event(event) if event.is_of_execution() => (event.execution(), organization_of(event)),
            Command::Ended(execution, ..) | Command::Activate(execution) => (*execution, None),
            _ => return None,
        };
        Some((execution, organization.map_or_else(|| self.shard.tenant_key(execution), Tenant::of)))
    }
}

/// The organization that an event names. Journals that were read back would otherwise count as one organization.
fn organization_of(event: &Event) -> Option<&str> {
    match event {
        Event::Submit(submission) => Some(submission.row.organization.as_deref().unwrap_or_default()),
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
    fn commands_of_one_execution_stay_in_order() {
        let (mut queued, [a, b]) = (PendingInput::default(), ["a", "b"].map(Tenant::of));
        let [first, second] = [1, 2].map(|number| ExecutionKey([number; 16]));
        let notification = |number| Command::Notified(vec![number]);
        queued.push(first, Tenant::default(), notification(1));
        queued.push(second, b, notification(2));
        queued.push(first, a, notification(3));
        queued.push(second, b, notification(4));
        let mut numbers = Vec::new();
        while let Some(Command::Notified(partitions)) = queued.pop() {
            numbers.extend(partitions);
        }
        assert_eq!(numbers, [1, 2, 3, 4]);
        assert!(queued.is_empty() && queued.executions.is_empty());
        queued.push(first, a, notification(5));
        assert_eq!(queued.executions[&first], (a, 1), "the organization is known by now");
    }
}
