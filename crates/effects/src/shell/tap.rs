//! The output of a running script, for those who watch it.

use std::sync::{Mutex, PoisonError};

use super::limits::LAST_LINE_CHARS_MAX;
use crate::live_progress::OutputSoFar;

/// Counts the bytes of both streams and keeps the last line.
#[derive(Debug, Default)]
pub(crate) struct Tap(Mutex<OutputSoFar>);

/// A stream of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamKind {
    Stdout,
    Stderr,
}

impl Tap {
    /// Takes the next bytes. A line that comes in several reads is known by its last part.
    pub(super) fn take(&self, stream: StreamKind, bytes: &[u8]) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = bytes.len() as u64;
        match stream {
            StreamKind::Stdout => seen.stdout_bytes += count,
            StreamKind::Stderr => seen.stderr_bytes += count,
        }
        if let Some(line) = bytes.rsplit(|byte| *byte == b'\n').find(|line| !line.trim_ascii().is_empty()) {
            // A character has at most four bytes.
            let line = line.get(..4 * LAST_LINE_CHARS_MAX).unwrap_or(line);
            let text = String::from_utf8_lossy(line);
            let shown = text.trim().chars().filter(|character| !character.is_control());
            seen.line = shown.take(LAST_LINE_CHARS_MAX).collect();
        }
    }

    /// The output so far.
    pub(crate) fn seen(&self) -> OutputSoFar {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted_and_the_last_line_is_kept() {
        let tap = Tap::default();
        assert_eq!(tap.seen(), OutputSoFar::default());
        tap.take(StreamKind::Stdout, b"one\ntwo\n\n");
        tap.take(StreamKind::Stderr, b"\n");
        assert_eq!(tap.seen(), OutputSoFar { stdout_bytes: 9, stderr_bytes: 1, line: "two".into() });
        tap.take(StreamKind::Stderr, &[b'x'; 5000]);
        assert_eq!(tap.seen().line.len(), LAST_LINE_CHARS_MAX);
        tap.take(StreamKind::Stderr, b"\x1b[31mred\xff");
        assert_eq!(tap.seen().line, "[31mred\u{fffd}");
    }
}
