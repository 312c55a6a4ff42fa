//! Only the public internet is reachable without an exception, under every name and over every redirect.

use super::{
    server::{Server, redirect, response},
    *,
};

#[track_caller]
fn assert_refused(outcome: Outcome, what: &str) {
    let failure = assert_failed(outcome, "http_address_refused", Class::Policy);
    assert!(failure.message.contains(what), "{}", failure.message);
}

#[tokio::test]
async fn loopback_is_refused_by_every_name() {
    let server = Server::with(response(200, &[], "")).await;
    for host in [
        "127.0.0.1",
        "localhost",
        "LocalHost",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "127.1",
        "0",
        "0.0.0.0",
        "127.0.0.1.",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[64:ff9b::7f00:1]",
    ] {
        let url = format!("http://{host}:{}/", server.port);
        assert_failed(perform(&http_to(""), &attempt(&url, [])).await, "http_address_refused", Class::Policy);
    }
    assert_eq!(server.unread_requests(), 0);
}

#[tokio::test]
async fn metadata_services_are_refused() {
    for host in
        ["169.254.169.254", "2852039166", "[fd00:ec2::254]", "[::ffff:169.254.169.254]", "metadata.google.internal"]
    {
        let url = format!("http://{host}/latest/meta-data/");
        assert_failed(perform(&http_to(""), &attempt(&url, [])).await, "http_address_refused", Class::Policy);
    }
}

#[tokio::test]
async fn allowed_addresses_are_reached_and_adjacent_ones_are_not() {
    let (server, neighbor) = (Server::with(response(200, &[], "")).await, Server::with(response(200, &[], "")).await);
    let allow = format!("127.0.0.1:{}", server.port);
    done(perform(&http_to(&allow), &attempt(&server.url("/"), [])).await);
    assert_refused(perform(&http_to(&allow), &attempt(&neighbor.url("/"), [])).await, "loopback");
    let by_name = |port: u16| attempt(&format!("http://localhost:{port}/"), []);
    done(perform(&http_to(&allow), &by_name(server.port)).await);
    done(perform(&http_to(&format!("localhost:{}", server.port)), &by_name(server.port)).await);
    assert_refused(perform(&http_to("localhost:1"), &by_name(server.port)).await, "loopback");
    assert_refused(perform(&http_to("localhost"), &attempt(&server.url("/"), [])).await, "loopback");
    assert_eq!((server.unread_requests(), neighbor.unread_requests()), (3, 0));
}

#[tokio::test]
async fn redirects_are_checked_like_first_addresses() {
    let hidden = Server::with(response(200, &[], "secret")).await;
    for location in [
        hidden.url("/"),
        format!("http://localhost:{}/", hidden.port),
        format!("http://[::ffff:127.0.0.1]:{}/", hidden.port),
        "http://169.254.169.254/latest/meta-data/".into(),
        "//169.254.169.254/".into(),
        "http://2852039166/".into(),
        "http://metadata.google.internal/".into(),
        "http://10.0.0.1/".into(),
        "http://[::1]/".into(),
    ] {
        let server = Server::with(redirect(302, &location)).await;
        let http = http_to(&format!("127.0.0.1:{}", server.port));
        let outcome = perform(&http, &attempt(&server.url("/"), [])).await;
        assert_failed(outcome, "http_address_refused", Class::Policy);
    }
    assert_eq!(hidden.unread_requests(), 0);
}

/// An organization's exceptions apply to that organization only, in every way to reach an address.
#[tokio::test]
async fn an_allowlist_entry_is_for_one_organization() {
    let hidden = Server::with(response(200, &[], "secret")).await;
    let own = Server::with(redirect(302, &hidden.url("/"))).await;
    let allow =
        format!("127.0.0.1:{hidden}, localhost:{hidden}, acme=127.0.0.1:{own}", hidden = hidden.port, own = own.port);
    let by_name = format!("http://localhost:{}/", hidden.port);
    let of = |organization: Option<&str>, url: &str| Attempt {
        organization: organization.map(Into::into),
        ..attempt(url, [])
    };
    for organization in ["acme", "globex"] {
        for url in [&hidden.url("/"), &by_name] {
            assert_refused(
                perform(&http_to(&allow), &of(Some(organization), url)).await,
                &format!("MAINSPRING_HTTP_ALLOW={organization}="),
            );
        }
    }
    assert_eq!(hidden.unread_requests(), 0);
    let entry = format!("MAINSPRING_HTTP_ALLOW=acme=127.0.0.1:{}", hidden.port);
    assert_refused(perform(&http_to(&allow), &of(Some("acme"), &own.url("/"))).await, &entry);
    assert_eq!(
        (own.unread_requests(), hidden.unread_requests()),
        (1, 0),
        "the redirect is followed, and refused where it leads"
    );
    for organization in [None, Some("default")] {
        done(perform(&http_to(&allow), &of(organization, &hidden.url("/"))).await);
        done(perform(&http_to(&allow), &of(organization, &by_name)).await);
        let entry = format!("MAINSPRING_HTTP_ALLOW=127.0.0.1:{}", own.port);
        assert_refused(perform(&http_to(&allow), &of(organization, &own.url("/"))).await, &entry);
    }
    assert_eq!((own.unread_requests(), hidden.unread_requests()), (1, 4));
}

/// A name whose address changes between the check and the connection (DNS rebinding).
#[tokio::test]
async fn connections_use_the_checked_address_of_a_name() {
    let first = Server::with(response(200, &[], "first")).await;
    let second = Server::start_at(("127.0.0.2", first.port), |_| response(200, &[], "second").into()).await;
    let resolver = Scripted::new(&[&["127.0.0.1"], &["127.0.0.2"]]);
    let allow = "127.0.0.1".parse().unwrap();
    let http = Http::new(HttpOptions { allow, resolver, ..HttpOptions::default() });
    let attempt = attempt(&format!("http://rebinding.test:{}/", first.port), []);
    assert_eq!(at(&done(perform(&http, &attempt).await), "body"), &Value::from("first"));
    // The next attempt resolves and checks again.
    assert_refused(perform(&http, &attempt).await, "loopback");
    assert_eq!((first.unread_requests(), second.unread_requests()), (1, 0));
}

/// The same with a redirect of a host to itself.
#[tokio::test]
async fn every_redirect_resolves_and_checks_again() {
    let server = Server::with(redirect(302, "/again")).await;
    let resolver = Scripted::new(&[&["127.0.0.1"], &["10.0.0.1"]]);
    let allow = "127.0.0.1".parse().unwrap();
    let http = Http::new(HttpOptions { allow, resolver, ..HttpOptions::default() });
    let url = format!("http://rebinding.test:{}/", server.port);
    assert_refused(perform(&http, &attempt(&url, [])).await, "a private address");
    assert_eq!(server.unread_requests(), 1);
}

#[tokio::test]
async fn refused_addresses_of_a_name_are_skipped() {
    let mut server = Server::with(response(200, &[], "")).await;
    let resolver = Scripted::new(&[&["10.0.0.1", "127.0.0.1", "::1"]]);
    let allow = "127.0.0.1".parse().unwrap();
    let http = Http::new(HttpOptions { allow, resolver, ..HttpOptions::default() });
    let url = format!("http://mixed.test:{}/", server.port);
    done(perform(&http, &attempt(&url, [])).await);
    assert_eq!(server.next_request().await.header("host"), Some(format!("mixed.test:{}", server.port).as_str()));
}

/// An address that refuses connections does not hide the next one.
#[tokio::test]
async fn addresses_are_tried_in_turn() {
    let server = Server::with(response(200, &[], "")).await;
    let resolver = Scripted::new(&[&["127.0.0.9", "127.0.0.8", "127.0.0.1"]]);
    let allow = "127.0.0.0/8".parse().unwrap();
    let http = Http::new(HttpOptions { allow, resolver, ..HttpOptions::default() });
    done(perform(&http, &attempt(&format!("http://several.test:{}/", server.port), [])).await);
}
