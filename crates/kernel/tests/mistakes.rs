//! A corpus of wrong definitions. Each has a mark before the mistake. The compiler must report a diagnostic there, and a
//! program that follows the help must get a definition that compiles.
//!
//! The program knows three rules. It applies the fixes of all diagnostics. If a diagnostic has none, it
//! removes the part of which the help says so ("leave it out", "take it out", "keep one of them"), or takes the first
//! quoted fragment after "write": keys with values replace the key at the place, or are added to the object there, and
//! any other fragment replaces the value at the place. In a text that cannot be read it replaces the line or the lines that
//! the help names, or takes them out.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use mainspring_kernel::{
    definition::{Complaint, FunctionTypes, Inspector, Syntax, compile_with, read},
    diagnostic::{self, Diagnostic, Severity},
    document::{Document, Path, Place, Segment},
    fix::{Change, Fix},
    json,
    value::Value,
};

/// The sign in front of a mistake.
const MARK: char = '§';

/// The share of definitions that the program must fix at the first try, in thousandths.
const FIXED_PERMILLE_MIN: usize = 950;

/// The number of further definitions that the program must fix.
const FURTHER_FIXED_MIN: usize = 37;

/// Definitions that the program does not fix: mostly whole files of other tools, circles, references to a value that is
/// not there yet, and texts of which a part is missing. The list only becomes shorter.
const UNFIXED: &str = include_str!("mistakes/unfixed.txt");

/// Definitions whose diagnostic is elsewhere than the mark: at another part of the same contradiction.
const ELSEWHERE: [&str; 7] = [
    "nesting: command in arguments",
    "nesting: command in config",
    "structure: cycle of edges",
    "structure: cycle of needs",
    "structure: cycle of references",
    "structure: retry and config",
    "structure: type and action",
];

/// One wrong definition.
struct Mistake {
    class: String,
    name: String,
    /// The definition without the mark.
    text: String,
    /// Line and column of the mark.
    place: (u32, u32),
    /// A part of the fixed definition as JSON; empty if the compiler cannot know it.
    fixed: String,
}

/// Checks functions and schemas like the sandbox, as far as the corpus needs it.
struct Checks;

impl Inspector for Checks {
    fn source(&self, source: &str) -> Result<FunctionTypes, Complaint> {
        if source.trim_start().starts_with("export default") {
            return Ok(FunctionTypes::default());
        }
        let message = "the function exports nothing".to_string();
        Err(Complaint { message, help: "write `export default function (input) { … }`".to_string() })
    }

    fn schema(&self, _: &Value) -> Result<(), Complaint> {
        Ok(())
    }
}

fn corpus() -> Vec<Mistake> {
    corpus_in("")
}

/// Returns the definitions of a folder inside of the corpus.
fn corpus_in(folder: &str) -> Vec<Mistake> {
    let folder = format!("{}/tests/mistakes/{folder}", env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<_> =
        fs::read_dir(folder).expect("the corpus").map(|entry| entry.expect("a file").path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    let mut found = Vec::new();
    for file in files {
        let class = file.file_stem().expect("a name").to_string_lossy().into_owned();
        let document = read(&fs::read(&file).expect("a file"), Syntax::Yaml).unwrap_or_else(|error| panic!("{error}"));
        for entry in document.value.as_list().expect("a list") {
            let text = |key: &str| entry.get(key).and_then(Value::as_text).unwrap_or_else(|| panic!("{class}: {key}"));
            let (before, after) = text("text").split_once(MARK).unwrap_or_else(|| panic!("{}: a mark", text("name")));
            let line = before.matches('\n').count() as u32 + 1;
            let column = before.rsplit('\n').next().expect("a line").chars().count() as u32 + 1;
            found.push(Mistake {
                class: class.clone(),
                name: text("name").into(),
                text: format!("{before}{after}"),
                place: (line, column),
                fixed: text("fix").into(),
            });
        }
    }
    found
}

/// Returns the document, if the text can be read, and all diagnostics.
fn findings(text: &str) -> (Option<Document>, Vec<Diagnostic>) {
    match read(text.as_bytes(), Syntax::Guess) {
        Err(unreadable) => (None, vec![unreadable]),
        Ok(document) => {
            let found = compile_with(&document, &Checks).map_or_else(|found| found, |compiled| compiled.warnings);
            (Some(document), found)
        }
    }
}

impl Mistake {
    /// True if a diagnostic is at the mark: at the key there, at its value, or at the object directly around it.
    fn is_place_of(&self, found: &Diagnostic) -> bool {
        let Some(place) = found.place else { return false };
        let mark = Place { line: self.place.0, column: self.place.1 };
        let Ok(document) = read(self.text.as_bytes(), Syntax::Guess) else {
            return place.line == mark.line || place.line == mark.line + 1;
        };
        let mut all = Vec::new();
        paths(&document.value, &Path::root(), &mut all);
        let is_marked = |path: &&Path| document.key_place(path) == Some(mark) || document.place(path) == Some(mark);
        let near = |path: &Path| {
            let segments = path.segments();
            let around = at(&segments[..segments.len().saturating_sub(1)]);
            [document.key_place(path), document.place(path), document.place(&around)]
        };
        place == mark || all.iter().filter(is_marked).any(|path| near(path).contains(&Some(place)))
    }

    /// Follows the help of the diagnostics, and returns why the definition is not fixed.
    fn try_to_fix(&self) -> Result<(), String> {
        let (document, found) = findings(&self.text);
        let errors: Vec<_> = found.iter().filter(|found| found.severity == Severity::Error).collect();
        let followed: Vec<_> = match errors.is_empty() {
            true => found.iter().filter(|found| self.is_place_of(found)).collect(),
            false => errors,
        };
        let fixed = match document {
            None => findings(&fixed_text(&self.text, followed[0]).ok_or("no replacement in the help")?),
            Some(document) => {
                let mut value = document.value.clone();
                // An error without a replacement may follow from another one.
                let fix = |found: &Diagnostic| {
                    if found.fix.is_empty() { literal_fix(found) } else { Some(found.fix.clone()) }
                };
                if followed.iter().all(|found| fix(found).is_none()) {
                    let first = followed.first().map_or("nothing is reported".into(), |found| found.to_string());
                    return Err(format!("no replacement in the help: {first}"));
                }
                let mut applied: Vec<Fix> = Vec::new();
                for (found, fix) in followed.iter().filter_map(|found| Some((found, fix(found)?))) {
                    // Several diagnostics may have one fix that is for all of them.
                    if !applied.contains(&fix) {
                        value = fix.apply(&value).ok_or_else(|| format!("the fix does not apply: {found}"))?;
                        applied.push(fix);
                    }
                }
                let document = Document::placeless(value);
                let found = compile_with(&document, &Checks).map_or_else(|found| found, |compiled| compiled.warnings);
                (Some(document), found)
            }
        };
        let Some(document) = fixed.0 else { return Err(format!("still unreadable: {}", fixed.1[0])) };
        if let Some(error) = fixed.1.iter().find(|found| found.severity == Severity::Error) {
            return Err(format!("still wrong: {error}"));
        }
        let shown = json::compact(&document.value);
        if shown.contains(&self.fixed) { Ok(()) } else { Err(format!("another meaning: {shown}")) }
    }
}

/// Returns the first quoted fragment after "write" in a help text.
fn fragment(help: &str) -> Option<Value> {
    let start = help.find("write `")? + "write `".len();
    let end = start + help[start..].find('`')?;
    let text = &help[start..end];
    let as_field = format!("{{{text}}}");
    let is_field = text.split_once(": ").is_some_and(|(key, _)| key.chars().all(char::is_alphanumeric));
    if text.starts_with('@') {
        return Some(Value::text(text));
    }
    let text = if is_field { as_field.as_str() } else { text };
    read(text.as_bytes(), Syntax::Yaml).ok().map(|document| document.value)
}

fn at(segments: &[Segment]) -> Path {
    segments.iter().fold(Path::root(), |path, segment| match segment {
        Segment::Key(key) => path.key(key),
        Segment::Index(index) => path.index(*index),
    })
}

/// Reads the change from the help text of a diagnostic that has no fix.
fn literal_fix(found: &Diagnostic) -> Option<Fix> {
    const REMOVE: [&str; 3] = ["leave it out", "take it out", "keep one of them"];
    if REMOVE.iter().any(|words| found.help.starts_with(words)) {
        return Some(Fix([Change::Remove { path: found.path.clone() }].into()));
    }
    let literal = fragment(&found.help)?;
    let segments = found.path.segments();
    let parent = at(&segments[..segments.len().saturating_sub(1)]);
    let add = |holder: &Path, changes: &mut Vec<Change>| {
        for (key, value) in literal.as_map().into_iter().flatten() {
            changes.push(Change::Add { path: holder.key(key), value: value.clone() });
        }
    };
    let is_key = [diagnostic::UNKNOWN_KEY, diagnostic::MISPLACED_KEY, diagnostic::EXCLUSIVE_KEYS].contains(&found.code);
    let mut changes = Vec::new();
    match &literal {
        Value::Map(_) if is_key => {
            changes.push(Change::Remove { path: found.path.clone() });
            add(&parent, &mut changes);
        }
        Value::Map(_) if found.code == diagnostic::MISSING_KEY => add(&found.path, &mut changes),
        Value::Text(key) if is_key => {
            changes.push(Change::Move { from: found.path.clone(), path: parent.key(key) });
        }
        value => changes.push(Change::Replace { path: found.path.clone(), value: (*value).clone() }),
    }
    Some(Fix(changes.into()))
}

/// Replaces the lines of an unreadable text by those that the help names, or takes them out.
fn fixed_text(text: &str, found: &Diagnostic) -> Option<String> {
    const LINE: &str = "write the line as `";
    const LINES: &str = "write the lines ";
    const WITHOUT: &str = "leave out the lines ";
    let mut lines: Vec<String> = text.lines().map(String::from).collect();
    if let Some(numbers) = found.help.strip_prefix(WITHOUT).and_then(|rest| rest.split_once(':')) {
        for number in numbers.0.rsplit(" and ") {
            lines.remove(number.parse::<usize>().ok()? - 1);
        }
    } else if let Some(start) = found.help.find(LINES) {
        let named = found.help[start..].split('`').skip(1).step_by(2).map(String::from);
        let first = found.place?.line as usize - 1;
        let named: Vec<String> = named.collect();
        lines.splice(first..first + named.len(), named);
    } else {
        let start = found.help.find(LINE)? + LINE.len();
        let end = start + found.help[start..].rfind('`')?;
        *lines.get_mut(found.place?.line as usize - 1)? = found.help[start..end].to_string();
    }
    Some(lines.join("\n"))
}

/// Returns the paths of all parts of a value.
fn paths(value: &Value, path: &Path, found: &mut Vec<Path>) {
    found.push(path.clone());
    match value {
        Value::Map(map) => map.iter().for_each(|(key, value)| paths(value, &path.key(key), found)),
        Value::List(items) => items.iter().enumerate().for_each(|(at, item)| paths(item, &path.index(at), found)),
        _ => {}
    }
}

#[test]
fn each_mistake_is_reported_at_its_position() {
    let lost: Vec<_> = corpus()
        .iter()
        .filter(|mistake| !ELSEWHERE.contains(&format!("{}: {}", mistake.class, mistake.name).as_str()))
        .filter(|mistake| !findings(&mistake.text).1.iter().any(|found| mistake.is_place_of(found)))
        .map(|mistake| {
            let found = findings(&mistake.text).1;
            let found: Vec<_> = found.iter().map(ToString::to_string).collect();
            format!("{}: {} at {:?}: {found:?}", mistake.class, mistake.name, mistake.place)
        })
        .collect();
    assert!(lost.is_empty(), "{} of {}:\n{}", lost.len(), corpus().len(), lost.join("\n"));
}

#[test]
fn a_program_fixes_nearly_all_by_the_help() {
    let corpus = corpus();
    let mut unfixed: BTreeMap<String, String> = BTreeMap::new();
    for mistake in &corpus {
        if let Err(why) = mistake.try_to_fix() {
            unfixed.insert(format!("{}: {}", mistake.class, mistake.name), why);
        }
    }
    let fixed = corpus.len() - unfixed.len();
    println!("{fixed} of {} wrong definitions are fixed at the first try", corpus.len());
    let listed: Vec<_> = unfixed.iter().map(|(name, why)| format!("{name}: {why}")).collect();
    assert!(fixed * 1000 >= FIXED_PERMILLE_MIN * corpus.len(), "{fixed} of {}:\n{}", corpus.len(), listed.join("\n"));
    let expected: BTreeSet<_> = UNFIXED.lines().collect();
    let names: BTreeSet<_> = unfixed.keys().map(String::as_str).collect();
    assert_eq!(names, expected, "\n{}", listed.join("\n"));
}

/// Forty definitions that were written after the rules: a measure of how general they are.
#[test]
fn further_definitions_are_fixed_as_well() {
    let corpus = corpus_in("further");
    let unfixed: Vec<_> = corpus
        .iter()
        .filter_map(|mistake| mistake.try_to_fix().err().map(|why| format!("{}: {why}", mistake.name)))
        .collect();
    let fixed = corpus.len() - unfixed.len();
    println!("{fixed} of {} further definitions are fixed at the first try", corpus.len());
    assert!(fixed >= FURTHER_FIXED_MIN, "{fixed} of {}:\n{}", corpus.len(), unfixed.join("\n"));
}

/// Applies a JSON Patch as RFC 6902 says: an `add` replaces a member that is there, and a patch that fails changes nothing.
fn patched(definition: &serde_json::Value, patch: &serde_json::Value) -> Option<serde_json::Value> {
    let mut value = definition.clone();
    let take = |value: &mut serde_json::Value, pointer: &str| {
        let (holder, key) = pointer.rsplit_once('/')?;
        match value.pointer_mut(holder)? {
            serde_json::Value::Object(map) => map.remove(key),
            serde_json::Value::Array(items) => {
                key.parse().ok().filter(|at| *at < items.len()).map(|at| items.remove(at))
            }
            _ => None,
        }
    };
    let put = |value: &mut serde_json::Value, pointer: &str, part: serde_json::Value| {
        let (holder, key) = pointer.rsplit_once('/')?;
        match value.pointer_mut(holder)? {
            serde_json::Value::Object(map) => drop(map.insert(key.into(), part)),
            serde_json::Value::Array(items) => items.insert(key.parse().ok().filter(|at| *at <= items.len())?, part),
            _ => return None,
        }
        Some(())
    };
    for operation in patch.as_array()? {
        let text = |key: &str| operation[key].as_str();
        let path = text("path")?;
        match text("op")? {
            "test" => (value.pointer(path) == Some(&operation["value"])).then_some(())?,
            "add" => put(&mut value, path, operation["value"].clone())?,
            "replace" => *value.pointer_mut(path)? = operation["value"].clone(),
            "remove" => drop(take(&mut value, path)?),
            _ => {
                let part = take(&mut value, text("from")?)?;
                put(&mut value, path, part)?;
            }
        }
    }
    Some(value)
}

/// A program that applies the patches of all diagnostics in order, as far as they apply, loses no value of the definition.
#[test]
fn fixes_that_are_applied_together_lose_nothing() {
    let steps = [
        r#"{"id":"a","type":"bash","command":"ls","maxAttempts":5,"initialDelayMs":100,"retryOn":["failed"]}"#,
        r#"{"id":"a","type":"bash","command":"ls","maxAttempts":5,"backoffMs":100}"#,
        r#"{"id":"a","type":"bash","command":"ls","maxAttempts":5,"backoffMs":100,"config":{"timeoutMs":1000}}"#,
        r#"{"id":"a","type":"bash","command":"ls","backoffMs":100,"config":{"maxAttempts":5}}"#,
        r#"{"id":"a","type":"bash","command":"echo @b.stdout","maxAttempts":5,"neverOn":["denied"]},{"id":"b","type":"bash","command":"ls","maxAttempts":100}"#,
    ];
    for step in steps {
        let text = format!(r#"{{"steps":[{step}],"maxSteps":7,"maxParallel":100}}"#);
        let mut value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let found = findings(&text).1;
        assert!(!found.is_empty(), "{step}");
        let mut applied = 0;
        for found in &found {
            let patch = serde_json::from_str(&json::compact(&found.fix.to_value())).expect("JSON");
            if let Some(next) = patched(&value, &patch).filter(|_| !found.fix.is_empty()) {
                (value, applied) = (next, applied + 1);
            }
        }
        let shown = value.to_string();
        assert!(applied >= 2, "{step}: {found:?}");
        for part in ["5", "100", "failed", "denied", "1000", "7"].into_iter().filter(|part| text.contains(*part)) {
            assert!(shown.contains(part), "{part} is lost: {shown}");
        }
        // Validated again, the rest is fixed, and no key excludes another.
        let again = findings(&shown).1;
        assert!(!again.iter().any(|found| found.code == diagnostic::EXCLUSIVE_KEYS), "{shown}: {again:?}");
    }
}
