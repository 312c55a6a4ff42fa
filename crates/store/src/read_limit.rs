//! The bound of a read.

/// Default bound on the bytes of one read: the most that one turn of an execution writes, and two of the largest values
/// or definitions. Callers read longer results in several calls.
pub const READ_BYTES: usize = 8 * 1024 * 1024;

/// The bound of one read: it stops at `rows` rows, or at the row with which the rows reach `bytes` bytes together. So
/// the first row is always returned, however large, and the caller needs little more memory than `bytes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadLimit {
    /// Maximum number of rows.
    pub rows: usize,
    /// The row that reaches this sum is the last; at least 1.
    pub bytes: usize,
}

impl ReadLimit {
    /// Makes a bound of so many rows and [`READ_BYTES`].
    pub const fn of(rows: usize) -> Self {
        Self { rows, bytes: READ_BYTES }
    }

    /// Returns whether the bound was reached, so that there may be more rows.
    pub const fn is_reached(self, rows: usize, bytes: usize) -> bool {
        rows >= self.rows || rows > 0 && bytes >= self.bytes
    }

    /// Takes rows up to the bound.
    pub(crate) fn take<T>(self, rows: impl Iterator<Item = T>, byte_count: impl Fn(&T) -> usize) -> Vec<T> {
        let (mut taken, mut bytes) = (Vec::new(), 0);
        for row in rows {
            if self.is_reached(taken.len(), bytes) {
                break;
            }
            bytes += byte_count(&row);
            taken.push(row);
        }
        taken
    }
}

impl Default for ReadLimit {
    fn default() -> Self {
        Self::of(0)
    }
}
