//! Every bound of this crate, with its reason.

/// Differences that a report lists. A reviewer reads no more, and the number of all is in the report.
pub const CHANGES_MAX: usize = 2_000;

/// Findings that a report lists, the most severe first. The risk and the number count all of them.
pub const FINDINGS_MAX: usize = 2_000;

/// Bytes of a value that a difference shows before and after. Longer values are shortened, with their size.
pub const SHOWN_BYTES_MAX: usize = 4 * 1024;

/// Bytes of the two texts of a text difference together. Definitions of a thousand steps have a tenth of it.
pub const TEXT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Bytes of a text difference. A longer one is cut, and says so.
pub const TEXT_DIFF_BYTES_MAX: usize = 1024 * 1024;

/// Steps and edges of one version times its gates. The comparison of gates takes time and memory in proportion: this
/// bound is below a second.
pub const GATE_COMPARISONS_MAX: usize = 4_000_000;
