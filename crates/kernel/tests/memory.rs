//! Tests that reading, compiling and hashing a hostile text takes memory in proportion to its length, whether the text
//! is accepted or rejected. The allocator of this program measures peak memory.

use std::{iter::repeat_n, sync::Mutex};

use mainspring_kernel::{
    cbor,
    definition::{Syntax, compile, read},
    json,
    limits::{DOCUMENT_BYTES_PER_BYTE, FINDINGS_BYTES_MAX},
};
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Serializes the tests of this program, because they share one allocator.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Peak memory for reading a definition, in bytes per byte of text.
const READING_PER_BYTE: usize = DOCUMENT_BYTES_PER_BYTE;

/// Peak memory for compiling, in bytes per byte of text: document, normalized form, plan and diagnostics.
const COMPILING_PER_BYTE: usize = 160;

/// Peak memory for parsing a value without positions, in bytes per byte of text. Objects with one field are the worst
/// case.
const VALUE_PER_BYTE: usize = 160;

/// Peak memory for decoding a stored value, in bytes per byte of stored form. The worst-case object has three bytes
/// there.
const STORED_PER_BYTE: usize = 320;

/// Additional memory that any text may take, in bytes.
const FREE: usize = 8 * 1024 * 1024;

/// Length of a hostile text in bytes.
const LARGE: usize = 256 * 1024;

/// Returns the peak memory of some work, in bytes above the memory before it.
fn peak_of<T>(work: impl FnOnce() -> T) -> usize {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let made = work();
    let peak = ALLOCATOR.peak_usage().saturating_sub(before);
    drop(made);
    peak
}

fn check(what: &str, text_bytes: usize, per_byte: usize, peak: usize, wrong: &mut Vec<String>) {
    if std::env::var_os("MAINSPRING_SHOW").is_some() {
        let per = peak as f64 / text_bytes as f64;
        println!("{what}: {text_bytes} bytes, {:.1} MiB, {per:.1} for each", peak as f64 / 1048576.0);
    }
    if peak > per_byte * text_bytes + FREE {
        wrong.push(format!("{what}: {peak} bytes of memory for a text of {text_bytes}"));
    }
}

/// Returns a text that repeats a part up to the length of a hostile text.
fn repeated(head: &str, piece: &str, tail: &str) -> String {
    let mut text = String::from(head);
    while text.len() + tail.len() < LARGE {
        text.push_str(piece);
    }
    text + tail
}

/// Returns a text that repeats a part, with a number in place of `N`.
fn numbered(head: &str, piece: &str, tail: &str) -> String {
    let mut text = String::from(head);
    for number in 0.. {
        if text.len() + tail.len() >= LARGE {
            break;
        }
        text.push_str(&piece.replace('N', &format!("{number:x}")));
    }
    text + tail
}

/// Returns levels of YAML aliases; each level refers several times to the level before.
fn levels(levels: usize, width: usize, first: &str, wrap: impl Fn(&str) -> String) -> String {
    let mut text = format!("a0: &a0 {first}\n");
    for level in 1..levels {
        let aliases: Vec<String> = repeat_n(format!("*a{}", level - 1), width).collect();
        text.push_str(&format!("a{level}: &a{level} {}\n", wrap(&aliases.join(", "))));
    }
    text
}

fn hostile_yaml() -> Vec<(&'static str, String)> {
    let long = "x".repeat(LARGE / 2);
    let nested: String = (0..80).map(|level| format!("&n{level} [")).collect();
    vec![
        ("seven levels of ten aliases", levels(7, 10, "[1,1,1,1,1,1,1,1,1,1]", |all| format!("[{all}]"))),
        ("twenty levels of two aliases", levels(20, 2, "[1]", |all| format!("[{all}]"))),
        (
            "levels of objects",
            levels(8, 9, "{k: v}", |all| {
                all.split(", ")
                    .enumerate()
                    .map(|(at, alias)| format!("k{at}: {alias}"))
                    .collect::<Vec<_>>()
                    .join(", ")
                    .replacen("k0", "{k0", 1)
                    + "}"
            }),
        ),
        ("one long text, and its aliases", format!("a: &a {long}\nb:\n{}", "- *a\n".repeat(100_000))),
        ("one long text, and levels of aliases", levels(6, 20, &"y".repeat(100_000), |all| format!("[{all}]"))),
        ("a long key, and aliases of its object", format!("a: &a {{{long}: 1}}\nb:\n{}", "- *a\n".repeat(100_000))),
        ("merge keys", format!("a: &a {{k: 1}}\nb:\n{}", repeated("", "- {<<: *a}\n", ""))),
        ("anchors within anchors", format!("{nested}{}", repeated("", "1,", "1") + &"]".repeat(80))),
        ("anchors of one number each", numbered("a:\n", "- &aN 1\n", "")),
        ("an anchor for every item in brackets", numbered("a: [", "&N ,", "]")),
        ("aliases of a number", repeated("a: &a 1\nb: [", "*a ,", "]")),
        ("numbers in brackets", repeated("a: [", "1,", "1]")),
        ("numbers in brackets in brackets", repeated("a: [[", "1,", "1]]")),
        ("texts in brackets", repeated("a: [", "a,", "a]")),
        ("empty lists", repeated("a: [", "[],", "[]]")),
        ("lists of one", repeated("a: [", "[1],", "[1]]")),
        ("deep lists of one", repeated("a: [", "[[[[1]]]],", "[1]]")),
        ("empty objects", repeated("a: [", "{},", "{}]")),
        ("objects of one key", repeated("a: [", "{a},", "{a}]")),
        ("pairs in brackets", repeated("a: [", "a: ,", "a]")),
        ("pairs in lines", repeated("a:\n", "- a:\n", "")),
        ("numbers in lines", repeated("a:\n", "- 1\n", "")),
        ("nothing in lines", repeated("a:\n", "-\n", "")),
        ("keys in brackets", numbered("a: {", "N,", "}")),
        ("keys in lines", numbered("", "kN:\n", "")),
        ("keys in falling order", (0..80_000).rev().map(|key| format!("k{key:08}: 1\n")).collect()),
        ("a long key", format!("? {long}\n: 1\n")),
        ("many long keys", numbered("", &format!("\"{}N\": 1\n", "k".repeat(1000)), "")),
        ("brackets that stay open", "[".repeat(LARGE)),
        ("braces that stay open", "{".repeat(LARGE)),
        ("braces and keys that stay open", "{a: ".repeat(LARGE / 4)),
        ("dashes in a line", "- ".repeat(LARGE / 2)),
        ("question marks in a line", "? ".repeat(LARGE / 2)),
        ("keys that open lines", (0..1000).map(|depth| format!("{}k:\n", " ".repeat(depth))).collect()),
        ("tags", repeated("a: [", "!!str a,", "]")),
        ("unknown tags", repeated("a: [", "!x a,", "]")),
        ("tag directives", numbered("", "%TAG !aN! tag:x\n", "--- a\n")),
        ("documents", repeated("", "--- 1\n", "")),
        ("comments", repeated("a: 1\n", "#\n", "")),
        ("a long block", format!("a: |\n{}", "  x,[]{}:\n".repeat(LARGE / 10))),
        ("a long plain text", format!("a: x\n{}", "  y\n".repeat(LARGE / 4))),
        ("escapes", format!("a: \"{}\"", "\\x41".repeat(LARGE / 4))),
        ("quotes that stay open", format!("a: \"{long}")),
        ("a number of many digits", format!("a: {}", "9".repeat(LARGE))),
        ("aliases of nothing", repeated("a: [", "*a,", "]")),
        ("binary zeros", "\0".repeat(LARGE)),
    ]
}

fn hostile_json() -> Vec<(&'static str, String)> {
    vec![
        ("numbers", repeated("[", "1,", "1]")),
        ("empty lists", repeated("[", "[],", "[]]")),
        ("lists of one", repeated("[", "[1],", "[1]]")),
        ("deep lists of one", repeated("[", "[[[[1]]]],", "1]")),
        ("empty objects", repeated("[", "{},", "{}]")),
        ("objects of one key", repeated("[", "{\"\":1},", "{}]")),
        ("objects in objects", repeated("[", "{\"\":{\"\":{\"\":1}}},", "{}]")),
        ("empty texts", repeated("[", "\"\",", "1]")),
        ("short texts", repeated("[", "\"a\",", "1]")),
        ("keys", numbered("{", "\"N\":1,", "\"\":1}")),
        ("one key again and again", repeated("{", "\"a\":1,", "\"a\":1}")),
        ("escapes", format!("[\"{}\"]", "\\n".repeat(LARGE / 2))),
        ("brackets that stay open", "[".repeat(LARGE)),
        ("a number of many digits", "9".repeat(LARGE)),
        ("a long key", format!("{{\"{}\":1}}", "k".repeat(LARGE))),
    ]
}

#[test]
fn parsing_memory_is_linear_in_the_text() {
    let _alone = ONE_AT_A_TIME.lock();
    let mut wrong = Vec::new();
    for (what, text) in hostile_yaml() {
        let peak = peak_of(|| read(text.as_bytes(), Syntax::Yaml));
        check(&format!("YAML, {what}"), text.len(), READING_PER_BYTE, peak, &mut wrong);
    }
    for (what, text) in hostile_json() {
        let peak = peak_of(|| read(text.as_bytes(), Syntax::Json));
        check(&format!("JSON, {what}"), text.len(), READING_PER_BYTE, peak, &mut wrong);
        let peak = peak_of(|| json::value(text.as_bytes()));
        check(&format!("a value, {what}"), text.len(), VALUE_PER_BYTE, peak, &mut wrong);
        if let Ok(value) = json::value(text.as_bytes()) {
            let stored = cbor::encode(&value);
            drop(value);
            let peak = peak_of(|| cbor::decode(&stored));
            check(&format!("stored, {what}"), stored.len(), STORED_PER_BYTE, peak, &mut wrong);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Decoding allocates memory for the items that are present, not for the number that a header claims.
#[test]
fn decoding_memory_is_linear_in_the_encoding() {
    let _alone = ONE_AT_A_TIME.lock();
    let mut wrong = Vec::new();
    let claims: [(&str, &[u8]); 4] = [
        ("items", &[0x9a, 0, 0x0f, 0xff, 0xff]),
        ("pairs", &[0xba, 0, 0x07, 0xff, 0xff]),
        ("text", &[0x7a, 0, 0x0f, 0xff, 0xff]),
        ("deep", &[0x81]),
    ];
    for (what, head) in claims {
        let bytes: Vec<u8> = head.iter().copied().cycle().take(LARGE).collect();
        let peak = peak_of(|| cbor::decode(&bytes));
        check(what, bytes.len(), 1, peak, &mut wrong);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns definitions that are very large in one respect, or that contain as many mistakes as possible.
fn hostile_definitions() -> Vec<(&'static str, String)> {
    let long = "k".repeat(LARGE / 4);
    let in_step =
        |key: &str, inner: String| format!(r#"{{"steps":[{{"id":"a","type":"tool","tool":"T","{key}":{inner}}}]}}"#);
    vec![
        ("steps", numbered("{\"steps\":[", r#"{"id":"sN","type":"tool","tool":"T"},"#, r#"{"type":"return"}]}"#)),
        ("steps without anything", repeated("{\"steps\":[", "{},", "{}]}")),
        ("steps that are none", repeated("{\"steps\":[", "1,", "1]}")),
        ("unknown keys", numbered("{\"steps\":[{\"type\":\"return\"}],", "\"N\":1,", "\"x\":1}")),
        ("unknown references", in_step("arguments", repeated("[", "\"@n.x\",", "1]"))),
        (
            "unknown references below a long key",
            in_step("arguments", repeated(&format!("{{\"{long}\":["), "\"@n.x\",", "1]}")),
        ),
        ("values below a long key", in_step("arguments", repeated(&format!("{{\"{long}\":["), "1,", "1]}"))),
        ("references", in_step("arguments", repeated("[", "\"@vars.x\",", "1]"))),
        ("a reference of many parts", in_step("arguments", repeated("\"@vars", ".a", "\""))),
        ("references in a text", in_step("arguments", repeated("\"", "@vars.x ", "\""))),
        (
            "references in a script",
            format!("{{\"steps\":[{{\"type\":\"bash\",\"command\":{}}}]}}", repeated("\"echo -- ", "@vars.x ", "\"")),
        ),
        (
            "references in a comment",
            format!("{{\"steps\":[{{\"type\":\"bash\",\"command\":{}}}]}}", repeated("\"# ", "@vars.x ", "\"")),
        ),
        ("foreign references", in_step("arguments", repeated("[", "\"${{a}}\",", "1]"))),
        ("inexact numbers", in_step("arguments", repeated("[", "9007199254740993,", "1]"))),
        ("conditions", in_step("when", repeated("{\"all\":[", "true,", "true]}"))),
        ("bad conditions", in_step("when", repeated("{\"all\":[", "1,", "true]}"))),
        (
            "bad types in schemas",
            in_step("outputSchema", numbered("{\"properties\":{", "\"nameN\":{\"type\":\"x\"},", "\"\":{}}}")),
        ),
        (
            "long names in a schema",
            format!(
                r#"{{"inputSchema":{{"type":"object","additionalProperties":false,"properties":{{{}}}}},"steps":[{{"id":"a","type":"tool","tool":"T","arguments":{}}}]}}"#,
                (0..30).map(|at| format!("\"{at}{}\":{{}}", "n".repeat(LARGE / 90))).collect::<Vec<_>>().join(","),
                repeated("[", "\"@input.x\",", "1]")
            ),
        ),
        (
            "edges of nobody",
            repeated("{\"nodes\":[{\"id\":\"a\",\"type\":\"return\"}],\"edges\":[", r#"{"from":"x","to":"y"},"#, "1]}"),
        ),
        ("variables", numbered("{\"steps\":[{\"type\":\"return\"}],\"variables\":{", "\"vN\":{},", "\"x\":{}}}")),
        ("one id for all", repeated("{\"steps\":[", r#"{"id":"a","type":"return"},"#, r#"{"type":"return"}]}"#)),
    ]
}

#[test]
fn compiling_memory_is_linear_in_the_text() {
    let _alone = ONE_AT_A_TIME.lock();
    let mut wrong = Vec::new();
    for (what, text) in hostile_definitions() {
        let mut shown = 0;
        let peak = peak_of(|| {
            let document = read(text.as_bytes(), Syntax::Json).expect(what);
            let compiled = compile(&document);
            let found = compiled.as_ref().err().map_or(&[][..], |found| &found[..]);
            shown = found.iter().map(|found| found.to_string().len()).sum();
            (document, compiled)
        });
        check(what, text.len(), COMPILING_PER_BYTE, peak, &mut wrong);
        if shown > 2 * FINDINGS_BYTES_MAX {
            wrong.push(format!("{what}: findings of {shown} bytes"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Ordinary use of aliases, and long scripts with many special characters, are accepted.
#[test]
fn ordinary_documents_are_read() {
    let _alone = ONE_AT_A_TIME.lock();
    let retry = "retry: &retry {maxAttempts: 3, initialDelayMs: 1000, maxDelayMs: 30000, backoff: exponential}";
    let head = format!("x:\n  {retry}\nsteps:\n");
    let steps: String =
        (0..2_000).map(|at| format!("- id: s{at}\n  type: bash\n  command: make it\n  retry: *retry\n")).collect();
    let list: Vec<String> = (0..20_000).map(|number| number.to_string()).collect();
    let object = format!("{{\"list\": [{}]}}", list.join(", "));
    for (what, text) in [
        ("one policy for two thousand steps", head + &steps),
        ("a script of many signs", format!("run: |\n{}", "  a[1]={x,y}; b: [c]\n".repeat(100_000))),
        ("a quoted script of many signs", format!("run: \"{}\"", "a[1]={x,y}; b: [c] ".repeat(100_000))),
        ("a long list in brackets", format!("list: [{}]", list.join(", "))),
        ("JSON as YAML", object.clone()),
        ("a list of lists", format!("list: [{}]", repeat_n("[1, 2, 3, 4]", 10_000).collect::<Vec<_>>().join(", "))),
    ] {
        assert!(read(text.as_bytes(), Syntax::Yaml).is_ok(), "{what}: {:?}", read(text.as_bytes(), Syntax::Yaml).err());
    }
}
