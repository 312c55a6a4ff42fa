//! Chooses the executions of a shadow run: every branch seen, then the newest.

use std::collections::BTreeSet;

use mainspring_kernel::hash::Hash;

/// An execution that could be replayed.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// Its features, from [`Trail::features`](super::Trail::features).
    pub features: BTreeSet<Hash>,
}

/// Chooses at most `count` of the candidates, which are given newest first. The executions chosen first add the most
/// features that no other chosen one has; the newest fill the rest. Returns ascending positions.
pub fn select(candidates: &[Candidate], count: usize) -> Vec<usize> {
    let mut chosen = BTreeSet::new();
    let mut covered: BTreeSet<Hash> = BTreeSet::new();
    while chosen.len() < count {
        let gain = |place: &usize| candidates[*place].features.difference(&covered).count();
        let open = (0..candidates.len()).filter(|place| !chosen.contains(place));
        // `max_by_key` returns the last of equal gains: in this order the newest.
        let Some(best) = open.rev().max_by_key(gain).filter(|best| gain(best) > 0) else { break };
        covered.extend(candidates[best].features.iter().copied());
        chosen.insert(best);
    }
    let rest = (0..candidates.len()).filter(|place| !chosen.contains(place)).take(count.saturating_sub(chosen.len()));
    let rest: Vec<usize> = rest.collect();
    chosen.extend(rest);
    chosen.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selection_covers_branches_before_it_takes_the_newest() {
        let check = |given: &[&[u8]], count: usize, expected: &[usize]| {
            let candidates: Vec<Candidate> = given
                .iter()
                .map(|features| Candidate { features: features.iter().map(|one| Hash::of(&[*one])).collect() })
                .collect();
            assert_eq!(select(&candidates, count), expected, "{given:?}");
        };
        check(&[&[1], &[1], &[1], &[2]], 2, &[0, 3]);
        check(&[&[1], &[1], &[1, 2, 3], &[2]], 1, &[2]);
        check(&[&[1], &[1], &[1]], 2, &[0, 1]);
        check(&[&[1], &[]], 5, &[0, 1]);
        check(&[], 3, &[]);
        check(&[&[1]], 0, &[]);
    }
}
