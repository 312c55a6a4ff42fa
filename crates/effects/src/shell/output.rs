//! The output of a script: read as it arrives, kept up to a bound, counted beyond it.

use std::{convert::Infallible, io, os::fd::OwnedFd, sync::Arc};

use rustix::io::Errno;
use tokio::{io::AsyncReadExt, net::unix::pipe::Receiver};

use super::{
    limits::{DRAIN_BYTES_MAX, LAST_LINE_CHARS_MAX, READ_BYTES_MAX, STREAM_BYTES_MAX, TAIL_BYTES_MAX},
    tap::{StreamKind, Tap},
};

/// Both streams of a running script.
#[derive(Debug)]
pub(super) struct Streams {
    stdout: Stream,
    stderr: Stream,
}

/// One pipe and the output read from it.
#[derive(Debug)]
struct Stream {
    pipe: Receiver,
    buffer: Vec<u8>,
    kept: Kept,
    is_kept: bool,
    tap: Option<(StreamKind, Arc<Tap>)>,
}

/// The kept part of a stream: its beginning, the end of the rest, and its total length.
#[derive(Debug, Default)]
pub(super) struct Kept {
    head: Vec<u8>,
    tail: Vec<u8>,
    bytes: u64,
}

/// A stream as it appears in a result.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Text {
    /// At most [`STREAM_BYTES_MAX`] bytes.
    pub(super) text: String,
    /// The total number of bytes of the stream.
    pub(super) bytes: u64,
    /// True if the text lacks some of them.
    pub(super) is_truncated: bool,
}

impl Streams {
    pub(super) fn new(stdout: OwnedFd, stderr: OwnedFd) -> io::Result<Self> {
        Ok(Self { stdout: Stream::new(stdout)?, stderr: Stream::new(stderr)? })
    }

    /// Shows the output to `tap` from here on.
    pub(super) fn observe(&mut self, tap: Option<Arc<Tap>>) {
        self.stdout.tap = tap.clone().map(|tap| (StreamKind::Stdout, tap));
        self.stderr.tap = tap.map(|tap| (StreamKind::Stderr, tap));
    }

    /// Reads the first bytes of stdout, which are not kept.
    pub(super) async fn beginning<const COUNT: usize>(&mut self) -> io::Result<[u8; COUNT]> {
        let mut bytes = [0; COUNT];
        self.stdout.pipe.read_exact(&mut bytes).await?;
        Ok(bytes)
    }

    /// Returns the pipes of stdout and stderr. Nothing was read from them but the beginning.
    pub(super) fn into_pipes(self) -> (Receiver, Receiver) {
        (self.stdout.pipe, self.stderr.pipe)
    }

    /// Returns the last line of stderr, or a message that there is none.
    pub(super) fn last_error(mut self) -> String {
        self.stderr.drain();
        match self.stderr.kept.last_line() {
            line if line.is_empty() => "it ended without a word".to_owned(),
            line => line,
        }
    }

    /// Reads both streams concurrently for as long as it is polled. Cancel-safe: bytes that were read are kept.
    pub(super) async fn read(&mut self) -> Infallible {
        tokio::join!(self.stdout.read(), self.stderr.read());
        std::future::pending().await
    }

    /// Reads the bytes that are already in the pipes, without waiting for processes that still hold them open. Later
    /// output is not part of the result.
    pub(super) fn drain(&mut self) {
        self.stdout.drain();
        self.stderr.drain();
    }

    /// Returns the kept parts of stdout and stderr.
    pub(super) fn into_kept(self) -> (Kept, Kept) {
        (self.stdout.kept, self.stderr.kept)
    }
}

impl Stream {
    fn new(pipe: OwnedFd) -> io::Result<Self> {
        let pipe = Receiver::from_owned_fd(pipe)?;
        Ok(Self { pipe, buffer: vec![0; READ_BYTES_MAX], kept: Kept::default(), is_kept: true, tap: None })
    }

    async fn read(&mut self) {
        while let Ok(count @ 1..) = self.pipe.read(&mut self.buffer).await {
            self.keep(count);
        }
    }

    /// Reads the pipe directly, since the runtime's readiness may be older than the last write.
    fn drain(&mut self) {
        let mut left = DRAIN_BYTES_MAX;
        while left > 0 {
            match rustix::io::read(&self.pipe, &mut self.buffer[..]) {
                Ok(count @ 1..) => {
                    self.keep(count);
                    left = left.saturating_sub(count);
                }
                Err(Errno::INTR) => {}
                Ok(_) | Err(_) => break,
            }
        }
        self.is_kept = false;
    }

    fn keep(&mut self, count: usize) {
        if self.is_kept {
            if let Some((kind, tap)) = &self.tap {
                tap.take(*kind, &self.buffer[..count]);
            }
            self.kept.take(&self.buffer[..count]);
        }
    }
}

impl Kept {
    /// Appends the next bytes.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        let (head, rest) = bytes.split_at(bytes.len().min(STREAM_BYTES_MAX - self.head.len()));
        self.head.extend_from_slice(head);
        let rest = &rest[rest.len().saturating_sub(TAIL_BYTES_MAX)..];
        self.tail.drain(..(self.tail.len() + rest.len()).saturating_sub(TAIL_BYTES_MAX));
        self.tail.extend_from_slice(rest);
    }

    /// Decodes the beginning. Invalid UTF-8 becomes U+FFFD, which is longer than the byte it replaces, so the bound
    /// applies once more. A character that the bound cuts in two is left out.
    pub(super) fn text(&self) -> Text {
        let is_cut = self.bytes > self.head.len() as u64;
        let mut text = Text { text: String::new(), bytes: self.bytes, is_truncated: is_cut };
        let mut chunks = self.head.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            let is_torn = is_cut && chunks.peek().is_none() && is_beginning_of_character(chunk.invalid());
            let replacement = if chunk.invalid().is_empty() || is_torn { "" } else { "\u{fffd}" };
            if !text.push(chunk.valid()) || !text.push(replacement) {
                break;
            }
        }
        text
    }

    /// Returns the last line that is not blank, shortened; empty if there is none.
    pub(super) fn last_line(&self) -> String {
        let mut end = self.head[self.head.len().saturating_sub(TAIL_BYTES_MAX)..].to_vec();
        end.extend_from_slice(&self.tail);
        let end = String::from_utf8_lossy(&end);
        let line = end.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default();
        line.chars().filter(|character| !character.is_control()).take(LAST_LINE_CHARS_MAX).collect()
    }
}

impl Text {
    /// Appends as much as fits and returns whether that was all.
    fn push(&mut self, more: &str) -> bool {
        let room = STREAM_BYTES_MAX - self.text.len();
        self.text.push_str(&more[..more.floor_char_boundary(room)]);
        let fits = more.len() <= room;
        self.is_truncated |= !fits;
        fits
    }
}

fn is_beginning_of_character(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes in `bytes` in pieces of several sizes, which must not matter, and returns the kept part.
    fn kept(bytes: &[u8]) -> Kept {
        let keep = |size: usize| {
            let mut kept = Kept::default();
            bytes.chunks(size).for_each(|piece| kept.take(piece));
            kept
        };
        let kept = keep(READ_BYTES_MAX);
        for size in [7, 1000, usize::MAX] {
            let other = keep(size);
            assert_eq!((other.text(), other.last_line()), (kept.text(), kept.last_line()), "pieces of {size}");
        }
        assert!(kept.head.len() <= STREAM_BYTES_MAX && kept.tail.len() <= TAIL_BYTES_MAX);
        kept
    }

    #[track_caller]
    fn check(bytes: &[u8], text_bytes: usize, is_truncated: bool) -> String {
        let text = kept(bytes).text();
        assert_eq!((text.text.len(), text.bytes, text.is_truncated), (text_bytes, bytes.len() as u64, is_truncated));
        text.text
    }

    #[test]
    fn the_bound_is_exact() {
        let bytes = vec![b'a'; STREAM_BYTES_MAX + 1];
        check(b"", 0, false);
        check(&bytes[1..], STREAM_BYTES_MAX, false);
        check(&bytes, STREAM_BYTES_MAX, true);
    }

    #[test]
    fn a_character_is_not_cut_in_two() {
        let mut bytes = vec![b'a'; STREAM_BYTES_MAX - 2];
        bytes.extend("€".bytes());
        assert!(check(&bytes, STREAM_BYTES_MAX - 2, true).ends_with('a'));
        // A stream that itself ends inside a character is invalid, and the result shows it.
        assert_eq!(check(b"a\xe2\x82", 4, false), "a\u{fffd}");
        // An error in the middle remains one when the end is cut.
        let mut faulty = b"\xe2x".to_vec();
        faulty.extend(vec![b'a'; STREAM_BYTES_MAX]);
        assert!(check(&faulty, STREAM_BYTES_MAX, true).starts_with("\u{fffd}x"));
    }

    #[test]
    fn replacing_does_not_break_the_bound() {
        check(&vec![0xff; STREAM_BYTES_MAX], STREAM_BYTES_MAX / 3 * 3, true);
        check(&vec![0xff; STREAM_BYTES_MAX / 3], STREAM_BYTES_MAX / 3 * 3, false);
    }

    #[test]
    fn the_last_line_is_found_at_the_end_of_the_output() {
        assert_eq!(kept(b"").last_line(), "");
        assert_eq!(kept(b" \n\n").last_line(), "");
        assert_eq!(kept(b"first\n\x1b[31mlast\r\n\n").last_line(), "[31mlast");
        let mut long = vec![b'a'; 3 * STREAM_BYTES_MAX];
        long.extend(b"\nthe end\n");
        assert_eq!(kept(&long).last_line(), "the end");
        let mut astride = vec![b'\n'; STREAM_BYTES_MAX - 3];
        astride.extend(b"the end");
        assert_eq!(kept(&astride).last_line(), "the end");
        assert_eq!(kept("ä".repeat(300).as_bytes()).last_line(), "ä".repeat(LAST_LINE_CHARS_MAX));
    }

    #[tokio::test]
    async fn draining_reads_available_output_without_waiting() {
        use std::io::Write;
        let ((stdout, mut writer), (stderr, _held)) = (io::pipe().unwrap(), io::pipe().unwrap());
        let mut streams = Streams::new(stdout.into(), stderr.into()).unwrap();
        writer.write_all(b"there").unwrap();
        streams.drain();
        writer.write_all(b"too late").unwrap();
        streams.drain();
        drop(writer);
        tokio::select! { biased; never = streams.read() => match never {}, () = std::future::ready(()) => {} }
        assert_eq!(streams.into_kept().0.text().text, "there");
    }
}
