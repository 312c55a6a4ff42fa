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

/// Bytes of all variables of one mapping as JSON: four times the body of a delivery, since several paths may find the same
/// value. A value in memory is up to 16 times as large, so it is counted before it is copied.
pub const VARIABLES_BYTES_MAX: usize = 1024 * 1024;

/// Bytes of a part of a session key.
pub const SESSION_PART_BYTES_MAX: usize = 256;

/// Triggers of one workflow. Its deletion removes all of them in one transaction.
pub const TRIGGERS_PER_WORKFLOW_MAX: usize = 100;

/// Triggers of one organization. A node reads the due schedules of all organizations each second.
pub const TRIGGERS_PER_ORGANIZATION_MAX: usize = 2_000;

/// Bytes of the path of a webhook, below the bound of a resource id.
pub const WEBHOOK_PATH_BYTES_MAX: usize = 200;

/// Bytes of the body of a webhook delivery. Its values become part of a frame, which is stored as a whole.
pub const WEBHOOK_BODY_BYTES_MAX: usize = 256 * 1024;

/// Bytes of one secret below which a server warns: fewer can be guessed from one recorded delivery.
pub const SECRET_BYTES_SAFE: usize = 16;

/// Bytes of one secret. Keys of HMAC-SHA512 have 128.
pub const SECRET_BYTES_MAX: usize = 1_024;

/// Required headers of one webhook.
pub const REQUIRED_HEADERS_MAX: usize = 8;

/// Variables of one mapping.
pub const VARIABLES_MAX: usize = 100;

/// Bytes of the id of a delivery, which becomes part of an idempotency key.
pub const DELIVERY_ID_BYTES_MAX: usize = 200;

/// Headers of a delivery that its event has.
pub const EVENT_HEADERS_MAX: usize = 64;

/// Bytes of a header value in an event; longer ones are left out.
pub const EVENT_HEADER_BYTES_MAX: usize = 1_024;

/// Entries of the run log of a trigger, the newest. The log is one row that is written as a whole.
pub const RUN_LOG_ENTRIES_MAX: usize = 100;

/// Characters of the reason in an entry of the run log.
pub const RUN_REASON_CHARS_MAX: usize = 500;

/// Milliseconds in which a delivery without an id is recognized as repeated (first specification, 12.1).
pub const REPEATED_WITHIN_MS: u64 = 24 * 3_600_000;

/// Ticks of one schedule that start in one pass, so that a long outage of one schedule does not delay the others.
pub const TICKS_PER_PASS_MAX: usize = 30;

/// Milliseconds until a queued tick checks again if the previous execution has ended.
pub const QUEUED_TICK_RETRY_MS: u64 = 5_000;

/// Milliseconds until a tick that could not start is tried again, as at the bound of unfinished executions. Several tries
/// are within [`ON_TIME_MS`].
pub const FAILED_TICK_RETRY_MS: u64 = 10_000;

/// Next runs of a schedule that a response shows.
pub const NEXT_RUNS_MAX: usize = 5;

/// Subscriptions to events of one organization. Each commit of its executions writes a row for each of them.
pub const SUBSCRIPTIONS_PER_ORGANIZATION_MAX: usize = 50;

/// Patterns of event types of one subscription.
pub const EVENT_TYPES_MAX: usize = 32;

/// Workflows that one subscription names.
pub const SUBSCRIPTION_WORKFLOWS_MAX: usize = 100;

/// Bytes of the URL of a subscription.
pub const SUBSCRIPTION_URL_BYTES_MAX: usize = 2_000;

/// Bytes of the key of a subscription at least, as Standard Webhooks recommends.
pub const SUBSCRIPTION_KEY_BYTES_MIN: usize = 24;

/// Bytes of the key of a subscription at most, as Standard Webhooks recommends.
pub const SUBSCRIPTION_KEY_BYTES_MAX: usize = 64;

/// Milliseconds in which deliveries are also signed with the previous secret after a rotation.
pub const ROTATION_MS: u64 = 24 * 3_600_000;

/// Executions with events that wait for one subscription. A row has about 100 bytes, so these are 10 MB.
pub const WAITING_EXECUTIONS_MAX: usize = 100_000;

/// Webhooks with events of executions that lead to each other. Beyond them a webhook starts nothing, so that a subscription
/// whose events start executions with the same events ends.
pub const HOPS_MAX: u32 = 8;

/// Failed deliveries that are kept of one subscription, until a person sends or removes them.
pub const FAILED_DELIVERIES_MAX: usize = 1_000;

/// Milliseconds for one delivery, as Standard Webhooks recommends.
pub const DELIVERY_TIMEOUT_MS: u64 = 15_000;

/// Milliseconds until the first retry of a delivery. Each further delay is twice as long.
pub const RETRY_FIRST_MS: u64 = 5_000;

/// Milliseconds of the longest delay between two attempts of a delivery.
pub const RETRY_LONGEST_MS: u64 = 3_600_000;

/// Milliseconds until the next attempt with the longest delay and its jitter of a fifth. A later time was written before the
/// clock was set back.
pub const RETRY_LATEST_MS: u64 = RETRY_LONGEST_MS + RETRY_LONGEST_MS / 5;

/// Milliseconds after the first attempt in which a delivery is retried.
pub const RETRY_WITHIN_MS: u64 = 24 * 3_600_000;

/// Attempts of a delivery before it can be given up, also if most of the time passed while the subscription was paused.
pub const RETRY_ATTEMPTS_MIN: u32 = 12;

/// Failed attempts in a row after which a subscription is sent to with growing delays, one execution at a time.
pub const FAILURES_BEFORE_SLOWDOWN: u32 = 5;

/// Failed attempts in a row after which a subscription is paused, if they took [`FAILING_BEFORE_PAUSE_MS`].
pub const FAILURES_BEFORE_PAUSE: u32 = 20;

/// Milliseconds of failed attempts before a pause, so that a restart of the receiver pauses nothing.
pub const FAILING_BEFORE_PAUSE_MS: u64 = 10 * 60_000;

/// Bytes of the prompt of a trigger. It is stored with each tick until it is delivered.
pub const PROMPT_BYTES_MAX: usize = 16 * 1024;

/// Prompts of one organization that wait for their delivery. With the largest prompts these are 16 MB. Further ticks are
/// refused and listed.
pub const PROMPTS_WAITING_MAX: u32 = 1_000;

const _: () = assert!(RETRY_FIRST_MS < RETRY_LONGEST_MS && RETRY_LONGEST_MS < RETRY_WITHIN_MS);
const _: () = assert!(FAILURES_BEFORE_SLOWDOWN < FAILURES_BEFORE_PAUSE);
const _: () = assert!(ON_TIME_MS <= CATCH_UP_WINDOW_MS_MAX);
