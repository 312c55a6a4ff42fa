//! The order in which a node works on due rows: schedules, and prompts of orchestrators. Organizations take turns, so that
//! the rows of one, however many are due or cannot be done, delay those of the others by little.

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    future::Future,
};

use mainspring_store::ReadLimit;
use tokio::task::{Id, JoinSet};
use tracing::{error, warn};

use crate::{
    app::App,
    http::{
        problem::Result,
        request_slots::{Account, Kind, on_account},
    },
    resources::{
        DueSchedule, due_id, due_ms,
        repository::{Listing, Repository, Resource, Stored},
    },
    services::turns::Turns,
};

/// Rows that are done at a time, and those of one organization: as many as its request slots.
const CONCURRENT_MAX: usize = 32;
const CONCURRENT_PER_ORGANIZATION_MAX: usize = 8;

/// Due rows of one organization that one read returns. The others follow in the next one, a second later: a minute
/// has enough of them for all schedules of an organization.
const READ_PER_ORGANIZATION_MAX: usize = 250;

/// Due rows that one read returns, and the rows that it reads for them: all schedules of five organizations.
const READ_MAX: usize = 2_000;
const SCANNED_MAX: usize = 10_000;

/// Rows of one page. A row has about 100 bytes.
const PAGE: usize = 500;

/// A row of the installation whose id begins with the time at which it is due ([`due_id`](crate::resources::due_id)).
pub(super) trait DueRow: Resource + Clone {
    /// The longest delay of a row, if there is one. A row that is due later was written before the clock was set back, and
    /// is due at once.
    const LONGEST_DELAY_MS: Option<u64>;

    /// Id of the organization.
    fn organization(&self) -> &str;

    /// Returns a test for the rows that this node works on.
    fn own(app: &App) -> Result<impl Fn(&Self) -> bool>;
}

impl DueRow for DueSchedule {
    /// The next tick can be years ahead.
    const LONGEST_DELAY_MS: Option<u64> = None;

    fn organization(&self) -> &str {
        &self.organization
    }

    /// All: the store accepts one execution for each tick.
    fn own(_: &App) -> Result<impl Fn(&Self) -> bool> {
        Ok(|_: &Self| true)
    }
}

/// Due rows of a node: those that wait, and those that are done now.
pub(super) struct Rounds<R> {
    waiting: Turns<Stored<R>>,
    now_ms: u64,
    /// The tasks with the organization and the id of their rows.
    running: JoinSet<()>,
    rows: HashMap<Id, (String, String)>,
}

impl<R> Default for Rounds<R> {
    fn default() -> Self {
        Self { waiting: Turns::default(), now_ms: 0, running: JoinSet::new(), rows: HashMap::new() }
    }
}

impl<R: DueRow + Send + Sync + 'static> Rounds<R> {
    /// Reads the rows that are due, except those that are done now. They replace the ones that wait. Returns their
    /// number.
    pub(super) async fn read(&mut self, app: &App) -> Result<usize> {
        let (now_ms, running) = (app.now_ms(), self.rows.values().map(|(_, id)| id.clone()).collect::<HashSet<_>>());
        self.waiting.replace(app.run(move |app| due_rows(app, now_ms, &running)).await?);
        self.now_ms = now_ms;
        Ok(self.waiting.len())
    }

    /// Starts work on the rows that wait, up to the bounds.
    pub(super) fn start<F>(&mut self, app: &App, work: impl Fn(App, Stored<R>, u64) -> F)
    where
        F: Future<Output = Result<()>> + Send + 'static,
    {
        while self.running.len() < CONCURRENT_MAX
            && let Some(row) = self.take()
        {
            let (organization, id) = (row.body.organization().to_string(), row.id.clone());
            let account = Account { kind: Kind::Ordinary, key: organization.clone(), member: SCHEDULER.into() };
            let done = work(app.clone(), row, self.now_ms);
            let task = self.running.spawn(on_account(account, async move {
                if let Err(problem) = done.await {
                    let (kind, error) = (R::DISPLAY_NAME, problem.full_message());
                    warn!(kind, error, "a due row was not done; it is tried again in a second");
                }
            }));
            self.rows.insert(task.id(), (organization, id));
        }
    }

    /// Takes the next row: the first one of the next organization that is below its bound.
    fn take(&mut self) -> Option<Stored<R>> {
        let rows = &self.rows;
        let count = |organization: &str| rows.values().filter(|(other, _)| other == organization).count();
        self.waiting.take(|organization| count(organization) < CONCURRENT_PER_ORGANIZATION_MAX)
    }

    pub(super) fn is_running(&self) -> bool {
        !self.running.is_empty()
    }

    /// Waits until a row is decided. Nothing is lost if the wait is canceled.
    pub(super) async fn finish_one(&mut self) {
        match self.running.join_next_with_id().await {
            None => {}
            Some(Ok((id, ()))) => drop(self.rows.remove(&id)),
            Some(Err(failed)) => {
                self.rows.remove(&failed.id());
                error!(kind = R::DISPLAY_NAME, error = failed.to_string(), "work on a due row ended early");
            }
        }
    }
}

/// The member to whom the request slots are charged: none, so that the members keep their own.
const SCHEDULER: &str = "";

/// Reads the rows that are due, a bounded number of each organization.
fn due_rows<R: DueRow>(
    app: &App,
    now_ms: u64,
    running: &HashSet<String>,
) -> Result<BTreeMap<String, VecDeque<Stored<R>>>> {
    let is_own = R::own(app)?;
    let mut found: BTreeMap<String, VecDeque<_>> = BTreeMap::new();
    let (mut after, mut scanned, mut count) = (None, 0, 0);
    let latest_ms = R::LONGEST_DELAY_MS.map(|delay_ms| now_ms.saturating_add(delay_ms));
    let mut is_behind = false;
    'pages: while scanned < SCANNED_MAX && count < READ_MAX {
        let listing = Listing { after, most: ReadLimit::of(PAGE), ..Listing::default() };
        let page = Repository::of(app.catalogue(), "").list::<R>(listing)?;
        after = page.next_cursor(|last| last.id.clone());
        scanned += page.rows.len();
        for row in page.rows {
            let is_late = |due_ms: u64| latest_ms.is_some_and(|latest_ms| due_ms > latest_ms);
            if due_ms(&row.id).is_some_and(|due_ms| due_ms > now_ms && !is_late(due_ms)) {
                let Some(latest_ms) = latest_ms.filter(|_| !is_behind) else { return Ok(found) };
                // The rows in between wait.
                (after, is_behind) = (Some(due_id(latest_ms + 1, "")), true);
                continue 'pages;
            }
            if running.contains(&row.id) || !is_own(&row.body) {
                continue;
            }
            let of_organization = found.entry(row.body.organization().to_string()).or_default();
            if of_organization.len() < READ_PER_ORGANIZATION_MAX {
                of_organization.push_back(row);
                count += 1;
            }
        }
        if after.is_none() {
            break;
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(counts: &[(&str, usize)]) -> Rounds<DueSchedule> {
        let row = |organization: &str, number: usize| Stored {
            id: format!("{number:015}/{organization}"),
            version: 1,
            body: DueSchedule { organization: organization.into(), trigger: "t".into(), cursor_ms: 0 },
        };
        let waiting = counts.iter().map(|(organization, count)| {
            (organization.to_string(), (0..*count).map(|number| row(organization, number)).collect())
        });
        let mut rounds = Rounds::default();
        rounds.waiting.replace(waiting.collect());
        rounds
    }

    #[test]
    fn organizations_take_turns() {
        let mut rounds = rounds(&[("acme", 3), ("globex", 1), ("loud", 2)]);
        let order: Vec<String> = std::iter::from_fn(|| rounds.take()).map(|row| row.body.organization).collect();
        assert_eq!(order, ["acme", "globex", "loud", "acme", "loud", "acme"]);
    }

    #[tokio::test]
    async fn an_organization_has_a_bound_of_running_schedules() {
        let mut rounds = rounds(&[("loud", 100)]);
        while let Some(row) = rounds.take() {
            let task = rounds.running.spawn(std::future::pending());
            rounds.rows.insert(task.id(), (row.body.organization, row.id));
        }
        assert_eq!(rounds.rows.len(), CONCURRENT_PER_ORGANIZATION_MAX);
        rounds.waiting = self::rounds(&[("acme", 1)]).waiting;
        assert_eq!(rounds.take().map(|row| row.body.organization).as_deref(), Some("acme"));
    }
}
