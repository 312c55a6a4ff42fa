//! Version 2 of Git's protocol over HTTP (gitprotocol-v2(5), gitprotocol-http(5)): refs, and the pack of one commit.
//!
//! This process receives the pack as bytes and does not read it. Git reads it in a container without a network, so that
//! the credential and the network are here, and the parser of hostile data is there.

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;

use super::{
    error::GitError,
    limits::LIST_BYTES_MAX,
    location::Location,
    packet::{Packet, Packets, command, line},
    refs::{Listed, Resolved, as_commit, candidates, choose, listed},
};
use crate::{
    http::{StreamClient, StreamRequest, StreamResponse},
    secrets::SecretValue,
};

/// The name of this client. Some servers answer Git only.
const AGENT: &str = concat!("git/2.47 (mainspring/", env!("CARGO_PKG_VERSION"), ")");

/// The user of a credential that names none. Servers that accept tokens ignore it.
pub(super) const USER_DEFAULT: &str = "x-access-token";

/// A remote repository for one use.
pub(super) struct Remote<'a> {
    pub(super) client: &'a StreamClient,
    pub(super) location: &'a Location,
    pub(super) organization: Option<&'a str>,
    /// User and password or token.
    pub(super) credential: Option<(&'a str, &'a SecretValue)>,
}

/// The capabilities of a remote that matter here.
#[derive(Debug, Default, PartialEq, Eq)]
struct Capabilities {
    has_refs: bool,
    is_shallow: bool,
    names_format: bool,
}

/// A pack that is being received.
pub(super) struct Pack {
    response: StreamResponse,
    packets: Packets,
    is_over: bool,
}

impl Remote<'_> {
    /// Finds the commit of a ref. A complete commit id is taken as it is, once the remote has answered; its objects are
    /// asked for later.
    pub(super) async fn resolve(&self, name: &str) -> Result<Resolved, GitError> {
        let capabilities = self.capabilities().await?;
        if let Some(commit) = as_commit(name) {
            return Ok(Resolved { reference: commit.clone(), commit });
        }
        choose(name, &self.list(&capabilities, name).await?)
    }

    /// Begins to receive the pack of a commit without its history.
    pub(super) async fn fetch(&self, commit: &str) -> Result<Pack, GitError> {
        let capabilities = self.capabilities().await?;
        if !capabilities.is_shallow {
            return Err(GitError::protocol("it offers no single commits (`fetch=shallow`)"));
        }
        let arguments = ["no-progress", "ofs-delta", "deepen 1", &format!("want {commit}"), "done"];
        let response = self.post(&capabilities, "fetch", &arguments.map(String::from)).await?;
        let mut pack = Pack { response, packets: Packets::default(), is_over: false };
        pack.begin(commit).await?;
        Ok(pack)
    }

    fn authorization(&self) -> Option<String> {
        let (user, value) = self.credential?;
        Some(format!("Basic {}", BASE64_STANDARD.encode(format!("{user}:{}", value.expose()))))
    }

    async fn send(
        &self,
        path: &str,
        more: &[(&'static str, &str)],
        body: Option<&[u8]>,
    ) -> Result<StreamResponse, GitError> {
        let url = format!("{}{path}", self.location.url());
        let authorization = self.authorization();
        let mut headers = vec![("user-agent", AGENT), ("git-protocol", "version=2")];
        headers.extend_from_slice(more);
        headers.extend(authorization.as_deref().map(|value| ("authorization", value)));
        let request = StreamRequest { url: &url, organization: self.organization, headers: &headers, body };
        let response = self.client.send(request).await?;
        let shown = self.location.url();
        match response.status {
            200 => Ok(response),
            300..=399 => {
                let to = GitError::quoting(response.location.clone().unwrap_or_default().as_bytes());
                Err(GitError::Refused(format!("{shown} redirects to {to}: write the final URL")))
            }
            401 | 403 if self.credential.is_some() => {
                Err(GitError::NotFound(format!("{shown} does not accept the credential (HTTP {})", response.status)))
            }
            status @ (401 | 403 | 404 | 410) => {
                let help = "correct the URL, or give a `credential` that may read it";
                Err(GitError::NotFound(format!("{shown} does not show a repository (HTTP {status}): {help}")))
            }
            status => Err(GitError::Unavailable(format!("{shown} answers with HTTP {status}: try again"))),
        }
    }

    async fn post(
        &self,
        capabilities: &Capabilities,
        name: &str,
        arguments: &[String],
    ) -> Result<StreamResponse, GitError> {
        let mut options = vec![format!("command={name}"), format!("agent={}", AGENT.replace(' ', "-"))];
        options.extend(capabilities.names_format.then(|| "object-format=sha1".into()));
        let headers = [
            ("content-type", "application/x-git-upload-pack-request"),
            ("accept", "application/x-git-upload-pack-result"),
        ];
        let body = command(&options, arguments);
        let response = self.send("/git-upload-pack", &headers, Some(&body)).await?;
        if response.content_type.as_deref() != Some("application/x-git-upload-pack-result") {
            return Err(GitError::protocol("its answer has another type"));
        }
        Ok(response)
    }

    async fn capabilities(&self) -> Result<Capabilities, GitError> {
        let response = self.send("/info/refs?service=git-upload-pack", &[("accept", "*/*")], None).await?;
        if response.content_type.as_deref() != Some("application/x-git-upload-pack-advertisement") {
            return Err(GitError::protocol("it offers files only (\"dumb\" HTTP)"));
        }
        let mut capabilities = Capabilities::default();
        let mut is_version_2 = false;
        for packet in all(response).await? {
            let Packet::Data(data) = packet else { continue };
            let text = line(&data).unwrap_or_default();
            let (key, value) = text.split_once('=').unwrap_or((text, ""));
            match key {
                "version 2" => is_version_2 = true,
                "ls-refs" => capabilities.has_refs = true,
                "fetch" => capabilities.is_shallow = value.split(' ').any(|feature| feature == "shallow"),
                "object-format" if value != "sha1" => {
                    return Err(GitError::Refused(
                        "its commits have other ids than SHA-1, which are not supported".into(),
                    ));
                }
                "object-format" => capabilities.names_format = true,
                _ => {}
            }
        }
        if !is_version_2 || !capabilities.has_refs {
            return Err(GitError::protocol("it offers an older version"));
        }
        Ok(capabilities)
    }

    async fn list(&self, capabilities: &Capabilities, name: &str) -> Result<Vec<Listed>, GitError> {
        let prefixes = candidates(name).into_iter().map(|full| format!("ref-prefix {full}"));
        let arguments: Vec<String> = ["peel".to_owned(), "symrefs".to_owned()].into_iter().chain(prefixes).collect();
        let response = self.post(capabilities, "ls-refs", &arguments).await?;
        let mut list = Vec::new();
        for packet in all(response).await? {
            if let Packet::Data(data) = packet {
                refuse_error(&data)?;
                // A name that is not UTF-8 is none that was asked for.
                list.extend(line(&data).and_then(listed));
            }
        }
        Ok(list)
    }
}

/// Reads a whole response of bounded size.
async fn all(mut response: StreamResponse) -> Result<Vec<Packet>, GitError> {
    let (mut packets, mut found, mut bytes) = (Packets::default(), Vec::new(), 0);
    while let Some(part) = response.next().await? {
        bytes += part.len();
        if bytes > LIST_BYTES_MAX {
            let why =
                format!("its list of refs has more than {} MiB: write the full name of the ref", LIST_BYTES_MAX >> 20);
            return Err(GitError::Refused(why));
        }
        packets.add(&part);
        while let Some(packet) = packets.next()? {
            found.push(packet);
        }
    }
    if packets.is_empty() {
        Ok(found)
    } else {
        Err(GitError::Unavailable("the remote ended its answer too early".into()))
    }
}

/// An error that a remote reports in place of its answer.
fn refuse_error(data: &[u8]) -> Result<(), GitError> {
    match data.strip_prefix(b"ERR ") {
        Some(said) => Err(reported(said)),
        None => Ok(()),
    }
}

fn reported(said: &[u8]) -> GitError {
    GitError::NotFound(format!("the remote refuses: {}", GitError::quoting(said)))
}

impl Pack {
    async fn packet(&mut self) -> Result<Packet, GitError> {
        loop {
            if let Some(packet) = self.packets.next()? {
                return Ok(packet);
            }
            match self.response.next().await? {
                Some(bytes) => self.packets.add(&bytes),
                None => return Err(GitError::Unavailable("the remote ended the pack too early: try again".into())),
            }
        }
    }

    /// Skips the sections before the pack.
    async fn begin(&mut self, commit: &str) -> Result<(), GitError> {
        loop {
            match self.packet().await? {
                Packet::Data(data) => {
                    refuse_error(&data)?;
                    if line(&data) == Some("packfile") {
                        return Ok(());
                    }
                }
                Packet::Delimiter => {}
                Packet::Flush | Packet::ResponseEnd => {
                    return Err(GitError::NotFound(format!("the remote has no pack of the commit {commit}")));
                }
            }
        }
    }

    /// Returns the next bytes of the pack; `None` at its end.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, GitError> {
        while !self.is_over {
            match self.packet().await? {
                Packet::Data(mut data) if !data.is_empty() => {
                    let band = data.split_to(1)[0];
                    match band {
                        1 => return Ok(Some(data)),
                        2 => {}
                        _ => return Err(reported(&data)),
                    }
                }
                Packet::Data(_) => return Err(GitError::protocol("a packet of the pack is empty")),
                Packet::Flush | Packet::ResponseEnd | Packet::Delimiter => self.is_over = true,
            }
        }
        Ok(None)
    }
}
