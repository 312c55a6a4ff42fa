//! Subjects of the last commits: `component: imperative summary`, so that the history can be scanned.
//!
//! A landed commit cannot be changed. An entry `subject HASH 1` excuses it until it is old enough.

use super::measure::Measure;
use crate::finding::Finding;
use crate::repository::Repository;

/// The width that `git log --oneline` shows on a terminal of 80 columns.
const SUBJECT_LETTERS_MAX: usize = 72;

/// Endings of verb forms that are not imperatives, and imperatives with such an ending.
const ENDINGS: [&str; 3] = ["ed", "ing", "s"];
const IMPERATIVES: [&str; 17] = [
    "bring", "embed", "exceed", "feed", "focus", "need", "ping", "proceed", "ring", "seed", "shed", "spring", "string",
    "succeed", "swing", "bias", "alias",
];

/// First words of sentences that are not imperatives.
const NO_VERBS: [&str; 22] = [
    "a", "an", "another", "each", "every", "how", "it", "its", "no", "nobody", "of", "one", "that", "the", "there",
    "what", "where", "whether", "which", "who", "whoever", "whose",
];

pub(super) fn measure(repository: &Repository) -> Vec<Measure> {
    let faulty = repository.commits.iter().filter_map(|commit| Some((commit, fault(&commit.subject)?)));
    let measured = faulty.map(|(commit, fault)| {
        let unit = format!("{fault} \"{}\": write `component: imperative summary`", commit.subject);
        let mut measure = Measure::count(format!("subject {}", commit.hash), unit);
        measure.add(Finding::of_file(&commit.hash, ""));
        measure
    });
    measured.collect()
}

fn fault(subject: &str) -> Option<String> {
    let length = subject.chars().count();
    if length > SUBJECT_LETTERS_MAX {
        return Some(format!("a subject of {length} letters ({SUBJECT_LETTERS_MAX} at most)"));
    }
    let Some((_, summary)) = subject.split_once(": ").filter(|(component, _)| is_component(component)) else {
        return Some("a subject without a component".to_owned());
    };
    let verb = summary.split([' ', ',']).next().unwrap_or_default();
    if !is_imperative(verb) {
        return Some(format!("a summary that does not start with an imperative (`{verb}`)"));
    }
    summary.ends_with('.').then(|| "a subject with a period".to_owned())
}

/// A crate, a folder, or a part of one, in lowercase; several are separated by commas.
fn is_component(text: &str) -> bool {
    let is_name = |name: &str| {
        name.starts_with(|letter: char| letter.is_ascii_lowercase())
            && name.chars().all(|letter| {
                letter.is_ascii_lowercase() || letter.is_ascii_digit() || ['-', '_', '/'].contains(&letter)
            })
    };
    text.split(", ").all(is_name)
}

/// Guesses by the ending, since there is no dictionary.
fn is_imperative(word: &str) -> bool {
    let ends = |ending: &&str| word.ends_with(*ending) && !(*ending == "s" && word.ends_with("ss"));
    word.starts_with(|letter: char| letter.is_lowercase())
        && !NO_VERBS.contains(&word)
        && (IMPERATIVES.contains(&word) || !ENDINGS.iter().any(ends))
}

#[cfg(test)]
mod tests {
    use super::measure;
    use crate::repository::{Commit, Repository};
    use crate::tidy::tests::assert_found;

    #[track_caller]
    fn check(subject: &str, expected: Option<&str>) {
        let commit = Commit { hash: "abc1234".to_owned(), subject: subject.to_owned() };
        let found = measure(&Repository { commits: vec![commit], ..Repository::default() });
        let units: Vec<&str> = found.iter().map(|measure| measure.unit.as_str()).collect();
        assert_eq!(found.len(), expected.iter().len(), "{units:?}");
        assert!(expected.is_none_or(|word| units[0].contains(word)), "{units:?}");
        let places: Vec<(&str, usize, &str)> = expected.iter().map(|_| ("abc1234", 0, "")).collect();
        assert_found(found.into_iter().flat_map(|measure| measure.places).collect(), &places);
    }

    #[test]
    fn a_subject_is_short() {
        check(&format!("engine: take {}", "ü".repeat(72 - 13)), None);
        check(&format!("engine: take {}", "ü".repeat(73 - 13)), Some("73 letters"));
    }

    #[test]
    fn a_subject_names_a_component() {
        check("engine, store: send heartbeats from a thread", None);
        check("docs/how-to: describe backups", None);
        check("Send heartbeats from a thread", Some("component"));
        check("Kernel: take dates", Some("component"));
        check("what is asked: give it", Some("component"));
    }

    #[test]
    fn a_summary_is_an_imperative() {
        check("engine: process what is fed, and need less", None);
        check("engine: seed the cases", None);
        let others =
            ["the heartbeat has a thread", "sends heartbeats", "Send it", "sending it", "added it", "", "send it."];
        for summary in others {
            check(&format!("engine: {summary}"), Some("write `component"));
        }
    }
}
