//! Every bound of the http executor: its name, its number and its reason.

use std::time::Duration;

use mainspring_kernel::limits::{DEPTH_MAX, OUTPUT_BYTES_MAX, VALUE_BYTES_MAX};

/// How long one hop may take to find its addresses, connect and agree on TLS, unless the options say otherwise. Who does
/// not answer by then is not there; the rest of the time belongs to the answer.
pub const CONNECT_TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);

/// Names that are looked up at a time, each by a thread of its own: a lookup that nobody answers keeps its thread for as
/// long as the system tries, and must take it from nothing else.
pub(super) const LOOKUPS_AT_A_TIME: usize = 32;

/// Bytes of an answer's body, decoded, unless the step says otherwise: what fits into a step's output beside the rest.
pub const RESPONSE_BYTES_DEFAULT: usize = 220 * 1024;

/// The most that a step may ask for: what is read before it is found out whether the value made of it is small enough.
pub const RESPONSE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Redirects that are followed; a chain that is longer leads nowhere.
pub const REDIRECTS_MAX: u32 = 5;

/// Bytes of names and values of an answer's headers.
pub(super) const HEAD_BYTES_MAX: usize = 24 * 1024;

/// Bytes that the head of an answer may take on its way; more than is kept, so that we can say that it is too much.
pub(super) const HEAD_BUFFER_BYTES: usize = 64 * 1024;

/// Bytes of a URL with its query. Few servers take more.
pub(super) const URL_BYTES_MAX: usize = 8 * 1024;

/// Bytes of names and values of a request's headers. Few servers take more.
pub(super) const REQUEST_HEAD_BYTES_MAX: usize = 16 * 1024;

/// Headers of a request. Few servers take more, and the map that holds them has a bound of its own, at which it panics.
pub(super) const REQUEST_HEADERS_MAX: usize = 100;

/// Characters that a message repeats of what somebody else has said, as the names in a certificate.
pub(super) const HEARSAY_CHARS_MAX: usize = 300;

/// Bytes of a body that are kept in a failure's details: enough for what a server says of an error.
pub(super) const FAILURE_BODY_BYTES_MAX: usize = 16 * 1024;

/// Bytes of headers that are kept in a failure's details.
pub(super) const FAILURE_HEAD_BYTES_MAX: usize = 8 * 1024;

/// How deep the JSON of a body may nest to be kept as a value; as much as a definition's own data, so that steps after
/// this one can pass it on inside of their own.
pub(super) const BODY_DEPTH_MAX: usize = 90;

/// Addresses of one name that are tried. Names with more than a handful are balanced by rotation, not by patience.
pub(super) const ADDRESSES_MAX: usize = 8;

/// How long one address has before the next one is tried beside it (RFC 8305, section 5).
pub(super) const NEXT_ADDRESS_AFTER: Duration = Duration::from_millis(250);

const _: () = assert!(RESPONSE_BYTES_DEFAULT + HEAD_BYTES_MAX + URL_BYTES_MAX < OUTPUT_BYTES_MAX, "an answer fits");
const _: () = assert!(RESPONSE_BYTES_DEFAULT <= RESPONSE_BYTES_MAX && RESPONSE_BYTES_MAX <= VALUE_BYTES_MAX);
const _: () = assert!(HEAD_BYTES_MAX < HEAD_BUFFER_BYTES && FAILURE_HEAD_BYTES_MAX <= HEAD_BYTES_MAX);
const _: () = assert!(FAILURE_BODY_BYTES_MAX <= RESPONSE_BYTES_DEFAULT);
const _: () = assert!(BODY_DEPTH_MAX + 8 < DEPTH_MAX, "a body can be read back inside of what it is kept in");
