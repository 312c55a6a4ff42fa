//! Completion and hover.

use lsp_types::{CompletionItem, CompletionItemKind, Documentation, Hover, HoverContents, MarkupContent, MarkupKind};
use mainspring_kernel::{
    definition::{Field, keys},
    document::{Document, Path},
};

use super::{
    document::document_of,
    objects::{Object, keys_of, names_a_step, notation, object, steps},
    outline::Outline,
    position,
    references::{references, typed},
};
use crate::{
    language::{Key, Language},
    topics::topic,
};

/// The key that stands for the word at the cursor, which no author writes.
const CURSOR: &str = "__cursor__";

/// Maximum number of steps in one answer. An editor filters by what is typed, and asks again if the answer is incomplete.
const STEPS_MAX: usize = 200;

/// Returns the parts of the value at which a reference in a step ends.
pub(super) type FieldsOf<'f> = dyn Fn(&Document, &Path, &str) -> Vec<Field> + 'f;

/// Returns the completions at a byte, and whether the list was cut.
pub(super) fn complete(
    text: &str,
    outline: &Outline,
    language: &Language,
    fields: &FieldsOf<'_>,
    offset: usize,
) -> (Vec<CompletionItem>, bool) {
    if let Some(range) = typed(text, offset) {
        return match text[range.clone()].rsplit_once('.') {
            Some((begin, _)) => (parts(text, outline, fields, begin, offset), false),
            None => roots(outline, &text[range]),
        };
    }
    let line_start = text[..offset].rfind('\n').map_or(0, |line| line + 1);
    let word = text[line_start..offset]
        .rfind([' ', '{', ',', '[', '"', '\'', '-'])
        .map_or(line_start, |at| line_start + at + 1);
    let in_value = outline.entries.iter().enumerate().rev().find(|(_, entry)| {
        let from = entry.key_at.end;
        // Only keys on the line of the cursor, since the text between is searched.
        entry.key.is_some() && (line_start..offset).contains(&from) && is_value(text, from, offset)
    });
    if let Some((at, entry)) = in_value {
        return values(outline, language, at, entry.key.as_deref().unwrap_or_default());
    }
    let rest = &text[offset..];
    let word_end =
        offset + rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(rest.len());
    let with_cursor = format!("{}{CURSOR}: _\u{20}{}", &text[..word], skip_colon(&text[word_end..]));
    let marked = Outline::read(&around(&with_cursor, word));
    let Some(entry) = marked.entries.iter().position(|entry| entry.key.as_deref() == Some(CURSOR)) else {
        return item_names(outline, &marked);
    };
    let parent = marked.entries[entry].parent;
    let Some(object) = object(&marked, parent) else { return (Vec::new(), false) };
    let present: Vec<&str> = marked.inside(parent).filter_map(|(_, field)| field.key.as_deref()).collect();
    let keys = keys_of(language, notation(outline), &object);
    let missing = keys.into_iter().filter(|key| !present.contains(&key.name));
    (missing.enumerate().map(|(rank, key)| of_key(rank, &key)).collect(), false)
}

/// Returns the part of a text that decides about the keys at a byte: of a YAML text in block style only the outermost item
/// with its key, since a file may have thousands of steps; or the outermost lines. Other texts are returned whole.
fn around(text: &str, at: usize) -> String {
    if text.trim_start().starts_with(['{', '[']) {
        return text.to_string();
    }
    let is_outermost = |line: &str| !line.starts_with([' ', '#', '-', '\n', '\r']) && !line.is_empty();
    let line_start = text[..at].rfind('\n').map_or(0, |line| line + 1);
    if is_outermost(&text[line_start..]) {
        return text.split_inclusive('\n').filter(|line| is_outermost(line)).collect();
    }
    let starts = || std::iter::once(0).chain(text.match_indices('\n').map(|(end, _)| end + 1));
    let Some(root) =
        starts().take_while(|start| *start < line_start).filter(|start| is_outermost(&text[*start..])).last()
    else {
        return text.to_string();
    };
    let root_end = text[root..].find('\n').map_or(text.len(), |end| root + end + 1);
    let margin_of = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let is_dash = |start: usize| text[start..].trim_start_matches(' ').starts_with('-');
    let below = || starts().skip_while(|start| *start < root_end);
    let Some(margin) = below().find(|start| is_dash(*start)).map(|start| margin_of(&text[start..])) else {
        return text.to_string();
    };
    let is_item = |start: &usize| is_dash(*start) && margin_of(&text[*start..]) == margin;
    let Some(first) = below().take_while(|start| *start <= line_start).filter(is_item).last() else {
        return text.to_string();
    };
    let ends = |start: &usize| is_item(start) || is_outermost(&text[*start..]);
    let end = starts().skip_while(|start| *start <= line_start).find(ends).unwrap_or(text.len());
    format!("{}{}", &text[root..root_end], &text[first..end])
}

/// True if the cursor is on the line of a key, behind its colon, and before the end of its value.
fn is_value(text: &str, from: usize, offset: usize) -> bool {
    let between = &text[from..offset];
    let between = between.trim_start_matches(['"', '\'']);
    let Some(value) = between.trim_start().strip_prefix(':') else { return false };
    let is_open = value.contains('"') && value.matches('"').count() % 2 == 1;
    !between.contains('\n') && (is_open || !value.contains([',', '{', '}', '[', ']']))
}

/// A key that is being replaced keeps its colon in the text; the marked text has its own.
fn skip_colon(rest: &str) -> &str {
    match rest.trim_start_matches(['"', '\'']).strip_prefix(':') {
        Some(value) if !value.starts_with('\n') && !value.is_empty() => {
            rest.find('\n').map_or("", |line| &rest[line..])
        }
        Some(value) => value,
        None => rest,
    }
}

/// Returns the names of steps, for an item of `needs`.
fn item_names(outline: &Outline, marked: &Outline) -> (Vec<CompletionItem>, bool) {
    let of_needs = marked.entries.iter().enumerate().any(|(at, entry)| {
        entry.scalar.as_deref().is_some_and(|scalar| scalar.contains(CURSOR)) && names_a_step(marked, at)
    });
    if of_needs { step_names(outline, "") } else { (Vec::new(), false) }
}

/// Returns the names of steps. If there are too many for one answer, those come first that contain what is typed.
fn step_names(outline: &Outline, typed: &str) -> (Vec<CompletionItem>, bool) {
    let mut steps = steps(outline);
    if steps.len() > STEPS_MAX {
        steps.sort_by_key(|step| (!step.name.starts_with(typed), !step.name.contains(typed)));
    }
    let items =
        steps.iter().take(STEPS_MAX).map(|step| item(step.name, CompletionItemKind::VARIABLE, step.step_type, ""));
    (items.collect(), steps.len() > STEPS_MAX)
}

fn values(outline: &Outline, language: &Language, at: usize, key: &str) -> (Vec<CompletionItem>, bool) {
    if names_a_step(outline, at) || key == "needs" {
        return step_names(outline, "");
    }
    let parent = outline.entries[at].parent;
    let object = object(outline, parent);
    if key == "type" && matches!(object, Some(Object::Step(_))) {
        let types = keys::step_types();
        let item_of = |name| item(name, CompletionItemKind::CLASS, &language.step_type(name), "");
        return (types.map(item_of).collect(), false);
    }
    let Some(object) = object else { return (Vec::new(), false) };
    let known = keys_of(language, notation(outline), &object);
    let words = known.into_iter().find(|known| known.name == key).map(|known| known.words).unwrap_or_default();
    (words.iter().map(|word| item(word, CompletionItemKind::ENUM_MEMBER, "", "")).collect(), false)
}

/// Completes the name at the start of a reference.
fn roots(outline: &Outline, typed: &str) -> (Vec<CompletionItem>, bool) {
    let (mut items, is_cut) = step_names(outline, typed);
    let roots = [
        ("input", "the input of the execution"),
        ("vars", "a variable"),
        ("item", "in a loop: the item"),
        ("index", "in a loop: the number of the round from 0"),
        ("ctx", "the execution"),
    ];
    items.extend(roots.map(|(name, detail)| item(name, CompletionItemKind::KEYWORD, detail, "")));
    (items, is_cut)
}

/// Completes a part of a path. `begin` is the reference before it.
fn parts(text: &str, outline: &Outline, fields: &FieldsOf<'_>, begin: &str, offset: usize) -> Vec<CompletionItem> {
    let (document, step) = document_of(text, outline, offset, begin);
    let known = fields(&document, &step, begin);
    known.iter().map(|field| item(&field.name, CompletionItemKind::FIELD, &field.kind, "")).collect()
}

fn item(label: &str, kind: CompletionItemKind, detail: &str, documentation: &str) -> CompletionItem {
    let text = |text: &str| (!text.is_empty()).then(|| text.to_string());
    CompletionItem {
        label: label.into(),
        kind: Some(kind),
        detail: text(detail),
        documentation: text(documentation).map(Documentation::String),
        ..CompletionItem::default()
    }
}

fn of_key(rank: usize, key: &Key) -> CompletionItem {
    let required = if key.is_required { ", required" } else { "" };
    let detail = format!("{}{required}", key.kind);
    let mut item = item(key.name, CompletionItemKind::PROPERTY, &detail, &key.description);
    // The order of the table is that of importance: a step's own keys first.
    item.sort_text = Some(format!("{rank:03}"));
    item
}

/// Returns the explanation of the key, the step type or the reference at a byte.
pub(super) fn hover(text: &str, outline: &Outline, language: &Language, offset: usize) -> Option<Hover> {
    let is_inside = |range: &std::ops::Range<usize>| range.start <= offset && offset <= range.end;
    if let Some(found) = references(text, outline).into_iter().find(|found| is_inside(&found.all)) {
        let name = &text[found.name.clone()];
        let step = steps(outline).into_iter().find(|step| step.name == name);
        let words = match step {
            Some(step) => format!("The output of step `{name}` ({}).", step.step_type),
            None => topic("references").map(|topic| topic.summary.to_string()).unwrap_or_default(),
        };
        return Some(marked(words, text, &found.all));
    }
    let (at, entry) = outline.at(offset)?;
    let object = object(outline, entry.parent)?;
    if is_inside(&entry.key_at) {
        let keys = keys_of(language, notation(outline), &object);
        let key = keys.into_iter().find(|key| Some(key.name) == entry.key.as_deref())?;
        return Some(marked(key.line(), text, &entry.key_at));
    }
    let value = entry.scalar.as_deref()?;
    let is_type =
        entry.key.as_deref() == Some("type") && matches!(object, Object::Step(_)) && outline.entries.get(at).is_some();
    let topic = topic(value).filter(|_| is_type)?;
    Some(marked(format!("{}: {}\n\n{}", topic.name, topic.summary, topic.text()), text, &entry.value_at))
}

fn marked(words: String, text: &str, bytes: &std::ops::Range<usize>) -> Hover {
    let contents = HoverContents::Markup(MarkupContent { kind: MarkupKind::PlainText, value: words });
    Hover { contents, range: Some(position::range(text, bytes)) }
}
