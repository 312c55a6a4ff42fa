//! The files that `mainspring dev` watches.

use axum::{Json, extract::State};
use mainspring_kernel::diagnostic::Diagnostic;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    http::problem::{ProblemBody, Result},
};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list))
}

/// The files of a watched folder.
#[derive(Debug, Serialize, ToSchema)]
struct DevFileList {
    /// The definition files by name; empty unless the server was started by `mainspring dev`.
    files: Vec<DevFileBody>,
}

/// A definition file.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct DevFileBody {
    /// Name of the file in the folder.
    name: String,
    /// Id of the workflow that the file was saved as last; null if it was never saved.
    workflow_id: Option<String>,
    /// Errors and warnings of the present content. A file with errors is not saved.
    diagnostics: Vec<DevDiagnostic>,
    /// Scenario cases that passed.
    cases_passed: usize,
    /// Scenario cases that failed.
    cases_failed: usize,
}

/// A mistake of a definition file.
#[derive(Debug, Serialize, ToSchema)]
struct DevDiagnostic {
    /// `error` or `warning`.
    severity: &'static str,
    /// Machine-readable code.
    code: &'static str,
    /// Path into the definition.
    path: String,
    /// Line in the file, from 1; null if it is unknown.
    line: Option<usize>,
    /// Description of the mistake.
    message: String,
    /// Suggested change; empty if the message is enough.
    help: String,
}

impl DevDiagnostic {
    fn of(found: &Diagnostic) -> Self {
        Self {
            severity: found.severity.name(),
            code: found.code,
            path: found.path.to_string(),
            line: found.place.map(|place| place.line as usize),
            message: found.message.clone(),
            help: found.help.clone(),
        }
    }
}

/// List the files that `mainspring dev` watches, with their mistakes.
#[utoipa::path(get, path = "/api/dev/files", tag = "workflows", extensions(("x-permission" = json!("workflows:read"))),
    responses((status = 200, body = DevFileList), (status = 401, body = ProblemBody), (status = 403, body = ProblemBody)))]
async fn list(State(app): State<App>) -> Result<Json<DevFileList>> {
    let files = app.local.dev_files.list().into_iter().map(|file| DevFileBody {
        name: file.name,
        workflow_id: file.workflow_id,
        diagnostics: file.diagnostics.iter().map(DevDiagnostic::of).collect(),
        cases_passed: file.cases.0,
        cases_failed: file.cases.1,
    });
    Ok(Json(DevFileList { files: files.collect() }))
}
