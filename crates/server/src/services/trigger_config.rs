//! The configuration of a trigger: as a request writes it, checked, and as a response shows it.

use std::collections::BTreeMap;

use mainspring_kernel::{json, value::Value};
use mainspring_triggers::{
    catch_up::jitter_ms,
    limits::{
        CATCH_UP_WINDOW_MS_MAX, JITTER_MS_MAX, NEXT_RUNS_MAX, PROMPT_BYTES_MAX, REQUIRED_HEADERS_MAX, SECRET_BYTES_MAX,
        SECRET_BYTES_SAFE, SECRETS_MAX, TOLERANCE_MS_DEFAULT, VARIABLES_MAX, WEBHOOK_PATH_BYTES_MAX,
    },
    mapping::Mapping,
    schedule::{Schedule, ScheduleError, time_zone_version},
    webhook::{Algorithm, Encoding, HmacScheme, Scheme, SignedContent, Verifier},
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    http::problem::{Problem, Result},
    resources::{
        Missed, Overlap, Respond, ScheduleConfig, SignatureAlgorithm, SignatureConfig, SignatureEncoding,
        SignatureScheme, Trigger, TriggerConfig, WebhookConfig,
    },
    services::{
        encryption_keys::{EncryptionKeys, Sealer},
        trigger_secrets::{Secrets, open, seal},
        wait::WAIT_MS_MAX,
    },
};

/// Window of missed ticks in milliseconds if the request has none: a day.
const WINDOW_MS_DEFAULT: u64 = 24 * 3_600_000;

/// Longest wait for the output in milliseconds if the request has none. Many senders give up after 30 s or less.
const WAIT_MS_DEFAULT: u64 = 10_000;

/// Largest tolerance of signature times in milliseconds: an hour.
const TOLERANCE_MS_MAX: u64 = 3_600_000;

/// HTTP methods of webhooks. GET is accepted with a signature only, because a browser sends it by itself.
const METHODS: [&str; 4] = ["POST", "PUT", "PATCH", "GET"];

/// The source of the events of a trigger, as a request writes it.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum ConfigBody {
    /// HTTP requests to `/webhooks/{path}`.
    #[serde(rename_all = "camelCase")]
    Webhook {
        /// Path below `/webhooks/`: segments of letters, digits and `. _ ~ -`, up to 200 bytes. A path belongs to one
        /// trigger of the installation.
        path: String,
        /// `POST` (default), `PUT`, `PATCH`, or `GET` with a secret.
        method: Option<String>,
        /// Secret of the signatures. If `secret` and `secrets` are absent in a change, the stored ones stay.
        #[schema(write_only)]
        secret: Option<String>,
        /// Secrets that are valid at the same time, during a rotation: the new and the old one.
        #[schema(write_only)]
        secrets: Option<Vec<String>>,
        /// Headers that a delivery must have, with their values. If absent in a change, the stored ones stay.
        #[schema(write_only)]
        headers: Option<BTreeMap<String, String>>,
        /// Scheme of the signatures. By default an HMAC-SHA256 of the body in hexadecimal, with or without `sha256=`, in
        /// `X-Signature` or `X-Hub-Signature-256`.
        signature: Option<SignatureConfig>,
        /// The response of a delivery.
        respond: Option<Respond>,
        /// With `respond: wait`, milliseconds, up to 60,000; default 10,000.
        #[schema(maximum = 60000)]
        wait_ms: Option<u64>,
    },
    /// Ticks of a cron expression.
    #[serde(rename_all = "camelCase")]
    Schedule {
        /// Five fields (minute, hour, day of month, month, day of week), or a name such as `@daily`.
        cron: String,
        /// IANA name of the time zone; default `UTC`.
        timezone: Option<String>,
        /// `workflow` (default), or `orchestrator`: each tick sends `prompt` to the endpoint that the settings of the server
        /// name for the organization.
        target: Option<String>,
        /// Prompt of the target `orchestrator`, up to 16 KiB.
        #[schema(min_length = 1, max_length = 16384)]
        prompt: Option<String>,
        /// Ticks that are found more than a minute after they were due.
        missed: Option<Missed>,
        /// Milliseconds, up to 31 days; default a day. Older missed ticks never run.
        #[schema(maximum = 2678400000u64)]
        window_ms: Option<u64>,
        /// A tick while an execution of the trigger is active.
        overlap: Option<Overlap>,
        /// Milliseconds, up to an hour. All ticks of the trigger start late by the same part of it, which differs between
        /// triggers.
        #[schema(maximum = 3600000)]
        jitter_ms: Option<u64>,
    },
    /// Requests of members only.
    Manual {},
}

/// The source of the events of a trigger, without its secrets.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum ConfigView {
    /// HTTP requests to `/webhooks/{path}`.
    #[serde(rename_all = "camelCase")]
    Webhook {
        /// Path below `/webhooks/`.
        path: String,
        /// Accepted HTTP method.
        method: String,
        /// True if deliveries must be signed.
        has_secret: bool,
        /// Number of secrets that are valid at the same time.
        secret_count: usize,
        /// Names of the headers that a delivery must have.
        header_names: Vec<String>,
        /// Scheme of the signatures; null for the default.
        signature: Option<SignatureConfig>,
        /// The response of a delivery.
        respond: Respond,
        /// Longest wait for the output in milliseconds.
        wait_ms: u64,
    },
    /// Ticks of a cron expression.
    #[serde(rename_all = "camelCase")]
    Schedule {
        /// Cron expression.
        cron: String,
        /// IANA name of the time zone.
        timezone: String,
        /// Release of the IANA time zone data of this server.
        timezone_data: &'static str,
        /// `workflow` or `orchestrator`.
        target: &'static str,
        /// Prompt of the target `orchestrator`; null for `workflow`.
        prompt: Option<String>,
        /// Ticks that are found more than a minute after they were due.
        missed: Missed,
        /// Milliseconds; older missed ticks never run.
        window_ms: u64,
        /// A tick while an execution of the trigger is active.
        overlap: Overlap,
        /// Largest delay of the ticks in milliseconds.
        jitter_ms: u64,
    },
    /// Requests of members only.
    Manual {},
}

impl ConfigBody {
    /// The warnings about a configuration that is accepted: secrets of a webhook that are short.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let Self::Webhook { secret, secrets, .. } = self else { return Vec::new() };
        let is_short = |secret: &&String| secret.trim_start_matches("whsec_").len() < SECRET_BYTES_SAFE;
        let short = secret.iter().chain(secrets.iter().flatten()).filter(is_short).count();
        if short == 0 {
            return Vec::new();
        }
        let which = if short == 1 { "a secret of this webhook has".into() } else { format!("{short} secrets have") };
        let message = format!(
            "{which} fewer than {SECRET_BYTES_SAFE} bytes, which can be guessed from one recorded delivery: use 32 random \
             bytes, as `openssl rand -hex 32` prints"
        );
        vec![message]
    }
}

impl From<&TriggerConfig> for ConfigView {
    fn from(config: &TriggerConfig) -> Self {
        match config.clone() {
            TriggerConfig::Manual => Self::Manual {},
            TriggerConfig::Webhook(webhook) => Self::Webhook {
                path: webhook.path,
                method: webhook.method,
                has_secret: webhook.secret_count > 0,
                secret_count: webhook.secret_count,
                header_names: webhook.header_names,
                signature: webhook.signature,
                respond: webhook.respond,
                wait_ms: webhook.wait_ms,
            },
            TriggerConfig::Schedule(schedule) => Self::Schedule {
                cron: schedule.cron,
                timezone: schedule.timezone,
                timezone_data: time_zone_version(),
                target: if schedule.prompt.is_some() { "orchestrator" } else { "workflow" },
                prompt: schedule.prompt,
                missed: schedule.missed,
                window_ms: schedule.window_ms,
                overlap: schedule.overlap,
                jitter_ms: schedule.jitter_ms,
            },
        }
    }
}

/// A configuration that a file has, as a server of this release shows it: with all defaults, and without secrets. The error
/// names the field.
pub fn normalized(config: &Value) -> std::result::Result<Value, String> {
    let body: ConfigBody = serde_json::from_str(&json::compact(config)).map_err(|error| format!("config: {error}"))?;
    let keys = EncryptionKeys::of_installation([0; 32]);
    let sealer = keys.unstored_sealer();
    let checked = checked(body, None, &sealer, ("", "")).map_err(|problem| problem.full_message())?;
    let shown = serde_json::to_vec(&ConfigView::from(&checked)).map_err(|error| format!("config: {error}"))?;
    json::value(&shown).map_err(|error| format!("config: {}", error.message))
}

/// The warnings about a configuration with the values of its secrets; none if it cannot be read.
pub fn warnings(config: &Value) -> Vec<String> {
    serde_json::from_str::<ConfigBody>(&json::compact(config)).map(|body| body.warnings()).unwrap_or_default()
}

/// Checks a configuration, and encrypts its secrets. `before` is the stored one, whose secrets stay if the request has
/// none.
pub(crate) fn checked(
    body: ConfigBody,
    before: Option<&TriggerConfig>,
    sealer: &Sealer<'_>,
    owner: (&str, &str),
) -> Result<TriggerConfig> {
    match body {
        ConfigBody::Manual {} => Ok(TriggerConfig::Manual),
        ConfigBody::Schedule { cron, timezone, target, prompt, missed, window_ms, overlap, jitter_ms } => {
            check_target(target.as_deref(), prompt.as_deref())?;
            if prompt.is_some() && overlap.is_some_and(|overlap| overlap != Overlap::Allow) {
                return Err(Problem::field(
                    "config.overlap",
                    "a prompt starts no execution that could overlap; leave it out",
                ));
            }
            let zone = timezone.as_deref().unwrap_or("UTC");
            let schedule = parse_schedule(&cron, zone)?;
            Ok(TriggerConfig::Schedule(ScheduleConfig {
                cron,
                timezone: schedule.zone_name().into(),
                missed: missed.unwrap_or_default(),
                window_ms: within("config.windowMs", window_ms, WINDOW_MS_DEFAULT, CATCH_UP_WINDOW_MS_MAX)?,
                overlap: overlap.unwrap_or_default(),
                jitter_ms: within("config.jitterMs", jitter_ms, 0, JITTER_MS_MAX)?,
                prompt,
            }))
        }
        ConfigBody::Webhook { path, method, secret, secrets, headers, signature, respond, wait_ms } => {
            let stored = match before {
                Some(TriggerConfig::Webhook(webhook)) => open(webhook.sealed.as_deref(), sealer.keys, owner)?,
                _ => Secrets::default(),
            };
            let secrets = Secrets {
                secrets: checked_secrets(secret, secrets)?.unwrap_or(stored.secrets),
                headers: headers.map(checked_headers).transpose()?.unwrap_or(stored.headers),
            };
            let webhook = WebhookConfig {
                path: checked_path(&path)?,
                method: checked_method(method.as_deref(), &secrets)?,
                sealed: seal(&secrets, &sealer.primary, owner)?,
                secret_count: secrets.secrets.len(),
                header_names: secrets.headers.keys().cloned().collect(),
                signature,
                respond: respond.unwrap_or_default(),
                wait_ms: within("config.waitMs", wait_ms, WAIT_MS_DEFAULT, WAIT_MS_MAX)?,
            };
            check_signature(&webhook, &secrets)?;
            Ok(TriggerConfig::Webhook(webhook))
        }
    }
}

fn within(field: &str, asked: Option<u64>, default: u64, most: u64) -> Result<u64> {
    match asked {
        Some(number) if number > most => Err(Problem::field(field, format!("it must be at most {most}, not {number}"))),
        asked => Ok(asked.unwrap_or(default)),
    }
}

fn check_target(target: Option<&str>, prompt: Option<&str>) -> Result<()> {
    let refused = |message: String| Err(Problem::field("config.prompt", message));
    match (target, prompt) {
        (None | Some("workflow"), None) => Ok(()),
        (None | Some("workflow"), Some(_)) => {
            refused("only the target `orchestrator` has a prompt; leave it out, or name the target".into())
        }
        (Some("orchestrator"), None) => refused("the target `orchestrator` needs a prompt".into()),
        (Some("orchestrator"), Some(prompt)) if prompt.trim().is_empty() || prompt.len() > PROMPT_BYTES_MAX => {
            refused(format!("it must have 1 to {PROMPT_BYTES_MAX} bytes, and not only white space"))
        }
        (Some("orchestrator"), Some(_)) => Ok(()),
        (Some(other), _) => {
            let message = format!("it must be `workflow` or `orchestrator`, not `{}`", other.escape_debug());
            Err(Problem::field("config.target", message))
        }
    }
}

/// The schedule of an expression and a time zone.
pub(crate) fn parse_schedule(cron: &str, zone: &str) -> Result<Schedule> {
    Schedule::new(cron, zone).map_err(|error| match &error {
        ScheduleError::Cron(_) => Problem::field("config.cron", &error),
        ScheduleError::Zone(_) => Problem::field("config.timezone", &error),
    })
}

/// The mapping of a trigger.
pub(crate) fn parse_mapping(paths: &BTreeMap<String, String>) -> Result<Mapping> {
    if paths.len() > VARIABLES_MAX {
        return Err(Problem::field("variableMapping", format!("it has more than {VARIABLES_MAX} variables")));
    }
    Mapping::parse(paths).map_err(|errors| {
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        Problem::field("variableMapping", texts.join("; "))
    })
}

/// The next ticks of an enabled schedule, with its jitter.
pub(crate) fn next_runs(id: &str, trigger: &Trigger, now_ms: u64) -> Vec<u64> {
    let TriggerConfig::Schedule(config) = &trigger.config else { return Vec::new() };
    let Ok(schedule) = Schedule::new(&config.cron, &config.timezone) else { return Vec::new() };
    if !trigger.enabled {
        return Vec::new();
    }
    let delay_ms = jitter_ms(id, config.jitter_ms);
    let ticks = schedule.ticks_after(now_ms.saturating_sub(delay_ms)).take(NEXT_RUNS_MAX);
    ticks.map(|tick| tick.saturating_add(delay_ms)).collect()
}

/// Checks a path: segments of unreserved characters (RFC 3986, 2.3), none of which is `.` or `..`.
fn checked_path(path: &str) -> Result<String> {
    let path = path.strip_prefix('/').unwrap_or(path);
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._~-".contains(&byte);
    let is_segment =
        |segment: &str| !segment.is_empty() && !matches!(segment, "." | "..") && segment.bytes().all(is_plain);
    if path.len() <= WEBHOOK_PATH_BYTES_MAX && path.split('/').all(is_segment) {
        return Ok(path.into());
    }
    let message = format!(
        "it must be segments of letters, digits and . _ ~ - with a slash between them, up to {WEBHOOK_PATH_BYTES_MAX} bytes"
    );
    Err(Problem::field("config.path", message))
}

fn checked_method(method: Option<&str>, secrets: &Secrets) -> Result<String> {
    let method = method.unwrap_or("POST").to_ascii_uppercase();
    if !METHODS.contains(&method.as_str()) {
        return Err(Problem::field("config.method", format!("it must be one of {}", METHODS.join(", "))));
    }
    if method == "GET" && *secrets == Secrets::default() {
        let message = "a webhook for GET needs a secret or a required header, because browsers send GET by themselves";
        return Err(Problem::field("config.method", message));
    }
    Ok(method)
}

fn checked_secrets(one: Option<String>, several: Option<Vec<String>>) -> Result<Option<Vec<String>>> {
    let secrets = match (one, several) {
        (Some(_), Some(_)) => return Err(Problem::field("config.secret", "give either `secret` or `secrets`")),
        (Some(one), None) => vec![one],
        (None, Some(several)) => several,
        (None, None) => return Ok(None),
    };
    if secrets.len() > SECRETS_MAX || secrets.iter().any(|one| one.is_empty() || one.len() > SECRET_BYTES_MAX) {
        let message = format!("at most {SECRETS_MAX}, each of 1 to {SECRET_BYTES_MAX} bytes");
        return Err(Problem::field("config.secrets", message));
    }
    Ok(Some(secrets))
}

fn checked_headers(headers: BTreeMap<String, String>) -> Result<BTreeMap<String, String>> {
    let is_name = |name: &str| !name.is_empty() && axum::http::HeaderName::from_bytes(name.as_bytes()).is_ok();
    let fits = |(name, value): (&String, &String)| is_name(name) && (1..=SECRET_BYTES_MAX).contains(&value.len());
    if headers.len() > REQUIRED_HEADERS_MAX || !headers.iter().all(fits) {
        let message =
            format!("at most {REQUIRED_HEADERS_MAX} headers by name, with values of 1 to {SECRET_BYTES_MAX} bytes");
        return Err(Problem::field("config.headers", message));
    }
    Ok(headers.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value)).collect())
}

/// Checks that the scheme and the secrets fit together.
fn check_signature(webhook: &WebhookConfig, secrets: &Secrets) -> Result<()> {
    match (&webhook.signature, secrets.secrets.is_empty()) {
        (Some(_), true) => Err(Problem::field("config.secret", "a signature needs a secret; give `secret`")),
        (Some(signature), false) => verifier(signature, &secrets.secrets).map(drop),
        (None, _) => Ok(()),
    }
}

/// The verifier of a configured scheme.
pub(crate) fn verifier(config: &SignatureConfig, secrets: &[String]) -> Result<Verifier> {
    let refused = |error: &dyn std::fmt::Display| Problem::field("config.signature", error);
    let tolerance_ms =
        within("config.signature.toleranceMs", config.tolerance_ms, TOLERANCE_MS_DEFAULT, TOLERANCE_MS_MAX)?;
    let secrets: Vec<&str> = secrets.iter().map(String::as_str).collect();
    let verifier = Verifier::new(scheme(config)?, &secrets).map_err(|error| refused(&error))?;
    Ok(verifier.with_tolerance_ms(tolerance_ms))
}

fn scheme(config: &SignatureConfig) -> Result<Scheme> {
    let SignatureConfig { header, prefix, encoding, algorithm, timestamp_header, content, .. } = config;
    let of_hmac = prefix.is_some() || encoding.is_some() || algorithm.is_some();
    let of_hmac = of_hmac || timestamp_header.is_some() || content.is_some();
    let is_hmac = config.scheme == SignatureScheme::Hmac;
    if of_hmac && !is_hmac || header.is_some() && !is_hmac && config.scheme != SignatureScheme::Token {
        let message = "this scheme has fixed headers and formats; leave its other fields out, or use `hmac` or `token`";
        return Err(Problem::field("config.signature", message));
    }
    let needed = || {
        let missing = || Problem::field("config.signature.header", "name the header with the signature or the token");
        header.clone().ok_or_else(missing)
    };
    Ok(match config.scheme {
        SignatureScheme::StandardWebhooks => Scheme::StandardWebhooks,
        SignatureScheme::Github => Scheme::GitHub,
        SignatureScheme::Gitlab => Scheme::GitLab,
        SignatureScheme::Stripe => Scheme::Stripe,
        SignatureScheme::Slack => Scheme::Slack,
        SignatureScheme::Token => Scheme::Token(needed()?),
        SignatureScheme::Hmac => Scheme::Hmac(HmacScheme {
            header: needed()?,
            prefix: prefix.clone().unwrap_or_default(),
            encoding: match encoding {
                Some(SignatureEncoding::Base64) => Encoding::Base64,
                Some(SignatureEncoding::Hex) | None => Encoding::Hex,
            },
            algorithm: match algorithm {
                Some(SignatureAlgorithm::Sha512) => Algorithm::Sha512,
                Some(SignatureAlgorithm::Sha256) | None => Algorithm::Sha256,
            },
            timestamp_header: timestamp_header.clone(),
            content: match content {
                Some(content) => {
                    SignedContent::parse(content).map_err(|error| Problem::field("config.signature.content", error))?
                }
                None => SignedContent::body(),
            },
        }),
    })
}
