//! The parser of cron expressions.

use std::ops::Range;

use super::{Cron, CronError, Field, Values};
use crate::limits::CRON_BYTES_MAX;

/// The names for whole expressions.
const NAMED: [(&str, &str); 7] = [
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

/// A part of the expression with its place.
#[derive(Clone, Copy)]
struct Part<'a> {
    text: &'a str,
    start: usize,
    field: Option<Field>,
}

impl<'a> Part<'a> {
    fn sub(self, range: Range<usize>) -> Self {
        Self { text: &self.text[range.clone()], start: self.start + range.start, field: self.field }
    }

    /// Splits at the first `separator`.
    fn split_once(self, separator: char) -> Option<(Self, Self)> {
        let at = self.text.find(separator)?;
        Some((self.sub(0..at), self.sub(at + separator.len_utf8()..self.text.len())))
    }

    fn split(self, separators: &'static [char]) -> impl Iterator<Item = Self> + 'a {
        self.text.split(separators).map(move |text| {
            let at = text.as_ptr() as usize - self.text.as_ptr() as usize;
            self.sub(at..at + text.len())
        })
    }

    fn error<T>(self, message: impl Into<String>, help: impl Into<String>) -> Result<T, CronError> {
        let place = self.start..self.start + self.text.len();
        Err(CronError { place, field: self.field, message: message.into(), help: help.into() })
    }
}

impl Cron {
    /// Parses five fields or a name such as `@daily`. Names of months, days and expressions have either case.
    pub fn parse(text: &str) -> Result<Self, CronError> {
        parse(text)
    }
}

fn parse(text: &str) -> Result<Cron, CronError> {
    let whole = Part { text, start: 0, field: None };
    if text.len() > CRON_BYTES_MAX {
        return whole.error(
            format!("the expression has {} bytes, and at most {CRON_BYTES_MAX} are allowed", text.len()),
            "shorten it with ranges and steps",
        );
    }
    if text.trim_start().starts_with('@') {
        return named(whole);
    }
    let parts: Vec<Part<'_>> = whole.split(&[' ', '\t']).filter(|part| !part.text.is_empty()).collect();
    if parts.len() != 5 {
        let seconds = if parts.len() == 6 { "; a field for seconds does not exist" } else { "" };
        return whole.error(
            format!("the expression has {} fields instead of 5{seconds}", parts.len()),
            "write minute, hour, day of month, month and day of week, as in `30 9 * * 1-5`, or a name such as `@daily`",
        );
    }
    let mut values = [Values::default(); 5];
    for ((part, field), values) in parts.iter().zip(Field::ALL).zip(&mut values) {
        *values = list(Part { field: Some(field), ..*part })?;
    }
    let [minutes, hours, days, months, weekdays] = values;
    let cron = Cron { minutes, hours, days, months, weekdays };
    if !has_date(&cron) {
        let days = Part { field: Some(Field::DayOfMonth), ..parts[2] };
        return days.error("no month of the expression has this day", "remove the day or add a month that has it");
    }
    Ok(cron)
}

fn named(whole: Part<'_>) -> Result<Cron, CronError> {
    let name = whole.text.trim();
    if let Some((_, expression)) = NAMED.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
        return parse(expression);
    }
    let known: Vec<&str> = NAMED.iter().map(|(name, _)| *name).collect();
    let help = format!("write one of {}, or five fields", known.join(", "));
    if name.eq_ignore_ascii_case("@reboot") {
        return whole.error("`@reboot` is not a time", help);
    }
    whole.error(format!("`{name}` is not a name of a schedule"), help)
}

/// Returns whether some date can match. With alternatives a day of the week always does.
fn has_date(cron: &Cron) -> bool {
    if !cron.days.begins_with_star && !cron.weekdays.begins_with_star {
        return true;
    }
    const DAYS: [i8; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let first = cron.days.first_from(1).unwrap_or(i8::MAX);
    (1..).zip(DAYS).any(|(month, days)| cron.months.contains(month) && first <= days)
}

fn list(part: Part<'_>) -> Result<Values, CronError> {
    let mut values = Values { bits: 0, begins_with_star: part.text.starts_with('*') };
    for element in part.split(&[',']) {
        if element.text.is_empty() {
            return part.error(format!("`{}` has an empty place in its list", part.text), "remove the comma");
        }
        values.bits |= range(element)?;
    }
    // Sunday is 0 and 7.
    if part.field == Some(Field::DayOfWeek) && values.bits & (1 << 7) != 0 {
        values.bits = (values.bits | 1) & !(1 << 7);
    }
    Ok(values)
}

/// Parses `*`, a value or `FROM-TO`, the first and the last with an optional `/STEP`.
fn range(part: Part<'_>) -> Result<u64, CronError> {
    let (span, step) = match part.split_once('/') {
        Some((span, step)) => (span, Some(step)),
        None => (part, None),
    };
    let (from, to) = match (span.text, span.split_once('-')) {
        ("*", _) => bounds(span),
        (_, Some((from, to))) => span_of(from, to)?,
        (text, None) if step.is_some() => {
            let (_, max) = bounds(span);
            return part.error(
                format!("`{}` has a step without a range", part.text),
                format!("write {text}-{max}/… for every step from {text} on, or */… for all"),
            );
        }
        (_, None) => (value(span)?, value(span)?),
    };
    if from > to {
        return span.error(
            format!("the range `{}` runs backwards", span.text),
            "write two ranges in a list, the first to the end of the field and the second from its beginning",
        );
    }
    let step = step.map_or(Ok(1), |step| step_value(step, span))?;
    Ok((from..=to).step_by(step).fold(0, |bits, value| bits | 1 << value))
}

/// The bounds for `*`. Sunday counts once.
fn bounds(part: Part<'_>) -> (u8, u8) {
    match part.field.unwrap_or(Field::Minute) {
        Field::DayOfWeek => (0, 6),
        field => field.bounds(),
    }
}

fn step_value(part: Part<'_>, span: Part<'_>) -> Result<usize, CronError> {
    let (min, max) = bounds(span);
    match number(part.text).filter(|step| *step > 0) {
        Some(step) if step <= max - min + 1 => Ok(usize::from(step)),
        _ => part.error(
            format!("`{}` is not a step from 1 to {}", part.text, max - min + 1),
            "write the distance between two values, as in `*/5`",
        ),
    }
}

/// Parses both ends of a range. `SUN` is 7 at the end, so that `FRI-SUN` has three days, and 0 in `SUN-SUN`, which has
/// one.
fn span_of(from: Part<'_>, to: Part<'_>) -> Result<(u8, u8), CronError> {
    let is_named = to.field == Some(Field::DayOfWeek) && number(to.text).is_none();
    match (value(from)?, value(to)?) {
        (from @ 1.., 0) if is_named => Ok((from, 7)),
        ends => Ok(ends),
    }
}

fn value(part: Part<'_>) -> Result<u8, CronError> {
    let field = part.field.unwrap_or(Field::Minute);
    let (min, max) = field.bounds();
    let by_name = || field.names().iter().position(|name| name.eq_ignore_ascii_case(part.text));
    let value = number(part.text).or_else(|| by_name().map(|position| min + position as u8));
    if let Some(value) = value.filter(|value| (min..=max).contains(value)) {
        return Ok(value);
    }
    let names = match field.names() {
        [first, .., last] => format!(" or {} to {}", first.to_uppercase(), last.to_uppercase()),
        _ => String::new(),
    };
    let others = if part.text.contains(['?', 'L', 'W', '#', '~', 'H']) {
        "; `?`, `L`, `W`, `#`, `~` and `H` of other schedulers do not exist"
    } else {
        ""
    };
    part.error(
        format!("`{}` is not a value from {min} to {max}{names}{others}", part.text),
        "write `*` for every value",
    )
}

/// Parses one or two decimal digits.
fn number(text: &str) -> Option<u8> {
    let is_number = (1..=2).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}
