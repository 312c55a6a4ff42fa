//! The number of fields of a struct. A struct with more than fifteen has several responsibilities and should be split.

use super::measure::Measure;
use crate::finding::Finding;
use crate::repository::{File, Repository};
use crate::token::{self, Token};

/// About as many as a reader can remember; most structs of comparable engines have fewer.
const FIELDS_MAX: usize = 15;

/// Measures the structs with too many fields, also in tests.
pub(super) fn measure(repository: &Repository) -> Vec<Measure> {
    repository.rust().flat_map(structs).filter(Measure::is_too_much).collect()
}

fn structs(file: &File) -> Vec<Measure> {
    let tokens = &file.tokens;
    let with_body = (0..tokens.len()).filter_map(|start| Some((start, body(tokens, start)?)));
    let measured = with_body.map(|(start, open)| Measure {
        key: format!("fields {}::{}", file.path, tokens[start + 1].text),
        number: fields(&tokens[open + 1..token::closing(tokens, open)]),
        limit: FIELDS_MAX,
        unit: "fields of a struct; split it by what belongs together".to_owned(),
        places: vec![Finding::at(&file.path, tokens[start].line, "")],
    });
    measured.collect()
}

/// Returns the index of the opening brace of the struct that starts here; `None` for a struct without named fields.
fn body(tokens: &[Token], start: usize) -> Option<usize> {
    let depth = tokens[start].depth;
    if tokens[start].text != "struct" {
        return None;
    }
    let beside = tokens.iter().enumerate().skip(start + 2).take_while(|(_, token)| token.depth >= depth);
    let ends = ["{", ";", "("];
    let (index, end) =
        beside.into_iter().find(|(_, token)| token.depth == depth && ends.contains(&token.text.as_str()))?;
    (end.text == "{").then_some(index)
}

/// Counts the single colons between names and types of fields; those of paths come in pairs.
fn fields(inside: &[Token]) -> usize {
    let Some(depth) = inside.first().map(|token| token.depth) else { return 0 };
    let is_colon = |index: usize| inside.get(index).is_some_and(|token| token.text == ":" && token.depth == depth);
    let mut count = 0;
    // A colon between angle brackets is a bound: `Box<dyn Iterator<Item: Clone>>`.
    let mut angles = 0_usize;
    for (index, token) in inside.iter().enumerate().filter(|(_, token)| token.depth == depth) {
        let is_arrow = index > 0 && inside[index - 1].text == "-";
        match token.text.as_str() {
            "<" => angles += 1,
            ">" if !is_arrow => angles = angles.saturating_sub(1),
            ":" if angles == 0 && !is_colon(index + 1) && !(index > 0 && is_colon(index - 1)) => count += 1,
            _ => {}
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::{FIELDS_MAX, measure};
    use crate::tidy::tests::{assert_found, counted, repository};

    const SOURCE: &str = "crates/a/src/a.rs";

    /// Checks a struct with these fields and a number of plain ones.
    #[track_caller]
    fn check(head: &str, fields: &str, plain: usize, expected: Option<usize>) {
        let plain: String = (0..plain).map(|number| format!("    f{number}: u8,\n")).collect();
        let found = measure(&repository(&[(SOURCE, &format!("\n{head} {{\n{fields}{plain}}}\n"))]));
        let key = format!("fields {SOURCE}::Wide");
        assert_eq!(counted(found.clone()), Vec::from_iter(expected.map(|number| (key, number))));
        let places: Vec<(&str, usize, &str)> = expected.iter().map(|_| (SOURCE, 2, "")).collect();
        assert_found(found.into_iter().flat_map(|measure| measure.places).collect(), &places);
    }

    #[test]
    fn a_struct_has_at_most_fifteen_fields() {
        check("struct Wide", "", FIELDS_MAX, None);
        check("struct Wide", "", FIELDS_MAX + 1, Some(FIELDS_MAX + 1));
        check("pub(crate) struct Wide<A: Clone> where A: B", "pub(super) a: A,\n", 16, Some(17));
    }

    #[test]
    fn types_add_no_fields() {
        let types =
            "#[serde(rename: b)] a: std::fmt::Result, b: BTreeMap<A, b::C>, c: fn(a: u8) -> D, d: Box<dyn E<F: G>>,\n";
        check("struct Wide", types, 11, None);
        check("struct Wide", types, 12, Some(16));
    }

    #[test]
    fn other_items_have_no_fields() {
        check("struct Unit; struct Tuple(u8); fn wide(wide: Wide)", "", 40, None);
        check("enum Wide", "", 40, None);
    }
}
