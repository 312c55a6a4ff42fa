//! Tests of drains: an execution of a new definition never runs beside one of an older definition, and none waits for
//! ever.

use super::*;

const OLD: Hash = Hash([1; 32]);
const NEW: Hash = Hash([2; 32]);

fn drains() -> Drains {
    Drains::from([("w".into(), Drain { since_ms: 7, new: BTreeSet::from([NEW]) })])
}

/// A start of a definition. `waits` is true if the caller has seen a drain.
fn of(number: u8, hash: Hash, waits: bool) -> Box<NewExecution> {
    let mut new = new_execution(number, "ann", "w");
    new.start.workflow_hash = hash;
    new.row.workflow_hash = hash.prefixed();
    new.start.queue = waits.then_some(Queue::Admission);
    new
}

fn row_with(number: u8, hash: Hash, status: &str) -> ExecutionRow {
    ExecutionRow { workflow_hash: hash.prefixed(), workflow_id: Some("w".into()), ..row_of(number, "ann", status) }
}

fn begins(machine: &mut Admission, number: u8, hash: Hash, waits: bool) -> Option<Queue> {
    machine.start(of(number, hash, waits), true).expect("the organization was read").start.queue
}

fn read(machine: &mut Admission, drains: Drains, rows: Vec<ExecutionRow>) -> Vec<ExecutionKey> {
    assert_eq!(machine.take_wanted_reads(), ["o"]);
    machine.on_read("o", Ok(Reading { bounds: BOUNDS, drains, rows }), |_| true).admit
}

#[test]
fn a_new_definition_waits_for_the_older_executions_and_for_a_read() {
    let mut machine = machine(BOUNDS);
    assert_eq!(begins(&mut machine, 1, OLD, false), None);
    assert_eq!(begins(&mut machine, 2, NEW, true), Some(Queue::Admission));
    let waiting = |old: &str| vec![row_with(1, OLD, old), row_with(2, NEW, "pending")];
    assert_eq!(read(&mut machine, drains(), waiting("running")), []);
    assert_eq!(begins(&mut machine, 3, OLD, false), None, "an older one that was on its way runs");
    assert_eq!(begins(&mut machine, 4, NEW, true), Some(Queue::Workflow), "the drain is known");
    assert_eq!(machine.ended(key(1)), []);
    assert!(machine.take_wanted_reads().is_empty(), "another older one runs");
    assert_eq!(machine.ended(key(3)), [], "this node may not know all of them");
    let rows = vec![row_with(2, NEW, "pending"), row_with(4, NEW, "pending")];
    assert_eq!(read(&mut machine, drains(), rows), [key(2), key(4)]);
    let over = Drained { workflow: "w".into(), since_ms: 7 };
    assert_eq!(machine.drained("o").first(), Some(&over), "the next read removes the drain");
    assert_eq!(begins(&mut machine, 5, NEW, true), Some(Queue::Admission), "it may be a new drain");
    let rows = [2, 4].map(|number| row_with(number, NEW, "running")).to_vec();
    assert_eq!(read(&mut machine, drains(), rows), [], "two of the member run");
    assert_eq!(machine.drained("o"), [over], "it is still there");
    assert_eq!(machine.ended(key(2)), [key(5)], "and holds nothing");
    assert_eq!((machine.ended(key(4)), machine.ended(key(5))), (Vec::new(), Vec::new()));
    assert_eq!(begins(&mut machine, 6, OLD, false), None, "it was on its way for long");
    assert_eq!(begins(&mut machine, 7, NEW, true), Some(Queue::Admission));
    let rows = vec![row_with(6, OLD, "running"), row_with(7, NEW, "pending")];
    assert_eq!(read(&mut machine, drains(), rows), [key(7)], "a drain that is over does not begin again");
}

#[test]
fn a_read_that_began_before_a_start_does_not_admit_it() {
    let mut machine = machine(BOUNDS);
    machine.want("o");
    assert_eq!(machine.take_wanted_reads(), ["o"]);
    assert_eq!(begins(&mut machine, 1, NEW, true), Some(Queue::Admission));
    let found = Reading { bounds: BOUNDS, drains: Drains::new(), rows: vec![row_with(1, NEW, "pending")] };
    assert_eq!(machine.on_read("o", Ok(found), |_| true).admit, [], "the workflow may drain since");
    assert_eq!(machine.counts(), [0, 1]);
    assert_eq!(read(&mut machine, drains(), vec![row_with(9, OLD, "running"), row_with(1, NEW, "pending")]), []);
    // The drain is taken back.
    machine.bounds_changed("o");
    assert_eq!(
        read(&mut machine, Drains::new(), vec![row_with(9, OLD, "running"), row_with(1, NEW, "pending")]),
        [key(1)]
    );
}

#[test]
fn older_executions_that_wait_or_are_children_count() {
    let mut machine = machine(BOUNDS);
    machine.want("o");
    let rows = || vec![row_with(1, OLD, "running"), row_with(2, OLD, "pending"), row_with(3, NEW, "pending")];
    assert_eq!(read(&mut machine, drains(), rows()), [key(2)], "an older one is not held");
    assert_eq!((machine.ended(key(1)), machine.ended(key(2))), (Vec::new(), Vec::new()));
    // The organization is full, and an older execution waits behind a new one.
    let other = |number: u8| ExecutionRow { workflow_id: Some("v".into()), ..row_with(number, OLD, "running") };
    let of = |number: u8, user: &str| ExecutionRow { initiator_user_id: Some(user.into()), ..other(number) };
    let full = vec![of(7, "bob"), of(8, "bob"), of(9, "eve"), row_with(3, NEW, "pending"), row_with(5, OLD, "pending")];
    assert_eq!(read(&mut machine, drains(), full), []);
    assert_eq!(machine.drained("o"), [], "the queued one is waited for");
    assert_eq!(machine.ended(key(7)), [key(5)]);
    for number in [5, 8, 9] {
        assert_eq!(machine.ended(key(number)), []);
    }
    let child = ExecutionRow { trigger_type: CHILD.into(), ..row_with(4, OLD, "running") };
    assert_eq!(read(&mut machine, drains(), vec![child, row_with(3, NEW, "pending")]), []);
    assert_eq!(machine.ended(key(4)), []);
    assert_eq!(read(&mut machine, drains(), vec![row_with(3, NEW, "pending")]), [key(3)]);
}

#[test]
fn a_read_that_sees_a_drain_first_does_not_end_it() {
    let mut machine = machine(BOUNDS);
    machine.want("o");
    // Another node stores an older start after the rows of this read, and the drain begins before its drains are read.
    assert_eq!(read(&mut machine, drains(), vec![row_with(2, NEW, "pending")]), []);
    assert_eq!(machine.drained("o"), []);
    let rows = || vec![row_with(1, OLD, "running"), row_with(2, NEW, "pending")];
    assert_eq!(read(&mut machine, drains(), rows()), [], "the older one is waited for");
    assert_eq!(machine.ended(key(1)), []);
    // The drain was canceled, and another one started.
    let later = Drains::from([("w".into(), Drain { since_ms: 8, new: BTreeSet::from([NEW]) })]);
    let rows = || vec![row_with(2, NEW, "pending")];
    assert_eq!(read(&mut machine, later.clone(), rows()), [], "it is not the drain that was known");
    assert_eq!(read(&mut machine, later, rows()), [key(2)], "an idle drain is read again without another event");
}

/// A store with one workflow, a node that counts, and starts of this node and of others.
#[derive(Default)]
struct World {
    dice: u64,
    /// Definition and status by number.
    rows: BTreeMap<u8, (Hash, &'static str)>,
    drains: Drains,
    is_new: bool,
    /// The rows of reads in progress. A read takes the drains at its end.
    reads: Vec<Vec<ExecutionRow>>,
    admissions: Vec<ExecutionKey>,
    started: u8,
    held: u32,
}

impl World {
    fn below(&mut self, most: u64) -> u64 {
        self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.dice >> 33) % most
    }

    fn unfinished(&self) -> impl Iterator<Item = (&u8, &(Hash, &'static str))> {
        self.rows.iter().filter(|(_, row)| row.1 != "completed")
    }

    fn start_running(&mut self, number: u8) {
        let row = self.rows[&number];
        let is_alone = !self.unfinished().any(|(_, row)| row.0 == OLD);
        assert!(row.0 == OLD || self.drains.is_empty() || is_alone, "{number} runs beside an older execution");
        self.rows.insert(number, (row.0, "running"));
    }

    /// An inbox contains equal messages once.
    fn say(&mut self, admitted: Vec<ExecutionKey>) {
        for execution in admitted {
            if !self.admissions.contains(&execution) {
                self.admissions.push(execution);
            }
        }
    }

    fn start(&mut self, machine: &mut Admission) {
        self.started += 1;
        let number = self.started;
        let hash = if self.is_new { NEW } else { OLD };
        self.rows.insert(number, (hash, "pending"));
        // The start of another node is queued there, and this node learns of it by a read.
        if self.below(3) == 0 {
            return;
        }
        let Some(start) = machine.start(of(number, hash, !self.drains.is_empty()), true) else {
            self.rows.remove(&number);
            return;
        };
        match start.start.queue {
            None => self.start_running(number),
            Some(_) => self.held += 1,
        }
    }

    fn read(&mut self, machine: &mut Admission) {
        for organization in machine.take_wanted_reads() {
            if !machine.drained(&organization).is_empty() && self.below(2) == 0 {
                self.drains.clear();
            }
            let rows = self.unfinished().map(|(number, (hash, status))| row_with(*number, *hash, status)).collect();
            self.reads.push(rows);
        }
    }

    fn step(&mut self, machine: &mut Admission) {
        match self.below(8) {
            0 | 1 if self.started < 40 => self.start(machine),
            2 if !self.is_new && self.started > 10 => {
                self.is_new = true;
                self.drains = drains();
            }
            3 | 4 => {
                let running: Vec<u8> =
                    self.unfinished().filter(|(_, row)| row.1 == "running").map(|(number, _)| *number).collect();
                if !running.is_empty() {
                    let number = running[self.below(running.len() as u64) as usize];
                    self.rows.insert(number, (self.rows[&number].0, "completed"));
                    let admitted = machine.ended(key(number));
                    self.say(admitted);
                }
            }
            5 if !self.admissions.is_empty() => {
                let number = self.admissions.remove(0).0[0];
                if self.rows[&number].1 == "pending" && self.below(4) > 0 {
                    self.start_running(number);
                }
            }
            6 => machine.want("o"),
            _ if !self.reads.is_empty() => {
                let reading = Reading { bounds: BOUNDS, drains: self.drains.clone(), rows: self.reads.remove(0) };
                let rows: BTreeSet<ExecutionKey> = self.rows.keys().map(|number| key(*number)).collect();
                let actions = machine.on_read("o", Ok(reading), |execution| rows.contains(&execution));
                self.say(actions.admit);
                for start in actions.begin {
                    let number = start.execution.0[0];
                    self.rows.insert(number, (start.start.workflow_hash, "pending"));
                    if start.start.queue.is_none() {
                        self.start_running(number);
                    }
                }
            }
            _ => {}
        }
        self.read(machine);
    }
}

#[test]
fn random_drains_never_overlap_and_all_end() {
    let (mut held, mut drained) = (0, 0);
    for seed in 0..300 {
        let (mut world, mut machine) = (World { dice: seed, ..World::default() }, Admission::default());
        for step in 0.. {
            world.step(&mut machine);
            if world.started == 40 && world.unfinished().next().is_none() {
                break;
            }
            assert!(step < 100_000, "seed {seed}: {:?}", world.unfinished().collect::<Vec<_>>());
        }
        held += world.held;
        drained += u32::from(world.is_new);
    }
    assert!(held > 1_000 && drained == 300, "{held} starts waited, {drained} seeds drained");
}
