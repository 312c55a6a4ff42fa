//! All text of one step, escaped and in reading order, for every notation.

use std::borrow::Cow;

use mainspring_kernel::{
    condition::Condition,
    plan::{Agent, Gate, Loop, Over, Plan, RUNNER_EFFECT, Step, Work},
    script::{VARIABLE_PREFIX, without_prologue},
    template::Template,
    value::Value,
};

use crate::text::columns;

use super::{
    details::{deviations, sources},
    edges::{self, Leads},
    for_each::{rounds, worker},
    glyphs::Glyphs,
    phrases::{condition_text, data, duration, fields, prose},
};

/// The separator between the parts of a heading.
pub(super) const SPACE: &str = "  ";

/// Displayed digits of a hash, enough to compare by eye.
const HASH_DIGITS: usize = 12;

/// The beginning of the definition's hash.
pub(super) fn short_hash(plan: &Plan) -> String {
    format!("sha256:{}", &plan.workflow_hash.hex()[..HASH_DIGITS])
}

/// The text of a step.
#[derive(Debug)]
pub(super) struct Caption {
    pub id: String,
    /// The kind of step and its parameters: `bash`, `sleep 1m 30s`, `if @vars.publish`.
    pub kind: String,
    /// The incoming edges, for a step that is ordered by edges.
    pub incoming: Vec<Leads>,
    /// The handlers of its failure.
    pub outgoing: Option<Leads>,
    /// The sources that it reads, with their sign: `← version, @input`; empty for none.
    pub reads: String,
    /// The actions, one per line.
    pub body: Vec<String>,
    /// Deviations from the defaults, in pieces.
    pub remarks: Vec<String>,
}

impl Caption {
    /// The text of a step. For a step with `forEach` it covers both steps of the plan.
    pub(super) fn of(plan: &Plan, number: u32, glyphs: &Glyphs) -> Self {
        let (step, worker) = (plan.step(number), plan.step(worker(plan, number)));
        let sources = sources(worker);
        let reads = if sources.is_empty() { String::new() } else { format!("{} {}", glyphs.reads, sources.join(", ")) };
        let mut remarks = deviations(plan, step, worker);
        remarks.extend(step.output_variable.as_ref().map(|name| format!("{} {name}", glyphs.writes)));
        // All untrusted text passes through here. Glyphs of the drawing pass unchanged, since each set contains
        // only unescaped characters.
        let shown = |text: &String| glyphs.shown(text);
        Self {
            id: shown(&step.id),
            kind: shown(&kind(plan, &worker.work)),
            incoming: edges::incoming(plan, number, &sources, glyphs),
            outgoing: edges::handlers(plan, number, glyphs),
            reads: shown(&reads),
            body: body(step, worker, glyphs).iter().map(shown).collect(),
            remarks: remarks.iter().map(shown).collect(),
        }
    }

    /// Columns of the heading without the sources.
    pub(super) fn heading_columns(&self) -> usize {
        columns(&self.id) + SPACE.len() + columns(&self.kind)
    }

    /// True if the sources fit into the heading.
    pub(super) fn reads_in_heading(&self, width: usize) -> bool {
        !self.reads.is_empty() && self.heading_columns() + SPACE.len() + columns(&self.reads) <= width
    }

    /// Everything outside of the heading, in lines of at most `width` columns where pieces allow it.
    pub(super) fn remark_lines(&self, width: usize, glyphs: &Glyphs) -> Vec<String> {
        let reads = Some(&self.reads).filter(|reads| !reads.is_empty() && !self.reads_in_heading(width));
        joined(reads.into_iter().chain(&self.remarks), width, glyphs)
    }
}

/// Joins pieces to lines of at most `width` columns. A longer piece is not broken.
pub(super) fn joined<'t>(pieces: impl Iterator<Item = &'t String>, width: usize, glyphs: &Glyphs) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for piece in pieces {
        match lines.last_mut() {
            Some(line) if columns(line) + columns(glyphs.dot) + columns(piece) <= width => {
                line.push_str(glyphs.dot);
                line.push_str(piece);
            }
            _ => lines.push(piece.clone()),
        }
    }
    lines
}

/// The condition, the actions, and the early end of the execution.
fn body(step: &Step, worker: &Step, glyphs: &Glyphs) -> Vec<String> {
    let when = |step: &Step| step.when.iter().map(|when| format!("when {}", condition_text(when))).collect::<Vec<_>>();
    let mut body = when(step);
    if let Work::Loop(of) = &step.work
        && of.is_each
    {
        body.push(rounds(of));
        body.extend(when(worker));
    }
    body.extend(work(&worker.work, glyphs));
    body.extend(step.bail.as_ref().map(|bail| match bail {
        Condition::Constant(true) => "ends the execution with its output".into(),
        bail => format!("ends the execution with its output if {}", condition_text(bail)),
    }));
    body
}

fn kind(plan: &Plan, work: &Work) -> String {
    match work {
        Work::Effect { effect, params } => match param(params, "tool") {
            Some(tool) if effect == "tool" => format!("tool {}", prose(&tool)),
            _ => match work.runner() {
                Some(runner) => format!("agent {runner}"),
                None => effect.clone(),
            },
        },
        Work::Conditional { condition, .. } => format!("if {}", condition_text(condition)),
        Work::Parallel { block } => {
            let (branches, bound) = (plan.block(*block).steps.len(), edges::at_a_time(plan));
            let at_a_time = if branches > bound { format!(", {bound} at a time") } else { String::new() };
            format!(
                "parallel, {}{at_a_time}",
                if branches == 1 { "1 branch".into() } else { format!("{branches} branches") }
            )
        }
        Work::Sleep { duration_ms: Template::Literal(Value::Number(ms)) } => {
            let ms = ms.as_whole().and_then(|ms| u64::try_from(ms).ok());
            format!("sleep {}", ms.map_or_else(|| "for no whole number".into(), duration))
        }
        Work::Sleep { duration_ms } => format!("sleep {} ms", data(duration_ms)),
        Work::SleepUntil { time } => format!("sleep until {}", data(time)),
        Work::Loop(of) => match &of.over {
            Over::Turns(agent) => format!("agent, at most {} turns", agent.max_turns),
            _ => rounds(of),
        },
        Work::Code { .. } => "code".into(),
        Work::Subworkflow { workflow, waits, .. } => {
            format!("{} {workflow}", if *waits { "runs" } else { "starts" })
        }
        Work::Signal { name } => format!("signal {name}"),
        Work::Approval(_) | Work::Return { .. } => work.kind().to_string(),
    }
}

fn agent_body(agent: &Agent, glyphs: &Glyphs) -> Vec<String> {
    let mut body: Vec<String> =
        param(&agent.settings, "goal").map(|goal| glyphs.quoted(&prose(&goal))).into_iter().collect();
    if !agent.tools.is_empty() {
        body.push(format!("tools {}", agent.tools.join(", ")));
    }
    body
}

fn work(work: &Work, glyphs: &Glyphs) -> Vec<String> {
    match work {
        Work::Effect { effect, params } if effect == "http" => request(params),
        Work::Effect { effect, params } => effect_body(effect, params, glyphs).into_iter().collect(),
        Work::Approval(Gate { prompt, items, .. }) => {
            let items = fields(items);
            let mut body = vec![glyphs.quoted(&prose(prompt))];
            body.extend((!items.is_empty()).then(|| format!("shows {items}")));
            body
        }
        Work::Return { output } => Some(fields(output)).filter(|output| !output.is_empty()).into_iter().collect(),
        Work::Code { input, .. } => Some(fields(input)).filter(|input| !input.is_empty()).into_iter().collect(),
        Work::Subworkflow { input, variables, .. } => {
            let (input, variables) = (fields(input), fields(variables));
            let variables = (!variables.is_empty()).then(|| format!("variables {variables}"));
            Some(input).filter(|input| !input.is_empty()).into_iter().chain(variables).collect()
        }
        Work::Loop(Loop { over: Over::Turns(agent), .. }) => agent_body(agent, glyphs),
        Work::Conditional { .. }
        | Work::Parallel { .. }
        | Work::Loop(_)
        | Work::Sleep { .. }
        | Work::SleepUntil { .. }
        | Work::Signal { .. } => Vec::new(),
    }
}

/// The most informative parameter of an effect.
fn effect_body(effect: &str, params: &Template, glyphs: &Glyphs) -> Option<String> {
    match effect {
        "bash" => command(params, glyphs),
        "tool" => param(params, "arguments").map(|arguments| fields(&arguments)).filter(|text| !text.is_empty()),
        "agent" | RUNNER_EFFECT => param(params, "goal").map(|goal| glyphs.quoted(&prose(&goal))),
        "agent_message" => param(params, "content").map(|content| glyphs.quoted(&prose(&content))),
        _ => Some(fields(params)).filter(|text| !text.is_empty()),
    }
}

/// `POST https://…`, and the other parameters of the request.
fn request(params: &Template) -> Vec<String> {
    let text = |key| param(params, key).map_or_else(String::new, |param| prose(&param));
    let mut lines = vec![format!("{} {}", text("method"), text("url"))];
    let others = ["query", "headers", "body", "expect", "followRedirects", "maxResponseBytes", "idempotencyHeader"];
    let others = others.into_iter().filter_map(|key| Some(format!("{key} {}", data(param(params, key)?.as_ref()))));
    lines.extend(others);
    lines
}

fn param<'a>(params: &'a Template, key: &str) -> Option<Cow<'a, Template>> {
    match params {
        Template::Map(fields) => fields.iter().find(|(name, _)| name == key).map(|(_, field)| Cow::Borrowed(field)),
        Template::Literal(value) => value.get(key).map(|value| Cow::Owned(Template::Literal(value.clone()))),
        Template::Whole(_) | Template::Text(_) | Template::List(_) => None,
    }
}

/// The most informative line of a script, as its author wrote it: the first that is neither a comment nor a `set`.
fn command(params: &Template, glyphs: &Glyphs) -> Option<String> {
    let script = prose(param(params, "command")?.as_ref());
    let script = without_prologue(&script);
    let is_preamble = |line: &str| line.starts_with('#') || line.starts_with("set -");
    let mut lines = script.lines().map(str::trim).filter(|line| !line.is_empty());
    let telling = lines.clone().find(|line| !is_preamble(line));
    let line = telling.or_else(|| lines.next())?;
    let has_more = script.trim() != line;
    let env = param(params, "env");
    let line = as_written(line, env.as_deref());
    Some(format!("$ {line}{}", if has_more { format!(" {}", glyphs.ellipsis) } else { String::new() }))
}

/// Replaces the environment variables of the compiler by the original references.
fn as_written(line: &str, env: Option<&Template>) -> String {
    let opening = format!("${{{VARIABLE_PREFIX}");
    let mut written = String::new();
    let mut rest = line;
    while let Some(at) = rest.find(&opening) {
        let (before, variable) = rest.split_at(at);
        let Some((name, after)) = variable.split_once('}') else { break };
        let reference = env.and_then(|env| param(env, &name[2..]));
        let (before, after) = match &reference {
            Some(_) => without_quotes(before, after),
            None => (before, after),
        };
        written.push_str(before);
        match reference {
            Some(reference) => written.push_str(&prose(&reference)),
            None => written.push_str(&format!("{name}}}")),
        }
        rest = after;
    }
    written.push_str(rest);
    written
}

/// Removes the quotes that the compiler may have put around a variable.
fn without_quotes<'a>(before: &'a str, after: &'a str) -> (&'a str, &'a str) {
    let pairs = [("'\"", "\"'"), ("\"", "\"")];
    let stripped = |(open, close): (&str, &str)| Some((before.strip_suffix(open)?, after.strip_prefix(close)?));
    pairs.into_iter().find_map(stripped).unwrap_or((before, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_as_written() {
        let env =
            Template::Literal(Value::map([("MAINSPRING_REF_0", "@a".into()), ("MAINSPRING_REF_1", "@b.c".into())]));
        for (prepared, written) in [
            ("echo \"${MAINSPRING_REF_0}\" x", "echo @a x"),
            ("echo \"a ${MAINSPRING_REF_1} b\"", "echo \"a @b.c b\""),
            ("echo 'a '\"${MAINSPRING_REF_0}\"' b' \"${MAINSPRING_REF_1}\"", "echo 'a @a b' @b.c"),
            ("echo \"${MAINSPRING_REF_7}\"", "echo \"${MAINSPRING_REF_7}\""),
            ("echo ${MAINSPRING_REF_0", "echo ${MAINSPRING_REF_0"),
            ("echo ${HOME}", "echo ${HOME}"),
        ] {
            assert_eq!(as_written(prepared, Some(&env)), written);
        }
    }

    #[test]
    fn captions_show_the_first_significant_line() {
        for (script, shown) in [
            ("make", "$ make"),
            ("#!/bin/bash\nset -eu\n\nmake all\nmake test", "$ make all …"),
            ("# only words", "$ # only words"),
            ("export -n MAINSPRING_REF_0 x; make", "$ make"),
        ] {
            let params = Template::Literal(Value::map([("command", script.into())]));
            assert_eq!(command(&params, Glyphs::of(false)).as_deref(), Some(shown));
        }
    }
}
