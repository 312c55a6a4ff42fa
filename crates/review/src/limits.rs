//! Every bound of this crate, with its reason.

/// Differences that a report lists. A reviewer reads no more, and the number of all is in the report.
pub const CHANGES_MAX: usize = 2_000;

/// Findings that a report lists, the most severe first. The risk and the number count all of them.
pub const FINDINGS_MAX: usize = 2_000;

/// Bytes of a value that a difference shows before and after. Longer values are shortened, with their size.
pub const SHOWN_BYTES_MAX: usize = 4 * 1024;

/// Bytes of the two texts of a text difference together. Definitions of a thousand steps have a tenth of it.
pub const TEXT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Bytes of a text difference. A longer one is cut and marked.
pub const TEXT_DIFF_BYTES_MAX: usize = 1024 * 1024;

/// Steps and edges of one version times its gates. The comparison of gates takes time and memory in proportion: this
/// bound is below a second.
pub const GATE_COMPARISONS_MAX: usize = 4_000_000;

/// Turns of one replay. The longest recorded executions have a tenth of it; a plan that loops is stopped here.
pub const SHADOW_TURNS_MAX: usize = 50_000;

/// Records of one replay, each at most as large as a value: keeps a replay in memory and below a second without functions.
pub const SHADOW_RECORDS_MAX: usize = 200_000;

/// Calls and waits without an answer that a replay lists. A reader needs the first ones.
pub const SHADOW_HORIZON_MAX: usize = 100;

/// Differences that a report lists for one execution. The number of all is in the report.
pub const SHADOW_DIFFERENCES_MAX: usize = 200;

/// Places inside two values that a difference lists.
pub const SHADOW_PLACES_MAX: usize = 20;

/// Executions of one report: each is loaded and replayed, and a reader compares no more.
pub const SHADOW_EXECUTIONS_MAX: usize = 50;

/// Milliseconds by which a gate of a replay may open before the recorded one, and still have the recorded times of its decisions.
/// Functions take time in the recording. A replay repeats it for turns that were split, and shorter times are below this bound.
pub const SHADOW_DRIFT_MS_MAX: u64 = 500;
