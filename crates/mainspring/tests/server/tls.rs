//! A server behind TLS: the command line accepts its certificate only with the right authority.

use std::fs;

use super::{
    commands::{Caller, assert_refused},
    process::Server,
    secured::before,
    support::call,
};

#[test]
fn certificates_are_checked_against_trusted_authorities() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let (url, certificate) = before(&server.address);
    let caller = Caller::owner(&server);
    let file = caller.folder().join("authority.pem");
    fs::write(&file, certificate).unwrap();
    let there = |authorities: Option<&std::path::Path>| {
        let mut command = caller.command(&["workflows", "--server", &url]);
        command.envs(authorities.map(|file| ("SSL_CERT_FILE", file)));
        call(command, b"")
    };
    assert_refused(&there(None), 40, &["TLS: invalid peer certificate"]);
    let said = there(Some(&file));
    assert_eq!((said.exit, said.stdout.as_str()), (Some(0), "none\n"), "{said:?}");
    fs::write(&file, "nothing").unwrap();
    assert_refused(&there(Some(&file)), 10, &["SSL_CERT_FILE", "no certificate"]);
}
