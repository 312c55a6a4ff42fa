//! A Git remote on loopback: repositories in a folder, served by `git http-backend` behind a small HTTP server.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Arc, Mutex},
    thread,
};

use tempfile::TempDir;

/// A remote, which serves until the test process ends.
pub(crate) struct Remote {
    folder: TempDir,
    port: u16,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    /// Value of `Authorization` that requests must have; empty for none.
    wanted: Mutex<String>,
    /// Lines and bodies of the requests.
    requests: Mutex<Vec<String>>,
    /// Packs that replace those of repositories, by path.
    packs: Mutex<BTreeMap<String, Vec<u8>>>,
}

/// A repository of a remote with a working tree.
pub(crate) struct Fixture {
    folder: PathBuf,
}

impl Remote {
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(State::default());
        let (root, shared) = (folder.path().to_owned(), state.clone());
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (root, state) = (root.clone(), shared.clone());
                thread::spawn(move || serve(stream, &root, &state));
            }
        });
        Self { folder, port, state }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn url(&self, name: &str) -> String {
        format!("http://127.0.0.1:{}/acme/{name}.git", self.port)
    }

    /// Makes the remote answer only requests with these credentials.
    pub(crate) fn require(&self, authorization: &str) {
        *self.state.wanted.lock().unwrap() = authorization.into();
    }

    /// Makes the remote answer with this pack, whichever commit of a repository is asked for.
    pub(crate) fn answer(&self, name: &str, pack: Vec<u8>) {
        self.state.packs.lock().unwrap().insert(format!("/acme/{name}.git/git-upload-pack"), pack);
    }

    /// The number of packs that were asked for.
    pub(crate) fn fetches(&self) -> usize {
        self.state.requests.lock().unwrap().iter().filter(|request| request.contains("command=fetch")).count()
    }

    /// The requests so far whose text contains a word.
    pub(crate) fn requests_with(&self, word: &str) -> usize {
        self.state.requests.lock().unwrap().iter().filter(|request| request.contains(word)).count()
    }

    /// Makes a repository with one file.
    pub(crate) fn repository(&self, name: &str) -> Fixture {
        let folder = self.folder.path().join("acme").join(format!("{name}.git"));
        fs::create_dir_all(&folder).unwrap();
        let fixture = Fixture { folder };
        fixture.git(&["init", "--quiet", "--initial-branch=main", "."]);
        fixture.git(&["config", "uploadpack.allowFilter", "false"]);
        fixture.commit("file", "one\n");
        fixture
    }
}

impl Fixture {
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        self.git_with(arguments, b"")
    }

    /// Runs Git with an input, and returns its output.
    pub(crate) fn git_with(&self, arguments: &[&str], input: &[u8]) -> String {
        let mut command = Command::new("git");
        command.current_dir(&self.folder).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        command.args(["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "core.hooksPath=/dev/null"]);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Commits a file, and returns the commit.
    pub(crate) fn commit(&self, file: &str, content: &str) -> String {
        let path = self.path(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self.commit_all()
    }

    pub(crate) fn commit_all(&self) -> String {
        self.git(&["add", "--all", "."]);
        self.git(&["commit", "--quiet", "--allow-empty", "--message", "m"]);
        self.head()
    }

    pub(crate) fn head(&self) -> String {
        self.git(&["rev-parse", "HEAD"])
    }

    /// Makes a commit of a tree in the form of `git mktree` the main branch. Git accepts names here that it never writes.
    pub(crate) fn commit_tree(&self, lines: &str) -> String {
        let tree = self.git_with(&["mktree"], lines.as_bytes());
        let commit = self.git(&["commit-tree", "-m", "m", &tree]);
        self.git(&["update-ref", "refs/heads/main", &commit]);
        commit
    }

    /// Stores a file, and returns its id.
    pub(crate) fn blob(&self, content: &str) -> String {
        self.git_with(&["hash-object", "-w", "--stdin"], content.as_bytes())
    }
}

/// Serves one request.
fn serve(mut stream: TcpStream, root: &Path, state: &State) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 || line == "\r\n" {
            break;
        }
        lines.push(line.trim_end().to_owned());
    }
    let Some(first) = lines.first().cloned() else { return };
    let header = |name: &str| {
        let found = lines[1..].iter().filter_map(|line| line.split_once(": "));
        found.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.to_owned()).next()
    };
    let mut body = vec![0; header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0)];
    reader.read_exact(&mut body).unwrap();
    state.requests.lock().unwrap().push(format!("{first}\n{}", String::from_utf8_lossy(&body)));
    let wanted = state.wanted.lock().unwrap().clone();
    if !wanted.is_empty() && header("authorization").unwrap_or_default() != wanted {
        // A hostile remote repeats what it was sent.
        let text = format!("you sent {}", header("authorization").unwrap_or_default());
        let _ = write!(stream, "HTTP/1.1 401 Unauthorized\r\nContent-Length: {}\r\n\r\n{text}", text.len());
        return;
    }
    let mut parts = first.split(' ');
    let (method, target) = (parts.next().unwrap(), parts.next().unwrap());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let pack = state.packs.lock().unwrap().get(path).cloned();
    if let Some(pack) = pack.filter(|_| String::from_utf8_lossy(&body).contains("command=fetch")) {
        return send_pack(&mut stream, &pack);
    }
    let mut command = Command::new("git");
    command.arg("http-backend").env("GIT_PROJECT_ROOT", root).env("GIT_HTTP_EXPORT_ALL", "1");
    command.env("REQUEST_METHOD", method).env("PATH_INFO", path).env("QUERY_STRING", query);
    command.env("CONTENT_TYPE", header("content-type").unwrap_or_default());
    command.env("GIT_PROTOCOL", header("git-protocol").unwrap_or_default()).env("REMOTE_ADDR", "127.0.0.1");
    command.env("GIT_CONFIG_COUNT", "1").env("GIT_CONFIG_KEY_0", "safe.directory").env("GIT_CONFIG_VALUE_0", "*");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    thread::spawn(move || input.write_all(&body));
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let (mut status, mut head) = ("200 OK".to_owned(), String::new());
    loop {
        let mut line = String::new();
        if output.read_line(&mut line).unwrap() == 0 || line == "\r\n" {
            break;
        }
        match line.strip_prefix("Status: ") {
            Some(text) => status = text.trim_end().to_owned(),
            None => head += &line,
        }
    }
    let sent = write!(stream, "HTTP/1.1 {status}\r\nConnection: close\r\n{head}\r\n");
    // The client may have closed the connection.
    let _ = sent.and_then(|()| std::io::copy(&mut output, &mut stream).map(drop));
    let _ = child.kill();
    let _ = child.wait();
}

/// Answers with a pack, in packets of the first band.
fn send_pack(stream: &mut TcpStream, pack: &[u8]) {
    let mut body = b"000dpackfile\n".to_vec();
    for part in pack.chunks(60_000) {
        write!(body, "{:04x}\x01", part.len() + 5).unwrap();
        body.extend(part);
    }
    body.extend(b"0000");
    let head = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/x-git-upload-pack-result";
    // The client may have closed the connection.
    let _ = write!(stream, "{head}\r\nContent-Length: {}\r\n\r\n", body.len()).and_then(|()| stream.write_all(&body));
}
