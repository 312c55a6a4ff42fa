//! Events for subscriptions: derived from journals, sent as CloudEvents to webhooks.

pub(crate) mod cloud_event;
pub(crate) mod delivery;
pub(crate) mod endpoint_url;
pub(crate) mod event_types;
pub(crate) mod failures;
pub(crate) mod hops;
mod journal_cache;
pub(crate) mod journal_events;
pub(crate) mod partition_owner;
mod pass;
pub(crate) mod save_subscription;
pub mod sender;
pub mod webhook_client;
