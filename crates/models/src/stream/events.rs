//! Server-sent events (HTML standard, 9.2.6), as far as providers use them: the data of each event.

use crate::{error::ModelError, limits::STREAM_EVENT_BYTES_MAX};

/// Splits bytes into events. Lines end with LF, CRLF or CR.
#[derive(Debug, Default)]
pub(super) struct Events {
    line: Vec<u8>,
    /// The data of the event so far; `None` before its first line of data.
    data: Option<Vec<u8>>,
    /// True after a CR: an LF that follows belongs to it.
    after_return: bool,
    /// True after the first line, which may begin with a byte order mark.
    has_begun: bool,
}

impl Events {
    /// Takes bytes, and returns the data of the events that they complete. Events without data are left out.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, ModelError> {
        let mut events = Vec::new();
        for byte in bytes {
            let is_rest_of_end = *byte == b'\n' && self.after_return;
            self.after_return = *byte == b'\r';
            match byte {
                b'\n' if is_rest_of_end => {}
                b'\n' | b'\r' => events.extend(self.end_line()),
                _ => {
                    let bytes = self.line.len() + self.data.as_ref().map_or(0, Vec::len);
                    if bytes >= STREAM_EVENT_BYTES_MAX {
                        return Err(super::too_large("an event of the answer", STREAM_EVENT_BYTES_MAX));
                    }
                    self.line.push(*byte);
                }
            }
        }
        Ok(events)
    }

    /// Returns the data of an event that has not ended.
    pub(super) fn rest(&mut self) -> Option<Vec<u8>> {
        let ended = self.end_line();
        ended.or_else(|| self.data.take())
    }

    /// True if no line and no data follows the last event.
    pub(super) fn is_between(&self) -> bool {
        self.line.is_empty() && self.data.is_none()
    }

    fn end_line(&mut self) -> Option<Vec<u8>> {
        let line = std::mem::take(&mut self.line);
        let line = if self.has_begun { &line[..] } else { line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&line) };
        self.has_begun = true;
        if line.is_empty() {
            return self.data.take();
        }
        let value = match line.strip_prefix(b"data") {
            Some([b':', b' ', value @ ..] | [b':', value @ ..]) => value,
            Some([]) => &[],
            // A comment, or a field without information beyond the data.
            _ => return None,
        };
        match &mut self.data {
            Some(data) => {
                data.push(b'\n');
                data.extend_from_slice(value);
            }
            none => *none = Some(value.to_vec()),
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &[u8], expected: &[&str]) {
        let all: Vec<Vec<u8>> = expected.iter().map(|data| data.as_bytes().to_vec()).collect();
        assert_eq!(Events::default().take(text).expect("small"), all);
        let mut events = Events::default();
        let pieces: Vec<Vec<u8>> = text.iter().flat_map(|byte| events.take(&[*byte]).expect("small")).collect();
        assert_eq!(pieces, all, "byte by byte");
    }

    #[test]
    fn events_are_parsed_with_any_line_ending() {
        check(b"event: a\ndata: {}\n\n", &["{}"]);
        check(b"data:{}\r\n\r\ndata: 1\rdata: 2\r\rdata:  x\n\n", &["{}", "1\n2", " x"]);
        check(b": breath\n\n\n\ndata\n\nid: 3\n\ndatax: 1\n\ndata: x\n\n", &["", "x"]);
        check("\u{feff}data: 1\n\n\u{feff}data: 2\n\n".as_bytes(), &["1"]);
        check(b"retry: 5\nother\ndata: a: b\n\ndata: cut off\n", &["a: b"]);
    }

    #[test]
    fn an_event_without_end_is_refused() {
        let mut events = Events::default();
        let piece = vec![b'x'; 64 * 1024];
        assert!((0..9).any(|_| events.take(&piece).is_err()));
        let mut events = Events::default();
        let line = [b"data: ".as_slice(), &vec![b'x'; 1024], b"\n"].concat();
        assert!((0..1024).any(|_| events.take(&line).is_err()), "many lines of one event");
    }
}
