//! Log output: lines on standard error with ids as fields, and times in UTC by RFC 3339.

use tracing::level_filters::LevelFilter;
use tracing_subscriber::{filter::Targets, fmt, layer::SubscriberExt, registry, util::SubscriberInitExt};

use super::LogFormat;
use crate::error::CliError;

/// The prefix of Mainspring's modules. A plain level applies to them alone, since the debug logs of libraries are
/// noise.
const OURS: &str = "mainspring";

/// Starts the log output.
pub(super) fn begin(filter: &str, format: LogFormat) -> Result<(), CliError> {
    if filter == "off" {
        return Ok(());
    }
    let layers = registry().with(targets(filter)?);
    let lines = fmt::layer().with_writer(std::io::stderr).with_ansi(false);
    let begun = match format {
        LogFormat::Text => layers.with(lines.with_target(false)).try_init(),
        LogFormat::Json => {
            let lines = lines.json().flatten_event(true).with_current_span(false).with_span_list(false);
            layers.with(lines).try_init()
        }
    };
    begun.map_err(|error| CliError::internal("no_logs", error.to_string()))
}

/// Parses a level, or levels by target: `info`, or `mainspring_engine=debug,warn`.
fn targets(filter: &str) -> Result<Targets, CliError> {
    if let Ok(level) = filter.parse::<LevelFilter>() {
        return Ok(Targets::new().with_target(OURS, level));
    }
    let refused = || {
        let help = "give off, error, warn, info or debug, or levels for targets as in `mainspring_engine=debug,warn`";
        CliError::bad_input("bad_log", format!("--log {filter}: is neither a level nor a filter; {help}"))
    };
    // `Targets` would accept a misspelled level as a target with all levels.
    let is_directive = |part: &str| part.contains('=') || part.parse::<LevelFilter>().is_ok();
    let filtered = filter.split(',').all(is_directive).then(|| filter.parse());
    filtered.and_then(Result::ok).ok_or_else(refused)
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn a_level_applies_to_our_crates_and_a_filter_to_named_targets() {
        let lets = |filter: &str, target: &str, level: Level| targets(filter).unwrap().would_enable(target, &level);
        assert!(lets("info", "mainspring_engine::driver", Level::INFO));
        assert!(!lets("info", "mainspring_engine::driver", Level::DEBUG));
        assert!(!lets("debug", "h2", Level::ERROR));
        assert!(lets("mainspring_engine=debug,warn", "h2", Level::WARN));
        assert!(lets("mainspring_engine=debug,warn", "mainspring_engine::driver", Level::DEBUG));
        for wrong in ["loud", "mainspring=loud"] {
            assert_eq!(targets(wrong).unwrap_err().failure.code, "bad_log", "{wrong}");
        }
    }
}
