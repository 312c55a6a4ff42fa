//! Fixes for keys of other tools that stand for several changes here: for a list of the steps that follow, for steps that
//! run after a failure, for a setting of all steps.
//!
//! Each rule applies only if the definition leaves one reading. Otherwise there is the help of [`foreign`] without a fix.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use super::{
    adapt::{Adapted, adapted, flow},
    foreign,
    rewrite_types::steps_of_jobs,
    surroundings::{Located, is_one_of, is_sequence, one_or_more, steps, takes, texts},
    synonyms::synonym,
};
use crate::{
    definition::{help::Help, report::named},
    document::{Document, Path},
    fix::Fix,
    reference::is_name,
    value::{Map, Value},
};

const FOLLOWERS: [&str; 4] = ["next", "downstream", "goto", "successors"];
const TRIGGER_RULES: [&str; 2] = ["trigger_rule", "run_if"];
const NEEDS: [&str; 5] = ["depends", "dependsOn", "dependencies", "requires", "after"];
const BEFORE_SCRIPTS: [&str; 2] = ["before_script", "pre_script"];
const ELSE_IFS: [&str; 4] = ["elif", "elseif", "else_if", "elsif"];
const GATES: [&str; 5] = ["approval", "requires_approval", "needs_approval", "manual", "confirm"];
const GATE_KEYS: [&str; 6] = ["prompt", "items", "approvers", "count", "ttlMs", "onTimeout"];
const RECOVERIES: [&str; 8] =
    ["rescue", "catch", "on_failure", "on_error", "if_failed", "on_failed", "failure", "error_handler"];
const LISTS: [&str; 3] = ["with_items", "with_list", "items"];

/// True for a key that one of the rules may concern.
pub(in crate::definition) fn concerns(key: &str) -> bool {
    let tables: [&[&str]; 9] = [
        &FOLLOWERS,
        &TRIGGER_RULES,
        &NEEDS,
        &BEFORE_SCRIPTS,
        &ELSE_IFS,
        &GATES,
        &RECOVERIES,
        &LISTS,
        &[
            "args",
            "jobs",
            "env",
            "environment",
            "if",
            "run_when",
            "condition",
            "retry",
            "retries",
            "retryPolicy",
            "max_retries",
        ],
    ];
    tables.iter().any(|words| is_one_of(key, words)) || synonym(key, ["forEach"]).is_some()
}

/// Returns the help for a key with the fix for all its changes, or `None` if no rule applies. `holder` is the object with
/// the key.
pub(in crate::definition) fn of_key(holder: &Path, key: &str, value: &Value, document: &Document) -> Option<Help> {
    if holder.segments().is_empty() {
        return of_root(key, value, document);
    }
    let located = Located::of(holder, document)?;
    let at = holder.key(key);
    match key {
        _ if is_one_of(key, &FOLLOWERS) => followers(&located, key, value, document),
        _ if is_one_of(key, &TRIGGER_RULES) => trigger_rule(&located, &at, value, document),
        _ if is_one_of(key, &NEEDS) => outcome_needed(&located, &at, value, document),
        _ if is_one_of(key, &BEFORE_SCRIPTS) => before_script(&located, &at, value),
        _ if is_one_of(key, &ELSE_IFS) => else_if(&located, &at, value),
        _ if is_one_of(key, &GATES) => gate_before(&located, &at, value, document),
        "args" => arguments(&located, &at, value),
        _ if is_one_of(key, &["if", "run_when", "condition"]) => after_failure(holder, key, value, document),
        _ if is_one_of(key, &LISTS) || synonym(key, ["forEach"]).is_some() => {
            written_list(holder, &at, value, document).filter(|_| !located.step.contains_key("forEach"))
        }
        _ => None,
    }
}

fn of_root(key: &str, value: &Value, document: &Document) -> Option<Help> {
    let at = Path::root().key(key);
    match key {
        _ if is_one_of(key, &["env", "environment"]) => env_of_all(&at, value, document),
        "jobs" => {
            let steps = steps_of_jobs(value).filter(|_| document.value.get("steps").is_none())?;
            let fix = Fix::remove(&at).and(Fix::add(Path::root().key("steps"), steps));
            Some(Help::new("put the steps of the job into a list `steps` at the root, as `bash` steps", fix))
        }
        _ if is_one_of(key, &RECOVERIES) => recovery(&at, value, document),
        _ => retry_of_all(&at, key, value, document),
    }
}

/// `next: b`: in a graph, `b` needs this step; in a sequence it is the order already.
fn followers(located: &Located<'_>, key: &str, value: &Value, document: &Document) -> Option<Help> {
    let (targets, own) = (texts(value)?, located.id()?);
    let at = located.path().key(key);
    if !located.is_outermost() {
        return None;
    }
    if located.list_key != "nodes" {
        let follows = located.items.get(located.at + 1).and_then(|step| step.get("id")?.as_text());
        let is_written = is_sequence(document) && targets.len() == 1 && follows == Some(targets[0]);
        return is_written.then(|| Help::new("leave it out: steps run in their order", Fix::remove(&at)));
    }
    let mut fix = Fix::remove(&at);
    for target in &targets {
        let id_of = |step: &Value| step.get("id").and_then(Value::as_text) == Some(target);
        let index = located.items.iter().position(id_of)?;
        let needs = located.list.index(index).key("needs");
        match located.items[index].get("needs") {
            None => fix = fix.and(Fix::add(needs.clone(), Vec::new())).and(Fix::add(needs.index(0), own)),
            Some(Value::List(items)) if items.iter().any(|item| item.as_text() == Some(own)) => {}
            Some(Value::List(_)) => fix = fix.and(Fix::add(needs.index(0), own)),
            Some(_) => return None,
        }
    }
    Some(Help::new(format!("write `needs: [{own}]` in {}", targets.join(", ")), fix))
}

/// `trigger_rule: all_done`: the edges into the step say it.
fn trigger_rule(located: &Located<'_>, at: &Path, value: &Value, document: &Document) -> Option<Help> {
    let word = match value.as_text()? {
        word if is_one_of(word, &["all_success", "success"]) => {
            return Some(Help::new("leave it out: a step runs when those before it have succeeded", Fix::remove(at)));
        }
        word if is_one_of(word, &["all_done", "always"]) => "always",
        word if is_one_of(word, &["all_failed", "one_failed", "failed", "failure"]) => "on_failure",
        _ => return None,
    };
    let (edges, own) = (document.value.get("edges")?.as_list()?, located.id()?);
    let leads_here = |edge: &&Value| edge.get("to").and_then(Value::as_text) == Some(own);
    if !edges.iter().any(|edge| leads_here(&edge))
        || edges.iter().filter(leads_here).any(|edge| edge.get("when").is_some())
    {
        return None;
    }
    let into = edges.iter().enumerate().filter(|(_, edge)| leads_here(edge));
    let path = Path::root().key("edges");
    let fix = into.fold(Fix::remove(at), |fix, (index, _)| fix.and(Fix::add(path.index(index).key("when"), word)));
    Some(Help::new(format!("write `when: {word}` at the edges into {}", named(own)), fix))
}

/// `depends: a.Failed`: an edge that is taken on this outcome.
fn outcome_needed(located: &Located<'_>, at: &Path, value: &Value, document: &Document) -> Option<Help> {
    let [text] = texts(value)?[..] else { return None };
    let (source, outcome) = text.split_once('.')?;
    let when = match outcome {
        _ if is_one_of(outcome, &["Succeeded", "success"]) => "on_success",
        _ if is_one_of(outcome, &["Failed", "Errored", "failure"]) => "on_failure",
        _ if is_one_of(outcome, &["Completed", "done"]) => "always",
        _ => return None,
    };
    let is_known = located.items.iter().any(|step| step.get("id").and_then(Value::as_text) == Some(source));
    if located.list_key != "nodes" || !located.is_outermost() || !is_known {
        return None;
    }
    let given = document.value.get("edges").map(Value::as_list);
    let edge = Value::map([("from", source.into()), ("to", located.id()?.into()), ("when", when.into())]);
    let edges = Path::root().key("edges");
    let fix = match given {
        Some(None) => return None,
        Some(Some(_)) => Fix::remove(at),
        None => Fix::remove(at).and(Fix::add(edges.clone(), Vec::new())),
    };
    Some(Help::new(format!("add the edge {} at the root", flow(&edge)), fix.and(Fix::add(edges.index(0), edge))))
}

/// `before_script: [npm ci]`: the first lines of the script.
fn before_script(located: &Located<'_>, at: &Path, value: &Value) -> Option<Help> {
    let (lines, command) = (texts(value)?, located.step.get("command")?.as_text()?);
    let script = format!("{}\n{command}", lines.join("\n"));
    let fix = Fix::remove(at).and(Fix::replace(&at.parent().key("command"), script.as_str()));
    Some(Help::new("put the lines at the start of `command`", fix))
}

/// `command: ls` with `args: [-l]`: one command.
fn arguments(located: &Located<'_>, at: &Path, value: &Value) -> Option<Help> {
    let (words, command) = (texts(value)?, located.step.get("command")?.as_text()?);
    if command.contains('\n') || words.iter().any(|word| word.contains(['\n', '\'', '@', '$'])) {
        return None;
    }
    let quoted = words.iter().map(|word| shell_word(word));
    let script = core::iter::once(command.to_string()).chain(quoted).collect::<Vec<_>>().join(" ");
    let fix = Fix::remove(at).and(Fix::replace(&at.parent().key("command"), script.as_str()));
    Some(Help::new(format!("write the arguments into `command`: {}", crate::diagnostic::quoted(&script)), fix))
}

/// Quotes a word for a shell if that is necessary.
pub(super) fn shell_word(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=,+%".contains(letter);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.into(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// `elif`: a second `conditional` in `else`.
fn else_if(located: &Located<'_>, at: &Path, value: &Value) -> Option<Help> {
    let branches = one_or_more(value);
    if branches.is_empty() {
        return Some(Help::new("leave it out: it has no branch", Fix::remove(at)));
    }
    let otherwise = chain(branches, located.step.get("else").cloned())?;
    let text = "put a `conditional` with the second condition into `else`";
    let path = at.parent().key("else");
    let removed = if located.step.contains_key("else") { Fix::remove(&path) } else { Fix::default() };
    Some(Help::new(text, removed.and(Fix::remove(at)).and(Fix::add(path, Value::List([otherwise].into())))))
}

/// Returns conditionals inside each other, one for each `{condition, then}`. The last one has the steps for the case that
/// no condition holds.
pub(super) fn chain(branches: &[Value], otherwise: Option<Value>) -> Option<Value> {
    branches
        .iter()
        .rev()
        .try_fold(otherwise.map(Err), |inner: Option<Result<Value, Value>>, branch| {
            let map = branch.as_map().filter(|map| map.len() == 2)?;
            let field = |words: &[&str]| map.iter().find(|(key, _)| is_one_of(key, words)).map(|(_, value)| value);
            let condition = field(&["condition", "when", "if", "case", "test"])?;
            let then = field(&["then", "steps", "do", "run", "next"]).filter(|steps| is_steps(steps))?;
            let mut step = Map::new();
            step.insert("type".into(), "conditional".into());
            step.insert("condition".into(), condition.clone());
            step.insert("then".into(), then.clone());
            match inner {
                Some(Ok(inner)) => drop(step.insert("else".into(), Value::List([inner].into()))),
                Some(Err(steps)) => drop(step.insert("else".into(), steps)),
                None => {}
            }
            Some(Some(Ok(Value::Map(step))))
        })?
        .and_then(Result::ok)
}

pub(super) fn is_steps(value: &Value) -> bool {
    value.as_list().is_some_and(|steps| steps.iter().all(|step| step.get("type").is_some()))
}

/// `approval: {approvers: […]}`: a gate before the step.
fn gate_before(located: &Located<'_>, at: &Path, value: &Value, document: &Document) -> Option<Help> {
    let mut gate = match value {
        Value::Bool(true) => Map::new(),
        Value::Text(prompt) if prompt.contains(' ') => Map::from([("prompt".into(), prompt.as_str().into())]),
        Value::Map(map) if map.keys().all(|key| GATE_KEYS.contains(&key.as_str())) => map.clone(),
        _ => return None,
    };
    if !is_sequence(document) {
        return None;
    }
    gate.insert("type".into(), "approval".into());
    let gate = Value::Map(gate);
    let text = format!("an approval is a step of its own, before this one: {}", flow(&gate));
    Some(Help::new(text, Fix::remove(at).and(Fix::add(located.path(), gate))))
}

/// `when: manual`: a gate before the step.
pub(in crate::definition) fn manual(path: &Path, document: &Document) -> Option<Help> {
    gate_before(&Located::of(&path.parent(), document)?, path, &true.into(), document)
}

/// Returns the outcome that an expression of another tool asks for; empty for every end.
fn outcome_of(text: &str) -> Option<&'static str> {
    let letters: String = text.chars().filter(char::is_ascii_alphanumeric).collect();
    let outcomes: [(&str, &[&str]); 4] = [
        ("failed", &["failure", "failed", "onfailure", "onerror", "onfail", "error", "iffailed"]),
        ("completed", &["success", "onsuccess", "succeeded"]),
        ("cancelled", &["cancelled", "canceled"]),
        ("", &["always", "alldone"]),
    ];
    outcomes.into_iter().find(|(_, words)| is_one_of(&letters, words)).map(|(outcome, _)| outcome)
}

/// `if: failure()` on the last steps: they belong in `finally`. The first of these steps has the fix for all of them.
pub(in crate::definition) fn after_failure(
    holder: &Path,
    key: &str,
    value: &Value,
    document: &Document,
) -> Option<Help> {
    let (located, outcome) = (Located::of(holder, document)?, outcome_of(value.as_text()?)?);
    if !located.is_outermost() || !is_sequence(document) {
        return None;
    }
    if outcome == "completed" {
        let text = "leave it out: a step runs when those before it have succeeded";
        return Some(Help::new(text, Fix::remove(&holder.key(key))));
    }
    let text = "put the step into `finally: […]` at the root: it runs whatever the end is";
    let asks = |step: &Value| {
        let words = ["if", "when", "run_when", "condition"];
        let word = step.as_map()?.iter().find(|(key, value)| is_one_of(key, &words) && value.as_text().is_some())?;
        Some((word.0.clone(), outcome_of(word.1.as_text()?).filter(|outcome| *outcome != "completed")?))
    };
    let trailing = located.items.iter().rev().take_while(|step| asks(step).is_some()).count();
    let first = located.items.len() - trailing;
    let has_finally = document.value.get("finally").is_some();
    if located.at != first || first == 0 || has_finally || trailing == 0 {
        return Some(text.into());
    }
    let moved: Option<Vec<Value>> = located.items[first..].iter().map(|step| for_end(step, asks(step)?)).collect();
    let fix = (first..located.items.len()).rev().map(|at| Fix::remove(&located.list.index(at)));
    let fix = fix.fold(Fix::default(), Fix::and).and(Fix::add(Path::root().key("finally"), moved?));
    Some(Help::new(text, fix))
}

/// Returns the fix that moves the last step into `finally`. Empty for other steps, to which a later one may refer.
pub(in crate::definition) fn into_finally(step: &Path, document: &Document) -> Fix {
    let moved = Located::of(step, document).filter(|located| {
        let is_last = located.at > 0 && located.at + 1 == located.items.len();
        is_last && located.is_outermost() && is_sequence(document) && document.value.get("finally").is_none()
    });
    let step =
        moved.and_then(|located| for_end(&Value::Map(located.step.clone()), (String::new(), "")).zip(Some(located)));
    match step {
        Some((step, located)) => {
            Fix::remove(&located.path()).and(Fix::add(Path::root().key("finally"), Value::List([step].into())))
        }
        None => Fix::default(),
    }
}

/// Returns a step as one of `finally`. `None` if it has keys that concern the result of the execution.
fn for_end(step: &Value, (key, outcome): (String, &str)) -> Option<Value> {
    let mut step = step.as_map()?.clone();
    if ["bail", "outputVariable", "needs"].iter().any(|key| step.contains_key(*key)) {
        return None;
    }
    step.remove(&key);
    if !outcome.is_empty() {
        step.insert("when".into(), asks_for(outcome));
    }
    Some(Value::Map(step))
}

fn asks_for(outcome: &str) -> Value {
    Value::map([("ref", "@ctx.outcome".into()), ("eq", outcome.into())])
}

/// `rescue: […]` at the root: steps of `finally` that run if the execution has failed.
fn recovery(at: &Path, value: &Value, document: &Document) -> Option<Help> {
    let steps = value.as_list().filter(|_| is_steps(value) && document.value.get("finally").is_none())?;
    let moved = steps.iter().map(|step| {
        let mut step = step.as_map()?.clone();
        let own = step.remove("when");
        let failed = asks_for("failed");
        let when = match own {
            Some(own) => Value::map([("all", Value::List([failed, own].into()))]),
            None => failed,
        };
        step.insert("when".into(), when);
        Some(Value::Map(step))
    });
    let moved = moved.collect::<Option<Vec<_>>>()?;
    let text = "put the steps into `finally: […]`, each with `when: {ref: \"@ctx.outcome\", eq: failed}`";
    Some(Help::new(text, Fix::remove(at).and(Fix::add(Path::root().key("finally"), moved))))
}

/// `env` at the root: the same variables in each script.
fn env_of_all(at: &Path, value: &Value, document: &Document) -> Option<Help> {
    let variables = value.as_map().cloned().or_else(|| adapted("env", "env", value).certain()?.as_map().cloned())?;
    let is_shell = |step: &Map| step.get("type").and_then(Value::as_text) == Some("bash");
    let scripts = steps(document, |step| is_shell(step) && foreign::can_hold(step.get("env")))?;
    let mut fix = Fix::remove(at);
    for script in scripts {
        let env = script.key("env");
        let given = document.part(&env);
        fix = fix.and(Fix::add(env.clone(), Map::new()));
        for (name, value) in variables.iter().filter(|(name, _)| given.is_none_or(|given| given.get(name).is_none())) {
            fix = fix.and(Fix::add(env.key(name), value.clone()));
        }
    }
    Some(Help::new("put the variables into `env` of each `bash` step", fix))
}

/// `retries: 3` at the root: the same policy in each step that has none.
fn retry_of_all(at: &Path, key: &str, value: &Value, document: &Document) -> Option<Help> {
    let policy = match foreign::holder(key, ["retry"]) {
        Some((_, held)) => Value::map([(held, certain(key, held, value)?)]),
        None if ["retry", "retryPolicy"].contains(&key) => certain(key, "retry", value)?,
        None => return None,
    };
    let has_own = |step: &Map| ["retry", "retryPolicy", "config"].iter().any(|key| step.contains_key(*key));
    let open = steps(document, |step| takes(step, "retry") && !has_own(step))?;
    let fix = open.iter().fold(Fix::remove(at), |fix, step| fix.and(Fix::add(step.key("retry"), policy.clone())));
    Some(Help::new(format!("write `retry: {}` in each step", flow(&policy)), fix))
}

fn certain(word: &str, key: &str, value: &Value) -> Option<Value> {
    match adapted(word, key, value) {
        Adapted::Same => Some(value.clone()),
        Adapted::As(value) => Some(value),
        Adapted::If(..) => None,
    }
}

/// `forEach: [a, b]`: a list that is written out becomes the default of a variable. `at` is the key with the list.
pub(in crate::definition) fn written_list(step: &Path, at: &Path, value: &Value, document: &Document) -> Option<Help> {
    let items = value.as_list().filter(|items| !items.is_empty())?;
    let root = &document.value;
    let id = document.part(&step.key("id")).and_then(Value::as_text).filter(|id| is_name(id));
    let name = id.map_or_else(|| "items".into(), |id| format!("{id}_items"));
    let is_taken = |holder: &str| root.get(holder).is_some_and(|holder| holder.get(&name).is_some());
    if ["variables", "defaultContext"].into_iter().any(is_taken) {
        return None;
    }
    let declares = root.get("variables").is_some();
    let (holder, default) = match declares {
        true => ("variables", Value::map([("default", items.to_vec().into())])),
        false => ("defaultContext", items.to_vec().into()),
    };
    if !foreign::can_hold(root.get(holder)) {
        return None;
    }
    let (list, reference) = (Path::root().key(holder), format!("@vars.{name}"));
    let each = Value::map([("ref", reference.as_str().into())]);
    let text =
        format!("write `{{ref: \"{reference}\"}}`, and `{holder}: {}`", flow(&Value::map([(&*name, default.clone())])));
    let added = Fix::add(list.clone(), Map::new()).and(Fix::add(list.key(&name), default));
    let fix = Fix::remove(at).and(Fix::add(step.key("forEach"), each)).and(added);
    Some(Help::new(text, fix))
}
