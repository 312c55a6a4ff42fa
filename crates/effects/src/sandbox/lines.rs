//! Messages as lines, bounded before they are in memory.

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// Reads lines.
pub(super) struct Lines<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
    bytes_max: usize,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(super) fn new(reader: R, bytes_max: usize) -> Self {
        Self { reader: BufReader::new(reader), line: Vec::new(), bytes_max }
    }

    /// Returns the next line without its end; `None` after the last one. A line without an end does not count, since its
    /// sender has not finished it. Cancel-safe: bytes that were read are kept. The error is a sentence.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<u8>>, String> {
        loop {
            let read = self.reader.fill_buf().await.map_err(|error| format!("its output cannot be read: {error}"))?;
            if read.is_empty() {
                return Ok(None);
            }
            let end = read.iter().position(|byte| *byte == b'\n');
            let part = read.get(..end.unwrap_or(read.len())).unwrap_or_default();
            if self.line.len() + part.len() > self.bytes_max {
                return Err(format!("it sent a message of more than {} bytes", self.bytes_max));
            }
            self.line.extend_from_slice(part);
            let taken = end.map_or(part.len(), |end| end + 1);
            self.reader.consume(taken);
            if end.is_some() {
                return Ok(Some(std::mem::take(&mut self.line)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(bytes: &[u8], bytes_max: usize) -> (Vec<String>, Option<String>) {
        let (mut lines, mut found) = (Lines::new(bytes, bytes_max), Vec::new());
        loop {
            match lines.next().await {
                Ok(Some(line)) => found.push(String::from_utf8(line).unwrap()),
                Ok(None) => return (found, None),
                Err(why) => return (found, Some(why)),
            }
        }
    }

    #[tokio::test]
    async fn lines_are_whole_and_bounded() {
        assert_eq!(lines(b"", 4).await, (vec![], None));
        assert_eq!(lines(b"a\n\nbcde\nx", 4).await, (vec!["a".into(), String::new(), "bcde".into()], None));
        let (found, why) = lines(b"ab\nabcde\n", 4).await;
        assert_eq!(found, ["ab"]);
        assert!(why.unwrap().contains("more than 4 bytes"));
        let long = vec![b'x'; 100_000];
        assert!(lines(&long, 10_000).await.1.is_some(), "a line without an end is refused at its bound");
    }
}
