//! Bounds the pending requests of callers, and the received messages that are not durable, by bytes and count. A store
//! that does not write then causes errors for callers, and not unlimited memory of this process.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use crate::limits::{ASKED_BYTES_MAX, ASKED_MAX, HELD_UP_BYTES_MAX, TAKEN_BYTES_MAX};

/// Bytes of any request beside its values.
const ASK_BYTES: usize = 1024;

/// Counts pending requests. Clones share the counts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Intake(Arc<Counters>);

#[derive(Debug, Default)]
struct Counters {
    count: AtomicUsize,
    bytes: AtomicUsize,
}

/// The share of a pending request. Dropping it returns the share.
#[derive(Debug)]
pub(crate) struct Charge {
    counters: Arc<Counters>,
    bytes: usize,
}

/// Decides which bound counts a request, and how much of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestSize {
    /// A decision or a cancel.
    Control,
    /// Any other request, with the bytes of its values and plans.
    Bytes(usize),
}

impl Intake {
    /// Admits a request. `None` if there is no room. The first request is admitted regardless of its size. Decisions
    /// and cancels are small and free resources, so they have twice the room.
    pub(crate) fn admit(&self, size: RequestSize) -> Option<Charge> {
        let (bytes, share) = match size {
            RequestSize::Control => (ASK_BYTES, 2),
            RequestSize::Bytes(bytes) => (ASK_BYTES + bytes, 1),
        };
        let charge = Charge { counters: self.0.clone(), bytes };
        let count = self.0.count.fetch_add(1, Ordering::Relaxed);
        let before = self.0.bytes.fetch_add(bytes, Ordering::Relaxed);
        let is_within = count < share * ASKED_MAX && before.saturating_add(bytes) <= share * ASKED_BYTES_MAX;
        (is_within || count == 0).then_some(charge)
    }

    /// True if there is room for an inbox message of this size. The first message always has room.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        let taken = self.0.bytes.load(Ordering::Relaxed);
        self.0.count.load(Ordering::Relaxed) == 0 || taken.saturating_add(ASK_BYTES + bytes) <= TAKEN_BYTES_MAX
    }

    /// The same, for a message to an execution that cannot process input at present.
    pub(crate) fn has_room_beside(&self, bytes: usize) -> bool {
        self.0.bytes.load(Ordering::Relaxed).saturating_add(ASK_BYTES + bytes) <= HELD_UP_BYTES_MAX
    }

    /// Takes the share of a received inbox message.
    pub(crate) fn take(&self, bytes: usize) -> Charge {
        let charge = Charge { counters: self.0.clone(), bytes: ASK_BYTES + bytes };
        self.0.count.fetch_add(1, Ordering::Relaxed);
        self.0.bytes.fetch_add(charge.bytes, Ordering::Relaxed);
        charge
    }
}

impl Charge {
    /// The bytes of the share.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.counters.count.fetch_sub(1, Ordering::Relaxed);
        self.counters.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use mainspring_kernel::{input::Input, key::ExecutionKey, value::Value};

    use super::*;
    use crate::shard::{Event, PendingInput};

    fn signal(bytes: usize) -> RequestSize {
        let payload = Value::from("x".repeat(bytes).as_str());
        let input = Input::Signal { id: "i".into(), name: "go".into(), payload };
        Event::Take(ExecutionKey([1; 16]), PendingInput::without_reply(input)).size()
    }

    fn cancel() -> RequestSize {
        let input = Input::Cancel { reason: "enough".into(), by: "me".into() };
        Event::Take(ExecutionKey([1; 16]), PendingInput::without_reply(input)).size()
    }

    #[test]
    fn bytes_are_bounded_and_returned() {
        let intake = Intake::default();
        let half = || signal(ASKED_BYTES_MAX / 2 - ASK_BYTES - 8);
        let held = [intake.admit(half()).unwrap(), intake.admit(half()).unwrap()];
        assert!(intake.admit(signal(16)).is_none(), "there is no room for more");
        let cancels: Vec<_> = (0..100).filter_map(|_| intake.admit(cancel())).collect();
        assert_eq!(cancels.len(), 100, "a cancel is taken all the same");
        drop(cancels);
        drop(held);
        let large = intake.admit(signal(ASKED_BYTES_MAX + 1)).expect("the first is admitted however large it is");
        assert!(intake.admit(signal(0)).is_none());
        drop(large);
        assert!(intake.admit(signal(0)).is_some());
        assert_eq!((intake.0.count.load(Ordering::Relaxed), intake.0.bytes.load(Ordering::Relaxed)), (0, 0));
    }

    #[test]
    fn messages_that_are_not_durable_are_bounded_in_bytes() {
        let taken = Intake::default();
        assert!(taken.has_room(TAKEN_BYTES_MAX + 1), "the first one has room however large it is");
        let half = TAKEN_BYTES_MAX / 2 - ASK_BYTES;
        let first = taken.take(half);
        assert!(taken.has_room(half) && !taken.has_room(half + 1));
        let second = taken.take(half);
        assert!(!taken.has_room(0));
        drop(first);
        assert!(taken.has_room(half) && !taken.has_room(half + 1));
        drop(second);
        assert!(taken.has_room(TAKEN_BYTES_MAX + 1));
    }

    #[test]
    fn the_count_is_bounded_and_decisions_have_a_reserve() {
        let intake = Intake::default();
        let mut held: Vec<_> = (0..ASKED_MAX).filter_map(|_| intake.admit(signal(0))).collect();
        assert_eq!(held.len(), ASKED_MAX);
        assert!(intake.admit(signal(0)).is_none());
        held.extend((0..2 * ASKED_MAX).filter_map(|_| intake.admit(cancel())));
        assert_eq!(held.len(), 2 * ASKED_MAX, "they are bounded as well");
    }
}
