//! The routes of the console. All of its pages are one document; the address selects the page in the browser.

use axum::{
    Router,
    extract::Path,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};

use crate::files::{File, file};

/// Paths of the pages, in the syntax of axum. `web/src/app/router.tsx` has the same ones.
pub const PAGES: [&str; 11] = [
    "/",
    "/login",
    "/executions",
    "/executions/{id}",
    "/approvals",
    "/workflows",
    "/workflows/new",
    "/workflows/{id}",
    "/triggers",
    "/triggers/{id}",
    "/installation",
];

/// The document of all pages.
const DOCUMENT: &str = "index.html";

/// Content security policy: scripts, styles and connections of this server only, nothing inline, no frames. Workers are
/// for the layout of graphs.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
    worker-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Caching of files whose names contain a hash of their content.
const IMMUTABLE: &str = "public, max-age=31536000, immutable";

/// Caching of the document: a browser asks each time, and receives it again only after a change.
const REVALIDATED: &str = "no-cache";

/// Builds the routes of the console. They need no state and answer without a credential: the files are the same for
/// everyone, and the API decides what a page may show.
pub fn router<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let pages = PAGES.iter().fold(Router::new(), |router, path| router.route(path, get(document)));
    pages.route("/assets/{*path}", get(asset))
}

async fn document(headers: HeaderMap) -> Response {
    file(DOCUMENT).map_or_else(missing, |file| respond(file, &headers, DOCUMENT, REVALIDATED))
}

async fn asset(Path(path): Path<String>, headers: HeaderMap) -> Response {
    let path = format!("assets/{path}");
    file(&path).map_or_else(missing, |file| respond(file, &headers, &path, IMMUTABLE))
}

/// The response for a file of an older release, which an open page may still request.
fn missing() -> Response {
    (StatusCode::NOT_FOUND, "This release of the console has no such file. Reload the page.\n").into_response()
}

fn respond(file: &File, headers: &HeaderMap, path: &str, caching: &'static str) -> Response {
    let common = [
        (header::ETAG, HeaderValue::from_str(&file.tag).expect("the tag is of hexadecimal digits")),
        (header::CACHE_CONTROL, HeaderValue::from_static(caching)),
        (header::VARY, HeaderValue::from_static("accept-encoding")),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        // With `no-referrer`, browsers would send changes without an origin.
        (header::REFERRER_POLICY, HeaderValue::from_static("same-origin")),
        (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin")),
    ];
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if text(header::IF_NONE_MATCH).split(',').any(|tag| tag.trim().trim_start_matches("W/") == file.tag) {
        return (StatusCode::NOT_MODIFIED, common).into_response();
    }
    let form = file.form(text(header::ACCEPT_ENCODING));
    let encoding = form.encoding.map(|encoding| [(header::CONTENT_ENCODING, encoding)]);
    let mut response = (common, [(header::CONTENT_TYPE, type_of(path))], form.bytes).into_response();
    for (name, value) in encoding.into_iter().flatten() {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// The media type of a file by its suffix.
fn type_of(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use axum::{body::Body, http::Request};
    use http_body_util::BodyExt;
    use tower::ServiceExt;

    use super::*;
    use crate::files::paths;

    async fn get(path: &str, headers: &[(&str, &str)]) -> (StatusCode, HeaderMap, usize) {
        let request = headers.iter().fold(Request::get(path), |request, (name, value)| request.header(*name, *value));
        let response = router::<()>().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        let (parts, body) = response.into_parts();
        (parts.status, parts.headers, body.collect().await.unwrap().to_bytes().len())
    }

    #[tokio::test]
    async fn every_page_path_serves_the_document_without_inline_code() {
        for path in PAGES {
            let (status, headers, bytes) = get(&path.replace("{id}", "some-id"), &[]).await;
            assert_eq!((status, bytes > 0), (StatusCode::OK, true), "{path}");
            assert_eq!(headers["content-type"], "text/html; charset=utf-8");
            assert_eq!(headers["cache-control"], "no-cache");
            let policy = headers["content-security-policy"].to_str().unwrap();
            assert!(!policy.contains("unsafe") && policy.contains("script-src 'self'"), "{policy}");
        }
    }

    #[tokio::test]
    async fn assets_are_immutable_and_compressed() {
        for path in paths().filter(|path| path.starts_with("assets/")) {
            let (status, headers, _) = get(&format!("/{path}"), &[("accept-encoding", "gzip, br")]).await;
            assert_eq!(status, StatusCode::OK, "{path}");
            assert_eq!(headers["content-encoding"], "br", "{path}");
            assert!(headers["cache-control"].to_str().unwrap().contains("immutable"), "{path}");
            assert_ne!(headers["content-type"], "application/octet-stream", "{path}");
        }
        assert_eq!(get("/assets/of-an-older-release.js", &[]).await.0, StatusCode::NOT_FOUND);
        assert_eq!(get("/assets/../Cargo.toml", &[]).await.0, StatusCode::NOT_FOUND);
    }

    #[tokio::test]
    async fn an_unchanged_document_is_not_sent_again() {
        let (_, headers, _) = get("/", &[]).await;
        let tag = headers["etag"].to_str().unwrap().to_string();
        for tags in [tag.clone(), format!("\"other\", W/{tag}")] {
            let (status, headers, bytes) = get("/", &[("if-none-match", &tags)]).await;
            assert_eq!((status, bytes), (StatusCode::NOT_MODIFIED, 0));
            assert_eq!(headers["etag"].to_str().unwrap(), tag);
        }
        assert_eq!(get("/", &[("if-none-match", "\"other\"")]).await.0, StatusCode::OK);
    }
}
