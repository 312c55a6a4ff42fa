//! The hostile functions, as a table.

use super::pool::{Neighbor, command};
use crate::WORKER;
use mainspring_sandbox::FaultKind::{
    Crashed, MemoryExceeded, NeverSettles, NotJson, ResultTooLarge, SchemaInvalid, SchemaMismatch, SourceTooLarge,
    StackExceeded, Syntax, Threw, TicksExceeded, TimeExceeded,
};
use mainspring_sandbox::{Call, FaultKind, Function, Limits, Request, Response, Validate, Workers, limits};
use std::thread;

/// The accepted outcome of a function. If two limits compete, it depends on the speed of the machine.
enum Outcome {
    Is(&'static str),
    /// One of these faults.
    Fails(&'static [FaultKind]),
}
use Outcome::{Fails, Is};

const ENDED: Outcome = Fails(&[TicksExceeded, TimeExceeded]);
const MEMORY: Outcome = Fails(&[MemoryExceeded]);
const STACK: Outcome = Fails(&[StackExceeded]);
const THREW: Outcome = Fails(&[Threw]);

/// The body of `async (input) => { … }`, where `input` is `{"__proto__": {"polluted": 1}, "a": 1}`.
const BODIES: &[(&str, Outcome)] = &[
    // Loops of all kinds.
    ("for (;;);", ENDED),
    ("while (true) {}", ENDED),
    ("do {} while (1)", ENDED),
    ("a: for (;;) { continue a }", ENDED),
    ("for (const x of {[Symbol.iterator]: () => ({next: () => ({done: false})})});", ENDED),
    ("const a = [1]; for (const x of a) a.push(x);", Fails(&[TicksExceeded, TimeExceeded, MemoryExceeded])),
    ("function* g() { for (;;) yield 1 } for (const x of g());", ENDED),
    ("for (;;) { try { throw 1 } catch {} finally { continue } }", ENDED),
    ("for (;;) { try { for (;;); } catch { } }", ENDED),
    ("try { for (;;); } catch { return 1 } finally { return 2 }", ENDED),
    ("[1].forEach(function f() { for (;;); })", ENDED),
    ("JSON.parse('[1]', () => { for (;;); })", ENDED),
    ("[3, 2, 1].sort(() => { for (;;); })", ENDED),
    ("'a'.replace(/a/, () => { for (;;); })", ENDED),
    ("new Proxy({}, {get() { for (;;); }}).x", ENDED),
    ("eval('for (;;);')", ENDED),
    ("Function('for (;;);')()", ENDED),
    // Recursion of all kinds, caught and not.
    ("const f = () => f() + 1; return f()", STACK),
    ("const f = () => { try { f() } catch {} }; f(); return 1", STACK),
    ("const o = {get x() { return o.x }}; return o.x", STACK),
    ("const o = {toJSON() { return JSON.stringify(o) }}; return o", STACK),
    ("JSON.parse('[1]', function f() { return JSON.parse('[1]', f) })", STACK),
    ("const p = new Proxy({}, {get: (_, key) => p[key]}); return p.x", STACK),
    ("const o = {toString() { return `${o}` }}; return `${o}`", STACK),
    ("const o = {[Symbol.toPrimitive]() { return +o }}; return +o", STACK),
    ("let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return a", STACK),
    ("return JSON.parse('['.repeat(1e6))", STACK),
    ("return new RegExp('(?:'.repeat(1e6) + ')'.repeat(1e6)).test('')", Fails(&[StackExceeded, MemoryExceeded])),
    ("return eval('('.repeat(1e6))", Fails(&[StackExceeded, MemoryExceeded])),
    (
        "let f = () => 1; for (let i = 0; i < 1e6; i++) f = f.bind(null); return f()",
        Fails(&[StackExceeded, MemoryExceeded, TicksExceeded]),
    ),
    (
        "let p = {}; for (let i = 0; i < 1e6; i++) p = new Proxy(p, {}); return p.x",
        Fails(&[StackExceeded, MemoryExceeded]),
    ),
    ("let o = {}; for (let i = 0; i < 1e6; i++) o = Object.create(o); return 'x' in o", Fails(&[MemoryExceeded])),
    // Memory of all kinds, caught and not.
    ("return 'x'.repeat(2 ** 29)", MEMORY),
    ("let s = 'x'; for (;;) s += s", Fails(&[MemoryExceeded, Threw])),
    ("const a = []; for (;;) a.push(a)", MEMORY),
    ("let l; for (;;) l = {l}", MEMORY),
    ("new Array(2 ** 32 - 1).fill(0)", Fails(&[MemoryExceeded, TicksExceeded, TimeExceeded])),
    ("return new Uint8Array(1e9)", MEMORY),
    ("const a = []; for (;;) a.push(new Float64Array(1e5))", MEMORY),
    ("return new ArrayBuffer(8, {maxByteLength: 2 ** 40}).resize(2 ** 39)", Fails(&[MemoryExceeded, Threw])),
    ("let b = 3n; for (;;) b *= b", Fails(&[Threw, TimeExceeded])),
    ("return 2n ** (2n ** 60n)", THREW),
    ("let x = 7n ** 150000n, y = x; for (let i = 0; i < 1e6; i++) y = (x * x) / x; return String(y)", ENDED),
    ("try { new Uint8Array(1e9) } catch { return 1 }", MEMORY),
    ("let l; try { for (;;) l = {l} } catch { l = null; return 1 }", MEMORY),
    ("const m = new Map(); try { for (let i = 0; ; i++) m.set(i, i) } finally { m.clear(); return 1 }", MEMORY),
    ("const r = []; for (;;) { const a = {}; a.a = a }", MEMORY),
    // Native calls that do not check their limits.
    ("return Array.prototype.indexOf.call({length: 2 ** 53 - 1}, 1)", ENDED),
    ("return 'a'.repeat(4e6).indexOf('a'.repeat(2e6) + 'b')", Fails(&[TimeExceeded])),
    ("return 'a'.repeat(4e6).split('a'.repeat(2e6) + 'b')", Fails(&[TimeExceeded])),
    ("return Array.prototype.join.call({length: 2 ** 32}, '')", ENDED),
    ("return Array.prototype.reverse.call({length: 2 ** 53 - 1})", ENDED),
    ("return Array.prototype.sort.call({length: 2 ** 30})", Fails(&[TicksExceeded, TimeExceeded, MemoryExceeded])),
    ("const a = []; a.length = 2 ** 32 - 1; return a.includes(1)", ENDED),
    ("return new Uint8Array(6e7).toSorted(() => 0).length", Fails(&[TicksExceeded, TimeExceeded, MemoryExceeded])),
    // Regular expressions with unbounded backtracking.
    ("return /^(a+)+$/.test('a'.repeat(50) + '!')", ENDED),
    ("return /(x+x+)+y/.test('x'.repeat(100))", ENDED),
    ("return /(.*)*(.*)*(.*)*z/s.test('ab'.repeat(5000))", Fails(&[TicksExceeded, TimeExceeded, MemoryExceeded])),
    // Promises.
    ("return new Promise(() => {})", Fails(&[NeverSettles])),
    ("await {then() {}}", Fails(&[NeverSettles])),
    ("const p = (async () => { await p })(); await p", Fails(&[NeverSettles, Threw])),
    ("const f = () => Promise.resolve().then(f); return f()", Fails(&[TicksExceeded, TimeExceeded, MemoryExceeded])),
    ("const f = () => { queueMicrotask(f) }; f(); await new Promise(() => {})", ENDED),
    ("const o = {then(resolve) { resolve(o) }}; return o", ENDED),
    ("return {then() { for (;;); }}", ENDED),
    ("return {get then() { for (;;); }}", ENDED),
    ("async function* g() { for (;;) yield 1 } for await (const x of g());", ENDED),
    ("for (;;) await null", ENDED),
    ("Promise.reject(new Error('nobody looks')); return 1", Is("1")),
    ("Promise.resolve().then(() => { for (;;); }); return 1", Is("1")),
    // Thrown values.
    ("throw null", THREW),
    ("throw undefined", THREW),
    ("throw Symbol('s')", THREW),
    ("throw () => 1", THREW),
    ("throw 10n", THREW),
    ("throw {toString() { throw 1 }, toJSON() { throw 2 }}", THREW),
    ("throw {toJSON() { for (;;); }}", ENDED),
    ("throw new Proxy({}, {get() { throw 1 }, ownKeys() { throw 2 }})", THREW),
    ("throw new Proxy(new Error('x'), {get() { for (;;); }})", Fails(&[TicksExceeded, TimeExceeded, Threw])),
    ("const e = new Error('x'); Object.defineProperty(e, 'message', {get() { for (;;); }}); throw e", ENDED),
    ("const e = new Error('x'); Object.defineProperty(e, 'stack', {get() { for (;;); }}); throw e", ENDED),
    ("const e = new Error('x'); e.name = {toString() { throw e }}; e.message = Symbol(); throw e", THREW),
    ("throw Object.assign(new Error('x'.repeat(1e6)), {stack: 'y'.repeat(1e6)})", THREW),
    ("class E extends Error { get message() { for (;;); } } throw new E()", ENDED),
    (
        "class E extends Error { get message() { return new E().message } } throw new E()",
        Fails(&[StackExceeded, Threw]),
    ),
    // Results.
    ("return 'x'.repeat(3e5)", Fails(&[ResultTooLarge])),
    ("return Array(2e5).fill(0)", Fails(&[ResultTooLarge])),
    (
        "const a = ['x']; for (let i = 0; i < 40; i++) a.push([a[i], a[i]]); return a[40]",
        Fails(&[MemoryExceeded, TicksExceeded, TimeExceeded]),
    ),
    ("return new Proxy({}, {ownKeys() { for (;;); }})", ENDED),
    (
        "return new Proxy([], {get: (_, key) => key === 'length' ? 2 ** 53 : 1})",
        Fails(&[MemoryExceeded, TicksExceeded, TimeExceeded]),
    ),
    ("return {get a() { throw new Error('late') }}", THREW),
    ("const a = {}; a.a = a; return a", Fails(&[NotJson])),
    ("return {a: 1n}", Fails(&[NotJson])),
    ("return {[Symbol('a')]: 1, b: Symbol('c')}", Is("{}")),
    ("return [input.polluted === undefined, Object.keys(input), input.a]", Is("[true,[\"__proto__\",\"a\"],1]")),
    // Changes to functions that the host might use.
    ("JSON.stringify = () => 'x'; JSON.parse = null; return {a: 1}", Is("{\"a\":1}")),
    ("Object.prototype.toJSON = () => 'mine'; return {a: 1}", Is("\"mine\"")),
    ("Object.prototype.toJSON = () => { for (;;); }; return {a: 1}", ENDED),
    ("Object.prototype.then = function () { for (;;); }; return {}", ENDED),
    ("Promise.prototype.then = () => { throw 1 }; Promise.resolve = null; return 5", Is("5")),
    ("globalThis.Promise = null; globalThis.Array = null; globalThis.Object = null; return [1]", Is("[1]")),
    ("Date = null; Math.random = null; console.log = null; return 1", Is("1")),
    ("RegExp.prototype.exec = () => { for (;;); }; return new Date('2020-01-01T00:00').getTime()", Is("1577836800000")),
    (
        "const all = globalThis, {deleteProperty} = Reflect; for (const k of Object.getOwnPropertyNames(all)) deleteProperty(all, k); return 1",
        Is("1"),
    ),
    ("Object.freeze(globalThis); Object.freeze(Object.prototype); return 1", Is("1")),
    ("Error.prepareStackTrace = () => { for (;;); }; Error.stackTraceLimit = 1e9; null.x", THREW),
    ("Object.defineProperty(Error.prototype, 'message', {get() { for (;;); }}); throw new Error()", ENDED),
    ("Object.setPrototypeOf(Object.getPrototypeOf(() => 1), new Proxy({}, {get() { throw 1 }})); return 1", Is("1")),
    // The code's `Date` calls the language's own `Date` through no function that the code can change.
    (
        "const seen = [], later = [], {apply} = Reflect;
         for (const home of [Reflect, Object, Object.prototype, Function.prototype, RegExp.prototype, String.prototype,
                             Array.prototype, Number, Math]) {
             for (const key of Reflect.ownKeys(home)) {
                 const own = Object.getOwnPropertyDescriptor(home, key).value;
                 if (typeof own !== 'function' || key === 'constructor') continue;
                 const spy = function (...given) {
                     for (let i = 0; i < given.length; i++) seen[seen.length] = given[i];
                     seen[seen.length] = this;
                     return apply(own, this, given);
                 };
                 later[later.length] = () => { try { home[key] = spy } catch {} };
             }
         }
         for (let i = 0; i < later.length; i++) later[i]();
         [new Date(), new Date(1, 2), Date(), Date.parse('1 Jan 2020 UTC'), String(new Date('2020-01-01T10:00'))];
         let found = 0;
         for (let i = 0; i < seen.length; i++) if (typeof seen[i] === 'function' && seen[i].UTC && seen[i] !== Date) found++;
         return found + ' of ' + (seen.length > 0)",
        Is("\"0 of true\""),
    ),
    // Escapes.
    ("return await eval('import(\"fs\")')", THREW),
    (
        "return Function('return typeof process + typeof require + typeof fetch')()",
        Is("\"undefinedundefinedundefined\""),
    ),
    (
        "return (() => {}).constructor('return this.constructor.constructor(\"return typeof std\")()')()",
        Is("\"undefined\""),
    ),
    ("return [].concat.constructor('return globalThis')() === globalThis", Is("true")),
    // The console.
    ("for (let i = 0; i < 1e4; i++) console.log('x'.repeat(1000)); return 1", Is("1")),
    ("console.log('x'.repeat(3e7)); return 1", Fails(&[MemoryExceeded, Threw])),
    ("console.log({toJSON() { console.log('inner'); for (;;); }}); return 1", ENDED),
    ("console.log(new Proxy({}, {ownKeys() { throw 1 }})); return 1", Is("1")),
    ("const a = {}; a.a = a; console.log(a, 1n, Symbol(), () => 1, new Error('x')); return 1", Is("1")),
    ("const e = new Error('x'); Object.defineProperty(e, 'name', {get() { for (;;); }}); console.log(e)", ENDED),
    ("console.log.call(null, ...Array(6e4).fill('x')); return 1", Is("1")),
];

/// Nesting too deep for the parser or the interpreter; a build without optimization may be slow.
const DEEP: Outcome = Fails(&[StackExceeded, Syntax, Crashed, MemoryExceeded, TimeExceeded]);

/// Whole sources.
fn hostile_sources() -> Vec<(String, Outcome)> {
    let deep =
        |open: &str, close: &str, count| format!("export default () => {}1{}", open.repeat(count), close.repeat(count));
    vec![
        ("for (;;); export default () => 1".into(), ENDED),
        ("await new Promise(() => {}); export default () => 1".into(), Fails(&[NeverSettles])),
        ("export default new Proxy(() => 1, {apply() { for (;;); }})".into(), ENDED),
        ("export default () => { /*".into(), Fails(&[Syntax])),
        ("export default () => `${".into(), Fails(&[Syntax])),
        (format!("export default () => 1 /*{}*/", "x".repeat(limits::SOURCE_BYTES_MAX)), Fails(&[SourceTooLarge])),
        (deep("(", ")", 100_000), DEEP),
        (deep("[", "]", 100_000), DEEP),
        (deep("-(", ")", 50_000), DEEP),
        (deep("{a:", "}", 50_000).replace("=> {", "=> ({") + ")", DEEP),
        (format!("export default () => 1{}", "+1".repeat(60_000)), Is("60001")),
        (format!("export default () => {}1", "!".repeat(200_000)), DEEP),
        ("\0\u{feff}\u{2028}".into(), Fails(&[Syntax])),
    ]
}

fn function(source: String, outcome: &Outcome) -> Request {
    let input = r#"{"__proto__": {"polluted": 1}, "a": 1}"#.to_owned();
    let call = Call::Function(Function { source, input, now_ms: 0, seed: [3; 32] });
    // A short time limit where time may be the outcome; a long one elsewhere, so that it is not reached first on a busy
    // machine.
    let wall_ms_max = match outcome {
        Fails(kinds) if kinds.contains(&TimeExceeded) => 300,
        _ => 10_000,
    };
    Request { call, limits: Limits { wall_ms_max, ..SMALL } }
}

/// Small limits, since there are many cases.
const SMALL: Limits =
    Limits { ticks_max: 500, wall_ms_max: 300, memory_bytes_max: 16 * 1024 * 1024, result_bytes_max: 256 * 1024 };

/// Returns a description of an unexpected answer.
fn check_answer(workers: &Workers, request: &Request, outcome: &Outcome) -> Option<String> {
    let answer = workers.call("", request);
    let is_expected = match (outcome, &answer.result) {
        (Is(expected), Ok(text)) => text == expected,
        (Fails(kinds), Err(fault)) => kinds.contains(&fault.kind),
        _ => false,
    };
    let fault = answer.result.as_ref().err();
    let is_short = fault.is_none_or(|fault| fault.message.len() <= 2_048 && fault.stack.len() <= 4_096);
    let bytes: usize = answer.console.lines.iter().map(|line| line.text.len()).sum();
    let is_bounded = answer.console.lines.len() <= limits::CONSOLE_LINES_MAX && bytes <= limits::CONSOLE_BYTES_MAX;
    // Faults of time may differ between two runs.
    let is_timed = |answer: &Response| matches!(&answer.result, Err(fault) if fault.kind == TimeExceeded);
    let again = workers.call("", request);
    let is_same = is_timed(&answer) || is_timed(&again) || again == answer;
    let told = || format!("{answer:?}, then {again:?}").chars().take(1_000).collect();
    (!(is_expected && is_short && is_bounded && is_same)).then(told)
}

/// Runs each function on one worker while another call runs on the second.
fn all(requests: Vec<(String, Request, &Outcome)>) {
    let workers = Workers::with_count(command(WORKER), 2);
    let neighbor = Neighbor::new(&workers);
    let mut wrong = String::new();
    thread::scope(|scope| {
        let _ends = neighbor.continues(scope);
        for (name, request, outcome) in &requests {
            let before = neighbor.answers();
            if let Some(told) = check_answer(&workers, request, outcome) {
                wrong.push_str(&format!("{name}\n    {told}\n"));
            }
            neighbor.wait_for_more_than(before);
        }
    });
    assert!(wrong.is_empty(), "\n{wrong}");
}

pub(crate) fn functions() {
    let bodies = BODIES.iter().map(|(body, outcome)| {
        (body.to_string(), function(format!("export default async (input) => {{ {body}\n}}"), outcome), outcome)
    });
    all(bodies.collect());
}

pub(crate) fn sources() {
    let sources = hostile_sources();
    all(sources
        .iter()
        .map(|(source, outcome)| (beginning(source), function(source.clone(), outcome), outcome))
        .collect());
}

/// Sources that are only checked are as hostile.
pub(crate) fn checks() {
    let workers = Workers::with_count(command(WORKER), 1);
    for (source, _) in hostile_sources() {
        let name = beginning(&source);
        let request = Request { call: Call::CheckFunction { source }, limits: SMALL };
        let (answer, again) = (workers.call("", &request), workers.call("", &request));
        assert_eq!(answer.result.is_ok(), again.result.is_ok(), "{name}");
        let expected = [StackExceeded, Syntax, Crashed, SourceTooLarge, MemoryExceeded, TimeExceeded];
        let is_expected = answer.result.as_ref().err().is_none_or(|fault| expected.contains(&fault.kind));
        assert!(is_expected, "{name}: {answer:?}");
    }
}

pub(crate) fn schemas() {
    let doubled = |level: usize| {
        format!(r##""a{level}": {{"allOf": [{{"$ref": "#/$defs/a{0}"}}, {{"$ref": "#/$defs/a{0}"}}]}}"##, level + 1)
    };
    let doubled: Vec<String> = (0..40).map(doubled).collect();
    let doubled = format!(r##"{{"$ref": "#/$defs/a0", "$defs": {{{}, "a40": true}}}}"##, doubled.join(","));
    let nested = format!("{}true{}", r#"{"not":"#.repeat(100_000), "}".repeat(100_000));
    let dynamic = r##"{"$dynamicAnchor": "a", "allOf": [{"$dynamicRef": "#a"}]}"##;
    let invalid = || Fails(&[SchemaInvalid]);
    let cases: [(&str, &str, Outcome); 9] = [
        (r##"{"$ref": "#"}"##, "1", invalid()),
        (
            r##"{"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}"##,
            "1",
            invalid(),
        ),
        (dynamic, "1", Is("1")),
        (&doubled, "1", Fails(&[SchemaInvalid, TimeExceeded, Crashed])),
        (&nested, "1", invalid()),
        ("[]", "1", invalid()),
        (r#"{"pattern": "(((a{100}){100}){100}){100}"}"#, "\"a\"", invalid()),
        (
            r#"{"pattern": "^(a|a)*$"}"#,
            "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!\"",
            Fails(&[SchemaMismatch]),
        ),
        (r#"{"multipleOf": 1e-300}"#, "1e300", Is("1e300")),
    ];
    let request = |schema: &str, value: &str| {
        let call = Call::Validate(Validate { schema: schema.into(), value: value.into(), fill_defaults: true });
        Request { call, limits: SMALL }
    };
    all(cases.iter().map(|(schema, value, outcome)| (beginning(schema), request(schema, value), outcome)).collect());
}

fn beginning(text: &str) -> String {
    text.chars().take(100).collect()
}
