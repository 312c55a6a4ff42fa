//! Tests of the state machine with a simulated store, in which reads are late and messages are lost or repeated. No
//! limit is exceeded, and every queued execution starts.

use std::sync::LazyLock;

use mainspring_kernel::{
    definition::{Syntax, compile, read},
    input::{Lineage, Parent},
    instance::Instance,
    plan::Plan,
};

use super::*;
use crate::start_request::{StartRequest, row};

mod draining;

const BOUNDS: Bounds = Bounds { user: 2, organization: 3, workflow: None, live: 1_000 };

fn key(number: u8) -> ExecutionKey {
    let mut key = [0; 16];
    key[0] = number;
    ExecutionKey(key)
}

static PLAN: LazyLock<Arc<Plan>> = LazyLock::new(|| {
    let document = read(b"steps: [{id: a, type: sleep, durationMs: 1}]", Syntax::Yaml).expect("it reads");
    Arc::new(compile(&document).expect("it compiles").plan)
});

fn new_execution(number: u8, user: &str, workflow: &str) -> Box<NewExecution> {
    let plan = PLAN.clone();
    let trigger =
        Value::map([("type", "manual".into()), ("organizationId", "o".into()), ("workflowId", workflow.into())]);
    let request = StartRequest { trigger, ..StartRequest::new(plan.clone(), user) };
    let stored_plans = request.stored_plans();
    let start = Box::new(request.start(key(number)));
    let row = row(key(number), &start, &plan, 0);
    let ticket = Some(Ticket(u64::from(number)));
    Box::new(NewExecution {
        execution: key(number),
        plan,
        stored_plans,
        start,
        row,
        message: None,
        ticket,
        audit: None,
    })
}

fn row_of(number: u8, user: &str, status: &str) -> ExecutionRow {
    static ROW: LazyLock<ExecutionRow> = LazyLock::new(|| new_execution(0, "nobody", "w").row);
    ExecutionRow { key: key(number), initiator_user_id: Some(user.into()), status: status.into(), ..ROW.clone() }
}

/// A state machine that has read an empty store.
fn machine(bounds: Bounds) -> Admission {
    let mut machine = Admission::default();
    machine.want("o");
    assert_eq!(machine.take_wanted_reads(), ["o"]);
    apply_read(&mut machine, bounds, Vec::new());
    machine
}

fn apply_read(machine: &mut Admission, bounds: Bounds, rows: Vec<ExecutionRow>) -> AdmissionActions {
    machine.on_read("o", Ok(Reading { bounds, drains: Drains::new(), rows }), |_| false)
}

fn begins(machine: &mut Admission, number: u8, user: &str, workflow: &str) -> Option<Queue> {
    machine.start(new_execution(number, user, workflow), true).expect("it is known what runs").start.queue
}

#[test]
fn queued_starts_name_their_limit_and_the_first_that_fits_starts() {
    let mut machine = machine(BOUNDS);
    assert_eq!(begins(&mut machine, 1, "ann", "w"), None);
    assert_eq!(begins(&mut machine, 2, "ann", "w"), None);
    assert_eq!(begins(&mut machine, 3, "ann", "w"), Some(Queue::User));
    assert_eq!(begins(&mut machine, 4, "bob", "w"), None);
    assert_eq!(begins(&mut machine, 5, "bob", "w"), Some(Queue::Organization));
    assert_eq!(begins(&mut machine, 6, "ann", "w"), Some(Queue::User));
    // Only the limit of the organization stops bob: the slot that ann frees goes to her own earlier execution.
    assert_eq!(machine.ended(key(2)), [key(3)]);
    assert_eq!(machine.ended(key(4)), [key(5)]);
    assert_eq!(machine.ended(key(4)), []);
    assert_eq!(machine.ended(key(5)), []);
    assert_eq!(machine.ended(key(6)), [], "it was cancelled in the queue");
    assert_eq!(machine.ended(key(1)), []);
    assert_eq!(machine.ended(key(3)), []);
    machine.want_all();
    machine.take_wanted_reads();
    apply_read(&mut machine, BOUNDS, Vec::new());
    machine.want_all();
    assert!(machine.queues.is_empty() && machine.organizations.is_empty());
}

#[test]
fn workflows_have_bounds_where_they_are_set() {
    let mut machine = machine(Bounds { user: 9, organization: 9, workflow: Some(1), live: 1_000 });
    assert_eq!(begins(&mut machine, 1, "ann", "v"), None);
    assert_eq!(begins(&mut machine, 2, "bob", "v"), Some(Queue::Workflow));
    assert_eq!(begins(&mut machine, 3, "bob", "w"), None);
    assert_eq!(machine.ended(key(3)), []);
    assert_eq!(machine.ended(key(1)), [key(2)]);
}

/// Before the store was read, a caller waits, and a start from the inbox is queued.
#[test]
fn the_first_start_waits_for_the_read() {
    let mut machine = Admission::default();
    assert!(machine.start(new_execution(7, "ann", "w"), true).is_none());
    let message =
        Box::new(NewExecution { ticket: None, message: Some("start".into()), ..*new_execution(8, "ann", "w") });
    assert_eq!(machine.start(message, true).map(|start| start.start.queue), Some(Some(Queue::Admission)));
    assert_eq!(machine.take_wanted_reads(), ["o"]);
    assert!(machine.take_wanted_reads().is_empty());
    let refused = machine.on_read("o", Err("no".into()), |_| true);
    assert_eq!(refused.refuse, [(Ticket(7), "no".to_string())]);
    assert!(machine.start(new_execution(7, "ann", "w"), true).is_none());
    assert_eq!(machine.take_wanted_reads(), ["o"]);
    let rows = vec![row_of(1, "ann", "running"), row_of(2, "eve", "pending")];
    // The start from the inbox is in an unfinished commit.
    let found = machine
        .on_read("o", Ok(Reading { bounds: BOUNDS, drains: Drains::new(), rows }), |execution| execution == key(8));
    assert_eq!(found.admit, [key(2), key(8)]);
    assert_eq!(found.begin.iter().map(|start| start.start.queue).collect::<Vec<_>>(), [Some(Queue::User)]);
}

#[test]
fn a_failed_start_frees_its_slot() {
    let mut machine = machine(Bounds { user: 1, ..BOUNDS });
    assert_eq!(begins(&mut machine, 1, "ann", "w"), None);
    assert_eq!(begins(&mut machine, 2, "ann", "w"), Some(Queue::User));
    assert_eq!(machine.answered(Ticket(2), true), []);
    assert_eq!(machine.answered(Ticket(1), false), [key(2)]);
    assert_eq!(machine.answered(Ticket(1), false), []);
    assert!(machine.starting.is_empty());
}

/// The result of a read is older than the events since its start.
#[test]
fn an_end_during_a_read_is_not_overwritten_by_the_read() {
    let mut machine = machine(Bounds { user: 1, ..BOUNDS });
    assert_eq!(begins(&mut machine, 1, "ann", "w"), None);
    assert_eq!(begins(&mut machine, 2, "ann", "w"), Some(Queue::User));
    machine.want("o");
    machine.take_wanted_reads();
    machine.want("o");
    assert!(machine.take_wanted_reads().is_empty(), "one read at a time");
    assert_eq!(machine.ended(key(1)), [key(2)]);
    let rows = vec![row_of(1, "ann", "running"), row_of(2, "ann", "pending")];
    // Admitted again, since the first message may be lost.
    assert_eq!(apply_read(&mut machine, Bounds { user: 1, ..BOUNDS }, rows).admit, [key(2)]);
    assert_eq!(machine.take_wanted_reads(), ["o"], "and the one requested during the read");
    // It ended at another node.
    assert!(apply_read(&mut machine, BOUNDS, Vec::new()).admit.is_empty());
    assert!(machine.organizations.is_empty());
    // An end before the first read.
    let mut machine = Admission::default();
    assert!(machine.start(new_execution(2, "ann", "w"), true).is_none());
    machine.take_wanted_reads();
    assert_eq!(machine.ended(key(1)), []);
    let found = apply_read(&mut machine, Bounds { user: 1, ..BOUNDS }, vec![row_of(1, "ann", "running")]);
    assert_eq!(found.begin.iter().map(|start| start.start.queue).collect::<Vec<_>>(), [None]);
}

#[test]
fn starts_are_queued_if_another_node_counts() {
    let mut machine = Admission::default();
    let start = machine.start(new_execution(1, "ann", "w"), false).expect("it begins");
    assert_eq!(start.start.queue, Some(Queue::Admission));
    assert_eq!(machine.answered(Ticket(1), false), []);
    assert!(machine.start(new_execution(2, "ann", "w"), true).is_none());
    let begun = machine.keep(|_| false);
    assert_eq!(begun.iter().map(|start| start.start.queue).collect::<Vec<_>>(), [Some(Queue::Admission)]);
    assert!(machine.queues.is_empty());
}

fn lineage(depth: u32, is_waited_for: bool) -> Option<Lineage> {
    let parent = Parent { execution: key(0), instance: Instance { step: 0, rounds: Vec::new() }, attempt: 1 };
    Some(Lineage {
        parent: is_waited_for.then_some(parent),
        depth,
        workflows: Vec::new(),
        executions: None,
        budget: None,
    })
}

#[test]
fn awaited_children_use_the_slot_of_the_root_and_others_their_own() {
    let mut machine = machine(Bounds { user: 1, ..BOUNDS });
    let mut start = |number, lineage| {
        let mut new_execution = new_execution(number, "ann", "w");
        new_execution.start.lineage = lineage;
        machine.start(new_execution, true).map(|start| start.start.queue)
    };
    assert_eq!(start(1, lineage(0, false)), Some(None));
    assert_eq!(start(2, lineage(1, true)), Some(None), "in the place of the first");
    assert_eq!(start(3, lineage(1, false)), Some(Some(Queue::User)));
    assert_eq!(start(4, lineage(2, true)), Some(None), "of whomever: that one has begun");
    assert_eq!(machine.counts(), [1, 1]);
    assert_eq!(machine.ended(key(2)), []);
    assert_eq!(machine.ended(key(1)), [key(3)]);
    // In the store, only its row distinguishes an execution from a child.
    let child = |number, lineage| {
        let start = Start { lineage, ..*new_execution(number, "ann", "w").start };
        let row = row(key(number), &start, &PLAN, 0);
        ExecutionRow { status: "running".into(), ..row }
    };
    let rows = [child(2, lineage(1, true)), child(3, lineage(1, false))];
    assert_eq!(rows.each_ref().map(has_place), [false, true]);
}

/// A child in the slot of its parent always starts, so that no tree waits for itself. It counts for the limit of its
/// workflow.
#[test]
fn awaited_children_count_for_their_workflow_and_never_queue() {
    let bounds = Bounds { user: 9, organization: 9, workflow: Some(1), live: 1_000 };
    let waited_for = |number: u8, workflow: &str| {
        let mut child = new_execution(number, "ann", workflow);
        child.start.lineage = lineage(1, true);
        child
    };
    let mut machine = machine(bounds);
    assert_eq!(begins(&mut machine, 1, "ann", "a"), None);
    for number in [2, 3] {
        let begun = machine.start(waited_for(number, "b"), true).expect("it begins");
        assert_eq!(begun.start.queue, None);
    }
    assert_eq!(begins(&mut machine, 4, "bob", "b"), Some(Queue::Workflow));
    assert_eq!(machine.counts(), [1, 1], "they have no places of their own");
    assert_eq!(machine.ended(key(2)), [], "another one is left");
    assert_eq!(machine.ended(key(3)), [key(4)]);
    // The store contains the same, also for starts on other nodes. The next read removes an execution that ended there.
    let row = |number, workflow| {
        let start = &waited_for(number, workflow).start;
        ExecutionRow { status: "running".into(), ..row(key(number), start, &PLAN, 0) }
    };
    machine.want("o");
    machine.take_wanted_reads();
    let rows = vec![row_of(1, "ann", "running"), row_of(4, "bob", "running"), row(5, "c")];
    apply_read(&mut machine, bounds, rows.clone());
    assert_eq!(begins(&mut machine, 6, "bob", "c"), Some(Queue::Workflow));
    machine.want("o");
    machine.take_wanted_reads();
    let queued = ExecutionRow { workflow_id: Some("c".into()), ..row_of(6, "bob", "pending") };
    assert_eq!(apply_read(&mut machine, bounds, [&rows[..2], &[queued]].concat()).admit, [key(6)]);
    // Without limits for workflows, children are not kept.
    let mut machine = self::machine(BOUNDS);
    machine.start(waited_for(2, "b"), true).expect("it begins");
    assert!(machine.queues["o"].guests.is_empty());
}

/// A repeated start message and a repeated key count once.
#[test]
fn the_same_start_again_counts_once() {
    let mut machine = machine(BOUNDS);
    assert_eq!(begins(&mut machine, 1, "ann", "w"), None);
    assert_eq!(begins(&mut machine, 1, "ann", "w"), None);
    assert_eq!(begins(&mut machine, 2, "ann", "w"), None);
    assert_eq!(begins(&mut machine, 3, "ann", "w"), Some(Queue::User));
    assert_eq!(begins(&mut machine, 3, "ann", "w"), Some(Queue::Admission), "and waits as before");
    assert_eq!(machine.ended(key(1)), [key(3)]);
    assert_eq!(begins(&mut machine, 3, "ann", "w"), None);
}

/// Each key is checked once per admitted execution, and once more.
#[test]
fn admission_checks_no_concurrency_key_twice() {
    let key_of = |number: u8| ConcurrencyKey { user: format!("user {number}").as_str().into(), definition: None };
    let mut queue = OrganizationQueue {
        bounds: Some(Bounds { user: 2, organization: 300, workflow: None, live: 1_000 }),
        ..OrganizationQueue::default()
    };
    for number in 0..240 {
        queue.enqueue(key(number), key_of(number % 80));
    }
    assert_eq!(queue.admit(), (0..160).map(key).collect::<Vec<_>>(), "in the order of arrival");
    assert_eq!(queue.asked.get(), 240);
    // The limit of the organization blocks all keys.
    let mut queue = OrganizationQueue {
        bounds: Some(Bounds { user: 9, organization: 3, workflow: None, live: 1_000 }),
        ..OrganizationQueue::default()
    };
    for number in 0..240 {
        queue.enqueue(key(number), key_of(number % 80));
    }
    assert_eq!(queue.admit(), [key(0), key(1), key(2)]);
    assert_eq!(queue.asked.get(), 4);
}

/// No execution starts under changed limits, regardless of the read that returned them.
#[test]
fn starts_use_the_current_limits() {
    let mut machine = machine(Bounds { user: 1, ..BOUNDS });
    assert_eq!(begins(&mut machine, 1, "ann", "w"), None);
    assert_eq!(begins(&mut machine, 2, "ann", "w"), Some(Queue::User));
    machine.want("o");
    machine.take_wanted_reads();
    machine.bounds_changed("o");
    assert_eq!(machine.ended(key(1)), []);
    assert!(machine.start(new_execution(3, "bob", "w"), true).is_none());
    let rows = || vec![row_of(2, "ann", "pending")];
    let stale = apply_read(&mut machine, BOUNDS, rows());
    assert!(stale.admit.is_empty() && stale.begin.is_empty());
    assert_eq!(machine.take_wanted_reads(), ["o"]);
    let found = apply_read(&mut machine, Bounds { user: 0, ..BOUNDS }, rows());
    assert!(found.admit.is_empty());
    assert_eq!(found.begin.iter().map(|start| start.start.queue).collect::<Vec<_>>(), [Some(Queue::User)]);
    machine.bounds_changed("nobody's");
}

/// A random world with starts, ends, late reads and lost messages.
#[derive(Default)]
struct Made {
    dice: u64,
    /// Durable rows by key: user and status.
    rows: BTreeMap<u8, (&'static str, &'static str)>,
    /// Admitted executions that have not received the message.
    admissions: Vec<ExecutionKey>,
    /// Reads in progress, with their results.
    schedule: Vec<Vec<ExecutionRow>>,
}

impl Made {
    fn below(&mut self, bound: usize) -> usize {
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.dice >> 33) as usize % bound
    }

    fn read(&self) -> Vec<ExecutionRow> {
        self.rows
            .iter()
            .filter(|(_, (_, status))| *status != "completed")
            .map(|(n, (user, status))| row_of(*n, user, status))
            .collect()
    }

    fn step(&mut self, machine: &mut Admission, next: &mut u8) {
        match self.below(6) {
            0 | 1 if *next < 60 => {
                *next += 1;
                let user = ["ann", "bob", "eve"][self.below(3)];
                if let Some(start) = machine.start(new_execution(*next, user, "w"), true) {
                    self.begin(*start);
                }
            }
            2 => {
                let running: Vec<u8> =
                    self.rows.iter().filter(|(_, row)| row.1 == "running").map(|(n, _)| *n).collect();
                if !running.is_empty() {
                    let number = running[self.below(running.len())];
                    self.rows.get_mut(&number).expect("it is there").1 = "completed";
                    let admitted = machine.ended(key(number));
                    self.say(admitted);
                }
            }
            3 if !self.admissions.is_empty() => {
                let admission = self.admissions.remove(0);
                let is_lost = self.below(4) == 0;
                let row = self.rows.get_mut(&admission.0[0]).filter(|row| row.1 == "pending" && !is_lost);
                row.into_iter().for_each(|row| row.1 = "running");
            }
            4 => {
                machine.want("o");
                self.apply_read(machine);
            }
            _ => self.answer(machine),
        }
    }

    /// An inbox contains equal messages once.
    fn say(&mut self, admitted: Vec<ExecutionKey>) {
        for execution in admitted {
            if !self.admissions.contains(&execution) {
                self.admissions.push(execution);
            }
        }
    }

    fn apply_read(&mut self, machine: &mut Admission) {
        for _ in machine.take_wanted_reads() {
            self.schedule.push(self.read());
        }
    }

    fn answer(&mut self, machine: &mut Admission) {
        let Some(rows) = self.schedule.pop() else { return };
        let rows_now: BTreeSet<ExecutionKey> = self.rows.keys().map(|number| key(*number)).collect();
        let actions = machine.on_read("o", Ok(Reading { bounds: BOUNDS, drains: Drains::new(), rows }), |execution| {
            rows_now.contains(&execution)
        });
        actions.begin.into_iter().for_each(|start| self.begin(start));
        self.say(actions.admit);
        self.apply_read(machine);
    }

    fn begin(&mut self, start: NewExecution) {
        let user = ["ann", "bob", "eve"].into_iter().find(|user| *user == start.start.by).expect("one of them");
        let status = if start.start.queue.is_some() { "pending" } else { "running" };
        self.rows.insert(start.execution.0[0], (user, status));
    }

    fn check(&self) {
        let running: Vec<_> = self.rows.values().filter(|row| row.1 == "running").collect();
        assert!(running.len() <= BOUNDS.organization as usize, "{running:?}");
        for user in ["ann", "bob", "eve"] {
            assert!(running.iter().filter(|row| row.0 == user).count() <= BOUNDS.user as usize, "{running:?}");
        }
    }
}

#[test]
fn random_starts_stay_within_limits_and_all_run() {
    let mut waited = 0;
    for seed in 0..300 {
        let mut world = Made { dice: seed, ..Made::default() };
        let (mut machine, mut next) = (Admission::default(), 0);
        let mut steps = 0;
        while next < 60 || world.rows.len() < 60 || world.rows.values().any(|row| row.1 != "completed") {
            world.step(&mut machine, &mut next);
            world.apply_read(&mut machine);
            world.check();
            waited += usize::from(world.rows.values().any(|row| row.1 == "pending"));
            steps += 1;
            assert!(steps < 5_000, "seed {seed}: no progress: {:?}", world.rows);
        }
    }
    assert!(waited > 10_000, "hardly anything waited: {waited}");
}
