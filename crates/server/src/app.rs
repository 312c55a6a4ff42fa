//! What all requests share.

use std::{
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use mainspring_engine::{Engine, evaluator::Evaluator};
use mainspring_store::Catalogue;
use tokio::time::timeout;

use crate::{
    budget::Budget,
    bus::Bus,
    compiling::Plans,
    door::Rights,
    feed::Feeds,
    known::{Known, Watched},
    marks::Marks,
    oidc::Provider,
    problem::{Answer, Code, Problem},
    rate::{Limiter, Rates, clock},
    receiving::Bodies,
    refusals::Refusals,
    responses::{Responses, untaken},
    routes::Readiness,
    slots::{Kind, Slot, Slots, WAIT_MAX, current},
};

/// What the server is told when it starts.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where people reach it, as `http://127.0.0.1:7300`: what links begin with.
    pub base: String,
    /// The folder of the workspaces of executions that it starts.
    pub workspaces: PathBuf,
    /// The release, as `doctor` and `/api/health` say it.
    pub release: &'static str,
    /// How many requests may come.
    pub rates: Rates,
    /// Connections at a time; more wait where the system keeps them.
    pub connections_max: usize,
    /// Who vouches for people, if somebody does.
    pub oidc: Option<Arc<Provider>>,
    /// How far each audit log was seen to reach; `None` where there is no place to keep that.
    pub marks: Option<Arc<Marks>>,
}

/// The server: cheap to clone, all clones are one.
#[derive(Clone)]
pub struct App {
    shared: Arc<Shared>,
    /// What compiling may cost, for the work of one request.
    budget: Option<Arc<Budget>>,
    /// The kind of slots that the work of this request takes.
    kind: Option<Kind>,
}

/// What is behind an [`App`].
pub struct Shared {
    /// Who runs executions.
    pub engine: Arc<Engine>,
    /// Who looks into functions and schemas.
    pub evaluator: Arc<dyn Evaluator>,
    /// What it was told.
    pub settings: Settings,
    pub(crate) plans: Plans,
    pub(crate) feeds: Feeds,
    pub(crate) bus: Bus,
    pub(crate) limiter: Limiter,
    pub(crate) known: Known,
    pub(crate) watched: Watched,
    pub(crate) rights: OnceLock<Rights>,
    slots: Slots,
    pub(crate) bodies: Bodies,
    pub(crate) responses: Responses,
    pub(crate) refusals: Refusals,
    pub(crate) readiness: Readiness,
}

impl App {
    /// A server on an engine that runs.
    pub fn new(engine: Arc<Engine>, evaluator: Arc<dyn Evaluator>, settings: Settings) -> Self {
        let (plans, bus) = (Plans::default(), Bus::default());
        let feeds = Feeds::of_connections(settings.connections_max);
        let clock = clock();
        let (limiter, known) = (Limiter::new(settings.rates.clone(), clock.clone()), Known::new(clock.clone()));
        let refusals = Refusals::new(clock);
        let (watched, rights) = (Watched::of(engine.clone()), OnceLock::new());
        let (slots, bodies, responses) = (Slots::default(), Bodies::default(), Responses::default());
        let shared = Shared {
            engine,
            evaluator,
            settings,
            plans,
            feeds,
            bus,
            limiter,
            known,
            watched,
            rights,
            slots,
            bodies,
            responses,
            refusals,
            readiness: Readiness::default(),
        };
        Self { shared: Arc::new(shared), budget: None, kind: None }
    }

    /// What is listed and searched.
    pub fn catalogue(&self) -> &dyn Catalogue {
        &self.watched
    }

    /// The same server for the work of one request, which has a budget of its own to compile.
    fn for_one_request(&self) -> Self {
        Self { shared: self.shared.clone(), budget: Some(Arc::default()), kind: Some(current().kind) }
    }

    /// Whether the work of this request has a permit to compile.
    pub(crate) fn may_compile(&self) -> bool {
        self.kind.is_none_or(|kind| kind == Kind::Compiling)
    }

    /// What compiling may cost; a new one outside of a request.
    pub(crate) fn budget(&self) -> Arc<Budget> {
        self.budget.clone().unwrap_or_default()
    }

    /// Does what uses the store or the sandbox on a thread of its own, in a slot of the current task's account.
    ///
    /// # Errors
    /// Fails with 503 if there is no slot in time.
    pub async fn run<T: Send + 'static>(&self, work: impl FnOnce(&Self) -> Answer<T> + Send + 'static) -> Answer<T> {
        let app = self.for_one_request();
        let broke_off =
            |why: String| Problem::new(Code::InternalError, format!("The work on this request broke off: {why}."));
        let slot = self.slot().await?;
        // The slot is the thread's: it goes on also where nobody waits for it any more.
        let done = tokio::task::spawn_blocking(move || {
            let done = work(&app);
            drop(slot);
            done
        });
        done.await.map_err(|error| broke_off(error.to_string()))?
    }

    /// A slot, once the organization has taken most of the responses that were made for it. What ends an overload does not
    /// wait for that.
    async fn slot(&self) -> Answer<Slot> {
        let account = current();
        if account.kind == Kind::Reserved {
            return self.slots.take().await;
        }
        let asked = async {
            loop {
                self.responses.room(&account).await;
                let slot = self.slots.take().await?;
                // Many may have waited for the same room.
                if self.responses.has_room(&account) {
                    return Ok(slot);
                }
            }
        };
        timeout(WAIT_MAX, asked).await.unwrap_or_else(|_| Err(untaken()))
    }

    /// Reads some single things: here and now where the store has them at hand, as another thread would cost several times
    /// what they do, and else as [`run`](Self::run).
    pub async fn look<T: Send + 'static>(&self, work: impl FnOnce(&Self) -> Answer<T> + Send + 'static) -> Answer<T> {
        let account = current();
        let is_free = account.kind == Kind::Reserved || self.responses.has_room(&account);
        if is_free && self.engine.store().is_at_hand() { work(&self.for_one_request()) } else { self.run(work).await }
    }
}

impl std::ops::Deref for App {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.shared
    }
}
