//! Cron expressions: five fields with the meaning of Vixie cron, or a name such as `@daily`.
//!
//! The fields are minute, hour, day of month, month and day of week. If neither the day of month nor the day of week
//! begins with `*`, a date matches if either does; otherwise both must match. Sunday is 0 and 7. An expression is
//! refused if it can never match, because a schedule that never runs would go unnoticed.

mod parse;

use std::fmt;

use jiff::civil::{Date, DateTime};

/// A parsed expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cron {
    minutes: Values,
    hours: Values,
    days: Values,
    months: Values,
    /// Sunday is 0.
    weekdays: Values,
}

/// The values of a field that match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Values {
    bits: u64,
    /// The field begins with `*`, as in `*/5`.
    begins_with_star: bool,
}

/// A field of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// 0 to 59.
    Minute,
    /// 0 to 23.
    Hour,
    /// 1 to 31.
    DayOfMonth,
    /// 1 to 12, or `JAN` to `DEC`.
    Month,
    /// 0 to 7, or `SUN` to `SAT`.
    DayOfWeek,
}

/// A refused expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CronError {
    /// The refused bytes of the expression.
    pub place: std::ops::Range<usize>,
    /// `None` if the error is not about one field.
    pub field: Option<Field>,
    /// The error.
    pub message: String,
    /// A remedy.
    pub help: String,
}

impl fmt::Display for CronError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "column {}", self.place.start + 1)?;
        if let Some(field) = self.field {
            write!(out, ", {}", field.name())?;
        }
        write!(out, ": {}; {}", self.message, self.help)
    }
}

impl std::error::Error for CronError {}

impl Field {
    const ALL: [Self; 5] = [Self::Minute, Self::Hour, Self::DayOfMonth, Self::Month, Self::DayOfWeek];

    /// The name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::DayOfMonth => "day of month",
            Self::Month => "month",
            Self::DayOfWeek => "day of week",
        }
    }

    /// The smallest and the largest value.
    fn bounds(self) -> (u8, u8) {
        match self {
            Self::Minute => (0, 59),
            Self::Hour => (0, 23),
            Self::DayOfMonth => (1, 31),
            Self::Month => (1, 12),
            Self::DayOfWeek => (0, 7),
        }
    }

    /// The names of values, the first for the smallest value.
    fn names(self) -> &'static [&'static str] {
        match self {
            Self::Month => &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
            Self::DayOfWeek => &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
            Self::Minute | Self::Hour | Self::DayOfMonth => &[],
        }
    }
}

impl Values {
    fn contains(self, value: i8) -> bool {
        self.bits & (1 << value) != 0
    }

    /// Returns the smallest value that matches and is not below `from`.
    fn first_from(self, from: i8) -> Option<i8> {
        let rest = self.bits.checked_shr(u32::from(from.unsigned_abs())).unwrap_or_default();
        (rest != 0).then(|| from + rest.trailing_zeros() as i8)
    }
}

impl Cron {
    /// Returns whether the expression names its hours: the hour does not begin with `*`.
    pub(crate) fn has_fixed_hour(&self) -> bool {
        !self.hours.begins_with_star
    }

    /// Returns whether the expression names its minutes and hours.
    pub(crate) fn has_fixed_time(&self) -> bool {
        self.has_fixed_hour() && !self.minutes.begins_with_star
    }

    /// Returns the first local minute that matches and is not before `from`; `None` after the year 9999.
    pub(crate) fn first_from(&self, from: DateTime) -> Option<DateTime> {
        let is_whole_minute = from.second() == 0 && from.subsec_nanosecond() == 0;
        let (mut date, mut hour, mut minute) = (from.date(), from.hour(), from.minute() + i8::from(!is_whole_minute));
        loop {
            if !self.months.contains(date.month()) {
                date = date.last_of_month().tomorrow().ok()?;
                (hour, minute) = (0, 0);
                continue;
            }
            if self.matches_day(date)
                && let Some((hour, minute)) = self.first_time_from(hour, minute)
            {
                return Some(date.at(hour, minute, 0, 0));
            }
            date = date.tomorrow().ok()?;
            (hour, minute) = (0, 0);
        }
    }

    fn first_time_from(&self, hour: i8, minute: i8) -> Option<(i8, i8)> {
        if self.hours.contains(hour)
            && let Some(minute) = self.minutes.first_from(minute)
        {
            return Some((hour, minute));
        }
        Some((self.hours.first_from(hour + 1)?, self.minutes.first_from(0)?))
    }

    fn matches_day(&self, date: Date) -> bool {
        let day = self.days.contains(date.day());
        let weekday = self.weekdays.contains(date.weekday().to_sunday_zero_offset());
        match self.days.begins_with_star || self.weekdays.begins_with_star {
            true => day && weekday,
            false => day || weekday,
        }
    }
}
