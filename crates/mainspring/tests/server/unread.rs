//! Clients that do not read responses: the memory for them is bounded, and other clients are not delayed.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

use mainspring_kernel::value::Value;

use super::{
    client::Client,
    process::{Organization, Server},
    start::{save, start},
};

/// Timeout of every wait.
const PATIENCE: Duration = Duration::from_secs(90);

/// Frame types (RFC 9113, section 6).
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const WINDOW_UPDATE: u8 = 8;
const SETTINGS: u8 = 4;
const PING: u8 = 6;

/// `:status: 200` in the static table of HPACK (RFC 7541, appendix A).
const STATUS_200: u8 = 0x88;

/// An HTTP/2 connection with flow control windows of zero: response headers arrive, and no bytes of a body.
pub(crate) struct Unread {
    stream: TcpStream,
    next: u32,
}

/// A received frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Came {
    /// Response headers with status 200.
    Fine,
    /// Other response headers.
    Other,
    /// The stream was reset.
    Reset,
    /// The acknowledgment of a PING.
    Alive,
}

impl Unread {
    /// Opens a connection from `127.0.0.from`.
    pub(crate) fn open(server: &str, from: u8) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        let stream = runtime.block_on(async {
            let socket = tokio::net::TcpSocket::new_v4().unwrap();
            socket.bind(([127, 0, 0, from], 0).into()).unwrap();
            socket.connect(server.parse().unwrap()).await.unwrap().into_std().unwrap()
        });
        stream.set_nonblocking(false).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut own = Self { stream, next: 1 };
        own.stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
        // SETTINGS_INITIAL_WINDOW_SIZE = 0
        own.frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0]);
        own
    }

    fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()].concat();
        self.stream.write_all(&[&head, payload].concat()).unwrap();
    }

    /// Sends a GET request, with a token or without one.
    pub(crate) fn get(&mut self, path: &str, token: Option<&str>) {
        let authorization = token.map(|token| format!("Bearer {token}"));
        let fields = [(":method", "GET"), (":scheme", "http"), (":authority", "a"), (":path", path)];
        let fields = fields.into_iter().chain(authorization.iter().map(|text| ("authorization", text.as_str())));
        // Literals without indexing (RFC 7541, section 6.2.2).
        let text = |text: &str| [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
        let block: Vec<u8> = fields.flat_map(|(name, value)| [vec![0], text(name), text(value)].concat()).collect();
        let (ends, stream) = (0x1 | 0x4, self.next);
        self.next += 2;
        self.frame(HEADERS, ends, stream, &block);
    }

    /// Sends a PING.
    fn ping(&mut self) {
        self.frame(PING, 0, 0, &[0; 8]);
    }

    /// Waits for the next response headers; `None` if the connection is closed.
    fn read(&mut self) -> (usize, bool) {
        self.frame(SETTINGS, 0, 0, &[0, 4, 0x7f, 0xff, 0xff, 0xff]);
        self.frame(WINDOW_UPDATE, 0, 0, &[0x7f, 0, 0, 0]);
        let mut bytes = 0;
        loop {
            let mut head = [0; 9];
            self.stream.read_exact(&mut head).unwrap();
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            self.stream.read_exact(&mut vec![0; length as usize]).unwrap();
            match head[3] {
                DATA if head[4] & 1 == 1 => return (bytes, true),
                DATA => bytes += length as usize,
                RST_STREAM => return (bytes, false),
                _ => {}
            }
        }
    }

    /// Waits for the head of the next response; `None` if the connection is closed.
    pub(crate) fn next(&mut self) -> Option<Came> {
        loop {
            let mut head = [0; 9];
            self.stream.read_exact(&mut head).ok()?;
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let mut payload = vec![0; length as usize];
            self.stream.read_exact(&mut payload).ok()?;
            match head[3] {
                HEADERS if payload[0] == STATUS_200 => return Some(Came::Fine),
                HEADERS => return Some(Came::Other),
                RST_STREAM => return Some(Came::Reset),
                PING if head[4] & 1 == 1 => return Some(Came::Alive),
                DATA => assert!(payload.is_empty(), "no window is open"),
                _ => {}
            }
        }
    }
}

#[test]
fn stalled_anonymous_clients_block_neither_health_nor_tenants() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_with(folder.path(), &["--anonymous-rate-limit-per-second", "0"]);
    let [ours, theirs] = ["acme", "globex"].map(|id| Organization::new(&server, id));
    let bytes = server.nobody().get("/openapi.json").expect(200).text.len();
    // Each of 68 addresses requests more than 4 MiB of responses.
    let streams = (4 << 20) / bytes + 1;
    let anonymous: Vec<Unread> = (2..70)
        .map(|from| {
            let mut one = Unread::open(&server.address, from);
            one.get("/healthz", None);
            one.get("/readyz", None);
            (0..streams).for_each(|_| one.get("/openapi.json", None));
            (0..streams + 2).for_each(|_| assert!(one.next().is_some()));
            one
        })
        .collect();
    // Unread responses of an organization are in memory as well.
    let mut held = Unread::open(&server.address, 1);
    (0..2).for_each(|_| held.get("/api/me", Some(ours.owner.token())));
    (0..2).for_each(|_| assert_eq!(held.next(), Some(Came::Fine)));
    for path in ["/healthz", "/readyz"] {
        server.nobody().get(path).expect(200);
    }
    for owner in [&ours.owner, &theirs.owner] {
        owner.get("/api/me").expect(200);
        owner.get("/api/workflows").expect(200);
    }
    drop(anonymous);
}

/// A workflow whose JSON is about a MiB.
fn save_large(owner: &Client) {
    let step = |number: usize| {
        let text = Value::from("x".repeat(250 << 10).as_str());
        Value::map([("id", Value::from(format!("s{number}").as_str())), ("type", "return".into()), ("input", text)])
    };
    save(owner, "large", Value::List((0..4).map(step).collect()));
}

#[test]
fn an_export_ends_when_its_reader_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let ours = Organization::new(&server, "acme");
    let step = Value::map([("id", Value::from("s")), ("type", "return".into()), ("input", 1u64.into())]);
    let data = Value::map([("steps", Value::List(vec![step]))]);
    for request in 0..10 {
        let workflow = |number: usize| {
            let id = format!("w{request}-{number}");
            Value::map([("id", Value::from(id.as_str())), ("data", data.clone())])
        };
        let all = Value::List((0..100).map(workflow).collect());
        ours.owner.post("/api/workflows/sync-all", &Value::map([("workflows", all)])).expect(200);
    }
    let mia = ours.member("mia", "admin");
    let export = || {
        let mut reader = Unread::open(&server.address, 1);
        reader.get("/api/audit/export", Some(mia.token()));
        assert_eq!(reader.next(), Some(Came::Fine));
        reader
    };
    let (bytes, is_whole) = export().read();
    assert!(is_whole && bytes > 200_000, "{bytes}");
    let mut reader = export();
    ours.owner.send("DELETE", "/api/members/mia", &[], None).expect(204);
    let (read, is_whole) = reader.read();
    assert!(!is_whole && read < bytes, "{read} of {bytes}");
}

#[test]
fn a_stalled_member_leaves_memory_to_its_organization() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let ours = Organization::new(&server, "acme");
    save_large(&ours.owner);
    let vic = ours.member("vic", "viewer");
    let mut unread = Unread::open(&server.address, 1);
    (0..100).for_each(|_| unread.get("/api/workflows/large", Some(vic.token())));
    // A quarter of 64 MiB, of which each response takes about one.
    let fine = (0..15).filter(|_| unread.next() == Some(Came::Fine)).count();
    assert_eq!(fine, 15);
    for _ in 0..10 {
        ours.owner.get("/api/workflows/large").expect(200);
        ours.member("val", "viewer").get("/api/workflows/large").expect(200);
    }
    let more = std::iter::from_fn(|| unread.next()).take(10).take_while(|came| *came == Came::Fine).count();
    assert!(fine + more <= 17, "{more} more were made for who reads nothing");
}

#[test]
fn a_connection_processes_few_requests_until_it_is_authenticated() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_with(folder.path(), &["--anonymous-rate-limit-per-second", "0"]);
    let owner = server.owner();
    let (mut anonymous, mut known) = (Unread::open(&server.address, 1), Unread::open(&server.address, 1));
    (0..40).for_each(|_| anonymous.get("/docs", None));
    (0..32).for_each(|_| assert_eq!(anonymous.next(), Some(Came::Fine)));
    anonymous.ping();
    assert_eq!(anonymous.next(), Some(Came::Alive), "the others wait until these are read");
    (0..40).for_each(|_| known.get("/api/me", Some(owner.token())));
    (0..40).for_each(|_| assert_eq!(known.next(), Some(Came::Fine)));
}

#[test]
fn a_connection_with_rejected_requests_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_with(folder.path(), &["--anonymous-rate-limit-per-second", "0"]);
    let owner = server.owner();
    let mut one = Unread::open(&server.address, 1);
    // Failures before an authenticated request do not count.
    for (token, count, came) in
        [("msp_0_0", 15, Came::Other), (owner.token(), 1, Came::Fine), ("msp_0_0", 16, Came::Other)]
    {
        for _ in 0..count {
            one.get("/api/me", Some(token));
            assert_eq!(one.next(), Some(came));
        }
    }
    one.get("/api/me", Some(owner.token()));
    assert_eq!(one.next(), None, "the next one closes it");
}

#[test]
fn watchers_of_a_member_leave_slots_to_others() {
    let folder = tempfile::tempdir().unwrap();
    // The limit of open files leaves 64 connections.
    let server = Server::start_with_files(folder.path(), 384);
    let ours = Organization::new(&server, "acme");
    let signal = [("id", Value::from("go")), ("type", "signal".into()), ("signal", "go".into())];
    save(&ours.owner, "waits", Value::List(vec![Value::map(signal)]));
    let id = start(&ours.owner, "waits", "r1", Default::default()).expect(202).text_at("executionId");
    let path = format!("/api/executions/{id}/events");
    let vic = ours.member("vic", "viewer");
    let name = Value::map([("name", Value::from("another"))]);
    let other = vic.post("/api/tokens", &name).expect(201).text_at("token");
    let mut watchers = Unread::open(&server.address, 1);
    for token in [vic.token(), &other].into_iter().cycle().take(8) {
        watchers.get(&path, Some(token));
        assert_eq!(watchers.next(), Some(Came::Fine));
    }
    for token in [vic.token(), &other] {
        watchers.get(&path, Some(token));
        assert_eq!(watchers.next(), Some(Came::Other), "an eighth for a member");
    }
    let mut ada = Unread::open(&server.address, 1);
    ada.get(&path, Some(ours.owner.token()));
    assert_eq!(ada.next(), Some(Came::Fine));
}
