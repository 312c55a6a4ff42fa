//! Checks the executions: quarantined ones, late timers, old approvals, and the nodes that run them.

use mainspring_engine::clock::now_ms;
use mainspring_kernel::{time::rfc3339, value::Value};
use mainspring_store::{InspectedExecution, InspectedExecutions, InspectedNode, Inspection, StoreError};

use super::{Installation, check::Check, refused};

/// Executions that are named in a message.
const NAMED_MAX: usize = 3;

/// A timer that is so late although an engine is running is never processed. Ordinary lateness is milliseconds.
const LATE_MS: u64 = 60_000;

/// Days after which an open approval counts as forgotten.
const FORGOTTEN_DAYS: u64 = 3;
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// The newest frame may be this far ahead of this machine's clock, since nodes have clocks of their own.
const CLOCK_BACK_MS: u64 = 5_000;

/// 2025 in milliseconds since the epoch: no build of this program is older.
const CLOCK_MS_MIN: u64 = 1_735_689_600_000;

const NAMES: [&str; 5] = ["quarantine", "timers", "approvals", "nodes", "approvers"];

/// The results without a store. The clock is checked in any case.
pub(super) fn skipped(why: &str) -> Vec<Check> {
    let mut checks = NAMES.map(|name| Check::skipped(name, why)).to_vec();
    checks.push(clock(now_ms(), None));
    checks
}

/// Checks the executions of the store.
pub(super) fn check(installation: &Installation, store: &dyn Inspection, report: &mut impl Extend<Check>) {
    let now = now_ms();
    let seen = store.nodes();
    let is_up =
        installation.holder.is_some() || matches!(&seen, Ok(Some(nodes)) if nodes.iter().any(|node| node.is_alive));
    let late = store.overdue(now.saturating_sub(LATE_MS), NAMED_MAX);
    let forgotten = store.waiting_since(now.saturating_sub(FORGOTTEN_DAYS * DAY_MS), NAMED_MAX);
    report.extend([
        or_skipped("quarantine", store.quarantined(NAMED_MAX), quarantine),
        or_skipped("timers", late, |listed| timers(listed, is_up)),
        or_skipped("approvals", forgotten, approvals),
        or_skipped("nodes", seen, nodes),
        or_skipped("clock", store.newest_frame_ms(), |newest_ms| clock(now, Some(newest_ms))),
    ]);
}

/// Runs a check on a value that was read. It is skipped if the format has no such value.
fn or_skipped<T>(name: &'static str, found: Result<Option<T>, StoreError>, check: impl FnOnce(T) -> Check) -> Check {
    match found {
        Ok(Some(found)) => check(found),
        Ok(None) => {
            Check::skipped(name, "the store does not have this information: it is empty, or of an older format")
        }
        Err(error) => refused(name, &error),
    }
}

fn quarantine(listed: InspectedExecutions) -> Check {
    if listed.count == 0 {
        return Check::ok("quarantine", "no execution is quarantined");
    }
    let one = |named: &InspectedExecution| {
        format!("{} ({})", named.id, named.reason.as_deref().unwrap_or("no reason is known"))
    };
    let message = format!("{} quarantined: {}", executions(listed.count, "is", "are"), all(&listed, one));
    let help = format!("`mainspring verify {}` shows the defect, `mainspring show` the attempts", first(&listed));
    Check::broken("quarantine", message, help).with("count", listed.count).with("first", names(&listed))
}

fn timers(listed: InspectedExecutions, is_up: bool) -> Check {
    let (count, seconds) = (listed.count, LATE_MS / 1_000);
    let due =
        |named: &InspectedExecution| format!("{} (since {})", named.id, named.at_ms.map(rfc3339).unwrap_or_default());
    let check = match (count, is_up) {
        (0, _) => return Check::ok("timers", format!("no wake-up is more than {seconds} s late")),
        (_, false) => {
            let message =
                format!("{} due, and no process runs them: start `mainspring up`", executions(count, "is", "are"));
            Check::ok("timers", message)
        }
        (_, true) => {
            let message = format!(
                "{} not woken although an engine runs: {}",
                executions(count, "was", "were"),
                all(&listed, due)
            );
            let help = "check the log of the process that runs them, and mainspring_timer_lateness_seconds";
            Check::warning("timers", message, help)
        }
    };
    check.with("count", count).with("first", names(&listed))
}

fn approvals(listed: InspectedExecutions) -> Check {
    if listed.count == 0 {
        return Check::ok("approvals", format!("no approval has been open for more than {FORGOTTEN_DAYS} days"));
    }
    let gate = |named: &InspectedExecution| {
        let since = named.at_ms.map(rfc3339).unwrap_or_default();
        format!("{} at {} since {since}", named.id, named.reason.as_deref().unwrap_or_default())
    };
    let (count, gates) = (listed.count, if listed.count == 1 { "approval is open" } else { "approvals are open" });
    let message = format!("{count} {gates} for more than {FORGOTTEN_DAYS} days: {}", all(&listed, gate));
    let help = format!("`mainspring approve {0}` or `mainspring deny {0}`", first(&listed));
    Check::warning("approvals", message, help).with("count", count).with("first", names(&listed))
}

fn nodes(nodes: Vec<InspectedNode>) -> Check {
    let one = |node: &InspectedNode| format!("{} at {} ({})", node.name, node.address, node.release);
    let (alive, silent): (Vec<_>, Vec<_>) = nodes.iter().partition(|node| node.is_alive);
    let list = |nodes: &[&InspectedNode]| nodes.iter().map(|node| one(node)).collect::<Vec<_>>().join(", ");
    let other = alive.iter().find(|node| node.release != env!("CARGO_PKG_VERSION"));
    let check = match (alive.as_slice(), silent.as_slice()) {
        ([], []) => Check::ok("nodes", "no node is registered; only nodes of a shared store register"),
        (alive, silent @ [_, ..]) => {
            let message = format!("expired leases: {}; {} alive", list(silent), alive.len());
            Check::warning(
                "nodes",
                message,
                "check that these nodes run and reach the store; other nodes have taken over",
            )
        }
        (alive, []) => match other {
            Some(node) => {
                let message = format!("alive: {}; {} is of another release than this build", list(alive), node.name);
                Check::warning("nodes", message, "continue the upgrade, one node after the other")
            }
            None => Check::ok("nodes", format!("alive: {}", list(alive))),
        },
    };
    check.with("alive", alive.len() as u64).with("silent", silent.len() as u64)
}

/// A clock that was set back makes executions wait longer, and puts execution keys out of order.
fn clock(now: u64, newest_ms: Option<u64>) -> Check {
    let time = rfc3339(now);
    let help = "set this machine's clock, and synchronize it with NTP";
    match newest_ms {
        _ if now < CLOCK_MS_MIN => {
            Check::broken("clock", format!("the clock of this machine shows {time}, which is in the past"), help)
        }
        Some(newest) if newest > now.saturating_add(CLOCK_BACK_MS) => {
            let message = format!(
                "the clock of this machine shows {time}, and the newest frame is from {}: the clock went back",
                rfc3339(newest)
            );
            Check::broken("clock", message, help)
        }
        _ => Check::ok("clock", format!("it is {time}; all times are stored in UTC, regardless of TZ")),
    }
}

fn executions(count: u64, one: &str, many: &str) -> String {
    if count == 1 { format!("1 execution {one}") } else { format!("{count} executions {many}") }
}

fn all(listed: &InspectedExecutions, one: impl Fn(&InspectedExecution) -> String) -> String {
    let named = listed.first.iter().map(one).collect::<Vec<_>>().join(", ");
    if listed.count > listed.first.len() as u64 { format!("{named}, …") } else { named }
}

fn first(listed: &InspectedExecutions) -> &str {
    listed.first.first().map_or("ID", |named| named.id.as_str())
}

fn names(listed: &InspectedExecutions) -> Vec<Value> {
    listed.first.iter().map(|named| Value::from(named.id.as_str())).collect()
}

#[cfg(test)]
mod tests {
    use super::{super::check::State, *};

    fn listed(count: u64) -> InspectedExecutions {
        let named = InspectedExecution { id: "e1".into(), at_ms: Some(1_800_000_000_000), reason: Some("ship".into()) };
        InspectedExecutions { count, first: vec![named; usize::try_from(count).unwrap().min(NAMED_MAX)] }
    }

    fn node(release: &str, is_alive: bool) -> InspectedNode {
        InspectedNode { name: "n1".into(), address: "host 7".into(), release: release.into(), is_alive }
    }

    #[test]
    fn findings_give_states() {
        const NOW: u64 = 1_800_000_000_000;
        let here = env!("CARGO_PKG_VERSION");
        let table = [
            (quarantine(listed(0)), State::Ok, "no execution"),
            (quarantine(listed(1)), State::Broken, "1 execution is quarantined: e1 (ship)"),
            (quarantine(listed(9)), State::Broken, "9 executions are quarantined: e1 (ship), e1 (ship), e1 (ship), …"),
            (timers(listed(0), true), State::Ok, "60 s"),
            (timers(listed(2), true), State::Warning, "2 executions were not woken"),
            (timers(listed(2), false), State::Ok, "no process runs"),
            (approvals(listed(0)), State::Ok, "3 days"),
            (approvals(listed(1)), State::Warning, "1 approval is open for more than 3 days: e1 at ship since 2027-"),
            (nodes(vec![]), State::Ok, "no node"),
            (nodes(vec![node(here, true)]), State::Ok, "alive: n1 at host 7"),
            (nodes(vec![node(here, true), node(here, false)]), State::Warning, "expired leases"),
            (nodes(vec![node("0.0.1", true)]), State::Warning, "another release"),
            (clock(1_000, None), State::Broken, "in the past"),
            (clock(NOW, Some(NOW + CLOCK_BACK_MS)), State::Ok, "2027-01-15"),
            (clock(NOW, Some(NOW + CLOCK_BACK_MS + 1)), State::Broken, "went back"),
        ];
        for (check, state, said) in table {
            assert!(check.state == state && check.message.contains(said), "{check:?}");
        }
    }
}
