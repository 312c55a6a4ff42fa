//! Classification of SQLite's errors.

use std::path::Path;

use rusqlite::{Error, ErrorCode, ffi};

use crate::{CommitError, StoreError};

/// The help for a file that cannot be repaired.
pub(super) const RESTORE: &str = "restore the latest backup (a file of `mainspring backup`, whose --help says how)";

/// Classifies an error of any operation except `commit`.
pub(super) fn of_store(path: &Path, error: &Error) -> StoreError {
    let path = path.display();
    match error {
        Error::SqliteFailure(failure, _) => match failure.code {
            ErrorCode::NotADatabase => StoreError::Damaged(format!(
                "{path} is not a database: give the path of a store, or move the file away and {RESTORE}"
            )),
            ErrorCode::DatabaseCorrupt => StoreError::Damaged(format!(
                "{path}: {error}. Stop the engine, keep the files (also -wal and -shm) for study, and {RESTORE}"
            )),
            _ => StoreError::Unavailable(format!("{path}: {error}")),
        },
        // All other errors are about a row with unexpected content.
        Error::FromSqlConversionFailure(_, _, what) => StoreError::Damaged(format!("{path}: {what}")),
        _ => StoreError::Damaged(format!("{path}: {error}")),
    }
}

/// Classifies an error before COMMIT. Without a commit mark in the log nothing is effective, so even an I/O error
/// leaves no change. A failed fsync means that the disk cannot be trusted.
pub(super) fn before_commit(path: &Path, error: &Error) -> CommitError {
    let what = format!("{}: {error}", path.display());
    match error.sqlite_error_code() {
        _ if is_of_fsync(error) => CommitError::Fatal(what),
        // An unreadable page may affect one execution or all: the other parts will show it.
        Some(
            ErrorCode::ConstraintViolation
            | ErrorCode::TooBig
            | ErrorCode::TypeMismatch
            | ErrorCode::DatabaseCorrupt
            | ErrorCode::ParameterOutOfRange,
        ) => CommitError::Refused(what),
        Some(_) => CommitError::NotWritten(what),
        // Not an error of SQLite: a row with unexpected content, or a value that SQLite cannot store.
        None => CommitError::Refused(what),
    }
}

/// Classifies an error of COMMIT itself. COMMIT appends the changed pages and then the commit mark to the log, and
/// syncs it. A full disk or a missing permission stops it before the mark is complete, and an incomplete mark has no
/// effect. Any other error (EIO during a write) may have left a complete mark, which a recovery would find.
pub(super) fn at_commit(path: &Path, error: &Error) -> CommitError {
    let what = format!("{}: {error}", path.display());
    match error.sqlite_error_code() {
        _ if is_of_fsync(error) => CommitError::Fatal(what),
        Some(
            ErrorCode::DiskFull
            | ErrorCode::ReadOnly
            | ErrorCode::CannotOpen
            | ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked,
        ) => CommitError::NotWritten(what),
        Some(ErrorCode::ConstraintViolation) => CommitError::Refused(what),
        _ => CommitError::Unknown(what),
    }
}

fn is_of_fsync(error: &Error) -> bool {
    let code = error.sqlite_error().map(|failure| failure.extended_code);
    matches!(code, Some(ffi::SQLITE_IOERR_FSYNC | ffi::SQLITE_IOERR_DIR_FSYNC))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sqlite_errors_are_classified() {
        let table = [
            (ffi::SQLITE_FULL, "not written", "not written"),
            (ffi::SQLITE_READONLY, "not written", "not written"),
            (ffi::SQLITE_CANTOPEN, "not written", "not written"),
            (ffi::SQLITE_BUSY, "not written", "not written"),
            (ffi::SQLITE_NOMEM, "not written", "unknown"),
            (ffi::SQLITE_CORRUPT, "refused", "unknown"),
            (ffi::SQLITE_CONSTRAINT_PRIMARYKEY, "refused", "refused"),
            (ffi::SQLITE_CONSTRAINT_DATATYPE, "refused", "refused"),
            (ffi::SQLITE_TOOBIG, "refused", "unknown"),
            (ffi::SQLITE_MISMATCH, "refused", "unknown"),
            (ffi::SQLITE_IOERR_READ, "not written", "unknown"),
            (ffi::SQLITE_IOERR_WRITE, "not written", "unknown"),
            (ffi::SQLITE_IOERR_FSYNC, "fatal", "fatal"),
            (ffi::SQLITE_IOERR_DIR_FSYNC, "fatal", "fatal"),
        ];
        let word = |error: CommitError| match error {
            CommitError::NotWritten(_) => "not written",
            CommitError::Refused(_) => "refused",
            CommitError::Blocked(_) => "blocked",
            CommitError::Unknown(_) => "unknown",
            CommitError::Fatal(_) => "fatal",
        };
        for (code, before, at) in table {
            let error = Error::SqliteFailure(ffi::Error::new(code), None);
            let path = Path::new("store.db");
            assert_eq!((word(before_commit(path, &error)), word(at_commit(path, &error))), (before, at), "{error}");
        }
    }
}
