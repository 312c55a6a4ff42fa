//! The command queue of the driver. Commands keep the order in which they were sent, each with its time of sending.

use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use super::command::Command;

/// The sending end.
#[derive(Clone)]
pub(crate) struct Commands(mpsc::UnboundedSender<Sent>);

/// A queued command with its time of sending.
pub(crate) struct Sent {
    at: Instant,
    command: Command,
}

/// The receiving end.
pub(crate) struct Received(mpsc::UnboundedReceiver<Sent>);

/// The driver has ended.
#[derive(Debug)]
pub(crate) struct Gone;

pub(crate) fn queue() -> (Commands, Received) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (Commands(sender), Received(receiver))
}

impl Commands {
    pub(crate) fn send(&self, command: Command) -> Result<(), Gone> {
        self.0.send(Sent { at: Instant::now(), command }).map_err(|_| Gone)
    }
}

impl Received {
    /// Waits for commands, and takes up to `at_most` of the queued ones.
    pub(crate) async fn recv_many(&mut self, taken: &mut Vec<Sent>, at_most: usize) -> usize {
        self.0.recv_many(taken, at_most).await
    }

    /// Takes a command that has arrived.
    pub(crate) fn try_recv(&mut self) -> Option<Sent> {
        self.0.try_recv().ok()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

impl Sent {
    pub(crate) fn into_command(self) -> Command {
        self.command
    }

    pub(crate) fn age(&self) -> Duration {
        self.at.elapsed()
    }
}
