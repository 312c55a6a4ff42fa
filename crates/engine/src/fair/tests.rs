//! Tests of fair shares, turns, bounds of queues, and requests that are dropped at any time.

use std::task::Waker;

use super::*;

fn poll<K: Ord + Clone + Unpin>(request: &mut Acquire<K>) -> Option<FairPermit<K>> {
    match Pin::new(request).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(permit) => Some(permit),
        Poll::Pending => None,
    }
}

fn fill(semaphore: &FairSemaphore<&'static str>, key: &'static str) -> Vec<FairPermit<&'static str>> {
    std::iter::from_fn(|| semaphore.try_acquire(key)).collect()
}

#[test]
fn one_key_gets_half_and_each_new_key_a_share() {
    for (permits, shares) in [(1, [1, 0, 0]), (2, [1, 1, 0]), (3, [2, 1, 0]), (64, [32, 16, 8]), (192, [96, 48, 24])] {
        let semaphore = FairSemaphore::new(Bounds::of(permits));
        let held = ["a", "b", "c"].map(|key| fill(&semaphore, key));
        assert_eq!(held.each_ref().map(Vec::len), shares, "of {permits}");
        drop(held);
        assert_eq!(semaphore.free(), permits);
    }
}

#[test]
fn the_bound_per_key_applies_with_free_permits() {
    let semaphore = FairSemaphore::new(Bounds { per_key: 3, ..Bounds::of(64) });
    assert_eq!(fill(&semaphore, "a").len(), 3);
    let none = FairSemaphore::new(Bounds { per_key: 0, ..Bounds::of(0) });
    assert!(none.try_acquire("a").is_some(), "bounds of zero would admit no request");
}

#[test]
fn permits_can_be_added_and_removed_while_in_use() {
    let semaphore = FairSemaphore::new(Bounds::of(2));
    let held = fill(&semaphore, "a");
    let mut waits = semaphore.acquire("a").unwrap();
    semaphore.resize(4);
    let second = poll(&mut waits).expect("the new permits serve who waits");
    semaphore.resize(1);
    assert_eq!(semaphore.free(), 0);
    drop(held);
    assert!(semaphore.try_acquire("b").is_none(), "one of one is held");
    drop(second);
    assert!(semaphore.try_acquire("b").is_some());
    semaphore.resize(0);
    assert_eq!(semaphore.free(), 1, "zero permits would admit no request");
}

#[test]
fn waiting_keys_alternate_for_any_queue_length() {
    let semaphore = FairSemaphore::new(Bounds::of(1));
    let mut holds = semaphore.try_acquire("z");
    let mut queue: Vec<_> = (0..100).map(|_| ("a", semaphore.acquire("a").unwrap())).collect();
    queue.push(("b", semaphore.acquire("b").unwrap()));
    queue.push(("c", semaphore.acquire("c").unwrap()));
    queue.push(("b", semaphore.acquire("b").unwrap()));
    let mut served = Vec::new();
    while !queue.is_empty() {
        drop(holds.take());
        let place = queue.iter_mut().position(|(_, request)| {
            holds = poll(request);
            holds.is_some()
        });
        served.push(queue.remove(place.expect("a free permit admits a request")).0);
    }
    assert_eq!(served[..6], ["a", "b", "c", "a", "b", "a"]);
    assert!(served[6..].iter().all(|key| *key == "a"));
}

#[test]
fn a_key_above_its_share_is_skipped_and_keeps_its_position() {
    let semaphore = FairSemaphore::new(Bounds::of(4));
    let mut held = fill(&semaphore, "a");
    assert_eq!(held.len(), 2);
    let mut waits = semaphore.acquire("a").unwrap();
    let other = semaphore.try_acquire("b").expect("one is free for others");
    assert!(poll(&mut waits).is_none());
    drop(other);
    assert!(poll(&mut waits).is_none(), "two held are not fewer than two free");
    held.pop();
    assert!(poll(&mut waits).is_some());
}

#[test]
fn a_full_queue_refuses_until_a_request_leaves() {
    let semaphore = FairSemaphore::new(Bounds { waiting: 3, waiting_per_key: 2, ..Bounds::of(1) });
    let _held = semaphore.try_acquire("a").unwrap();
    let first = semaphore.acquire("a").unwrap();
    let _second = semaphore.acquire("a").unwrap();
    assert_eq!(semaphore.acquire("a").unwrap_err(), QueueFull, "two of a key");
    let _other = semaphore.acquire("b").unwrap();
    assert_eq!(semaphore.acquire("c").unwrap_err(), QueueFull, "three in all");
    drop(first);
    assert!(semaphore.acquire("a").is_ok());
}

#[test]
fn a_dropped_request_costs_no_permit_in_any_state() {
    let semaphore = FairSemaphore::new(Bounds::of(1));
    drop(semaphore.acquire("a").unwrap());
    assert_eq!(semaphore.free(), 1, "granted at once and never polled");
    let held = semaphore.try_acquire("a").unwrap();
    let waits = semaphore.acquire("b").unwrap();
    let mut last = semaphore.acquire("c").unwrap();
    drop(held);
    assert_eq!(semaphore.free(), 0, "granted to b");
    drop(waits);
    let permit = poll(&mut last).expect("given back by b, unseen, and handed on");
    drop((permit, last));
    assert_eq!((semaphore.free(), semaphore.waiting()), (1, 0));
    assert!(lock(&semaphore.shared).keys.is_empty(), "nothing is kept of keys that are gone");
}

/// Requests, drops and releases in random order with a fixed seed. No permit is lost or created, no bound is exceeded,
/// and no request waits that could be served.
#[test]
fn random_operations_neither_lose_nor_create_permits() {
    let bounds = Bounds { permits: 7, per_key: 5, waiting: 20, waiting_per_key: 8 };
    let semaphore = FairSemaphore::new(bounds);
    let (mut requests, mut permits): (Vec<Acquire<u64>>, Vec<FairPermit<u64>>) = (Vec::new(), Vec::new());
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..20_000 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (act, pick) = ((seed >> 60) % 4, (seed >> 33) as usize);
        match act {
            0 | 1 => requests.extend(semaphore.acquire((seed >> 50) % 6).ok()),
            2 if !permits.is_empty() => drop(permits.swap_remove(pick % permits.len())),
            _ if !requests.is_empty() => drop(requests.swap_remove(pick % requests.len())),
            _ => {}
        }
        let mut place = 0;
        while place < requests.len() {
            match poll(&mut requests[place]) {
                Some(permit) => {
                    permits.push(permit);
                    requests.swap_remove(place);
                }
                None => place += 1,
            }
        }
        assert_eq!(semaphore.free() + permits.len(), bounds.permits);
        assert_eq!(semaphore.waiting(), requests.len());
        assert!(requests.len() <= bounds.waiting);
        let shared = lock(&semaphore.shared);
        assert!(shared.turns.iter().all(|key| !shared.may_have(key)), "nothing waits that could be served");
        assert!(shared.keys.values().all(|entry| entry.held <= bounds.per_key && entry.waiting.len() <= 8));
    }
}

#[test]
fn competing_threads_all_get_permits() {
    let semaphore = FairSemaphore::new(Bounds::of(3));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_time().build().unwrap();
    runtime.block_on(async {
        let tasks: Vec<_> = (0..2_000)
            .map(|number| {
                let semaphore = semaphore.clone();
                tokio::spawn(async move {
                    let request = semaphore.acquire(number % 5).unwrap();
                    if number % 7 == 0 {
                        return drop(request);
                    }
                    let _permit = request.await;
                    tokio::task::yield_now().await;
                })
            })
            .collect();
        let all = async {
            for task in tasks {
                task.await.unwrap();
            }
        };
        tokio::time::timeout(std::time::Duration::from_secs(60), all).await.expect("a request was never served");
    });
    assert_eq!((semaphore.free(), semaphore.waiting()), (3, 0));
}
