//! HTML pages behind approval links: show what is approved, and a form to decide. Opening a page decides nothing, and a
//! link carries no credential: readers sign in and have the rights of their account.

use axum::{
    Extension,
    body::Bytes,
    extract::State,
    http::{
        HeaderMap, StatusCode, Uri,
        header::{CONTENT_TYPE, LOCATION, SET_COOKIE},
    },
    response::{IntoResponse, Response},
};
use mainspring_engine::execution_tree::OpenGate;
use mainspring_kernel::{
    decide::{Words, is_permission},
    hash::Hash,
    json,
    record::Purpose,
};
use mainspring_store::ExecutionRow;
use serde::Deserialize;
use url::form_urlencoded;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    approvals::{PAGE_PREFIX, found},
    execution_commands::decide as decide_at,
    oidc,
};
use crate::{
    app::App,
    auth::{caller::Caller, cross_site::check_origin, execution_access::may_decide, session::sign_in},
    http::{
        client_address::ClientAddress,
        extract::{PathParams, QueryParams},
        html::Html,
        problem::{Code, Problem, Result},
        timestamps,
    },
    services::approvers::Members,
};

/// Path of the sign-in form.
pub(crate) const SIGN_IN: &str = "/sign-in";

/// Notice for gates that cannot be approved.
const TOO_FEW: &str = "Too few of those who may decide here are members in a role that decides. Otherwise it can only be \
    denied, or waits until it expires.";

/// Content type of forms.
const FORM: &str = "application/x-www-form-urlencoded";

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(show, decide)).routes(routes!(enter))
}

/// Query of an approval page.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct LinkQuery {
    /// `1` after a link on another site, because browsers send no cookie with the first request.
    #[serde(rename = "again")]
    _again: Option<String>,
}

/// Show an approval as a web page, with a form for members who may decide. The request has no side effect.
#[utoipa::path(get, path = "/approve/{id}", tag = "pages", params(("id" = String, Path), LinkQuery),
    extensions(("x-permission" = json!("executions:read"))),
    responses((status = 200, content_type = "text/html", body = String)))]
async fn show(
    State(app): State<App>,
    caller: Caller,
    uri: Uri,
    named: Result<PathParams<String>>,
    asked: Result<QueryParams<LinkQuery>>,
) -> Response {
    let read = async {
        let (PathParams(id), _) = (named?, asked?);
        let asker = caller.clone();
        app.run(move |app| {
            let (row, open) = found(app, &asker, &id, Code::NotFound)?;
            let are_enough = Members::of(app, &asker).are_enough(&row, &open)?;
            Ok((row, open, are_enough))
        })
        .await
    };
    match read.await {
        Ok((row, open, are_enough)) => {
            approval(&caller, &row, &open, are_enough, uri.path()).page(StatusCode::OK, "Approval")
        }
        Err(problem) => error_page(&app, problem, uri.path(), &HeaderMap::new()),
    }
}

/// Fields of the form on the approval page.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
#[allow(dead_code, reason = "it is the form's description; the form is read by its fields")]
struct DecisionForm {
    /// `approve` or `deny`.
    decision: String,
    /// Reason, recorded in the journal and the audit log.
    #[schema(max_length = 2000)]
    reason: Option<String>,
    /// Resume token of the page. It is valid only for the approval as shown.
    resume_token: String,
}

/// Submit the form of the approval page.
#[utoipa::path(post, path = "/approve/{id}", tag = "pages", params(("id" = String, Path)),
    request_body(content = DecisionForm, content_type = "application/x-www-form-urlencoded"),
    extensions(("x-permission" = json!("approvals:decide"))),
    responses((status = 200, content_type = "text/html", body = String),
        (status = 409, content_type = "text/html", body = String)))]
async fn decide(
    State(app): State<App>,
    caller: Caller,
    uri: Uri,
    headers: HeaderMap,
    named: Result<PathParams<String>>,
    body: Result<Bytes, axum::extract::rejection::BytesRejection>,
) -> Response {
    let decided = async {
        let PathParams(id) = named?;
        let [decision, reason, token] = form(&headers, body, ["decision", "reason", "resumeToken"])?;
        let approve = match decision.as_deref() {
            Some("approve") => true,
            Some("deny") => false,
            _ => return Err(Problem::field("decision", "it must be `approve` or `deny`")),
        };
        let token = token.unwrap_or_default();
        let asker = caller.clone();
        let (row, open) = app.run(move |app| found(app, &asker, &id, Code::Conflict)).await?;
        let fits = Hash::of(open.token.as_bytes()).equals_in_constant_time(&Hash::of(token.as_bytes()));
        if !fits && may_decide(&caller, &row, &open) {
            let message = "The approval has changed since the page was shown: open the link again and read it.";
            return Err(Problem::new(Code::InvalidResumeToken, message));
        }
        let reason = reason.filter(|reason| !reason.trim().is_empty());
        let words = Words { reason, ..Words::default() };
        decide_at(&app, &caller, row, open.token, approve, words).await?;
        Ok(approve)
    };
    match decided.await {
        Ok(approve) => {
            let message = if approve { "You have approved it." } else { "You have denied it." };
            Html::of("h1", message).add(Html::of("p", "You can close this page.")).page(StatusCode::OK, message)
        }
        Err(problem) => error_page(&app, problem, uri.path(), &HeaderMap::new()),
    }
}

/// Fields of the sign-in form.
#[derive(Debug, ToSchema)]
#[allow(dead_code, reason = "it is the form's description; the form is read by its fields")]
struct EnterForm {
    /// Token: `msp_…`.
    token: String,
    /// Path to redirect to, such as `/approve/…`.
    next: String,
}

/// Sign in with a form, and redirect to the requested page.
#[utoipa::path(post, path = "/sign-in", tag = "pages", security(()),
    request_body(content = EnterForm, content_type = "application/x-www-form-urlencoded"),
    extensions(("x-permission" = json!("public"))),
    responses((status = 303, headers(("Set-Cookie" = String, description = "The session cookie"))),
        (status = 401, content_type = "text/html", body = String),
        (status = 403, content_type = "text/html", body = String),
        (status = 409, content_type = "text/html", body = String)))]
async fn enter(
    State(app): State<App>,
    Extension(ClientAddress(from)): Extension<ClientAddress>,
    headers: HeaderMap,
    body: Result<Bytes, axum::extract::rejection::BytesRejection>,
) -> Response {
    let mut back = String::new();
    let entered = async {
        check_origin(&app.settings.base, &headers, false)?;
        let [token, next] = form(&headers, body, ["token", "next"])?;
        // Only approval pages of this server: the value is sent in the `Location` header.
        let is_ours = |next: &String| next.starts_with(PAGE_PREFIX) && next.bytes().all(|byte| byte.is_ascii_graphic());
        back = next.filter(is_ours).ok_or_else(|| Problem::field("next", "it must be a page of approvals"))?;
        app.run(move |app| sign_in(app, &token.unwrap_or_default(), from)).await
    };
    match entered.await {
        Ok(begun) => (StatusCode::SEE_OTHER, [(SET_COOKIE, begun.cookie), (LOCATION, back)]).into_response(),
        Err(problem) if problem.code == Code::Unauthorized => sign_in_form(&app, &back, &problem.message),
        Err(problem) => error_page(&app, problem, &back, &HeaderMap::new()),
    }
}

/// The fields of a form. Unknown and repeated fields are errors.
fn form<const N: usize>(
    headers: &HeaderMap,
    body: Result<Bytes, axum::extract::rejection::BytesRejection>,
    names: [&str; N],
) -> Result<[Option<String>; N]> {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(FORM) {
        return Err(Problem::new(
            Code::UnsupportedMediaType,
            "The body must be a form: `Content-Type: application/x-www-form-urlencoded`.",
        ));
    }
    let body = body.map_err(|rejection| {
        let code = if rejection.status() == 413 { Code::PayloadTooLarge } else { Code::ValidationError };
        Problem::new(code, rejection.body_text())
    })?;
    let mut fields = [const { None }; N];
    for (name, value) in form_urlencoded::parse(&body) {
        let place = names.iter().position(|known| *known == name);
        let place = place.ok_or_else(|| Problem::field(&name, format!("the form has only {}", names.join(", "))))?;
        if fields[place].replace(value.into_owned()).is_some() {
            return Err(Problem::field(&name, "it must be sent once"));
        }
    }
    Ok(fields)
}

/// The approval page, with the form for callers who may decide.
fn approval(caller: &Caller, row: &ExecutionRow, open: &OpenGate, are_enough: bool, path: &str) -> Html {
    let gate = &open.gate;
    let row_of = |name: &'static str, text: &str| {
        Html::default().markup("<tr><th>").markup(name).add(Html::of("td", text)).markup("</tr>")
    };
    let who = if gate.approvers.is_empty() {
        "the execution's owner, and admins".to_string()
    } else {
        gate.approvers.join(", ")
    };
    let by_itself = format!("{}, then {} by itself", timestamps::text(gate.expires_at), gate.on_timeout.name());
    let signed_in = format!("{} of {}", caller.user, caller.organization);
    let page = Html::of("h1", "Approval")
        .add(Html::of("pre", &gate.prompt))
        .markup("<h2>Request</h2>")
        .add(Html::of("pre", &json::pretty(&gate.items)))
        .markup("<table>")
        .add(row_of("workflow", row.workflow_id.as_deref().unwrap_or("-")))
        .add(row_of("execution", &row.id))
        .add(row_of("step", &open.step))
        .add(row_of("started by", row.initiator_user_id.as_deref().unwrap_or("-")))
        .add(row_of("who may decide", &who))
        .add(row_of("approvals", &format!("{} of {}", gate.approved_by.len(), gate.count)))
        .add(row_of("waits until", &by_itself))
        .add(row_of("you are", &signed_in))
        .markup("</table>")
        .all((!are_enough).then(|| Html::of("p", TOO_FEW)));
    if !may_decide(caller, row, open) {
        return page.markup("<p>You can view this, but not decide.</p>");
    }
    if gate.purpose == Purpose::Form && !is_permission(gate) {
        let console = format!("/executions/{}", row.id);
        let page =
            page.markup("<p>A tool server asks for a form. Fill it in at the console: <a href=\"").text(&console);
        return page.markup("\">open the execution</a>.</p>");
    }
    page.markup("<form method=\"post\" action=\"")
        .text(path)
        .markup("\"><input type=\"hidden\" name=\"resumeToken\" value=\"")
        .text(&open.token)
        .markup("\"><label for=\"reason\">Why, for the journal and the audit log (if you like)</label>")
        .markup("<textarea id=\"reason\" name=\"reason\" rows=\"3\" maxlength=\"2000\"></textarea>")
        .markup("<button name=\"decision\" value=\"approve\">Approve</button>")
        .markup("<button name=\"decision\" value=\"deny\">Deny</button></form>")
}

/// An error as an HTML page. An unauthenticated reader gets the sign-in form and no hint of whether the approval
/// exists.
pub(crate) fn error_page(app: &App, problem: Problem, path: &str, headers: &HeaderMap) -> Response {
    let status = problem.code.status();
    if problem.code != Code::Unauthorized || !path.starts_with(PAGE_PREFIX) {
        let title = if problem.code == Code::NotFound { "Nothing waits here" } else { "That did not work" };
        let page = Html::of("h1", title).add(Html::of("p", &problem.message));
        let more = "It was decided, has run out of time, or is not yours to see.";
        let page = page.all((problem.code == Code::NotFound).then(|| Html::of("p", more)));
        let mut response = page.page(status, title);
        problem.failed().map(|failed| response.extensions_mut().insert(failed));
        return response;
    }
    // Browsers withhold the `SameSite=Strict` cookie after a link on another site; a refresh by our own page sends it.
    let site = headers.get("sec-fetch-site").and_then(|site| site.to_str().ok());
    if site.is_some_and(|site| site == "cross-site" || site == "same-site") {
        let again = format!("{path}?again=1");
        return Html::default()
            .markup("<meta http-equiv=\"refresh\" content=\"0; url=")
            .text(&again)
            .markup("\"><p><a href=\"")
            .text(&again)
            .markup("\">Continue to the approval</a></p>")
            .page(status, "Approval");
    }
    sign_in_form(app, path, "The link names an approval. Sign in with a token.")
}

fn sign_in_form(app: &App, path: &str, message: &str) -> Response {
    Html::of("h1", "Sign in to see this approval")
        .add(Html::of("p", message))
        .all(app.settings.oidc.iter().map(|provider| by_provider(path, &provider.settings().host())))
        .markup("<form method=\"post\" action=\"/sign-in\"><input type=\"hidden\" name=\"next\" value=\"")
        .text(path)
        .markup("\"><label for=\"token\">Your token</label>")
        .markup("<input id=\"token\" name=\"token\" type=\"password\" autocomplete=\"current-password\" required>")
        .markup("<button>Sign in</button></form>")
        .page(StatusCode::UNAUTHORIZED, "Sign in")
}

/// A link to sign in at the OpenID Connect provider and return to this page.
fn by_provider(path: &str, host: &str) -> Html {
    let next: String = form_urlencoded::byte_serialize(path.as_bytes()).collect();
    Html::default()
        .markup("<p><a href=\"")
        .text(&format!("{}?next={next}", oidc::BEGIN))
        .markup("\">Sign in with ")
        .text(host)
        .markup("</a></p>")
}
