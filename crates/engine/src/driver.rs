//! The asynchronous driver. It passes the outputs of the node to the store, the executors and the callers, and turns
//! their results into events of the node. It decides nothing.

mod attempts;
mod command;
mod failures;
mod loading;
mod maintenance;
mod metrics;
mod queue;
mod reading;
mod state;
mod telemetry;
mod turns;

use std::{
    sync::PoisonError,
    time::{Duration, Instant},
};

use mainspring_effects::{AttemptName, CancelHandle};
use mainspring_kernel::key::ExecutionKey;
use mainspring_store::Store;
use tokio::net::UnixDatagram;
use tracing::error;

use crate::{
    clock::{Clock, ClockReading, read_clocks},
    inbox,
    node::{ForwardRequest, NodeEvent, NodeOutput, Report, Step},
};
pub(crate) use command::Command;
use failures::Watchdog;
pub(crate) use queue::{Commands, Received, queue};
pub(crate) use state::{
    Driver, DriverHandles,
    callers::{Asker, Watcher},
};

/// Commands taken from the queue at a time.
const COMMANDS_AT_A_TIME: usize = 1024;

impl Driver {
    /// Runs until the engine is drained or cannot continue.
    pub(crate) async fn run(mut self, mut received: Received) {
        let watchdog = Watchdog::of(&self.why_stopped);
        let wakeup_socket = self.wakeup_socket();
        self.subscribe();
        self.telemetry.log_start(&self.node);
        let mut commands = Vec::with_capacity(COMMANDS_AT_A_TIME);
        while !self.node.is_finished() {
            let now = Instant::now();
            let next = [self.node.next_wake(&SystemClock), Some(self.maintenance.next(now))];
            let next = next.into_iter().flatten().min().map(|after| tokio::time::Instant::from_std(now + after));
            tokio::select! {
                biased;
                count = received.recv_many(&mut commands, COMMANDS_AT_A_TIME) => if count == 0 { break },
                answered = self.commits.next(), if !self.node.is_over() => self.committed(answered),
                Some(answered) = self.reads.heartbeat() => self.heartbeat_answered(answered),
                () = sleep_until(next) => {}
                () = woken(wakeup_socket.as_ref()) => self.node.receive(NodeEvent::WokenUp),
                () = tokio::task::yield_now(), if self.node.has_more() => {}
            }
            self.maintain();
            self.telemetry.count_commands(&commands, received.len());
            for command in commands.drain(..) {
                self.handle_command(command.into_command());
            }
            self.run_round(&mut received);
            self.telemetry.metrics.take(self.node.shard_mut().counters());
            self.telemetry.metrics.inbox.taken.increment(self.node.take_received());
        }
        self.telemetry.log_stop(&self.node, &self.why_stopped);
        if let Some((data_dir, _)) = &self.data_dir {
            let _ = std::fs::remove_file(data_dir.wakeup_socket());
        }
        if let Some(session) = self.node.session().cloned() {
            let _ = self.runtime.spawn_blocking(move || session.leave()).await;
        }
        watchdog.dismiss();
    }

    /// Runs a round of the node. Results of commits and of heartbeats are passed to it between any two steps, and new
    /// commands while several organizations share it.
    fn run_round(&mut self, received: &mut Received) {
        loop {
            while self.node.shard().is_shared()
                && let Some(command) = received.try_recv()
            {
                self.handle_command(command.into_command());
            }
            if !self.node.is_over()
                && let Some(answered) = self.commits.try_next()
            {
                self.committed(Some(answered));
            }
            if let Some(answered) = self.reads.try_heartbeat() {
                self.heartbeat_answered(answered);
            }
            match self.node.step(&SystemClock) {
                Step::Perform(output) => self.perform(output),
                Step::Worked => {}
                Step::RoundOver => return,
            }
        }
    }

    fn handle_command(&mut self, command: Command) {
        match command {
            Command::Node(event) => {
                if let NodeEvent::Ended(execution, instance, attempt, outcome) = &event {
                    self.see_attempt_end(&(*execution, instance.clone(), *attempt), outcome);
                }
                self.node.receive(event);
            }
            Command::WatchEnded { name, began, ended } => self.watch_ended(name, began, ended),
            Command::Ask(..) if self.node.is_draining() => {}
            Command::Ask(ticket, asker, event) => {
                self.callers.ask(ticket, asker);
                self.node.receive(NodeEvent::Ask(ticket, event));
            }
            Command::Watch(execution, watcher) => self.callers.watch(execution, watcher),
            Command::Evaluate(execution, evaluation, suspended) => self.evaluate(execution, evaluation, *suspended),
            Command::FilesChecked(found) => self.files_checked(found),
            Command::Swept(swept) => self.swept(swept),
            Command::Pending(sender) => drop(sender.send(self.node.shard().pending())),
        }
    }

    fn committed(&mut self, answered: Option<state::commits::Answered>) {
        let Some((commit_id, answer)) = answered else {
            let why = "the thread that writes has ended; this is a fault of ours";
            return self.node.receive(NodeEvent::Fatal(why.into()));
        };
        self.telemetry.see_commit(commit_id, &answer);
        self.node.receive(NodeEvent::Committed { commit_id, answer });
    }

    fn perform(&mut self, output: NodeOutput) {
        match output {
            NodeOutput::Commit { commit_id, batch, pause_ms } => self.commits.send(commit_id, batch, pause_ms),
            NodeOutput::Load(execution, number) => self.load(execution, number),
            NodeOutput::Perform(execution, instance, attempt) => self.perform_attempt(execution, instance, attempt),
            NodeOutput::Stop(name) if self.node.is_draining() => self.attempts.end(&name, CancelHandle::leave),
            NodeOutput::Stop(name) => self.attempts.end(&name, CancelHandle::cancel),
            NodeOutput::Kill(name) => self.attempts.end(&name, CancelHandle::kill),
            NodeOutput::Reconcile(execution, instance, attempt) => self.reconcile(execution, instance, attempt),
            NodeOutput::Lease(wanted) => self.lease(wanted),
            NodeOutput::Forget(execution, step, number) => self.forget(execution, &step, number),
            NodeOutput::Evaluate(execution, evaluation, suspended) => {
                self.evaluate(execution, evaluation, *suspended);
            }
            NodeOutput::Reply(ticket, reply) => self.callers.reply(ticket, reply),
            NodeOutput::Unanswered(ticket) => self.callers.drop_caller(ticket),
            NodeOutput::Notify(frame) => {
                self.telemetry.record_frame(&frame);
                if frame.status.is_final() {
                    self.attempts.executors().execution_ended(frame.execution);
                }
                self.callers.notify(&frame);
            }
            NodeOutput::Heartbeat(request) => self.send_heartbeat(request),
            NodeOutput::Rejoin => self.rejoin(),
            NodeOutput::ReadInbox(request) => self.read_inbox(request),
            NodeOutput::ReadDue(partitions, until_ms) => self.read_due(partitions, until_ms),
            NodeOutput::NotifyNodes(partitions) => self.store.notify(&partitions),
            NodeOutput::Forward(request) => self.forward(request),
            NodeOutput::EndRemote(node, attempts) => {
                self.in_background(move |store| drop(store.end_remote(&node, &attempts)));
            }
            NodeOutput::StopRemote(attempt) => self.in_background(move |store| drop(store.stop_remote(&attempt))),
            NodeOutput::Quarantine(execution, why) => self.quarantine(execution, why),
            NodeOutput::ReadQuarantined => self.read_quarantined(),
            NodeOutput::NotifyParents(parents) => self.notify_parents(parents),
            NodeOutput::ReadOrganization(organization, over) => self.read_organization(organization, over),
            NodeOutput::CountUnfinished(organization) => self.count_unfinished(organization),
            NodeOutput::ReadQueues => self.read_queues(),
            NodeOutput::Admit(executions) => self.admit(executions),
            NodeOutput::Report(report) => self.observe(report),
            NodeOutput::Fatal(why) => self.stop(why),
        }
    }

    fn observe(&mut self, report: Report) {
        if matches!(report, Report::OwnershipChanged) {
            self.publish();
        }
        self.telemetry.observe(&report, &self.node);
    }

    /// Publishes the owned partitions to callers of the engine.
    fn publish(&self) {
        let owned = self.node.owned();
        self.telemetry.metrics.partitions.held.set(owned.held.len() as f64);
        *self.owned.lock().unwrap_or_else(PoisonError::into_inner) = owned;
    }

    fn stop(&mut self, why: String) {
        error!(why, "the engine cannot continue");
        self.why_stopped.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
        self.callers.clear();
    }

    /// Removes the process record of an attempt. A record that stays is cleaned up at the next start.
    fn forget(&mut self, execution: ExecutionKey, step: &str, number: u32) {
        if self.has_recorded_frames() {
            self.attempts.executors().forget(AttemptName { execution, step, number });
        }
    }

    /// Runs a request to the store whose answer is not awaited.
    fn in_background(&self, work: impl FnOnce(&dyn Store) + Send + 'static) {
        let store = self.store.clone();
        self.runtime.spawn_blocking(move || work(&*store));
    }

    /// Subscribes to the notifications of other nodes.
    fn subscribe(&self) {
        if self.node.session().is_some() {
            let commands = self.commands.clone();
            let notified =
                move |partitions: &[u32]| drop(commands.send(Command::Node(NodeEvent::Notified(partitions.to_vec()))));
            self.store.subscribe(Box::new(notified));
        }
    }

    /// Sends a receipt to the inbox of an execution that another node owns, and then records the end of its attempt. If
    /// that fails, the message itself ends the attempt.
    fn forward(&self, request: ForwardRequest) {
        let (store, commands, key) = (self.store.clone(), self.commands.clone(), *self.loader.key());
        self.runtime.spawn(async move {
            let ForwardRequest { number, execution, receipt, remote } = request;
            let enqueue = move || {
                let is_enqueued = inbox::enqueue(&*store, None, &key, (execution, &receipt), None).is_ok();
                if let Some((node, of)) = remote.filter(|_| is_enqueued) {
                    let _ = store.end_remote(&node, &[of]);
                }
                is_enqueued
            };
            // After a panic it is unknown if the message was enqueued.
            let is_enqueued = tokio::task::spawn_blocking(enqueue).await.unwrap_or(false);
            let _ = commands.send(Command::Node(NodeEvent::Forwarded(number, is_enqueued)));
        });
    }

    /// Binds the wake-up socket. A path that is too long for a socket leaves `None`, and messages are found by polling.
    fn wakeup_socket(&self) -> Option<UnixDatagram> {
        let path = self.data_dir.as_ref()?.0.wakeup_socket();
        let _ = std::fs::remove_file(&path);
        UnixDatagram::bind(path).ok()
    }
}

/// The clocks of this machine.
struct SystemClock;

impl Clock for SystemClock {
    fn reading(&self) -> ClockReading {
        read_clocks()
    }

    fn elapsed(&self) -> Duration {
        duration(rustix::time::clock_gettime(rustix::time::ClockId::Monotonic))
    }

    fn processor_time(&self) -> Duration {
        duration(rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime))
    }
}

fn duration(time: rustix::time::Timespec) -> Duration {
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

async fn sleep_until(wake: Option<tokio::time::Instant>) {
    match wake {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

async fn woken(wakeup_socket: Option<&UnixDatagram>) {
    match wakeup_socket {
        Some(wakeup_socket) => drop(wakeup_socket.recv(&mut [0; 1]).await),
        None => std::future::pending().await,
    }
}
