//! The cache of compiled plans, by organization and by the hash of the definition.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use mainspring_engine::start_request::stored_plan;
use mainspring_kernel::{
    definition::{Compiled, is_allowed},
    diagnostic::{Diagnostic, OF_SERVERS},
    document::Path,
    plan::{Plan, Work},
    value::Value,
};
use mainspring_store::StoredPlan;

/// Most cached plans. Beyond that, the plans of the organization with the most are evicted; they compile again on
/// demand.
const PLANS_MAX: usize = 1024;

/// Most cached plans per organization: eight busy organizations fill the cache.
const PLANS_OF_ORGANIZATION_MAX: usize = 128;

/// Most bytes of cached plans, in their stored form. A plan in memory takes a multiple of that, and a definition may
/// have 4 MiB.
const PLANS_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Most bytes of cached plans per organization: one plan of the largest size, and as much again for others.
const PLANS_OF_ORGANIZATION_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Plan cache, by organization and by the hash of the definition.
#[derive(Default)]
pub(crate) struct Plans(Mutex<BTreeMap<String, PlansOf>>);

/// The plans of one organization.
#[derive(Default)]
struct PlansOf {
    by_hash: BTreeMap<String, CompiledPlan>,
    bytes: usize,
}

impl PlansOf {
    /// Caches a plan. If the organization has too many plans or bytes, its other plans are evicted first.
    fn keep(&mut self, hash: String, compiled: CompiledPlan) {
        let bytes = compiled.byte_count();
        let is_full = self.by_hash.len() >= PLANS_OF_ORGANIZATION_MAX
            || self.bytes.saturating_add(bytes) > PLANS_OF_ORGANIZATION_BYTES_MAX;
        if is_full {
            *self = Self::default();
        }
        let before = self.by_hash.insert(hash, compiled);
        self.bytes = (self.bytes + bytes).saturating_sub(before.map_or(0, |before| before.byte_count()));
    }
}

impl Plans {
    pub(crate) fn get(&self, organization: &str, hash: &str) -> Option<CompiledPlan> {
        self.plans().get(organization)?.by_hash.get(hash).cloned()
    }

    pub(crate) fn keep(&self, organization: &str, hash: String, compiled: CompiledPlan) {
        let mut plans = self.plans();
        if plans.values().map(|own| own.by_hash.len()).sum::<usize>() >= PLANS_MAX {
            evict(&mut plans, |own| own.by_hash.len());
        }
        let bytes = compiled.byte_count();
        while !plans.is_empty() && plans.values().map(|own| own.bytes).sum::<usize>() + bytes > PLANS_BYTES_MAX {
            evict(&mut plans, |own| own.bytes);
        }
        plans.entry(organization.to_string()).or_default().keep(hash, compiled);
    }

    fn plans(&self) -> MutexGuard<'_, BTreeMap<String, PlansOf>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Evicts all plans of the organization with the largest measure.
fn evict(plans: &mut BTreeMap<String, PlansOf>, measure: impl Fn(&PlansOf) -> usize) {
    let largest = plans.iter().max_by_key(|(_, own)| measure(own)).map(|(organization, _)| organization.clone());
    largest.and_then(|largest| plans.remove(&largest));
}

/// A compiled definition. Cheap to clone.
#[derive(Clone)]
pub(crate) struct CompiledPlan {
    pub plan: Arc<Plan>,
    pub stored: StoredPlan,
    /// The steps that ask people or start workflows that may ask people.
    pub asking: Arc<[(u32, Path)]>,
    /// Warnings of the compiler. They do not depend on the members of the organization.
    pub warnings: Arc<[Diagnostic]>,
    /// The warnings of a server that the definition accepts.
    pub allowed: Arc<[(Path, &'static str)]>,
}

impl CompiledPlan {
    /// Bytes of the plan in its stored form.
    fn byte_count(&self) -> usize {
        self.stored.bytes.len()
    }
}

impl From<Compiled> for CompiledPlan {
    fn from(compiled: Compiled) -> Self {
        let Compiled { plan, paths, warnings, normalised, .. } = compiled;
        let asking: Arc<[(u32, Path)]> = asking(&plan, &paths).into();
        let allowed = allowed(&normalised, &asking).into();
        Self { stored: stored_plan(&plan), plan: Arc::new(plan), asking, warnings: warnings.into(), allowed }
    }
}

/// The warnings of a server that a definition accepts, each with the step that may cause it.
pub(crate) fn allowed(definition: &Value, asking: &[(u32, Path)]) -> Vec<(Path, &'static str)> {
    let all = asking.iter().flat_map(|(_, path)| OF_SERVERS.map(|code| (path, code)));
    all.filter(|(path, code)| is_allowed(definition, path, code)).map(|(path, code)| (path.clone(), code)).collect()
}

/// The steps of a plan that ask people or start a workflow that may ask people, with their paths.
pub(crate) fn asking(plan: &Plan, paths: &[Path]) -> Vec<(u32, Path)> {
    let asks = |number: u32| matches!(plan.step(number).work, Work::Approval(_) | Work::Subworkflow { .. });
    let numbered = (0..).zip(paths).filter(|(number, _)| asks(*number));
    numbered.map(|(number, path)| (number, path.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_organization_takes_the_places_of_its_own_plans() {
        let text = br#"{"steps": [{"id": "a", "type": "return", "input": 1}]}"#;
        let document = mainspring_kernel::definition::read(text, mainspring_kernel::definition::Syntax::Guess).unwrap();
        let compiled = CompiledPlan::from(mainspring_kernel::definition::compile(&document).unwrap());
        let plans = Plans::default();
        let keep = |organization: &str, number: usize| plans.keep(organization, number.to_string(), compiled.clone());
        let all = || plans.plans().values().map(|own| own.by_hash.len()).sum::<usize>();
        keep("quiet", 0);
        (0..10 * PLANS_MAX + PLANS_MAX / 2).for_each(|number| keep("busy", number));
        assert!(plans.get("quiet", "0").is_some() && all() <= 1 + PLANS_OF_ORGANIZATION_MAX);
        for organization in 0..20 {
            (0..PLANS_OF_ORGANIZATION_MAX).for_each(|number| keep(&organization.to_string(), number));
        }
        assert!(plans.get("quiet", "0").is_some() && all() <= PLANS_MAX, "the largest gives way");
        let large = |bytes: usize| CompiledPlan {
            stored: StoredPlan { bytes: vec![0; bytes].into(), ..compiled.stored.clone() },
            ..compiled.clone()
        };
        let bytes = || plans.plans().values().map(|own| own.bytes).sum::<usize>();
        for number in 0..100 {
            plans.keep("busy", number.to_string(), large(PLANS_OF_ORGANIZATION_BYTES_MAX / 3));
            plans.keep("busy", number.to_string(), large(PLANS_OF_ORGANIZATION_BYTES_MAX / 3));
            assert!(plans.plans()["busy"].bytes <= PLANS_OF_ORGANIZATION_BYTES_MAX);
        }
        for number in 0..20 {
            plans.keep(&number.to_string(), "large".into(), large(PLANS_OF_ORGANIZATION_BYTES_MAX));
            assert!(bytes() <= PLANS_BYTES_MAX);
        }
        assert!(plans.get("quiet", "0").is_some() && plans.get("19", "large").is_some());
    }
}
