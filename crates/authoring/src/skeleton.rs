//! Skeletons of scenarios: cases that cover every effect, branch and gate of a workflow and pass at once.
//!
//! A draft has results for all effects. A run on virtual time shows which steps and branches it covers and what comes
//! of it, and both become the expectations. The run itself is the caller's: this crate executes nothing.

mod case;
mod goals;
pub mod recorded;
mod samples;
mod solver;
mod world;
mod write;

use mainspring_kernel::{
    plan::Plan,
    value::{Map, Value},
};

pub use case::{Case, Observed, Skeleton};
use case::{expectations, without_unused};
use goals::{Goal, goals};
use world::World;
pub use write::yaml;

/// Maximum number of cases of a skeleton. A person reads the file.
pub const CASES_MAX: usize = 40;

/// Maximum number of runs for one skeleton. A run takes milliseconds; a plan with thousands of steps could need
/// thousands of them.
const RUNS_MAX: usize = 1_000;

/// Maximum number of values that are tried for one goal.
const TRIES_MAX: usize = 60;

/// Runs the fields of a case on virtual time.
pub type Run<'r> = dyn Fn(&Map) -> Result<Observed, String> + 'r;

/// Makes the skeleton of a plan. `run` executes a case; its error is the reason for which the case cannot run.
pub fn skeleton(plan: &Plan, run: &Run<'_>) -> Skeleton {
    let mut maker = Maker { plan, run, runs: 0, seen: Vec::new(), skeleton: Skeleton::default() };
    let base = World::of(plan);
    let base = maker.main(base);
    for goal in goals(plan) {
        maker.reach(&base, &goal);
    }
    maker.skeleton
}

struct Maker<'m> {
    plan: &'m Plan,
    run: &'m Run<'m>,
    runs: usize,
    /// The results of the cases.
    seen: Vec<Observed>,
    skeleton: Skeleton,
}

impl Maker<'_> {
    fn observe(&mut self, world: &World) -> Result<Observed, String> {
        if self.runs == RUNS_MAX {
            return Err(format!("{RUNS_MAX} runs are used up"));
        }
        self.runs += 1;
        (self.run)(&world.fields(self.plan))
    }

    /// Adds the case of the main path, and returns its values. If it does not complete, other values are tried.
    fn main(&mut self, mut base: World) -> World {
        solver::prefer_main_path(self.plan, &mut base);
        let is_good = |observed: &Observed| observed.status == "completed";
        let first = self.observe(&base);
        if first.as_ref().is_ok_and(is_good) {
            self.add("main path", &base, first.unwrap_or_default());
            return base;
        }
        let all = solver::feeds_of_all_code(self.plan);
        if let Some((world, observed)) = self.search(&base, &all, &[], &is_good) {
            self.add("main path", &world, observed);
            return world;
        }
        match first {
            Ok(observed) => {
                let code = observed.error_code.clone().unwrap_or_else(|| observed.status.clone());
                let message = format!(
                    "no values were found with which the workflow completes ({code}): correct the results of the first case"
                );
                self.skeleton.uncovered.push(message);
                self.add("main path", &base, observed);
            }
            Err(why) => self.skeleton.uncovered.push(format!("the main path cannot be tested: {why}")),
        }
        base
    }

    /// Adds a case for a goal, unless an earlier case covers it.
    fn reach(&mut self, base: &World, goal: &Goal) {
        if self.seen.iter().any(|observed| goal.is_met(self.plan, observed)) {
            return;
        }
        if self.skeleton.cases.len() == CASES_MAX {
            self.skeleton
                .uncovered
                .push(format!("{}: a skeleton has at most {CASES_MAX} cases", goal.title(self.plan)));
            return;
        }
        let mut world = base.clone();
        let wanted = goal.wanted(self.plan);
        let mut is_solved = true;
        for (condition, truth) in &wanted {
            is_solved &= solver::satisfy(condition, *truth, self.plan, &mut world);
        }
        goal.apply(self.plan, &mut world);
        let plan = self.plan;
        let is_met = |observed: &Observed| goal.is_met(plan, observed);
        if let Ok(observed) = self.observe(&world)
            && is_met(&observed)
        {
            return self.add(&goal.title(plan), &world, observed);
        }
        let feeds = solver::feeds_of(plan, wanted.iter().map(|(condition, _)| condition));
        let literals = solver::literals(plan, wanted.iter().map(|(condition, _)| condition));
        match self.search(&world, &feeds, &literals, &is_met) {
            Some((world, observed)) => self.add(&goal.title(plan), &world, observed),
            None => {
                let title = goal.title(plan);
                let reason = if is_solved { "no case reaches it" } else { "no values were found for its condition" };
                self.skeleton.uncovered.push(format!("{title}: {reason}; write the case by hand"));
            }
        }
    }

    /// Tries values for texts that functions read, since conditions on the results of functions cannot be solved.
    fn search(
        &mut self,
        base: &World,
        feeds: &[solver::Feed],
        literals: &[Value],
        is_good: &dyn Fn(&Observed) -> bool,
    ) -> Option<(World, Observed)> {
        let candidates: Vec<Value> = literals.iter().cloned().chain(samples::candidates()).collect();
        let mut tries = 0;
        for feed in feeds {
            for candidate in &candidates {
                if tries == TRIES_MAX {
                    return None;
                }
                let mut world = base.clone();
                if !world.set(self.plan, feed.root, &feed.path, candidate.clone()) {
                    break;
                }
                tries += 1;
                if let Ok(observed) = self.observe(&world)
                    && is_good(&observed)
                {
                    return Some((world, observed));
                }
            }
        }
        None
    }

    fn add(&mut self, name: &str, world: &World, observed: Observed) {
        let fields = without_unused(world.fields(self.plan), &observed);
        let (name, expect) = (name.to_string(), expectations(&observed));
        self.skeleton.cases.push(Case { name, fields, expect });
        self.seen.push(observed);
    }
}
