//! Metrics of an engine, created once at its start.
//!
//! Counting neither looks up nor formats labels. Without a recorder, every handle does nothing. Values of labels are
//! fixed and never names given by users. `docs/reference/metrics.md` describes each metric.

mod described;

use std::time::Duration;

use mainspring_effects::Adopted;
use mainspring_kernel::effect::Outcome;
use mainspring_store::InboxEntry;
use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};

use crate::{
    membership::Heartbeat,
    shard::{
        LoadAnswer,
        counters::{COMMIT_ANSWERS, Counters, ENDINGS, INPUTS, StateCounts},
    },
    trace_spans::outcome_label,
};

/// Effects with a label of their own. The last one stands for all others.
const EFFECTS: [&str; 3] = ["bash", "http", "other"];

/// Outcomes of attempts, as [`outcome_label`] names them.
const OUTCOMES: [&str; 5] = ["done", "failed", "stopped", "interrupted", "cancelled"];

/// The quantities that agents use, in the order of `Usage::amounts`.
const QUANTITIES: [&str; 5] = ["tokens", "cost_billionths", "model_calls", "tool_calls", "time_ms"];

const RECOVERIES: [&str; 2] = ["never_started", "interrupted"];
const LOADS: [&str; 6] = ["journal", "unknown", "quarantined", "broken", "newer", "unavailable"];
const HEARTBEATS: [&str; 3] = ["ok", "expired", "unreachable"];

/// Index into `EFFECTS`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Effect(usize);

impl Effect {
    pub(super) fn of(name: &str) -> Self {
        Self(EFFECTS.iter().position(|effect| *effect == name).unwrap_or(EFFECTS.len() - 1))
    }
}

#[derive(Clone)]
pub(super) struct Metrics {
    pub(super) commits: Commits,
    pub(super) queue_depth: Gauge,
    pub(super) queue_age: Histogram,
    pub(super) loads: Loads,
    pub(super) inbox: Inbox,
    pub(super) attempts: Attempts,
    pub(super) evaluation_time: Histogram,
    pub(super) partitions: Partitions,
    pub(super) quarantined: Counter,
    pub(super) forwarded: [Counter; 2],
    pub(super) handed_off: Counter,
    in_memory: [Gauge; 4],
    places: [Gauge; 2],
    turns: [Counter; INPUTS.len()],
    unchanged: Counter,
    commit_answers: [Counter; COMMIT_ANSWERS.len()],
    parts: [Counter; 2],
    started: Counter,
    finished: [Counter; ENDINGS.len()],
    late_receipts: Counter,
    timer_lateness: Histogram,
}

#[derive(Clone)]
pub(super) struct Commits {
    pub(super) executions: Histogram,
    pub(super) frames: Histogram,
    pub(super) bytes: Histogram,
    pub(super) time: Histogram,
}

#[derive(Clone)]
pub(super) struct Loads {
    answers: [Counter; LOADS.len()],
    frames: Histogram,
    time: Histogram,
}

#[derive(Clone)]
pub(super) struct Inbox {
    waiting: Gauge,
    oldest: Gauge,
    pub(super) taken: Counter,
    pub(super) forged: Counter,
}

#[derive(Clone)]
pub(super) struct Attempts {
    started: [Counter; EFFECTS.len()],
    finished: [[Counter; OUTCOMES.len()]; EFFECTS.len()],
    running: [Gauge; EFFECTS.len()],
    time: [Histogram; EFFECTS.len()],
    recovered: [Counter; RECOVERIES.len()],
    used: [Counter; QUANTITIES.len()],
}

#[derive(Clone)]
pub(super) struct Partitions {
    pub(super) held: Gauge,
    pub(super) acquired: Counter,
    pub(super) lost: Counter,
    pub(super) released: Counter,
    heartbeats: [Counter; HEARTBEATS.len()],
}

impl Metrics {
    pub(super) fn new() -> Self {
        described::describe();
        let in_memory = ["active", "idle", "loading", "evaluating"];
        let change = |change| counter!("mainspring_partition_changes_total", "change" => change);
        Self {
            commits: Commits {
                executions: histogram!("mainspring_commit_executions"),
                frames: histogram!("mainspring_commit_frames"),
                bytes: histogram!("mainspring_commit_bytes"),
                time: histogram!("mainspring_commit_seconds"),
            },
            queue_depth: gauge!("mainspring_command_queue_length"),
            queue_age: histogram!("mainspring_command_queue_age_seconds"),
            loads: Loads {
                answers: LOADS.map(|answer| counter!("mainspring_journal_loads_total", "answer" => answer)),
                frames: histogram!("mainspring_journal_load_frames"),
                time: histogram!("mainspring_journal_load_seconds"),
            },
            inbox: Inbox {
                waiting: gauge!("mainspring_inbox_messages"),
                oldest: gauge!("mainspring_inbox_oldest_age_seconds"),
                taken: counter!("mainspring_inbox_messages_consumed_total"),
                forged: counter!("mainspring_inbox_messages_forged_total"),
            },
            attempts: Attempts::new(),
            evaluation_time: histogram!("mainspring_evaluation_seconds"),
            partitions: Partitions {
                held: gauge!("mainspring_partitions_held"),
                acquired: change("acquired"),
                lost: change("lost"),
                released: change("released"),
                heartbeats: HEARTBEATS.map(|result| counter!("mainspring_heartbeats_total", "result" => result)),
            },
            quarantined: counter!("mainspring_executions_quarantined_total"),
            forwarded: ["delivered", "abandoned"]
                .map(|result| counter!("mainspring_receipts_forwarded_total", "result" => result)),
            handed_off: counter!("mainspring_attempts_handed_off_total"),
            in_memory: in_memory.map(|state| gauge!("mainspring_executions_in_memory", "state" => state)),
            places: ["running", "queued"].map(|state| gauge!("mainspring_admission_executions", "state" => state)),
            turns: INPUTS.map(|input| counter!("mainspring_turns_total", "input" => input)),
            unchanged: counter!("mainspring_inputs_ignored_total"),
            commit_answers: COMMIT_ANSWERS.map(|answer| counter!("mainspring_commits_total", "answer" => answer)),
            parts: ["durable", "refused"].map(|answer| counter!("mainspring_commit_parts_total", "answer" => answer)),
            started: counter!("mainspring_executions_started_total"),
            finished: ENDINGS.map(|status| counter!("mainspring_executions_finished_total", "status" => status)),
            late_receipts: counter!("mainspring_late_receipts_total"),
            timer_lateness: histogram!("mainspring_timer_lateness_seconds"),
        }
    }

    /// Adds the counters of the shard, and resets them.
    pub(super) fn take(&self, counters: &mut Counters) {
        add_all(&self.turns, &counters.turns);
        add_all(&self.commit_answers, &counters.commits);
        add_all(&self.finished, &counters.ended);
        add_all(&self.parts, &[counters.parts_durable, counters.parts_refused]);
        add_all(&self.attempts.used, &counters.used.amounts());
        add(&self.unchanged, counters.unchanged);
        add(&self.started, counters.started);
        add(&self.late_receipts, counters.late_receipts);
        counters.lateness_ms.iter().for_each(|late| self.timer_lateness.record(Duration::from_millis(*late)));
        counters.clear();
    }

    pub(super) fn show(&self, counts: StateCounts) {
        let StateCounts { active, idle, loading, evaluating } = counts;
        for (gauge, count) in self.in_memory.iter().zip([active, idle, loading, evaluating]) {
            gauge.set(count as f64);
        }
    }
}

impl Metrics {
    /// Sets the running and queued executions of all organizations that are counted here.
    pub(super) fn show_places(&self, counts: [usize; 2]) {
        self.places.iter().zip(counts).for_each(|(gauge, count)| gauge.set(count as f64));
    }
}

impl Inbox {
    /// Records the result of an inbox poll. The first message is the oldest.
    pub(super) fn record_poll(&self, messages: &[InboxEntry], now: u64) {
        let oldest_ms = messages.first().map_or(0, |arrived| now.saturating_sub(arrived.message.enqueued_at));
        self.waiting.set(messages.len() as f64);
        self.oldest.set(oldest_ms as f64 / 1_000.0);
    }
}

impl Loads {
    pub(super) fn count(&self, answer: &LoadAnswer, took: Duration) {
        let place = match answer {
            LoadAnswer::Journal(_) => 0,
            LoadAnswer::Unknown => 1,
            LoadAnswer::Quarantined(_) => 2,
            LoadAnswer::Broken(_) => 3,
            LoadAnswer::Newer(_) => 4,
            LoadAnswer::Unavailable(_) => 5,
        };
        self.answers[place].increment(1);
        if let LoadAnswer::Journal(journal) = answer {
            self.frames.record((journal.head.sequence + 1) as f64);
            self.time.record(took);
        }
    }
}

impl Attempts {
    fn new() -> Self {
        let finished = |effect| {
            OUTCOMES
                .map(|outcome| counter!("mainspring_attempts_finished_total", "effect" => effect, "outcome" => outcome))
        };
        Self {
            started: EFFECTS.map(|effect| counter!("mainspring_attempts_started_total", "effect" => effect)),
            finished: EFFECTS.map(finished),
            running: EFFECTS.map(|effect| gauge!("mainspring_attempts_running", "effect" => effect)),
            time: EFFECTS.map(|effect| histogram!("mainspring_attempt_seconds", "effect" => effect)),
            recovered: RECOVERIES.map(|outcome| counter!("mainspring_attempts_recovered_total", "outcome" => outcome)),
            used: QUANTITIES.map(|quantity| counter!("mainspring_agent_usage_total", "quantity" => quantity)),
        }
    }

    pub(super) fn begin(&self, effect: Effect) {
        self.started[effect.0].increment(1);
        self.running[effect.0].increment(1);
    }

    pub(super) fn end(&self, effect: Effect, outcome: &Outcome, took: Duration) {
        let label = outcome_label(outcome);
        if let Some(place) = OUTCOMES.iter().position(|outcome| *outcome == label) {
            self.finished[effect.0][place].increment(1);
        }
        self.running[effect.0].decrement(1);
        self.time[effect.0].record(took);
    }

    pub(super) fn recovered(&self, adopted: Adopted) {
        self.recovered[usize::from(adopted == Adopted::Interrupted)].increment(1);
    }
}

impl Partitions {
    pub(super) fn heartbeat(&self, heartbeat: &Heartbeat) {
        let place = match heartbeat {
            Heartbeat::Renewed(_) => 0,
            Heartbeat::Expired => 1,
            Heartbeat::Unreachable(_) => 2,
        };
        self.heartbeats[place].increment(1);
    }
}

fn add_all(counters: &[Counter], numbers: &[u64]) {
    counters.iter().zip(numbers).for_each(|(counter, number)| add(counter, *number));
}

fn add(counter: &Counter, number: u64) {
    if number > 0 {
        counter.increment(number);
    }
}
