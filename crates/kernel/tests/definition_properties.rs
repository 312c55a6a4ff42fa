//! Property tests: the compiler never panics, a stored plan reads back or is rejected, and encodings are canonical.

use mainspring_kernel::{
    cbor,
    definition::{Syntax, compile, read},
    document::Document,
    json,
    plan::Plan,
    value::{Map, Number, Value},
};
use proptest::{collection::vec, prelude::*, sample::select};

/// Keys of the language, so that random definitions pass the check for unknown keys.
const KEYS: [&str; 34] = [
    "steps",
    "type",
    "id",
    "command",
    "tool",
    "arguments",
    "condition",
    "then",
    "else",
    "when",
    "ref",
    "eq",
    "gt",
    "lt",
    "in",
    "exists",
    "all",
    "any",
    "not",
    "variable",
    "equals",
    "retry",
    "maxAttempts",
    "jitter",
    "env",
    "goal",
    "prompt",
    "durationMs",
    "signal",
    "input",
    "outputVariable",
    "constraints",
    "timeoutMs",
    "x",
];

const WORDS: [&str; 24] = [
    "bash",
    "tool",
    "agent",
    "agent_message",
    "conditional",
    "parallel",
    "approval",
    "sleep",
    "signal",
    "return",
    "loop",
    "a",
    "b",
    "@a",
    "@a.x",
    "@b[0]",
    "to @a.x, @@b",
    "@input.n",
    "@vars.v",
    "@ctx.now",
    "@nobody",
    "=",
    "~@{a}",
    "",
];

fn number() -> impl Strategy<Value = Value> {
    let whole = any::<i64>().prop_map(Value::from);
    let double = any::<f64>().prop_filter_map("finite", |double| Number::double(double).map(Value::Number));
    prop_oneof![whole, double, (0u64..4).prop_map(Value::from), any::<u64>().prop_map(Value::from)]
}

/// Any value, often one that resembles a part of a definition.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        number(),
        select(&WORDS[..]).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 60, 5, |inner| {
        let key = prop_oneof![8 => select(&KEYS[..]).prop_map(String::from), 1 => any::<String>()];
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::List),
            vec((key, inner), 0..6).prop_map(|fields| Value::Map(fields.into_iter().collect())),
        ]
    })
}

/// A step that is likely to be valid.
fn step() -> impl Strategy<Value = Value> {
    let data = || prop_oneof![select(&WORDS[..]).prop_map(Value::from), number(), value()];
    let condition = prop_oneof![
        any::<bool>().prop_map(Value::from),
        data().prop_map(|data| Value::map([("ref", "@input.n".into()), ("eq", data)])),
        data().prop_map(|_| Value::map([("not", Value::map([("variable", "v".into())]))])),
    ];
    let typed = |kind: &str, key: &str, value: Value| Value::map([("type", kind.into()), (key, value)]);
    let leaf = prop_oneof![
        data().prop_map(move |data| Value::map([
            ("type", "tool".into()),
            ("tool", "T".into()),
            ("arguments", Value::map([("k", data)]))
        ])),
        data().prop_map(move |data| typed("return", "input", data)),
        data().prop_map(move |data| typed("approval", "items", data)),
        select(&["echo", "echo @input.n", "echo '@vars.v' @@"][..]).prop_map(move |text| typed(
            "bash",
            "command",
            text.into()
        )),
        (0u64..9).prop_map(move |duration| typed("sleep", "durationMs", duration.into())),
    ];
    let whole = (leaf, condition.clone()).prop_map(|(leaf, condition)| {
        let mut step = leaf.as_map().cloned().unwrap_or_default();
        step.insert("when".into(), condition);
        Value::Map(step)
    });
    whole.prop_recursive(4, 24, 3, move |inner| {
        let steps = vec(inner, 1..4).prop_map(Value::List);
        prop_oneof![
            steps.clone().prop_map(move |steps| typed("parallel", "steps", steps)),
            (steps.clone(), condition.clone()).prop_map(|(steps, condition)| {
                Value::map([("type", "conditional".into()), ("condition", condition), ("then", steps)])
            }),
            steps.prop_map(|steps| Value::map([
                ("type", "conditional".into()),
                ("condition", true.into()),
                ("else", steps)
            ])),
        ]
    })
}

fn definition() -> impl Strategy<Value = Value> {
    vec(step(), 1..5).prop_map(|steps| Value::map([("steps", Value::List(steps))]))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn compiling_is_total(value in value()) {
        for value in [value.clone(), Value::map([("steps", value.clone())]), Value::map([("steps", Value::List(vec![value]))])] {
            check_total(value);
        }
    }

    #[test]
    fn reading_is_total(bytes in vec(any::<u8>(), 0..200), text in any::<String>()) {
        for syntax in [Syntax::Json, Syntax::Yaml, Syntax::Guess] {
            let _ = read(&bytes, syntax);
            let _ = read(text.as_bytes(), syntax);
        }
    }

    #[test]
    fn stored_plans_decode_to_themselves(definition in definition()) {
        let _ = compile(&Document::placeless(definition)).map(|compiled| {
            assert_eq!(Plan::from_value(&compiled.plan.to_value()), Ok(compiled.plan.clone()));
            assert_eq!(Plan::decode(&compiled.plan.encode()), Ok(compiled.plan));
        });
    }

    #[test]
    fn every_value_is_a_plan_or_refused(value in value()) {
        let hash = format!("sha256:{}", "0".repeat(64));
        let stored = Value::map([("format", 1u64.into()), ("workflowHash", hash.as_str().into()), ("steps", Value::List(vec![value.clone()]))]);
        for value in [value, stored] {
            let _ = Plan::from_value(&value).map(|plan| check_consistent(&plan));
        }
    }

    #[test]
    fn encodings_do_not_depend_on_the_order_of_insertion(fields in vec((any::<String>(), value()), 0..8)) {
        let unique: Map = fields.iter().cloned().collect();
        let (mut forwards, mut backwards) = (Map::new(), Map::new());
        unique.iter().for_each(|(key, value)| drop(forwards.insert(key.clone(), value.clone())));
        unique.iter().rev().for_each(|(key, value)| drop(backwards.insert(key.clone(), value.clone())));
        let (forwards, backwards) = (Value::Map(forwards), Value::Map(backwards));
        prop_assert_eq!(json::canonical(&forwards), json::canonical(&backwards));
        prop_assert_eq!(cbor::encode(&forwards), cbor::encode(&backwards));
        // JSON text with the keys in another order reads as the same value.
        let shuffled: Vec<_> = unique.iter().rev().map(|(key, value)| format!("{}:{}", json::compact(&key.as_str().into()), json::compact(value))).collect();
        let read = json::read(format!("{{{}}}", shuffled.join(",")).as_bytes()).expect("JSON").value;
        prop_assert_eq!(cbor::encode(&read), cbor::encode(&forwards));
    }

    #[test]
    fn encodings_round_trip(value in value()) {
        prop_assert_eq!(cbor::decode(&cbor::encode(&value)), Ok(value.clone()));
        prop_assert_eq!(&json::read(json::compact(&value).as_bytes()).expect("JSON").value, &value);
        // Canonical JSON rounds integers to doubles, so only its own text round-trips.
        let canonical = json::canonical(&value);
        let read = json::read(canonical.as_bytes()).expect("JSON").value;
        prop_assert_eq!(json::canonical(&read), canonical);
    }
}

fn check_total(value: Value) {
    match compile(&Document::placeless(value)) {
        Ok(compiled) => {
            check_consistent(&compiled.plan);
            assert_eq!(Plan::decode(&compiled.plan.encode()), Ok(compiled.plan));
        }
        Err(found) => assert!(found.iter().any(|diagnostic| diagnostic.severity.name() == "error"), "{found:?}"),
    }
}

/// Checks that all numbers refer to existing steps and blocks, that each step is in exactly one block, and that numbers
/// follow the tree order.
fn check_consistent(plan: &Plan) {
    let (mut steps, mut blocks) = (0, 0);
    walk(plan, 0, None, &mut steps, &mut blocks);
    assert_eq!((steps as usize, blocks as usize), (plan.steps.len(), plan.blocks.len()));
}

fn walk(plan: &Plan, number: u32, owner: Option<u32>, steps: &mut u32, blocks: &mut u32) {
    let block = plan.block(number);
    assert_eq!((number, block.owner), (*blocks, owner));
    *blocks += 1;
    for step in &block.steps {
        assert_eq!((*step, plan.step(*step).block), (*steps, number));
        *steps += 1;
        for (_, inner) in plan.step(*step).work.branches() {
            walk(plan, inner, Some(*step), steps, blocks);
        }
    }
}

/// Flips each bit of a stored plan, one at a time.
#[test]
fn a_flipped_plan_is_refused_or_consistent() {
    let source = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/plan.yaml")).expect("a definition");
    let plan = compile(&read(&source, Syntax::Yaml).expect("YAML")).expect("a plan").plan;
    let bytes = plan.encode();
    let mut refused = 0;
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << bit;
            match Plan::decode(&flipped) {
                Ok(other) => {
                    assert!(other != plan, "bit {bit} of byte {at} changes nothing");
                    check_consistent(&other);
                }
                Err(_) => refused += 1,
            }
        }
        assert!(Plan::decode(&bytes[..at]).is_err(), "the first {at} bytes");
    }
    assert!(refused * 2 > bytes.len() * 8, "{refused} of {} refused", bytes.len() * 8);
}
