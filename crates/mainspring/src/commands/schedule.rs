//! `mainspring schedule`: shows the ticks of a cron expression in a time zone.

use clap::{Args, Subcommand};
use mainspring_engine::clock::now_ms;
use mainspring_kernel::{
    json::compact,
    time::{parse_rfc3339, rfc3339},
    value::Value,
};
use mainspring_triggers::schedule::{Schedule, ScheduleError, time_zone_version};

use crate::{
    context::Context,
    error::{CliError, Exit},
    output::terminal::print_out,
};

/// Check schedules.
#[derive(Debug, Args)]
pub(crate) struct ScheduleCommand {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print the next ticks of a cron expression
    Next(Next),
}

/// Print the next ticks of a cron expression.
///
/// A local time that a clock change skips runs once, when the clock change happens; one that comes twice runs at the
/// first. If the hour is `*`, a skipped time does not run, and a repeated one runs twice.
#[derive(Debug, Args)]
struct Next {
    /// Five fields (minute, hour, day of month, month, day of week), or a name such as @daily
    #[arg(value_name = "EXPR")]
    expression: String,
    /// The time zone by its IANA name
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    timezone: String,
    /// The time after which the ticks come, in RFC 3339 [default: now]
    #[arg(long, value_name = "TIME", value_parser = time)]
    from: Option<u64>,
    /// The number of ticks
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    count: u32,
}

fn time(text: &str) -> Result<u64, &'static str> {
    parse_rfc3339(text).ok_or("write a time from 1970 on in RFC 3339, such as 2026-02-24T10:30:00Z")
}

pub(crate) fn schedule(command: &ScheduleCommand, context: &Context) -> Result<Exit, CliError> {
    let Action::Next(next) = &command.action;
    let schedule = Schedule::new(&next.expression, &next.timezone).map_err(|error| {
        let code = match error {
            ScheduleError::Cron(_) => "bad_cron",
            ScheduleError::Zone(_) => "bad_timezone",
        };
        CliError::bad_input(code, error.to_string())
    })?;
    let ticks = schedule.ticks_after(next.from.unwrap_or_else(now_ms)).take(next.count as usize);
    if context.global.json {
        print_out!("{}", compact(&report(next, &schedule, ticks)));
        return Ok(Exit::Fine);
    }
    for tick_ms in ticks {
        print_out!("{}  {}", rfc3339(tick_ms), schedule.local_time(tick_ms).unwrap_or_default());
    }
    Ok(Exit::Fine)
}

fn report(next: &Next, schedule: &Schedule, ticks: impl Iterator<Item = u64>) -> Value {
    let tick = |tick_ms| Value::map([("at", rfc3339(tick_ms).into()), ("local", schedule.local_time(tick_ms).into())]);
    Value::map([
        ("expression", next.expression.as_str().into()),
        ("timezone", schedule.zone_name().into()),
        ("timezoneData", time_zone_version().into()),
        ("ticks", Value::List(ticks.map(tick).collect())),
    ])
}
