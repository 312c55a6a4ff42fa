//! The registry of error codes: what each code means, and what to do.
//!
//! Codes are part of the interface. One may be added; none is removed or changes its meaning. The tables have the codes of
//! all crates, so that one list answers for any code: `docs/reference/errors.md` is generated from them, and a test finds a
//! code in the sources that they lack. A code may be used by several origins.

use alloc::{string::String, vec::Vec};

use crate::{diagnostic::Severity, failure::Class};

mod api;
mod commands;
mod diagnostics;
mod executions;
mod runners;
mod tools;

/// An error code of one origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorCode {
    /// The code, without the number that may follow a colon.
    pub code: &'static str,
    /// The part of Mainspring that reports it.
    pub origin: Origin,
    /// One or two sentences: what happened.
    pub meaning: &'static str,
    /// One sentence: what to do.
    pub help: &'static str,
    /// A part of a definition with the mistake of a diagnostic, otherwise a setting or a call; empty for none.
    pub example: &'static str,
    /// A part of a definition without the mistake of a diagnostic; empty for none.
    pub fixed: &'static str,
}

/// The part of Mainspring that reports an error, with the properties that errors have there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The failure of a step or an execution.
    Execution {
        /// The class, by which retry policies decide.
        class: Class,
    },
    /// A diagnostic of a definition.
    Diagnostic {
        /// The severity, unless the diagnostic says another.
        severity: Severity,
    },
    /// An error response of the HTTP API.
    Api {
        /// The HTTP status.
        status: u16,
        /// The exit code of a command that receives it.
        exit_code: u8,
    },
    /// An error of the command line.
    Command {
        /// The exit code of the process.
        exit_code: u8,
    },
}

impl ErrorCode {
    const fn new(code: &'static str, origin: Origin, meaning: &'static str, help: &'static str) -> Self {
        Self { code, origin, meaning, help, example: "", fixed: "" }
    }

    const fn with_example(self, example: &'static str) -> Self {
        Self { example, ..self }
    }

    const fn with_fixed(self, fixed: &'static str) -> Self {
        Self { fixed, ..self }
    }

    /// Returns the code in words: `bash exit code`.
    pub fn title(&self) -> String {
        self.code.replace('_', " ").to_ascii_lowercase()
    }
}

/// Returns all codes, grouped by origin.
pub fn all() -> impl Iterator<Item = &'static ErrorCode> {
    let executions = executions::CODES.iter().chain(&tools::CODES).chain(&runners::CODES).chain(&diagnostics::CODES);
    executions.chain(&api::CODES).chain(&commands::CODES)
}

/// Returns the entries of a code, one for each origin that uses it. The code may have a number after a colon, and codes of
/// the API may be in lower case, as the command line shows them.
pub fn find(code: &str) -> Vec<&'static ErrorCode> {
    let name = code.split(':').next().unwrap_or_default();
    all().filter(|known| known.code.eq_ignore_ascii_case(name)).collect()
}
