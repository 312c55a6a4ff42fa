//! Reads shell steps. The script is text of the author; values reach it only through environment variables.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use super::{
    fields::Fields,
    help::Help,
    keys,
    references::Reader,
    report::named,
    secrets::secrets_param,
    step_work::{effect, literal},
};
use crate::{
    diagnostic::{self, quoted},
    document::Path,
    effect::SESSION_VARIABLES,
    fix::Fix,
    plan::Work,
    reference::Reference,
    reference::is_whole,
    script::{self, Surroundings, VARIABLE_PREFIX},
    secret::{SECRETS, SecretReference},
    template::{Piece, Template, text_form},
    value::Value,
};

/// Prefix of the variables that the engine sets for a script.
const OWN_PREFIX: &str = "MAINSPRING_";

impl Reader<'_, '_> {
    /// Reads the keys of a shell step, from the step itself or from the arguments of a `bash` tool.
    pub(super) fn shell(&mut self, fields: &Fields<'_>) -> Option<Work> {
        if !fields.has("command") {
            self.report.missing(fields, "command", "say what the script is, as in: write `command: ls`");
        }
        let command = self.report.filled_text(fields, "command");
        let variables = self.variables_of_step(fields);
        // A value in any part of the path selects the folder: `@v/app` has an `app` in each folder that the value can name.
        let is_folder_named = fields.get("cwd").is_some_and(|cwd| self.has_reference(cwd));
        let surroundings = Surroundings { variables: &variables, is_folder_named };
        let script = command.and_then(|command| self.script(command, surroundings, &fields.path.key("command")));
        let cwd = self.report.filled_text(fields, "cwd").and_then(|_| self.text_field(fields, "cwd"));
        let mut secrets = Vec::new();
        let mut env = self.env(fields, &mut secrets);
        let (text, references) = script?;
        env.extend(
            references
                .into_iter()
                .map(|(name, reference)| (name, Template::Text([Piece::Reference(reference)].into()))),
        );
        env.sort_by(|(a, _), (b, _)| a.cmp(b));
        let params = [
            ("command", Some(literal(text))),
            ("cwd", cwd),
            ("env", Some(Template::Map(env))),
            (SECRETS, secrets_param([("env", secrets)])),
        ];
        Some(effect("bash", params))
    }

    /// Reads `tool: bash`, which is another spelling of a shell step.
    pub(super) fn shell_tool(&mut self, fields: &Fields<'_>, key: &str) -> Option<Work> {
        if !fields.has(key) {
            let help = "write {command: …}: `bash` as a tool takes what a `bash` step takes";
            self.report.missing(fields, key, help);
        }
        let arguments = self.report.object(fields, key)?;
        self.report.known_keys(&arguments, &keys::SHELL);
        self.shell(&arguments)
    }

    /// Returns the names of the step's variables; the flag is true if the value has a reference.
    fn variables_of_step<'f>(&self, fields: &Fields<'f>) -> Vec<(&'f str, bool)> {
        match fields.get("env") {
            Some(Value::Map(env)) => env.iter().map(|(name, value)| (&name[..], self.has_reference(value))).collect(),
            _ => Vec::new(),
        }
    }

    pub(super) fn has_reference(&self, value: &Value) -> bool {
        value.as_text().is_some_and(|text| script::has_reference(text, |name| self.root_of(name).is_some()))
    }

    /// Returns the prepared script and the variables that carry its references.
    fn script(
        &mut self,
        command: &str,
        surroundings: Surroundings<'_>,
        path: &Path,
    ) -> Option<(String, Vec<(String, Reference)>)> {
        if is_whole(&Value::text(command)) {
            // An unknown name inside a script is text, but a script that is only a reference is reported as usual.
            self.template(&Value::text(command), path);
        } else {
            self.check_text(command, path);
        }
        match script::prepare(command, surroundings, |name| self.root_of(name).is_some()) {
            Ok(script) => {
                let references = script.references.iter().enumerate();
                let read = references.map(|(at, text)| {
                    Some((format!("{VARIABLE_PREFIX}{at}"), self.whole_reference(&format!("@{text}"), path)?))
                });
                let read: Vec<_> = read.collect();
                Some((script.text, read.into_iter().collect::<Option<_>>()?))
            }
            Err(problems) => {
                let alone = problems.len() == 1;
                let has_lines = command.trim_end().contains('\n');
                // Problems are sorted by offset, so one pass over the text counts the lines for all of them.
                let (mut line, mut counted) = (1, 0);
                for problem in problems {
                    let between = command.as_bytes().get(counted..problem.offset).unwrap_or_default();
                    line += between.iter().filter(|byte| **byte == b'\n').count();
                    counted = problem.offset;
                    let line = if has_lines { format!("line {line} of the script: ") } else { String::new() };
                    let message = format!("{line}`@{}` stands {}", problem.reference, problem.describe());
                    let fix = if alone {
                        into_env(command, problem.offset, &problem.reference, path)
                    } else {
                        Fix::default()
                    };
                    let help = Help::new(phrase(&problem.help()), fix);
                    self.report.error(diagnostic::REFERENCE_IN_SCRIPT, path, message, help);
                }
                None
            }
        }
    }

    /// Reads `env`. Every value is converted to text. References to secrets are added to `secrets`.
    fn env(&mut self, fields: &Fields<'_>, secrets: &mut Vec<(String, SecretReference)>) -> Vec<(String, Template)> {
        let Some(env) = self.report.object(fields, "env") else { return Vec::new() };
        let mut variables = Vec::new();
        for (name, value) in env.map {
            self.check_variable_name(name, &env.path);
            if let Some(secret) = self.secret(value, &env.path.key(name)) {
                if script::is_code_variable(name) {
                    let message = format!("{} is a variable whose value bash or other programs run", named(name));
                    self.report.error(diagnostic::BAD_SECRET, &env.path.key(name), message, "use another variable");
                }
                secrets.extend(secret.map(|secret| (name.clone(), secret)));
                continue;
            }
            if let Some(value) = self.text_field(&env, name) {
                if matches!(value, Template::Text(_)) && script::is_code_variable(name) {
                    let message = format!("{} is a variable whose value bash or other programs run", named(name));
                    let help = format!(
                        "refer to the value by a name of your own, such as `MY_{name}`, and use \"$MY_{name}\" in the script"
                    );
                    self.report.error(diagnostic::REFERENCE_IN_SCRIPT, &env.path.key(name), message, help);
                }
                variables.push((name.to_string(), value));
            }
        }
        variables
    }

    fn check_variable_name(&mut self, name: &str, path: &Path) {
        let mut letters = name.chars();
        let begins = letters.next().is_some_and(|letter| letter.is_ascii_alphabetic() || letter == '_');
        if !begins || !letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_') {
            let message = format!("{} is no name of a shell variable", quoted(name));
            let fitting: String =
                name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect();
            let at = path.key(name);
            let help = match fitting.starts_with(|first: char| first.is_ascii_digit()) || fitting.is_empty() {
                true => "write a letter or `_`, then letters, digits and `_`".into(),
                false => Help::key(&at, &fitting),
            };
            self.report.error_at_key(diagnostic::BAD_NAME, &at, message, help);
        }
        if name.starts_with(OWN_PREFIX) {
            let message = format!("{}: names that begin with `{OWN_PREFIX}` are the engine's", named(name));
            let help = self.other_variable(name, path);
            self.report.error_at_key(diagnostic::BAD_NAME, &path.key(name), message, help);
        }
        if SESSION_VARIABLES.contains(&name) {
            let message = format!("{}: the engine sets this variable for every script", named(name));
            self.report.error_at_key(diagnostic::BAD_NAME, &path.key(name), message, "write another name");
        }
    }

    /// Returns the help for a variable whose name belongs to the engine: the name without its prefix, here and in the script.
    fn other_variable(&self, name: &str, env: &Path) -> Help {
        let document = self.report.document();
        let own =
            name.strip_prefix(OWN_PREFIX).filter(|own| own.starts_with(|first: char| first.is_ascii_alphabetic()));
        let command = env.parent().key("command");
        let script = document.part(&command).and_then(Value::as_text).unwrap_or_default();
        match own.filter(|own| !SESSION_VARIABLES.contains(&name) && document.part(&env.key(own)).is_none()) {
            Some(own) if script.contains(name) => {
                let script = script.replace(name, own);
                let fix = Fix::rename(&env.key(name), own).and(Fix::replace(&command, script.as_str()));
                Help::new(format!("write `{own}`, here and in `command`"), fix)
            }
            Some(own) if !script.contains(own) => Help::key(&env.key(name), own),
            _ => "write another name".into(),
        }
    }

    /// Reads a field as a template of text. A reference is rendered as text at run time, a literal here.
    fn text_field(&mut self, fields: &Fields<'_>, key: &str) -> Option<Template> {
        match self.field(fields, key)? {
            Template::Whole(reference) => Some(Template::Text([Piece::Reference(reference)].into())),
            Template::Literal(value) if !fields.get(key).is_some_and(is_whole) => Some(literal(text_form(&value))),
            Template::Literal(_) => None,
            text @ Template::Text(_) => Some(text),
            Template::List(_) | Template::Map(_) => {
                let kind = fields.get(key).map_or("a value", Value::kind);
                let message = format!("`{key}` is {kind} with references inside, and a variable holds text");
                let help = "refer to one value, or give it as several variables";
                self.report.error(diagnostic::MISPLACED_REFERENCE, &fields.path.key(key), message, help);
                None
            }
        }
    }
}

/// Returns the fix that passes a value to a script in a variable. Empty where the reference is in quotes or in a
/// comment, or is the command itself: how the variable must be written there is for the author to say.
fn into_env(command: &str, offset: usize, reference: &str, path: &Path) -> Fix {
    let written = format!("@{reference}");
    let before = command.get(..offset).unwrap_or_default();
    let line = before.rsplit('\n').next().unwrap_or_default();
    let is_plain = !line.contains(['"', '\'', '#', '`', '(', '<', '>']) && line.trim_end().len() < line.len();
    let is_word = before.len() > line.len() || !line.trim().is_empty();
    let rest = command.get(offset..).and_then(|rest| rest.strip_prefix(&written));
    let ends = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\n', ';', '|', '&']));
    if !(is_plain && is_word && ends) {
        return Fix::default();
    }
    let last =
        reference.rsplit(|sign: char| !sign.is_ascii_alphanumeric() && sign != '_').find(|part| !part.is_empty());
    let name = last.unwrap_or("value").to_ascii_uppercase();
    let name = if name.starts_with(|first: char| first.is_ascii_digit()) || script::is_code_variable(&name) {
        format!("VALUE_{name}")
    } else {
        name
    };
    // The script may set a variable of this name itself.
    if command.split(|sign: char| !sign.is_ascii_alphanumeric() && sign != '_').any(|word| word == name) {
        return Fix::default();
    }
    let script = format!("{before}\"${name}\"{}", rest.unwrap_or_default());
    let env = path.parent().key("env");
    Fix::add(env.clone(), crate::value::Map::new())
        .and(Fix::add(env.key(&name), written.as_str()))
        .and(Fix::replace(path, script.as_str()))
}

/// Turns a sentence into the style of help texts: no final period, lower-case start.
fn phrase(sentence: &str) -> String {
    let mut letters = sentence.strip_suffix('.').unwrap_or(sentence).chars();
    letters.next().map(|first| first.to_ascii_lowercase()).into_iter().chain(letters).collect()
}
