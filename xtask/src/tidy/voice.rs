//! The voice of comments and documents: a sentence begins with its subject or its verb, and names the actor.
//!
//! Two counts, each by crate (source and tests apart) and by document. The first counts sentences that open with a
//! relative clause, as in "What is asked for is given". The second counts sentences with a pronoun in place of a role,
//! as `nobody` for "no client".

use super::measure::Measure;
use crate::finding::Finding;
use crate::prose::{self, Sentence};
use crate::repository::{File, Repository};
use std::collections::BTreeMap;

/// First words of a sentence that withholds its subject.
const OPENERS: [&str; 15] = [
    "How",
    "Of",
    "That",
    "What",
    "Whatever",
    "Where",
    "Wherever",
    "Whether",
    "Which",
    "Whichever",
    "Who",
    "Whoever",
    "Whom",
    "Whose",
    "Why",
];

/// An allowed opener: the title of a guide.
const TITLE: [&str; 2] = ["How", "to"];

/// Pronouns in place of a role (client, member, operator), and words for a time or an order that should be named.
const PRONOUNS: [&str; 4] = ["meanwhile", "nobody", "somebody", "whoever"];
const PRONOUN_OF_TIME: [&str; 2] = ["by", "then"];

pub(super) fn measure(repository: &Repository) -> Vec<Measure> {
    let mut found: BTreeMap<String, Measure> = BTreeMap::new();
    for file in repository.files.iter().filter(|file| !file.is_given()) {
        for (place, sentence) in sentences(file) {
            let hits = [
                (
                    opens_badly(&sentence.text),
                    "openers",
                    "sentences that open with What, Who, Of and the like; begin with the subject or the verb",
                ),
                (
                    has_pronoun(&sentence.text),
                    "pronouns",
                    "sentences with nobody, somebody, whoever, meanwhile; name the role or the time",
                ),
            ];
            for (_, kind, unit) in hits.into_iter().filter(|(is_hit, ..)| *is_hit) {
                let key = format!("{kind} {place}");
                let measure = found.entry(key.clone()).or_insert_with(|| Measure::count(key, unit));
                measure.add(Finding::at(&file.path, sentence.line, &sentence.text));
            }
        }
    }
    found.into_values().collect()
}

/// Returns the sentences of a file, each with the place for which it counts.
fn sentences(file: &File) -> Vec<(String, Sentence)> {
    if file.extension() == "md" {
        return prose::sentences(&file.text).into_iter().map(|sentence| (file.path.clone(), sentence)).collect();
    }
    let mut found = Vec::new();
    for comment in &file.comments {
        let place = format!("{}/{}", file.area(), if file.is_of_test(comment) { "tests" } else { "src" });
        found.extend(prose::sentences(&comment.text).into_iter().map(|sentence| {
            let line = comment.line + sentence.line - 1;
            (place.clone(), Sentence { line, ..sentence })
        }));
    }
    found
}

fn opens_badly(sentence: &str) -> bool {
    let start = sentence.trim_start_matches(|letter: char| !letter.is_alphanumeric() && letter != '`');
    let mut words = start.split(|letter: char| !letter.is_alphanumeric());
    let first = words.next().unwrap_or_default();
    OPENERS.contains(&first) && [first, words.next().unwrap_or_default()] != TITLE
}

fn has_pronoun(sentence: &str) -> bool {
    // Every second piece between backticks is code.
    let prose = sentence.split('`').step_by(2).collect::<Vec<_>>().join(" ").to_lowercase();
    let words: Vec<&str> = prose.split(|letter: char| !letter.is_alphanumeric()).collect();
    words.iter().any(|word| PRONOUNS.contains(word)) || words.windows(2).any(|pair| pair == PRONOUN_OF_TIME)
}

#[cfg(test)]
mod tests {
    use super::{OPENERS, measure};
    use crate::tidy::tests::{assert_found, counted, repository};

    /// Checks the lines of a document with a sentence of this kind.
    #[track_caller]
    fn check(kind: &str, text: &str, lines: &[usize]) {
        let found = measure(&repository(&[("a.md", text)]));
        let expected: Vec<(&str, usize, &str)> = lines.iter().map(|line| ("a.md", *line, "")).collect();
        let of_kind = found.into_iter().filter(|measure| measure.key == format!("{kind} a.md"));
        assert_found(of_kind.flat_map(|measure| measure.places).collect(), &expected);
    }

    #[test]
    fn sentences_without_a_subject_first_are_found() {
        let openers = "How Of That What Whatever Where Wherever Whether Which Whichever Who Whoever Whom Whose Why";
        assert_eq!(openers.split(' ').count(), OPENERS.len());
        for opener in openers.split(' ') {
            check("openers", &format!("Fine.\n{opener} is this. \"{opener}'s is that.\"\n"), &[2, 2]);
            check("openers", &format!("Fine: *{opener} is this.*\n"), &[1]);
            check("openers", &format!("`{opener}` is a type. {opener}ly it is.\n"), &[]);
        }
        check("openers", "# How to add a migration\n\nSends what is asked for.\n", &[]);
    }

    #[test]
    fn vague_pronouns_are_found() {
        check(
            "pronouns",
            "Nobody asks.\nIt is somebody's.\n\nBy\nthen it is gone.\nMeanwhile, whoever came.\n",
            &[1, 2, 4, 6],
        );
        check("pronouns", "Then by nobodyness `nobody` asks. Everybody does.\n", &[]);
    }

    #[test]
    fn comments_count_for_their_crate_and_tests_apart() {
        let source = "//! What it is.\n\n/// Who asks.\nfn a() {} // Of a.\n#[cfg(test)]\nmod tests {\n    // Who\n    // asks. Whose it is.\n    fn b() {}\n}\n";
        let files = [
            ("crates/a/src/lib.rs", source),
            ("crates/a/tests/b.rs", "//! Tests. How they run.\nfn a() { b(\"// What.\"); }\n"),
            ("conformance/README.md", "What is given.\n"),
            ("docs/c.md", "What is told.\n"),
        ];
        let found = counted(measure(&repository(&files)));
        let expected = [("openers crates/a/src", 3), ("openers crates/a/tests", 3), ("openers docs/c.md", 1)];
        assert_eq!(found, expected.map(|(key, number)| (key.to_owned(), number)));
    }
}
