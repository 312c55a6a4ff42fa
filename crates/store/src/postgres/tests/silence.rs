//! Answers that never come: what was done, and nobody says so.

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use super::{commit, letter, open, wait_until};
use crate::{
    Batch, CommitError, Fence, Node, Part, Store, StoreError,
    suite::{
        postgres::server,
        verb::{Turn, goes_on, key, opens},
    },
};

/// Stands between a store and the server of the tests. Once the store has sent its words, no answer comes through, until
/// the connections are cut; those that are made afterwards are as they should be.
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

    /// The address of a store, by way of here.
    fn address(&self, address: &str) -> String {
        let through = address.replace(&format!(":{}/", server().port()), &format!(":{}/", self.port));
        assert_ne!(through, address);
        format!("{through}&sslmode=disable")
    }
}

#[test]
fn a_commit_without_an_answer_is_unknown() {
    let scratch = server().scratch();
    let (direct, between) = (open(&scratch.address()), Between::new(b"the letter's name"));
    direct.claim(0, "node").unwrap();
    commit(&direct, 1, &[opens(0)]).unwrap();
    let store = open(&between.address(&scratch.address()));
    let part = Part { letters: vec![letter("the letter's name")], ..Turn { frames: 0, ..goes_on(0, 0) }.part() };
    let batch = Batch { fences: vec![Fence { partition: 0, epoch: 1 }], parts: vec![part], ..Batch::default() };
    thread::scope(|scope| {
        let committing = scope.spawn(|| store.commit(&batch));
        wait_until(&scratch.beside().unwrap(), "it is not committed", "EXISTS (SELECT 1 FROM inbox)");
        between.cut();
        let answer = committing.join().unwrap();
        assert!(matches!(&answer, Err(CommitError::Unknown(_))), "{answer:?}");
    });
    assert_eq!(direct.inbox(&[0], 0, 9).unwrap()[0].letter.execution, key(5));
    // And the store goes on.
    assert_eq!(store.head(key(0)).unwrap().unwrap().head.sequence, 0);
}

#[test]
fn what_was_taken_without_an_answer_is_no_success_and_stands_in_the_next_beat() {
    let scratch = server().scratch();
    let between = Between::new(b"silent taker");
    let direct = open(&scratch.address());
    let node = Node { name: "silent taker".into(), place: "".into(), release: "".into(), decide_version: 1 };
    direct.beat(&node, 1_000_000).unwrap();
    let store = open(&between.address(&scratch.address()));
    thread::scope(|scope| {
        let taking = scope.spawn(|| store.take(&node.name, &[0]));
        wait_until(&scratch.beside().unwrap(), "it is not taken", "EXISTS (SELECT 1 FROM partitions WHERE epoch = 1)");
        between.cut();
        let answer = taking.join().unwrap();
        assert!(matches!(&answer, Err(StoreError::Unavailable(_))), "{answer:?}");
    });
    let table = direct.beat(&node, 1_000_000).unwrap().unwrap();
    assert_eq!(table.held, [Fence { partition: 0, epoch: 1 }]);
}
