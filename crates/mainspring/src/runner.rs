//! Runs an execution until it has ended or only gates are left, and tells what happens on the way.

use std::{sync::Arc, time::Duration};

use mainspring_effects::{
    Executors,
    http::{ALLOW_VARIABLE, Allow, Http, HttpOptions},
    shell::{GRACE_DEFAULT, Shell, ShellOptions, contain::Scripts},
};
use mainspring_engine::{
    Engine, EngineError, Options, Reach,
    family::Family,
    home::{Held, Home},
    shard::Moment,
    span::Spans,
};
use mainspring_kernel::{
    frame::Frame,
    json::compact,
    key::ExecutionKey,
    plan::Plan,
    record::Record,
    state::{ExecutionStatus, State},
    trace::Trace,
    value::Value,
};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc::UnboundedReceiver,
};

use crate::{
    evaluating::evaluator,
    exit::Refusal,
    place::{HIDDEN_VARIABLES, HIDDEN_WITH_TRACES},
};

/// Help on [`ALLOW_VARIABLE`], for commands that run `http` steps of several organizations.
pub(crate) const REACH_HELP: &str = "\
Environment:
  MAINSPRING_HTTP_ALLOW  Where `http` steps may go beyond the public internet, for each organization:
                         acme=10.20.0.0/16,acme=build.internal:8443. An entry without an
                         organization is for `default` alone (docs/reference/http-steps.md)";

/// What [`ALLOW_VARIABLE`] says in this process's environment.
pub fn http_allow() -> Result<Allow, Refusal> {
    let text = std::env::var(ALLOW_VARIABLE).unwrap_or_default();
    text.parse().map_err(|error| Refusal::bad_input("bad_http_allow", format!("{ALLOW_VARIABLE}: {error}")))
}

/// What performs the effects of a node that runs on a user's machine.
pub fn executors(allow: Allow, home: &Home, held: &Held) -> Executors {
    executors_with(allow, false, Rules::default(), home, held)
}

/// Which scripts run, and how.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// In containers, as this user, or not at all.
    pub scripts: Scripts,
    /// Whether only those of executions with a workspace run: a server gives one to whoever may run scripts.
    pub needs_workspace: bool,
}

/// The same, with whether effects tell those whom they call which trace they belong to.
pub fn executors_with(allow: Allow, traces: bool, rules: Rules, home: &Home, held: &Held) -> Executors {
    let mut hidden_env = HIDDEN_VARIABLES.map(String::from).to_vec();
    if traces {
        hidden_env.extend(HIDDEN_WITH_TRACES.map(String::from));
    }
    let grace: Duration = GRACE_DEFAULT;
    let Rules { scripts, needs_workspace } = rules;
    let Held { same_boot, untrusted_before_ms, .. } = *held;
    let notes = home.processes();
    let options =
        ShellOptions { notes, same_boot, untrusted_before_ms, hidden_env, grace, traces, scripts, needs_workspace };
    let http = Http::new(HttpOptions { allow, traces, ..HttpOptions::default() });
    Executors::new(vec![Arc::new(Shell::new(options)), Arc::new(http)])
}

/// Opens an engine on a folder, with all that this executable can do.
pub async fn open(home: Home, key: [u8; 32], reach: Reach, spans: Option<Spans>) -> Result<Engine, Refusal> {
    open_with(home, key, reach, spans, Rules::default()).await
}

/// The same, with rules for scripts.
pub async fn open_with(
    home: Home,
    key: [u8; 32],
    reach: Reach,
    spans: Option<Spans>,
    rules: Rules,
) -> Result<Engine, Refusal> {
    let (allow, traces) = (http_allow()?, spans.is_some());
    let limits = (reach == Reach::All).then(|| Arc::new(mainspring_server::InForce) as Arc<_>);
    let options = Options { home, key, reach, evaluator: evaluator(), spans, limits };
    Ok(Engine::open(options, |home, held| executors_with(allow, traces, rules, home, held)).await?)
}

/// An execution as it stands in the store.
pub struct Standing {
    /// What it is.
    pub state: State,
    /// What it did.
    pub trace: Trace,
    /// The sequence of its next frame.
    pub next_sequence: u64,
}

/// Reads an execution from the store; every frame is shown to `each` on the way.
pub fn standing(
    engine: &Engine,
    key: ExecutionKey,
    mut each: impl FnMut(&Frame, &State),
) -> Result<Standing, EngineError> {
    let mut trace = Trace::default();
    let read = engine.loader().frames(key, |state, frame| {
        trace.add(&state.plan, frame);
        each(frame, state);
    })?;
    let journal = read.ok_or(EngineError::NoSuchExecution)?.journal;
    Ok(Standing { state: journal.state, trace, next_sequence: journal.head.sequence + 1 })
}

/// Why following an execution came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Followed {
    /// It has ended, or nothing but gates is left.
    Rests,
    /// This process was asked to stop.
    Interrupted,
}

/// Shows the records of every frame of an execution from one on, until it rests or this process is asked to stop; `from` stands behind the last frame then. `signals` were
/// heard since before anything was begun: none that asks to stop is missed.
pub async fn follow(
    engine: &Engine,
    watch: &mut UnboundedReceiver<Arc<Moment>>,
    from: &mut Standing,
    signals: &mut Signals,
    mut show: impl FnMut(&Plan, &[Record], u64),
) -> Result<Followed, EngineError> {
    if is_at_rest(engine, &from.state)? {
        return Ok(Followed::Rests);
    }
    loop {
        let moment = tokio::select! {
            biased;
            () = signals.any() => return Ok(Followed::Interrupted),
            moment = watch.recv() => moment,
        };
        let Some(moment) = moment else {
            let why = engine.why_stopped();
            return Err(why.map_or_else(|| quarantined(engine, from.state.key), EngineError::Stopped));
        };
        if moment.sequence < from.next_sequence {
            continue;
        }
        from.next_sequence = moment.sequence + 1;
        show(&from.state.plan, &moment.records, moment.now);
        if rests(moment.status) && is_at_rest(engine, &engine.state(from.state.key)?)? {
            return Ok(Followed::Rests);
        }
    }
}

fn quarantined(engine: &Engine, key: ExecutionKey) -> EngineError {
    let reason = engine.store().head(key).ok().flatten().and_then(|head| head.quarantined);
    EngineError::Quarantined(reason.unwrap_or_else(|| "it is no longer watched".into()))
}

/// Whether nothing will come of it by itself, neither here nor in those that it has started and waits for.
fn is_at_rest(engine: &Engine, state: &State) -> Result<bool, EngineError> {
    let status = state.status();
    if status != ExecutionStatus::WaitingApproval {
        return Ok(rests(status));
    }
    Ok(!Family::of(engine.loader(), engine.key(), state)?.is_about_to_move)
}

pub(crate) fn rests(status: ExecutionStatus) -> bool {
    !matches!(status, ExecutionStatus::Pending | ExecutionStatus::Running | ExecutionStatus::CancelRequested)
}

/// The signals that ask a process to stop.
pub struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
    /// Whether the last one that was heard was SIGTERM.
    is_terminated: bool,
}

impl Signals {
    /// From now on they are heard here, and do not end the process by themselves.
    pub fn new() -> Result<Self, EngineError> {
        let hear =
            |kind| signal(kind).map_err(|error| EngineError::Stopped(format!("signals cannot be heard: {error}")));
        Ok(Self {
            interrupt: hear(SignalKind::interrupt())?,
            terminate: hear(SignalKind::terminate())?,
            hangup: hear(SignalKind::hangup())?,
            is_terminated: false,
        })
    }

    /// Returns with the first of them.
    pub async fn any(&mut self) {
        self.is_terminated = tokio::select! {
            _ = self.interrupt.recv() => false,
            _ = self.terminate.recv() => true,
            _ = self.hangup.recv() => false,
        };
    }

    /// Whether the last signal was SIGTERM.
    pub fn is_terminated(&self) -> bool {
        self.is_terminated
    }
}

/// One line of NDJSON, to standard error. A reader that has gone is no reason to stop working.
pub(crate) fn print_event(event: &Value) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr().lock(), "{}", compact(event));
}
