//! An HTTP client of the server: one connection per request, JSON bodies.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::TcpStream,
    time::Duration,
};

use mainspring_kernel::{
    json::{self, compact},
    value::Value,
};

/// Timeout of a response, longer than any request of the tests takes.
const PATIENCE: Duration = Duration::from_secs(90);

/// A client with a credential, or without one.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    address: String,
    token: Option<String>,
    cookie: Option<String>,
}

/// A response.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// The headers, with names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) text: String,
}

impl Reply {
    /// The body as JSON; null if it is not JSON.
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

    /// Checks the status, and returns the response.
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{self:?}");
        self
    }
}

impl Client {
    /// A client with a token, or without one.
    pub(crate) fn new(address: &str, token: Option<&str>) -> Self {
        Self { address: address.into(), token: token.map(Into::into), cookie: None }
    }

    /// The same user in a signed-in browser, on the server's own pages.
    pub(crate) fn signed_in(&self) -> Self {
        let body = Value::map([("token", Value::from(self.token.as_deref().unwrap()))]);
        let reply = Self::new(&self.address, None).post("/api/session", &body).expect(201);
        let cookie = reply.header("set-cookie").unwrap().split(';').next().unwrap().to_string();
        Self { address: self.address.clone(), token: None, cookie: Some(cookie) }
    }

    /// Another credential at the same server.
    pub(crate) fn with_token(&self, token: &str) -> Self {
        Self::new(&self.address, Some(token))
    }

    /// The same credential at another address of the server.
    pub(crate) fn moved_to(&self, address: &str) -> Self {
        Self { address: address.into(), ..self.clone() }
    }

    /// The session cookie.
    pub(crate) fn cookie(&self) -> &str {
        self.cookie.as_deref().unwrap()
    }

    /// The same credential at another server.
    pub(crate) fn at(&self, address: &str) -> Self {
        Self { address: address.into(), ..self.clone() }
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

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

    /// Sends a request.
    pub(crate) fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: Option<&str>) -> Reply {
        self.try_send(method, path, headers, body).unwrap()
    }

    /// Like [`Client::send`], for a server that may have exited.
    pub(crate) fn try_send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&str>,
    ) -> io::Result<Reply> {
        let mut headers = headers.to_vec();
        headers.push(("connection", "close"));
        let mut reader = self.try_open(method, path, &headers, body)?;
        let (status, headers) = try_head(&mut reader)?;
        let is_chunked = headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked");
        let mut text = Vec::new();
        if is_chunked {
            while let Some(chunk) = chunk(&mut reader) {
                text.extend(chunk);
            }
        } else {
            let length = headers.iter().find(|(name, _)| name == "content-length").and_then(|(_, n)| n.parse().ok());
            reader.read_to_end(&mut text)?;
            if length.is_some_and(|length: usize| length != text.len()) {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(Reply { status, headers, text: String::from_utf8(text).unwrap() })
    }

    /// Sends a request, and leaves the response to the caller.
    pub(crate) fn open(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&str>,
    ) -> BufReader<TcpStream> {
        self.try_open(method, path, headers, body).unwrap()
    }

    fn try_open(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&str>,
    ) -> io::Result<BufReader<TcpStream>> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut text = format!("{method} {path} HTTP/1.1\r\nhost: {}\r\n", self.address);
        if let Some(token) = &self.token {
            text += &format!("authorization: Bearer {token}\r\n");
        }
        if let Some(cookie) = &self.cookie {
            text += &format!("cookie: {cookie}\r\norigin: http://{}\r\n", self.address);
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
        stream.write_all(text.as_bytes())?;
        Ok(BufReader::new(stream))
    }
}

/// The status and the headers of a response.
pub(crate) fn head(reader: &mut BufReader<TcpStream>) -> (u16, Vec<(String, String)>) {
    try_head(reader).unwrap()
}

fn try_head(reader: &mut BufReader<TcpStream>) -> io::Result<(u16, Vec<(String, String)>)> {
    let first = line(reader)?;
    let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| io::Error::other(format!("no answer: {first:?}")))?;
    let mut headers = Vec::new();
    loop {
        let line = line(reader)?;
        let Some((name, value)) = line.split_once(':') else { return Ok((status, headers)) };
        headers.push((name.to_ascii_lowercase(), value.trim().to_string()));
    }
}

/// The next chunk of a chunked response; `None` after the last one, or if the server has exited.
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

fn line(reader: &mut BufReader<TcpStream>) -> io::Result<String> {
    let mut line = String::new();
    match reader.read_line(&mut line)? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(line.trim_end().to_string()),
    }
}
