//! Reads `allow`: the codes of warnings that an author accepts, for the whole definition or for one step and the steps
//! inside it.

use alloc::format;

use super::{
    allowed::Allowed,
    fields::Fields,
    help::Help,
    outline::Outline,
    report::{Report, named},
    suggest::nearest::nearest,
};
use crate::{
    diagnostic::{self, WARNINGS, quoted},
    document::Path,
    fix::Fix,
};

/// Reads `allow` at the root and at each step.
pub(super) fn read(root: &Fields<'_>, outline: &Outline<'_>, report: &mut Report<'_>) -> Allowed {
    let mut allowed = Allowed::default();
    add(root, &mut allowed, report);
    for entry in outline.entries.iter().filter(|entry| entry.is_first()) {
        add(&entry.fields, &mut allowed, report);
    }
    allowed
}

fn add(fields: &Fields<'_>, allowed: &mut Allowed, report: &mut Report<'_>) {
    let path = fields.path.key("allow");
    for (at, item) in report.list(fields, "allow").unwrap_or_default().iter().enumerate() {
        let path = path.index(at);
        let Some(word) = item.as_text() else {
            report.wrong_item(&path, "allow", "the code of a warning", item);
            continue;
        };
        match WARNINGS.into_iter().find(|code| *code == word) {
            None => refuse(word, &path, report),
            Some(code) if allowed.add(code, &fields.path) => {}
            Some(_) => {
                let message = format!("{} stands in `allow` twice", named(word));
                report.error(diagnostic::WRONG_VALUE, &path, message, "keep one of them");
            }
        }
    }
}

/// True for the words by which other tools accept all warnings at once.
fn is_everything(word: &str) -> bool {
    ["all", "any", "everything", "*", "warnings"].iter().any(|all| all.eq_ignore_ascii_case(word))
}

fn refuse(word: &str, path: &Path, report: &mut Report<'_>) {
    let is_error = diagnostic::CODES.contains(&word);
    let message = match is_error {
        true => format!("{} is the code of an error, which a definition cannot allow", quoted(word)),
        false => format!("`allow` takes codes of warnings, not {}", quoted(word)),
    };
    let help = match nearest(word, WARNINGS).filter(|_| !is_error) {
        Some(code) => Help::value(path, code),
        None if is_error => Help::new("take it out, and correct the mistake", Fix::remove(path)),
        None if is_everything(word) => {
            let text =
                "take it out, and list the codes of the warnings that are reported: each is accepted by its code";
            Help::new(text, Fix::remove(path))
        }
        None => format!("the codes of warnings are: {}", WARNINGS.join(", ")).into(),
    };
    report.error(diagnostic::WRONG_VALUE, path, message, help);
}
