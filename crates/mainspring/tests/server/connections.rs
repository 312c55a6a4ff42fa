//! More connections than a server accepts.

use std::io::BufRead;

use super::{
    client::Client,
    process::{Organization, Server},
};

/// The open file limit of a server with 64 connections.
const FILES: u64 = 384;

/// Opens requests without ever sending their bodies. Returns those that got a connection; the others were rejected.
fn hold(client: &Client, count: usize) -> Vec<std::io::BufReader<std::net::TcpStream>> {
    let headers = [("expect", "100-continue"), ("content-length", "9000"), ("content-type", "application/json")];
    let mut held = Vec::new();
    for _ in 0..count {
        let mut stream = client.open("POST", "/api/definitions/validate", &headers, None);
        let mut status = String::new();
        stream.read_line(&mut status).unwrap();
        if status.starts_with("HTTP/1.1 100") {
            held.push(stream);
        } else {
            assert!(status.starts_with("HTTP/1.1 503"), "{status}");
        }
    }
    held
}

#[test]
fn one_organization_cannot_use_all_connections() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_with_files(folder.path(), FILES);
    let [good, bad] = ["ordinary", "hostile"].map(|id| Organization::new(&server, id));
    let [one, two] = ["vic", "val"].map(|id| bad.member(id, "viewer"));
    let first = hold(&one, 40);
    assert_eq!(first.len(), 16, "a quarter for a token");
    let second = hold(&two, 40);
    assert_eq!(first.len() + second.len(), 24, "half of those beside the reserve for an organization");
    good.owner.get("/api/me").expect(200);
    server.owner().get("/api/me").expect(200);
    server.nobody().get("/readyz").expect(200);
    // The owner of the same organization ends them.
    bad.owner.get("/api/me").expect(503);
    bad.owner.send("DELETE", "/api/members/vic", &[], None).expect(204);
    drop(first);
    let is_accepted = (0..1_000).any(|_| !hold(&bad.owner, 1).is_empty());
    assert!(is_accepted, "connections that end are given to others");
}
