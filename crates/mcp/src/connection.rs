//! One connection to a server.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
};

use mainspring_effects::{
    BoxFuture, CancelSignal,
    secrets::{Purpose, Redactor, SecretSource, SecretUser, read_reference},
    stdio::{ProcessSpec, RunningProcess, StartProcess, Started, directory},
};
use mainspring_kernel::{effect::Outcome, hash::Hash, value::Value};
use rmcp::{
    ClientCacheConfig, ClientHandler, ErrorData, RoleClient, ServiceError,
    model::{
        CallToolRequest, CallToolRequestParams, CancelTaskParams, ClientCapabilities, ClientConfig, ClientRequest,
        DetailedTask, ElicitRequestParams, ElicitResult, ElicitationCapability, ErrorCode, FormElicitationCapability,
        GetTaskParams, Implementation, InputRequiredResult, InputResponses, JsonObject, PaginatedRequestParams,
        ProtocolVersion, RequestMetaObject, ServerResult, TASKS_EXTENSION_ID, Task, UpdateTaskParams,
    },
    service::{
        ClientInitializeError, ClientLifecycleMode, NotificationContext, PeerRequestOptions, RequestContext,
        RunningService, serve_client_with_lifecycle,
    },
    transport::{Transport, streamable_http_client::StreamableHttpError},
};
use tokio::{
    sync::{Mutex, MutexGuard, Semaphore},
    time::timeout,
};

use crate::{
    config::{ConfigText, HttpConfig, ServerConfig, StdioConfig, TransportConfig},
    error::{ToolError, quoted},
    forms::{FormDesk, Forms},
    http::{HttpAccess, http_error},
    json::to_object,
    limits::{CALLS_MAX, CANCEL_TIMEOUT, LIST_TIMEOUT, LISTED_BYTES_MAX, START_TIMEOUT, TOOL_PAGES_MAX},
    outcome::{outcome, unknown_form},
    tool::{ToolList, ToolReader},
    transport::{Guard, Guarded, Lines, closed},
};

/// The key in `_meta` of a call that carries the step's intent: the same for all attempts of the step, so that a server
/// can recognize a repetition.
pub const INTENT_META: &str = "dev.mainspring/intent";

/// The versions of the protocol without a handshake, preferred first.
const VERSIONS: [ProtocolVersion; 1] = [ProtocolVersion::V_2026_07_28];

/// The execution for which a server is used.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Scope {
    /// The organization. `None` for the command line.
    pub organization: Option<String>,
    /// The workspace, as an absolute path.
    pub workspace: Option<String>,
}

/// The means to reach servers.
pub struct Access {
    /// Starts the processes of stdio servers.
    pub start: Arc<dyn StartProcess>,
    /// Connects to servers over HTTP.
    pub http: HttpAccess,
    /// Reads the secrets of the configuration; `None` where none are configured.
    pub secrets: Option<Arc<dyn SecretSource>>,
}

/// One call of a tool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call<'a> {
    /// The name of the tool at the server.
    pub tool: &'a str,
    /// Its arguments, an object or null.
    pub arguments: &'a Value,
    /// The idempotency key of the step.
    pub intent: Hash,
    /// The step instance, for messages.
    pub step: &'a str,
}

/// The inputs of people with which a call is sent again, as the server has asked for them (`input_required`).
#[derive(Debug, Clone, Default)]
pub(crate) struct Given {
    /// The answers by the keys of the requests.
    pub(crate) responses: Option<InputResponses>,
    /// The state that the server requires with the answer.
    pub(crate) state: Option<String>,
}

/// The answer to a call.
#[derive(Debug)]
pub(crate) enum Answer {
    /// The call has ended.
    Ended(Outcome),
    /// The server needs input from people, and then the call again.
    NeedsInput(InputRequiredResult),
    /// The server continues the call as a task.
    Task(Task),
}

/// An open connection to a server.
pub struct Connection {
    server: String,
    service: Service,
    process: Option<Box<dyn RunningProcess>>,
    guard: Arc<Guard>,
    /// The tools and the number of the change that they reflect.
    tools: Mutex<Option<(u64, Arc<ToolList>)>>,
    /// The bytes of all lists so far.
    listed_bytes: AtomicUsize,
    calls: Semaphore,
    is_broken: AtomicBool,
    is_retired: AtomicBool,
    /// Removes the secrets of the configuration from all output of the server.
    redactor: Redactor,
}

type Service = RunningService<RoleClient, Handler>;

/// Answers the requests of a server and counts the changes of its tools.
#[derive(Clone, Default)]
struct Handler {
    changes: Arc<AtomicU64>,
    forms: Arc<Forms>,
}

impl ClientHandler for Handler {
    /// Announces forms and tasks, and neither sampling nor roots, so that a conforming server asks for neither. Requests
    /// for them are answered with an error.
    fn get_info(&self) -> ClientConfig {
        let name = Implementation::new("mainspring", env!("CARGO_PKG_VERSION"));
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation =
            Some(ElicitationCapability::default().with_form(FormElicitationCapability::default()));
        capabilities.extensions = Some(BTreeMap::from([(TASKS_EXTENSION_ID.to_owned(), JsonObject::new())]));
        ClientConfig::new(capabilities, name)
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.forms.ask(request).await
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changes.fetch_add(1, Ordering::SeqCst);
    }
}

/// Reads the texts of a server's configuration, with the values of its secrets.
async fn read_texts(
    server: &str,
    texts: &BTreeMap<String, ConfigText>,
    scope: &Scope,
    access: &Access,
) -> Result<(BTreeMap<String, String>, Redactor), ToolError> {
    let purpose = Purpose::Settings(format!("mcpServers.{server}"));
    let by = SecretUser { organization: scope.organization.clone(), purpose };
    let (mut read, mut values) = (BTreeMap::new(), Vec::new());
    for (name, text) in texts {
        let text = match text {
            ConfigText::Plain(text) => text.clone(),
            ConfigText::Secret(reference) => {
                let of_secret = read_reference(access.secrets.as_ref(), reference, &by).await;
                let failed = |error| ToolError::Secret { name: reference.name.clone(), error };
                let (value, text) = of_secret.map_err(failed)?;
                values.push(value);
                text
            }
        };
        read.insert(name.clone(), text);
    }
    Ok((read, Redactor::new(values)))
}

impl Connection {
    /// Connects to a server: starts its process if it has one, and negotiates the version of the protocol.
    pub fn open<'a>(
        config: &'a ServerConfig,
        scope: &'a Scope,
        access: &'a Access,
    ) -> BoxFuture<'a, Result<Self, ToolError>> {
        Box::pin(Self::open_unboxed(config, scope, access))
    }

    async fn open_unboxed(config: &ServerConfig, scope: &Scope, access: &Access) -> Result<Self, ToolError> {
        let texts = match &config.transport {
            TransportConfig::Stdio(stdio) => &stdio.env,
            TransportConfig::Http(http) => &http.headers,
        };
        let (texts, redactor) = read_texts(&config.name, texts, scope, access).await?;
        let opened = match &config.transport {
            TransportConfig::Stdio(stdio) => Self::open_stdio(&config.name, stdio, texts, scope, access).await,
            TransportConfig::Http(http) => Self::open_http(&config.name, http, texts, scope, access).await,
        };
        let opened = match opened {
            Ok(connection) => connection.with_known_version().await,
            failed => failed,
        };
        match opened {
            Ok(connection) => Ok(Self { redactor, ..connection }),
            Err(error) => Err(error.map_text(|text| redactor.text(text))),
        }
    }

    async fn open_stdio(
        server: &str,
        stdio: &StdioConfig,
        env: BTreeMap<String, String>,
        scope: &Scope,
        access: &Access,
    ) -> Result<Self, ToolError> {
        let (server, guard) = (server.to_owned(), Arc::new(Guard::default()));
        let not_started = |why| ToolError::NotStarted(server.clone(), why);
        let workspace = scope.workspace.as_deref().map(std::path::Path::new);
        let spec = ProcessSpec {
            command: stdio.command.clone(),
            args: stdio.args.clone(),
            env,
            workspace: workspace.map(Into::into),
            directory: directory(workspace, stdio.cwd.as_deref()).map_err(not_started)?,
            names_directory: stdio.cwd.is_some(),
            has_secrets: stdio.env.values().any(|text| matches!(text, ConfigText::Secret(_))),
            organization: scope.organization.clone(),
        };
        let Started { output, input, process } = access.start.start(&spec).await.map_err(not_started)?;
        let transport = Guarded::new(Lines::new(output, input, guard.clone()), guard.clone(), closed);
        match timeout(START_TIMEOUT, handshake(transport)).await {
            Ok(Ok(service)) => Ok(Self::new(server, service, Some(process), guard).await),
            Ok(Err(error)) => {
                let why = guard.fault().unwrap_or_else(|| handshake_failed(&error));
                let why = with_error_output(why, process.as_ref()).await;
                process.stop().await;
                Err(ToolError::NotConnected(server, why))
            }
            Err(_) => {
                process.stop().await;
                Err(ToolError::StartTimeout(server, START_TIMEOUT))
            }
        }
    }

    async fn open_http(
        server: &str,
        http: &HttpConfig,
        headers: BTreeMap<String, String>,
        scope: &Scope,
        access: &Access,
    ) -> Result<Self, ToolError> {
        let (server, guard) = (server.to_owned(), Arc::new(Guard::default()));
        let not_connected = |why| ToolError::NotConnected(server.clone(), why);
        let transport = access.http.transport(&http.url, &headers, scope.organization.as_deref()).await;
        let transport = transport.map_err(not_connected)?;
        let transport = Guarded::new(transport, guard.clone(), || StreamableHttpError::TransportChannelClosed);
        match timeout(START_TIMEOUT, handshake(transport)).await {
            Ok(Ok(service)) => Ok(Self::new(server, service, None, guard).await),
            Ok(Err(error)) => Err(match guard.fault() {
                Some(why) => ToolError::NotConnected(server, why),
                None => http_handshake_failed(server, &error),
            }),
            Err(_) => Err(ToolError::StartTimeout(server, START_TIMEOUT)),
        }
    }

    async fn new(
        server: String,
        service: Service,
        process: Option<Box<dyn RunningProcess>>,
        guard: Arc<Guard>,
    ) -> Self {
        // The cache keeps lists for the time that the server sets, up to a day, without a bound on their bytes.
        service.peer().set_response_cache_config(ClientCacheConfig::disabled()).await;
        Self {
            server,
            service,
            process,
            guard,
            tools: Mutex::default(),
            listed_bytes: AtomicUsize::new(0),
            calls: Semaphore::new(CALLS_MAX),
            is_broken: AtomicBool::new(false),
            is_retired: AtomicBool::new(false),
            redactor: Redactor::default(),
        }
    }

    /// Closes the connection if the server has chosen a version of the protocol that this build does not speak. The library
    /// reports such a version and continues.
    async fn with_known_version(self) -> Result<Self, ToolError> {
        let chosen = self.protocol_version().unwrap_or_default();
        let known = ProtocolVersion::KNOWN_VERSIONS;
        if known.iter().any(|version| version.as_str() == chosen) {
            return Ok(self);
        }
        let server = self.server.clone();
        self.close().await;
        let names: Vec<&str> = known.iter().map(ProtocolVersion::as_str).collect();
        let why = format!(
            "it speaks version `{}` of the protocol, and this release speaks {}",
            quoted(&chosen),
            names.join(", ")
        );
        Err(ToolError::NotConnected(server, why))
    }

    /// The name of the server.
    pub(crate) fn server(&self) -> &str {
        &self.server
    }

    /// Removes the secrets of the server's configuration from results and messages.
    pub(crate) fn redactor(&self) -> &Redactor {
        &self.redactor
    }

    /// Returns the negotiated version of the protocol.
    pub fn protocol_version(&self) -> Option<String> {
        Some(self.service.peer().peer_info()?.protocol_version.to_string())
    }

    /// Gives later calls another connection; calls that use this one continue. A form does not name its call, so it could reach
    /// another execution. A process belongs to one execution, and is kept.
    pub(crate) fn retire(&self) {
        if self.process.is_none() {
            self.is_retired.store(true, Ordering::SeqCst);
        }
    }

    /// True if later calls need another connection.
    pub(crate) fn is_retired(&self) -> bool {
        self.is_retired.load(Ordering::SeqCst)
    }

    /// True if no further call can succeed over this connection.
    pub fn is_closed(&self) -> bool {
        self.is_broken.load(Ordering::SeqCst)
            || self.guard.fault().is_some()
            || self.service.is_closed()
            || self.service.peer().is_transport_closed()
    }

    /// Returns the tools of the server. The list is kept until the server announces a change.
    pub async fn tools(&self) -> Result<Arc<ToolList>, ToolError> {
        let kept = self.tools.lock().await;
        self.listed(kept).await
    }

    /// Returns the tools as the server lists them now.
    pub async fn tools_now(&self) -> Result<Arc<ToolList>, ToolError> {
        let mut kept = self.tools.lock().await;
        *kept = None;
        self.listed(kept).await
    }

    async fn listed(&self, mut kept: MutexGuard<'_, Option<(u64, Arc<ToolList>)>>) -> Result<Arc<ToolList>, ToolError> {
        let changes = self.service.service().changes.load(Ordering::SeqCst);
        if let Some((at, tools)) = &*kept
            && *at == changes
        {
            return Ok(tools.clone());
        }
        let listed = timeout(LIST_TIMEOUT, self.list()).await;
        let listed = listed.unwrap_or_else(|_| {
            let why = format!("it did not list its tools within {} s", LIST_TIMEOUT.as_secs());
            Err(ToolError::InvalidAnswer(self.server.clone(), why))
        });
        let tools = Arc::new(listed.map_err(|error| error.map_text(|text| self.redactor.text(text)))?);
        *kept = Some((changes, tools.clone()));
        Ok(tools)
    }

    fn list(&self) -> BoxFuture<'_, Result<ToolList, ToolError>> {
        Box::pin(self.pages())
    }

    async fn pages(&self) -> Result<ToolList, ToolError> {
        let invalid = |why| ToolError::InvalidAnswer(self.server.clone(), why);
        let mut tools = ToolReader::default();
        let mut cursor: Option<String> = None;
        for _ in 0..TOOL_PAGES_MAX {
            let params = PaginatedRequestParams::default().with_cursor(cursor.clone());
            let page = match self.service.peer().list_tools(Some(params)).await {
                Ok(page) => page,
                Err(error) => return Err(self.failed(error).await),
            };
            let bytes_before = tools.bytes();
            let added = tools.add(page.tools);
            self.count_listed(tools.bytes() - bytes_before);
            added.map_err(invalid)?;
            match page.next_cursor {
                None => return Ok(tools.finish()),
                next if next == cursor => break,
                next => cursor = next,
            }
        }
        Err(invalid(format!("its list of tools does not end: {} tools, then another page", tools.len())))
    }

    /// Counts the bytes of a page. Above the bound the next use opens another connection.
    fn count_listed(&self, bytes: usize) {
        if self.listed_bytes.fetch_add(bytes, Ordering::SeqCst) + bytes > LISTED_BYTES_MAX {
            self.is_broken.store(true, Ordering::SeqCst);
        }
    }

    /// Calls a tool once. A cancellation is sent to the server as `notifications/cancelled`, and the outcome is
    /// [`Outcome::Stopped`]. Forms of the server go to `desk`.
    pub(crate) async fn call(
        &self,
        call: Call<'_>,
        given: Given,
        desk: Option<&FormDesk>,
        stop: &mut CancelSignal,
    ) -> Result<Answer, ToolError> {
        let _place = self.calls.try_acquire().map_err(|_| ToolError::TooManyCalls(self.server.clone(), CALLS_MAX))?;
        let _desk = desk.map(|desk| self.service.service().forms.open(desk));
        let mut params = CallToolRequestParams::new(Cow::Owned(call.tool.to_owned()));
        if *call.arguments != Value::Null {
            let arguments = to_object(call.arguments);
            params = params.with_arguments(arguments.ok_or_else(|| ToolError::InvalidArguments(call.tool.to_owned()))?);
        }
        (params.input_responses, params.request_state) = (given.responses, given.state);
        let mut meta = RequestMetaObject::new();
        meta.insert(INTENT_META.to_owned(), call.intent.hex().into());
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let options = PeerRequestOptions::no_options().with_meta(meta);
        let mut handle = match self.service.peer().send_cancellable_request(request, options).await {
            Ok(handle) => handle,
            Err(error) => return Err(self.failed(error).await),
        };
        let _result = self.guard.call(&handle.id);
        // In this order: an answer that arrived before the cancellation is the outcome.
        let answer = tokio::select! {
            biased;
            answer = &mut handle.rx => answer,
            () = stop.requested() => {
                // The server may still ask for a form of this call.
                if desk.is_some() {
                    self.retire();
                }
                // The notification is a courtesy to the server: an attempt ends without it.
                let _ = timeout(CANCEL_TIMEOUT, handle.cancel(Some("the execution was canceled".into()))).await;
                return Ok(Answer::Ended(Outcome::Stopped(Value::Null)));
            }
        };
        match answer.unwrap_or(Err(ServiceError::TransportClosed)) {
            Ok(answer) => self.read(call, answer),
            Err(error) => Err(self.failed(error).await),
        }
    }

    fn read(&self, call: Call<'_>, answer: ServerResult) -> Result<Answer, ToolError> {
        let server = || self.server.clone();
        match answer {
            ServerResult::CallToolResult(result) => {
                outcome(&self.server, call.tool, call.step, &result).map(Answer::Ended)
            }
            ServerResult::EmptyResult(_) => Ok(Answer::Ended(Outcome::Done(Value::List(Vec::new())))),
            ServerResult::InputRequiredResult(needed) => Ok(Answer::NeedsInput(needed)),
            ServerResult::CustomResult(result) => unknown_form(&self.server, &result.0).map(Answer::Ended),
            ServerResult::CreateTaskResult(created) => Ok(Answer::Task(created.task)),
            _ => Err(ToolError::InvalidAnswer(server(), "it is not the result of a tool".into())),
        }
    }

    /// Polls a task. `None` if the server does not know it.
    pub(crate) async fn task(&self, id: &str) -> Result<Option<DetailedTask>, ToolError> {
        match self.service.peer().get_task(GetTaskParams::new(id)).await {
            Ok(found) => Ok(Some(found.task)),
            Err(ServiceError::McpError(error)) if error.code == ErrorCode::INVALID_PARAMS => Ok(None),
            Err(error) => Err(self.failed(error).await),
        }
    }

    /// Gives a task the inputs that it has asked for.
    pub(crate) async fn update_task(&self, id: &str, responses: InputResponses) -> Result<(), ToolError> {
        match self.service.peer().update_task(UpdateTaskParams::new(id, responses)).await {
            Ok(()) => Ok(()),
            Err(error) => Err(self.failed(error).await),
        }
    }

    /// Cancels a task. An attempt ends without the answer.
    pub(crate) async fn cancel_task(&self, id: &str) {
        let _ = timeout(CANCEL_TIMEOUT, self.service.peer().cancel_task(CancelTaskParams::new(id))).await;
    }

    /// Translates an error of `rmcp`.
    async fn failed(&self, error: ServiceError) -> ToolError {
        let server = self.server.clone();
        if let Some(why) = self.guard.fault().filter(|_| !matches!(error, ServiceError::McpError(_))) {
            return ToolError::InvalidAnswer(server, format!("{why}; the connection was closed"));
        }
        match error {
            ServiceError::McpError(error) => {
                ToolError::Rejected { server, code: error.code.0, message: error.message.into_owned() }
            }
            ServiceError::UnexpectedResponse => {
                ToolError::InvalidAnswer(server, "it is of another kind than the request".into())
            }
            ServiceError::TransportSend(error) if self.process.is_none() => {
                let found = http_error(&server, error.error.as_ref());
                found.unwrap_or_else(|| ToolError::ConnectionLost(server, quoted(&error.error.to_string())))
            }
            other => {
                self.is_broken.store(true, Ordering::SeqCst);
                let why = match &other {
                    ServiceError::TransportSend(error) => connection_ended(&error.error.to_string()),
                    ServiceError::TransportClosed => connection_ended("end of its output"),
                    other => quoted(&other.to_string()),
                };
                let why = match self.process.as_deref() {
                    Some(process) => with_error_output(why, process).await,
                    None => why,
                };
                ToolError::ConnectionLost(server, why)
            }
        }
    }

    /// Closes the connection and ends the process of the server.
    pub async fn close(self) {
        let Self { service, process, .. } = self;
        let _ = timeout(CANCEL_TIMEOUT, service.cancel()).await;
        if let Some(process) = process {
            process.stop().await;
        }
    }
}

/// Negotiates the version of the protocol.
fn handshake<T: Transport<RoleClient> + 'static>(
    transport: T,
) -> BoxFuture<'static, Result<Service, ClientInitializeError>> {
    Box::pin(serve_client_with_lifecycle(Handler::default(), transport, lifecycle()))
}

/// Tries the version without a handshake first, and falls back to the handshake of older versions.
fn lifecycle() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto {
        preferred_versions: VERSIONS.to_vec(),
        legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
    }
}

fn http_handshake_failed(server: String, error: &ClientInitializeError) -> ToolError {
    match error {
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => http_handshake_failed(server, fallback),
        ClientInitializeError::TransportError { error, .. } => match http_error(&server, error.error.as_ref()) {
            // Nothing was called yet.
            Some(ToolError::ConnectionLost(server, why)) => ToolError::NotConnected(server, why),
            Some(error) => error,
            None => ToolError::NotConnected(server, quoted(&error.error.to_string())),
        },
        other => ToolError::NotConnected(server, quoted(&other.to_string())),
    }
}

fn handshake_failed(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => handshake_failed(fallback),
        ClientInitializeError::TransportError { error, .. } => connection_ended(&error.error.to_string()),
        ClientInitializeError::ConnectionClosed(_) => connection_ended("end of its output"),
        other => quoted(&other.to_string()),
    }
}

fn connection_ended(why: &str) -> String {
    format!("it ended, or closed its input or output ({})", quoted(why))
}

async fn with_error_output(why: String, process: &dyn RunningProcess) -> String {
    match process.error_output().await {
        output if output.is_empty() => why,
        output => format!("{why}; its last output: {}", quoted(&output)),
    }
}
