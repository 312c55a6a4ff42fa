//! The inputs from outside of a case, with their times.

use mainspring_kernel::{
    diagnostic,
    plan::{Decision, PlanBytes},
    value::Value,
};

use super::reader::{Part, Reader};

/// An input from outside.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Its time.
    pub at: At,
    /// Its content.
    pub action: EntryAction,
}

/// The time of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum At {
    /// At a time, in milliseconds from the start.
    Time(u64),
    /// Right after the turn in which a step instance reaches a state for the first time.
    Step(Reached, String),
}

/// A state of a step instance that an input can wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reached {
    /// It has started.
    Started,
    /// It has completed.
    Completed,
    /// It waits: for an approval, a signal or a time.
    Waiting,
}

/// The content of an input.
#[derive(Debug, Clone, PartialEq)]
pub enum EntryAction {
    /// A decision about an approval.
    Decide {
        /// The approver's choice.
        decision: Decision,
        /// The approver.
        by: String,
    },
    /// A message for a step that waits for a signal of this name.
    Signal {
        /// The name that steps wait for.
        name: String,
        /// The data that the waiting step gets.
        payload: Value,
    },
    /// A person's message to an agent.
    Message {
        /// The conversation; `None` for the only one.
        conversation: Option<String>,
        /// The text.
        content: Value,
        /// True if the open model call is canceled.
        interrupt: bool,
        /// The person.
        by: String,
    },
    /// A cancellation.
    Cancel {
        /// A short text that becomes the execution's error.
        reason: String,
        /// The user who cancels.
        by: String,
    },
    /// The execution continues with another plan, if it can. Scenarios cannot express it.
    Migrate {
        /// The plan in its stored form.
        plan: PlanBytes,
    },
    /// The node crashes together with its calls, and recovers.
    Crash,
    /// Only the time advances.
    MonotonicMs,
}

impl Reached {
    /// All states with their names in scenarios.
    pub const ALL: [(&'static str, Self); 3] =
        [("started", Self::Started), ("completed", Self::Completed), ("waiting", Self::Waiting)];

    /// Returns the name in scenarios.
    pub fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(_, reached)| *reached == self).map_or("", |(name, _)| name)
    }
}

/// The default user of decisions and cancellations.
const WHO: &str = "owner";

const KINDS: [&str; 6] = ["decide", "signal", "message", "cancel", "crash", "tick"];
const KEYS: [&str; 8] = ["at", "decide", "signal", "message", "cancel", "crash", "tick", "by"];

pub(super) fn read<'a>(part: &Part<'a>, reader: &mut Reader<'a>) -> Vec<Entry> {
    reader.items(part).iter().filter_map(|item| entry(item, reader)).collect()
}

fn entry<'a>(part: &Part<'a>, reader: &mut Reader<'a>) -> Option<Entry> {
    reader.object(part, &KEYS)?;
    let at = match part.field("at") {
        Some(when) => at(&when, reader),
        None => {
            reader.missing(part, "at", "say when it arrives: at: {time: 30s}");
            None
        }
    };
    let kinds: Vec<&str> = KINDS.into_iter().filter(|key| part.has(key)).collect();
    let [kind] = kinds.as_slice() else {
        let message =
            format!("an entry is one thing, and this is {}", if kinds.is_empty() { "none" } else { "several" });
        let help = format!("write one of: {}", KINDS.join(", "));
        reader.problem(diagnostic::EXCLUSIVE_KEYS, &part.path, message, help);
        return None;
    };
    if part.has("by") && !matches!(*kind, "decide" | "message" | "cancel") {
        let help = "it goes with `decide`, `message` and `cancel`";
        reader.problem(
            diagnostic::MISPLACED_KEY,
            &part.path.key("by"),
            format!("`by` means nothing for `{kind}`"),
            help,
        );
    }
    let action = action(kind, part, reader);
    Some(Entry { at: at?, action: action? })
}

fn at<'a>(part: &Part<'a>, reader: &mut Reader<'a>) -> Option<At> {
    let map = reader.object(part, &["time", "started", "completed", "waiting"])?;
    if map.len() != 1 {
        let help = "write one of: time, started, completed, waiting";
        reader.problem(diagnostic::EXCLUSIVE_KEYS, &part.path, "`at` has exactly one key", help);
        return None;
    }
    if let Some(time) = part.field("time") {
        return reader.duration_ms(&time).map(At::Time);
    }
    let (step, reached) = Reached::ALL.into_iter().find_map(|(name, reached)| Some((part.field(name)?, reached)))?;
    reader.text(&step).map(|step| At::Step(reached, step))
}

fn action<'a>(kind: &str, part: &Part<'a>, reader: &mut Reader<'a>) -> Option<EntryAction> {
    let field = part.field(kind)?;
    let by = match part.field("by") {
        Some(by) => reader.text(&by)?,
        None => WHO.into(),
    };
    match kind {
        "decide" => reader.decision(&field).map(|decision| EntryAction::Decide { decision, by }),
        "cancel" => reader.text(&field).map(|reason| EntryAction::Cancel { reason, by }),
        "signal" => signal(&field, reader),
        "message" => message(&field, by, reader),
        "crash" => {
            reader.only_true(&field);
            Some(EntryAction::Crash)
        }
        _ => {
            reader.only_true(&field);
            Some(EntryAction::MonotonicMs)
        }
    }
}

fn signal<'a>(part: &Part<'a>, reader: &mut Reader<'a>) -> Option<EntryAction> {
    reader.object(part, &["name", "payload"])?;
    let Some(name) = part.field("name") else {
        reader.missing(part, "name", "write signal: {name: paid, payload: {ok: true}}");
        return None;
    };
    let payload = part.field("payload").map(|payload| payload.value.clone()).unwrap_or_default();
    reader.text(&name).map(|name| EntryAction::Signal { name, payload })
}

fn message<'a>(part: &Part<'a>, by: String, reader: &mut Reader<'a>) -> Option<EntryAction> {
    reader.object(part, &["content", "conversation", "interrupt"])?;
    let Some(content) = part.field("content") else {
        reader.missing(part, "content", "write message: {content: Begin with the newest file}");
        return None;
    };
    let conversation = match part.field("conversation") {
        Some(name) => Some(reader.text(&name)?),
        None => None,
    };
    let interrupt = part.field("interrupt").inspect(|interrupt| reader.only_true(interrupt)).is_some();
    let content = Value::Text(reader.text(&content)?);
    Some(EntryAction::Message { conversation, content, interrupt, by })
}
