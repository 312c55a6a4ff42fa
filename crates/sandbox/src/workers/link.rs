//! One worker and the socket to it.

use crate::response::Response;
use crate::wire::{Message, TAKEN, read_frame, write_frame};
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The command that starts a worker: a program that calls [`worker::serve`](crate::worker::serve) with its standard
/// streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerCommand {
    /// The program; `/proc/self/exe` for the current one.
    pub program: PathBuf,
    /// The arguments of the program.
    pub arguments: Vec<OsString>,
}

/// A worker that waits for a request. Dropping it kills the worker.
pub(super) struct Link {
    child: Child,
    stream: UnixStream,
}

/// The reason for a missing answer. The worker must not be used again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Lost {
    /// The worker ended before it had read the request, so nothing has run.
    BeforeReading,
    /// The worker ended before it had answered; the text says how.
    Died(String),
    /// The worker did not answer in time, or has used up its processor time.
    TooSlow,
    /// The worker's message is not an answer.
    Garbled,
}

impl Link {
    pub(super) fn start(command: &WorkerCommand) -> io::Result<Link> {
        let (ours, theirs) = UnixStream::pair()?;
        let output = theirs.try_clone()?;
        let child = Command::new(&command.program)
            .args(&command.arguments)
            .env_clear()
            // Without it, the C library would read the host's time zone.
            .env("TZ", "UTC0")
            // The allocator would reserve more address space than a worker may have, and then nothing else is mapped.
            .env("MIMALLOC_ARENA_RESERVE", "32MiB")
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::from(OwnedFd::from(output)))
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Link { child, stream: ours })
    }

    /// Sends a request, waits until `read_by` for the worker to read it, and then for `wall` for the answer.
    pub(super) fn ask(&mut self, request: &[u8], read_by: Instant, wall: Duration) -> Result<Response, Lost> {
        let mut taken = [0];
        let sent = write_frame(&mut Until { stream: &self.stream, end: read_by }, request);
        let read = sent.and_then(|()| Until { stream: &self.stream, end: read_by }.read_exact(&mut taken));
        match read {
            Ok(()) if taken[0] == TAKEN => {}
            Ok(()) => return Err(Lost::Garbled),
            Err(_) => return Err(Lost::BeforeReading),
        }
        let received = read_frame(&mut Until { stream: &self.stream, end: Instant::now() + wall });
        match received {
            Ok(Some(bytes)) => Response::from_bytes(&bytes).ok_or(Lost::Garbled),
            Ok(None) => Err(self.lost(&io::ErrorKind::UnexpectedEof.into())),
            Err(error) => Err(self.lost(&error)),
        }
    }

    fn lost(&mut self, error: &io::Error) -> Lost {
        match error.kind() {
            io::ErrorKind::TimedOut => return Lost::TooSlow,
            io::ErrorKind::InvalidData => return Lost::Garbled,
            _ => {}
        }
        // Its end of the socket is closed, so it is ending or has ended; the kill bounds the wait.
        let _ = self.child.kill();
        match self.child.wait() {
            // On a busy machine the kernel's limit of processor time may come before the deadline here.
            Ok(status) if status.signal() == Some(libc::SIGXCPU) => Lost::TooSlow,
            Ok(status) => Lost::Died(how_it_ended(status)),
            Err(error) => Lost::Died(error.to_string()),
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // Both fail only for a child that was waited for already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn how_it_ended(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("it ended with code {code}"),
        (_, Some(signal)) => format!("it was ended by signal {signal}"),
        _ => "it ended".to_owned(),
    }
}

/// A stream that fails with `TimedOut` at a deadline, also if bytes keep arriving slowly.
struct Until<'a> {
    stream: &'a UnixStream,
    end: Instant,
}

impl Until<'_> {
    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.end.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(Some(left)) }
    }
}

/// A socket reports a timeout as `WouldBlock`.
fn timed_out(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::WouldBlock { io::ErrorKind::TimedOut.into() } else { error }
}

impl Read for Until<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        self.stream.read(buffer).map_err(timed_out)
    }
}

impl Write for Until<'_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(self.left()?)?;
        self.stream.write(buffer).map_err(timed_out)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asks a worker that ends itself by a signal when the request comes.
    fn ended_by(signal: &str) -> Result<Response, Lost> {
        let script = format!("dd bs=64 count=1 of=/dev/null 2>/dev/null; printf '\\121'; kill -{signal} $$");
        let command = WorkerCommand { program: "/bin/sh".into(), arguments: vec!["-c".into(), script.into()] };
        let minute = Duration::from_secs(60);
        Link::start(&command).unwrap().ask(b"request", Instant::now() + minute, minute)
    }

    #[test]
    fn a_worker_without_processor_time_is_too_slow() {
        assert_eq!(ended_by("XCPU").unwrap_err(), Lost::TooSlow);
        assert_eq!(ended_by("TERM").unwrap_err(), Lost::Died("it was ended by signal 15".to_owned()));
    }
}
