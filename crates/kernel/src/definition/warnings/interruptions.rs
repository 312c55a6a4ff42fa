//! Calls that a repeated attempt would make twice, in steps that do not say what follows an interruption.

use alloc::{format, string::String};

use crate::{
    definition::{
        outline::{Entry, Role},
        report::{Report, named},
    },
    diagnostic,
    failure::{Class, Failure},
    plan::{OnInterrupted, Step, Work},
    template::Template,
    value::Value,
};

/// Commands that create or send something on each run. A word that begins with `-` may be anywhere behind the
/// program.
const NOT_REPEATABLE: [&[&str]; 26] = [
    &["npm", "publish"],
    &["pnpm", "publish"],
    &["yarn", "publish"],
    &["cargo", "publish"],
    &["twine", "upload"],
    &["gem", "push"],
    &["gh", "release", "create"],
    &["gh", "pr", "create"],
    &["gh", "pr", "comment"],
    &["gh", "issue", "create"],
    &["gh", "issue", "comment"],
    &["glab", "mr", "create"],
    &["aws", "sns", "publish"],
    &["aws", "sqs", "send-message"],
    &["aws", "ses", "send-email"],
    &["stripe", "charges", "create"],
    &["sendmail"],
    &["curl", "-XPOST"],
    &["curl", "-X", "POST"],
    &["curl", "--request", "POST"],
    &["curl", "--json"],
    &["curl", "-d"],
    &["curl", "--data"],
    &["curl", "--data-raw"],
    &["curl", "--data-binary"],
    &["curl", "--data-urlencode"],
];

/// Words of `curl` by which a request with data is no POST.
const OTHER_METHODS: [&str; 10] = ["-G", "--get", "GET", "PUT", "DELETE", "HEAD", "-XGET", "-XPUT", "-XDELETE", "-I"];

/// A script that names the key of its call lets the service recognize a repeated call.
const KEY_VARIABLE: &str = "MAINSPRING_INTENT";

pub(super) fn check(step: &Step, entry: &Entry<'_>, report: &mut Report<'_>) {
    let interruption = Failure::new(Class::Unavailable, "interrupted", "");
    let repeats = step.on_interrupted == OnInterrupted::Retry
        && step.retry.max_attempts > 1
        && step.retry.wants(&interruption)
        && !entry.fields.has("onInterrupted")
        && matches!(entry.role, Role::Whole | Role::Body);
    let Work::Effect { effect, params } = &step.work else { return };
    if !repeats {
        return;
    }
    let call = match effect.as_str() {
        "bash" => script_of(params).and_then(not_repeatable).map(|words| words.join(" ")),
        "http" => request_of(params),
        _ => None,
    };
    let Some(call) = call else { return };
    let message = format!("{} runs `{call}` again if its process dies, which may do it twice", named(&entry.id));
    let help = "write `onInterrupted: ask`, so that a person decides, or `onInterrupted: retry` if it may happen twice";
    report.warning(diagnostic::INTERRUPTION_REPEATS, &entry.fields.path, message, help);
}

fn field<'t>(params: &'t Template, key: &str) -> Option<&'t Value> {
    match params {
        Template::Literal(value) => value.get(key),
        Template::Map(fields) => match fields.iter().find(|(name, _)| name == key) {
            Some((_, Template::Literal(value))) => Some(value),
            _ => None,
        },
        _ => None,
    }
}

fn script_of(params: &Template) -> Option<&str> {
    field(params, "command").and_then(Value::as_text).filter(|script| !script.contains(KEY_VARIABLE))
}

/// Returns the first command of a script that is in the table.
fn not_repeatable(script: &str) -> Option<&'static [&'static str]> {
    let bare = without_texts(script);
    let commands = bare.split(['\n', ';', '|', '&', '(', ')', '{', '}']);
    let found = commands.filter(|command| !command.contains("--dry-run")).filter_map(|command| {
        let mut words = command.split_whitespace();
        let program = words.find(|word| !word.contains('='))?;
        let rest = words.clone();
        let is_repeatable = program == "curl" && rest.clone().any(|word| OTHER_METHODS.contains(&word));
        let mut rows = NOT_REPEATABLE.into_iter().filter(|_| !is_repeatable);
        rows.find(|row| row[0] == program && has_words(&row[1..], rest.clone()))
    });
    found.into_iter().next()
}

/// Returns a script without comments and here documents, and without the separators inside of quotes.
fn without_texts(script: &str) -> String {
    let (mut bare, mut quote, mut end): (String, Option<char>, Option<&str>) = (String::new(), None, None);
    for line in script.lines() {
        if let Some(word) = end {
            end = Some(word).filter(|word| line.trim() != *word);
            continue;
        }
        let mut before = ' ';
        for (at, letter) in line.char_indices() {
            let is_escaped = before == '\\' && quote != Some('\'');
            match (quote, letter) {
                (None, '#') if before.is_whitespace() => break,
                (None, '<')
                    if end.is_none()
                        && before != '<'
                        && line[at..].starts_with("<<")
                        && !line[at..].starts_with("<<<") =>
                {
                    let word = line[at + 2..].trim_start_matches(['-', ' ']).split([' ', ';', '|', '&', ')']).next();
                    end = word.map(|word| word.trim_matches(['\'', '"', '\\'])).filter(|word| !word.is_empty());
                    bare.push(letter);
                }
                (None, '\'' | '"') if !is_escaped => {
                    quote = Some(letter);
                    bare.push(letter);
                }
                (Some(open), letter) if open == letter && !is_escaped => {
                    quote = None;
                    bare.push(letter);
                }
                (Some(_), ';' | '|' | '&' | '(' | ')' | '{' | '}') => bare.push(' '),
                (_, letter) => bare.push(letter),
            }
            before = if is_escaped { ' ' } else { letter };
        }
        bare.push(if quote.is_some() { ' ' } else { '\n' });
    }
    bare
}

/// True if the words stand one after another behind a program: at once, or anywhere if the first is an option.
fn has_words<'w>(wanted: &[&str], words: impl Iterator<Item = &'w str> + Clone) -> bool {
    let Some(first) = wanted.first() else { return true };
    let mut rest = words;
    if first.starts_with('-') && !rest.by_ref().any(|word| word == *first) {
        return false;
    }
    let wanted = if first.starts_with('-') { &wanted[1..] } else { wanted };
    wanted.iter().all(|wanted| rest.next() == Some(wanted))
}

/// Describes a request that creates something and sends no idempotency key.
fn request_of(params: &Template) -> Option<String> {
    let method =
        field(params, "method").and_then(Value::as_text).filter(|method| matches!(*method, "POST" | "PATCH"))?;
    let has_key = field(params, "idempotencyHeader").and_then(Value::as_bool) != Some(false);
    (!has_key).then(|| format!("{method} without an idempotency key"))
}

#[cfg(test)]
mod tests {
    use super::not_repeatable;

    #[test]
    fn commands_are_found_where_they_are_run() {
        for (script, found) in [
            ("npm publish", true),
            ("npm run build && npm publish --access public", true),
            ("CI=1 npm publish", true),
            ("npm run publish", false),
            ("echo npm publish", false),
            ("curl -sS -X POST https://example.com/orders", true),
            ("curl -sS https://example.com/orders", false),
            ("gh release view v1 || gh release create v1", true),
            ("(cd dist; twine upload *)", true),
            ("echo 'Would run: build; npm publish; done'", false),
            ("echo \"Would run: build; npm publish\"; npm publish", true),
            ("echo 'a\nnpm publish\nb'", false),
            ("cat <<EOF\nnpm publish\nEOF\nls", false),
            ("cat <<'EOF' > x\nls\nEOF\nnpm publish", true),
            ("cat <<< text\nnpm publish", true),
            ("npm publish --dry-run", false),
            ("ls # then; npm publish", false),
            ("echo \\'; npm publish", true),
            ("curl -d a=1 https://example.com/orders", true),
            ("curl --data-binary @x https://example.com/orders", true),
            ("curl -G -d a=1 https://example.com/orders", false),
            ("curl -X PUT -d a=1 https://example.com/orders/1", false),
            ("", false),
        ] {
            assert_eq!(not_repeatable(script).is_some(), found, "{script}");
        }
    }
}
