//! The delay that a server requests before a retry.

use std::time::{Duration, SystemTime};

use hyper::header::{DATE, HeaderMap, HeaderName, RETRY_AFTER};

/// The longest delay that a server can request. A server that requests more is asked again after this time.
const RETRY_AFTER_MS_MAX: u64 = 24 * 3600 * 1000;

/// Returns the milliseconds of `Retry-After` (RFC 9110, 10.2.3), given as seconds or as a date, capped at
/// [`RETRY_AFTER_MS_MAX`]; `None` if the header is missing or invalid. A date is compared with the `Date` of the response, so that only
/// the server's clock matters, or with `now` without one.
pub(super) fn retry_after_ms(headers: &HeaderMap, now: SystemTime) -> Option<u64> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let delay_ms = match text.bytes().all(|byte| byte.is_ascii_digit()) {
        // Digits that overflow a number mean the longest delay.
        true if !text.is_empty() => text.parse::<u64>().unwrap_or(u64::MAX).saturating_mul(1000),
        _ => {
            let until = httpdate::parse_http_date(text).ok()?;
            let delay = until.duration_since(date_of(headers, DATE).unwrap_or(now)).unwrap_or(Duration::ZERO);
            u64::try_from(delay.as_millis()).unwrap_or(u64::MAX)
        }
    };
    Some(delay_ms.min(RETRY_AFTER_MS_MAX))
}

fn date_of(headers: &HeaderMap, name: HeaderName) -> Option<SystemTime> {
    httpdate::parse_http_date(headers.get(name)?.to_str().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    #[track_caller]
    fn check(retry_after: &'static str, date: Option<&'static str>, expected: Option<u64>) {
        let mut headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static(retry_after))]);
        headers.extend(date.map(|date| (DATE, HeaderValue::from_static(date))));
        let now = httpdate::parse_http_date("Fri, 31 Dec 1999 23:59:00 GMT").unwrap();
        assert_eq!(retry_after_ms(&headers, now), expected, "{retry_after}");
    }

    #[test]
    fn seconds() {
        check("0", None, Some(0));
        check(" 120 ", None, Some(120_000));
        check("315532800000", None, Some(RETRY_AFTER_MS_MAX));
        check("99999999999999999999999999", None, Some(RETRY_AFTER_MS_MAX));
        for wrong in ["", "-1", "1.5", "soon", "1s"] {
            check(wrong, None, None);
        }
        assert_eq!(retry_after_ms(&HeaderMap::new(), SystemTime::UNIX_EPOCH), None);
    }

    #[test]
    fn dates() {
        check("Fri, 31 Dec 1999 23:59:59 GMT", None, Some(59_000));
        check("Friday, 31-Dec-99 23:59:59 GMT", None, Some(59_000));
        check("Fri Dec 31 23:59:59 1999", None, Some(59_000));
        check("Fri, 31 Dec 1999 23:58:59 GMT", None, Some(0));
        check("Fri, 31 Dec 1999 23:59:59 GMT", Some("Fri, 31 Dec 1999 23:59:50 GMT"), Some(9_000));
        check("Fri, 31 Dec 1999 23:59:59 GMT", Some("yesterday"), Some(59_000));
        check("Fri, 31 Dec 9999 23:59:59 GMT", None, Some(RETRY_AFTER_MS_MAX));
        check("Fri, 32 Dec 1999 23:59:59 GMT", None, None);
    }
}
