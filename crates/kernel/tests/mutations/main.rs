//! References are checked against shapes: no definition with right references has a finding, and a mutation of one reference
//! has one.
//!
//! The definitions are generated, so the program knows which references are right without asking the compiler. A seed
//! determines a definition. `MAINSPRING_SEEDS` sets their number, `MAINSPRING_SEED` the first seed.

mod author;
#[path = "../generated/numbers.rs"]
mod numbers;
mod repository;

use std::collections::BTreeMap;

use author::{Author, Definition, Written};
use mainspring_kernel::{
    definition::{Complaint, FunctionTypes, Inspector, compile_with},
    diagnostic::Diagnostic,
    document::Document,
    json,
    value::Value,
};
use numbers::Numbers;

/// Definitions of an ordinary run, unless `MAINSPRING_SEEDS` is set.
const SEEDS_DEFAULT: u64 = 300;

/// Mutations of each kind that have to be found, in percent.
const FOUND_MIN: usize = 98;

/// Knows the types of functions and the outputs of other workflows.
struct Outside<'d>(&'d BTreeMap<String, Value>);

impl Inspector for Outside<'_> {
    fn source(&self, source: &str) -> Result<FunctionTypes, Complaint> {
        // The sandbox reads types from the source; here they are in a comment.
        let types = source.split_once("// ").and_then(|(_, types)| json::value(types.as_bytes()).ok());
        Ok(FunctionTypes { result: types })
    }

    fn schema(&self, _: &Value) -> Result<(), Complaint> {
        Ok(())
    }

    fn workflow(&self, name: &str) -> Option<Value> {
        self.0.get(name).cloned()
    }
}

fn findings(definition: &Definition, value: Value) -> Vec<Diagnostic> {
    let compiled = compile_with(&Document::placeless(value), &Outside(&definition.outside));
    compiled.map_or_else(|found| found, |compiled| compiled.warnings)
}

/// The kinds of mutations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// A typing error in the name of a step.
    StepName,
    /// A typing error in the first part of a path below a step.
    OutputKey,
    /// A typing error in a later part.
    NestedPath,
    /// A typing error below `@item`.
    ItemKey,
    /// A typing error in the name of a variable.
    Variable,
    /// A typing error in a property of the input.
    Input,
    /// A name that other values have, and this one does not.
    SwappedKey,
    /// A reference to another step, which does not have this key.
    SwappedStep,
}

/// Makes a typing error: a letter is left out, doubled, replaced, or swapped with the next one.
fn mistyped(name: &str, numbers: &mut Numbers) -> String {
    let mut letters: Vec<char> = name.chars().collect();
    let at = numbers.below(letters.len());
    match numbers.below(4) {
        0 if letters.len() > 3 => drop(letters.remove(at)),
        1 => letters.insert(at, letters[at]),
        2 if at + 1 < letters.len() => letters.swap(at, at + 1),
        _ => letters[at] = *numbers.pick(&['a', 'e', 'n', 't', 'x']),
    }
    letters.into_iter().collect()
}

/// Returns a typing error that is none of the known names.
fn wrong(name: &str, known: &[String], numbers: &mut Numbers) -> Option<String> {
    let is_name = |name: &String| mainspring_kernel::reference::is_name(name);
    (0..8).map(|_| mistyped(name, numbers)).find(|wrong| is_name(wrong) && !known.contains(wrong) && wrong != name)
}

/// Returns mutations of a reference, each with its text.
fn mutations(definition: &Definition, written: &Written, numbers: &mut Numbers) -> Vec<(Kind, String)> {
    let mut mutations = Vec::new();
    let is_step = definition.names.contains(&written.root);
    if is_step && let Some(name) = wrong(&written.root, &roots(definition), numbers) {
        mutations.push((Kind::StepName, Written { root: name, ..written.clone() }.text()));
    }
    let mut with_part = |at: usize, kind: Kind, name: Option<String>| {
        let mut other = written.clone();
        if let Some(name) = name {
            other.path[at].text = format!(".{name}");
            mutations.push((kind, other.text()));
        }
    };
    for (at, part) in written.path.iter().enumerate() {
        let (Some(known), Some(name)) = (&part.known, part.text.strip_prefix('.')) else { continue };
        let first = written.path[..at].iter().all(|part| part.known.is_none());
        let kind = match written.root.as_str() {
            "vars" => Kind::Variable,
            "input" => Kind::Input,
            "item" if first => Kind::ItemKey,
            _ if first => Kind::OutputKey,
            _ => Kind::NestedPath,
        };
        with_part(at, kind, wrong(name, known, numbers));
        let others: Vec<&String> = names(definition).filter(|name| !known.contains(name)).collect();
        if !others.is_empty() {
            with_part(at, Kind::SwappedKey, Some((*numbers.pick(&others)).clone()));
        }
    }
    if let Some(other) = swapped(definition, written, numbers) {
        mutations.push((Kind::SwappedStep, other.text()));
    }
    mutations
}

/// Returns the names with which a reference may begin.
fn roots(definition: &Definition) -> Vec<String> {
    let reserved = ["input", "vars", "ctx", "item", "index"].map(String::from);
    definition.names.iter().cloned().chain(reserved).collect()
}

/// Returns all names in paths of a definition.
fn names(definition: &Definition) -> impl Iterator<Item = &String> {
    let parts = definition.references.iter().flat_map(|reference| &reference.path);
    parts.filter_map(|part| part.known.as_ref()).flatten()
}

/// Returns the reference with another step at its start, of whose output the definition knows that it has no such key.
fn swapped(definition: &Definition, written: &Written, numbers: &mut Numbers) -> Option<Written> {
    let key = written.path.first()?.text.strip_prefix('.')?.to_string();
    let has_no = |other: &&Written| {
        let known = other.path.first().and_then(|part| part.known.as_ref());
        definition.names.contains(&other.root) && known.is_some_and(|known| !known.contains(&key))
    };
    let others: Vec<&Written> = definition.references.iter().filter(has_no).collect();
    let is_step = definition.names.contains(&written.root) && !others.is_empty();
    is_step.then(|| Written { root: numbers.pick(&others).root.clone(), ..written.clone() })
}

/// Counts of mutations of one kind.
#[derive(Debug, Default)]
struct Count {
    made: usize,
    found: usize,
    errors: usize,
}

#[test]
fn a_mutation_of_one_reference_is_found() {
    let number = |name: &str, default: u64| {
        std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text}")))
    };
    let (first, count) = (number("MAINSPRING_SEED", 0), number("MAINSPRING_SEEDS", SEEDS_DEFAULT));
    let (mut counts, mut references): (BTreeMap<Kind, Count>, usize) = (BTreeMap::new(), 0);
    for seed in first..first + count {
        let mut numbers = Numbers::of(seed);
        let definition = Author::write(Numbers::of(numbers.next()));
        let right = definition.value(None);
        let found = findings(&definition, right.clone());
        assert!(found.is_empty(), "seed {seed}: a false finding: {found:?}\n{}", json::pretty(&right));
        references += definition.references.len();
        for (at, written) in definition.references.iter().enumerate() {
            for (kind, other) in mutations(&definition, written, &mut numbers) {
                let count = counts.entry(kind).or_default();
                count.made += 1;
                let found = findings(&definition, definition.value(Some((at, &other))));
                count.found += usize::from(!found.is_empty());
                count.errors += usize::from(found.iter().any(|found| found.severity.name() == "error"));
                if found.is_empty() && std::env::var_os("MAINSPRING_SHOW").is_some() {
                    println!("seed {seed}: {kind:?} {} as {other}", written.text());
                }
            }
        }
    }
    println!("{count} definitions, {references} references, no false finding");
    let mut all = Count::default();
    for (kind, count) in &counts {
        println!("{kind:?}: {} of {} found, {} as errors", count.found, count.made, count.errors);
        all.made += count.made;
        all.found += count.found;
    }
    println!("all: {} of {} found", all.found, all.made);
    for (kind, count) in &counts {
        assert!(count.found * 100 >= count.made * FOUND_MIN, "{kind:?}: {} of {} found", count.found, count.made);
    }
    assert!(counts.len() == 8 || count < SEEDS_DEFAULT, "a kind of mutation never came up: {counts:?}");
}
