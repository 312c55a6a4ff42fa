//! A proxy between a command line and a server, or in place of the server, which injects faults.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::{Arc, Mutex},
};

/// The treatment of a request.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    /// Forwards the request and the response.
    Pass,
    /// Forwards the request, and drops the response.
    Swallow,
    /// Forwards the response up to this text, and then closes.
    CutBehind(&'static str),
    /// Responds with these bytes, without a server.
    Say(Vec<u8>),
}

/// A proxy that records each request: its first line and its headers.
pub(crate) struct Between {
    /// The address that it listens on, such as `127.0.0.1:40000`.
    pub(crate) address: String,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Between {
    /// Starts a proxy before a server. The treatment of a request is chosen by its head, and by the number of
    /// earlier requests with the same first line.
    pub(crate) fn new(server: &str, fault: impl Fn(&str, usize) -> Fault + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let (log, server, fault) = (seen.clone(), server.to_string(), Arc::new(fault));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (log, server, fault) = (log.clone(), server.clone(), fault.clone());
                std::thread::spawn(move || drop(serve(stream, &server, &log, &*fault)));
            }
        });
        Self { address, seen }
    }

    /// A server that always sends the same bytes.
    pub(crate) fn saying(answer: &[u8]) -> Self {
        let answer = answer.to_vec();
        Self::new("", move |_, _| Fault::Say(answer.clone()))
    }

    /// The heads of the requests whose first line contains a text.
    pub(crate) fn requests_with(&self, part: &str) -> Vec<String> {
        let seen = self.seen.lock().unwrap();
        seen.iter().filter(|head| head.lines().next().unwrap_or_default().contains(part)).cloned().collect()
    }
}

fn serve(
    stream: TcpStream,
    server: &str,
    log: &Mutex<Vec<String>>,
    fault: &(impl Fn(&str, usize) -> Fault + ?Sized),
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head)? == 0 {
            return Ok(());
        }
    }
    let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body)?;
    let first = |head: &str| head.lines().next().unwrap_or_default().to_string();
    let before = {
        let mut log = log.lock().unwrap();
        let before = log.iter().filter(|other| first(other) == first(&head)).count();
        log.push(head.clone());
        before
    };
    let fault = fault(&head, before);
    let mut back = stream;
    if let Fault::Say(answer) = &fault {
        back.write_all(answer)?;
        return back.shutdown(Shutdown::Both);
    }
    let mut upstream = TcpStream::connect(server)?;
    upstream.write_all(head.as_bytes())?;
    upstream.write_all(&body)?;
    // A disconnect of the client is passed on to the server.
    let gone = (back.try_clone()?, upstream.try_clone()?);
    std::thread::spawn(move || {
        let _ = (&gone.0).read(&mut [0]);
        let _ = gone.1.shutdown(Shutdown::Both);
    });
    carry(&mut upstream, &mut back, &fault)?;
    back.shutdown(Shutdown::Both)
}

/// Forwards a response as far as its treatment allows.
fn carry(upstream: &mut TcpStream, back: &mut TcpStream, fault: &Fault) -> std::io::Result<()> {
    let (mut said, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let count = upstream.read(&mut piece)?;
        if count == 0 || matches!(fault, Fault::Swallow) {
            return Ok(());
        }
        said.extend_from_slice(&piece[..count]);
        let Fault::CutBehind(text) = fault else {
            back.write_all(&piece[..count])?;
            continue;
        };
        let end = said.windows(text.len()).position(|window| window == text.as_bytes());
        let end = end.map_or(said.len(), |place| place + text.len());
        back.write_all(&said[said.len() - count..][..end.saturating_sub(said.len() - count)])?;
        if end < said.len() || said.ends_with(text.as_bytes()) {
            return Ok(());
        }
    }
}
