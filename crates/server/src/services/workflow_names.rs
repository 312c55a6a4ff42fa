//! Names of workflows: resolves an id, a slug or a display name, also with a pending change applied.

use std::collections::{BTreeMap, BTreeSet};

use mainspring_store::ReadLimit;

use crate::{
    http::problem::{Code, Problem, Result},
    resources::{
        Workflow,
        repository::{Listing, Repository, Stored},
    },
};

/// Resolves a name for a member: a slug of their own, then an id, then a slug of another member if it is unique. Slugs
/// of other members never change the meaning of a member's own slugs.
pub(crate) fn resolve(repository: Repository<'_>, user: &str, name: &str) -> Result<Option<Stored<Workflow>>> {
    if let Some(found) = resolve_own(repository, user, name, &PendingChange::default())? {
        return Ok(Some(found));
    }
    let listing = Listing { name: Some(("slug", name.to_string())), most: ReadLimit::of(2), ..Listing::default() };
    let mut found = repository.list::<Workflow>(listing)?.rows;
    if found.len() > 1 {
        let message = format!("`{name}` is the slug of several workflows: name one by its id");
        return Err(Problem::new(Code::Conflict, message));
    }
    Ok(found.pop())
}

/// Resolves a slug of the member's own or an id, with a pending change applied.
pub(crate) fn resolve_own(
    repository: Repository<'_>,
    user: &str,
    name: &str,
    pending: &PendingChange<'_>,
) -> Result<Option<Stored<Workflow>>> {
    if let Some(put) = pending.by_slug.get(&(user, name)) {
        return Ok(Some((*put).clone()));
    }
    let by_slug = repository.find_by_name::<Workflow>("own slug", &Workflow::own_slug(user, name))?;
    if let Some(found) = by_slug.filter(|stored| pending.stays(stored)) {
        return Ok(Some(found));
    }
    match pending.kept.get(name) {
        Some(put) => Ok(Some((*put).clone())),
        None => Ok(repository.get::<Workflow>(name)?.filter(|stored| pending.stays(stored))),
    }
}

/// A change of workflows that is about to be committed. Names resolve to the state after it.
#[derive(Default)]
pub(crate) struct PendingChange<'a> {
    kept: BTreeMap<&'a str, &'a Stored<Workflow>>,
    /// Workflows that the change saves, by owner and slug (at most one), and by owner and name.
    by_slug: BTreeMap<(&'a str, &'a str), &'a Stored<Workflow>>,
    by_name: BTreeMap<(&'a str, &'a str), Vec<&'a Stored<Workflow>>>,
    gone: BTreeSet<&'a str>,
}

impl<'a> PendingChange<'a> {
    /// Builds the view from the workflows that the change saves and the ids that it deletes.
    pub(crate) fn of(kept: impl IntoIterator<Item = &'a Stored<Workflow>>, gone: &'a [String]) -> Self {
        let mut pending = Self { gone: gone.iter().map(String::as_str).collect(), ..Self::default() };
        for stored in kept {
            let Workflow { user, slug, name, .. } = &stored.body;
            pending.kept.insert(&stored.id, stored);
            pending.by_slug.extend(slug.iter().map(|slug| ((user.as_str(), slug.as_str()), stored)));
            pending.by_name.entry((user, name)).or_default().push(stored);
        }
        pending
    }

    /// True if the change neither replaces nor deletes a stored workflow.
    fn stays(&self, stored: &Stored<Workflow>) -> bool {
        !self.kept.contains_key(stored.id.as_str()) && !self.gone.contains(stored.id.as_str())
    }
}

/// Resolves the name in a step that starts a workflow. It is resolved for the owner of the starting workflow, and may
/// also be a display name.
pub(crate) fn resolve_started(
    repository: Repository<'_>,
    owner: &str,
    name: &str,
    pending: &PendingChange<'_>,
) -> Result<Option<Stored<Workflow>>> {
    if let Some(found) = resolve_own(repository, owner, name, pending)? {
        return Ok(Some(found));
    }
    let called = repository.all::<Workflow>(Some(("name", name.to_string())));
    let is_theirs = |stored: &Stored<Workflow>| stored.body.user == owner && pending.stays(stored);
    let stored = called.filter(|stored| stored.as_ref().map_or(true, &is_theirs));
    let put = pending.by_name.get(&(owner, name)).into_iter().flatten();
    let mut theirs = put.map(|stored| Ok((*stored).clone())).chain(stored);
    match (theirs.next().transpose()?, theirs.next().transpose()?) {
        (Some(_), Some(_)) => {
            let message = format!("several workflows are named `{name}`: use the id");
            Err(Problem::new(Code::Conflict, message))
        }
        (found, _) => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use mainspring_store::{Change, memory::MemoryStore};

    use super::*;
    use crate::{http::body::Data, resources::repository::apply};

    type Names = (&'static str, Option<&'static str>, &'static str);

    /// A workflow with an id, a slug and a name; its hash encodes the given state.
    fn stored((id, slug, name): Names, state: &str, version: u64) -> Stored<Workflow> {
        let body = Workflow {
            user: "ada".into(),
            slug: slug.map(Into::into),
            name: name.into(),
            description: None,
            version: "1.0.0".into(),
            data: Data::default(),
            hash: state.into(),
            enabled: true,
            tags: Vec::new(),
            created_at: 0,
            updated_at: 0,
            revision: 1,
            drain: None,
            rollout: None,
            repository: None,
        };
        Stored { id: id.into(), version, body }
    }

    /// The possible names of the workflow with this id; `None` for a missing one.
    fn states(id: &'static str) -> Vec<Option<Names>> {
        let slugs = [None, Some("a"), Some("b")];
        let all = slugs.into_iter().flat_map(|slug| ["a", "b", "c"].map(|name| Some((id, slug, name))));
        all.chain([None]).collect()
    }

    #[test]
    fn a_pending_change_resolves_names_as_the_committed_change_does() {
        let ask = |repository: Repository<'_>, pending: &PendingChange<'_>| {
            ["a", "b", "c", "d"].map(|name| {
                let found = resolve_started(repository, "ada", name, pending).map_err(|problem| problem.code);
                found.map(|found| found.map(|stored| (stored.id, stored.body.hash)))
            })
        };
        let pairs = || states("a").into_iter().flat_map(|one| states("d").into_iter().map(move |two| [one, two]));
        let mut committed = 0;
        for (before, after) in pairs().flat_map(|before| pairs().map(move |after| (before, after))) {
            let store = MemoryStore::new();
            let repository = Repository::of(&store, "o");
            let (mut first, mut then, mut kept, mut gone) =
                (Change::default(), Change::default(), Vec::new(), Vec::new());
            for (before, after) in before.into_iter().zip(after) {
                let was = before.map(|named| stored(named, "before", 1));
                first.puts.extend(was.iter().map(|was| repository.put(&was.id, &was.body, 0).unwrap()));
                match after {
                    // A workflow with the same name is not part of the change.
                    Some(_) if after == before => {}
                    Some(named) => {
                        let (put, version) = (stored(named, "after", 2), u64::from(was.is_some()));
                        then.puts.push(repository.put(&put.id, &put.body, version).unwrap());
                        kept.push(put);
                    }
                    None => {
                        then.removals.extend(was.iter().map(|was| repository.removal(was)));
                        gone.extend(was.map(|was| was.id));
                    }
                }
            }
            if apply(&store, &first).unwrap().is_err() {
                continue;
            }
            let expected = ask(repository, &PendingChange::of(&kept, &gone));
            if apply(&store, &then).unwrap().is_ok() {
                assert_eq!(ask(repository, &PendingChange::default()), expected, "{before:?} {after:?}");
                committed += 1;
            }
        }
        assert!(committed > 5_000, "{committed}");
    }
}
