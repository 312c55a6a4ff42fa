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
    diagnostic, json,
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
}
