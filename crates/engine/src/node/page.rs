//! A page of inbox messages: read from the store and decoded by the driver, received by the node.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    panic::{AssertUnwindSafe, catch_unwind},
};

use mainspring_kernel::key::ExecutionKey;
use mainspring_store::{InboxEntry, ReadLimit, StoreError};

use crate::{
    inbox::{self, MessageError},
    journal_loader::Loader,
    node::quarantine_requests::record,
    shard::{Event, panics},
};

/// Rows of a page of messages or timers.
pub(crate) const ROWS_AT_A_TIME: usize = 10_000;

/// Bound of a page of messages, by count and by bytes.
const MESSAGES_PER_PAGE: ReadLimit = ReadLimit::of(ROWS_AT_A_TIME);

/// Selects the messages of a pass over the inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pass {
    /// Messages behind the last received one.
    New,
    /// All messages. In a shared store, a message can become visible after one with a larger number.
    All,
}

/// A request for a page.
#[derive(Debug)]
pub struct PageRequest {
    pub(super) pass: Pass,
    pub(super) generation: u64,
    /// Number of the last message that the pass has read.
    pub(super) after: u64,
    /// The largest received number.
    pub(super) until: u64,
    /// Received messages behind `after`, with their partitions. They are not decoded again, unless they were received
    /// for another partition.
    pub(super) known: BTreeMap<u64, u32>,
    pub(super) partitions: Vec<u32>,
    /// The organization of a message that can never be received is read as well.
    pub(super) counts: bool,
}

/// A page of messages as read.
#[derive(Debug)]
pub struct Page {
    pub(super) pass: Pass,
    pub(super) generation: u64,
    /// The largest received number when the page was requested.
    pub(super) until: u64,
    pub(super) numbers: BTreeSet<u64>,
    pub(super) messages: VecDeque<ReceivedMessage>,
    /// True if more messages may follow. An error if the page could not be read.
    pub(super) end: Result<bool, StoreError>,
}

/// A decoded message.
#[derive(Debug)]
pub(super) struct ReceivedMessage {
    pub(super) number: u64,
    pub(super) partition: u32,
    pub(super) execution: ExecutionKey,
    pub(super) byte_count: usize,
    pub(super) opened: Opened,
}

#[derive(Debug)]
pub(super) enum Opened {
    Event(Box<Event>),
    /// Can never be received, and its execution is quarantined: the reason, and the organization that the execution
    /// counted for.
    Quarantined(String, Option<String>),
    /// Not sealed with the installation's key: the id, by which it is deleted from the inbox, and the parent that it
    /// names.
    Forged(String, Option<ExecutionKey>),
    /// Read again in the next pass.
    Waits,
}

impl PageRequest {
    /// True for the first page of a pass.
    pub fn is_first(&self) -> bool {
        self.pass == Pass::New || self.after == 0
    }

    /// Reads the page and decodes its messages. `inspect` receives the messages as stored. Blocks.
    pub fn read(self, loader: &Loader, inspect: impl FnOnce(&[InboxEntry])) -> Page {
        let read = || -> Result<_, StoreError> {
            let arrived = loader.store().inbox(&self.partitions, self.after, MESSAGES_PER_PAGE)?;
            inspect(&arrived);
            let is_last = !MESSAGES_PER_PAGE.is_reached_by(&arrived);
            let numbers = arrived.iter().map(|arrived| arrived.number).collect();
            let new = arrived
                .into_iter()
                .filter(|InboxEntry { number, message }| self.known.get(number) != Some(&message.partition));
            Ok((numbers, new.map(|arrived| open(loader, arrived, self.counts)).collect(), is_last))
        };
        // A panic without an answer would prevent all further reads.
        let read = catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|panic| {
            Err(StoreError::Unavailable(format!("reading the inbox panicked: {}", panics::text(&*panic))))
        });
        match read {
            Ok((numbers, messages, is_last)) => self.page(numbers, messages, Ok(!is_last)),
            Err(error) => self.failed(error),
        }
    }

    /// The answer if the store does not answer.
    pub fn failed(self, error: StoreError) -> Page {
        self.page(BTreeSet::new(), VecDeque::new(), Err(error))
    }

    fn page(self, numbers: BTreeSet<u64>, messages: VecDeque<ReceivedMessage>, end: Result<bool, StoreError>) -> Page {
        Page { pass: self.pass, generation: self.generation, until: self.until, numbers, messages, end }
    }
}

impl Page {
    /// Marks the starts among the messages as not decoded if the predicate holds, as after a failed read of the plan.
    /// The node receives them in a later pass.
    pub fn defer_starts(&mut self, mut is_deferred: impl FnMut(ExecutionKey) -> bool) {
        for message in &mut self.messages {
            let is_start = matches!(&message.opened, Opened::Event(event) if matches!(**event, Event::Start(_)));
            if is_start && is_deferred(message.execution) {
                message.opened = Opened::Waits;
            }
        }
    }
}

/// Decodes a message.
fn open(loader: &Loader, arrived: InboxEntry, counts: bool) -> ReceivedMessage {
    let byte_count = arrived.byte_count();
    let InboxEntry { number, message } = arrived;
    let (partition, execution, id) = (message.partition, message.execution, message.id.clone());
    // A message whose decoding panics does not affect the other messages of its page.
    let event = catch_unwind(AssertUnwindSafe(|| inbox::event_from(loader, message)));
    let event = event.unwrap_or_else(|panic| {
        let why = format!("decoding a message panicked; this is a fault of the engine: {}", panics::text(&*panic));
        Err(MessageError::Unreadable(why))
    });
    let opened = match event {
        Ok(event) => Opened::Event(Box::new(event)),
        Err(MessageError::Unavailable) => Opened::Waits,
        Err(MessageError::Forged(parent)) => Opened::Forged(id, parent),
        Err(MessageError::Unreadable(why)) => match record(&**loader.store(), execution, &why, counts) {
            Ok(organization) => Opened::Quarantined(why, organization),
            Err(_) => Opened::Waits,
        },
    };
    ReceivedMessage { number, partition, execution, byte_count, opened }
}
