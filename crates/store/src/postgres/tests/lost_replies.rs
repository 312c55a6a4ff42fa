//! Lost responses: the work was done, but the response never arrives.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use super::{commit, message, open, wait_until};
use crate::prelude::*;
use crate::{
    Batch, CommitError, Fence, Node, Part, PartOutcome, ReadLimit, StoreError,
    contract_tests::{
        op::{Turn, continues, key, opens},
        postgres::server,
    },
};

/// A proxy between a store and the test server. Once the store has sent `words`, responses are withheld until the
/// connections are cut; later connections work normally.
struct Between {
    port: u16,
    words: &'static [u8],
    is_silent: AtomicBool,
    connections: Mutex<Vec<TcpStream>>,
}

impl Between {
    fn new(words: &'static [u8]) -> Arc<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (is_silent, connections) = (AtomicBool::new(false), Mutex::default());
        let between = Arc::new(Self { port, words, is_silent, connections });
        let accepting = between.clone();
        thread::spawn(move || listener.incoming().for_each(|store| accepting.pass_on(store.unwrap())));
        between
    }

    fn pass_on(self: &Arc<Self>, mut store: TcpStream) {
        let mut server = TcpStream::connect(("127.0.0.1", server().port())).unwrap();
        let (mut from_server, mut to_store) = (server.try_clone().unwrap(), store.try_clone().unwrap());
        self.connections.lock().unwrap().push(store.try_clone().unwrap());
        let (answering, asking) = (self.clone(), self.clone());
        thread::spawn(move || {
            let mut buffer = [0; 65536];
            while let Ok(length @ 1..) = from_server.read(&mut buffer) {
                if !answering.is_silent.load(Ordering::Acquire) && to_store.write_all(&buffer[..length]).is_err() {
                    return;
                }
            }
        });
        thread::spawn(move || {
            let (mut buffer, mut sent) = ([0; 65536], Vec::new());
            while let Ok(length @ 1..) = store.read(&mut buffer) {
                sent.extend_from_slice(&buffer[..length]);
                if sent.windows(asking.words.len()).any(|window| window == asking.words) {
                    asking.is_silent.store(true, Ordering::Release);
                    sent.clear();
                }
                server.write_all(&buffer[..length]).unwrap();
            }
            let _ = server.shutdown(Shutdown::Both);
        });
    }

    fn cut(&self) {
        for connection in self.connections.lock().unwrap().drain(..) {
            connection.shutdown(Shutdown::Both).unwrap();
        }
        self.is_silent.store(false, Ordering::Release);
    }

    /// Returns the address of a store through the proxy.
    fn address(&self, address: &str) -> String {
        let through = address.replace(&format!(":{}/", server().port()), &format!(":{}/", self.port));
        assert_ne!(through, address);
        format!("{through}&sslmode=disable")
    }
}

#[test]
fn a_commit_without_an_answer_is_unknown() {
    let scratch = server().scratch();
    let (direct, between) = (open(&scratch.address()), Between::new(b"the message's name"));
    direct.claim(0, "node").unwrap();
    commit(&direct, 1, &[opens(0)]).unwrap();
    let store = open(&between.address(&scratch.address()));
    let part = Part { messages: vec![message("the message's name")], ..Turn { frames: 0, ..continues(0, 0) }.part() };
    let batch = Batch { fences: vec![Fence { partition: 0, epoch: 1 }], parts: vec![part], ..Batch::default() };
    thread::scope(|scope| {
        let committing = scope.spawn(|| store.commit(&batch));
        wait_until(&scratch.beside().unwrap(), "it is not committed", "EXISTS (SELECT 1 FROM inbox)");
        between.cut();
        let answer = committing.join().unwrap();
        assert!(matches!(&answer, Err(CommitError::Unknown(_))), "{answer:?}");
    });
    assert_eq!(direct.inbox(&[0], 0, ReadLimit::of(9)).unwrap()[0].message.execution, key(5));
    // The store continues to work.
    assert_eq!(store.head(key(0)).unwrap().unwrap().head.sequence, 0);
}

#[test]
fn an_unanswered_acquisition_fails_and_shows_in_the_next_heartbeat() {
    let scratch = server().scratch();
    let between = Between::new(b"silent taker");
    let direct = open(&scratch.address());
    let node = Node {
        name: "silent taker".into(),
        address: "".into(),
        release: "".into(),
        decide_version: 1,
        accepts_partitions: true,
    };
    direct.heartbeat(&node, 1_000_000).unwrap();
    let store = open(&between.address(&scratch.address()));
    thread::scope(|scope| {
        let taking = scope.spawn(|| store.acquire(&node.name, &[0]));
        wait_until(&scratch.beside().unwrap(), "it is not taken", "EXISTS (SELECT 1 FROM partitions WHERE epoch = 1)");
        between.cut();
        let answer = taking.join().unwrap();
        assert!(matches!(&answer, Err(StoreError::Unavailable(_))), "{answer:?}");
    });
    let table = direct.heartbeat(&node, 1_000_000).unwrap().unwrap();
    assert_eq!(table.held, [Fence { partition: 0, epoch: 1 }]);
}

/// Forwards the server's messages one by one and cuts the connection in place of the response to COMMIT, which the
/// server has executed at that point. The responses to all earlier statements are forwarded.
fn cut_before_the_answer_to_commit() -> (u16, Arc<AtomicBool>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let (port, was_cut) = (listener.local_addr().unwrap().port(), Arc::new(AtomicBool::new(false)));
    let cuts = was_cut.clone();
    thread::spawn(move || {
        for store in listener.incoming() {
            let (mut store, cuts) = (store.unwrap(), cuts.clone());
            let mut server = TcpStream::connect(("127.0.0.1", server().port())).unwrap();
            let (mut from_server, mut to_store) = (server.try_clone().unwrap(), store.try_clone().unwrap());
            thread::spawn(move || std::io::copy(&mut store, &mut server));
            thread::spawn(move || {
                let mut head = [0; 5];
                while from_server.read_exact(&mut head).is_ok() {
                    let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
                    let mut body = vec![0; length - 4];
                    from_server.read_exact(&mut body).unwrap();
                    if head[0] == b'C' && body == b"COMMIT\0" && !cuts.swap(true, Ordering::AcqRel) {
                        to_store.shutdown(Shutdown::Both).unwrap();
                        return;
                    }
                    if to_store.write_all(&head).and_then(|()| to_store.write_all(&body)).is_err() {
                        return;
                    }
                }
            });
        }
    });
    (port, was_cut)
}

#[test]
fn a_connection_lost_before_the_commit_reply_is_unknown() {
    let scratch = server().scratch();
    let direct = open(&scratch.address());
    direct.claim(0, "node").unwrap();
    commit(&direct, 1, &[opens(0)]).unwrap();
    // Opened directly first, so that the first COMMIT through the proxy is that of the batch.
    let (port, was_cut) = cut_before_the_answer_to_commit();
    let through = scratch.address().replace(&format!(":{}/", server().port()), &format!(":{port}/"));
    let store = open(&format!("{through}&sslmode=disable"));
    was_cut.store(false, Ordering::Release);
    let answer = commit(&store, 1, &[continues(0, 0)]);
    assert!(matches!(&answer, Err(CommitError::Unknown(_))), "{answer:?}");
    assert!(was_cut.load(Ordering::Acquire), "no COMMIT was answered at all");
    assert_eq!(direct.head(key(0)).unwrap().unwrap().head.sequence, 1, "the server has done it");
    // A batch that writes nothing ends with ROLLBACK, and the next one that writes gets its answer.
    assert_eq!(commit(&store, 1, &[continues(0, 1)]), Ok(vec![PartOutcome::Durable]));
}
