//! The sender: starts the passes that deliver the events of subscriptions.
//!
//! The queue of a subscription has the executions with frames behind its position. A [pass](super::pass) sends some of
//! their events. Organizations take turns, and so do the subscriptions of an organization. One node sends for a
//! subscription: the owner of the partition that its id belongs to. While the owner changes, two nodes can send the same
//! event; the position is moved once.

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use mainspring_store::DueSubscription;
use tokio::{
    task::{Id, JoinSet},
    time::MissedTickBehavior,
};
use tracing::{error, warn};

use super::{
    journal_cache::JournalCache,
    partition_owner::owns,
    pass::{due_times, pass},
};
use crate::{app::App, http::problem::Result, services::turns::Turns};

/// The interval in which the queue is read. It is read at once after a pass that left due events.
const INTERVAL: Duration = Duration::from_millis(500);

/// Subscriptions that are sent to at the same time, and those of one organization.
const SUBSCRIPTIONS_MAX: usize = 64;
const SUBSCRIPTIONS_PER_ORGANIZATION_MAX: usize = 8;

/// Passes of a subscription between two counts of its queue.
const PASSES_PER_COUNT: u32 = 120;

/// Subscriptions whose passes are remembered. Beyond them all queues are counted again.
const SERVED_MAX: usize = 10_000;

/// Sends events until the task is aborted.
pub async fn run(app: App) {
    let mut again = tokio::time::interval(INTERVAL);
    again.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut passes = Passes::default();
    loop {
        tokio::select! {
            _ = again.tick() => {
                if app.engine.is_draining() {
                    return;
                }
                if let Err(problem) = passes.read(&app).await {
                    warn!(error = problem.full_message(), "the queue of events was not read; it is read again");
                }
            }
            has_more = passes.finish_one(), if !passes.running.is_empty() => {
                if has_more {
                    again.reset_immediately();
                }
            }
        }
        passes.start(&app);
    }
}

/// Sends the events that are due now, one pass for each subscription. Returns the number of subscriptions.
pub async fn poll(app: &App) -> Result<usize> {
    let mut passes = Passes::default();
    let count = passes.read(app).await?;
    passes.start(app);
    while !passes.running.is_empty() {
        passes.finish_one().await;
        passes.start(app);
    }
    Ok(count)
}

/// The passes that are running, and the subscriptions that wait for theirs.
#[derive(Default)]
struct Passes {
    running: JoinSet<bool>,
    subscriptions: HashMap<Id, DueSubscription>,
    waiting: Turns<DueSubscription>,
    served: HashMap<String, Served>,
    /// The number of passes so far.
    count: u64,
    journals: Arc<JournalCache>,
}

/// The passes of a subscription so far.
#[derive(Default)]
struct Served {
    /// Their number since the queue was counted.
    since_count: u32,
    /// The number of the last one among those of all subscriptions.
    last: u64,
}

impl Passes {
    /// Reads the due subscriptions of this node that have no pass. They replace the ones that wait. Returns their number.
    async fn read(&mut self, app: &App) -> Result<usize> {
        let running: HashSet<String> = self.subscriptions.values().map(|running| running.id.clone()).collect();
        let due = app.run(move |app| due(app, &running)).await?;
        if self.served.len() > SERVED_MAX {
            self.served.clear();
        }
        self.queue(due);
        Ok(self.waiting.len())
    }

    /// Replaces the subscriptions that wait. Those of an organization that were served longest ago are first.
    fn queue(&mut self, due: Vec<DueSubscription>) {
        let mut waiting: BTreeMap<String, Vec<DueSubscription>> = BTreeMap::new();
        for subscription in due {
            waiting.entry(subscription.organization.clone()).or_default().push(subscription);
        }
        for subscriptions in waiting.values_mut() {
            subscriptions.sort_by_key(|due| self.served.get(&due.id).map_or(0, |served| served.last));
        }
        self.waiting
            .replace(waiting.into_iter().map(|(organization, due)| (organization, VecDeque::from(due))).collect());
    }

    /// Starts the passes of subscriptions that wait, up to the bounds.
    fn start(&mut self, app: &App) {
        while self.running.len() < SUBSCRIPTIONS_MAX
            && let Some((subscription, counts)) = self.take()
        {
            let (app, id, journals) = (app.clone(), subscription.id.clone(), self.journals.clone());
            let task = self.running.spawn(async move {
                pass(&app, &id, counts, journals).await.unwrap_or_else(|problem| {
                    let error = problem.full_message();
                    warn!(subscription = id, error, "events were not sent; they are sent again");
                    false
                })
            });
            self.subscriptions.insert(task.id(), subscription);
        }
    }

    /// Takes the next subscription: the first one of the next organization that is below its bound. True if its queue is
    /// to be counted.
    fn take(&mut self) -> Option<(DueSubscription, bool)> {
        let running = &self.subscriptions;
        let count = |organization: &str| running.values().filter(|of| of.organization == organization).count();
        let next = self.waiting.take(|organization| count(organization) < SUBSCRIPTIONS_PER_ORGANIZATION_MAX)?;
        self.count += 1;
        let served = self.served.entry(next.id.clone()).or_default();
        let counts = served.since_count == 0;
        (served.since_count, served.last) = ((served.since_count + 1) % PASSES_PER_COUNT, self.count);
        Some((next, counts))
    }

    /// Waits until a pass has ended. True if it left due events. Nothing is lost if the wait is canceled.
    async fn finish_one(&mut self) -> bool {
        match self.running.join_next_with_id().await {
            None => false,
            Some(Ok((id, has_more))) => {
                self.subscriptions.remove(&id);
                has_more
            }
            Some(Err(failed)) => {
                self.subscriptions.remove(&failed.id());
                error!(error = failed.to_string(), "a pass of a subscription ended early");
                false
            }
        }
    }
}

/// The due subscriptions of this node without those in progress, sorted.
fn due(app: &App, running: &HashSet<String>) -> Result<Vec<DueSubscription>> {
    let store = app.engine.store();
    let found = store.event_queue().due_subscriptions(due_times(app))?;
    if found.is_empty() {
        return Ok(found);
    }
    let partitions = store.partitions()?;
    let is_ours = |due: &DueSubscription| !running.contains(&due.id) && owns(app, &due.id, partitions);
    Ok(found.into_iter().filter(is_ours).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(organization: &str, count: usize) -> Vec<DueSubscription> {
        let id = |number: usize| DueSubscription {
            id: format!("{organization}-{number}"),
            organization: organization.into(),
        };
        (0..count).map(id).collect()
    }

    /// The ids of the passes that can start, which do not end.
    fn started(passes: &mut Passes) -> Vec<String> {
        let mut started = Vec::new();
        while passes.running.len() < SUBSCRIPTIONS_MAX
            && let Some((subscription, _)) = passes.take()
        {
            let task = passes.running.spawn(std::future::pending());
            started.push(subscription.id.clone());
            passes.subscriptions.insert(task.id(), subscription);
        }
        started
    }

    #[tokio::test]
    async fn unresponsive_endpoints_of_one_organization_block_no_other() {
        let mut passes = Passes::default();
        passes.queue(due("loud", 50));
        assert_eq!(started(&mut passes).len(), SUBSCRIPTIONS_PER_ORGANIZATION_MAX);
        passes.queue([due("loud", 50), due("acme", 1)].concat());
        assert_eq!(started(&mut passes), ["acme-0"]);
    }

    #[tokio::test]
    async fn subscriptions_of_an_organization_take_turns() {
        let mut passes = Passes::default();
        passes.queue(due("loud", 10));
        let first = started(&mut passes);
        assert_eq!(first.len(), 8);
        (passes.running, passes.subscriptions) = (JoinSet::new(), HashMap::new());
        passes.queue(due("loud", 10));
        assert_eq!(started(&mut passes)[..3], ["loud-8", "loud-9", "loud-0"]);
    }
}
