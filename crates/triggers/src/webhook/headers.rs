//! Headers of a request, of which each that counts occurs once.

use super::error::Rejection;

/// The headers of a request as names and values. Names are compared without regard to case.
pub type Headers<'a> = &'a [(&'a str, &'a str)];

/// Returns the value of a header that occurs at most once.
pub(super) fn header<'a>(headers: Headers<'a>, name: &str) -> Result<Option<&'a str>, Rejection> {
    let mut values = headers.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| *value);
    let value = values.next();
    match values.next() {
        Some(_) => Err(Rejection::RepeatedHeader(name.into())),
        None => Ok(value),
    }
}

pub(super) fn required<'a>(headers: Headers<'a>, name: &str) -> Result<&'a str, Rejection> {
    header(headers, name)?.ok_or_else(|| Rejection::MissingHeader(name.into()))
}
