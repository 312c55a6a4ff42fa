//! Values with which a condition holds, or does not.

use mainspring_kernel::{
    condition::{Condition, Operator, Test},
    plan::{Loop, Over, Plan, Work},
    reference::{Part, Reference, Root},
    template::Template,
    value::{Number, Value},
};

use super::{
    samples,
    world::{World, first_item, references_of, schema_of, targets},
};

/// A value that a function reads, directly or through other functions.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Feed {
    pub(super) root: Root,
    pub(super) path: Vec<Part>,
}

/// Replaces `@item` in the condition of a step by the first item of its list.
pub(super) fn of_first_item(condition: &Condition, step: u32, plan: &Plan) -> Condition {
    let parts = |parts: &[Condition]| parts.iter().map(|part| of_first_item(part, step, plan)).collect();
    match condition {
        Condition::About(reference, test) => match first_item(plan, step, reference) {
            Some(reference) => Condition::About(reference, test.clone()),
            None => condition.clone(),
        },
        Condition::All(all) => Condition::All(parts(all)),
        Condition::Any(any) => Condition::Any(parts(any)),
        Condition::Not(part) => Condition::Not(Box::new(of_first_item(part, step, plan))),
        Condition::Constant(_) | Condition::Variable(..) => condition.clone(),
    }
}

/// Sets values so that a condition has a truth value. Returns false if none were found; the values are then undefined.
pub(super) fn satisfy(condition: &Condition, truth: bool, plan: &Plan, world: &mut World) -> bool {
    match condition {
        Condition::Constant(value) => *value == truth,
        Condition::About(reference, test) => about(condition, (reference, test), truth, plan, world),
        Condition::Variable(name, equals) => {
            let yes = equals.clone().unwrap_or_else(|| true.into());
            let no = if yes == Value::Bool(false) { Value::Bool(true) } else { Value::Bool(false) };
            let is_free = plan.variables.as_ref().is_none_or(|all| all.iter().any(|known| known.name == *name));
            if is_free {
                world.set_variable(name, if truth { yes } else { other_than(&no, equals.as_ref()) });
            }
            is_free
        }
        Condition::Not(part) => satisfy(part, !truth, plan, world),
        Condition::All(parts) if truth => parts.iter().all(|part| satisfy(part, true, plan, world)),
        Condition::Any(parts) if !truth => parts.iter().all(|part| satisfy(part, false, plan, world)),
        Condition::All(parts) | Condition::Any(parts) => {
            let found = parts.iter().find_map(|part| {
                let mut attempt = world.clone();
                satisfy(part, truth, plan, &mut attempt).then_some(attempt)
            });
            found.map(|attempt| *world = attempt).is_some()
        }
    }
}

/// Returns a value for a variable that must not equal the expected one, of the same kind if that is text.
fn other_than(no: &Value, equals: Option<&Value>) -> Value {
    match equals {
        Some(Value::Text(text)) => format!("not {text}").into(),
        Some(Value::Number(number)) => number
            .as_whole()
            .and_then(|whole| whole.checked_add(1))
            .and_then(Number::whole)
            .map_or(Value::Null, Value::Number),
        _ => no.clone(),
    }
}

fn about(
    condition: &Condition,
    (reference, test): (&Reference, &Test),
    truth: bool,
    plan: &Plan,
    world: &mut World,
) -> bool {
    let targets = targets(plan, reference.root, &reference.path);
    if targets.is_empty() {
        return false;
    }
    let is_right = |world: &World, of: &Condition| of.holds(world).is_ok_and(|holds| holds == truth);
    // A reference through a container is tested at one of the steps whose output it is.
    let (root, path) = targets[0].clone();
    let is_direct = (root, path.as_slice()) == (reference.root, reference.path.as_slice());
    let is_answer = matches!(reference.root, Root::Step(step) if plan.step(step).work.is_agent());
    let direct = match is_direct || is_answer {
        true => condition.clone(),
        false => Condition::About(Reference { root, path: path.clone(), text: reference.text.clone() }, test.clone()),
    };
    if is_right(world, &direct) {
        return true;
    }
    if let Test::Exists(wanted) = test {
        return match *wanted == truth {
            true => world.set(plan, reference.root, &reference.path, samples::TEXT.into()),
            false => world.remove(plan, reference.root, &reference.path),
        };
    }
    let schema = schema_of(plan, root, &path);
    let words = schema.and_then(|schema| schema.get("enum")).and_then(Value::as_list).unwrap_or_default();
    let fitting = world.original(root, &path).into_iter().chain(words.iter().cloned()).chain(candidates(test));
    for candidate in fitting.filter(|candidate| schema.is_none_or(|schema| samples::fits(schema, candidate))) {
        let mut attempt = world.clone();
        if attempt.set(plan, reference.root, &reference.path, candidate) && is_right(&attempt, &direct) {
            *world = attempt;
            return true;
        }
    }
    false
}

/// Returns values on both sides of each operand.
fn candidates(test: &Test) -> Vec<Value> {
    let mut found = Vec::new();
    if let Test::Compares(comparisons) = test {
        for (operator, operand) in comparisons {
            let Template::Literal(operand) = operand else { continue };
            match (operator, operand) {
                (Operator::In, Value::List(items)) => found.extend(items.iter().cloned()),
                (_, Value::Number(number)) => {
                    let near = [0, 1, -1].map(|step| number.as_whole().and_then(|whole| Number::whole(whole + step)));
                    found.extend(near.into_iter().flatten().map(Value::Number));
                    let double = number.as_double();
                    found.extend(
                        [double, double + 1.0, double - 1.0].into_iter().filter_map(Number::double).map(Value::Number),
                    );
                }
                (_, Value::Text(text)) => {
                    found.extend([text.clone(), format!("{text}x"), String::new()].map(Value::from));
                }
                (_, other) => found.push(other.clone()),
            }
        }
    }
    found.extend([true.into(), false.into(), samples::TEXT.into(), "".into(), 0u64.into(), Value::Null]);
    found
}

/// Chooses values for the main path: steps run, conditionals take `then`, loops end, and early returns are not taken.
pub(super) fn prefer_main_path(plan: &Plan, world: &mut World) {
    for number in 0..plan.steps.len() as u32 {
        let step = plan.step(number);
        if let Some(when) = &step.when {
            let is_return = matches!(step.work, Work::Return { .. });
            prefer(&of_first_item(when, number, plan), !is_return, plan, world);
        }
        if let Some(bail) = &step.bail {
            prefer(bail, false, plan, world);
        }
        match &step.work {
            Work::Conditional { condition, then, .. } => prefer(condition, !returns(plan, *then), plan, world),
            Work::Loop(Loop { over: Over::While { condition, .. }, .. }) => prefer(condition, false, plan, world),
            Work::Loop(Loop { over: Over::Until { condition, .. }, .. }) => prefer(condition, true, plan, world),
            _ => {}
        }
    }
}

fn prefer(condition: &Condition, truth: bool, plan: &Plan, world: &mut World) {
    let mut attempt = world.clone();
    if satisfy(condition, truth, plan, &mut attempt) {
        *world = attempt;
    }
}

/// True if a block ends the execution.
fn returns(plan: &Plan, block: u32) -> bool {
    plan.block(block).steps.iter().any(|step| matches!(plan.step(*step).work, Work::Return { .. }))
}

/// Returns the values that the functions read on whose results some conditions depend.
pub(super) fn feeds_of<'c>(plan: &Plan, conditions: impl Iterator<Item = &'c Condition>) -> Vec<Feed> {
    let mut references = Vec::new();
    conditions.for_each(|condition| condition.references(&mut references));
    let mut found = Vec::new();
    for reference in references {
        match reference.root {
            Root::Step(step) if matches!(plan.step(step).work, Work::Code { .. }) => {
                feeds_of_step(plan, step, &mut found);
            }
            // An operand that is a reference, such as a limit of the input.
            root => found.push(Feed { root, path: reference.path.clone() }),
        }
    }
    found
}

/// Returns the values that all functions of a plan read.
pub(super) fn feeds_of_all_code(plan: &Plan) -> Vec<Feed> {
    let mut found = Vec::new();
    (0..plan.steps.len() as u32).for_each(|step| feeds_of_step(plan, step, &mut found));
    found
}

/// References lead to earlier steps only, so this ends.
fn feeds_of_step(plan: &Plan, step: u32, found: &mut Vec<Feed>) {
    if !matches!(plan.step(step).work, Work::Code { .. }) {
        return;
    }
    for reference in references_of(plan, step) {
        match reference.root {
            Root::Step(other) if matches!(plan.step(other).work, Work::Code { .. }) => {
                feeds_of_step(plan, other, found);
            }
            root => {
                let feed = Feed { root, path: reference.path.clone() };
                if !found.contains(&feed) {
                    found.push(feed);
                }
            }
        }
    }
}

/// Returns the literal operands of conditions, as text too, and the words of the functions that they read.
pub(super) fn literals<'c>(plan: &Plan, conditions: impl Iterator<Item = &'c Condition>) -> Vec<Value> {
    let (mut found, mut references) = (Vec::new(), Vec::new());
    for condition in conditions {
        operands(condition, &mut found);
        condition.references(&mut references);
    }
    for reference in references {
        if let Root::Step(step) = reference.root
            && let Work::Code { source, .. } = &plan.step(step).work
        {
            found.extend(samples::words_of(source));
        }
    }
    found.dedup();
    found
}

fn operands(condition: &Condition, found: &mut Vec<Value>) {
    match condition {
        Condition::About(_, test @ Test::Compares(_)) => {
            for value in candidates(test) {
                if let Value::Number(number) = &value {
                    found.extend(number.as_whole().map(|whole| Value::from(whole.to_string())));
                }
                found.push(value);
            }
        }
        Condition::All(parts) | Condition::Any(parts) => parts.iter().for_each(|part| operands(part, found)),
        Condition::Not(part) => operands(part, found),
        _ => {}
    }
}
