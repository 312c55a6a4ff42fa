//! The answers that many routes give and none gives itself: the door's, the extractors', the store's. They are described
//! here once, by what a route asks for.

use utoipa::openapi::{
    ContentBuilder, HeaderBuilder, ObjectBuilder, PathItem, Ref, RefOr, Response, ResponseBuilder,
    path::{Operation, Parameter, ParameterIn},
    schema::Type,
};

use crate::door::{EXTENSION, is_health};

/// Adds the usual answers to the operations of a path. Those of health have none: nothing holds them up.
pub(super) fn describe(item: &mut PathItem) {
    let PathItem { get, post, put, patch, delete, .. } = item;
    for operation in [get, post, put, patch, delete].into_iter().flatten().filter(|operation| !is_health(operation)) {
        let is_page = operation.tags.iter().flatten().any(|tag| tag == "pages");
        for (status, answer) in answers(operation) {
            let answer = with_body(answer, is_page);
            operation.responses.responses.entry(status.into()).or_insert_with(|| answer.into());
        }
    }
}

/// The usual answers of an operation.
fn answers(operation: &Operation) -> Vec<(&'static str, Response)> {
    let takes = |place: ParameterIn| {
        let is_there = |one: &RefOr<Parameter>| matches!(one, RefOr::T(one) if one.parameter_in == place);
        operation.parameters.iter().flatten().any(is_there)
    };
    let permission = operation.extensions.as_ref().and_then(|all| all.get(EXTENSION)?.as_str());
    let is_closed = permission != Some("public");
    let is_built = operation.responses.responses.keys().any(|status| status.starts_with(['2', '3']));
    let has_body = operation.request_body.is_some();
    let is_asked = has_body || takes(ParameterIn::Query) || takes(ParameterIn::Header);
    let table = [
        (is_asked, "400", "What was sent cannot be read, or is not what the route takes (`VALIDATION_ERROR`)"),
        (is_closed, "401", "No credential that lets in (`UNAUTHORIZED`)"),
        (is_closed, "403", "The credential does not allow this (`FORBIDDEN`)"),
        (
            takes(ParameterIn::Path) && is_built,
            "404",
            "There is no such thing, or it is another organization's (`NOT_FOUND`)",
        ),
        (has_body, "408", "The body has not come within a minute (`REQUEST_TIMEOUT`)"),
        (has_body, "413", "The body is too large (`PAYLOAD_TOO_LARGE`)"),
        (has_body, "415", "The body is not of a type that the route reads (`UNSUPPORTED_MEDIA_TYPE`)"),
        (true, "503", "The store does not answer, or no node has taken it on yet; ask again (`UNAVAILABLE`)"),
    ];
    let told = table.into_iter().filter(|(is_so, ..)| *is_so);
    let answer = |text: &str| ResponseBuilder::new().description(text).build();
    told.map(|(_, status, text)| (status, answer(text))).chain([("429", too_many_requests())]).collect()
}

fn too_many_requests() -> Response {
    let header = |text: &str| {
        let whole = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0));
        HeaderBuilder::new().schema(Some(whole)).description(Some(text)).build()
    };
    ResponseBuilder::new()
        .description("Too many requests with this credential, or without one from this address (`RATE_LIMITED`)")
        .header("Retry-After", header("Seconds until there is room for one"))
        .header("RateLimit-Limit", header("Requests that may come at once"))
        .header("RateLimit-Remaining", header("Requests that may come at once now"))
        .header("RateLimit-Reset", header("Seconds until as many may come at once as at first"))
        .build()
}

/// A problem, or a page that tells of it.
fn with_body(answer: Response, is_page: bool) -> Response {
    let text = || ContentBuilder::new().schema(Some(ObjectBuilder::new().schema_type(Type::String))).build();
    let problem = || ContentBuilder::new().schema(Some(Ref::from_schema_name("ProblemBody"))).build();
    let (kind, body) = if is_page { ("text/html", text()) } else { ("application/json", problem()) };
    ResponseBuilder::from(answer).content(kind, body).build()
}
