//! Fixes for step types of other tools that have another form here, and for whole files of which every part is known.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use super::{
    adapt::{adapted, flow},
    rewrite_keys::{chain, is_steps, shell_word},
    surroundings::{is_one_of, texts},
};
use crate::{
    definition::{fields::Fields, help::Help, step_types::COMMON_KEYS},
    fix::Fix,
    reference::is_name,
    value::{Map, Value},
};

const PYTHON: [&str; 5] = ["python", "python3", "python_operator", "py", "script_python"];
const FAILURES: [&str; 5] = ["fail", "raise", "throw", "abort", "fail_step"];
const PASSES: [&str; 5] = ["pass", "noop", "no_op", "no-operation", "identity"];
const SWITCHES: [&str; 4] = ["switch", "choice", "case", "branch_all"];
const WAITS: [&str; 5] = ["wait_condition", "wait_until", "wait_for_condition", "poll", "poll_until"];

/// The time between two checks of a condition, in milliseconds.
const POLL_MS: u32 = 1_000;

/// Returns the help for a step of an unknown type, with the fix that writes the step in its form here.
pub(in crate::definition) fn of_type(name: &str, fields: &Fields<'_>) -> Option<Help> {
    match name {
        _ if is_one_of(name, &PYTHON) => python(fields),
        _ if is_one_of(name, &FAILURES) => failure(fields),
        _ if is_one_of(name, &PASSES) => pass(fields),
        _ if is_one_of(name, &SWITCHES) => switch(fields),
        _ if is_one_of(name, &WAITS) => wait(fields),
        _ => None,
    }
}

/// Returns the keys of a step that its type has, or `None` if there are more than a test accepts.
fn own<'f>(fields: &'f Fields<'_>, accepts: impl Fn(&str) -> bool) -> Option<Vec<(&'f str, &'f Value)>> {
    let own = fields.map.iter().filter(|(key, _)| !COMMON_KEYS.contains(&key.as_str()));
    own.map(|(key, value)| accepts(key).then_some((key.as_str(), value))).collect()
}

/// Replaces the type and its keys by those of another type.
fn retyped(fields: &Fields<'_>, gone: &[(&str, &Value)], kind: &str, keys: Vec<(&str, Value)>) -> Fix {
    let fix = Fix::replace(&fields.path.key("type"), kind);
    let fix = gone.iter().fold(fix, |fix, (key, _)| fix.and(Fix::remove(&fields.path.key(key))));
    keys.into_iter().fold(fix, |fix, (key, value)| fix.and(Fix::add(fields.path.key(key), value)))
}

/// A Python script is called by a shell script.
fn python(fields: &Fields<'_>) -> Option<Help> {
    let sources = ["code", "script", "source", "content", "python", "command"];
    let own = own(fields, |key| is_one_of(key, &sources))?;
    let [(_, source)] = own[..] else { return None };
    let source = source.as_text().filter(|source| !source.contains('@'))?.trim_end();
    let command = match source.contains('\n') {
        true if source.lines().any(|line| line == "PYTHON") => return None,
        true => format!("python3 - <<'PYTHON'\n{source}\nPYTHON\n"),
        false => format!("python3 -c {}", shell_word(source)),
    };
    let fix = retyped(fields, &own, "bash", Vec::from([("command", command.as_str().into())]));
    Some(Help::new(
        "write `type: bash`, and call `python3` in its `command`: functions are TypeScript or JavaScript",
        fix,
    ))
}

/// A step that fails is a script with another exit code.
fn failure(fields: &Fields<'_>) -> Option<Help> {
    let own = own(fields, |key| is_one_of(key, &["message", "cause", "reason", "error", "msg"]))?;
    let words = own.iter().map(|(_, value)| value.as_text()).collect::<Option<Vec<_>>>()?.join(": ");
    let command = match words.as_str() {
        "" => "exit 1".to_string(),
        words if words.contains(['@', '\n']) => return None,
        words => format!("echo {} >&2; exit 1", shell_word(words)),
    };
    let fix = retyped(fields, &own, "bash", Vec::from([("command", command.as_str().into())]));
    Some(Help::new(
        format!("write `type: bash`, and beside it `command: {command}`: a step fails by its exit code"),
        fix,
    ))
}

/// A step that hands its input on is a function.
fn pass(fields: &Fields<'_>) -> Option<Help> {
    let own = own(fields, |key| is_one_of(key, &["input", "parameters", "params", "result", "data", "value"]))?;
    let mut keys = Vec::from([("code", Value::text("export default (input) => input"))]);
    match own[..] {
        [] => {}
        [(_, value)] => keys.push(("input", value.clone())),
        _ => return None,
    }
    let fix = retyped(fields, &own, "code", keys);
    Some(Help::new("write `type: code`, and beside it `code: export default (input) => input`", fix))
}

/// A choice of several cases is a chain of conditionals.
fn switch(fields: &Fields<'_>) -> Option<Help> {
    const CASES: [&str; 4] = ["cases", "choices", "branches", "rules"];
    const OTHERWISE: [&str; 3] = ["default", "otherwise", "else"];
    let own = own(fields, |key| is_one_of(key, &CASES) || is_one_of(key, &OTHERWISE))?;
    let field = |words: &[&str]| own.iter().find(|(key, _)| is_one_of(key, words)).map(|(_, value)| *value);
    let cases = field(&CASES)?.as_list().filter(|_| own.len() <= 2)?;
    let otherwise = field(&OTHERWISE);
    if otherwise.is_some_and(|steps| !is_steps(steps)) {
        return None;
    }
    let Value::Map(chain) = chain(cases, otherwise.cloned())? else { return None };
    let keys = ["condition", "then", "else"].into_iter().filter_map(|key| Some((key, chain.get(key)?.clone())));
    let fix = retyped(fields, &own, "conditional", keys.collect());
    Some(Help::new("write `type: conditional`, and each further case as a `conditional` in `else`", fix))
}

/// A step that waits for a condition becomes a polling loop.
fn wait(fields: &Fields<'_>) -> Option<Help> {
    let own = own(fields, |key| is_one_of(key, &["until", "condition"]))?;
    let [(_, condition)] = own[..] else { return None };
    condition.as_map()?;
    let sleep = Value::map([("type", Value::from("sleep")), ("durationMs", POLL_MS.into())]);
    let steps = Value::List([sleep].into());
    let text = format!("write `type: loop`, with `until` and `steps: {}`", flow(&steps));
    let keys = Vec::from([("until", condition.clone()), ("steps", steps)]);
    Some(Help::new(text, retyped(fields, &own, "loop", keys)))
}

/// Returns the help for a list in place of a step: one step, or steps that run at the same time.
pub(in crate::definition) fn of_list(path: &crate::document::Path, steps: &Value) -> Option<Help> {
    let items = steps.as_list().filter(|items| !items.is_empty() && is_steps(steps))?;
    if let [only] = items {
        return Some(Help::new("write the step without the list around it", Fix::replace(path, only.clone())));
    }
    let parallel = Value::map([("type", "parallel".into()), ("steps", steps.clone())]);
    Some(format!("write `{}` if they run at the same time", flow(&parallel)).into())
}

/// Returns the steps of one job of GitHub Actions, if every part of it is known.
pub(super) fn steps_of_jobs(jobs: &Value) -> Option<Value> {
    let jobs = jobs.as_map().filter(|jobs| jobs.len() == 1)?;
    let job = jobs.values().next()?.as_map()?;
    if !job.keys().all(|key| is_one_of(key, &["runs-on", "name", "steps"])) {
        return None;
    }
    steps_of_others(job.get("steps")?)
}

/// Returns the steps of a playbook of Ansible, if every part of it is known.
pub(in crate::definition) fn steps_of_playbook(plays: &Value) -> Option<Value> {
    let mut steps = Vec::new();
    for play in plays.as_list().filter(|plays| !plays.is_empty())? {
        let map = play.as_map()?;
        if !map.keys().all(|key| is_one_of(key, &["hosts", "name", "gather_facts", "tasks"])) {
            return None;
        }
        steps.extend(steps_of_others(map.get("tasks")?)?.as_list()?.to_vec());
    }
    Some(Value::List(steps))
}

fn steps_of_others(steps: &Value) -> Option<Value> {
    let steps = steps.as_list().filter(|steps| !steps.is_empty())?;
    steps.iter().map(|step| script_of_others(step.as_map()?)).collect::<Option<Vec<_>>>().map(Value::from)
}

/// Returns a script of another tool as a `bash` step, if every key of it is known.
fn script_of_others(given: &Map) -> Option<Value> {
    const SCRIPTS: [&str; 6] =
        ["run", "script", "shell", "command", "ansible.builtin.shell", "ansible.builtin.command"];
    let has_run = given.keys().any(|key| key == "run");
    let mut step = Map::from([(String::from("type"), Value::from("bash"))]);
    for (key, value) in given {
        if crate::json::compact(value).contains("{{") {
            return None;
        }
        let (own, value) = match key.as_str() {
            "shell" if has_run => continue,
            key if SCRIPTS.contains(&key) => ("command", Value::from(texts(value)?.join("\n").as_str())),
            "id" if value.as_text().is_some_and(is_name) => ("id", value.clone()),
            "name" => ("name", value.clone()),
            "env" | "environment" => ("env", value.as_map()?.clone().into()),
            "working-directory" | "chdir" | "cwd" => ("cwd", value.clone()),
            "timeout-minutes" => ("timeoutMs", adapted(key, "timeoutMs", value).certain()?),
            "continue-on-error" | "ignore_errors" => ("continueOnError", value.as_bool()?.into()),
            _ => return None,
        };
        if step.insert(own.into(), value).is_some() {
            return None;
        }
    }
    step.contains_key("command").then_some(Value::Map(step))
}
