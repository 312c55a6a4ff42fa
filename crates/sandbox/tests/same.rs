//! A function with the same input gives the same answer to the byte: result, fault, console and ticks.

use mainspring_sandbox::{Call, Function, Limits, Request, evaluate};
use proptest::collection::vec;
use proptest::prelude::*;

/// Expressions that would differ in a second run if the sandbox were not deterministic.
const LEAVES: [&str; 19] = [
    "input",
    "1",
    "'ä'",
    "null",
    "undefined",
    "[]",
    "({a: 1})",
    "10n",
    "Date.now()",
    "new Date()",
    "Math.random()",
    "Symbol('s')",
    "new Error('e').stack",
    "console.log(input)",
    "new Map([[{}, 1]])",
    "/a*b/.exec('aab')",
    "Object.keys(globalThis).length",
    "Reflect.ownKeys(Date).map(String)",
    "(() => { const f = () => f(); f() })()",
];

/// Contexts for expressions: `$` stands for the inner one.
const AROUND: [&str; 14] = [
    "[$, $]",
    "({k: $})",
    "String($)",
    "JSON.stringify($)",
    "(() => $)()",
    "(async () => $)()",
    "Promise.resolve($)",
    "($) + ($)",
    "[$].sort(() => Math.random() - 0.5)",
    "new Date($)",
    "(() => { throw $ })()",
    "Object.entries($ ?? {})",
    "(() => { try { return $ } catch (e) { return e } })()",
    "Array.from({length: 3}, () => $)",
];

fn expression() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(&LEAVES[..]).prop_map(|leaf| format!("({leaf})"));
    leaf.prop_recursive(4, 16, 2, |inner| {
        (prop::sample::select(&AROUND[..]), inner)
            .prop_map(|(around, inner)| format!("({})", around.replace('$', &inner)))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn two_runs_have_equal_results(expressions in vec(expression(), 1..4), input in "[a-z]{0,8}", now_ms: i32, seed: [u8; 32]) {
        let source = format!("export default async (input) => [{}]", expressions.join(", "));
        let function = Function { source, input: format!("{input:?}"), now_ms: i64::from(now_ms), seed };
        let limits = Limits { ticks_max: 100, wall_ms_max: 60_000, ..Limits::default() };
        let request = Request { call: Call::Function(function), limits };
        let answer = evaluate(&request);
        prop_assert_eq!(&answer, &evaluate(&request));
        // Every source that the generator makes runs.
        prop_assert!(answer.ticks > 0, "{:?}", answer);
    }
}
