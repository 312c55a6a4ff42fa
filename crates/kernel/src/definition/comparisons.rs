//! Comparisons that can never hold, whatever the values are.

use alloc::{format, vec::Vec};

use super::{
    fields::Fields,
    help::Help,
    references::Reader,
    report::named,
    step_work::is_shell_tool,
    suggest::adapt::flow,
    warnings::{APPROVED, decision_of},
};
use crate::{
    condition::{Operator, Test},
    diagnostic,
    fix::Fix,
    json,
    reference::{OUTCOMES, Part, Reference, Root},
    template::Template,
    value::Value,
};

impl Reader<'_, '_> {
    /// Warns about a test that no value passes.
    pub(super) fn check_comparison(&mut self, reference: &Reference, test: &Test, fields: &Fields<'_>) {
        let Test::Compares(compares) = test else { return };
        for (operator, operand) in compares {
            let Template::Literal(operand) = operand else { continue };
            if self.check_operand(*operator, operand, fields)
                || self.check_exit_code(reference, *operator, operand, fields)
                || self.check_word(reference, *operator, operand, fields)
                || self.check_kinds(reference, *operator, operand, fields)
                || self.check_end_of_line(reference, *operator, operand, fields)
                || self.check_by_shape(reference, *operator, operand, fields)
            {
                return;
            }
        }
        let [(_, Template::Literal(low)), (_, Template::Literal(high))] = compares.as_slice() else { return };
        let is_empty = match (low, high) {
            (Value::Number(low), Value::Number(high)) => low > high,
            (Value::Text(low), Value::Text(high)) => low > high,
            _ => true,
        };
        if is_empty {
            let message = format!(
                "no value is between {} and {}: the comparison never holds",
                json::compact(low),
                json::compact(high)
            );
            let names: Vec<&str> = compares.iter().map(|(operator, _)| operator.name()).collect();
            let text = "write the lower bound with `gt` or `gte`, and the upper one with `lt` or `lte`";
            let help = match (names.as_slice(), fields.get("ref")) {
                ([lower, upper], Some(subject))
                    if !matches!((low, high), (Value::Bool(_), _) | (_, Value::Bool(_))) =>
                {
                    let range = Value::map([("ref", subject.clone()), (lower, high.clone()), (upper, low.clone())]);
                    format!("write `{}` if a value between the two is meant", flow(&range))
                }
                _ => text.into(),
            };
            self.report.warning(diagnostic::COMPARISON_NEVER_HOLDS, &fields.path, message, help);
        }
    }

    fn check_operand(&mut self, operator: Operator, operand: &Value, fields: &Fields<'_>) -> bool {
        let name = operator.name();
        let (message, help) = match (operator, operand) {
            (Operator::Equal | Operator::NotEqual, _) => return false,
            (Operator::In, Value::List(items)) if items.is_empty() => {
                (format!("`{name}` has an empty list: the comparison never holds"), "list the values, or take it out")
            }
            (Operator::In, _) | (_, Value::Number(_) | Value::Text(_)) => return false,
            (_, other) => (
                format!(
                    "`{name}` orders numbers or texts, and {} is neither: the comparison never holds",
                    other.kind()
                ),
                "write a number or a text, or compare with `eq`",
            ),
        };
        self.report.warning(diagnostic::COMPARISON_NEVER_HOLDS, &fields.path.key(name), message, help);
        true
    }

    /// Warns about a word that the outcome of an execution or the decision of a gate never is.
    fn check_word(&mut self, reference: &Reference, operator: Operator, operand: &Value, fields: &Fields<'_>) -> bool {
        let is_context = reference.root == Root::Context && reference.begin(1) == "ctx.outcome";
        let gate = decision_of(reference).map(|step| &self.outline.entries[step as usize]).filter(|entry| {
            entry.kind.is_some_and(|kind| kind.name == "approval") && !entry.fields.has("transform") && !entry.is_loop()
        });
        let words: &[&str] = match gate {
            _ if is_context => &OUTCOMES,
            Some(_) => &[APPROVED],
            None => return false,
        };
        let never = |operand: &Value| !operand.as_text().is_some_and(|word| words.contains(&word));
        let holds_never = match (operator, operand) {
            // A gate that did not run reads as null.
            (Operator::Equal, Value::Null) => is_context,
            (Operator::Equal, operand) => never(operand),
            (Operator::In, Value::List(items)) => items.iter().all(|item| *item != Value::Null && never(item)),
            _ => false,
        };
        if !holds_never {
            return false;
        }
        let (shown, words) = (json::compact(operand), words.join(", "));
        let (message, help) = match gate {
            Some(_) => (
                format!("`{reference}` is never {shown}: a denied gate ends the execution as `cancelled`"),
                "put the steps for a denial in `finally`, with `when: {ref: \"@ctx.outcome\", eq: denied}`".into(),
            ),
            None => (format!("`{reference}` is never {shown}"), format!("write one of {words}")),
        };
        self.report.warning(diagnostic::COMPARISON_NEVER_HOLDS, &fields.path.key(operator.name()), message, help);
        true
    }

    /// Warns about a test for a failed script by its exit code: a step that failed has no output.
    fn check_exit_code(
        &mut self,
        reference: &Reference,
        operator: Operator,
        operand: &Value,
        fields: &Fields<'_>,
    ) -> bool {
        let (Root::Step(target), [Part::Name(part)]) = (reference.root, reference.path.as_slice()) else {
            return false;
        };
        let entry = &self.outline.entries[target as usize];
        let is_shell = entry
            .kind
            .is_some_and(|kind| kind.name == "bash" || is_shell_tool(self.outline.notation, kind, &entry.fields));
        let is_transformed = entry.fields.has("transform")
            || entry.fields.get("action").is_some_and(|action| action.get("transformCode").is_some());
        let zero = Value::from(0_u64);
        let never = match (operator, operand) {
            (Operator::Equal, Value::Number(_)) => *operand != zero,
            (Operator::NotEqual, Value::Number(_)) => *operand == zero,
            (Operator::Greater, Value::Number(number)) => number.as_double() >= 0.0,
            (Operator::GreaterOrEqual, Value::Number(number)) => number.as_double() > 0.0,
            (Operator::Equal, Value::Text(_)) => true,
            _ => false,
        };
        if part != "exitCode" || !is_shell || is_transformed || entry.is_loop() || !never {
            return false;
        }
        let read = operand.as_text().and_then(|text| json::value(text.trim().as_bytes()).ok());
        if let Some(read) = read.filter(|read| *read == zero && operator == Operator::Equal) {
            let path = fields.path.key(operator.name());
            let message = format!("`{reference}` is a number, and never the text {}", json::compact(operand));
            self.report.warning(diagnostic::COMPARISON_NEVER_HOLDS, &path, message, Help::value(&path, read));
            return true;
        }
        let id = named(&entry.id);
        let message = format!(
            "`{reference}` is 0 in every output of {id}: with another exit code the step fails, and has no output"
        );
        let help = format!(
            "let the script of {id} print what you ask for, as `if ./check; then printf yes; else printf no; fi`, and \
             compare its `stdout`"
        );
        self.report.warning(diagnostic::COMPARISON_NEVER_HOLDS, &fields.path, message, help);
        true
    }

    /// Warns about a text that is compared with a number, or a number with a text: neither is less, and they are never equal.
    fn check_kinds(&mut self, reference: &Reference, operator: Operator, operand: &Value, fields: &Fields<'_>) -> bool {
        let (kind, path) = (self.type_of(reference), fields.path.key(operator.name()));
        let never = |wanted: &str| {
            let message = format!(
                "`{reference}` is {wanted}, and {} is {}: the comparison never holds",
                json::compact(operand),
                operand.kind()
            );
            (diagnostic::COMPARISON_NEVER_HOLDS, message)
        };
        let ((code, message), help) = match (kind, operand, operator) {
            (_, _, Operator::NotEqual | Operator::In) => return false,
            (Some("string"), Value::Number(_), Operator::Equal) => (
                never("text"),
                Help::from(
                    "compare with a text, as the script prints it, or let it print JSON and read that in a `code` step",
                ),
            ),
            (Some("string"), Value::Number(_), _) => (
                never("text"),
                "let the script print JSON, read it with `JSON.parse` in a `code` step, and compare the output of that"
                    .into(),
            ),
            (Some("integer"), Value::Text(text), _) => match json::value(text.trim().as_bytes()) {
                Ok(number @ Value::Number(_)) => (never("a number"), Help::value(&path, number)),
                _ => (never("a number"), "compare with a number".into()),
            },
            _ => return false,
        };
        self.report.warning(code, &path, message, help);
        true
    }

    /// Warns about a text without the end of the line that `echo` writes.
    fn check_end_of_line(
        &mut self,
        reference: &Reference,
        operator: Operator,
        operand: &Value,
        fields: &Fields<'_>,
    ) -> bool {
        let (Root::Step(target), [Part::Name(part)]) = (reference.root, reference.path.as_slice()) else {
            return false;
        };
        let entry = &self.outline.entries[target as usize];
        let script = entry.fields.get("command").and_then(Value::as_text).unwrap_or_default();
        let has_own_shape = ["transform", "outputSchema"].iter().any(|key| entry.fields.has(key)) || entry.is_loop();
        let is_shell = entry.kind.is_some_and(|kind| kind.name == "bash") && !has_own_shape;
        let (Operator::Equal, Value::Text(text)) = (operator, operand) else { return false };
        if part != "stdout" || !is_shell || text.ends_with('\n') || !always_ends_a_line(script) {
            return false;
        }
        let path = fields.path.key(operator.name());
        let message = format!(
            "`echo` ends its output with a new line, so `{reference}` is never {}: the comparison never holds",
            json::compact(operand)
        );
        let meant = format!("{text}\n");
        let help = Help::new(
            format!(
                "write {}, or print it with `printf` in {}",
                json::compact(&Value::text(meant.as_str())),
                named(&entry.id)
            ),
            Fix::replace(&path, meant.as_str()),
        );
        self.report.warning(diagnostic::COMPARISON_NEVER_HOLDS, &path, message, help);
        true
    }
}

/// Longer scripts are not checked: each comparison with their output would read them again.
const SCRIPT_BYTES_MAX: usize = 4096;

/// Commands that write nothing to the standard output.
const SILENT: [&str; 12] = ["cd", "set", "export", "mkdir", "rm", "test", "[", "[[", "true", ":", "sleep", "fi"];

/// True if a script certainly ends its output with a new line: each command that writes is an `echo`. Quotes with separators
/// inside are not understood, and count as another command.
fn always_ends_a_line(script: &str) -> bool {
    if script.len() > SCRIPT_BYTES_MAX
        || script.contains(['|', '>', '$', '`', '\\'])
        || script.contains(" -n")
        || script.contains(" -e")
    {
        return false;
    }
    let separated = script.replace("&&", "\n").replace(';', "\n");
    let commands = separated.lines().filter_map(|command| {
        let words = command.split_whitespace();
        words.clone().find(|word| !["if", "then", "else", "elif", "!"].contains(word))
    });
    let commands: Vec<&str> = commands.collect();
    commands.contains(&"echo") && commands.iter().all(|command| *command == "echo" || SILENT.contains(command))
}

#[cfg(test)]
mod tests {
    use super::always_ends_a_line;

    #[test]
    fn scripts_that_end_a_line() {
        for (script, ends) in [
            ("echo yes", true),
            ("cd a && echo yes", true),
            ("if test -f a; then echo yes; else echo no; fi", true),
            ("echo -n yes", false),
            ("echo yes | tr -d x", false),
            ("printf yes", false),
            ("echo $X", false),
            ("./check; echo yes", false),
            ("if test -f a; then printf yes; else echo no; fi", false),
            ("true", false),
        ] {
            assert_eq!(always_ends_a_line(script), ends, "{script}");
        }
    }
}
