//! Error responses of the HTTP API.

use super::{ErrorCode, Origin};

/// Codes of error responses.
pub(super) static CODES: [ErrorCode; 22] = [
    response(
        "VALIDATION_ERROR",
        400,
        10,
        "The request is not what the route accepts.",
        "Correct the field that `details` names.",
    ),
    response(
        "INVALID_DEFINITION",
        400,
        10,
        "The definition does not compile.",
        "Correct each of `details.diagnostics`.",
    ),
    response(
        "UNAUTHORIZED",
        401,
        20,
        "The credential is missing, unknown or expired.",
        "`mainspring login` stores a token; `MAINSPRING_TOKEN` takes precedence.",
    ),
    response(
        "FORBIDDEN",
        403,
        20,
        "The credential does not have the permission.",
        "`GET /api/me` shows its permissions.",
    ),
    response("NOT_FOUND", 404, 10, "The resource does not exist, or belongs to another organization.", "Check the id."),
    response("METHOD_NOT_ALLOWED", 405, 40, "The route does not have this method.", "See `GET /openapi.json`."),
    response("REQUEST_TIMEOUT", 408, 40, "The body did not arrive in time.", "Try again."),
    response(
        "CONFLICT",
        409,
        20,
        "The state of the resource does not permit the request.",
        "Read the reason in the message.",
    ),
    response(
        "WORKFLOW_RUNTIME_DISABLED",
        409,
        20,
        "The workflow runtime is disabled for the organization.",
        "An owner enables it with `PATCH /api/organization`.",
    ),
    response("WORKFLOW_DISABLED", 409, 20, "The workflow is disabled.", "Enable it, or start another."),
    response(
        "TRIGGER_DISABLED",
        409,
        20,
        "The trigger is disabled and starts nothing.",
        "Enable it with `mainspring triggers enable`.",
    ),
    response(
        "TRIGGER_OWNER_REMOVED",
        409,
        20,
        "The owner of the trigger's workflow is no longer a member, so that the trigger starts nothing.",
        "Save the workflow as a present member, and create the trigger anew.",
    ),
    response(
        "INVALID_RESUME_TOKEN",
        409,
        20,
        "No open gate has this resume token: it is wrong, used or expired.",
        "Read the token of the open gate again.",
    ),
    response(
        "PRECONDITION_FAILED",
        412,
        20,
        "The resource has changed since the version in `If-Match`.",
        "Read it again.",
    ),
    response(
        "PAYLOAD_TOO_LARGE",
        413,
        10,
        "The body is larger than the route accepts.",
        "Put large data into files, and pass their names.",
    ),
    response(
        "UNSUPPORTED_MEDIA_TYPE",
        415,
        40,
        "The body is not JSON by its `Content-Type`.",
        "Send `Content-Type: application/json`.",
    ),
    response(
        "REPOSITORY_UNRESOLVED",
        422,
        10,
        "The repository of the execution cannot be resolved to a commit, so nothing was started.",
        "Correct the URL, the ref or the credential; `details.code` has the code of the reason.",
    ),
    response(
        "RATE_LIMITED",
        429,
        30,
        "Too many requests, watchers or unfinished executions.",
        "Wait as long as `Retry-After` says.",
    ),
    response(
        "INTERNAL_ERROR",
        500,
        40,
        "An internal error of the server.",
        "Find the reason in the log of the server, under `X-Request-Id`.",
    ),
    response(
        "NOT_AVAILABLE",
        501,
        40,
        "The feature is not part of this build, or is not set up.",
        "Use another, or set up what the message names.",
    ),
    response(
        "MODEL_FAILED",
        502,
        40,
        "A language model failed, or its answers cannot be used.",
        "The message has the reason. Try again, or with another model.",
    ),
    response(
        "UNAVAILABLE",
        503,
        40,
        "The store or the engine does not respond at the moment.",
        "Try again after `Retry-After`.",
    ),
];

const fn response(
    code: &'static str,
    status: u16,
    exit_code: u8,
    meaning: &'static str,
    help: &'static str,
) -> ErrorCode {
    ErrorCode::new(code, Origin::Api { status, exit_code }, meaning, help)
}
