//! Bounds of repositories, each with its reason.

use std::time::Duration;

/// Bytes of a pack by default: a large working tree with one commit.
pub const PACK_BYTES_DEFAULT: u64 = 1 << 30;

/// The largest bound of a pack. A file in a container has at most 2 GiB.
pub const PACK_BYTES_MAX: u64 = 2 << 30;

/// Bytes of the cache of packs by default.
pub const CACHE_BYTES_DEFAULT: u64 = 4 << 30;

/// Time of a checkout by default, download included. It counts toward the attempt that needs the files.
pub const CHECKOUT_TIMEOUT_DEFAULT: Duration = Duration::from_secs(100);

/// The longest time of a checkout that can be configured: that of a script.
pub const CHECKOUT_TIMEOUT_MAX: Duration = Duration::from_secs(3600);

/// Time in which a ref is resolved: a start waits for it, and senders of webhooks give up after 10 s or more.
pub(super) const RESOLVE_TIMEOUT: Duration = Duration::from_secs(8);

/// Hosts that the configuration names.
pub(super) const HOSTS_MAX: usize = 100;

/// Bytes of a repository's URL: some path segments.
pub(super) const URL_BYTES_MAX: usize = 1024;

/// Bytes of the name of a ref: as much as a file system accepts for one of its parts.
pub(super) const REF_BYTES_MAX: usize = 255;

/// Bytes of a list of refs or capabilities. A prefix of a ref may match many others.
pub(super) const LIST_BYTES_MAX: usize = 4 << 20;

/// Bytes of one packet: four digits of the length.
pub(super) const PACKET_BYTES_MAX: usize = 65_520;

/// Bytes of a remote's or Git's message that an error quotes.
pub(super) const QUOTED_BYTES_MAX: usize = 500;

/// Bytes of Git's output that are read.
pub(super) const OUTPUT_BYTES_MAX: usize = 64 * 1024;

/// Checkouts at a time, of all organizations and of one: each uses the disk and a processor.
pub(super) const CHECKOUTS: (usize, usize) = (8, 2);

/// Refs that are resolved at a time, of all organizations and of one: each holds a connection and little memory.
pub(super) const RESOLUTIONS: (usize, usize) = (64, 16);

/// Free bytes of the disk that a download leaves to the store.
pub(super) const DISK_FREE_BYTES_MIN: u64 = 1 << 30;

/// Bytes between two looks at the free space.
pub(super) const DISK_CHECK_BYTES: u64 = 16 << 20;

/// Age at which an unused pack is removed: branches move, so most commits are asked for during some days only.
pub(super) const UNUSED_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// Age at which an incomplete download was left by a process that ended.
pub(super) const PARTIAL_MAX: Duration = Duration::from_secs(2 * 3600);

/// Interval in which an attempt asks if another one has finished the checkout of their workspace.
pub(super) const LOCK_POLL: Duration = Duration::from_millis(100);
