//! Responses that middleware, extractors and the store add to many routes, described once in OpenAPI from the
//! requirements of each route.

use utoipa::openapi::{
    ContentBuilder, HeaderBuilder, ObjectBuilder, PathItem, Ref, RefOr, Required, Response, ResponseBuilder,
    path::{Operation, Parameter, ParameterBuilder, ParameterIn},
    schema::Type,
};

use crate::auth::policy::{CREDENTIAL, PERMISSION_EXTENSION, is_health};

/// Status of a stale `If-Match`. Routes that declare it accept the header.
const STALE: &str = "412";

/// Adds the common responses to the operations of a path. Health endpoints get none.
pub(super) fn describe(item: &mut PathItem) {
    let PathItem { get, post, put, patch, delete, .. } = item;
    let mut operations: Vec<_> = [get, post, put, patch, delete].into_iter().flatten().collect();
    let is_edited = operations.iter().any(|operation| operation.responses.responses.contains_key(STALE));
    for operation in operations.iter_mut().filter(|operation| !is_health(operation)) {
        let is_page = operation.tags.iter().flatten().any(|tag| tag == "pages");
        for (status, answer) in answers(operation) {
            let answer = with_body(answer, is_page);
            operation.responses.responses.entry(status.into()).or_insert_with(|| answer.into());
        }
        if is_edited {
            describe_tags(operation);
        }
    }
}

/// Adds ETags: to responses that show a resource, and to requests that change the state that the caller has seen.
fn describe_tags(operation: &mut Operation) {
    let tag = || ObjectBuilder::new().schema_type(Type::String);
    if let Some(RefOr::T(shown)) = operation.responses.responses.get_mut("200") {
        let header =
            HeaderBuilder::new().schema(Some(tag())).description(Some("Version of the resource, for `If-Match`"));
        shown.headers.insert("ETag".into(), header.build().into());
    }
    if operation.responses.responses.contains_key(STALE) {
        let text = "`ETag` of an earlier response. The change fails with 412 if the resource has changed since. `*` or no header \
            matches every version";
        let parameter = ParameterBuilder::new().name("If-Match").parameter_in(ParameterIn::Header);
        let parameter = parameter.required(Required::False).description(Some(text)).schema(Some(tag()));
        operation.parameters.get_or_insert_default().push(parameter.build().into());
    }
}

/// The common responses of an operation.
fn answers(operation: &Operation) -> Vec<(&'static str, Response)> {
    let has_parameter = |place: ParameterIn| {
        let is_there = |one: &RefOr<Parameter>| matches!(one, RefOr::T(one) if one.parameter_in == place);
        operation.parameters.iter().flatten().any(is_there)
    };
    let permission = operation.extensions.as_ref().and_then(|all| all.get(PERMISSION_EXTENSION)?.as_str());
    let is_closed = permission != Some("public");
    let is_narrow = is_closed && permission != Some(CREDENTIAL);
    let is_built = operation.responses.responses.keys().any(|status| status.starts_with(['2', '3']));
    let has_body = operation.request_body.is_some();
    let is_asked = has_body || has_parameter(ParameterIn::Query) || has_parameter(ParameterIn::Header);
    let table = [
        (is_asked, "400", "The request is malformed or invalid (`VALIDATION_ERROR`)"),
        (is_closed, "401", "The credential is missing or invalid (`UNAUTHORIZED`)"),
        (is_narrow, "403", "The credential lacks the permission (`FORBIDDEN`)"),
        (
            has_parameter(ParameterIn::Path) && is_built,
            "404",
            "The resource does not exist, or belongs to another organization (`NOT_FOUND`)",
        ),
        (has_body, "408", "The body did not arrive within a minute (`REQUEST_TIMEOUT`)"),
        (has_body, "413", "The body is too large (`PAYLOAD_TOO_LARGE`)"),
        (has_body, "415", "The route does not support the media type of the body (`UNSUPPORTED_MEDIA_TYPE`)"),
        (true, "503", "The store does not respond, or no node owns the partition yet; retry later (`UNAVAILABLE`)"),
    ];
    let described = table.into_iter().filter(|(is_so, ..)| *is_so);
    let answer = |text: &str| ResponseBuilder::new().description(text).build();
    described.map(|(_, status, text)| (status, answer(text))).chain([("429", too_many_requests())]).collect()
}

fn too_many_requests() -> Response {
    let header = |text: &str| {
        let whole = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0));
        HeaderBuilder::new().schema(Some(whole)).description(Some(text)).build()
    };
    ResponseBuilder::new()
        .description("Too many requests with this credential, or without one from this address (`RATE_LIMITED`)")
        .header("Retry-After", header("Seconds until the next request is accepted"))
        .header("RateLimit-Limit", header("Maximum burst of requests"))
        .header("RateLimit-Remaining", header("Requests left in the current burst"))
        .header("RateLimit-Reset", header("Seconds until the full burst is available again"))
        .build()
}

/// The body of an error: a problem as JSON, or an HTML page.
fn with_body(answer: Response, is_page: bool) -> Response {
    let text = || ContentBuilder::new().schema(Some(ObjectBuilder::new().schema_type(Type::String))).build();
    let problem = || ContentBuilder::new().schema(Some(Ref::from_schema_name("ProblemBody"))).build();
    let (kind, body) = if is_page { ("text/html", text()) } else { ("application/json", problem()) };
    ResponseBuilder::from(answer).content(kind, body).build()
}
