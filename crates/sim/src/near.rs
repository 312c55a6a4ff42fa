//! The step that an unknown name in a scenario may mean.

use mainspring_kernel::{definition::nearest, instance::Instance, plan::Plan};

/// Returns the step that an unknown name may mean, as the end of a sentence. A step in a loop needs the number of a round.
pub(crate) fn meant(plan: &Plan, name: &str) -> String {
    let own = (0..plan.steps.len() as u32).filter(|step| plan.agent_part(*step).is_none());
    if let Some(step) = own.clone().find(|step| plan.id(*step) == name && plan.loop_depth(*step) > 0) {
        let instance = Instance { step, rounds: vec![0; plan.loop_depth(step)] };
        return format!("; it is in a loop: write `{}` for its first round", instance.name(plan));
    }
    let plain = name.split(['.', '[']).next().unwrap_or(name);
    let near =
        nearest(name, own.clone().map(|step| plan.id(step))).or_else(|| nearest(plain, own.map(|step| plan.id(step))));
    near.map(|near| format!("; is it `{near}`?")).unwrap_or_default()
}
