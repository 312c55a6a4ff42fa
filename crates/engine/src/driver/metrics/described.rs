//! Descriptions of the metrics: the HELP text of Prometheus.

use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};

const COUNTERS: [(&str, &str); 19] = [
    ("mainspring_commits_total", "Commits by their answer; refused if a part of it was."),
    ("mainspring_commit_parts_total", "Executions' parts of commits by their answer."),
    ("mainspring_inbox_messages_consumed_total", "Inbox messages consumed."),
    (
        "mainspring_inbox_messages_forged_total",
        "Inbox messages that were discarded because they were not written with the installation's key.",
    ),
    ("mainspring_turns_total", "Turns that produced a frame, by input."),
    ("mainspring_inputs_ignored_total", "Inputs that changed nothing: repeated, late or stale."),
    ("mainspring_journal_loads_total", "Journals read back into memory, by result."),
    ("mainspring_attempts_started_total", "Attempts handed to an executor, by effect."),
    ("mainspring_attempts_finished_total", "Attempts that an executor has ended, by effect and outcome."),
    ("mainspring_attempts_recovered_total", "Attempts of an earlier process, by their recovered outcome."),
    ("mainspring_agent_usage_total", "Tokens, costs and calls that agents have used, by quantity."),
    (
        "mainspring_attempts_handed_off_total",
        "Attempts that continued on this node after a handoff of their partition.",
    ),
    ("mainspring_partition_changes_total", "Partitions acquired, lost and released."),
    ("mainspring_heartbeats_total", "Heartbeats of this node to the shared store, by result."),
    ("mainspring_receipts_forwarded_total", "Receipts forwarded to the owners of their executions, by result."),
    ("mainspring_late_receipts_total", "Late receipts, stored beside the journal."),
    ("mainspring_executions_started_total", "Executions whose start is durable."),
    ("mainspring_executions_finished_total", "Executions whose end is durable, by status."),
    ("mainspring_executions_quarantined_total", "Executions quarantined because their journals cannot be continued."),
];

const GAUGES: [(&str, Unit, &str); 7] = [
    (
        "mainspring_command_queue_length",
        Unit::Count,
        "Commands that waited for the engine when it last read its queue.",
    ),
    ("mainspring_inbox_messages", Unit::Count, "Inbox messages that the last read found."),
    ("mainspring_inbox_oldest_age_seconds", Unit::Seconds, "Age of the oldest message that the last read found."),
    ("mainspring_executions_in_memory", Unit::Count, "Executions in memory, by state."),
    (
        "mainspring_admission_executions",
        Unit::Count,
        "Executions that this node counts against concurrency limits, for all organizations, running or queued.",
    ),
    ("mainspring_attempts_running", Unit::Count, "Attempts that run here, by effect."),
    ("mainspring_partitions_held", Unit::Count, "Partitions that this node owns."),
];

const HISTOGRAMS: [(&str, Unit, &str); 10] = [
    ("mainspring_commit_executions", Unit::Count, "Executions in a commit."),
    ("mainspring_commit_frames", Unit::Count, "Frames in a commit."),
    ("mainspring_commit_bytes", Unit::Bytes, "Bytes of the frames and values in a commit."),
    ("mainspring_commit_seconds", Unit::Seconds, "Time of a commit from handing it over to its answer."),
    ("mainspring_command_queue_age_seconds", Unit::Seconds, "How long the oldest command had waited, each time."),
    ("mainspring_journal_load_frames", Unit::Count, "Frames of a journal that was read back."),
    ("mainspring_journal_load_seconds", Unit::Seconds, "Time of reading a journal back."),
    ("mainspring_attempt_seconds", Unit::Seconds, "Time of an attempt in its executor, by effect."),
    ("mainspring_evaluation_seconds", Unit::Seconds, "Time of a turn's functions and schemas."),
    ("mainspring_timer_lateness_seconds", Unit::Seconds, "Delay between the due time of a timer and its processing."),
];

/// Registers the descriptions at the recorder.
pub(super) fn describe() {
    for (name, description) in COUNTERS {
        describe_counter!(name, Unit::Count, description);
    }
    for (name, unit, description) in GAUGES {
        describe_gauge!(name, unit, description);
    }
    for (name, unit, description) in HISTOGRAMS {
        describe_histogram!(name, unit, description);
    }
}
