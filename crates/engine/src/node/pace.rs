//! Bounds the share of the driver that split turns take. An execution that never settles leaves most of the driver to other
//! work, and an organization whose split turns are short does not wait for one whose split turns are long.

use std::{collections::BTreeMap, time::Duration};

use crate::shard::tenants::Tenant;

/// While there is other work, the pause after a part of a split turn is this many times as long as the part took.
const PAUSES_PER_PART: u32 = 4;

/// Other work is assumed for this time after a command.
const BUSY: Duration = Duration::from_millis(100);

/// A part with less processor time leaves its organization among those that never wait for a pause. A turn of a few steps
/// takes a twentieth of it.
const LONG_PART: Duration = Duration::from_millis(1);

/// A long part makes its organization wait for pauses for this time. An organization gets one long part without a pause in
/// it.
const LONG_FOR: Duration = Duration::from_secs(1);

/// Decides when the next part of a split turn runs, and of which organization.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Organizations with a long part run their next one after this time.
    next: Option<Duration>,
    /// Organizations that had a long part, each with the time until which that counts. An entry costs the driver
    /// [`LONG_PART`] at least and ends after [`LONG_FOR`], which bounds their number at 1,000.
    long: BTreeMap<Tenant, Duration>,
    /// Time of the last command.
    command_at: Option<Duration>,
}

impl Pace {
    /// Picks from the organizations with split turns, in the order in which they are served: returns the one that goes
    /// next, and when. An organization without long parts goes at once.
    pub(super) fn next(&self, now: Duration, waiting: impl Iterator<Item = Tenant>) -> Option<(Tenant, Duration)> {
        let mut first = None;
        for tenant in waiting {
            if self.long.get(&tenant).is_none_or(|until| *until <= now) {
                return Some((tenant, now));
            }
            first.get_or_insert(tenant);
        }
        first.map(|tenant| (tenant, self.next.map_or(now, |next| next.max(now))))
    }

    /// Records a part: `used` is the processor time that it took.
    pub(super) fn record_part(&mut self, tenant: Tenant, (began, ended): (Duration, Duration), used: Duration) {
        let is_busy = self.command_at.is_some_and(|at| ended.saturating_sub(at) < BUSY);
        self.next = is_busy.then(|| ended + (ended - began) * PAUSES_PER_PART);
        if used >= LONG_PART {
            self.long.retain(|_, until| *until > ended);
            self.long.insert(tenant, ended + LONG_FOR);
        }
    }

    /// Records that commands were received.
    pub(super) fn command(&mut self, now: Duration) {
        self.command_at = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_millis(10);
    const SHORT: Duration = Duration::from_micros(50);

    #[test]
    fn long_parts_leave_time_to_other_work() {
        let (start, tenant) = (Duration::from_secs(1_000), Tenant::of("a"));
        let at = |ms: u64| start + Duration::from_millis(ms);
        let next = |pace: &Pace, ms| pace.next(at(ms), [tenant].into_iter()).unwrap().1;
        let mut pace = Pace::default();
        assert_eq!(pace.next(at(1), std::iter::empty()), None);
        assert_eq!(next(&pace, 1), at(1));
        pace.record_part(tenant, (at(1), at(11)), LONG);
        assert_eq!(next(&pace, 11), at(11), "there is no other work");
        pace.command(at(12));
        pace.record_part(tenant, (at(12), at(22)), LONG);
        assert_eq!(next(&pace, 22), at(62));
        assert_eq!(next(&pace, 70), at(70));
        pace.record_part(tenant, (at(200), at(210)), LONG);
        assert_eq!(next(&pace, 210), at(210), "the last command was long ago");
    }

    #[test]
    fn pauses_of_one_organization_do_not_delay_another() {
        let (start, [long, short, third]) = (Duration::from_secs(1_000), ["long", "short", "third"].map(Tenant::of));
        let at = |ms: u64| start + Duration::from_millis(ms);
        let next = |pace: &Pace, ms, waiting: &[Tenant]| pace.next(at(ms), waiting.iter().copied());
        let mut pace = Pace::default();
        pace.command(at(0));
        pace.record_part(short, (at(0), at(5)), SHORT);
        assert_eq!(next(&pace, 5, &[short]), Some((short, at(5))), "it was kept waiting and used little");
        pace.record_part(long, (at(10), at(20)), LONG);
        assert_eq!(next(&pace, 20, &[long, short]), Some((short, at(20))));
        assert_eq!(next(&pace, 20, &[long]), Some((long, at(60))));
        pace.record_part(third, (at(20), at(30)), LONG);
        assert_eq!(next(&pace, 30, &[long, third]), Some((long, at(70))), "all long parts together leave time");
        assert_eq!(
            next(&pace, 1_020, &[long, third]),
            Some((long, at(1_020))),
            "the part of a second ago is forgotten"
        );
        assert_eq!(pace.long.len(), 2);
        pace.command(at(2_000));
        pace.record_part(long, (at(2_000), at(2_010)), LONG);
        assert_eq!(pace.long.len(), 1);
    }
}
