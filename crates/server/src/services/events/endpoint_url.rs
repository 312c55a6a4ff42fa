//! The addresses of endpoints.

use mainspring_triggers::limits::SUBSCRIPTION_URL_BYTES_MAX;
use url::Url;

/// Checks the address of an endpoint. The error is the reason.
pub(crate) fn check_endpoint(text: &str) -> Result<(), String> {
    if text.len() > SUBSCRIPTION_URL_BYTES_MAX {
        return Err(format!("use at most {SUBSCRIPTION_URL_BYTES_MAX} bytes"));
    }
    if text.contains(|character: char| character.is_whitespace() || character.is_control()) {
        return Err("it contains a blank or a line break".into());
    }
    let Ok(url) = Url::parse(text) else { return Err("it is no URL: write `https://host/path`".into()) };
    let wrong = match url {
        url if !matches!(url.scheme(), "https" | "http") => "use `https://` or `http://`",
        url if url.host_str().is_none() => "it has no host: write `https://host/path`",
        url if !url.username().is_empty() || url.password().is_some() => {
            "it contains a user or a password: the receiver verifies the signature instead"
        }
        url if url.fragment().is_some() => "it has a fragment (`#…`), which is never sent",
        _ => return Ok(()),
    };
    Err(wrong.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_with_credentials_or_of_other_schemes_are_refused() {
        for good in ["https://example.com/hook?a=b", "http://localhost:8080", "https://[::1]/"] {
            assert!(check_endpoint(good).is_ok(), "{good}");
        }
        let long = format!("https://example.com/{}", "x".repeat(SUBSCRIPTION_URL_BYTES_MAX));
        for wrong in [
            "",
            "example.com",
            "ftp://a/",
            "file:///etc/passwd",
            "https://u:p@a/",
            "https://a/#f",
            &long,
            " https://a/",
            "https://a/\n",
        ] {
            assert!(check_endpoint(wrong).is_err(), "{wrong}");
        }
    }
}
