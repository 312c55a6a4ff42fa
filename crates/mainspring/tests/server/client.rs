//! A caller of the server: one request, one connection, JSON both ways.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    time::Duration,
};

use mainspring_kernel::{
    json::{self, compact},
    value::Value,
};

/// Nothing here takes as long: a server that says nothing for this time is broken.
const PATIENCE: Duration = Duration::from_secs(90);

/// Whoever has a credential, or nobody.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    address: String,
    token: Option<String>,
}

/// What was answered.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    /// The status.
    pub(crate) status: u16,
    /// The headers, with names in small letters.
    pub(crate) headers: Vec<(String, String)>,
    /// The body.
    pub(crate) text: String,
}

impl Reply {
    /// The body as JSON; null if it is none.
    pub(crate) fn json(&self) -> Value {
        json::read(self.text.as_bytes()).map(|document| document.value).unwrap_or_default()
    }

    /// A text of the body by its key.
    pub(crate) fn text_at(&self, key: &str) -> String {
        let body = self.json();
        let text = body.get(key).and_then(Value::as_text);
        text.unwrap_or_else(|| panic!("no text `{key}` in {self:?}")).to_string()
    }

    /// A header by its name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The same, if the status is the one that is expected.
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{self:?}");
        self
    }
}

impl Client {
    /// Somebody with a token.
    pub(crate) fn new(address: &str, token: Option<&str>) -> Self {
        Self { address: address.into(), token: token.map(Into::into) }
    }

    /// What lets in, of somebody who has a token.
    pub(crate) fn token(&self) -> &str {
        self.token.as_deref().unwrap()
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        self.send("GET", path, &[], None)
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Reply {
        self.send("POST", path, &[], Some(&compact(body)))
    }

    pub(crate) fn put(&self, path: &str, body: &Value) -> Reply {
        self.send("PUT", path, &[], Some(&compact(body)))
    }

    /// Any request.
    pub(crate) fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: Option<&str>) -> Reply {
        let mut headers = headers.to_vec();
        headers.push(("connection", "close"));
        let mut reader = self.open(method, path, &headers, body);
        let (status, headers) = head(&mut reader);
        let is_chunked = headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked");
        let mut text = Vec::new();
        if is_chunked {
            while let Some(chunk) = chunk(&mut reader) {
                text.extend(chunk);
            }
        } else {
            reader.read_to_end(&mut text).unwrap();
        }
        Reply { status, headers, text: String::from_utf8(text).unwrap() }
    }

    /// Sends a request; what comes back is read by the caller.
    pub(crate) fn open(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&str>,
    ) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut text = format!("{method} {path} HTTP/1.1\r\nhost: {}\r\n", self.address);
        if let Some(token) = &self.token {
            text += &format!("authorization: Bearer {token}\r\n");
        }
        if let Some(body) = body {
            if !headers.iter().any(|(name, _)| *name == "content-type") {
                text += "content-type: application/json\r\n";
            }
            text += &format!("content-length: {}\r\n", body.len());
        }
        headers.iter().for_each(|(name, value)| text += &format!("{name}: {value}\r\n"));
        text += "\r\n";
        text += body.unwrap_or_default();
        stream.write_all(text.as_bytes()).unwrap();
        BufReader::new(stream)
    }
}

/// The status and the headers of an answer.
pub(crate) fn head(reader: &mut BufReader<TcpStream>) -> (u16, Vec<(String, String)>) {
    let first = line(reader);
    let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.unwrap_or_else(|| panic!("no answer: {first:?}"));
    let mut headers = Vec::new();
    loop {
        let line = line(reader);
        let Some((name, value)) = line.split_once(':') else { return (status, headers) };
        headers.push((name.to_ascii_lowercase(), value.trim().to_string()));
    }
}

/// The next piece of an answer that is sent in pieces; `None` behind the last, and where the server has gone.
pub(crate) fn chunk(reader: &mut BufReader<TcpStream>) -> Option<Vec<u8>> {
    let mut size = String::new();
    reader.read_line(&mut size).ok()?;
    let size = usize::from_str_radix(size.trim(), 16).ok()?;
    let mut bytes = vec![0; size];
    reader.read_exact(&mut bytes).ok()?;
    let mut end = String::new();
    reader.read_line(&mut end).ok()?;
    (size > 0).then_some(bytes)
}

fn line(reader: &mut BufReader<TcpStream>) -> String {
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    line.trim_end().to_string()
}
