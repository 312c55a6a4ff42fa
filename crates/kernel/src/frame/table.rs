//! The numbers of inputs and records, and the order of their fields. Numbers are never used again; a new field is a new
//! number.

use alloc::boxed::Box;

use crate::{
    cbor::CborError,
    effect::Outcome,
    input::{Input, Policy, Start, Timer},
    plan::Decision,
    record::{Ending, Purpose, Record, SkipReason, StopReason},
};

use super::item::{Decoder, Encoder, Item};

/// Each line: a number, a variant, its fields in the order in which they are written.
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

/// Fields in the order in which they are written.
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
    11 StepFailed { instance instance, fault fault, let_through let_through }
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
}

variants! { Input,
    0 Start { 0 start }
    1 Receipt { instance instance, attempt attempt, outcome outcome }
    2 Timer { 0 timer }
    3 Decide { instance instance, gate gate, decision decision, by by, reason reason }
    4 Signal { id id, name name, payload payload }
    5 Cancel { reason reason, by by }
    6 Continue {}
}

variants! { Outcome,
    0 Done { 0 output }
    1 Failed { 0 failure }
    2 Stopped { 0 details }
    3 Interrupted {}
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
}

variants! { StopReason,
    0 Timeout {}
    1 Ending {}
}

variants! { Purpose,
    0 Approval {}
    1 Interrupted {}
}

variants! { Decision,
    0 Approve {}
    1 Deny {}
}

fields! { Policy { max_steps, max_parallel, timeout_ms } }

fields! { Start {
    execution_id, workflow_hash, plan_hash, input, variables, trigger, policy, attempt, by, workspace
} }

impl<T: Item> Item for Box<T> {
    fn write(&self, out: &mut Encoder<'_>) {
        (**self).write(out);
    }
    fn read(from: &mut Decoder<'_>) -> Result<Self, CborError> {
        T::read(from).map(Box::new)
    }
}
