//! Doc comments without content: they repeat the name of their item, or are a single interrogative.
//!
//! A doc comment of a value should state its unit, range or source. A field with a complete name needs no comment.

use super::measure::Measure;
use crate::finding::Finding;
use crate::repository::{File, Repository};
use crate::token::{Comment, Style, Token};
use crate::words;
use std::collections::{BTreeMap, BTreeSet};

/// Words that add nothing to a name.
const FILLERS: [&str; 7] = ["a", "an", "its", "of", "one", "the", "this"];

const INTERROGATIVES: [&str; 8] = ["how", "what", "when", "where", "which", "who", "whose", "why"];

/// Words between a doc comment and the name of its item.
const KEYWORDS: [&str; 15] = [
    "async", "const", "crate", "enum", "extern", "fn", "in", "mod", "mut", "pub", "self", "static", "struct", "super",
    "trait",
];

/// Number of tokens after the name that are searched for the type of an item.
const TYPE_TOKENS_MAX: usize = 24;

pub(super) fn measure(repository: &Repository) -> Vec<Measure> {
    let mut found: BTreeMap<String, Measure> = BTreeMap::new();
    for file in repository.rust() {
        for comment in file.comments.iter().filter(|comment| comment.style == Style::Outer) {
            let Some((kind, unit)) = fault(file, comment) else { continue };
            let key = format!("{kind} {}", file.area());
            let measure = found.entry(key.clone()).or_insert_with(|| Measure::count(key, unit));
            measure.add(Finding::at(&file.path, comment.line, &comment.text));
        }
    }
    found.into_values().collect()
}

/// Returns the kind of problem of a doc comment, with its fix.
fn fault(file: &File, comment: &Comment) -> Option<(&'static str, &'static str)> {
    let said: BTreeSet<String> =
        words::of_text(&comment.text).filter(|word| !FILLERS.contains(&word.as_str())).collect();
    if said.len() == 1 && said.iter().all(|word| INTERROGATIVES.contains(&word.as_str())) {
        return Some(("questions", "doc comments of one interrogative; delete it or name the subject"));
    }
    // Code in a comment shows the notation of a value, which the name does not.
    let (name, types) = item(&file.tokens[comment.before..]).filter(|_| !comment.text.contains('`'))?;
    let name = stems(name);
    let (said, types) =
        (said.iter().map(|word| stem(word)).collect::<BTreeSet<_>>(), types.iter().copied().flat_map(stems).collect());
    let is_echo = !name.is_empty()
        && said.is_superset(&name)
        && said.difference(&name).all(|word| BTreeSet::contains(&types, word));
    is_echo.then_some(("echoes", "doc comments that repeat the name; say unit, range or source, or delete it"))
}

/// Returns the name of the item at the start, after its attributes, and the words of its type.
fn item(tokens: &[Token]) -> Option<(&str, Vec<&str>)> {
    let depth = tokens.first()?.depth;
    // Attributes and `pub(crate)` are nested deeper.
    let mut beside = tokens.iter().take_while(|token| token.depth >= depth).enumerate().filter(|(_, token)| {
        token.depth == depth
            && !KEYWORDS.contains(&token.text.as_str())
            && !["#", "[", "]", "(", ")"].contains(&token.text.as_str())
    });
    let (index, name) = beside.next()?;
    let is_name = name.text.starts_with(|letter: char| letter.is_alphabetic() || letter == '_');
    let rest = tokens[index + 1..].iter().take(TYPE_TOKENS_MAX);
    let ends = ["{", ";", "="];
    let types =
        rest.take_while(|token| token.depth > depth || token.depth == depth && !ends.contains(&token.text.as_str()));
    // A field ends with a comma outside of angle brackets; parameters of functions are in parentheses.
    let mut angles = 0_i32;
    let types = types.take_while(|token| {
        angles += match token.text.as_str() {
            "<" => 1,
            ">" => -1,
            _ => 0,
        };
        !(token.text == "," && token.depth == depth && angles <= 0)
    });
    is_name.then(|| (name.text.as_str(), types.map(|token| token.text.as_str()).collect()))
}

fn stems(name: &str) -> BTreeSet<String> {
    words::of_text(name).filter(|word| !FILLERS.contains(&word.as_str())).map(|word| stem(&word)).collect()
}

/// Removes the plural ending.
fn stem(word: &str) -> String {
    if let Some(stem) = word.strip_suffix("ies") {
        return format!("{stem}y");
    }
    word.strip_suffix('s').filter(|stem| stem.len() > 2).unwrap_or(word).to_owned()
}

#[cfg(test)]
mod tests {
    use super::measure;
    use crate::tidy::tests::{assert_found, repository};

    const SOURCE: &str = "crates/a/src/a.rs";

    /// Checks the kind of problem of the comment above an item; `None` if it has none.
    #[track_caller]
    fn check(text: &str, item: &str, expected: Option<&str>) {
        let found = measure(&repository(&[(SOURCE, &format!("struct A {{\n/// {text}\n{item}\n}}\n"))]));
        let kinds: Vec<String> = found.iter().map(|measure| measure.key.clone()).collect();
        assert_eq!(kinds, Vec::from_iter(expected.map(|kind| format!("{kind} crates/a"))), "{text} {item}");
        let places: Vec<(&str, usize, &str)> = expected.iter().map(|_| (SOURCE, 2, text)).collect();
        assert_found(found.into_iter().flat_map(|measure| measure.places).collect(), &places);
    }

    #[test]
    fn comments_that_repeat_the_name_are_found() {
        check("The tenant.", "tenant: u64,", Some("echoes"));
        check("Its retry policies.", "pub(crate) retry_policy: u64,", Some("echoes"));
        check("A retry policy.", "#[derive(A)]\nstruct RetryPolicy;", Some("echoes"));
        check("The id of the organization.", "organization: OrganizationId,", Some("echoes"));
        check("The map of tenants by id.", "tenants: BTreeMap<Id, Tenant>,", None);
        check("Retries the policy.", "pub async fn retry_policy(&self) {}", Some("echoes"));
        check("The tenant that pays.", "tenant: u64,", None);
        check("`@tenant`", "tenant: u64,", None);
        check("In milliseconds.", "timeout_ms: u64,", None);
        check("The tenant.", "organization: u64, tenant: u64,", None);
    }

    #[test]
    fn interrogative_comments_are_found() {
        check("Whose.", "tenant: u64,", Some("questions"));
        check("Which.", "tenant: u64,", Some("questions"));
        check("Whose it is.", "tenant: u64,", None);
    }
}
