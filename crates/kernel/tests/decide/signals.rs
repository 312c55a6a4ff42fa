//! Tests of signals for which no step waits: the number and the size of those that are kept.

use mainspring_kernel::{
    limits::{SIGNAL_BYTES_MAX, SIGNALS_KEPT_BYTES_MAX, SIGNALS_KEPT_MAX},
    state::SignalRejection,
};

use super::*;

const NAP: &str = "- {id: nap, type: sleep, durationMs: 1000}\n";

/// Returns an execution that sleeps before it waits for `go`, under a version of `decide`.
fn asleep(decide_version: u32) -> State {
    let mut state = State { decide_version, ..fresh(KEY, &format!("{NAP}- {{id: go, type: signal, signal: go}}")) };
    take_in(&mut state, &start(Value::Null), 0);
    state
}

fn signal(number: usize, name: &str, payload: Value) -> Input {
    Input::Signal { id: format!("s{number}"), name: name.into(), payload }
}

/// Returns a text with the given size in binary form.
fn large(bytes: usize) -> Value {
    let head = cbor::byte_count(&Value::from("x".repeat(bytes))) - bytes;
    let text = Value::from("x".repeat(bytes - head));
    assert_eq!(cbor::byte_count(&text), bytes);
    text
}

#[test]
fn the_number_of_kept_signals_is_bounded() {
    let mut state = asleep(4);
    for number in 1..=SIGNALS_KEPT_MAX {
        assert_eq!(take_in(&mut state, &signal(number, "other", Value::Null), 1).records.len(), 1, "number {number}");
    }
    assert_eq!(take_in(&mut state, &signal(SIGNALS_KEPT_MAX + 1, "other", Value::Null), 1), Turn::default());
    assert_eq!(state.signals.kept.len(), SIGNALS_KEPT_MAX);
}

#[test]
fn the_bytes_of_kept_signals_are_bounded_since_version_4() {
    let count = SIGNALS_KEPT_BYTES_MAX / SIGNAL_BYTES_MAX;
    for (decide_version, is_bounded) in [(3, false), (4, true)] {
        let mut state = asleep(decide_version);
        for number in 1..=count {
            let given = signal(number, "other", large(SIGNAL_BYTES_MAX));
            assert_eq!(take_in(&mut state, &given, 1).records.len(), 1, "number {number}");
        }
        let rejection = state.signal_rejection("more", "other", &Value::Null);
        assert_eq!(rejection, is_bounded.then_some(SignalRejection::Full), "version {decide_version}");
        let turn = take_in(&mut state, &signal(count + 1, "other", Value::Null), 1);
        assert_eq!(turn.records.is_empty(), is_bounded, "version {decide_version}");
    }
}

/// Kept signals leave room for the signal that a step waits for.
#[test]
fn an_awaited_signal_is_accepted_at_the_bound() {
    for (decide_version, expected) in
        [(3, "nothing"), (4, "SignalKept s0, SignalTaken go s0, StepCompleted go, EndingBegun completed, Ended")]
    {
        let mut state = asleep(decide_version);
        for number in 1..=SIGNALS_KEPT_MAX {
            take_in(&mut state, &signal(number, "other", Value::Null), 1);
        }
        let nap = at(&state.plan, "nap");
        take_in(&mut state, &Input::Timer(Timer::Sleep(nap)), 1000);
        let turn = take_in(&mut state, &signal(0, "go", Value::Null), 1001);
        assert_eq!(records_words(&state.plan, &turn), expected, "version {decide_version}");
    }
}

#[test]
fn an_input_without_effect_has_a_reason() {
    let mut state = asleep(4);
    let of = |state: &State, id: &str| state.signal_rejection(id, "go", &Value::Null);
    assert_eq!(of(&state, "s1"), None);
    take_in(&mut state, &signal(1, "go", Value::Null), 1);
    assert_eq!((of(&state, "s1"), of(&state, "s2")), (Some(SignalRejection::Repeated), None));
    take_in(&mut state, &Input::Cancel { reason: "enough".into(), by: "ann".into() }, 2);
    assert_eq!((of(&state, "s1"), of(&state, "s2")), (Some(SignalRejection::Repeated), Some(SignalRejection::Ending)));
}
