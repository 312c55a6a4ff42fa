//! Messages as lines on the streams of a process, within bounds.

use mainspring_kernel::{json, value::Value};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader},
    time::timeout,
};

use crate::{
    error::AgentError,
    limits::{ATTEMPT_BYTES_MAX, MESSAGE_BYTES_MAX, MESSAGES_MAX, WRITE_TIMEOUT},
};

/// Both directions of a connection.
pub(crate) struct Lines<R, W> {
    input: BufReader<R>,
    /// The beginning of a line. A read may be canceled in the middle of one.
    line: Vec<u8>,
    output: W,
    bytes_left: u64,
    messages_left: u64,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Lines<R, W> {
    pub(crate) fn new(input: R, output: W) -> Self {
        let input = BufReader::new(input);
        Self { input, line: Vec::new(), output, bytes_left: ATTEMPT_BYTES_MAX, messages_left: MESSAGES_MAX }
    }

    /// Reads the next message. Nothing is lost if the read is canceled.
    pub(crate) async fn next(&mut self) -> Result<Value, AgentError> {
        loop {
            self.fill_line().await?;
            let line = std::mem::take(&mut self.line);
            if line.trim_ascii().is_empty() {
                continue;
            }
            self.messages_left = self
                .messages_left
                .checked_sub(1)
                .ok_or_else(|| AgentError::Protocol(format!("it sent more than {MESSAGES_MAX} messages")))?;
            let read = json::value(&line);
            return read.map_err(|error| AgentError::Protocol(format!("it wrote a line that is no message: {error}")));
        }
    }

    async fn fill_line(&mut self) -> Result<(), AgentError> {
        loop {
            let read = self.input.fill_buf().await.map_err(|_| AgentError::Ended)?;
            if read.is_empty() {
                return Err(AgentError::Ended);
            }
            let end = read.iter().position(|byte| *byte == b'\n');
            let part = end.map_or(read, |end| &read[..end]);
            let used = part.len() + usize::from(end.is_some());
            if self.line.len() + part.len() > MESSAGE_BYTES_MAX {
                return Err(AgentError::Protocol(format!("it wrote a line of more than {MESSAGE_BYTES_MAX} bytes")));
            }
            self.bytes_left = self
                .bytes_left
                .checked_sub(used as u64)
                .ok_or_else(|| AgentError::Protocol(format!("it wrote more than {ATTEMPT_BYTES_MAX} bytes")))?;
            self.line.extend_from_slice(part);
            self.input.consume(used);
            if end.is_some() {
                return Ok(());
            }
        }
    }

    /// Sends a message. An agent that does not read it in time has failed.
    pub(crate) async fn send(&mut self, message: &Value) -> Result<(), AgentError> {
        let mut line = json::compact(message).into_bytes();
        line.push(b'\n');
        let sent = async {
            self.output.write_all(&line).await?;
            self.output.flush().await
        };
        match timeout(WRITE_TIMEOUT, sent).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(AgentError::Ended),
            Err(_) => Err(AgentError::Protocol("it does not read its messages".into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(text: &[u8]) -> Result<Value, AgentError> {
        let mut lines = Lines::new(text, Vec::new());
        lines.next().await
    }

    #[tokio::test]
    async fn a_message_is_a_line_within_bounds() {
        assert_eq!(read(b"\n  \n{\"a\":1}\n").await.unwrap().get("a").and_then(Value::as_u64), Some(1));
        assert_eq!(read(b"{\"a\":1}").await, Err(AgentError::Ended), "a line without its end is not read");
        let long = vec![b' '; MESSAGE_BYTES_MAX + 1];
        assert!(matches!(read(&long).await, Err(AgentError::Protocol(why)) if why.contains("line of more than")));
        let deep = "[".repeat(100_000) + "\n";
        for wrong in ["{\n", "hello\n", &deep] {
            assert!(matches!(read(wrong.as_bytes()).await, Err(AgentError::Protocol(_))));
        }
    }

    #[tokio::test]
    async fn the_messages_and_bytes_of_an_attempt_are_bounded() {
        let mut lines = Lines::new(&b"1\n2\n3\n"[..], Vec::new());
        lines.messages_left = 2;
        assert!(lines.next().await.is_ok() && lines.next().await.is_ok());
        assert!(matches!(lines.next().await, Err(AgentError::Protocol(why)) if why.contains("messages")));
        let mut lines = Lines::new(&b"1\n2\n3\n"[..], Vec::new());
        lines.bytes_left = 4;
        assert!(lines.next().await.is_ok() && lines.next().await.is_ok());
        assert!(matches!(lines.next().await, Err(AgentError::Protocol(why)) if why.contains("bytes")));
    }
}
