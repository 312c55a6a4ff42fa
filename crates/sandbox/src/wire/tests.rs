//! Tests of the protocol: messages survive a round trip, and hostile bytes are rejected.

use super::{Message, read_frame, write_frame};
use crate::fault::{Fault, FaultKind, Mismatch};
use crate::limits::{FRAME_BYTES_MAX, Limits};
use crate::request::{Call, Function, Request, Validate};
use crate::response::{Console, Level, Line, Response};
use proptest::prelude::*;
use std::fmt::Debug;

/// The message survives a round trip, and no prefix of it is a message.
#[track_caller]
fn check<T: Message + PartialEq + Debug>(message: &T) {
    let bytes = message.to_bytes();
    assert_eq!(T::from_bytes(&bytes).as_ref(), Some(message));
    for length in 0..bytes.len() {
        assert_eq!(T::from_bytes(&bytes[..length]), None, "the first {length} bytes");
    }
    assert_eq!(T::from_bytes(&[bytes.as_slice(), &[0]].concat()), None);
}

fn request(call: Call) -> Request {
    Request { call, limits: Limits { ticks_max: 1, wall_ms_max: 2, memory_bytes_max: 3, result_bytes_max: 4 } }
}

#[test]
fn requests_round_trip() {
    let text = || "ä\n\0".to_owned();
    check(&request(Call::Function(Function { source: text(), input: "{}".into(), now_ms: -5, seed: [7; 32] })));
    check(&request(Call::CheckFunction { source: text() }));
    check(&request(Call::CheckSchema { schema: text() }));
    check(&request(Call::Validate(Validate { schema: text(), value: text(), fill_defaults: true })));
    check(&request(Call::Hello));
}

#[test]
fn responses_round_trip() {
    check(&Response::of(Ok("null".to_owned())));
    let line = |level| Line { level, text: level.name().to_owned() };
    let console = Console { lines: Level::ALL.into_iter().map(line).collect(), truncated: true };
    for kind in FaultKind::ALL {
        let mismatch =
            || Mismatch { pointer: "/a".into(), path: "a".into(), keyword: "type".into(), message: "no".into() };
        let fault = Fault::new(*kind, "why").at(1, 2).with_stack("at").with_mismatches(vec![mismatch(), mismatch()]);
        check(&Response { result: Err(fault), console: console.clone(), ticks: u64::MAX });
    }
}

#[test]
fn frames_round_trip_up_to_the_limit() {
    let mut written = Vec::new();
    write_frame(&mut written, b"one").unwrap();
    write_frame(&mut written, b"").unwrap();
    let mut reader = written.as_slice();
    assert_eq!(read_frame(&mut reader).unwrap().as_deref(), Some(b"one".as_slice()));
    assert_eq!(read_frame(&mut reader).unwrap().as_deref(), Some(b"".as_slice()));
    assert_eq!(read_frame(&mut reader).unwrap(), None);
    assert!(read_frame(&mut &written[..2]).is_err());
    assert!(read_frame(&mut &written[..5]).is_err());
    assert!(read_frame(&mut u32::MAX.to_le_bytes().as_slice()).is_err());
    assert!(write_frame(&mut Vec::new(), &vec![0; FRAME_BYTES_MAX + 1]).is_err());
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
        for message in [Response::from_bytes(&bytes).map(|answer| answer.to_bytes()),
                        Request::from_bytes(&bytes).map(|request| request.to_bytes())] {
            prop_assert!(message.is_none_or(|again| again == bytes));
        }
    }
}
