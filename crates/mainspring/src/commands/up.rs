//! `mainspring up`: runs the server, on this machine's data folder or as one of several nodes of a shared store.

use std::{
    io::Write,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use clap::Args;
use mainspring_effects::{
    http::{Http, HttpOptions},
    shell::contain::{Scripts, remove_workspace},
};
use mainspring_engine::{Engine, EngineScope, clock::now_ms, limits::FILES_KEPT};
use mainspring_kernel::{json::compact, value::Value};
use mainspring_server::{
    App, Configured, Outgoing, Settings as Served,
    auth::oidc,
    resources::{
        Organization,
        repository::{Listing, Repository},
    },
    serve,
    services::{
        audit_marks, bootstrap,
        effect_policies::{keep_annotations, read_annotations},
        encryption_keys::EncryptionKeys,
        events::{sender, webhook_client::WebhookClient},
        integrations::Integrated,
        issue_token::{NewToken, issue},
        migration_rounds,
        prompts::{self, orchestrators::Orchestrators},
        propose_change::ProposeChange,
        rollout_rounds,
        scenario_runner::Scenarios,
        scheduler,
        stored_secrets::StoredSecrets,
        workspaces,
        writers::Writers,
    },
};
use mainspring_store::{Catalogue, ReadLimit};
use tokio::{
    net::TcpListener,
    task::JoinHandle,
    time::{MissedTickBehavior, timeout},
};

use super::{dev::folder::Folder, node};
use crate::{
    backend::read_store::engine_with,
    client::{Client, address::Address, oidc_fetch::Fetcher},
    context::Context,
    error::{CliError, Exit},
    evaluator::evaluator,
    integrations::OfSettings,
    known_names, models,
    output::terminal::{Terminal, bold, dim, print_out},
    paths::FIRST_TOKEN,
    period_budgets, repositories,
    runner::{REACH_HELP, Rules, http_allow, profiles},
    runners,
    scripts::{close_folder, close_this_process, words},
    secrets::NodeSecrets,
    server_settings::{ObjectSettings, ServerFlags, Settings, files_max},
    simulated::Simulated,
    store_location::StoreLocation,
    telemetry::Metrics,
    tool_policy,
    tool_servers::{self, ToolServers},
};

/// Open files of an effect on average: a request has one, a script up to four.
const FILES_PER_EFFECT: u64 = 2;

/// Bounds of the number of connections.
const CONNECTIONS_MIN: usize = 64;
const CONNECTIONS_MAX: usize = 65_536;

/// Lifetime of the token behind an opened console: a working day, as that of a session.
const CONSOLE_TOKEN_MS: u64 = 12 * 60 * 60 * 1000;

/// Lifetime of the token with which `dev` saves definitions, longer than a server for development runs.
const DEV_TOKEN_MS: u64 = 30 * 24 * 60 * 60 * 1000;

/// Start the server
#[derive(Debug, Args)]
#[command(after_help = REACH_HELP)]
pub(crate) struct Up {
    /// Open the console in the browser, signed in as the owner
    #[arg(long)]
    open: bool,
    #[command(flatten)]
    flags: ServerFlags,
    #[command(flatten)]
    metrics: Metrics,
}

/// Work beside the server, once it listens.
pub(super) enum Beside {
    /// None.
    Nothing,
    /// Opens the console in the browser.
    Browser,
    /// Watches a folder of definitions, and opens the console if `opens` is true.
    Folder { folder: Folder, opens: bool },
}

/// Serves until a signal stops it, or the store becomes unusable.
pub(crate) fn up(up: &Up, context: &Context) -> Result<Exit, CliError> {
    let settings = Settings::of(&up.flags, &context.global)?;
    up.metrics.begin(settings.global.json, &context.terminal)?;
    serve_with(&settings, context, if up.open { Beside::Browser } else { Beside::Nothing })
}

/// Serves with work beside it. An error of this work stops the server.
pub(super) fn serve_with(settings: &Settings, context: &Context, beside: Beside) -> Result<Exit, CliError> {
    close_this_process()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| CliError::internal("no_runtime", error.to_string()))?;
    let done = runtime.block_on(run(settings, context, &beside));
    // Tasks that still wait for an unresponsive store must not delay the exit.
    runtime.shutdown_background();
    done
}

/// Longest wait of the start for the annotations of trusted tool servers. Those of a slower server are read five minutes later.
const ANNOTATIONS_TIMEOUT: Duration = Duration::from_secs(10);

/// The warning of a server with several organizations whose scripts are not contained.
const SCRIPTS_OF_SEVERAL: &str = "Scripts of every organization run uncontained, with all rights of this user: their members can read the data of \
     each other. Set `--scripts contained` or `--scripts off` unless you trust all of them.";

async fn run(settings: &Settings, context: &Context, beside: &Beside) -> Result<Exit, CliError> {
    let terminal = &context.terminal;
    context.signals.install()?;
    let cannot = |error: std::io::Error| {
        let message = format!("{} cannot be listened on: {error}; name another with --listen", settings.listen);
        CliError::bad_input("listen", message)
    };
    let listener = TcpListener::bind(settings.listen).await.map_err(cannot)?;
    let address = listener.local_addr().map_err(cannot)?;
    let base = settings.base_url.clone().unwrap_or_else(|| format!("http://{address}"));
    let global = &settings.global;
    let scripts = settings.scripts.in_force(global, true)?;
    close_folder(global.home()?.folder())?.iter().for_each(|said| terminal.note(said));
    let secrets = NodeSecrets::of(&settings.objects)?;
    let (mut rules, configured) = rules(settings, &scripts, &secrets)?;
    let changes = ProposeChange::new();
    rules.changes = Some(changes.clone());
    models::mistakes(&settings.objects)
        .chain(period_budgets::unpriced(&settings.objects))
        .for_each(|mistake| terminal.note(&mistake));
    let location = StoreLocation::of(global)?;
    let engine = match &location {
        StoreLocation::Folder(_) => engine_with(global, EngineScope::All, rules).await?,
        location => node::join(settings.lease_seconds, location, global, rules).await?,
    };
    let engine = Arc::new(engine);
    let keys = bind_stored(&secrets, &engine, &location);
    engine.limit_effects(settings.effects_at_a_time);
    let marks = Arc::new(location.marks(&global.home()?, *engine.key(), true));
    let orchestrators = orchestrators(settings, &secrets)?;
    let mut served = served(settings, base.clone(), (marks.clone(), keys), configured)?;
    served.outgoing.orchestrators = orchestrators;
    let app = App::new(engine.clone(), evaluator(), served);
    changes.bind(&app);
    // Without the classes of its tools, a trusted server would be asked about.
    let _ = timeout(ANNOTATIONS_TIMEOUT, read_annotations(&app)).await;
    let token = bootstrap::create_first_organization(app.catalogue(), engine.key())
        .map_err(|problem| CliError::internal("first_start", problem.full_message()))?;
    if matches!(scripts, Scripts::Uncontained) && has_several_organizations(app.catalogue())? {
        terminal.note(SCRIPTS_OF_SEVERAL);
    }
    audit_marks::record_and_log(&engine, &marks).await;
    let marks_task = tokio::spawn(audit_marks::keep(engine.clone(), marks.clone()));
    let sweeping = tokio::spawn(sweep(app.clone(), settings.keep_minutes));
    let token = token.map(|token| FirstToken::of(token, global.home()?.folder(), terminal)).transpose()?;
    let rounds = rounds(&app);
    greet(&base, token.as_ref(), &scripts, settings, terminal);
    let (stopped, signals) = (stopped(engine.clone()), context.signals.clone());
    let serving = serve(listener, app.clone(), async move {
        tokio::select! {
            () = signals.any() => {}
            () = stopped => {}
        }
    });
    let served = tokio::select! {
        served = serving => served.map_err(|error| CliError::internal("serving", error.to_string())),
        error = work_beside(beside, &app, &base, context) => Err(error),
    };
    rounds.iter().for_each(JoinHandle::abort);
    engine.drain().await;
    marks_task.abort();
    sweeping.abort();
    audit_marks::record_and_log(&engine, &marks).await;
    served?;
    match engine.why_stopped() {
        Some(why) => Err(mainspring_engine::EngineError::Stopped(why).into()),
        None => Ok(Exit::Fine),
    }
}

/// Does the work beside the server. Returns only if it fails.
async fn work_beside(beside: &Beside, app: &App, base: &str, context: &Context) -> CliError {
    let opened = match beside {
        Beside::Nothing => Ok(()),
        Beside::Browser => open_console(app, base, true, context),
        Beside::Folder { opens, .. } => open_console(app, base, *opens, context),
    };
    match (opened, beside) {
        (Err(error), _) => error,
        (Ok(()), Beside::Folder { folder, .. }) => match client(app, base) {
            Ok(client) => folder.watch(app, &client, context).await,
            Err(error) => error,
        },
        (Ok(()), _) => std::future::pending().await,
    }
}

/// Creates a token of the owner for this run of the server.
fn own_token(app: &App, name: &str, lifetime_ms: u64) -> Result<String, CliError> {
    let by = crate::paths::user();
    let new = NewToken {
        organization: bootstrap::ORGANIZATION,
        user: bootstrap::OWNER,
        name,
        by: &by,
        expires_at_ms: Some(now_ms() + lifetime_ms),
    };
    issue(app.catalogue(), app.engine.key(), &new)
        .map_err(|problem| CliError::internal("no_token", problem.full_message()))
}

fn client(app: &App, base: &str) -> Result<Client, CliError> {
    Client::new(Address::parse(base)?, &own_token(app, "mainspring dev", DEV_TOKEN_MS)?, false)
}

/// Prints the address at which the console signs in once, and opens it if `opens` is true.
fn open_console(app: &App, base: &str, opens: bool, context: &Context) -> Result<(), CliError> {
    let token = own_token(app, "console, opened by a command", CONSOLE_TOKEN_MS)?;
    let code = app.sign_in_code(token).map_err(|problem| CliError::internal("no_token", problem.full_message()))?;
    let url = format!("{base}/login#code={code}");
    let is_open = opens && open::that_detached(&url).is_ok();
    if context.global.json {
        print_out!("{}", compact(&Value::map([("console", url.as_str().into()), ("opened", is_open.into())])));
    } else if is_open {
        print_out!("  {}  {base}    is open in the browser", dim("console"));
    } else {
        print_out!("  {}  {url}", dim("console"));
        print_out!("           signs in once, within two minutes");
    }
    Ok(())
}

/// The rules for effects, and the parts of the settings file that the server uses.
fn rules(settings: &Settings, scripts: &Scripts, secrets: &Arc<NodeSecrets>) -> Result<(Rules, Configured), CliError> {
    let sandboxes = profiles(&settings.objects)?;
    let ToolServers { executor, source, list, one } =
        tool_servers::open(&settings.objects, (scripts, &sandboxes), Some(secrets))?;
    let agents = models::executor(&settings.objects, source, Some(secrets));
    let runners = runners::executor(&settings.objects, (scripts, &sandboxes), Some(secrets));
    let terms = models::terms(&settings.objects)?.unwrap_or_default();
    let writers = Writers::new(agents.clone(), terms, list);
    let repositories =
        repositories::open(&settings.objects, (scripts, &sandboxes), secrets, settings.global.home()?.folder())?;
    let integrations = OfSettings { settings: settings.objects.clone(), tools: one, agents: agents.clone() };
    let rules = Rules {
        scripts: scripts.clone(),
        needs_workspace: true,
        tools: executor,
        agents: Some(agents),
        runners: Some(runners),
        changes: None,
        secrets: Some(secrets.clone()),
        repositories: repositories.clone(),
        budgets: period_budgets::of_server(&settings.objects)?,
        sandboxes,
    };
    // A budget may be set while an execution runs.
    let policy = tool_policy::of_settings(&settings.objects)?.with_leases();
    let configured = Configured {
        effect_policy: Arc::new(policy),
        known_names: known_names::of_settings(&settings.objects),
        writers: Some(Arc::new(writers)),
        integrations: Some(Arc::new(Integrated::new(Box::new(integrations)))),
        repositories,
    };
    Ok((rules, configured))
}

/// The settings of the HTTP server.
fn served(
    settings: &Settings,
    base: String,
    (marks, encryption_keys): (Arc<audit_marks::Marks>, Arc<EncryptionKeys>),
    configured: Configured,
) -> Result<Served, CliError> {
    Ok(Served {
        base,
        workspaces: settings.global.home()?.folder().join("workspaces"),
        tools_use_workspaces: !settings.scripts.is_off() && !tool_servers::processes(&settings.objects).is_empty(),
        release: env!("CARGO_PKG_VERSION"),
        rates: settings.rates.clone(),
        connections_max: connections_max(settings.effects_at_a_time),
        oidc: settings.oidc.clone().map(provider).transpose()?,
        marks: Some(marks),
        configured,
        scenarios: Some(Scenarios(Arc::new(Simulated))),
        outgoing: Outgoing {
            webhooks: WebhookClient::new(Arc::new(Http::new(HttpOptions {
                allow: http_allow()?,
                ..HttpOptions::default()
            }))),
            orchestrators: Orchestrators::default(),
        },
        encryption_keys,
        clock: now_ms,
    })
}

/// Gives steps the secrets of the store, under the keys that are returned.
fn bind_stored(secrets: &NodeSecrets, engine: &Engine, location: &StoreLocation) -> Arc<EncryptionKeys> {
    let keys = location.encryption_keys(*engine.key());
    secrets.bind(StoredSecrets::new(engine.store().clone(), keys.clone()));
    keys
}

/// The endpoints of prompts with their secrets. A mistake stops the start, since triggers would accept prompts for it.
fn orchestrators(settings: &Settings, secrets: &Arc<NodeSecrets>) -> Result<Orchestrators, CliError> {
    let ObjectSettings { path, orchestrators, .. } = &settings.objects;
    let read = Orchestrators::read(orchestrators).map_err(|errors| {
        let message = format!("the settings in {}: {}", path.display(), errors.join("\n"));
        CliError::bad_input("bad_settings", message)
    })?;
    Ok(read.with_secrets(secrets.clone()))
}

/// Spawns the work that the server repeats: due schedules, deliveries of events and prompts, rollouts, migrations, and
/// annotations of tools.
fn rounds(app: &App) -> [JoinHandle<()>; 6] {
    [
        tokio::spawn(scheduler::run(app.clone())),
        tokio::spawn(sender::run(app.clone())),
        tokio::spawn(prompts::sender::run(app.clone())),
        tokio::spawn(rollout_rounds::run(app.clone())),
        tokio::spawn(migration_rounds::run(app.clone())),
        tokio::spawn(keep_annotations(app.clone())),
    ]
}

fn has_several_organizations(catalogue: &dyn Catalogue) -> Result<bool, CliError> {
    let listing = Listing { most: ReadLimit::of(2), ..Listing::default() };
    let listed = Repository::of(catalogue, "").list::<Organization>(listing);
    Ok(listed.map_err(|problem| CliError::internal("first_start", problem.full_message()))?.rows.len() > 1)
}

/// The number of connections: the open file limit, less files for the store and for concurrent effects.
pub(super) fn connections_max(effects_at_a_time: usize) -> usize {
    let taken = FILES_KEPT.saturating_add(FILES_PER_EFFECT.saturating_mul(effects_at_a_time as u64));
    usize::try_from(files_max().saturating_sub(taken)).unwrap_or(usize::MAX).clamp(CONNECTIONS_MIN, CONNECTIONS_MAX)
}

/// The OpenID Connect provider.
fn provider(settings: oidc::Settings) -> Result<Arc<oidc::Provider>, CliError> {
    Ok(Arc::new(oidc::Provider::new(settings, Arc::new(Fetcher::new()?))))
}

/// Returns once the engine has stopped by itself.
async fn stopped(engine: Arc<Engine>) {
    let mut again = tokio::time::interval(node::POLL_INTERVAL);
    while engine.why_stopped().is_none() {
        again.tick().await;
    }
}

/// The owner's first token, by its location.
enum FirstToken {
    /// Printed on the terminal, which stores nothing.
    Shown(String),
    /// Written to a file: output that is no terminal may be a log, which is stored and read by others.
    Written(PathBuf),
}

impl FirstToken {
    fn of(token: String, folder: &Path, terminal: &Terminal) -> Result<Self, CliError> {
        if terminal.is_live {
            return Ok(Self::Shown(token));
        }
        let path = folder.join(FIRST_TOKEN);
        write_secret(&path, &token).map_err(|error| {
            let message = format!(
                "the owner's first token cannot be written to {}: {error}; `mainspring token` creates another after a \
                 restart of the server",
                path.display()
            );
            CliError::internal("first_token", message)
        })?;
        Ok(Self::Written(path))
    }
}

/// Writes a secret into a new file that only its owner can read.
fn write_secret(path: &Path, secret: &str) -> std::io::Result<()> {
    // An existing file belongs to a deleted store, or is a link of an attacker.
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    writeln!(file, "{secret}")?;
    file.sync_all()
}

/// Removes the workspaces of ended executions, and old packs of repositories, periodically.
async fn sweep(app: App, keep_minutes: u64) {
    let mut again = tokio::time::interval(node::SWEEP);
    again.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        again.tick().await;
        let app = app.clone();
        let times = (now_ms(), keep_minutes.saturating_mul(60_000));
        let sweep = move || {
            app.settings.configured.repositories.tidy();
            workspaces::sweep(&**app.engine.store(), &app.settings.workspaces, times, remove_workspace)
        };
        // Store errors are reported elsewhere, and the next interval retries.
        let _ = tokio::task::spawn_blocking(sweep).await;
    }
}

/// Prints the address of the server, and how to sign in.
fn greet(base: &str, token: Option<&FirstToken>, scripts: &Scripts, settings: &Settings, terminal: &Terminal) {
    let (mode, why) = words(scripts);
    if settings.global.json {
        let scripts = Value::map([("mode", Value::from(mode)), ("why", why.as_str().into())]);
        let (shown, file) = match token {
            Some(FirstToken::Shown(token)) => (Some(token.clone()), None),
            Some(FirstToken::Written(path)) => (None, Some(path.display().to_string())),
            None => (None, None),
        };
        let said = [
            ("listening", Value::from(base)),
            ("token", shown.as_deref().into()),
            ("tokenFile", file.as_deref().into()),
            ("scripts", scripts),
        ];
        print_out!("{}", compact(&Value::map(said)));
        return;
    }
    print_out!("{} is up at {}", bold("mainspring"), bold(base));
    print_out!("  {}  {base}/docs", dim("routes"));
    match token {
        Some(FirstToken::Written(path)) => {
            print_out!("  {}   you are `{}`; your token is in the file", dim("owner"), bootstrap::OWNER);
            print_out!("          {}", path.display());
            print_out!("          mainspring login {base} < FILE    stores it; remove the file then");
        }
        Some(FirstToken::Shown(token)) => {
            print_out!(
                "  {}   you are `{}`, and this is your token. It is shown only once:",
                dim("owner"),
                bootstrap::OWNER
            );
            print_out!("          {token}");
            print_out!("          mainspring login {base}    asks for it");
        }
        None => print_out!(
            "  {}   `mainspring login {base}` asks for your token; `mainspring token` creates a new one",
            dim("owner")
        ),
    }
    print_out!("  {}  {mode}: {why}", dim("scripts"));
    if let Some(oidc) = &settings.oidc {
        print_out!("  {}  {base}/sign-in/oidc    with {}", dim("sign-in"), oidc.issuer);
    }
    if !settings.listen.ip().is_loopback() {
        terminal.note("It is reachable from other machines, without TLS: put a proxy with TLS before it.");
    }
}
