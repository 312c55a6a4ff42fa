//! Refs: their names, and the commits that a remote lists for them.

use super::{error::GitError, limits::REF_BYTES_MAX};

/// The ref that stands for the default branch of a remote.
pub const DEFAULT_REF: &str = "HEAD";

/// A commit with the full name of its ref.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Resolved {
    /// Full name, such as `refs/heads/main`; the commit itself if that was asked for.
    pub(super) reference: String,
    /// Forty hexadecimal digits in lowercase.
    pub(super) commit: String,
}

/// A ref as a remote lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listed {
    /// Full name.
    pub(super) name: String,
    /// The commit. For an annotated tag the one that it names.
    pub(super) commit: String,
    /// The branch that a symbolic ref names.
    pub(super) target: Option<String>,
}

/// Checks the name of a branch, a tag or a full ref, or a commit (git-check-ref-format(1)). The error is a sentence.
pub fn check_ref(name: &str) -> Result<(), String> {
    let is_special = |letter: char| letter.is_control() || " ~^:?*[\\".contains(letter);
    let is_part = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock");
    let is_fine = name.len() <= REF_BYTES_MAX
        && !name.contains(is_special)
        && !name.contains("..")
        && !name.contains("@{")
        && name != "@"
        && !name.starts_with('-')
        && !name.ends_with('.')
        && name.split('/').all(is_part);
    if is_fine {
        return Ok(());
    }
    Err(format!(
        "it must be a branch, a tag, a full ref like refs/heads/main or a commit, with at most {REF_BYTES_MAX} bytes"
    ))
}

/// Returns a text as the id of a commit, if it is a complete one.
pub(super) fn as_commit(text: &str) -> Option<String> {
    let is_id = text.len() == 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_none = text.bytes().all(|byte| byte == b'0');
    (is_id && !is_none).then(|| text.to_ascii_lowercase())
}

/// The full names that a name may stand for.
pub(super) fn candidates(name: &str) -> Vec<String> {
    match name {
        DEFAULT_REF => vec![DEFAULT_REF.into()],
        full if full.starts_with("refs/") => vec![full.into()],
        short => vec![format!("refs/heads/{short}"), format!("refs/tags/{short}")],
    }
}

/// Reads a line of a list of refs (gitprotocol-v2(5), `ls-refs`).
pub(super) fn listed(line: &str) -> Option<Listed> {
    let mut parts = line.split(' ');
    let (id, name) = (parts.next()?, parts.next()?);
    let (mut commit, mut target) = (as_commit(id)?, None);
    for attribute in parts {
        if let Some(peeled) = attribute.strip_prefix("peeled:") {
            commit = as_commit(peeled)?;
        } else if let Some(symbolic) = attribute.strip_prefix("symref-target:") {
            target = Some(symbolic.to_owned());
        }
    }
    Some(Listed { name: name.to_owned(), commit, target })
}

/// Chooses the commit of a ref. A short name that is a branch and a tag of different commits is refused.
pub(super) fn choose(name: &str, list: &[Listed]) -> Result<Resolved, GitError> {
    let wanted = candidates(name);
    let found: Vec<&Listed> = list.iter().filter(|listed| wanted.contains(&listed.name)).collect();
    let Some(first) = found.first() else {
        let shown = name.escape_debug();
        return Err(GitError::NotFound(match name {
            DEFAULT_REF => "the repository has no default branch: name a `ref`, or push a commit".into(),
            _ => format!("the repository has no branch and no tag `{shown}`: correct `ref`"),
        }));
    };
    if found.iter().any(|other| other.commit != first.commit) {
        let shown = name.escape_debug();
        let why = format!("`{shown}` is a branch and a tag: write refs/heads/{shown} or refs/tags/{shown}");
        return Err(GitError::NotFound(why));
    }
    let reference = first.target.clone().filter(|target| check_ref(target).is_ok());
    Ok(Resolved { reference: reference.unwrap_or_else(|| first.name.clone()), commit: first.commit.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_refs_are_checked() {
        let long = "a".repeat(256);
        for name in ["main", "feature/a-b_c", "v1.0", "refs/heads/main", "HEAD", "ä", &"0a".repeat(20)] {
            assert_eq!(check_ref(name), Ok(()), "{name}");
        }
        for name in [
            "",
            "-main",
            "--upload-pack=x",
            "a..b",
            "a b",
            "a\nb",
            "a~1",
            "a^",
            "a:b",
            "a?",
            "a*",
            "[a",
            "a\\b",
            "/a",
            "a/",
            "a//b",
            ".a",
            "a/.b",
            "a.",
            "a.lock",
            "@",
            "a@{1}",
            &long,
        ] {
            assert!(check_ref(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_ref_becomes_one_commit() {
        let (one, two) = ("1".repeat(40), "2".repeat(40));
        let lines = [
            format!("{one} HEAD symref-target:refs/heads/main"),
            format!("{one} refs/heads/main"),
            format!("{two} refs/heads/main2"),
            format!("{two} refs/tags/v1 peeled:{one}"),
            format!("{one} refs/heads/both"),
            format!("{two} refs/tags/both"),
        ];
        let list: Vec<Listed> = lines.iter().map(|line| listed(line).unwrap()).collect();
        let found = |name: &str| choose(name, &list).map(|found| (found.reference, found.commit));
        let expected = |name: &str, commit: &str| Ok((name.to_owned(), commit.to_owned()));
        assert_eq!(found("HEAD"), expected("refs/heads/main", &one));
        assert_eq!(found("main"), expected("refs/heads/main", &one));
        assert_eq!(found("v1"), expected("refs/tags/v1", &one));
        assert_eq!(found("refs/tags/both"), expected("refs/tags/both", &two));
        for (name, word) in [("both", "a branch and a tag"), ("mai", "no branch"), ("refs/heads/x", "no branch")] {
            assert!(matches!(found(name), Err(GitError::NotFound(why)) if why.contains(word)), "{name}");
        }
        assert_eq!(listed("unborn HEAD symref-target:refs/heads/main"), None);
        assert_eq!(listed(&format!("{} refs/heads/x", "0".repeat(40))), None);
    }
}
