//! New tools, hosts, secrets, models, agents and workflows; higher classes of side effects; new and removed calls.

use std::collections::BTreeSet;

use super::{Sides, finding, quoted};
use crate::{
    capability::{CLASSES, Capability, capabilities, class_of},
    finding::{CLASS_RAISED, EFFECT_ADDED, EFFECT_REMOVED, Finding},
};

pub(super) fn find(sides: Sides<'_, '_>, found: &mut Vec<Finding>) {
    let mut known: BTreeSet<Capability> = sides.old.nodes.iter().flat_map(capabilities).collect();
    let highest = sides.old.nodes.iter().map(class_of).max().unwrap_or_default();
    for (index, node) in sides.new.nodes.iter().enumerate() {
        let mut is_new_call = true;
        for capability in capabilities(node) {
            if known.contains(&capability) {
                continue;
            }
            let (word, code, keys) = capability.kind.describe();
            let reason = format!("The step {} uses the {word} {}.", quoted(&node.id), quoted(&capability.name));
            found.push(finding(code, sides.new.path_of(node, keys), reason));
            known.insert(capability);
            is_new_call = false;
        }
        let before = sides.pairs.to_old[index].map(|before| &sides.old.nodes[before]);
        let (class, bound) = (class_of(node), before.map_or(highest, class_of));
        if class > bound {
            let reason = match before {
                Some(_) => format!(
                    "The step {} was of the class {} and is of the class {}.",
                    quoted(&node.id),
                    CLASSES[bound],
                    CLASSES[class]
                ),
                None if bound == 0 => format!(
                    "The new step {} is of the class {}. The old version had no step with an effect.",
                    quoted(&node.id),
                    CLASSES[class]
                ),
                None => format!(
                    "The new step {} is of the class {}. The highest class of the old version is {}.",
                    quoted(&node.id),
                    CLASSES[class],
                    CLASSES[bound]
                ),
            };
            found.push(finding(&CLASS_RAISED, sides.new.path_of(node, &["type", "action"]), reason));
        }
        let was_call = before.is_some_and(|before| before.goes_out());
        if is_new_call && !was_call && node.goes_out() && node.kind() != "bash" {
            let reason = format!("The step {} is a new call.", quoted(&node.id));
            found.push(finding(&EFFECT_ADDED, node.path.clone(), reason));
        }
    }
    for (index, node) in sides.old.nodes.iter().enumerate().filter(|(_, node)| node.goes_out()) {
        if sides.pairs.to_new[index].is_none_or(|after| !sides.new.nodes[after].goes_out()) {
            let reason = format!("The call {} is gone.", quoted(&node.id));
            found.push(finding(&EFFECT_REMOVED, node.path.clone(), reason));
        }
    }
}
