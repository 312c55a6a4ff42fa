//! The other end: `workflow serve`, which performs the attempts of one execution inside of a sandbox.
//!
//! It keeps nothing. At the end of its input it kills its scripts and ends, since a node that is gone counts its attempts
//! as interrupted.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use mainspring_kernel::effect::{Attempt, Outcome};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt},
    sync::mpsc,
    task::JoinSet,
    time::{MissedTickBehavior, timeout},
};

use super::{
    limits::{PROGRESS_PAUSE, PROTOCOL, REQUEST_BYTES_MAX},
    lines::Lines,
    protocol::{Hello, Reply, Request},
};
use crate::{
    CancelHandle, CancelSignal,
    shell::{Shell, Tap},
};

/// The settings of [`serve`].
pub struct Serve {
    /// Makes the executor of scripts. The argument is true if they get the trace context.
    pub shell: Box<dyn FnOnce(bool) -> Shell + Send>,
    /// The workspace of attempts that come without one.
    pub workspace: PathBuf,
    /// The release of this executable.
    pub release: String,
    /// `contained`, `uncontained` or `off`, with an explanation.
    pub scripts: (String, String),
    /// Ends if nothing comes from the node for this time.
    pub silence: Duration,
}

/// The state after hello.
struct Serving {
    shell: Arc<Shell>,
    workspace: String,
    replies: mpsc::UnboundedSender<Vec<u8>>,
    calls: BTreeMap<u64, CancelHandle>,
    running: JoinSet<u64>,
}

/// Performs attempts until the input ends. `stop` is SIGTERM: scripts are canceled, with their grace period. The error is a
/// sentence on a node that does not keep to the protocol.
pub async fn serve(
    options: Serve,
    input: impl AsyncRead + Unpin,
    mut output: impl AsyncWrite + Send + Unpin + 'static,
    stop: impl Future<Output = ()>,
) -> Result<(), String> {
    let Serve { shell, workspace, release, scripts: (scripts, why), silence } = options;
    let mut lines = Lines::new(input, REQUEST_BYTES_MAX);
    tokio::pin!(stop);
    let first = tokio::select! {
        line = lines.next() => line?,
        () = &mut stop => return Ok(()),
    };
    let Some(first) = first else { return Ok(()) };
    let Request::Hello { traces } = Request::decode(&first)? else {
        return Err("the first message is no hello".into());
    };
    let (replies, mut to_write) = mpsc::unbounded_channel::<Vec<u8>>();
    let writing = tokio::spawn(async move {
        while let Some(line) = to_write.recv().await {
            if output.write_all(&line).await.is_err() || output.flush().await.is_err() {
                return;
            }
        }
    });
    let hello = Reply::Hello(Hello { protocol: PROTOCOL, release, scripts, why });
    // A writer that has failed means that the node is gone. The end of the input follows.
    let _ = replies.send(hello.encode());
    let workspace = workspace.display().to_string();
    let (shell, calls, running) = (Arc::new(shell(traces)), BTreeMap::new(), JoinSet::new());
    let mut serving = Serving { shell, workspace, replies, calls, running };
    let served = serving.until_end(&mut lines, stop, silence).await;
    serving.end().await;
    drop(serving);
    let _ = timeout(silence, writing).await;
    served
}

impl Serving {
    async fn until_end<R: AsyncRead + Unpin>(
        &mut self,
        lines: &mut Lines<R>,
        mut stop: impl Future<Output = ()> + Unpin,
        silence: Duration,
    ) -> Result<(), String> {
        let mut is_stopping = false;
        loop {
            if is_stopping && self.calls.is_empty() {
                return Ok(());
            }
            tokio::select! {
                line = timeout(silence, lines.next()) => match line {
                    Ok(Ok(Some(line))) => self.received(&line, is_stopping)?,
                    Ok(Ok(None)) => return Ok(()),
                    Ok(Err(why)) => return Err(why),
                    Err(_) => return Err(format!("nothing came from the node for {} ms", silence.as_millis())),
                },
                Some(ended) = self.running.join_next() => {
                    if let Ok(id) = ended {
                        self.calls.remove(&id);
                    }
                }
                () = &mut stop, if !is_stopping => {
                    is_stopping = true;
                    self.calls.values().for_each(CancelHandle::cancel);
                }
            }
        }
    }

    fn received(&mut self, line: &[u8], is_stopping: bool) -> Result<(), String> {
        match Request::decode(line)? {
            Request::Hello { .. } => return Err("the node said hello again".into()),
            Request::Ping => drop(self.replies.send(Reply::Pong.encode())),
            Request::Cancel { id, is_forced } => {
                // It may have ended.
                let call = self.calls.get(&id);
                call.into_iter().for_each(if is_forced { CancelHandle::kill } else { CancelHandle::cancel });
            }
            // The end of this process interrupts it.
            Request::Execute { .. } if is_stopping => {}
            Request::Execute { id, attempt } => {
                let (handle, signal) = CancelHandle::pair();
                self.calls.insert(id, handle);
                let (shell, replies) = (self.shell.clone(), self.replies.clone());
                let workspace = attempt.workspace.clone().or_else(|| Some(self.workspace.clone()));
                let attempt = Attempt { workspace, ..*attempt };
                self.running.spawn(async move {
                    let outcome = perform(&shell, (id, &attempt), signal, &replies).await;
                    let _ = replies.send(Reply::Result { id, outcome }.encode());
                    id
                });
            }
        }
        Ok(())
    }

    /// Kills the scripts that still run.
    async fn end(&mut self) {
        self.calls.values().for_each(CancelHandle::kill);
        while self.running.join_next().await.is_some() {}
    }
}

/// Performs an attempt, and reports its output on the way.
async fn perform(
    shell: &Shell,
    (id, attempt): (u64, &Attempt),
    stop: CancelSignal,
    replies: &mpsc::UnboundedSender<Vec<u8>>,
) -> Outcome {
    let tap = Arc::new(Tap::default());
    let performed = shell.perform_with(attempt, stop, Some(tap.clone()));
    tokio::pin!(performed);
    let mut again = tokio::time::interval(PROGRESS_PAUSE);
    again.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut told = None;
    let outcome = loop {
        tokio::select! {
            biased;
            outcome = &mut performed => break outcome,
            _ = again.tick() => {
                let output = tap.seen();
                if told.as_ref() != Some(&output) {
                    let _ = replies.send(Reply::Progress { id, output: output.clone() }.encode());
                    told = Some(output);
                }
            }
        }
    };
    shell.forget_record(attempt.into());
    outcome
}
