//! Reads loops: `forEach` on any step, and the `loop` step.

use alloc::format;

use super::{
    fields::Fields,
    first_round,
    help::Help,
    keys,
    references::Reader,
    report::named,
    suggest::{adapt::flow, rewrite_keys::written_list, values::of_kind},
};
use crate::{
    condition::Condition,
    diagnostic,
    fix::Fix,
    limits::{PARALLEL_MAX, ROUNDS_DEFAULT, ROUNDS_MAX},
    plan::{Loop, Over, Work},
    reference::{Reference, Root},
    value::Value,
};

impl Reader<'_, '_> {
    /// Reads the loop of a step with `forEach`.
    pub(super) fn each(&mut self, fields: &Fields<'_>) -> Option<Work> {
        let block = self.entry().branches.first().map(|(_, block)| *block)?;
        let (list, concurrency) = self.for_each(fields)?;
        Some(Work::Loop(Loop { block, over: Over::Items(list), concurrency, is_each: true }))
    }

    /// Reads a `loop` step.
    pub(super) fn loop_step(&mut self, fields: &Fields<'_>) -> Option<Work> {
        if !fields.has("steps") {
            self.report.missing(
                fields,
                "steps",
                "say what one round does, as in: write `steps: [{type: bash, command: ls}]`",
            );
        }
        let block = self.entry().branches.first().map(|(_, block)| *block);
        let forms = ["forEach", "while", "until"];
        let mut given = forms.into_iter().filter(|form| fields.has(form));
        let form = given.next().unwrap_or_default();
        for other in given {
            let message = format!("a loop is controlled by `{form}` or by `{other}`, not by both");
            self.report.error_at_key(diagnostic::EXCLUSIVE_KEYS, &fields.path.key(other), message, "keep one of them");
        }
        if form.is_empty() {
            let help = "say how often it runs: write `forEach: {ref: \"@input.list\"}`, `while: …` or `until: …`";
            self.report.missing(fields, "forEach", help);
        }
        if form == "forEach" && fields.has("maxRounds") {
            let message = "a loop over a list has as many rounds as the list has items";
            let path = fields.path.key("maxRounds");
            self.report.error_at_key(diagnostic::MISPLACED_KEY, &path, message, "leave `maxRounds` out");
        }
        let max_rounds = self.report.whole_32(fields, "maxRounds", 1..=ROUNDS_MAX).unwrap_or(ROUNDS_DEFAULT);
        let (over, concurrency) = match form {
            "forEach" => self.for_each(fields).map(|(list, concurrency)| (Over::Items(list), concurrency))?,
            "while" => (Over::While { condition: self.between_rounds(fields, form)?, max_rounds }, 1),
            "until" => (Over::Until { condition: self.between_rounds(fields, form)?, max_rounds }, 1),
            _ => return None,
        };
        Some(Work::Loop(Loop { block: block?, over, concurrency, is_each: false }))
    }

    /// Reads `forEach: {ref, concurrency}`.
    fn for_each(&mut self, fields: &Fields<'_>) -> Option<(Reference, u32)> {
        if let Some(list @ Value::List(_)) = fields.get("forEach") {
            let (path, document) = (fields.path.key("forEach"), self.report.document());
            let help = written_list(&fields.path, &path, list, document)
                .unwrap_or_else(|| of_kind(&path, "forEach", "an object", list));
            self.report.error(diagnostic::WRONG_KIND, &path, "`forEach` must be an object, not a list", help);
            return None;
        }
        let fields = self.report.object(fields, "forEach")?;
        self.report.known_keys(&fields, &keys::FOR_EACH);
        if !fields.has("ref") {
            self.report.missing(&fields, "ref", "say which list it goes through, as \"@step.list\"");
        }
        let concurrency = self.report.whole_32(&fields, "concurrency", 1..=PARALLEL_MAX).unwrap_or(1);
        let text = self.report.filled_text(&fields, "ref")?;
        let list = self.ref_of(text, &fields.path.key("ref"))?;
        self.check_is_list(&list, &fields.path.key("ref"));
        Some((list, concurrency))
    }

    fn between_rounds(&mut self, fields: &Fields<'_>, key: &str) -> Option<Condition> {
        self.between_rounds = true;
        let condition = fields.get(key).and_then(|value| self.condition(value, &fields.path.key(key)));
        self.between_rounds = false;
        if let Some(condition) = &condition
            && !self.may_change(condition)
        {
            if key == "while" && self.may_end_inside() && *condition == Condition::Constant(true) {
                return Some(condition.clone());
            }
            let message = format!("`{key}` of {} has the same answer before every round", named(&self.entry().id));
            let help = "ask about a step inside the loop, about `@index`, or about the time";
            self.report.warning(diagnostic::BAD_CONDITION, &fields.path.key(key), message, help);
        } else if let (Some(condition), "while") = (&condition, key) {
            self.check_first_round(condition, fields);
        }
        condition
    }

    /// Warns about a `while` that does not hold before the first round, whatever the execution is given.
    fn check_first_round(&mut self, condition: &Condition, fields: &Fields<'_>) {
        if first_round::answer(self.outline, self.number, condition) != Some(false) {
            return;
        }
        let Some(known) = first_round::known(self.outline, self.number, condition) else { return };
        let is = if known.root == Root::Index { "0" } else { "null" };
        let (path, id) = (fields.path.key("while"), named(&self.entry().id));
        let message = format!("no round of {id} ever runs: before the first round `@{}` is {is}", known.begin(0));
        let written = fields.get("while").cloned().unwrap_or_default();
        let first = Value::map([("ref", "@index".into()), ("eq", 0u32.into())]);
        let any = Value::map([("any", Value::List([first, written].into()))]);
        let help = match is {
            "0" => {
                "write a condition that holds for `@index` 0, or use `until`, which is tested after each round".into()
            }
            _ => Help::new(
                format!("write `while: {}`, so that the first round runs", flow(&any)),
                Fix::replace(&path, any),
            ),
        };
        self.report.warning(diagnostic::STEP_NEVER_RUNS, &path, message, help);
    }

    /// True if a step of a round may end the execution, and the loop with it.
    fn may_end_inside(&self) -> bool {
        let entries = self.outline.entries.iter().enumerate().skip(self.number as usize + 1);
        let mut inside = entries
            .take_while(|(step, _)| self.outline.way_up(*step as u32).skip(1).any(|(_, around)| around == self.number));
        inside.any(|(_, entry)| entry.fields.has("bail") || entry.kind.is_some_and(|kind| kind.name == "return"))
    }

    /// True if the result of a condition can change from one round to the next.
    fn may_change(&self, condition: &Condition) -> bool {
        let mut references = alloc::vec::Vec::new();
        condition.references(&mut references);
        let changes = |reference: &&Reference| match reference.root {
            Root::Step(step) => self.outline.way_up(step).any(|(_, around)| around == self.number),
            Root::Index | Root::Context => true,
            Root::Input | Root::Variables | Root::Item => false,
        };
        references.iter().any(changes) || asks_for_variable(condition)
    }
}

/// True if the condition asks about a variable; a step in the loop may write it.
fn asks_for_variable(condition: &Condition) -> bool {
    match condition {
        Condition::Variable(..) => true,
        Condition::All(parts) | Condition::Any(parts) => parts.iter().any(asks_for_variable),
        Condition::Not(part) => asks_for_variable(part),
        Condition::Constant(_) | Condition::About(..) => false,
    }
}
