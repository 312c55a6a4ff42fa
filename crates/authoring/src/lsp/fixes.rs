//! Quick fixes: the fix of a diagnostic as an edit of the text.
//!
//! A fix changes data, and an edit must keep the text around it. An edit is offered only if the text then reads as the
//! definition to which the fix leads.

use std::ops::Range;

use mainspring_kernel::{
    definition::{Syntax, read},
    diagnostic::Diagnostic,
    document::Segment,
    fix::Change,
    json::compact,
    value::Value,
};

use super::position;

/// Ends of a value that are tried. Each costs a reading of the text.
const ENDS_MAX: usize = 16;

/// Returns the bytes to replace and their replacement, if the fix is one renamed key or one replaced value.
pub(super) fn edit(text: &str, syntax: Syntax, found: &Diagnostic) -> Option<(Range<usize>, String)> {
    let changes: Vec<&Change> = found.fix.0.iter().filter(|change| !matches!(change, Change::Test { .. })).collect();
    let [change] = changes[..] else { return None };
    let words: Vec<String> = match change {
        // An edit in place reaches no other object.
        Change::Move { from, path } if !is_rename(from.segments(), path.segments()) => return None,
        Change::Move { path, .. } => match path.segments().last()? {
            Segment::Key(key) => [key.to_string(), compact(&Value::text(&**key))].into(),
            Segment::Index(_) => return None,
        },
        Change::Replace { value, .. } => [compact(value)].into(),
        Change::Add { .. } | Change::Remove { .. } | Change::Test { .. } => return None,
    };
    let wanted = found.fix.apply(&read(text.as_bytes(), syntax).ok()?.value)?;
    let start = position::offset_of_place(text, found.place?);
    let line = text[start..].split('\n').next().unwrap_or_default();
    // A value ends at the end of the line, or before a sign of the flow style; a text in quotes holds such signs.
    let signs = line.char_indices().filter(|(_, letter)| matches!(letter, ',' | '}' | ']' | ':' | '#'));
    let ends = signs.map(|(at, _)| at).take(ENDS_MAX).chain([line.len()]);
    let ends = ends.map(|end| line[..end].trim_end().len()).filter(|end| *end > 0);
    for end in ends {
        for word in &words {
            let edited = format!("{}{word}{}", &text[..start], &text[start + end..]);
            if read(edited.as_bytes(), syntax).is_ok_and(|document| document.value == wanted) {
                return Some((start..start + end, word.clone()));
            }
        }
    }
    None
}

/// True if only the last segment differs.
fn is_rename(from: &[Segment], path: &[Segment]) -> bool {
    from.len() == path.len() && from.iter().rev().skip(1).eq(path.iter().rev().skip(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainspring_kernel::definition::compile;

    fn check(text: &str, expected: Option<&str>) {
        let document = read(text.as_bytes(), Syntax::Guess).expect("a readable text");
        let found = compile(&document).expect_err("a mistake");
        let edited = edit(text, Syntax::Guess, &found[0]).map(|(bytes, word)| {
            let mut edited = text.to_string();
            edited.replace_range(bytes, &word);
            edited
        });
        assert_eq!(edited.as_deref(), expected, "{}", found[0]);
    }

    #[test]
    fn an_edit_keeps_the_text_around_it() {
        check(
            "steps: # all\n  - {id: a, type: bash, comand: ls} # one\n",
            Some("steps: # all\n  - {id: a, type: bash, command: ls} # one\n"),
        );
        check(
            "steps:\n  - id: a\n    type: bsah # x\n    command: ls\n",
            Some("steps:\n  - id: a\n    type: \"bash\" # x\n    command: ls\n"),
        );
        check(
            r#"{"steps": [{"id": "a", "type": "bash", "comand": "ls, ls"}]}"#,
            Some(r#"{"steps": [{"id": "a", "type": "bash", "command": "ls, ls"}]}"#),
        );
        check("maxSteps: 5\nsteps:\n  - {id: a, type: bash, command: ls}\n", None);
    }
}
