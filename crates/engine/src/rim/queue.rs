//! The way to the rim: commands in the order in which they were sent, each with the moment at which it was.

use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use super::Command;

/// Where commands are sent to.
#[derive(Clone)]
pub(crate) struct Commands(mpsc::UnboundedSender<Sent>);

/// A command on its way.
pub(crate) struct Sent {
    at: Instant,
    command: Command,
}

/// Where commands come out.
pub(crate) struct Received(mpsc::UnboundedReceiver<Sent>);

/// Nobody takes commands any more.
#[derive(Debug)]
pub(crate) struct Gone;

/// Both ends.
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
    /// Waits for commands and takes up to so many of those that are there.
    pub(crate) async fn recv_many(&mut self, taken: &mut Vec<Sent>, at_most: usize) -> usize {
        self.0.recv_many(taken, at_most).await
    }

    /// Commands that wait.
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
