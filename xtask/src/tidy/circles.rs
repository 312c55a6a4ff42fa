//! Import circles inside a crate. No file of a circle can be read, tested or moved without the others.
//!
//! An import is a `use` outside of tests whose path begins with `crate`, `super`, `self` or a child module, and every
//! path that begins with a module imported in this way. It points to the file of the longest module path in it.

use super::measure::Measure;
use crate::finding::Finding;
use crate::repository::{File, Repository};
use crate::token::{self, Token};
use std::collections::{BTreeMap, BTreeSet};

/// A single file is not a circle.
const FILES_MAX: usize = 1;

/// The files that represent a whole crate. A program beside a library is a crate of its own, with one file.
const ROOTS: [&str; 2] = ["lib", "main"];

/// The path of a module without `crate`.
type Module = Vec<String>;

/// Measures the largest circle of each crate.
pub(super) fn measure(repository: &Repository) -> Vec<Measure> {
    let mut crates: BTreeMap<&str, BTreeMap<Module, &File>> = BTreeMap::new();
    for file in repository.rust() {
        if let Some(module) = module(file) {
            crates.entry(file.area()).or_default().entry(module).or_insert(file);
        }
    }
    let largest = crates.into_iter().map(|(area, files)| (area, largest_circle(&imports(&files))));
    largest.map(|(area, circle)| measure_of(area, &circle)).collect()
}

fn measure_of(area: &str, circle: &[&str]) -> Measure {
    let unit = "files that import each other in a circle; move the shared part below both";
    Measure {
        key: format!("circle {area}"),
        number: circle.len(),
        limit: FILES_MAX,
        unit: unit.to_owned(),
        places: circle.iter().map(|path| Finding::of_file(path, "")).collect(),
    }
}

/// Returns the module of a file in `src`; `None` for other files and for a second program with its own root.
fn module(file: &File) -> Option<Module> {
    let inside = file.path.strip_prefix(file.area())?.strip_prefix("/src/")?.strip_suffix(".rs")?;
    let names: Module = inside.split('/').map(str::to_owned).collect();
    match names.split_last()? {
        (last, []) if ROOTS.contains(&last.as_str()) => Some(Vec::new()),
        (last, above) if last == "mod" => Some(above.to_vec()),
        _ if names[0] == "bin" => None,
        _ => Some(names),
    }
}

/// Returns the imports of each file, by path.
fn imports<'a>(files: &BTreeMap<Module, &'a File>) -> BTreeMap<&'a str, BTreeSet<&'a str>> {
    let targets = |module: &Module, file: &&'a File| {
        let mut used: Vec<Module> =
            uses(&file.tokens).into_iter().filter_map(|path| absolute(files, module, path)).collect();
        let modules: BTreeMap<String, Module> = used
            .iter()
            .filter(|path| files.contains_key(*path))
            .filter_map(|path| Some((path.last()?.clone(), path.clone())))
            .collect();
        used.extend(paths_through(&modules, &file.tokens));
        used.iter().filter_map(|path| target(files, path)).filter(|target| *target != file.path).collect()
    };
    files.iter().map(|(module, file)| (file.path.as_str(), targets(module, file))).collect()
}

fn target<'a>(files: &BTreeMap<Module, &'a File>, path: &[String]) -> Option<&'a str> {
    (0..=path.len()).rev().find_map(|length| Some(files.get(&path[..length])?.path.as_str()))
}

/// Resolves a path from the root of the crate; `None` for a path into another crate.
fn absolute(files: &BTreeMap<Module, &File>, module: &Module, path: Module) -> Option<Module> {
    let first = path.first()?;
    let is_relative =
        ["self", "super"].contains(&first.as_str()) || files.contains_key(&[module, &[first.clone()][..]].concat());
    let mut base = match first.as_str() {
        "crate" => Vec::new(),
        _ if is_relative => module.clone(),
        _ => return None,
    };
    for name in path {
        match name.as_str() {
            "crate" | "self" | "*" => {}
            "super" => drop(base.pop()?),
            _ => base.push(name),
        }
    }
    Some(base)
}

/// Returns the paths of all `use` outside of tests, with groups expanded.
fn uses(tokens: &[Token]) -> Vec<Module> {
    let mut paths = Vec::new();
    let is_use = |start: &usize| tokens[*start].text == "use" && !tokens[*start].in_test;
    for start in (0..tokens.len()).filter(is_use) {
        // `use<'a>` in a type imports nothing.
        let rest =
            tokens[start + 1..].iter().take_while(|token| token.depth >= tokens[start].depth && token.text != "<");
        let end = rest.take_while(|token| token.text != ";" || token.depth > tokens[start].depth).count();
        spread(&tokens[start + 1..][..end], &[], &mut paths);
    }
    paths
}

/// Returns the paths in code outside of tests that begin with one of these modules, resolved from the root of the
/// crate.
fn paths_through(modules: &BTreeMap<String, Module>, tokens: &[Token]) -> Vec<Module> {
    let mut paths = Vec::new();
    for start in (0..tokens.len()).filter(|start| !tokens[*start].in_test) {
        let has_next = |at: usize| token::reads(tokens, at, &[":", ":"]);
        let is_first = start == 0 || tokens[start - 1].text != ":";
        let Some(module) = modules.get(&tokens[start].text).filter(|_| is_first && has_next(start + 1)) else {
            continue;
        };
        let names = (start + 3..).step_by(3).take_while(|at| has_next(at - 2)).filter_map(|at| tokens.get(at));
        paths.push(module.iter().cloned().chain(names.map(|name| name.text.clone())).collect());
    }
    paths
}

/// Expands `a::{b, c::d as e}`.
fn spread(tokens: &[Token], before: &[String], paths: &mut Vec<Module>) {
    let mut path = before.to_vec();
    let mut index = 0;
    while let Some(token) = tokens.get(index) {
        match token.text.as_str() {
            "{" => {
                let close = token::closing(tokens, index);
                let inside = &tokens[index + 1..close];
                let is_comma = |other: &Token| other.text == "," && other.depth == token.depth + 1;
                inside.split(is_comma).filter(|part| !part.is_empty()).for_each(|part| spread(part, &path, paths));
                return;
            }
            "as" => break,
            ":" => {}
            name => path.push(name.to_owned()),
        }
        index += 1;
    }
    paths.push(path);
}

/// Returns the largest set of files that reach each other, the first of equal ones. Crates are small enough to search
/// from every file.
fn largest_circle<'a>(imports: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> Vec<&'a str> {
    let reached: BTreeMap<&str, BTreeSet<&str>> = imports.keys().map(|file| (*file, reach(imports, file))).collect();
    let circle = |file: &&'a str| -> Vec<&'a str> {
        reached[file].iter().copied().filter(|other| reached[other].contains(file)).collect()
    };
    let mut largest = Vec::new();
    for circle in imports.keys().map(circle) {
        if circle.len() > largest.len() {
            largest = circle;
        }
    }
    largest
}

/// Returns all files that a file imports, directly or indirectly.
fn reach<'a>(imports: &BTreeMap<&'a str, BTreeSet<&'a str>>, from: &'a str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(file) = open.pop() {
        open.extend(imports[file].iter().filter(|next| reached.insert(**next)));
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::measure;
    use crate::tidy::tests::{assert_found, counted, repository};

    /// Checks the circle of a crate with these files in `src`.
    #[track_caller]
    fn check(files: &[(&str, &str)], circle: &[&str]) {
        let paths: Vec<(String, &str)> =
            files.iter().map(|(name, text)| (format!("crates/a/src/{name}"), *text)).collect();
        let files: Vec<(&str, &str)> = paths.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let found = measure(&repository(&files));
        assert_eq!(counted(found.clone()), [("circle crates/a".to_owned(), circle.len())]);
        let expected: Vec<String> = circle.iter().map(|name| format!("crates/a/src/{name}")).collect();
        let expected: Vec<(&str, usize, &str)> = expected.iter().map(|path| (path.as_str(), 0, "")).collect();
        assert_found(found.into_iter().flat_map(|measure| measure.places).collect(), &expected);
    }

    #[test]
    fn files_that_import_each_other_are_a_circle() {
        let (one, two) = (("b.rs", "use crate::c::C;"), ("c.rs", "use crate::{d::D, e::{self, E as F}};"));
        check(&[one, two, ("d.rs", "use std::b;")], &[]);
        check(&[one, two, ("d.rs", "pub(crate) use super::b::*;")], &["b.rs", "c.rs", "d.rs"]);
        check(&[one, two, ("d.rs", ""), ("e.rs", "fn f() { use crate::c::C; }")], &["c.rs", "e.rs"]);
        check(&[one, ("c.rs", "fn c() -> impl Iterator + use<'_> { b; } use b::B; use other::b;")], &[]);
    }

    #[test]
    fn a_path_leads_to_the_longest_module() {
        check(&[("b.rs", "use self::c::C;"), ("b/c.rs", "use super::B;"), ("lib.rs", "")], &["b.rs", "b/c.rs"]);
        check(&[("b/mod.rs", "use crate::A;"), ("lib.rs", "pub use crate::b::B;")], &["b/mod.rs", "lib.rs"]);
        check(&[("b.rs", "pub use c::C;"), ("b/c.rs", "use super::B;"), ("c.rs", "")], &["b.rs", "b/c.rs"]);
        check(&[("b.rs", "use crate::main;"), ("lib.rs", ""), ("main.rs", "use b::B;")], &[]);
        check(&[("b/c/d.rs", "use super::super::e;"), ("b/e.rs", "use crate::b::c::d;")], &["b/c/d.rs", "b/e.rs"]);
        check(&[("bin/b.rs", "use crate::c;"), ("c.rs", "use crate::bin::b;")], &[]);
    }

    #[test]
    fn an_imported_module_leads_on() {
        let module = ("b/c.rs", "use super::d;");
        check(
            &[("a.rs", "use crate::b; fn f() { b::c::g(x::b::d) }"), module, ("b/d.rs", "use crate::a;"), ("b.rs", "")],
            &["a.rs", "b/c.rs", "b/d.rs"],
        );
        check(
            &[("a.rs", "use crate::b; fn f() { x::b::c::g() }"), module, ("b/d.rs", "use crate::a;"), ("b.rs", "")],
            &[],
        );
    }

    #[test]
    fn imports_of_tests_do_not_count() {
        let test = "#[cfg(test)]\nmod tests { use crate::b::B; }";
        check(&[("b.rs", "use crate::c::C;"), ("c.rs", test)], &[]);
        check(
            &[
                ("b.rs", "use crate::c::C;"),
                ("c.rs", "#[cfg(test)] mod d;"),
                ("c/d.rs", "use crate::b::B; use super::E;"),
            ],
            &[],
        );
    }
}
