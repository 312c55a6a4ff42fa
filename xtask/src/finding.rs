//! The result of a check: a position, and a message with the problem and the fix.

use std::fmt;

/// One violation of one rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// From the root of the repository, with `/`.
    pub(crate) path: String,
    /// Counted from 1; 0 when the finding is about the whole file.
    pub(crate) line: usize,
    pub(crate) message: String,
}

impl Finding {
    pub(crate) fn at(path: &str, line: usize, message: impl Into<String>) -> Finding {
        Finding { path: path.to_owned(), line, message: message.into() }
    }

    pub(crate) fn of_file(path: &str, message: impl Into<String>) -> Finding {
        Finding::at(path, 0, message)
    }
}

impl fmt::Display for Finding {
    /// `path:line: message`, the form that editors and terminals make clickable.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(out, "{}: {}", self.path, self.message),
            line => write!(out, "{}:{line}: {}", self.path, self.message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Finding;

    #[test]
    fn a_line_is_shown_only_where_there_is_one() {
        assert_eq!(Finding::at("a/b.rs", 3, "too long.").to_string(), "a/b.rs:3: too long.");
        assert_eq!(Finding::of_file("a/b.rs", "too long.").to_string(), "a/b.rs: too long.");
    }
}
