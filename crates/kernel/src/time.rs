//! Converts times between milliseconds since 1970 and RFC 3339.

use alloc::{format, string::String};

/// Formats milliseconds since 1970 as RFC 3339 in UTC: `2026-02-07T12:00:00.000Z`.
pub fn rfc3339(ms: u64) -> String {
    let (days, in_day) = (ms / 86_400_000, ms % 86_400_000);
    let (year, month, day) = civil(days as i64);
    let (hour, minute, second, milli) = (in_day / 3_600_000, in_day / 60_000 % 60, in_day / 1000 % 60, in_day % 1000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

/// Parses a time in RFC 3339 with any offset, into milliseconds since 1970. Returns `None` for anything else and for
/// times before 1970.
pub fn parse_rfc3339(text: &str) -> Option<u64> {
    let bytes = text.as_bytes();
    let number = |from: usize, length: usize| {
        let digits = text.get(from..from + length)?;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<i64>().ok())?
    };
    let has = |at: usize, signs: &[u8]| bytes.get(at).is_some_and(|byte| signs.contains(byte));
    if !(has(4, b"-") && has(7, b"-") && has(10, b"Tt ") && has(13, b":") && has(16, b":")) {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 2)?, number(8, 2)?);
    let (hour, minute, second) = (number(11, 2)?, number(14, 2)?, number(17, 2)?);
    let (fraction_ms, zone) = fraction(&text[19..])?;
    let offset_minutes = offset(zone)?;
    let days = days_since_1970(year, month, day)?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let minutes = days * 1_440 + hour * 60 + minute - offset_minutes;
    u64::try_from((minutes * 60 + second) * 1_000 + fraction_ms).ok()
}

/// Parses an optional fraction of a second. Returns milliseconds and the remaining text.
fn fraction(text: &str) -> Option<(i64, &str)> {
    let Some(rest) = text.strip_prefix('.') else { return Some((0, text)) };
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 {
        return None;
    }
    let thousandths = format!("{:0<3}", &rest[..digits.min(3)]);
    Some((thousandths.parse().ok()?, &rest[digits..]))
}

/// Parses a time zone offset, into minutes east of Greenwich.
fn offset(text: &str) -> Option<i64> {
    if matches!(text, "Z" | "z") {
        return Some(0);
    }
    let sign = match text.bytes().next()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, minutes) = text.get(1..)?.split_once(':')?;
    let number = |digits: &str, most: i64| {
        let is_number = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
        let number = if is_number { digits.parse::<i64>().ok()? } else { return None };
        (number <= most).then_some(number)
    };
    Some(sign * (number(hours, 23)? * 60 + number(minutes, 59)?))
}

/// The inverse of [`civil`]. Returns `None` for dates that do not exist.
fn days_since_1970(year: i64, month: i64, day: i64) -> Option<i64> {
    let shifted_year = year - i64::from(month <= 2);
    let (era, year_of_era) = (shifted_year.div_euclid(400), shifted_year.rem_euclid(400));
    let month_from_march = (month + 9).rem_euclid(12);
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = era * 146_097 + day_of_era - 719_468;
    (civil(days) == (year, month, day)).then_some(days)
}

/// Converts days since 1970 to year, month and day in the Gregorian calendar. Internally a year starts in March, so
/// that the leap day is its last day and the start of a month is a linear function of the month's number.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_back() {
        for (text, ms) in [
            ("2026-02-07T12:00:00.000Z", Some(1_770_465_600_000)),
            ("2026-02-07T13:30:00+01:30", Some(1_770_465_600_000)),
            ("2026-02-07 11:00:00.5-01:00", Some(1_770_465_600_500)),
            ("2000-02-29T00:00:00Z", Some(951_782_400_000)),
            ("2001-02-29T00:00:00Z", None),
            ("2026-13-01T00:00:00Z", None),
            ("2026-02-07T24:00:00Z", None),
            ("2026-02-07T12:00:00", None),
            ("2026-02-07", None),
            ("1969-12-31T23:59:59Z", None),
            ("+026-02-07T12:00:00Z", None),
            ("2026-02-07T12:00:00.Z", None),
            ("2026-02-07T12:00:00+1:30", None),
            ("tomorrow", None),
            ("2026-02-07T12:00:00.é", None),
        ] {
            assert_eq!(parse_rfc3339(text), ms, "{text}");
        }
    }

    #[test]
    fn known_days() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_799_999, "2000-02-29T23:59:59.999Z"),
            (1_709_251_199_000, "2024-02-29T23:59:59.000Z"),
            (1_770_465_600_000, "2026-02-07T12:00:00.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339(ms), text);
        }
    }
}
