//! One sandbox as the node sees it: its start, the messages, its end.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use mainspring_kernel::{
    effect::{Attempt, Outcome},
    key::ExecutionKey,
};
use rustix::process::Pid;
use tokio::{
    io::AsyncWriteExt,
    process::{ChildStdin, ChildStdout},
    sync::{mpsc, oneshot},
    task::JoinHandle,
    time::{Instant, timeout},
};

use super::{
    limits::{CLOSE_MAX, NOTICE_BYTES_MAX, PROTOCOL, REPLIES_PER_SECOND_MAX, REPLY_BYTES_MAX},
    lines::Lines,
    options::SandboxOptions,
    process::{Process, StartError, shown},
    profile::{Profile, WorkspaceMode},
    protocol::{Hello, Reply, Request},
};
use crate::{AttemptName, shell::Shell};

/// The end of an attempt that was sent.
pub(super) enum Ended {
    /// The sandbox has reported it.
    Result(Outcome),
    /// The sandbox has ended, with all that it ran on this machine.
    Lost,
}

/// The properties of a sandbox that was started for a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probed {
    /// The release of its executable.
    pub release: String,
    /// The mode of scripts in it.
    pub scripts: String,
    /// An explanation of the mode.
    pub why: String,
}

/// A handle of a running sandbox.
#[derive(Clone)]
pub(super) struct Sandbox {
    orders: mpsc::UnboundedSender<Order>,
    /// Attempts that are being sent or are open.
    open: Arc<AtomicUsize>,
    leader: Pid,
}

/// An attempt that was sent.
pub(super) struct Pending {
    id: u64,
    ended: oneshot::Receiver<Ended>,
    orders: mpsc::UnboundedSender<Order>,
    _open: Open,
}

/// Counts an attempt while it lives.
struct Open(Arc<AtomicUsize>);

/// A message to the task of a sandbox.
enum Order {
    Execute {
        attempt: Box<Attempt>,
        sent: oneshot::Sender<u64>,
        ended: oneshot::Sender<Ended>,
    },
    Cancel {
        id: u64,
        is_forced: bool,
    },
    /// End, if no attempt is open.
    Retire,
    /// End with the grace period.
    End,
}

/// An attempt that the sandbox performs.
struct Call {
    execution: ExecutionKey,
    step: String,
    number: u32,
    /// Its output may contain secrets, so its lines are not shown.
    has_secrets: bool,
    ended: oneshot::Sender<Ended>,
}

/// A line to write, with a signal for its sender once all of it is written.
type Line = (Vec<u8>, Option<(u64, oneshot::Sender<u64>)>);

/// The task of a sandbox.
pub(super) struct Running {
    profile: Arc<Profile>,
    options: SandboxOptions,
    name: String,
    process: Process,
    lines: Lines<ChildStdout>,
    writer: mpsc::UnboundedSender<Line>,
    writing: JoinHandle<()>,
    orders: mpsc::UnboundedReceiver<Order>,
    calls: BTreeMap<u64, Call>,
    calls_made: u64,
    open: Arc<AtomicUsize>,
    /// Attempts of the organization that wait for the end of a sandbox.
    waiting: Arc<AtomicUsize>,
}

/// A message that was handled.
enum Received {
    Result,
    Other,
}

/// The reason for the end of a sandbox.
enum End {
    /// No script has run for a time, or the execution has ended.
    Idle,
    /// An attempt did not end after its cancel.
    Cancelled,
    /// It closed its output, or broke the protocol. The text is a sentence.
    Fault(String),
}

/// Starts a sandbox and waits for its hello.
pub(super) async fn start(
    profile: &Arc<Profile>,
    options: &SandboxOptions,
    (name, workspace): (String, &str),
    waiting: Arc<AtomicUsize>,
) -> Result<(Sandbox, Running, Hello), StartError> {
    let (process, input, output) = Process::spawn(profile, &name, workspace)?;
    let mut lines = Lines::new(output, REPLY_BYTES_MAX);
    let (writer, to_write) = mpsc::unbounded_channel();
    let writing = tokio::spawn(write(input, to_write, options.timing.write));
    // A command that does not take it says nothing either.
    let _ = writer.send((Request::Hello { traces: options.traces }.encode(), None));
    let hello = match first_message(&mut lines, profile.start_timeout).await {
        Ok(hello) => hello,
        Err(error) => {
            drop(writer);
            writing.abort();
            let told = process.last_error().await;
            process.end(profile, Duration::ZERO).await;
            return Err(match error {
                StartError::Refused(why) => StartError::Refused(why + &told),
                StartError::Failed(why) => StartError::Failed(why + &told),
            });
        }
    };
    let open = Arc::new(AtomicUsize::new(0));
    let (orders, received) = mpsc::unbounded_channel();
    let sandbox = Sandbox { orders, open: open.clone(), leader: process.leader() };
    let running = Running {
        profile: profile.clone(),
        options: options.clone(),
        name,
        process,
        lines,
        writer,
        writing,
        orders: received,
        calls: BTreeMap::new(),
        calls_made: 0,
        open,
        waiting,
    };
    Ok((sandbox, running, hello))
}

/// Waits for the hello of a sandbox, and checks that it speaks the same protocol and runs scripts.
async fn first_message(lines: &mut Lines<ChildStdout>, limit: Duration) -> Result<Hello, StartError> {
    let line = match timeout(limit, lines.next()).await {
        Ok(Ok(Some(line))) => line,
        Ok(Ok(None)) => return Err(StartError::Failed("the command ended before it said hello".into())),
        Ok(Err(why)) => return Err(StartError::Refused(why)),
        Err(_) => return Err(StartError::Failed(format!("no hello came in {} ms", limit.as_millis()))),
    };
    let hello = match Reply::decode(&line) {
        Ok(Reply::Hello(hello)) => hello,
        Ok(_) => return Err(StartError::Refused("another message came before its hello".into())),
        Err(why) => {
            let line = shown(&String::from_utf8_lossy(&line));
            return Err(StartError::Refused(format!(
                "its first line is no hello of `workflow serve` ({why}): `{line}`"
            )));
        }
    };
    let (release, why) = (shown(&hello.release), shown(&hello.why));
    match hello.scripts.as_str() {
        _ if hello.protocol != PROTOCOL => Err(StartError::Refused(format!(
            "its `workflow` of release {release} speaks version {}, and this node version {PROTOCOL}",
            hello.protocol
        ))),
        "contained" | "uncontained" => Ok(hello),
        _ => Err(StartError::Refused(format!("scripts are off in it: {why}"))),
    }
}

/// Starts a sandbox of a sandbox profile, and ends it again. The workspace is an empty folder. The error is a sentence.
pub async fn probe(profile: &Arc<Profile>, options: &SandboxOptions, workspace: &str) -> Result<Probed, String> {
    let name = format!("mainspring-check-{}", std::process::id());
    let started = start(profile, options, (name, workspace), Arc::default()).await;
    let (sandbox, running, hello) = started.map_err(|error| match error {
        StartError::Refused(why) | StartError::Failed(why) => why,
    })?;
    drop(sandbox);
    running.run().await;
    let [release, scripts, why] = [hello.release, hello.scripts, hello.why].map(|text| shown(&text));
    Ok(Probed { release, scripts, why })
}

/// Writes messages, each within a time, until their sender is gone. Then the input of the sandbox ends.
async fn write(mut input: ChildStdin, mut lines: mpsc::UnboundedReceiver<Line>, limit: Duration) {
    while let Some((line, sent)) = lines.recv().await {
        let written = timeout(limit, async {
            input.write_all(&line).await?;
            input.flush().await
        });
        if !matches!(written.await, Ok(Ok(()))) {
            return;
        }
        if let Some((id, sent)) = sent {
            // Its caller may have been canceled.
            let _ = sent.send(id);
        }
    }
}

impl Sandbox {
    /// The leader of the process group of its command.
    pub(super) fn leader(&self) -> Pid {
        self.leader
    }

    /// True while it accepts attempts.
    pub(super) fn is_alive(&self) -> bool {
        !self.orders.is_closed()
    }

    /// True if no attempt is open.
    pub(super) fn is_idle(&self) -> bool {
        self.open.load(Ordering::SeqCst) == 0
    }

    /// Ends it, unless an attempt is open.
    pub(super) fn retire(&self) {
        // It may have ended.
        let _ = self.orders.send(Order::Retire);
    }

    /// Ends it.
    pub(super) fn end(&self) {
        let _ = self.orders.send(Order::End);
    }

    /// Sends an attempt. The error says that it was certainly not sent: the sandbox acts on whole messages.
    pub(super) async fn execute(&self, attempt: &Attempt) -> Result<Pending, String> {
        let gone = || "the sandbox ended before the attempt was sent".to_owned();
        let (counted, (sent, is_sent), (ends, ended)) = (Open::new(&self.open), oneshot::channel(), oneshot::channel());
        let order = Order::Execute { attempt: Box::new(attempt.clone()), sent, ended: ends };
        self.orders.send(order).map_err(|_| gone())?;
        let id = is_sent.await.map_err(|_| gone())?;
        Ok(Pending { id, ended, orders: self.orders.clone(), _open: counted })
    }
}

impl Pending {
    /// Waits for the end. Cancel-safe.
    pub(super) async fn ended(&mut self) -> Ended {
        (&mut self.ended).await.unwrap_or(Ended::Lost)
    }

    /// Asks the sandbox to end the attempt.
    pub(super) fn cancel(&self, is_forced: bool) {
        let _ = self.orders.send(Order::Cancel { id: self.id, is_forced });
    }

    /// Ends the whole sandbox.
    pub(super) fn end_sandbox(&self) {
        let _ = self.orders.send(Order::End);
    }
}

impl Open {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Running {
    /// Passes messages until the sandbox ends, and then ends all that is left of it.
    pub(super) async fn run(mut self) {
        let end = self.serve().await;
        self.finish(end).await;
    }

    async fn serve(&mut self) -> End {
        let (started, timing) = (Instant::now(), self.options.timing);
        let (mut heard, mut idle_since) = (started, started);
        let (mut second, mut replies) = (started, 0_u32);
        let mut pings = tokio::time::interval(timing.ping);
        loop {
            let idle_at = idle_since + self.profile.idle_timeout;
            tokio::select! {
                line = self.lines.next() => {
                    let line = match line {
                        Ok(Some(line)) => line,
                        Ok(None) => return End::Fault("it ended".into()),
                        Err(why) => return End::Fault(why),
                    };
                    heard = Instant::now();
                    if heard.duration_since(second) >= Duration::from_secs(1) {
                        (second, replies) = (heard, 0);
                    }
                    replies += 1;
                    if replies > REPLIES_PER_SECOND_MAX {
                        return End::Fault(format!("it sent more than {REPLIES_PER_SECOND_MAX} messages in a second"));
                    }
                    match self.received(&line) {
                        Ok(Received::Result) if self.calls.is_empty() && self.waiting.load(Ordering::SeqCst) > 0 => {
                            return End::Idle;
                        }
                        Ok(Received::Result) => idle_since = heard,
                        Ok(Received::Other) if line.len() > NOTICE_BYTES_MAX => {
                            return End::Fault(format!(
                                "it sent a message of more than {NOTICE_BYTES_MAX} bytes that is not a result"
                            ));
                        }
                        Ok(Received::Other) => {}
                        Err(why) => return End::Fault(why),
                    }
                }
                order = self.orders.recv() => match order {
                    Some(Order::Execute { attempt, sent, ended }) => self.execute(*attempt, sent, ended),
                    Some(Order::Cancel { id, is_forced }) if self.calls.contains_key(&id) => {
                        let _ = self.writer.send((Request::Cancel { id, is_forced }.encode(), None));
                    }
                    Some(Order::Cancel { .. }) => {}
                    Some(Order::Retire) if self.is_unused() => return End::Idle,
                    Some(Order::Retire) => {}
                    Some(Order::End) if self.calls.is_empty() => return End::Idle,
                    Some(Order::End) => return End::Cancelled,
                    None => return End::Idle,
                },
                _ = &mut self.writing => return End::Fault("it does not take messages".into()),
                _ = pings.tick() => {
                    let _ = self.writer.send((Request::Ping.encode(), None));
                    if heard.elapsed() > timing.silence {
                        return End::Fault(format!("nothing came from it for {} ms", timing.silence.as_millis()));
                    }
                }
                () = tokio::time::sleep_until(idle_at), if self.is_unused() => return End::Idle,
            }
        }
    }

    /// True if no attempt is open or about to be sent.
    fn is_unused(&self) -> bool {
        self.calls.is_empty() && self.open.load(Ordering::SeqCst) == 0
    }

    fn execute(&mut self, attempt: Attempt, sent: oneshot::Sender<u64>, ended: oneshot::Sender<Ended>) {
        self.calls_made += 1;
        let id = self.calls_made;
        let call = Call {
            execution: attempt.execution,
            step: attempt.step.clone(),
            number: attempt.number,
            has_secrets: !attempt.secrets.references.is_empty(),
            ended,
        };
        let attempt = match self.profile.workspace {
            WorkspaceMode::Shared => attempt,
            WorkspaceMode::Own => Attempt { workspace: None, ..attempt },
        };
        self.calls.insert(id, call);
        let line = Request::Execute { id, attempt: Box::new(attempt) }.encode();
        let _ = self.writer.send((line, Some((id, sent))));
    }

    /// Handles a message. The error breaks off with the sandbox: it answers for calls that it does not have, or sends
    /// nonsense.
    fn received(&mut self, line: &[u8]) -> Result<Received, String> {
        match Reply::decode(line)? {
            Reply::Pong => Ok(Received::Other),
            Reply::Hello(_) => Err("it said hello again".into()),
            Reply::Progress { id, mut output } => {
                let call = self.calls.get(&id).ok_or("it reports on an attempt that it does not have")?;
                output.line = if call.has_secrets { String::new() } else { shown(&output.line) };
                self.options.progress.output(call.name(), output);
                Ok(Received::Other)
            }
            Reply::Result { id, outcome } => {
                let call = self.calls.remove(&id).ok_or("it sent a result of an attempt that it does not have")?;
                self.options.progress.attempt_ended(call.name());
                // Its caller may have been dropped with the engine.
                let _ = call.ended.send(Ended::Result(outcome));
                Ok(Received::Result)
            }
        }
    }

    /// Ends the sandbox with all that it runs on this machine. Open attempts are lost after that, so that no attempt runs
    /// beside its repetition.
    async fn finish(self, end: End) {
        let Self { profile, options, name, process, mut lines, writer, writing, mut orders, calls, .. } = self;
        let SandboxOptions { timing, log, progress, .. } = options;
        // Attempts that are not sent yet are refused from here on.
        orders.close();
        while let Ok(order) = orders.try_recv() {
            drop(order);
        }
        drop(writer);
        let grace = match &end {
            End::Idle => {
                let closed = async {
                    let _ = writing.await;
                    while let Ok(Some(_)) = lines.next().await {}
                };
                let _ = timeout(CLOSE_MAX, closed).await;
                timing.grace
            }
            End::Cancelled => {
                writing.abort();
                timing.grace
            }
            End::Fault(_) => {
                writing.abort();
                Duration::ZERO
            }
        };
        let told = process.last_error().await;
        process.end(&profile, grace).await;
        for call in calls.values() {
            Shell::end_marked(call.name()).await;
            progress.attempt_ended(call.name());
        }
        let profile = &profile.name;
        match end {
            End::Fault(why) => {
                log(&format!("the sandbox {name} of the sandbox profile `{profile}` was ended: {why}{told}"))
            }
            End::Cancelled => {
                log(&format!(
                    "the sandbox {name} of the sandbox profile `{profile}` was ended: it did not end a canceled attempt"
                ));
            }
            End::Idle => {}
        }
        for call in calls.into_values() {
            let _ = call.ended.send(Ended::Lost);
        }
    }
}

impl Call {
    fn name(&self) -> AttemptName<'_> {
        AttemptName { execution: self.execution, step: &self.step, number: self.number }
    }
}
