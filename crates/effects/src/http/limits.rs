//! Every bound of the http executor, each with its reason.

use std::time::Duration;

use mainspring_kernel::limits::{DEPTH_MAX, OUTPUT_BYTES_MAX, VALUE_BYTES_MAX};

/// Default time for one hop to resolve its host, connect and complete the TLS handshake. A slower server counts as
/// unreachable; the rest of the attempt's time is for the response.
pub const CONNECT_TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);

/// Concurrent lookups of names, each on its own thread: a lookup without an answer blocks its thread until the system
/// gives up, and must not block other work.
pub(super) const LOOKUPS_AT_A_TIME: usize = 32;

/// Default bound on the bytes of a decoded body: a step's output without the other fields.
pub const RESPONSE_BYTES_DEFAULT: usize = 220 * 1024;

/// The largest bound that a step may set. The size as a value is only known after the whole body was read.
pub const RESPONSE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Redirects that are followed; a longer chain is most likely a loop.
pub const REDIRECTS_MAX: u32 = 5;

/// Bytes of names and values of a response's headers.
pub(super) const HEAD_BYTES_MAX: usize = 24 * 1024;

/// Bytes of the received head of a response; larger than the kept size, so that an excess can be reported as such.
pub(super) const HEAD_BUFFER_BYTES: usize = 64 * 1024;

/// Bytes of a URL with its query. Few servers accept more.
pub(super) const URL_BYTES_MAX: usize = 8 * 1024;

/// Bytes of names and values of a request's headers. Few servers accept more.
pub(super) const REQUEST_HEAD_BYTES_MAX: usize = 16 * 1024;

/// Headers of a request. Few servers accept more, and `HeaderMap` panics beyond a bound of its own.
pub(super) const REQUEST_HEADERS_MAX: usize = 100;

/// Characters of foreign text in a message, such as the names in a certificate.
pub(super) const HEARSAY_CHARS_MAX: usize = 300;

/// Bytes of a body in a failure's details: enough for a server's error message.
pub(super) const FAILURE_BODY_BYTES_MAX: usize = 16 * 1024;

/// Bytes of headers in a failure's details.
pub(super) const FAILURE_HEAD_BYTES_MAX: usize = 8 * 1024;

/// Nesting of JSON in a body that is converted to a value; the same as for data in a definition, so that later steps
/// can pass it on inside of their own data.
pub(super) const BODY_DEPTH_MAX: usize = 90;

/// Addresses of one name that are tried. Names with more addresses rotate them for load balancing.
pub(super) const ADDRESSES_MAX: usize = 8;

/// Head start of one address before the next one is tried in parallel (RFC 8305, section 5).
pub(super) const NEXT_ADDRESS_AFTER: Duration = Duration::from_millis(250);

const _: () = assert!(RESPONSE_BYTES_DEFAULT + HEAD_BYTES_MAX + URL_BYTES_MAX < OUTPUT_BYTES_MAX, "an answer fits");
const _: () = assert!(RESPONSE_BYTES_DEFAULT <= RESPONSE_BYTES_MAX && RESPONSE_BYTES_MAX <= VALUE_BYTES_MAX);
const _: () = assert!(HEAD_BYTES_MAX < HEAD_BUFFER_BYTES && FAILURE_HEAD_BYTES_MAX <= HEAD_BYTES_MAX);
const _: () = assert!(FAILURE_BODY_BYTES_MAX <= RESPONSE_BYTES_DEFAULT);
const _: () = assert!(BODY_DEPTH_MAX + 8 < DEPTH_MAX, "a body can be read back inside of what it is kept in");
