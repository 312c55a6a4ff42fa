//! Every bound of this crate, with its reason.

/// Bytes of a cron expression. A list of all minutes has 169.
pub const CRON_BYTES_MAX: usize = 1024;

/// Milliseconds after a tick in which it is on time. A poll of triggers comes at least once a minute.
pub const ON_TIME_MS: u64 = 60_000;

/// Milliseconds of the largest window for missed ticks: 31 days, a monthly schedule that was missed once.
pub const CATCH_UP_WINDOW_MS_MAX: u64 = 31 * 24 * 3_600_000;

/// Milliseconds of the largest jitter: an hour, since schedules of more than one run an hour are common.
pub const JITTER_MS_MAX: u64 = 3_600_000;

/// Milliseconds between the time of a signature and now, in either direction: the five minutes that Standard Webhooks,
/// Stripe and Slack recommend.
pub const TOLERANCE_MS_DEFAULT: u64 = 300_000;

/// Signatures of one request that are compared. A sender that rotates its secret sends two.
pub const SIGNATURES_MAX: usize = 16;

/// Secrets of one webhook that are valid at the same time. A rotation needs two.
pub const SECRETS_MAX: usize = 8;

/// Bytes of a path of a variable mapping.
pub const PATH_BYTES_MAX: usize = 256;

/// Brackets and parentheses within each other in one path. Bounds the recursion of the parser, which overflows the stack
/// of a thread with 1 MiB at about a hundred.
pub const PATH_NESTING_MAX: usize = 8;

/// Filters in one path, one after another.
pub const FILTERS_MAX: usize = 2;

/// Searches through all descendants (`..`) in one path. Each further one would multiply the values that are found.
pub const DESCENDANTS_MAX: usize = 1;

/// Brackets with several selectors in one path. The values that are found are the product of their sizes.
pub const SELECTOR_LISTS_MAX: usize = 1;

/// Selectors in one bracket. Each can find the same value again.
pub const SELECTORS_MAX: usize = 16;

/// Bytes of the values that one query finds. With `..` a value is found with each of the values around it.
pub const FOUND_BYTES_MAX: usize = 256 * 1024;

/// Bytes of a part of a session key.
pub const SESSION_PART_BYTES_MAX: usize = 256;

const _: () = assert!(ON_TIME_MS <= CATCH_UP_WINDOW_MS_MAX);
