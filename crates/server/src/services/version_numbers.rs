//! Version numbers of workflows: each definition has one number, and a number is never reassigned.

use std::collections::BTreeMap;

use mainspring_store::{Put, ReadLimit};

use crate::{
    http::problem::{Code, Problem, Result},
    resources::{
        Version, VersionNumber, Workflow,
        repository::{Listing, Repository},
        version_number_id,
    },
};

/// Most characters of a version, which is part of keys.
const VERSION_CHARACTERS_MAX: usize = 100;

/// Numbers tried when looking for a free one. More are taken only if a member assigned so many by hand; that member can
/// assign the next one too.
const NUMBERS_TRIED: u32 = 100;

/// The number of a definition that is saved.
pub(crate) struct Numbering {
    /// Semantic version.
    pub version: String,
    /// The rows that reserve it; `None` if the definition is in the history already.
    pub puts: Option<Vec<Put>>,
}

/// Assigns a number to a definition: the one that it had before, the requested one, or the next free one. `workflow`
/// has the version of the last save, and the number of its newest history entry.
pub(crate) fn number(
    repository: Repository<'_>,
    id: &str,
    workflow: &Workflow,
    requested: Option<&str>,
) -> Result<Numbering> {
    if let Some(known) = newest(repository, "hash", format!("{id}/{}", workflow.hash))? {
        return match requested {
            Some(requested) if requested != known.version => Err(Problem::new(
                Code::Conflict,
                format!(
                    "version: this definition is version {} of the workflow `{id}`, and a definition has one version: leave \
                     `version` out, or change the definition as well.",
                    known.version
                ),
            )),
            _ => Ok(Numbering { version: known.version, puts: None }),
        };
    }
    let last = newest(repository, "workflow", id.to_string())?;
    let older = match &last {
        Some(last) => unnumbered(repository, id, &last.version)?,
        None => BTreeMap::new(),
    };
    let taken = |version: &str| match older.get(version) {
        Some(hash) => Ok(Some(hash.clone())),
        None => Ok::<_, Problem>(
            repository.get::<VersionNumber>(&version_number_id(id, version))?.map(|stored| stored.body.hash),
        ),
    };
    let version = match requested {
        Some(requested) => match taken(requested)? {
            Some(hash) => {
                return Err(Problem::new(
                    Code::Conflict,
                    format!(
                        "version: {requested} of the workflow `{id}` is another definition ({hash}): leave `version` out to use the \
                         next number, or give one that is not in the history."
                    ),
                ));
            }
            None => requested.to_string(),
        },
        None => free(&workflow.version, last.as_ref().map(|last| last.version.as_str()), taken)?,
    };
    let own = (version.clone(), workflow.hash.clone());
    let put = |(version, hash): (String, String)| {
        repository.put(&version_number_id(id, &version), &VersionNumber { hash }, 0)
    };
    let puts = older.into_iter().chain([own]).map(put).collect::<Result<Vec<_>>>()?;
    Ok(Numbering { version, puts: Some(puts) })
}

/// The next free number: the initial one for a new workflow, otherwise a patch number behind the last version, and
/// behind the newest history entry if that has the same minor version.
fn free(before: &str, newest: Option<&str>, taken: impl Fn(&str) -> Result<Option<String>>) -> Result<String> {
    let Some(newest) = newest else { return Ok(before.to_string()) };
    let [major, minor, patch] = parts(before).unwrap_or([1, 0, 0]);
    let last = parts(newest).filter(|last| last[..2] == [major, minor]).map_or(patch, |last| last[2].max(patch));
    for step in 1..=u64::from(NUMBERS_TRIED) {
        let version = format!("{major}.{minor}.{}", last.saturating_add(step));
        if taken(&version)?.is_none() {
            return Ok(version);
        }
    }
    let message =
        format!("version: {NUMBERS_TRIED} numbers behind {major}.{minor}.{last} are taken: give one in `version`.");
    Err(Problem::new(Code::Conflict, message))
}

/// The newest history entry with an index entry.
fn newest(repository: Repository<'_>, field: &'static str, value: String) -> Result<Option<Version>> {
    let listing =
        Listing { name: Some((field, value)), is_descending: true, most: ReadLimit::of(1), ..Listing::default() };
    Ok(repository.list::<Version>(listing)?.rows.pop().map(|stored| stored.body))
}

/// The version numbers in a history that an older release wrote without reserving them, each with its newest
/// definition. Empty if the number of the newest entry is reserved, because then all are.
fn unnumbered(repository: Repository<'_>, id: &str, newest: &str) -> Result<BTreeMap<String, String>> {
    if repository.get::<VersionNumber>(&version_number_id(id, newest))?.is_some() {
        return Ok(BTreeMap::new());
    }
    let mut numbers = BTreeMap::new();
    for stored in repository.all::<Version>(Some(("workflow", id.to_string()))) {
        let Version { version, hash, .. } = stored?.body;
        numbers.insert(version, hash);
    }
    Ok(numbers)
}

/// The three numbers of a semantic version of at most 100 characters, each up to 2^64 - 1; `None` for other texts
/// (Semantic Versioning 2.0.0, grammar in the last section).
pub(crate) fn parts(version: &str) -> Option<[u64; 3]> {
    let (rest, build) = split(version, '+');
    let (core, before) = split(rest, '-');
    let is_named =
        |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let is_whole =
        |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let fits = build.is_none_or(|build| build.split('.').all(is_named))
        && before
            .is_none_or(|before| before.split('.').all(|part| is_named(part) && (!is_digits(part) || is_whole(part))));
    let mut numbers = core.split('.').map(|part| part.parse::<u64>().ok().filter(|_| is_whole(part)));
    let found = [numbers.next()??, numbers.next()??, numbers.next()??];
    (fits && numbers.next().is_none() && version.len() <= VERSION_CHARACTERS_MAX).then_some(found)
}

/// Splits at the first occurrence of a character.
fn split(text: &str, letter: char) -> (&str, Option<&str>) {
    text.split_once(letter).map_or((text, None), |(before, behind)| (before, Some(behind)))
}

#[cfg(test)]
mod tests {
    use mainspring_store::{Change, memory::MemoryStore};

    use super::*;
    use crate::{
        http::body::Data,
        resources::{Source, repository::apply, version_id},
    };

    const ID: &str = "w";

    fn workflow(version: &str, hash: &str) -> Workflow {
        Workflow {
            user: "ada".into(),
            slug: None,
            name: ID.into(),
            description: None,
            version: version.into(),
            data: Data::default(),
            hash: hash.into(),
            enabled: true,
            tags: Vec::new(),
            created_at: 0,
            updated_at: 0,
            revision: 0,
            drain: None,
            rollout: None,
            repository: None,
        }
    }

    fn entry(revision: u64, version: &str, hash: &str) -> Version {
        Version {
            workflow: ID.into(),
            revision,
            version: version.into(),
            hash: hash.into(),
            data: Data::default(),
            source: Source::Sync,
            source_proposal_id: None,
            notes: None,
            created_by: "ada".into(),
            created_at: 0,
        }
    }

    /// Saves definitions one after the other, each with the requested version, and returns their numbers; `None` for a
    /// rejected one. The `older` entries are from a release that reserved no numbers.
    fn saved(older: &[(&str, &str)], then: &[(&str, Option<&str>)]) -> Vec<Option<String>> {
        let store = MemoryStore::new();
        let repository = Repository::of(&store, "o");
        let (mut revision, mut now) = (0, "1.0.0".to_string());
        for (version, hash) in older {
            revision += 1;
            let put = repository.put(&version_id(ID, revision), &entry(revision, version, hash), 0).unwrap();
            assert_eq!(apply(&store, &Change { puts: vec![put], ..Change::default() }), Ok(Ok(())));
            now = (*version).to_string();
        }
        let mut each = |(hash, requested): &(&str, Option<&str>)| {
            let Numbering { version, puts } = number(repository, ID, &workflow(&now, hash), *requested).ok()?;
            if let Some(mut puts) = puts {
                revision += 1;
                puts.push(repository.put(&version_id(ID, revision), &entry(revision, &version, hash), 0).unwrap());
                assert_eq!(apply(&store, &Change { puts, ..Change::default() }), Ok(Ok(())));
            }
            now = version.clone();
            Some(version)
        };
        then.iter().map(&mut each).collect()
    }

    #[track_caller]
    fn check(older: &[(&str, &str)], then: &[(&str, Option<&str>)], expected: &[Option<&str>]) {
        let found = saved(older, then);
        assert_eq!(found.iter().map(Option::as_deref).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_definition_has_one_number_and_a_number_one_definition() {
        let (a, b, c) = (("a", None), ("b", None), ("c", None));
        check(&[], &[a, a, b, c], &[Some("1.0.0"), Some("1.0.0"), Some("1.0.1"), Some("1.0.2")]);
        // A definition that was saved before keeps its number; a new one gets a number behind all others.
        check(&[], &[a, b, a, c], &[Some("1.0.0"), Some("1.0.1"), Some("1.0.0"), Some("1.0.2")]);
        check(&[], &[("a", Some("2.1.0")), b, ("c", Some("3.0.0"))], &[Some("2.1.0"), Some("2.1.1"), Some("3.0.0")]);
        // The number of another definition is rejected, and so is another number for this one.
        check(&[], &[a, ("b", Some("1.0.0")), ("a", Some("1.0.1")), b], &[Some("1.0.0"), None, None, Some("1.0.1")]);
        // Numbers assigned by hand are skipped.
        check(
            &[],
            &[a, ("b", Some("1.0.2")), ("c", Some("1.0.1")), ("d", None)],
            &[Some("1.0.0"), Some("1.0.2"), Some("1.0.1"), Some("1.0.3")],
        );
    }

    #[test]
    fn numbers_of_an_older_history_are_taken() {
        let older = [("1.0.0", "a"), ("1.0.0", "b"), ("1.0.1", "c")];
        check(&older, &[("d", None), ("e", Some("1.0.0"))], &[Some("1.0.2"), None]);
        check(&older, &[("d", Some("1.0.0")), ("c", None), ("b", None)], &[None, Some("1.0.1"), Some("1.0.0")]);
        check(&[("1.0.0", "a"), ("2.0.0", "a")], &[("a", None), ("b", None)], &[Some("2.0.0"), Some("2.0.1")]);
    }

    #[test]
    fn versions_are_three_numbers() {
        let long = |count: usize| format!("1.2.3-{}", "a".repeat(count));
        for right in ["1.2.3", "1.2.3-rc.1", "1.2.3-0", "1.2.3-0a.--.x-y", "1.2.3+001.-", "1.2.3-a+b", &long(94)] {
            assert_eq!(parts(right), Some([1, 2, 3]), "{right}");
        }
        assert_eq!(parts("0.0.18446744073709551615"), Some([0, 0, u64::MAX]));
        for wrong in [
            "1.2",
            "1.2.3.4",
            "v1.2.3",
            "1.2.x",
            "",
            "01.2.3",
            "1.02.3",
            "1.2.03",
            "+1.2.3",
            "1.+2.3",
            "1.2.3-",
            "1.2.3+",
            "1.2.3-01",
            "1.2.3-a..b",
            "1.2.3-a_b",
            "1.2.3-é",
            "1.2.3+a+b",
            "1.2.3+a..b",
            "1.2.3 ",
            "1.2.3-a b",
            "-1.2.3",
            "1.2.18446744073709551616",
            &long(95),
        ] {
            assert!(parts(wrong).is_none(), "{wrong}");
        }
    }
}
