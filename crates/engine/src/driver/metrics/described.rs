//! Descriptions of the metrics: the HELP text of Prometheus.

use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};

const COUNTERS: [(&str, &str); 18] = [
    ("mainspring_commits_total", "Commits by their answer; refused if a part of it was."),
    ("mainspring_commit_parts_total", "Executions' parts of commits by their answer."),
    ("mainspring_inbox_messages_consumed_total", "Inbox messages consumed."),
    (
        "mainspring_inbox_messages_forged_total",
        "Inbox messages that were discarded because they were not written with the installation's key.",
    ),
    ("mainspring_turns_total", "Turns that gave a frame, by what they took in."),
    ("mainspring_inputs_without_effect_total", "Inputs that changed nothing: repeated, late or stale."),
    ("mainspring_journal_loads_total", "Journals read back into memory, by what was found."),
    ("mainspring_attempts_begun_total", "Attempts handed to an executor, by effect."),
    ("mainspring_attempts_ended_total", "Attempts that an executor has ended, by effect and outcome."),
    ("mainspring_attempts_adopted_total", "Attempts of an earlier process, by what was found to have become of them."),
    (
        "mainspring_attempts_handed_over_total",
        "Attempts that continued on this node after a handoff of their partition.",
    ),
    ("mainspring_partition_changes_total", "Partitions acquired, lost and released."),
    ("mainspring_lease_words_total", "This node's words to the shared store, by what came of them."),
    (
        "mainspring_receipts_passed_on_total",
        "Receipts for executions that others hold, by whether they could be posted.",
    ),
    ("mainspring_late_receipts_total", "Receipts that counted for nothing and are kept beside a journal."),
    ("mainspring_executions_begun_total", "Executions whose beginning is durable."),
    ("mainspring_executions_ended_total", "Executions whose end is durable, by status."),
    ("mainspring_executions_quarantined_total", "Executions quarantined because their journals cannot be continued."),
];

const GAUGES: [(&str, Unit, &str); 7] = [
    ("mainspring_command_queue", Unit::Count, "Commands that waited for the engine when it last on_read."),
    ("mainspring_inbox_messages", Unit::Count, "Letters that the last look into the inbox found."),
    ("mainspring_inbox_oldest_age_seconds", Unit::Seconds, "Age of the oldest message that the last look found."),
    ("mainspring_executions_in_memory", Unit::Count, "Executions in memory, by what is going on of them."),
    (
        "mainspring_executions_counted",
        Unit::Count,
        "Executions that this node counts against concurrency limits, for all organizations, running or queued.",
    ),
    ("mainspring_attempts_running", Unit::Count, "Attempts that run here, by effect."),
    ("mainspring_partitions_held", Unit::Count, "Partitions that this node holds."),
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
    for (name, words) in COUNTERS {
        describe_counter!(name, Unit::Count, words);
    }
    for (name, unit, words) in GAUGES {
        describe_gauge!(name, unit, words);
    }
    for (name, unit, words) in HISTOGRAMS {
        describe_histogram!(name, unit, words);
    }
}
