//! Every bound of this crate, with its reason.

/// Bytes of an archive. It is read into memory as a whole.
pub const ARCHIVE_BYTES_MAX: u64 = 2 * 1024 * 1024 * 1024;

/// Files of an archive. An execution has about ten.
pub const FILES_MAX: usize = 200_000;

/// Executions of an archive. More are exported in parts by time.
pub const EXECUTIONS_MAX: usize = 10_000;

/// Heads of a pin. Each takes some 150 bytes of a statement that is held in memory.
pub const HEADS_MAX: usize = 1_000_000;

/// Bytes of a signed statement: that of the largest pin.
pub const STATEMENT_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Receipts under one signature. More would lengthen the path that is stored with each (32 bytes whenever the group
/// doubles), and save little: 16 receipts share a signature that costs some tens of microseconds.
pub const GROUP_RECEIPTS_MAX: usize = 16;

/// Bytes of a name or release in the certificate of an executor key.
pub const CERTIFICATE_TEXT_BYTES_MAX: usize = 256;
