//! A server that responds with given bytes and records the requests.

use std::collections::BTreeMap;

use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    sync::mpsc,
};

/// A received request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Asked {
    /// The request line.
    pub(crate) line: String,
    /// The headers, by their names in lower case.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

impl Asked {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// Returns the target of the request line.
    pub(crate) fn path(&self) -> &str {
        self.line.split(' ').nth(1).unwrap()
    }
}

/// A server's reaction to a request.
pub(crate) enum Reply {
    /// Writes these bytes and closes the connection.
    Whole(Vec<u8>),
    /// Writes these bytes, signals it, and waits for the client to close the connection.
    Begun(Vec<u8>),
}

impl From<Vec<u8>> for Reply {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Whole(bytes)
    }
}

/// A server on a free port of the loopback address. It lives as long as the test's runtime.
pub(crate) struct Server {
    pub(crate) port: u16,
    asked: mpsc::UnboundedReceiver<Asked>,
    begun: mpsc::UnboundedReceiver<()>,
    closed: mpsc::UnboundedReceiver<()>,
}

impl Server {
    /// Starts a server with this reaction to each request.
    pub(crate) async fn start(reply: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Self {
        Self::start_at(("127.0.0.1", 0), reply).await
    }

    /// Starts a server at an address and port; 0 selects a free port.
    pub(crate) async fn start_at(
        address: (&str, u16),
        reply: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let ((asked_sender, asked), (begun_sender, begun), (closed_sender, closed)) =
            (mpsc::unbounded_channel(), mpsc::unbounded_channel(), mpsc::unbounded_channel());
        let reply = std::sync::Arc::new(reply);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (asked, begun, closed) = (asked_sender.clone(), begun_sender.clone(), closed_sender.clone());
                let reply = reply.clone();
                tokio::spawn(async move {
                    let mut stream = BufReader::new(stream);
                    let request = read(&mut stream).await;
                    let _ = asked.send(request.clone());
                    answer(stream, reply(&request), begun, closed).await;
                });
            }
        });
        Self { port, asked, begun, closed }
    }

    /// Starts a server that responds to everything with these bytes.
    pub(crate) async fn with(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        Self::start(move |_| Reply::Whole(bytes.clone())).await
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// Waits for the next request.
    pub(crate) async fn next_request(&mut self) -> Asked {
        self.asked.recv().await.unwrap()
    }

    /// Returns the number of received requests that the test has not read.
    pub(crate) fn unread_requests(&self) -> usize {
        self.asked.len()
    }

    /// Returns once the start of a response was written.
    pub(crate) async fn response_started(&mut self) {
        self.begun.recv().await.unwrap();
    }

    /// Returns once the client has closed a connection that waits for it.
    pub(crate) async fn closed(&mut self) {
        self.closed.recv().await.unwrap();
    }
}

async fn answer(
    mut stream: BufReader<TcpStream>,
    reply: Reply,
    begun: mpsc::UnboundedSender<()>,
    closed: mpsc::UnboundedSender<()>,
) {
    match reply {
        // A client that has read enough may have closed the connection.
        Reply::Whole(bytes) => {
            let _ = stream.write_all(&bytes).await;
            let _ = stream.shutdown().await;
        }
        Reply::Begun(bytes) => {
            stream.write_all(&bytes).await.unwrap();
            let _ = begun.send(());
            let _ = stream.read(&mut [0]).await;
            let _ = closed.send(());
        }
    }
}

/// Reads one request: the head, and a body by its length.
async fn read(stream: &mut BufReader<impl AsyncRead + Unpin>) -> Asked {
    let mut asked = Asked::default();
    let mut line = String::new();
    while stream.read_line(&mut line).await.is_ok_and(|count| count > 2) {
        match line.trim_end().split_once(": ") {
            Some((name, value)) if !asked.line.is_empty() => {
                let was = asked.headers.insert(name.to_ascii_lowercase(), value.to_owned());
                assert_eq!(was, None, "{name} is sent twice");
            }
            _ => asked.line = line.trim_end().to_owned(),
        }
        line.clear();
    }
    let length = asked.header("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    let _ = stream.read_exact(&mut body).await;
    asked.body = String::from_utf8(body).unwrap();
    asked
}

/// Builds an HTTP/1.1 response with these header lines.
pub(crate) fn response(status: u16, headers: &[&str], body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let mut lines = format!("HTTP/1.1 {status} Any\r\nContent-Length: {}\r\n", body.len());
    headers.iter().for_each(|header| lines.extend([header, "\r\n"]));
    [lines.as_bytes(), b"\r\n", body].concat()
}

/// Builds a redirect.
pub(crate) fn redirect(status: u16, location: &str) -> Vec<u8> {
    response(status, &[&format!("Location: {location}")], "")
}
