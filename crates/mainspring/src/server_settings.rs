//! Settings of a server, from flags, the environment, a file or defaults, in this order. Each keeps its origin, so
//! that `config` can show it.

mod oidc;

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use clap::{Args, ValueHint};
use mainspring_engine::limits::effects_at_a_time;
use mainspring_kernel::{
    definition::{Syntax, read},
    value::Value,
};
use mainspring_server::{
    auth::cross_site::origin,
    http::rate_limit::{PER_SECOND_MAX, Rates, proxy},
};

use rustix::process::{Resource, getrlimit};

use crate::{
    context::Global,
    error::CliError,
    paths,
    scripts::{ScriptFlags, ScriptSettings},
};

/// The default address, which is reachable from this machine only.
const LISTEN_DEFAULT: &str = "127.0.0.1:7300";

/// Seconds without a heartbeat after which other nodes acquire a node's partitions.
const LEASE_DEFAULT: u64 = 10;

/// The shortest and the longest lease in seconds. With a shorter one, an ordinary pause of the machine costs a node
/// its partitions. With a longer one, executions of a dead node wait too long.
pub(crate) const LEASE_SECONDS: std::ops::RangeInclusive<u64> = 1..=600;

/// The longest retention of workspaces: a year.
const KEEP_MINUTES_MAX: u64 = 525_600;

/// Keys of the file, with the environment variables of the same meaning.
const KEYS: [(&str, &str); 21] = [
    ("listen", "MAINSPRING_LISTEN"),
    ("baseUrl", "MAINSPRING_BASE_URL"),
    ("dataDir", "MAINSPRING_DIR"),
    ("store", "MAINSPRING_STORE"),
    ("leaseSeconds", "MAINSPRING_LEASE_SECONDS"),
    ("effectsAtATime", "MAINSPRING_EFFECTS_AT_A_TIME"),
    ("rateLimitPerSecond", "MAINSPRING_RATE_LIMIT_PER_SECOND"),
    ("anonymousRateLimitPerSecond", "MAINSPRING_ANONYMOUS_RATE_LIMIT_PER_SECOND"),
    ("trustedProxies", "MAINSPRING_TRUSTED_PROXIES"),
    ("scriptsKeepMinutes", "MAINSPRING_SCRIPTS_KEEP_MINUTES"),
    ("scripts", "MAINSPRING_SCRIPTS"),
    ("scriptsNetwork", "MAINSPRING_SCRIPTS_NETWORK"),
    ("scriptsRead", "MAINSPRING_SCRIPTS_READ"),
    ("oidcIssuer", "MAINSPRING_OIDC_ISSUER"),
    ("oidcClientId", "MAINSPRING_OIDC_CLIENT_ID"),
    ("oidcClientSecretFile", "MAINSPRING_OIDC_CLIENT_SECRET_FILE"),
    ("oidcScopes", "MAINSPRING_OIDC_SCOPES"),
    ("oidcClaim", "MAINSPRING_OIDC_CLAIM"),
    ("oidcOrganization", "MAINSPRING_OIDC_ORGANIZATION"),
    ("oidcFirstRole", "MAINSPRING_OIDC_FIRST_ROLE"),
    ("oidcEmailDomains", "MAINSPRING_OIDC_EMAIL_DOMAINS"),
];

/// The key of the tool servers. They have no flag and no variable.
const TOOL_SERVERS: &str = "mcpServers";

/// The rules for calls, which only the file has.
const POLICY: &str = "policy";

/// The key of the models. They have no flag and no variable either.
const MODELS: &str = "models";

/// The external agents.
const AGENTS: &str = "agents";

/// The prices of the models.
const PRICES: &str = "prices";

/// The endpoints of prompts, which only the file has.
const ORCHESTRATORS: &str = "orchestrators";

/// The sandboxes of scripts, which only the file has.
const SANDBOXES: &str = "sandboxes";

/// The hosts of repositories, which only the file has.
const REPOSITORIES: &str = "repositories";

/// The budgets for a day or a month.
const BUDGETS: &str = "budgets";

/// The secrets, which only the file names. Their values are elsewhere.
const SECRETS: &str = "secrets";

/// The HashiCorp Vault of secrets, which only the file has.
const VAULT: &str = "vault";

/// The settings that are objects, which only the file has.
#[derive(Debug, Clone, Default)]
pub(crate) struct ObjectSettings {
    /// The file, for messages.
    pub(crate) path: PathBuf,
    /// `mcpServers`; null without one.
    pub(crate) tool_servers: Value,
    /// `models`; null without one.
    pub(crate) models: Value,
    /// `agents`; null without one.
    pub(crate) agents: Value,
    /// `prices`; null without one.
    pub(crate) prices: Value,
    /// `orchestrators`; null without one.
    pub(crate) orchestrators: Value,
    /// `sandboxes`; null without one.
    pub(crate) sandboxes: Value,
    /// `repositories`; null without one.
    pub(crate) repositories: Value,
    /// `budgets`; null without one.
    pub(crate) budgets: Value,
    /// `policy`; null without one.
    pub(crate) policy: Value,
    /// `secrets`; null without one.
    pub(crate) secrets: Value,
    /// `vault`; null without one.
    pub(crate) vault: Value,
}

/// The flags of commands that run a server or show its settings.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ServerFlags {
    /// The address to listen on [default: 127.0.0.1:7300, env: MAINSPRING_LISTEN]
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<String>,
    /// The public URL, if it differs: https://mainspring.example.com [env: MAINSPRING_BASE_URL]
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    base_url: Option<String>,
    /// With --store: seconds without a heartbeat after which other nodes take over [default: 10, env:
    /// MAINSPRING_LEASE_SECONDS]
    #[arg(long, value_name = "S")]
    lease_seconds: Option<String>,
    /// Concurrent scripts and requests, divided fairly between organizations; others wait [default: a quarter of the
    /// open file limit, less 256; env: MAINSPRING_EFFECTS_AT_A_TIME]
    #[arg(long, value_name = "N")]
    effects_at_a_time: Option<String>,
    /// Requests per second and token; 0 disables the limit [default: 1000, env: MAINSPRING_RATE_LIMIT_PER_SECOND]
    #[arg(long, value_name = "N")]
    rate_limit_per_second: Option<String>,
    /// Requests per second and address without a valid token; 0 disables the limit [default: 10, env:
    /// MAINSPRING_ANONYMOUS_RATE_LIMIT_PER_SECOND]
    #[arg(long, value_name = "N")]
    anonymous_rate_limit_per_second: Option<String>,
    /// Proxies whose X-Forwarded-For header is trusted: 10.0.0.0/8,192.0.2.1 [env: MAINSPRING_TRUSTED_PROXIES]
    #[arg(long, value_name = "ADDRESSES")]
    trusted_proxies: Option<String>,
    /// Minutes for which the workspace of an ended execution is kept [default: 0, env: MAINSPRING_SCRIPTS_KEEP_MINUTES]
    #[arg(long, value_name = "N")]
    scripts_keep_minutes: Option<String>,
    /// The settings file [default: $XDG_CONFIG_HOME/mainspring/config.yaml, env: MAINSPRING_CONFIG]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    config: Option<PathBuf>,
    #[command(flatten)]
    scripts: ScriptFlags,
    #[command(flatten)]
    oidc: oidc::OidcFlags,
}

/// A setting with its origin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting {
    /// The name, as in the file.
    pub(crate) name: &'static str,
    /// The effective value; `None` if it is not set.
    pub(crate) value: Option<String>,
    /// The flag, variable or file that set it.
    pub(crate) origin: String,
}

/// The effective settings.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) all: Vec<Setting>,
    /// The address to listen on.
    pub(crate) listen: SocketAddr,
    /// The public URL, if it differs.
    pub(crate) base_url: Option<String>,
    /// Seconds without a heartbeat after which other nodes acquire the partitions.
    pub(crate) lease_seconds: u64,
    /// Concurrent effects.
    pub(crate) effects_at_a_time: usize,
    /// Rate limits.
    pub(crate) rates: Rates,
    /// The mode of scripts.
    pub(crate) scripts: ScriptSettings,
    /// The retention of workspaces after the end of their execution.
    pub(crate) keep_minutes: u64,
    /// The OpenID Connect provider, if one is configured.
    pub(crate) oidc: Option<mainspring_server::auth::oidc::Settings>,
    /// The settings that are objects.
    pub(crate) objects: ObjectSettings,
    /// The global flags with the effective data folder and store.
    pub(crate) global: Global,
}

impl ServerFlags {
    /// The path of the settings file, and true if the user named it; `None` if no default location is known.
    pub(crate) fn file(&self) -> Option<(PathBuf, bool)> {
        settings_file(self.config.as_deref())
    }
}

impl Settings {
    /// Reads flags, environment and file.
    pub(crate) fn of(flags: &ServerFlags, global: &Global) -> Result<Self, CliError> {
        let file = File::of(flags)?;
        let mut all = Self::merged(flags, global, &file)?;
        let oidc = oidc::read(&mut all)?;
        let value = |wanted: &str| all.iter().find(|one| one.name == wanted).and_then(|one| one.value.clone());
        let listen = value("listen").unwrap_or_default();
        let listen =
            listen.parse().map_err(|_| bad("listen", format!("`{listen}` is not an address like {LISTEN_DEFAULT}")))?;
        let lease = value("leaseSeconds").unwrap_or_default();
        let fits = |seconds: &u64| LEASE_SECONDS.contains(seconds);
        let lease_seconds = lease.parse().ok().filter(fits).ok_or_else(|| {
            let (shortest, longest) = (LEASE_SECONDS.start(), LEASE_SECONDS.end());
            bad("leaseSeconds", format!("`{lease}` is not a number of seconds from {shortest} to {longest}"))
        })?;
        let effects = value("effectsAtATime").unwrap_or_default();
        let effects_at_a_time =
            effects.parse().ok().filter(|count| *count > 0).ok_or_else(|| {
                bad("effectsAtATime", format!("`{effects}` is not a number of effects: give 1 or more"))
            })?;
        let rates = rates(value)?;
        let keep_minutes = keep_minutes(value("scriptsKeepMinutes").unwrap_or_default())?;
        let own = flags.file().into_iter().map(|(path, _)| path);
        let own = own.chain(value("oidcClientSecretFile").map(PathBuf::from));
        let scripts = ScriptSettings::of(value("scripts"), value("scriptsNetwork"), value("scriptsRead"))?;
        let is_said = all.iter().any(|one| one.name == "oidcOrganization" && one.origin != "default");
        oidc.iter().try_for_each(|oidc| oidc::check_first_role(oidc, &scripts, is_said))?;
        let scripts = scripts.hiding(own);
        let global = Global { dir: value("dataDir").map(Into::into), store: value("store"), ..global.clone() };
        let base_url = value("baseUrl").map(|url| url.trim_end_matches('/').to_string());
        if let Some(url) = base_url.iter().find(|url| !url.starts_with("http") || origin(url).is_none()) {
            return Err(bad("baseUrl", format!("`{url}` is not an address like https://mainspring.example.com")));
        }
        Ok(Self {
            objects: file.objects(),
            base_url,
            listen,
            lease_seconds,
            effects_at_a_time,
            rates,
            scripts,
            keep_minutes,
            oidc,
            global,
            all,
        })
    }

    /// Merges flags, environment and file.
    fn merged(flags: &ServerFlags, global: &Global, file: &File) -> Result<Vec<Setting>, CliError> {
        // For these two, clap reads the environment itself, so a flag and a variable of equal value cannot be told
        // apart.
        let path = |path: &PathBuf| path.display().to_string();
        let given = [
            flags.listen.clone(),
            flags.base_url.clone(),
            global.dir.as_ref().map(path),
            global.store.clone(),
            flags.lease_seconds.clone(),
            flags.effects_at_a_time.clone(),
            flags.rate_limit_per_second.clone(),
            flags.anonymous_rate_limit_per_second.clone(),
            flags.trusted_proxies.clone(),
            flags.scripts_keep_minutes.clone(),
        ];
        let mut all = Vec::new();
        for ((name, variable), flag) in
            KEYS.into_iter().zip(given.into_iter().chain(flags.scripts.given()).chain(flags.oidc.given()))
        {
            let environment = std::env::var(variable).ok().filter(|value| !value.is_empty());
            let (value, origin) = if flag.is_some() && flag != environment {
                (flag, "flag".to_string())
            } else if environment.is_some() {
                (environment, variable.to_string())
            } else if let Some(value) = file.get(name)? {
                (Some(value), file.path.display().to_string())
            } else {
                (usual(name), "default".to_string())
            };
            all.push(Setting { name, value, origin });
        }
        Ok(all)
    }
}

fn bad(name: &str, why: String) -> CliError {
    CliError::bad_input("bad_setting", format!("{name}: {why}"))
}

/// The limit of open files of this process.
pub(crate) fn files_max() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Parses the retention of workspaces in minutes.
fn keep_minutes(text: String) -> Result<u64, CliError> {
    text.parse().ok().filter(|minutes| *minutes <= KEEP_MINUTES_MAX).ok_or_else(|| {
        bad("scriptsKeepMinutes", format!("`{text}` is not a number of minutes from 0 to {KEEP_MINUTES_MAX}"))
    })
}

/// Parses the rate limits and the trusted proxies.
fn rates(value: impl Fn(&str) -> Option<String>) -> Result<Rates, CliError> {
    let per_second = |name: &str| {
        let text = value(name).unwrap_or_default();
        let rate = text.parse().ok().filter(|rate| *rate <= PER_SECOND_MAX);
        rate.ok_or_else(|| bad(name, format!("`{text}` is not a number from 0, for no limit, to {PER_SECOND_MAX}")))
    };
    let (per_token, per_address) = (per_second("rateLimitPerSecond")?, per_second("anonymousRateLimitPerSecond")?);
    let proxies = value("trustedProxies").unwrap_or_default();
    let proxies = proxies.split(',').map(str::trim).filter(|proxy| !proxy.is_empty());
    let proxy = |text: &str| {
        proxy(text).ok_or_else(|| {
            bad("trustedProxies", format!("`{text}` is not an address or range of addresses like 10.0.0.0/8"))
        })
    };
    Ok(Rates { per_token, per_address, trusted_proxies: proxies.map(proxy).collect::<Result<_, _>>()? })
}

fn usual(name: &str) -> Option<String> {
    match name {
        "listen" => Some(LISTEN_DEFAULT.into()),
        "leaseSeconds" => Some(LEASE_DEFAULT.to_string()),
        "effectsAtATime" => Some(effects_at_a_time(files_max()).to_string()),
        "scripts" => Some("contained".into()),
        "scriptsNetwork" => Some("none".into()),
        "scriptsKeepMinutes" => Some("0".into()),
        "rateLimitPerSecond" => Some(Rates::default().per_token.to_string()),
        "anonymousRateLimitPerSecond" => Some(Rates::default().per_address.to_string()),
        "dataDir" => paths::state_home().ok().map(|home| home.join("mainspring").display().to_string()),
        name => mainspring_server::auth::oidc::default_of(name).map(Into::into),
    }
}

/// The path of the settings file, and true if the user named it, by a flag or by the environment.
fn settings_file(flag: Option<&Path>) -> Option<(PathBuf, bool)> {
    let named = flag.map(Path::to_owned).or_else(|| std::env::var_os("MAINSPRING_CONFIG").map(PathBuf::from));
    let usual = || paths::config_home().map(|home| (home.join("mainspring/config.yaml"), false));
    named.map(|path| (path, true)).or_else(usual)
}

/// Reads the settings that are objects from the file of the environment or of the default location.
pub(crate) fn object_settings() -> Result<ObjectSettings, CliError> {
    Ok(File::read(settings_file(None))?.objects())
}

/// Like [`object_settings`], from the file that the flags name.
pub(crate) fn object_settings_of(flags: &ServerFlags) -> Result<ObjectSettings, CliError> {
    Ok(File::read(flags.file())?.objects())
}

/// The parsed settings file.
struct File {
    path: PathBuf,
    value: Value,
}

impl File {
    fn of(flags: &ServerFlags) -> Result<Self, CliError> {
        Self::read(flags.file())
    }

    /// Reads the named file, which must exist, or the default one, which is optional.
    fn read(file: Option<(PathBuf, bool)>) -> Result<Self, CliError> {
        let Some((path, is_named)) = file else {
            return Ok(Self { path: PathBuf::new(), value: Value::Map(Default::default()) });
        };
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !is_named => Vec::new(),
            Err(error) => return Err(refused(&path, &error.to_string())),
        };
        let value = if bytes.trim_ascii().is_empty() {
            Value::Map(Default::default())
        } else {
            let document = read(&bytes, Syntax::Guess);
            document.map_err(|found| refused(&path, &format!("{}: {}", found.path, found.message)))?.value
        };
        let Value::Map(map) = &value else { return Err(refused(&path, "it must be an object of settings")) };
        let names: Vec<&str> = KEYS
            .iter()
            .map(|(name, _)| *name)
            .chain([TOOL_SERVERS, MODELS, AGENTS, PRICES, BUDGETS, ORCHESTRATORS, SANDBOXES, POLICY])
            .chain([REPOSITORIES, SECRETS, VAULT])
            .collect();
        if let Some(other) = map.keys().find(|key| !names.contains(&key.as_str())) {
            return Err(refused(&path, &format!("`{other}` is not a setting; the settings are {}", names.join(", "))));
        }
        Ok(Self { path, value })
    }

    fn objects(&self) -> ObjectSettings {
        let part = |name: &str| self.value.get(name).cloned().unwrap_or_default();
        ObjectSettings {
            path: self.path.clone(),
            tool_servers: part(TOOL_SERVERS),
            models: part(MODELS),
            agents: part(AGENTS),
            prices: part(PRICES),
            orchestrators: part(ORCHESTRATORS),
            sandboxes: part(SANDBOXES),
            repositories: part(REPOSITORIES),
            budgets: part(BUDGETS),
            policy: part(POLICY),
            secrets: part(SECRETS),
            vault: part(VAULT),
        }
    }

    fn get(&self, name: &str) -> Result<Option<String>, CliError> {
        match self.value.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text.clone())),
            Some(number @ Value::Number(_)) => Ok(Some(mainspring_kernel::json::compact(number))),
            Some(other) => {
                Err(refused(&self.path, &format!("`{name}` must be a text or a number, not {}", other.kind())))
            }
        }
    }
}

fn refused(path: &Path, why: &str) -> CliError {
    CliError::bad_input("bad_settings", format!("the settings in {}: {why}", path.display()))
}
