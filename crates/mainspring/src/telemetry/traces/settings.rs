//! Settings of the trace export, by flag and by the environment variables of OpenTelemetry
//! (<https://opentelemetry.io/docs/specs/otel/protocol/exporter/>).

use std::{path::Path, sync::Arc};

use hyper::header::{HeaderName, HeaderValue};
use tokio_rustls::rustls::ClientConfig;
use url::Url;

use crate::{error::CliError, tls};

#[derive(Debug, Clone)]
pub(in crate::telemetry) struct Settings {
    /// The URL for requests, path included.
    pub(super) endpoint: Url,
    /// Headers of each request, such as a token.
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    /// Attributes of this process.
    pub(super) resource: Vec<(String, String)>,
    /// The trusted certificate authorities.
    pub(super) trust: Arc<ClientConfig>,
}

impl Settings {
    /// Reads the settings. The flag takes precedence over the variables, and a variable for traces over the general
    /// one. `None` if traces are not enabled, or are disabled explicitly.
    pub(in crate::telemetry) fn read(
        flag: Option<&str>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<Self>, CliError> {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        if variable("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Ok(None);
        }
        let (for_traces, for_all) = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT");
        let endpoint = if let Some(flag) = flag {
            with_path(url("--otlp", flag)?)
        } else if variable("OTEL_TRACES_EXPORTER").is_some_and(|value| value == "none") {
            return Ok(None);
        } else if let Some(given) = variable(for_traces) {
            url(for_traces, &given)?
        } else if let Some(given) = variable(for_all) {
            with_path(url(for_all, &given)?)
        } else {
            return Ok(None);
        };
        let headers = ["OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS"]
            .into_iter()
            .find_map(|name| variable(name).map(|given| headers(name, &given)));
        let resource = resource(variable("OTEL_RESOURCE_ATTRIBUTES"), variable("OTEL_SERVICE_NAME"));
        let trust = trust(endpoint.scheme() == "https", variable)?;
        Ok(Some(Self { endpoint, headers: headers.transpose()?.unwrap_or_default(), resource, trust }))
    }
}

fn refused(place: &str, why: &str) -> CliError {
    CliError::bad_input("bad_otlp", format!("{place}: {why}"))
}

/// Trusts Mozilla's authorities and those of one file: named by a variable of OpenTelemetry, or by the general one.
/// No file is read if the endpoint has no TLS.
fn trust(is_secret: bool, variable: impl Fn(&str) -> Option<String>) -> Result<Arc<ClientConfig>, CliError> {
    let names = ["OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", "OTEL_EXPORTER_OTLP_CERTIFICATE", tls::AUTHORITIES_VARIABLE];
    let named = names.into_iter().filter(|_| is_secret).find_map(|name| Some((name, variable(name)?)));
    let Some((name, file)) = named else { return Ok(tls::trusting_mozilla()) };
    tls::trusting_also(Path::new(&file)).map_err(|why| refused(name, &format!("{file}: {why}")))
}

fn url(place: &str, given: &str) -> Result<Url, CliError> {
    let help = "give the address of a collector for OTLP over HTTP, such as http://localhost:4318";
    // The URL is not repeated in errors, since it may contain a password.
    let url = Url::parse(given).map_err(|error| refused(place, &format!("is not a URL: {error}; {help}")))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(refused(place, &format!("is not an http:// or https:// URL; {help}")));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refused(place, "has a user or a password: give them in OTEL_EXPORTER_OTLP_HEADERS"));
    }
    Ok(url)
}

/// A URL for all signals gets the path of traces.
fn with_path(mut base: Url) -> Url {
    let path = format!("{}/v1/traces", base.path().trim_end_matches('/'));
    base.set_path(&path);
    base
}

fn headers(place: &str, given: &str) -> Result<Vec<(HeaderName, HeaderValue)>, CliError> {
    let read = |(name, value): (String, String)| {
        let name = HeaderName::try_from(name).ok()?;
        let mut value = HeaderValue::try_from(value).ok()?;
        value.set_sensitive(true);
        Some((name, value))
    };
    let wrong = || refused(place, "is not a list like `name=value,name=value`, with %XX for what a header cannot have");
    pairs(given).map(|pair| pair.and_then(read).ok_or_else(wrong)).collect()
}

/// Invalid attributes are ignored, since the variable is shared by all programs of the machine.
fn resource(attributes: Option<String>, name: Option<String>) -> Vec<(String, String)> {
    let mut resource: Vec<(String, String)> = pairs(&attributes.unwrap_or_default()).flatten().collect();
    let mut set = |key: &str, value: &str, is_default: bool| {
        let known = resource.iter_mut().find(|(known, _)| known == key);
        match known {
            Some(_) if is_default => {}
            Some((_, known)) => *known = value.to_owned(),
            None => resource.push((key.to_owned(), value.to_owned())),
        }
    };
    set("service.name", name.as_deref().unwrap_or("mainspring"), name.is_none());
    set("service.version", env!("CARGO_PKG_VERSION"), true);
    resource
}

/// Parses `name=value,name=value` with percent-encoded values, as in W3C Baggage. An invalid pair is `None`.
fn pairs(list: &str) -> impl Iterator<Item = Option<(String, String)>> {
    list.split(',').filter(|pair| !pair.trim().is_empty()).map(|pair| {
        let (name, value) = pair.split_once('=')?;
        let name = name.trim();
        (!name.is_empty()).then_some(())?;
        Some((name.to_owned(), unquoted(value.trim())?))
    })
}

fn unquoted(text: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        let digit = |digit: u8| char::from(digit).to_digit(16);
        bytes.push((digit(digits[0])? * 16 + digit(digits[1])?) as u8);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(flag: Option<&str>, variables: &[(&str, &str)]) -> Result<Option<Settings>, CliError> {
        let find =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        Settings::read(flag, find)
    }

    #[test]
    fn endpoints() {
        let check = |flag: Option<&str>, variables: &[(&str, &str)], expected: Option<&str>| {
            let found = read(flag, variables).unwrap().map(|settings| settings.endpoint.to_string());
            assert_eq!(found.as_deref(), expected, "{flag:?} {variables:?}");
        };
        let (all, traces) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
        check(None, &[], None);
        check(None, &[(all, "")], None);
        check(Some("http://a:4318"), &[], Some("http://a:4318/v1/traces"));
        check(Some("https://a/otlp/"), &[(all, "http://b")], Some("https://a/otlp/v1/traces"));
        check(None, &[(all, "http://b")], Some("http://b/v1/traces"));
        check(None, &[(all, "http://b"), (traces, "http://c/as/it/is")], Some("http://c/as/it/is"));
        check(Some("http://a"), &[("OTEL_SDK_DISABLED", "TRUE")], None);
        check(None, &[(all, "http://b"), ("OTEL_TRACES_EXPORTER", "none")], None);
        for wrong in ["localhost:4318", "ftp://a", "http://me:secret@a", "a"] {
            let error = read(Some(wrong), &[]).unwrap_err();
            assert_eq!(error.failure.code, "bad_otlp", "{wrong}");
            assert!(!error.failure.message.contains("secret"));
        }
    }

    #[test]
    fn headers_and_resources() {
        let at = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a");
        let of = |name, value| read(None, &[at, (name, value)]);
        let settings = of("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20x, api-key=a=b,").unwrap().unwrap();
        let headers: Vec<_> =
            settings.headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        assert_eq!(headers, [("authorization", "Bearer x"), ("api-key", "a=b")]);
        for wrong in ["a", "a b=c", "a=%0A", "a=%f"] {
            assert_eq!(of("OTEL_EXPORTER_OTLP_HEADERS", wrong).unwrap_err().failure.code, "bad_otlp", "{wrong}");
        }
        let resource = |name, value| of(name, value).unwrap().unwrap().resource;
        let version = ("service.version".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(resource("OTEL_SERVICE_NAME", "x"), [pair("service.name", "x"), version.clone()]);
        let given = resource("OTEL_RESOURCE_ATTRIBUTES", "service.name=y,broken,zone=a%2Cb");
        assert_eq!(given, [pair("service.name", "y"), pair("zone", "a,b"), version]);
    }
}
