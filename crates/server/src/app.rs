//! What all requests share.

use std::{
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use mainspring_engine::{Engine, evaluator::Evaluator};
use mainspring_store::Catalogue;
use tokio::sync::Semaphore;

use crate::{
    bus::Bus,
    compiling::Plans,
    door::Rights,
    feed::Feeds,
    known::{Known, Watched},
    oidc::Provider,
    problem::{Answer, Code, Problem},
    rate::{Limiter, Rates, clock},
};

/// Requests that wait for the store or the sandbox at a time: each holds a thread, with memory of its own. The engine has
/// the threads beyond these for itself, whatever is asked.
pub(crate) const WAITING_MAX: usize = 64;

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
}

/// The server: cheap to clone, all clones are one.
#[derive(Clone)]
pub struct App(Arc<Shared>);

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
    waiting: Arc<Semaphore>,
}

impl App {
    /// A server on an engine that runs.
    pub fn new(engine: Arc<Engine>, evaluator: Arc<dyn Evaluator>, settings: Settings) -> Self {
        let (plans, feeds, bus) = (Plans::default(), Feeds::default(), Bus::default());
        let clock = clock();
        let (limiter, known) = (Limiter::new(settings.rates.clone(), clock.clone()), Known::new(clock));
        let (watched, rights) = (Watched::of(engine.clone()), OnceLock::new());
        let waiting = Arc::new(Semaphore::new(WAITING_MAX));
        Self(Arc::new(Shared {
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
            waiting,
        }))
    }

    /// What is listed and searched.
    pub fn catalogue(&self) -> &dyn Catalogue {
        &self.watched
    }

    /// Does what waits for the store or the sandbox where it holds up nobody else.
    pub async fn run<T: Send + 'static>(&self, work: impl FnOnce(&Self) -> Answer<T> + Send + 'static) -> Answer<T> {
        let app = self.clone();
        let broke_off =
            |why: String| Problem::new(Code::InternalError, format!("The work on this request broke off: {why}."));
        let turn = self.waiting.clone().acquire_owned().await.map_err(|error| broke_off(error.to_string()))?;
        // The turn is the thread's: it goes on also where nobody waits for it any more.
        let done = tokio::task::spawn_blocking(move || {
            let done = work(&app);
            drop(turn);
            done
        });
        done.await.map_err(|error| broke_off(error.to_string()))?
    }

    /// Reads some single things: here and now where the store has them at hand, as another thread would cost several times
    /// what they do, and else as [`run`](Self::run).
    pub async fn look<T: Send + 'static>(&self, work: impl FnOnce(&Self) -> Answer<T> + Send + 'static) -> Answer<T> {
        if self.engine.store().is_at_hand() { work(self) } else { self.run(work).await }
    }
}

impl std::ops::Deref for App {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.0
    }
}
