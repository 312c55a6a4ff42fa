//! Delays between the attempts of a delivery.

use crate::{
    catch_up::jitter_ms,
    limits::{RETRY_FIRST_MS, RETRY_LONGEST_MS},
};

/// Returns the milliseconds until the next attempt after so many failed ones: twice as long each time, up to a bound, with
/// a jitter of a fifth in both directions. The jitter follows from the key, so that deliveries which failed together are
/// not repeated together.
pub fn retry_delay_ms(key: &str, failed: u32) -> u64 {
    let doublings = failed.saturating_sub(1).min(20);
    let delay_ms = (RETRY_FIRST_MS << doublings).min(RETRY_LONGEST_MS);
    delay_ms - delay_ms / 5 + jitter_ms(&format!("{key}:{failed}"), delay_ms * 2 / 5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_longest_with_a_bounded_jitter() {
        let middle = |failed: u32| (RETRY_FIRST_MS << (failed - 1)).min(RETRY_LONGEST_MS);
        for failed in 1..=20 {
            let delays: Vec<u64> = (0..200).map(|key| retry_delay_ms(&key.to_string(), failed)).collect();
            let middle = middle(failed);
            let (least, most) = (*delays.iter().min().unwrap(), *delays.iter().max().unwrap());
            assert!(least >= middle * 4 / 5 && most <= middle * 6 / 5, "{failed}: {least} to {most}");
            assert!(most - least > middle / 4, "the delays of {failed} are spread: {least} to {most}");
        }
        assert_eq!(retry_delay_ms("k", 3), retry_delay_ms("k", 3));
        assert!(retry_delay_ms("k", u32::MAX) <= RETRY_LONGEST_MS * 6 / 5);
    }
}
