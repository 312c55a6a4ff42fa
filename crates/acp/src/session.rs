//! A session of an agent, from the handshake to the end of the prompt.

use std::collections::VecDeque;

use mainspring_effects::CancelSignal;
use mainspring_kernel::{plan::Verdict, value::Value};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::mpsc,
    time::{Instant, sleep_until, timeout},
};

use crate::{
    error::{AgentError, too_many_requests},
    limits::{BEGIN_TIMEOUT, CANCEL_TIMEOUT, HOLD_TIMEOUT, ID_BYTES_MAX, PERMISSIONS_WAITING_MAX, START_TIMEOUT},
    lines::Lines,
    message::{
        self, AUTH_REQUIRED, INVALID_REQUEST, METHOD_NOT_FOUND, Message, VERSION, notification, refusal, request,
        response,
    },
    permission::{Permission, canceled, verdict},
    transcript::Transcript,
};

/// The work of an agent, as far as the session needs to know.
#[derive(Debug, Clone)]
pub(crate) struct Task {
    /// The name of the agent.
    pub(crate) runner: String,
    /// The absolute path of the workspace.
    pub(crate) cwd: String,
    /// The id of the session that is loaded; a new one is opened without it.
    pub(crate) resume: Option<String>,
    /// The verdicts by kind of tool.
    pub(crate) permissions: Value,
    /// The digest of a permission that people have decided before, and their decision.
    pub(crate) given: Option<(String, bool)>,
}

/// An event of a session.
#[derive(Debug)]
pub(crate) enum Event {
    /// The session is open and waits for the prompt.
    Opened {
        session: String,
        /// True if another process can load it.
        loads: bool,
        /// True if it had a prompt before it was loaded.
        has_prompt: bool,
    },
    /// It waits for a decision about a permission.
    Asked(Box<Permission>),
}

/// A message to a session.
#[derive(Debug)]
pub(crate) enum Command {
    /// Begins the turn.
    Prompt(Vec<String>),
    /// Decides the permission that was asked for last.
    Decide(bool),
}

/// The ends of a session's channels.
pub(crate) struct Link {
    pub(crate) events: mpsc::Sender<Event>,
    pub(crate) commands: mpsc::Receiver<Command>,
    pub(crate) stop: CancelSignal,
}

/// The end of a turn.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum End {
    /// The agent has answered. The output of the step.
    Answered(Value),
    /// It was stopped. The output so far.
    Stopped(Value),
}

pub(crate) struct Session<R, W> {
    lines: Lines<R, W>,
    task: Task,
    id: Option<String>,
    requests: u64,
    transcript: Transcript,
    /// The permission requests that wait for people. The first one is being asked for.
    waiting: VecDeque<(Value, Permission)>,
    /// True from the prompt to its end.
    has_turn: bool,
    is_canceled: bool,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Session<R, W> {
    pub(crate) fn new(input: R, output: W, task: Task) -> Self {
        Self {
            lines: Lines::new(input, output),
            task,
            id: None,
            requests: 0,
            transcript: Transcript::default(),
            waiting: VecDeque::new(),
            has_turn: false,
            is_canceled: false,
        }
    }

    /// True once the agent has opened or loaded the session.
    pub(crate) fn is_open(&self) -> bool {
        self.id.is_some()
    }

    /// Runs the session to its end. Returns soon after the other ends of the link were dropped.
    pub(crate) async fn run(&mut self, link: &mut Link) -> Result<End, AgentError> {
        let opened = tokio::select! {
            biased;
            () = link.stop.requested() => return Ok(End::Stopped(Value::Null)),
            () = link.events.closed() => return Ok(End::Stopped(Value::Null)),
            opened = timeout(START_TIMEOUT, self.open()) => opened.map_err(|_| AgentError::Silent)??,
        };
        // The receiver may have been dropped.
        let _ = link.events.try_send(opened);
        let prompt = tokio::select! {
            biased;
            () = link.stop.requested() => return Ok(End::Stopped(Value::Null)),
            command = timeout(BEGIN_TIMEOUT, link.commands.recv()) => command,
        };
        match prompt {
            Ok(Some(Command::Prompt(texts))) => self.turn(&texts, link).await,
            _ => Ok(End::Stopped(Value::Null)),
        }
    }

    /// Negotiates the version of the protocol, and opens or loads the session.
    async fn open(&mut self) -> Result<Event, AgentError> {
        let agreed = self.call("initialize", message::initialize()).await?;
        match agreed.get("protocolVersion").and_then(Value::as_u64) {
            Some(VERSION) => {}
            other => {
                let version = other.map_or_else(|| "of no number".to_owned(), |version| version.to_string());
                return Err(AgentError::Version(version));
            }
        }
        let capabilities = agreed.get("agentCapabilities");
        let loads = capabilities.and_then(|all| all.get("loadSession")).and_then(Value::as_bool) == Some(true);
        let cwd = self.task.cwd.clone();
        let session = match self.task.resume.clone() {
            // An agent that cannot load it any more has lost it.
            Some(_) if !loads => return Err(AgentError::Ended),
            Some(id) => {
                self.id = Some(id.clone());
                let loaded = self.call("session/load", message::session(&cwd, Some(&id))).await;
                loaded.map_err(|error| match error {
                    AgentError::Rejected { .. } => AgentError::Ended,
                    other => other,
                })?;
                id
            }
            None => {
                let opened = self.call("session/new", message::session(&cwd, None)).await?;
                let id = opened.get("sessionId").and_then(Value::as_text).unwrap_or_default();
                if id.is_empty() || id.len() > ID_BYTES_MAX {
                    return Err(AgentError::Protocol(format!("the id of its session has {} bytes", id.len())));
                }
                id.to_owned()
            }
        };
        self.id = Some(session.clone());
        Ok(Event::Opened { session, loads, has_prompt: self.transcript.has_prompt() })
    }

    /// Sends a request and reads messages up to its answer.
    async fn call(&mut self, method: &'static str, params: Value) -> Result<Value, AgentError> {
        let id = self.request(method, params).await?;
        loop {
            let message = self.lines.next().await?;
            if let Some(result) = self.take(Message::read(message)?, id).await? {
                return result.map_err(|(code, message)| rejected(method, code, message));
            }
        }
    }

    async fn request(&mut self, method: &str, params: Value) -> Result<u64, AgentError> {
        self.requests += 1;
        self.lines.send(&request(self.requests, method, params)).await?;
        Ok(self.requests)
    }

    /// Handles a message. Returns the answer to the request that is waited for.
    async fn take(
        &mut self,
        message: Message,
        awaited: u64,
    ) -> Result<Option<Result<Value, (i64, String)>>, AgentError> {
        match message {
            Message::Response { id, result } if id == awaited => return Ok(Some(result)),
            Message::Response { .. } => {
                return Err(AgentError::Protocol("it answered a request that was not sent".into()));
            }
            Message::Notification { method, params } if method == "session/update" && self.is_own(&params) => {
                self.transcript.update(params.get("update").unwrap_or(&Value::Null));
            }
            // Others may be those of a later version.
            Message::Notification { .. } => {}
            Message::Request { id, method, params } if method == "session/request_permission" => {
                self.permission(id, &params).await?;
            }
            Message::Request { id, method, .. } => {
                let short = &method[..method.floor_char_boundary(100)];
                let why = format!("the client has no method {short:?}");
                self.lines.send(&refusal(id, METHOD_NOT_FOUND, &why)).await?;
            }
        }
        Ok(None)
    }

    fn is_own(&self, params: &Value) -> bool {
        self.id.is_some() && params.get("sessionId").and_then(Value::as_text) == self.id.as_deref()
    }

    /// Answers a permission request by its verdict, or lets it wait for people.
    async fn permission(&mut self, id: Value, params: &Value) -> Result<(), AgentError> {
        if !self.has_turn || !self.is_own(params) {
            let why = "no turn of this session is in progress";
            return self.lines.send(&refusal(id, INVALID_REQUEST, why)).await;
        }
        if self.is_canceled {
            return self.lines.send(&response(id, canceled())).await;
        }
        let permission = Permission::read(&self.task.runner, params, &self.transcript).map_err(AgentError::Protocol)?;
        let is_allowed = match verdict(&self.task.permissions, permission.kind) {
            Verdict::Allow => true,
            Verdict::Deny => false,
            // People could not read it.
            Verdict::Ask if permission.question(&self.task.runner).is_none() => false,
            Verdict::Ask => match self.task.given.take() {
                Some((digest, is_allowed)) if digest == permission.digest => is_allowed,
                given => {
                    self.task.given = given;
                    if self.waiting.len() >= PERMISSIONS_WAITING_MAX {
                        return self.lines.send(&refusal(id, INVALID_REQUEST, &too_many_requests())).await;
                    }
                    self.waiting.push_back((id, permission));
                    return Ok(());
                }
            },
        };
        self.lines.send(&response(id, permission.outcome(is_allowed))).await
    }

    /// Sends the prompt, and follows the turn to its end.
    async fn turn(&mut self, texts: &[String], link: &mut Link) -> Result<End, AgentError> {
        self.transcript.begin_turn();
        self.has_turn = true;
        let session = self.id.clone().unwrap_or_default();
        let prompt = self.request("session/prompt", message::prompt(&session, texts)).await?;
        let mut asked = false;
        let mut deadline = Instant::now() + HOLD_TIMEOUT;
        loop {
            if let (Some((_, permission)), false) = (self.waiting.front(), asked) {
                let _ = link.events.try_send(Event::Asked(Box::new(permission.clone())));
                (asked, deadline) = (true, Instant::now() + HOLD_TIMEOUT);
            }
            tokio::select! {
                biased;
                () = link.stop.requested(), if !self.is_canceled => {
                    // Another process may load a session that was not canceled.
                    if link.stop.is_leaving() {
                        return Ok(self.stopped());
                    }
                    self.cancel(&session).await?;
                    (asked, deadline) = (false, Instant::now() + CANCEL_TIMEOUT);
                }
                () = sleep_until(deadline), if asked || self.is_canceled => return Ok(self.stopped()),
                command = link.commands.recv() => match command {
                    Some(Command::Decide(is_allowed)) if asked => {
                        asked = false;
                        if let Some((id, permission)) = self.waiting.pop_front() {
                            self.lines.send(&response(id, permission.outcome(is_allowed))).await?;
                        }
                    }
                    Some(_) => {}
                    None => return Ok(self.stopped()),
                },
                message = self.lines.next() => {
                    let message = match message {
                        Err(_) if self.is_canceled => return Ok(self.stopped()),
                        message => Message::read(message?)?,
                    };
                    if let Some(result) = self.take(message, prompt).await? {
                        return self.ended(result);
                    }
                }
            }
        }
    }

    /// Asks the agent to end the turn. All permissions that wait are canceled, as the protocol demands.
    async fn cancel(&mut self, session: &str) -> Result<(), AgentError> {
        self.is_canceled = true;
        let params = Value::map([("sessionId", session.into())]);
        self.lines.send(&notification("session/cancel", params)).await?;
        for (id, _) in std::mem::take(&mut self.waiting) {
            self.lines.send(&response(id, canceled())).await?;
        }
        Ok(())
    }

    fn stopped(&self) -> End {
        End::Stopped(self.transcript.output("cancelled", None))
    }

    fn ended(&self, result: Result<Value, (i64, String)>) -> Result<End, AgentError> {
        if self.is_canceled {
            return Ok(self.stopped());
        }
        let result = result.map_err(|(code, message)| rejected("session/prompt", code, message))?;
        match result.get("stopReason").and_then(Value::as_text) {
            Some("end_turn") if self.transcript.is_too_large() => Err(AgentError::TooLarge),
            Some(reason @ "end_turn") => Ok(End::Answered(self.transcript.output(reason, result.get("usage")))),
            Some(reason) => Err(AgentError::Stopped(reason.to_owned())),
            None => Err(AgentError::Protocol("it ended a turn without a reason".into())),
        }
    }
}

fn rejected(method: &'static str, code: i64, message: String) -> AgentError {
    match code {
        AUTH_REQUIRED => AgentError::Unauthenticated(message),
        _ => AgentError::Rejected { method, code, message },
    }
}
