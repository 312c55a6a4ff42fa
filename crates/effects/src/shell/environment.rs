//! The variables that the processes of an attempt get, in addition to the inherited ones.

use std::{env, ffi::OsString, path::Path};

use mainspring_kernel::{
    effect::{Attempt, EXECUTION_VARIABLE, SESSION_VARIABLE, WORKFLOW_VARIABLE},
    secret::SECRETS,
    trace_context::traceparent,
    value::Value,
};

use super::{
    error::ShellError,
    process_record::{MARK_VARIABLE, Mark},
};

/// Names and values in the order in which they are set: the last value of a name wins.
pub(super) type Variables = Vec<(String, String)>;

/// The parent of a script's own spans, set where traces are enabled (OpenTelemetry, "Environment Variables as Context
/// Propagation Carriers"). A step may override it.
const TRACE_VARIABLE: &str = "TRACEPARENT";

/// Variables of this process that contained scripts inherit: languages, time zones, terminals. Any other may be a
/// secret.
const INHERITED: [&str; 5] = ["PATH", "LANG", "LANGUAGE", "TZ", "TERM"];

/// The `PATH` in a container if this process has none.
const PATH_DEFAULT: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Builds the environment of a contained script, without the variables of its attempt and step. `HOME` is private to
/// the container. Folders of `PATH` that the container does not show are left out, since they would reveal names of the
/// host.
pub(super) fn contained(
    inherited: impl Iterator<Item = (OsString, OsString)>,
    home: &str,
    is_shown: impl Fn(&Path) -> bool,
) -> Variables {
    let set = [("PATH", PATH_DEFAULT), ("HOME", home), ("TMPDIR", "/tmp"), ("SHELL", "/bin/bash")];
    let mut variables: Variables = set.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let texts = inherited.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let texts = texts.filter_map(|(name, value)| match name.as_str() {
        "PATH" => {
            let shown = env::split_paths(&value).filter(|folder| is_shown(folder));
            Some((name, env::join_paths(shown).ok()?.into_string().ok().filter(|path| !path.is_empty())?))
        }
        _ => Some((name, value)),
    });
    variables.extend(texts.filter(|(name, _)| INHERITED.contains(&name.as_str()) || name.starts_with("LC_")));
    variables
}

/// Returns the variables of the engine for an attempt, followed by those of its step.
pub(super) fn variables_of(attempt: &Attempt, mark: &Mark, traces: bool) -> Result<Variables, ShellError> {
    let mut variables = vec![
        ("MAINSPRING_EXECUTION_ID".to_owned(), attempt.execution_id.clone()),
        ("MAINSPRING_STEP_ID".to_owned(), attempt.step.clone()),
        ("MAINSPRING_ATTEMPT".to_owned(), attempt.number.to_string()),
        ("MAINSPRING_INTENT".to_owned(), attempt.intent.hex()),
        (MARK_VARIABLE.to_owned(), mark.text().to_owned()),
        (SESSION_VARIABLE.to_owned(), "true".to_owned()),
        (EXECUTION_VARIABLE.to_owned(), attempt.execution_id.clone()),
    ];
    variables.extend(attempt.workflow_id.iter().map(|id| (WORKFLOW_VARIABLE.to_owned(), id.clone())));
    if traces {
        variables.push((TRACE_VARIABLE.to_owned(), traceparent(attempt)));
    }
    if attempt.params.get(SECRETS).is_some() {
        // The values replace this parameter before a script starts.
        return Err(refused(SECRETS, "have no values: this process has no source of secrets"));
    }
    match attempt.params.get("env") {
        None | Some(Value::Null) => {}
        Some(Value::Map(env)) => {
            for (name, value) in env {
                variables.push((name.clone(), checked(name, value)?));
            }
        }
        Some(_) => return Err(refused("env", "is not an object of names and texts: write `env: {NAME: text}`")),
    }
    match variables.iter().find(|(_, value)| value.contains('\0')) {
        Some((name, _)) => {
            Err(refused(name, "contains a NUL character, which no environment takes: write it to a file"))
        }
        None => Ok(variables),
    }
}

fn checked(name: &str, value: &Value) -> Result<String, ShellError> {
    if !is_identifier(name) {
        let why = "is no name of a variable: use letters, digits and underscores, and no digit first";
        return Err(refused(name, why));
    }
    if name == MARK_VARIABLE {
        return Err(refused(name, "is set by us, to find again what the script starts: use another name"));
    }
    match value.as_text() {
        Some(text) => Ok(text.to_owned()),
        None => Err(refused(name, "is not text: an environment holds nothing else, so convert it")),
    }
}

/// Returns whether this is a name as POSIX defines it (Base Definitions, 3.216). The shell drops any other.
fn is_identifier(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|byte| byte == b'_' || byte.is_ascii_alphabetic())
        && bytes.all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
}

fn refused(name: &str, why: &'static str) -> ShellError {
    ShellError::EnvironmentInvalid { name: name.to_owned(), why }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AttemptName;
    use mainspring_kernel::{
        hash::{Hash, hex},
        key::ExecutionKey,
        trace_context::TraceId,
    };

    fn variables(step: &str, env: Value) -> Result<Variables, ShellError> {
        variables_with(false, step, env)
    }

    fn variables_with(traces: bool, step: &str, env: Value) -> Result<Variables, ShellError> {
        let attempt = Attempt {
            execution: ExecutionKey([1; 16]),
            root: ExecutionKey([1; 16]),
            execution_id: "run-1".into(),
            organization: None,
            workflow_id: None,
            step: step.into(),
            number: 2,
            effect: "bash".into(),
            params: Value::map([("env", env)]),
            intent: Hash([0xab; 32]),
            flags: mainspring_kernel::effect::AttemptFlags::default(),
            handed_out_at: u64::MAX,
            workspace: None,
            secrets: mainspring_kernel::secret::SecretUses::default(),
            progress: None,
        };
        variables_of(&attempt, &Mark::of(AttemptName::from(&attempt)), traces)
    }

    #[test]
    fn a_container_inherits_by_a_list() {
        let of = |names: &[&str]| {
            let inherited = names.iter().map(|name| (OsString::from(name), OsString::from("x")));
            contained(inherited, "/h", |_| true).into_iter().map(|(name, _)| name).skip(4).collect::<Vec<_>>()
        };
        assert_eq!(of(&["PATH", "LC_ALL", "TZ"]), ["PATH", "LC_ALL", "TZ"]);
        let secrets =
            ["AWS_SECRET_ACCESS_KEY", "PGPASSWORD", "DATABASE_URL", "MAINSPRING_TOKEN", "NOTIFY_SOCKET", "HOME"];
        assert!(of(&secrets).is_empty());
    }

    #[test]
    fn engine_variables_come_first() {
        let env = Value::map([("A", Value::from("1")), ("MAINSPRING_ATTEMPT", Value::from("mine"))]);
        let variables = variables("a[0].b", env).unwrap();
        let names: Vec<&str> = variables.iter().map(|(name, _)| name.as_str()).collect();
        let ours = ["EXECUTION_ID", "STEP_ID", "ATTEMPT", "INTENT", "MARK"].map(|name| format!("MAINSPRING_{name}"));
        assert_eq!(names[..5], ours);
        assert_eq!(names[5..], ["IS_WORKFLOW_SESSION", "WORKFLOW_EXECUTION_ID", "A", "MAINSPRING_ATTEMPT"]);
        let values: Vec<&str> = variables.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(values[..4], ["run-1", "a[0].b", "2", &"ab".repeat(32)]);
        assert_eq!(values[5..7], ["true", "run-1"]);
    }

    #[test]
    fn traceparent_is_set_with_tracing_and_a_step_may_replace_it() {
        let told = |traces, env| {
            let variables = variables_with(traces, "a", env).unwrap().into_iter().rev();
            variables.filter(|(name, _)| name == TRACE_VARIABLE).map(|(_, value)| value).next()
        };
        assert_eq!(told(false, Value::Null), None);
        let ours = told(true, Value::Null).unwrap();
        let trace = TraceId::of_tree(ExecutionKey([1; 16]));
        assert!(ours.starts_with(&format!("00-{}-", hex(&trace.0))), "{ours}");
        assert_eq!(told(true, Value::map([(TRACE_VARIABLE, Value::from("mine"))])).unwrap(), "mine");
    }

    #[test]
    fn invalid_variables_are_rejected_by_name() {
        let check = |step: &str, env: Value, expected: &str| match variables(step, env) {
            Err(ShellError::EnvironmentInvalid { name, .. }) => assert_eq!(name, expected),
            other => panic!("{expected:?}: {other:?}"),
        };
        for name in ["", "1A", "A-B", "A=B", "A B", "Ä", "A\0", "BASH_FUNC_x%%", "MAINSPRING_MARK"] {
            check("a", Value::map([(name, Value::from("x"))]), name);
        }
        check("a", Value::map([("A", Value::from("x\0y"))]), "A");
        check("a", Value::map([("A", Value::from(1u64))]), "A");
        check("a", Value::map([("A", Value::Null)]), "A");
        check("a", Value::from("A=1"), "env");
        check("a\0b", Value::Null, "MAINSPRING_STEP_ID");
    }

    #[test]
    fn plain_and_missing_variables_are_accepted() {
        let env = Value::map(["_", "a", "A_1", "PATH"].map(|name| (name, Value::from(""))));
        assert_eq!(variables("a", env).unwrap().len(), 11);
        assert_eq!(variables("a", Value::Null).unwrap().len(), 7);
    }

    #[test]
    fn a_search_path_contains_only_visible_folders() {
        let path = |path: &str| {
            let inherited = [(OsString::from("PATH"), OsString::from(path))].into_iter();
            let variables = contained(inherited, "/h", |folder| folder.starts_with("/usr"));
            variables.into_iter().rfind(|(name, _)| name == "PATH").map(|(_, value)| value).unwrap()
        };
        assert_eq!(path("/srv/tools/bin:/usr/local/bin:/usr/bin:relative"), "/usr/local/bin:/usr/bin");
        assert_eq!(path("/opt/bin"), PATH_DEFAULT);
    }
}
