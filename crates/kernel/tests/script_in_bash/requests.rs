//! Checks the requests of `curl`: accepted scripts run with the real program against a server in this process.
//!
//! A run with a hostile value sends at most one request, with the headers of a run with a harmless value. A value in
//! the data of a request arrives byte for byte.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    process::{Command, Stdio},
    sync::{Arc, Mutex},
    thread,
};

use mainspring_kernel::script::{Surroundings, VARIABLE_PREFIX, prepare};

use super::{Folder, is_known};

const HARMLESS: &str = "QZQ";

const VALUES: [&str; 14] = [
    "@/etc/passwd",
    "<f",
    "a b",
    "x\r\nX-Evil: 1\r\n\r\nGET /evil HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    "\nX-Evil: 1",
    "{a,b}",
    "[1-3]",
    "-oPWNED",
    "?x#y",
    "/../..//evil.example",
    "@evil.example/",
    ":1@evil.example:1/",
    "$(touch PWNED)",
    "%output{PWNED}%0d%0aX-Evil: 1",
];

/// Commands with their expected body. `SERVER` is the server and `{}` the value; the body is `None` if the value is
/// part of the URL.
const COMMANDS: [(&str, Option<&str>); 23] = [
    ("curl -gsS http://SERVER/base/{}", None),
    ("curl -gsS \"http://$NONE/SERVER/base/{}\"", None),
    ("curl -gsS \"http://SERVER/base?q={}&r=1\"", None),
    ("curl -gsSL -o out.txt http://SERVER/base/{}", None),
    ("curl -sS -G --data-urlencode q={} http://SERVER/base/", None),
    ("x={}; curl --globoff -s -S \"http://SERVER/base/$x\" -w '%{http_code}'", None),
    ("curl -sS http://SERVER/base/{}", None),
    ("curl -gsS http://SERVER{}", None),
    ("curl -gsS http://SERVER:{}/", None),
    ("curl -gsS {}", None),
    ("curl -gsS -H 'X-A: {}' http://SERVER/base/", None),
    ("curl -sS -d a={} http://SERVER/base/", Some("a={}")),
    ("curl -sS -X POST --data \"a={}&b=1\" http://SERVER/base/", Some("a={}&b=1")),
    ("curl -sS --data-raw {} http://SERVER/base/", Some("{}")),
    ("curl -sS --data-binary x{} http://SERVER/base/", Some("x{}")),
    ("curl -sS --data-ascii \"{}\" http://SERVER/base/", Some("{}")),
    ("curl -sS -d {} http://SERVER/base/", Some("{}")),
    ("curl -sS --json \"[{}]\" http://SERVER/base/", Some("[{}]")),
    ("x=a={}; curl -sS -d \"n=$x\" -o out.txt http://SERVER/base/", Some("n=a={}")),
    ("printf '%s' {} | curl -sS --data-binary @@- http://SERVER/base/", Some("{}")),
    ("printf '%s' {} | curl -sS -H @@- -d @@- http://SERVER/base/", Some("{}")),
    ("curl -sSo out.txt --data-raw \"$(printf %s. {})\" --url http://SERVER/base/", Some("{}.")),
    ("curl -sS -d \"@@{}\" http://SERVER/base/", Some("@{}")),
];

/// A request: its request line, its headers except `Content-Length`, and its body.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Request {
    line: String,
    headers: Vec<String>,
    body: String,
}

/// A server that gives the same response to every request and stores the requests.
struct Server {
    host: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        let host = listener.local_addr().expect("it is bound").to_string();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&requests);
        // The thread ends with the process.
        thread::spawn(move || listener.incoming().flatten().for_each(|stream| answer(stream, &kept)));
        Self { host, requests }
    }

    fn take(&self) -> Vec<Request> {
        core::mem::take(&mut *self.requests.lock().expect("no test panics with it"))
    }
}

/// Reads requests until the stream ends. Each request is stored before the response is sent.
fn answer(stream: TcpStream, kept: &Mutex<Vec<Request>>) {
    let Ok(mut writer) = stream.try_clone() else { return };
    let mut reader = BufReader::new(stream);
    loop {
        let mut lines = Vec::new();
        let mut line = Vec::new();
        while reader.read_until(b'\n', &mut line).is_ok_and(|length| length > 2) {
            lines.push(String::from_utf8_lossy(&line).trim_end().to_owned());
            line.clear();
        }
        if lines.is_empty() {
            return;
        }
        let length = lines.iter().find_map(|line| line.strip_prefix("Content-Length: ")?.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        let _ = reader.read_exact(&mut body);
        let line = lines.remove(0);
        lines.retain(|line| !line.starts_with("Content-Length: "));
        let request = Request { line, headers: lines, body: String::from_utf8_lossy(&body).into_owned() };
        kept.lock().expect("no test panics with it").push(request);
        let _ = writer.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
    }
}

fn run(folder: &Folder, text: &str, value: &str) {
    let mut bash = Command::new("bash");
    bash.args(["--norc", "--noprofile", "-c", text]).current_dir(&folder.0).stdin(Stdio::null());
    bash.stdout(Stdio::null()).stderr(Stdio::null()).env("HOME", &folder.0).env("no_proxy", "*");
    for number in 0..2 {
        bash.env(format!("{VARIABLE_PREFIX}{number}"), value);
    }
    bash.status().expect("bash is there");
}

#[test]
fn a_value_is_data_of_one_request() {
    let is_there = Command::new("curl").arg("--version").stdout(Stdio::null()).status().is_ok();
    let (server, folder) = (Server::new(), Folder::new("requests"));
    let mut accepted = 0;
    for (command, body) in COMMANDS {
        let command = command.replace("SERVER", &server.host).replace("{}", "@vars.a");
        let Ok(script) = prepare(&command, Surroundings::default(), is_known) else { continue };
        accepted += 1;
        if !is_there {
            continue;
        }
        run(&folder, &script.text, HARMLESS);
        let harmless = server.take();
        for value in VALUES {
            run(&folder, &script.text, value);
            let requests = server.take();
            assert!(requests.len() <= 1, "{command} with {value:?} sends {requests:?}");
            assert!(!folder.0.join("PWNED").exists(), "{command} with {value:?} made a file");
            let Some(request) = requests.first() else { continue };
            assert_eq!(request.headers, harmless[0].headers, "{command} with {value:?}");
            assert!(!format!("{request:?}").contains("root:"), "{command} with {value:?} sends a file");
            if let Some(body) = body {
                assert_eq!(request.line, harmless[0].line, "{command} with {value:?}");
                assert_eq!(request.body, body.replace("{}", value), "{command}");
            } else {
                assert_eq!(request.body, "", "{command} with {value:?}");
            }
        }
        if body.is_some() {
            assert_eq!(harmless.len(), 1, "{command}");
        }
    }
    assert!(accepted >= 10, "{accepted} accepted");
}
