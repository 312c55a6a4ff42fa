//! Pages for people: HTML without scripts, of which every text is escaped and nothing comes from elsewhere.

use axum::{
    Extension,
    body::Bytes,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};

use crate::responses::Static;

/// What a page may do: have our style, send forms back to us, and be in nobody's frame.
const POLICY: &str =
    "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Where the style of all pages is.
pub(crate) const STYLE_PATH: &str = "/style.css";

/// The style of all pages.
const STYLE: &str = include_str!("html/style.css");

/// HTML that is safe to show: text comes in by [`Html::text`] alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Html(String);

impl Html {
    /// Markup that is written in the program, and nowhere else.
    pub(crate) fn markup(mut self, markup: &'static str) -> Self {
        self.0 += markup;
        self
    }

    /// Text from anywhere, also between the quotes of an attribute.
    pub(crate) fn text(mut self, text: &str) -> Self {
        for letter in text.chars() {
            match letter {
                '&' => self.0 += "&amp;",
                '<' => self.0 += "&lt;",
                '>' => self.0 += "&gt;",
                '"' => self.0 += "&quot;",
                '\'' => self.0 += "&#39;",
                // What turns the order of letters around could show another text than the one that is decided on.
                '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => self.0.extend(letter.escape_unicode()),
                letter => self.0.push(letter),
            }
        }
        self
    }

    /// More of it.
    pub(crate) fn add(mut self, more: Self) -> Self {
        self.0 += &more.0;
        self
    }

    /// One after the other.
    pub(crate) fn all(self, more: impl IntoIterator<Item = Self>) -> Self {
        more.into_iter().fold(self, Self::add)
    }

    /// An element without attributes around it.
    pub(crate) fn within(name: &'static str, content: Self) -> Self {
        Self(format!("<{name}>{}</{name}>", content.0))
    }

    /// A text in an element.
    pub(crate) fn of(name: &'static str, text: &str) -> Self {
        Self::within(name, Self::default().text(text))
    }

    /// The page with this in it. It is nobody's to keep: what it shows may be for one reader.
    pub(crate) fn page(self, status: StatusCode, title: &str) -> Response {
        page_of(status, self.document(title))
    }

    /// The text of the page with this in it.
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

/// The response that shows the text of a page.
pub(crate) fn page_of(status: StatusCode, document: Bytes) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // Not `no-referrer`: with that, browsers send our own forms without an origin.
        (header::REFERRER_POLICY, "same-origin"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (status, headers, document).into_response()
}

/// The style of all pages.
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
