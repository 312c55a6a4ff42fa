//! HTML pages for browsers: no scripts, no external content, and all text escaped.

use axum::{
    Extension,
    body::Bytes,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};

use crate::http::response_memory::Static;

/// Content security policy: our own style, forms to this server, no frames.
const POLICY: &str =
    "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Path of the style sheet.
pub(crate) const STYLE_PATH: &str = "/style.css";

const STYLE: &str = include_str!("html/style.css");

/// HTML that is safe to show: dynamic text enters only through [`Html::text`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Html(String);

impl Html {
    /// Adds static markup from the source code.
    pub(crate) fn markup(mut self, markup: &'static str) -> Self {
        self.0 += markup;
        self
    }

    /// Adds text from any source, escaped; also valid between the quotes of an attribute.
    pub(crate) fn text(mut self, text: &str) -> Self {
        for letter in text.chars() {
            match letter {
                '&' => self.0 += "&amp;",
                '<' => self.0 += "&lt;",
                '>' => self.0 += "&gt;",
                '"' => self.0 += "&quot;",
                '\'' => self.0 += "&#39;",
                // Bidirectional controls could make a question look like another one.
                '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => self.0.extend(letter.escape_unicode()),
                letter => self.0.push(letter),
            }
        }
        self
    }

    /// Appends HTML.
    pub(crate) fn add(mut self, more: Self) -> Self {
        self.0 += &more.0;
        self
    }

    /// Appends several pieces of HTML.
    pub(crate) fn all(self, more: impl IntoIterator<Item = Self>) -> Self {
        more.into_iter().fold(self, Self::add)
    }

    /// Wraps content in an element without attributes.
    pub(crate) fn within(name: &'static str, content: Self) -> Self {
        Self(format!("<{name}>{}</{name}>", content.0))
    }

    /// An element with escaped text.
    pub(crate) fn of(name: &'static str, text: &str) -> Self {
        Self::within(name, Self::default().text(text))
    }

    /// Response with the page, not cacheable, because pages may be for one reader.
    pub(crate) fn page(self, status: StatusCode, title: &str) -> Response {
        page_of(status, self.document(title))
    }

    /// The complete HTML document.
    pub(crate) fn document(self, title: &str) -> Bytes {
        let head = Self::default()
            .markup("<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">")
            .markup("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">")
            .markup("<link rel=\"stylesheet\" href=\"/style.css\">")
            .add(Self::of("title", title))
            .markup("</head><body><main>");
        head.add(self).markup("</main></body></html>").0.into()
    }
}

/// Response with an HTML document.
pub(crate) fn page_of(status: StatusCode, document: Bytes) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // With `no-referrer`, browsers would send our own forms without an origin.
        (header::REFERRER_POLICY, "same-origin"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (status, headers, document).into_response()
}

/// Handler of the style sheet.
pub(crate) async fn style() -> impl IntoResponse {
    let headers = [(header::CONTENT_TYPE, "text/css; charset=utf-8"), (header::CACHE_CONTROL, "max-age=3600")];
    (Extension(Static), headers, Bytes::from_static(STYLE.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_becomes_markup() {
        let text = "<script>alert('x') & \"y\"</script>\u{202e}";
        let html = Html::of("p", text);
        assert_eq!(html.0, "<p>&lt;script&gt;alert(&#39;x&#39;) &amp; &quot;y&quot;&lt;/script&gt;\\u{202e}</p>");
        assert!(
            Html::default()
                .markup("x")
                .page(StatusCode::OK, "</title>")
                .headers()
                .contains_key("content-security-policy")
        );
        assert!(Html::default().markup("<link href=\"/style.css\">").0.contains(STYLE_PATH));
    }
}
