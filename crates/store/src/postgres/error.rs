//! Classification of PostgreSQL's errors: whether to retry, and the error for the caller.
//!
//! | response of the server | meaning | before COMMIT was sent | to COMMIT |
//! |---|---|---|---|
//! | 40001, 40P01: conflict with other transactions, rolled back | again | again | again |
//! | 23505 of a key that was looked up: another transaction inserted it in between | again | again | - |
//! | 08…, 57P01, 57P02, 57P03, 57P05, 25P03, or none: the connection is lost | lost | again, on a new one | unknown |
//! | 40003: the server does not know either | lost | again, on a new one | unknown |
//! | 26000, 0A000: the connection has outdated prepared statements | lost | again, on a new one | not written |
//! | 25, 28, 3D, 3F, 42, 53, 55, 58: the server, its disk, or permissions | refused | not written | not written |
//! | 55P03, 57014: a lock was not released in time, or a statement took too long | refused | blocked | blocked |
//! | any other, as an error: the data is not accepted (22, 23, 54, …) | refused | refused | refused |
//! | any other, as the end of the connection | refused | not written | unknown |
//!
//! 23505 is tried again, since the next try finds the other transaction's row. If it persists, a row contradicts the
//! journal.
//!
//! COMMIT is sent together with the statements before it. If one of those fails, the transaction is aborted and COMMIT
//! becomes a ROLLBACK: certainly nothing was written. If one of them gets no response, COMMIT may have been executed
//! nevertheless. A failed fsync is handled by the server, which then shuts down.

use std::error::Error as _;

use tokio_postgres::error::{Severity, SqlState};

use crate::{CommitError, StoreError};

/// The failure of some work on a connection.
#[derive(Debug)]
pub(super) enum Fault {
    /// An error of the server or of the connection.
    Postgres(tokio_postgres::Error),
    /// No response within the limit for a round of requests, in milliseconds.
    Silence(u64),
    /// No connection of the pool became free in time, in milliseconds.
    Busy(u64),
    /// A row with unexpected content: the row, and a remedy.
    Damaged(String),
    /// The same for a row that executions share.
    DamagedShared(String),
    /// Another process has just made the same object.
    Raced,
    /// An error that is already in its final form.
    Store(StoreError),
}

/// The consequence of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Nothing was done; the next try may succeed.
    Again,
    /// The connection is unusable; the last request may have been executed.
    Lost,
    /// Nothing was done, and the next try would fail as well.
    Refused,
}

impl Fault {
    /// Marks a failure to read a row as one of a row that executions share.
    pub(super) fn of_shared_row(self) -> Self {
        match self {
            Self::Damaged(what) => Self::DamagedShared(what),
            other => other,
        }
    }
}

impl From<tokio_postgres::Error> for Fault {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Postgres(error)
    }
}

/// Classifies a failure.
pub(super) fn meaning(fault: &Fault) -> Meaning {
    match fault {
        Fault::Raced => Meaning::Again,
        Fault::Silence(_) => Meaning::Lost,
        Fault::Busy(_) | Fault::Damaged(_) | Fault::DamagedShared(_) | Fault::Store(_) => Meaning::Refused,
        Fault::Postgres(error) => match error.as_db_error() {
            Some(said) => of_code(said.code().code()),
            None if is_of_connection(error) => Meaning::Lost,
            None => Meaning::Refused,
        },
    }
}

fn of_code(code: &str) -> Meaning {
    match code {
        "40001" | "40P01" | "23505" => Meaning::Again,
        "40003" | "57P01" | "57P02" | "57P03" | "57P05" | "25P03" | "26000" | "0A000" => Meaning::Lost,
        _ if code.starts_with("08") => Meaning::Lost,
        _ => Meaning::Refused,
    }
}

/// tokio-postgres exposes no error kinds; all others are about a value that was sent or received.
fn is_of_connection(error: &tokio_postgres::Error) -> bool {
    let of_system = error.source().is_some_and(|cause| cause.is::<std::io::Error>());
    error.is_closed() || of_system
}

/// Returns whether a failure in place of the response to a statement before COMMIT proves that COMMIT has written
/// nothing.
pub(super) fn ends_transaction(fault: &Fault) -> bool {
    matches!(fault, Fault::Postgres(error) if error.as_db_error().is_some_and(|said| said.code().code() != "40003"))
}

/// Returns whether the response to COMMIT itself proves that nothing was written.
pub(super) fn refuses_commit(fault: &Fault) -> bool {
    let Fault::Postgres(error) = fault else { return false };
    error.as_db_error().is_some_and(|said| {
        is_error(said.parsed_severity(), said.severity()) && !matches!(said.code().code(), "40003" | "57P01" | "57P02")
    })
}

/// Neither FATAL nor PANIC, after which the connection ends without a report of the transaction's outcome.
fn is_error(parsed: Option<Severity>, word: &str) -> bool {
    parsed.map_or(word == "ERROR", |severity| severity == Severity::Error)
}

/// Makes the error of any operation except `commit`. `server` is its address without a password.
pub(super) fn of_store(server: &str, fault: Fault) -> StoreError {
    match fault {
        Fault::Store(error) => error,
        Fault::Damaged(what) | Fault::DamagedShared(what) => StoreError::Damaged(format!("{server}: {what}")),
        Fault::Postgres(error) if is_damage(&error) => StoreError::Damaged(format!("{server}: {}", sentence(&error))),
        other => StoreError::Unavailable(format!("{server}: {}", words(&other))),
    }
}

/// Makes the error of a commit that wrote nothing, because of the store or because of the batch.
pub(super) fn not_written(server: &str, fault: &Fault) -> CommitError {
    let why = format!("{server}: {}", words(fault));
    if is_blocked(fault) {
        CommitError::Blocked(why)
    } else if is_of_content(fault) {
        CommitError::Refused(why)
    } else {
        CommitError::NotWritten(why)
    }
}

/// Returns whether the batch met a lock or a row that its executions share with other writers.
fn is_blocked(fault: &Fault) -> bool {
    match fault {
        Fault::DamagedShared(_) => true,
        Fault::Postgres(error) => matches!(error.code().map(SqlState::code), Some("55P03" | "57014")),
        _ => false,
    }
}

/// Returns whether another batch may succeed where this one failed.
fn is_of_content(fault: &Fault) -> bool {
    match fault {
        // A row of one of the executions cannot be read.
        Fault::Damaged(_) => true,
        Fault::DamagedShared(_) | Fault::Raced | Fault::Silence(_) | Fault::Busy(_) | Fault::Store(_) => false,
        Fault::Postgres(error) => match error.as_db_error() {
            Some(said) => is_code_of_content(said.code().code()),
            // A value that does not fit into a message, or a response of an unexpected form.
            None => !is_of_connection(error),
        },
    }
}

fn is_code_of_content(code: &str) -> bool {
    let of_server = ["08", "25", "28", "3D", "3F", "42", "53", "55", "57P", "58", "F0", "40", "26", "0A"];
    !of_server.iter().any(|class| code.starts_with(class))
}

/// Makes the error of a commit with an unknown outcome.
pub(super) fn unknown(server: &str, fault: &Fault) -> CommitError {
    CommitError::Unknown(format!("{server}: no answer to COMMIT: {}", words(fault)))
}

/// Returns whether a table or a column of a statement is missing or has another type.
pub(super) fn is_damage_of_schema(fault: &Fault) -> bool {
    let Fault::Postgres(error) = fault else { return false };
    matches!(error.code().map(SqlState::code), Some("42P01" | "42703" | "42804"))
}

/// Foreign tables, or rows that the server cannot read.
fn is_damage(error: &tokio_postgres::Error) -> bool {
    let code = error.code().map(SqlState::code);
    matches!(code, Some("XX001" | "XX002" | "42P01" | "42703" | "42804" | "3F000"))
}

fn words(fault: &Fault) -> String {
    match fault {
        Fault::Postgres(error) => sentence(error),
        Fault::Silence(limit_ms) => {
            format!("no response within {limit_ms} ms: check the network and the server's load")
        }
        Fault::Busy(limit_ms) => {
            format!(
                "all connections were in use for {limit_ms} ms: check pg_stat_activity for the cause of their waits"
            )
        }
        Fault::Raced => "repeated conflicts with other transactions: try again".into(),
        Fault::Damaged(what) | Fault::DamagedShared(what) => what.clone(),
        Fault::Store(error) => error.to_string(),
    }
}

fn sentence(error: &tokio_postgres::Error) -> String {
    let Some(said) = error.as_db_error() else {
        let mut sentence = error.to_string();
        let mut cause = error.source();
        while let Some(inner) = cause {
            sentence = format!("{sentence}: {inner}");
            cause = inner.source();
        }
        let help = "check that the server runs and listens there, and that it and sslmode agree about TLS (verify-full unless the address says another)";
        return if is_of_connection(error) { format!("{sentence}: {help}") } else { sentence };
    };
    // Without the detail, which repeats values of rows.
    let said_words = format!("{} ({})", said.message(), said.code().code());
    match help(said.code().code()) {
        "" => said_words,
        help => format!("{said_words}: {help}"),
    }
}

/// Returns help for errors that an operator can do something about.
fn help(code: &str) -> &'static str {
    match code {
        "25006" => "this server is read-only: use the address of the primary",
        "53100" => "free space on the server's disk",
        "53200" => "give the server more memory, or other processes less",
        "53300" => "raise max_connections, or reduce other connections",
        "55P03" => "another transaction holds the lock: check pg_locks and pg_stat_activity",
        "57014" => "it took too long: check pg_stat_activity for the cause of the wait",
        "57P01" | "57P02" | "57P03" => "wait until the server runs again",
        "28P01" | "28000" => "check user, password and pg_hba.conf",
        "3D000" => "create the database with createdb, or use another one",
        "42501" => "grant the user its privileges: CREATE on the database once, and its schema",
        "42P01" | "42703" | "42804" | "3F000" => {
            "the tables of this schema are not ours or not whole: name another schema, or restore the latest backup (of pg_dump or pg_basebackup)"
        }
        "XX001" | "XX002" => {
            "stop the server, keep its files for study, and restore the latest backup (of pg_dump or pg_basebackup)"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sqlstate_codes_are_classified() {
        use Meaning::{Again, Lost, Refused};
        let table = [
            ("40001", Again, false),
            ("40P01", Again, false),
            ("23505", Again, false),
            ("40003", Lost, false),
            ("08006", Lost, false),
            ("08P01", Lost, false),
            ("57P01", Lost, true),
            ("57P02", Lost, true),
            ("57P03", Lost, true),
            ("57P05", Lost, false),
            ("25P03", Lost, false),
            ("26000", Lost, false),
            ("0A000", Lost, false),
            ("25006", Refused, true),
            ("53100", Refused, true),
            ("53200", Refused, true),
            ("53300", Refused, true),
            ("57014", Refused, true),
            ("28P01", Refused, true),
            ("3D000", Refused, true),
            ("42501", Refused, true),
            ("42P01", Refused, true),
            ("XX001", Refused, true),
            ("22003", Refused, false),
        ];
        for (code, expected, has_help) in table {
            assert_eq!((of_code(code), !help(code).is_empty()), (expected, has_help), "{code}");
        }
    }

    #[test]
    fn rejected_content_is_distinguished_from_an_unavailable_server() {
        let content = ["22003", "22021", "22P02", "23505", "23502", "23514", "54000", "P0001", "XX000", "XX001"];
        let server =
            ["08006", "25006", "28P01", "40001", "42501", "42P01", "53100", "53200", "55P03", "57P01", "58030"];
        assert!(content.iter().all(|code| is_code_of_content(code)));
        assert!(!server.iter().any(|code| is_code_of_content(code)));
    }

    #[test]
    fn only_an_error_severity_proves_a_failed_commit() {
        assert!(is_error(Some(Severity::Error), "FEHLER"));
        assert!(is_error(None, "ERROR"));
        for severity in [Severity::Fatal, Severity::Panic] {
            assert!(!is_error(Some(severity), "ERROR"));
        }
        assert!(!is_error(None, "FATAL"));
    }
}
