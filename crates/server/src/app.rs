//! State shared by all requests: the [`App`] that axum passes to handlers, and the settings of the server. Blocking
//! work goes through [`App::run`] or [`App::run_short`], so that it takes a request slot and has a compile budget.

use std::{
    path::PathBuf,
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use mainspring_effects::git::Repositories;
use mainspring_engine::{Engine, clock::now_ms, evaluator::Evaluator};
use mainspring_kernel::effect_policy::EffectPolicy;
use mainspring_store::Catalogue;
use tokio::time::timeout;

use crate::{
    auth::{
        credential_cache::{CatalogueWatch, CredentialCache},
        execution_origins::ExecutionOrigins,
        oidc::provider::Provider,
        policy::RoutePolicies,
        refusals::Refusals,
        sign_in_codes::SignInCodes,
    },
    http::{
        problem::{Code, Problem, Result},
        rate_limit::{Limiter, Rates, clock},
        readiness::Readiness,
        request_bodies::Bodies,
        request_slots::{Kind, Slot, Slots, WAIT_MAX, current},
        response_memory::{Responses, responses_unread},
    },
    services::{
        audit_marks::Marks,
        compile_budget::Budget,
        dev_files::{DevFile, DevFiles},
        encryption_keys::{EncryptionKeys, Sealer},
        event_feed::Feeds,
        events::webhook_client::WebhookClient,
        integrations::Integrated,
        known_names::KnownNames,
        plan_cache::Plans,
        prompts::orchestrators::Orchestrators,
        run_log::PendingRuns,
        scenario_runner::Scenarios,
        writers::Writers,
    },
};

/// Settings of the server, fixed at its start.
#[derive(Debug, Clone)]
pub struct Settings {
    /// External base URL, as `http://127.0.0.1:7300`; links begin with it.
    pub base: String,
    /// Folder of the workspaces of the executions that this server starts.
    pub workspaces: PathBuf,
    /// True if tool servers are processes, which work in the workspace of an execution.
    pub tools_use_workspaces: bool,
    /// The release that `doctor` and `/api/health` report.
    pub release: &'static str,
    /// Rate limits of requests.
    pub rates: Rates,
    /// Most open connections; further ones wait in the listen queue of the system.
    pub connections_max: usize,
    /// The OpenID Connect provider, if one is set up.
    pub oidc: Option<Arc<Provider>>,
    /// The highest audit entry seen per organization; `None` without a folder to store it in.
    pub marks: Option<Arc<Marks>>,
    /// The parts of the settings file that definitions and calls depend on.
    pub configured: Configured,
    /// Runs scenarios; `None` if this server cannot.
    pub scenarios: Option<Scenarios>,
    /// Deliveries of events and prompts.
    pub outgoing: Outgoing,
    /// The keys that encrypt values in the store.
    pub encryption_keys: Arc<EncryptionKeys>,
    /// The clock of triggers and of events: milliseconds since 1970. Tests replace it by virtual time.
    pub clock: fn() -> u64,
}

/// The parts of the settings file that definitions and calls depend on. The default is an empty file.
#[derive(Debug, Clone, Default)]
pub struct Configured {
    /// The rules for calls of workflows.
    pub effect_policy: Arc<EffectPolicy>,
    /// The names that definitions may use at this server.
    pub known_names: KnownNames,
    /// The models that write proposals; `None` if this server has none.
    pub writers: Option<Arc<Writers>>,
    /// The tool servers and models of the settings file; `None` if it has none.
    pub integrations: Option<Arc<Integrated>>,
    /// The repositories that executions may have.
    pub repositories: Repositories,
}

/// The settings of outgoing requests.
#[derive(Debug, Clone)]
pub struct Outgoing {
    /// The HTTP client of deliveries of events and prompts.
    pub webhooks: WebhookClient,
    /// The endpoints to which prompts are sent.
    pub orchestrators: Orchestrators,
}

/// Handle on the server. Cloning is cheap, and all clones share one state.
#[derive(Clone)]
pub struct App {
    shared: Arc<Shared>,
    /// Compile budget of the current request.
    budget: Option<Arc<Budget>>,
    /// Kind of slot that the current request takes.
    kind: Option<Kind>,
    /// True once the future of the current request has ended or was dropped.
    is_dropped: Arc<AtomicBool>,
}

/// Marks a request as dropped when its future ends or is dropped, as it is if the client disconnects.
struct Awaited(Arc<AtomicBool>);

impl Drop for Awaited {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// The state that all clones of an [`App`] share.
pub struct Shared {
    /// Runs executions.
    pub engine: Arc<Engine>,
    /// Checks functions and schemas in the sandbox.
    pub evaluator: Arc<dyn Evaluator>,
    /// Settings of the server.
    pub settings: Settings,
    pub(crate) plans: Plans,
    pub(crate) feeds: Feeds,
    pub(crate) limiter: Limiter,
    pub(crate) credential_cache: CredentialCache,
    pub(crate) execution_origins: ExecutionOrigins,
    pub(crate) catalogue_watch: CatalogueWatch,
    pub(crate) policies: OnceLock<RoutePolicies>,
    pub(crate) requests: RequestBounds,
    pub(crate) responses: Responses,
    pub(crate) refusals: Refusals,
    pub(crate) pending_runs: PendingRuns,
    pub(crate) local: LocalCommands,
}

/// State for the commands of this machine that start a server in their own process.
#[derive(Default)]
pub(crate) struct LocalCommands {
    pub(crate) sign_in_codes: SignInCodes,
    pub(crate) dev_files: DevFiles,
}

/// Bounds of the requests in progress.
#[derive(Default)]
pub(crate) struct RequestBounds {
    slots: Slots,
    pub(crate) bodies: Bodies,
    pub(crate) readiness: Readiness,
}

impl App {
    /// Builds a server on a running engine.
    pub fn new(engine: Arc<Engine>, evaluator: Arc<dyn Evaluator>, settings: Settings) -> Self {
        let plans = Plans::default();
        let feeds = Feeds::of_connections(settings.connections_max);
        let clock = clock();
        let (limiter, credential_cache) =
            (Limiter::new(settings.rates.clone(), clock.clone()), CredentialCache::new(clock.clone()));
        let refusals = Refusals::new(clock);
        let (catalogue_watch, policies) = (CatalogueWatch::of(engine.clone()), OnceLock::new());
        let (requests, responses) = (RequestBounds::default(), Responses::default());
        let shared = Shared {
            engine,
            evaluator,
            settings,
            plans,
            feeds,
            limiter,
            credential_cache,
            execution_origins: ExecutionOrigins::default(),
            catalogue_watch,
            policies,
            requests,
            responses,
            refusals,
            pending_runs: PendingRuns::default(),
            local: LocalCommands::default(),
        };
        Self { shared: Arc::new(shared), budget: None, kind: None, is_dropped: Arc::default() }
    }

    /// A handle that does not keep the server alive, for parts of the engine that use it.
    pub(crate) fn downgrade(&self) -> Weak<Shared> {
        Arc::downgrade(&self.shared)
    }

    /// The server of a handle.
    pub(crate) fn of(shared: Arc<Shared>) -> Self {
        Self { shared, budget: None, kind: None, is_dropped: Arc::default() }
    }

    /// The catalogue of the store. Changes made through it invalidate the credential cache.
    pub fn catalogue(&self) -> &dyn Catalogue {
        &self.catalogue_watch
    }

    /// Issues a code with which a browser signs in once, with the rights of a token, within two minutes.
    pub fn sign_in_code(&self, token: String) -> Result<String> {
        self.local.sign_in_codes.issue(token, now_ms())
    }

    /// Replaces the files that `mainspring dev` watches.
    pub fn set_dev_files(&self, files: Vec<DevFile>) {
        self.local.dev_files.replace(files);
    }

    /// The encryption keys with the one that encrypts now.
    pub(crate) fn sealer(&self) -> Result<Sealer<'_>> {
        let keys = &*self.settings.encryption_keys;
        Ok(Sealer { keys, primary: keys.primary(self.catalogue())? })
    }

    /// The present time for triggers and events, in milliseconds since 1970.
    pub(crate) fn now_ms(&self) -> u64 {
        (self.settings.clock)()
    }

    /// The same server with a new compile budget, for one request.
    fn for_one_request(&self) -> Self {
        let (budget, kind) = (Some(Arc::default()), Some(current().kind));
        Self { shared: self.shared.clone(), budget, kind, is_dropped: Arc::default() }
    }

    /// A function that returns true once this request was dropped, as it is if the client disconnects. Long work whose result
    /// would have no recipient then ends.
    pub(crate) fn request_is_dropped(&self) -> impl Fn() -> bool + Send + Sync + use<> {
        let is_dropped = self.is_dropped.clone();
        move || is_dropped.load(Relaxed)
    }

    /// True if the slot of this request permits compiling.
    pub(crate) fn may_compile(&self) -> bool {
        self.kind.is_none_or(|kind| kind == Kind::Compiling)
    }

    /// The compile budget of this request; a new one outside of a request.
    pub(crate) fn budget(&self) -> Arc<Budget> {
        self.budget.clone().unwrap_or_default()
    }

    /// Runs blocking work (store or sandbox) on a thread of the blocking pool. The work takes a slot of the current
    /// task's account.
    ///
    /// # Errors
    /// Fails with 503 if no slot is free in time.
    pub async fn run<T: Send + 'static>(&self, work: impl FnOnce(&Self) -> Result<T> + Send + 'static) -> Result<T> {
        let app = self.for_one_request();
        let _awaited = Awaited(app.is_dropped.clone());
        // The message of a panic may contain data of other callers, and goes to the log only.
        let panicked = |why: String| {
            Problem::new(Code::InternalError, "The server failed at this request. Its log has the reason.").because(why)
        };
        let slot = self.slot().await?;
        // The slot moves to the thread: the work continues, and still counts, if the client disconnects. Long work
        // polls `request_is_dropped`.
        let done = tokio::task::spawn_blocking(move || {
            let done = work(&app);
            drop(slot);
            done
        });
        done.await.map_err(|error| panicked(error.to_string()))?
    }

    /// Waits for a slot, and for the account to have room for the response. Reserved work skips the wait for room,
    /// because it ends an overload.
    async fn slot(&self) -> Result<Slot> {
        let account = current();
        if account.kind == Kind::Reserved {
            return self.requests.slots.take().await;
        }
        let acquired = async {
            loop {
                self.responses.room(&account).await;
                let slot = self.requests.slots.take().await?;
                // Several requests may have waited for the same room.
                if self.responses.has_room(&account) {
                    return Ok(slot);
                }
            }
        };
        timeout(WAIT_MAX, acquired).await.unwrap_or_else(|_| Err(responses_unread()))
    }

    /// Runs a few point reads: on the current thread if such a read of the store takes microseconds and the account has
    /// room, because a hop to another thread costs several times as much; otherwise as [`run`](Self::run).
    pub async fn run_short<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let account = current();
        let is_free = account.kind == Kind::Reserved || self.responses.has_room(&account);
        if is_free && self.engine.store().can_read_inline() {
            work(&self.for_one_request())
        } else {
            self.run(work).await
        }
    }
}

impl std::ops::Deref for App {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.shared
    }
}
