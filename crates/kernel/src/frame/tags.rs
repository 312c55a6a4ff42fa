//! The numbers of inputs and records in frames, and the order of their fields.
//!
//! A number is never reused, and the fields of a number never change, because journals of older releases must stay
//! readable. A variant that needs another field gets a new number. Structs may get optional fields at their end.

use alloc::boxed::Box;

use crate::{
    budget::{Budget, Limits, Usage},
    cbor::CborError,
    effect::{ChildEnd, Outcome, PinnedTool, Report},
    evaluation::Evaluated,
    input::{Input, Lineage, Parent, Pinned, Policy, Queue, Start, Timer},
    leases::LeaseChange,
    plan::Decision,
    record::{Ending, FailureDisposition, HaltReason, Purpose, Record, SkipReason, StopReason},
};

use super::codec::{Decoder, Encoder, Item};

/// Each line has the number of a variant, its name, and its fields in encoding order.
macro_rules! variants {
    ($type:ident, $($number:literal $variant:ident { $($field:tt $name:ident),* })*) => {
        impl Item for $type {
            fn write(&self, out: &mut Encoder<'_>) {
                match self {
                    $(Self::$variant { $($field: $name),* } => {
                        out.writer.array(1 $(+ { let _ = stringify!($field); 1 })*);
                        out.writer.unsigned($number);
                        $($name.write(out);)*
                    })*
                }
            }
            fn read(from: &mut Decoder<'_>) -> Result<Self, CborError> {
                let parts = from.reader.array()?;
                match from.reader.unsigned()? {
                    $($number if parts == 1 $(+ { let _ = stringify!($field); 1 })* => {
                        $(let $name = Item::read(from)?;)*
                        Ok(Self::$variant { $($field: $name),* })
                    })*
                    _ => Err(from.reader.error(concat!("unknown here, perhaps of a newer release: ", stringify!($type)))),
                }
            }
        }
    };
}

/// Lists the fields of a struct in encoding order.
macro_rules! fields {
    ($type:ident { $($field:ident),* }) => {
        impl Item for $type {
            fn write(&self, out: &mut Encoder<'_>) {
                out.writer.array(0 $(+ { let _ = stringify!($field); 1 })*);
                $(self.$field.write(out);)*
            }
            fn read(from: &mut Decoder<'_>) -> Result<Self, CborError> {
                if from.reader.array()? != 0 $(+ { let _ = stringify!($field); 1 })* {
                    return Err(from.reader.error(concat!("another number of parts: ", stringify!($type))));
                }
                Ok(Self { $($field: Item::read(from)?),* })
            }
        }
    };
}

variants! { Record,
    0 Started {
        execution_id execution_id, workflow_hash workflow_hash, plan_hash plan_hash, decide_version decide_version,
        policy policy, attempt attempt, by by, input input, variables variables, context context, deadline deadline
    }
    1 StepSkipped { instance instance, reason reason }
    2 StepStarted { instance instance, input input, intent intent }
    3 BranchTaken { instance instance, block block }
    4 AttemptStarted { instance instance, attempt attempt, timeout_at timeout_at }
    5 AttemptStopping { instance instance, attempt attempt, reason reason }
    6 AttemptFailed { instance instance, attempt attempt, fault fault, retry_at retry_at }
    7 WaitStarted { instance instance, until until }
    8 GateOpened {
        instance instance, gate gate, question question, approvers approvers, count count, expires_at expires_at,
        on_timeout on_timeout, purpose purpose
    }
    9 GateDecided { instance instance, gate gate, decision decision, by by, reason reason }
    10 StepCompleted { instance instance, output output }
    11 StepFailed { instance instance, fault fault, disposition disposition }
    12 StepCancelled { instance instance, reason reason }
    13 SignalKept { id id, name name, payload payload }
    14 SignalTaken { instance instance, id id }
    15 CancelRequested { reason reason, by by }
    16 DeadlineHeld { remaining_ms remaining_ms }
    17 DeadlineSet { at at }
    18 EndingBegun { ending ending }
    19 Ended { with_failures with_failures }
    20 TurnSplit {}
    21 TurnJoined {}
    22 RoundStarted { instance instance, round round }
    23 RoundEnded { instance instance, round round }
    24 FailureBoundReached { fault fault }
    25 LineageSet { lineage lineage }
    26 StepLogged { instance instance, lines lines }
    27 ChildWaits { instance instance, count count }
    28 ParentNotified {}
    29 Queued { queue queue }
    30 Admitted {}
    31 ExecutionsGiven { instance instance, count count }
    32 ExecutionsReturned { instance instance, count count }
    33 TurnYielded { results results }
    34 AnswerRejected { instance instance, reason reason }
    35 BudgetReserved { instance instance, amount amount }
    36 BudgetSettled { instance instance, amount amount }
    37 BudgetRaised { agent agent, amount amount }
    38 BudgetWarned { agent agent, usage usage }
    39 FinallyBegun { outcome outcome, deadline deadline }
    40 FinallyHalted { reason reason, by by }
    41 FinallyEnded {}
    42 MessageKept { conversation conversation, from from, by by, id id, content content }
    43 MessagesRead { instance instance, count count }
    47 ToolsPinned { tools tools }
    48 AttemptContinued { instance instance, attempt attempt, handle handle }
    49 AttemptResumed { instance instance, attempt attempt, timeout_at timeout_at }
    52 LeaseAwaited { instance instance, attempt attempt, lease lease, amount amount }
    53 LeaseChanged { lease lease, change change }
    54 Migrated {
        workflow_hash workflow_hash, plan_hash plan_hash, version version, policy policy, by by, reason reason, plan plan
    }
}

variants! { Input,
    0 Start { 0 start }
    1 Receipt { instance instance, attempt attempt, outcome outcome }
    2 Timer { 0 timer }
    3 Decide { instance instance, gate gate, decision decision, by by, reason reason }
    4 Signal { id id, name name, payload payload }
    5 Cancel { reason reason, by by }
    6 Continue {}
    7 ChildWaits { instance instance, attempt attempt, count count }
    8 Admit {}
    9 SkipCleanup { by by }
    10 Message { id id, conversation conversation, content content, interrupt interrupt, by by }
    20 Lease { lease lease, change change }
    21 Migrate { plan plan, version version, by by, reason reason }
}

variants! { LeaseChange,
    0 Granted { amount amount, until until, notice notice }
    1 Refused { notice notice }
    2 Returned { spent spent }
}

variants! { Outcome,
    0 Done { 0 output }
    1 Failed { 0 failure }
    2 Stopped { 0 details }
    3 Interrupted {}
    4 Cancelled { 0 reason }
    5 Child { end end, executions executions }
    6 ChildWithUsage { end end, executions executions, usage usage, raised raised }
    7 Reported { 0 report }
}

variants! { Report,
    0 Tools { 0 tools }
    1 Continued { 0 handle }
    2 Asked { question question, handle handle }
}

fields! { PinnedTool { name, digest } }

variants! { ChildEnd,
    0 Done { 0 output }
    1 Failed { 0 failure }
    2 Cancelled { 0 reason }
}

variants! { Timer,
    0 Deadline {}
    1 Attempt { 0 instance, 1 attempt }
    2 Retry { 0 instance, 1 attempt }
    3 Sleep { 0 instance }
    4 Gate { 0 instance, 1 gate }
}

variants! { Ending,
    0 Completed { output output }
    1 Failed { fault fault, instance instance, stops stops }
    2 Cancelled { reason reason }
}

variants! { SkipReason,
    0 ConditionFalse {}
    1 NoEdgeTaken {}
    2 ExecutionFailing {}
}

variants! { StopReason,
    0 Timeout {}
    1 Ending {}
    2 Message {}
}

variants! { HaltReason,
    0 Cancelled {}
    1 Timeout {}
    2 Limit {}
}

variants! { Purpose,
    0 Approval {}
    1 Interrupted {}
    2 Call {}
    3 Budget {}
    4 Question {}
    5 Form {}
}

variants! { Queue,
    0 User {}
    1 Organization {}
    2 Workflow {}
    3 Admission {}
}

variants! { Decision,
    0 Approve {}
    1 Deny {}
}

/// The last field was added later. It is encoded only if it has a value, so older policies keep their bytes.
impl Item for Policy {
    fn write(&self, out: &mut Encoder<'_>) {
        out.writer.array(3 + usize::from(self.max_output_bytes.is_some()));
        self.max_steps.write(out);
        self.max_parallel.write(out);
        self.timeout_ms.write(out);
        if let Some(bytes) = self.max_output_bytes {
            bytes.write(out);
        }
    }
    fn read(from: &mut Decoder<'_>) -> Result<Self, CborError> {
        let parts = from.reader.array()?;
        if !(3..=4).contains(&parts) {
            return Err(from.reader.error("another number of parts: Policy"));
        }
        Ok(Self {
            max_steps: Item::read(from)?,
            max_parallel: Item::read(from)?,
            timeout_ms: Item::read(from)?,
            max_output_bytes: if parts == 4 { Some(Item::read(from)?) } else { None },
        })
    }
}

/// The last two fields were added later. They are encoded only if one of them has a value, so older lineages keep their
/// bytes.
impl Item for Lineage {
    fn write(&self, out: &mut Encoder<'_>) {
        out.writer.array(if self.budget.is_some() { 5 } else { 3 + usize::from(self.executions.is_some()) });
        self.parent.write(out);
        self.depth.write(out);
        self.workflows.write(out);
        match (&self.executions, &self.budget) {
            (executions, Some(budget)) => {
                executions.write(out);
                budget.write(out);
            }
            (Some(executions), None) => executions.write(out),
            (None, None) => {}
        }
    }
    fn read(from: &mut Decoder<'_>) -> Result<Self, CborError> {
        let parts = from.reader.array()?;
        if !(3..=5).contains(&parts) {
            return Err(from.reader.error("another number of parts: Lineage"));
        }
        Ok(Self {
            parent: Item::read(from)?,
            depth: Item::read(from)?,
            workflows: Item::read(from)?,
            executions: match parts {
                3 => None,
                4 => Some(Item::read(from)?),
                _ => Item::read(from)?,
            },
            budget: if parts == 5 { Some(Item::read(from)?) } else { None },
        })
    }
}

fields! { Usage { tokens, cost, model_calls, tool_calls, time_ms } }

fields! { Budget { limits, asks, warn_percent } }

impl Item for Limits {
    fn write(&self, out: &mut Encoder<'_>) {
        out.writer.array(self.0.len());
        self.0.iter().for_each(|limit| limit.write(out));
    }
    fn read(from: &mut Decoder<'_>) -> Result<Self, CborError> {
        let mut limits = Self::default();
        if from.reader.array()? != limits.0.len() {
            return Err(from.reader.error("another number of limits"));
        }
        for limit in &mut limits.0 {
            *limit = Item::read(from)?;
        }
        Ok(limits)
    }
}

fields! { Parent { execution, instance, attempt } }

fields! { Pinned { name, workflow_hash, plan_hash } }

/// The last two fields were added later. The lineage is encoded if there is one, and as null if only a queue follows;
/// the queue is encoded only if there is one.
impl Item for Start {
    fn write(&self, out: &mut Encoder<'_>) {
        let more = if self.queue.is_some() { 2 } else { usize::from(self.lineage.is_some()) };
        out.writer.array(START_PARTS + more);
        self.execution_id.write(out);
        self.workflow_hash.write(out);
        self.plan_hash.write(out);
        self.input.write(out);
        self.variables.write(out);
        self.trigger.write(out);
        self.policy.write(out);
        self.attempt.write(out);
        self.by.write(out);
        self.workspace.write(out);
        match (&self.lineage, &self.queue) {
            (lineage, Some(queue)) => {
                lineage.write(out);
                queue.write(out);
            }
            (Some(lineage), None) => lineage.write(out),
            (None, None) => {}
        }
    }
    fn read(from: &mut Decoder<'_>) -> Result<Self, CborError> {
        let parts = from.reader.array()?;
        if !(START_PARTS..=START_PARTS + 2).contains(&parts) {
            return Err(from.reader.error("another number of parts: Start"));
        }
        Ok(Self {
            execution_id: Item::read(from)?,
            workflow_hash: Item::read(from)?,
            plan_hash: Item::read(from)?,
            input: Item::read(from)?,
            variables: Item::read(from)?,
            trigger: Item::read(from)?,
            policy: Item::read(from)?,
            attempt: Item::read(from)?,
            by: Item::read(from)?,
            workspace: Item::read(from)?,
            lineage: match parts - START_PARTS {
                0 => None,
                1 => Some(Item::read(from)?),
                _ => Item::read(from)?,
            },
            queue: if parts == START_PARTS + 2 { Some(Item::read(from)?) } else { None },
        })
    }
}

/// Number of fields of a start without lineage and queue.
const START_PARTS: usize = 10;

/// Encoded as `[succeeded, value or failure, log]`.
impl Item for Evaluated {
    fn write(&self, out: &mut Encoder<'_>) {
        out.writer.array(3);
        out.writer.bool(self.outcome.is_ok());
        match &self.outcome {
            Ok(value) => value.write(out),
            Err(failure) => failure.write(out),
        }
        self.log.write(out);
    }
    fn read(from: &mut Decoder<'_>) -> Result<Self, CborError> {
        if from.reader.array()? != 3 {
            return Err(from.reader.error("the result of an evaluation has three parts"));
        }
        let outcome = if from.reader.bool()? { Ok(Item::read(from)?) } else { Err(Item::read(from)?) };
        Ok(Self { outcome, log: Item::read(from)? })
    }
}

/// Encoded as a boolean, true for tolerated, as before `Handled` existed; that variant is the number 2.
impl Item for FailureDisposition {
    fn write(&self, out: &mut Encoder<'_>) {
        match self {
            Self::Failed => out.writer.bool(false),
            Self::Tolerated => out.writer.bool(true),
            Self::Handled => out.writer.unsigned(2),
        }
    }
    fn read(from: &mut Decoder<'_>) -> Result<Self, CborError> {
        if !from.reader.is_bool() {
            return match from.reader.unsigned()? {
                2 => Ok(Self::Handled),
                _ => Err(from.reader.error("an unknown disposition of a failure")),
            };
        }
        from.reader.bool().map(|tolerated| if tolerated { Self::Tolerated } else { Self::Failed })
    }
}

impl<T: Item> Item for Box<T> {
    fn write(&self, out: &mut Encoder<'_>) {
        (**self).write(out);
    }
    fn read(from: &mut Decoder<'_>) -> Result<Self, CborError> {
        T::read(from).map(Box::new)
    }
}
