//! Checks a server: the named one, or the one that uses the data folder. It must be reachable, ready, and of this
//! release.

use std::{
    net::{IpAddr, SocketAddr},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use hyper::{HeaderMap, StatusCode, header::DATE};
use mainspring_engine::clock::now_ms;
use mainspring_kernel::{
    json,
    value::{Map, Value},
};
use tokio::time::timeout;

use super::{
    Installation,
    check::{Check, Report},
};
use crate::{
    client::{
        Client, ClientError,
        address::Address,
        credentials::{Credential, Credentials},
        target::token_of_environment,
    },
    context::block_on,
    store_location::StoreLocation,
};

/// Timeout of a response.
const ANSWER: Duration = Duration::from_secs(5);

/// Tolerated clock difference. The `Date` header has whole seconds.
const CLOCK_APART_MS: u64 = 5_000;

/// A placeholder: the requested routes need no token.
const NO_TOKEN: &str = "none";

const NAMES: [&str; 5] = ["server", "server ready", "server clock", "server transport", "server token"];

/// A server to check.
struct Named {
    address: Address,
    /// True if the user named it. A token of the environment is sent to such a server only.
    is_meant: bool,
}

/// Checks the server.
pub(super) fn check(installation: &Installation, report: &mut Report) {
    let skipped = |why: &str| NAMES.map(|name| Check::skipped(name, why));
    let named = match installation.global.server_beside() {
        Ok(Some(address)) => Some(Named { address, is_meant: true }),
        Ok(None) => usual(installation),
        Err(error) => {
            report.add(Check::broken("server", error.failure.message, "correct --server or MAINSPRING_SERVER"));
            report.extend(NAMES[1..].iter().map(|name| Check::skipped(name, "see server")).collect::<Vec<_>>());
            return;
        }
    };
    let Some(named) = named else {
        return report.extend(skipped("no --server is set, and no process runs here"));
    };
    let said = ask(&named.address, "/healthz");
    let (headers, health) = match said {
        Ok((StatusCode::OK, headers, health)) if health.get("release").is_some() => (headers, health),
        Err(_) if !named.is_meant => {
            return report.extend(skipped(&format!("no response at {}; set --server", named.address)));
        }
        Ok(_) if !named.is_meant => {
            return report.extend(skipped(&format!("another program responds at {}", named.address)));
        }
        said => {
            let message = said.map_or_else(|why| why, |_| format!("the server at {} is not Mainspring", named.address));
            report.add(Check::broken("server", message, "`mainspring up` starts one; check its address and its log"));
            report.extend(NAMES[1..].iter().map(|name| Check::skipped(name, "see server")).collect::<Vec<_>>());
            return;
        }
    };
    report.add(release(&named.address, health.get("release").and_then(Value::as_text).unwrap_or_default()));
    report.add(ready(ask(&named.address, "/readyz")));
    report.add(clock(&headers, now_ms()));
    report.add(way(&named.address));
    report.add(token(installation, &named));
}

/// The server of the settings, if an engine runs on this store.
fn usual(installation: &Installation) -> Option<Named> {
    let settings = installation.settings.as_ref()?;
    let is_possible = installation.holder.is_some() || matches!(installation.location, StoreLocation::Shared(_));
    let mut listen: SocketAddr = settings.listen;
    if !is_possible || listen.port() == 0 {
        return None;
    }
    if listen.ip().is_unspecified() {
        listen.set_ip(if listen.is_ipv6() {
            IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1])
        } else {
            IpAddr::from([127, 0, 0, 1])
        });
    }
    let address = Address::parse(&format!("http://{listen}")).ok()?;
    Some(Named { address, is_meant: false })
}

/// Sends a request without a token.
fn ask(address: &Address, route: &str) -> Result<(StatusCode, HeaderMap, Value), String> {
    // Plain HTTP is allowed, since no token is sent.
    let client = Client::new(address.clone(), NO_TOKEN, true).map_err(|error| error.failure.message)?;
    let asked = block_on(async {
        let late = || ClientError::unreachable(address, "it takes too long");
        let (status, headers, body) = timeout(ANSWER, client.get_once(route)).await.map_err(|_| late())??;
        Ok((status, headers, json::value(&body).unwrap_or_else(|_| Map::new().into())))
    });
    asked.map_err(|error| error.failure.message)
}

fn release(address: &Address, release: &str) -> Check {
    let build = env!("CARGO_PKG_VERSION");
    let check = if release == build {
        Check::ok("server", format!("{address} is up, and of this release ({release})"))
    } else {
        let message = format!("{address} is up, and of the release {release}, where this program is {build}");
        Check::warning("server", message, "continue the upgrade, or use the program of that release")
    };
    check.with("release", release)
}

fn ready(said: Result<(StatusCode, HeaderMap, Value), String>) -> Check {
    let help = "see its log, or run `mainspring doctor` on its machine";
    match said {
        Ok((StatusCode::OK, ..)) => Check::ok("server ready", "it accepts work"),
        Ok((status, _, body)) => {
            let why =
                body.get("error").and_then(Value::as_text).map_or_else(|| status.to_string(), ToString::to_string);
            Check::broken("server ready", format!("it accepts no work: {why}"), help)
        }
        Err(why) => Check::broken("server ready", why, help),
    }
}

fn clock(headers: &HeaderMap, now: u64) -> Check {
    let date =
        headers.get(DATE).and_then(|date| date.to_str().ok()).and_then(|date| httpdate::parse_http_date(date).ok());
    let Some(there) = date.and_then(|date: SystemTime| date.duration_since(UNIX_EPOCH).ok()) else {
        return Check::skipped("server clock", "its answers have no date");
    };
    let there = u64::try_from(there.as_millis()).unwrap_or(u64::MAX);
    let apart = there.abs_diff(now);
    if apart > CLOCK_APART_MS {
        let message = format!("its clock and that of this machine are {} s apart", apart / 1_000);
        return Check::warning("server clock", message, "set the clocks, and synchronize them with NTP");
    }
    Check::ok("server clock", "its clock is that of this machine, to some seconds")
}

fn way(address: &Address) -> Check {
    match (address.is_plain(), address.is_loopback()) {
        (false, _) => Check::ok("server transport", "TLS, with a certificate of an authority that is trusted here"),
        (true, true) => Check::ok("server transport", "on this machine"),
        (true, false) => {
            let message = "plain HTTP to another machine: everyone on the network path can read and use tokens";
            Check::warning("server transport", message, "put a proxy with TLS before it, and use https")
        }
    }
}

/// Checks that the server accepts the stored token.
fn token(installation: &Installation, named: &Named) -> Check {
    let stored = Credentials::load().ok().and_then(|stored| stored.of(&named.address).cloned());
    let of_environment = || token_of_environment().map(|token| Credential { token, plain_http: false });
    let Some(credential) = named.is_meant.then(of_environment).flatten().or(stored) else {
        let why = format!("none is stored; `mainspring login {}` stores one", named.address);
        return Check::skipped("server token", why);
    };
    let plain_http = installation.global.plain_http || credential.plain_http;
    let me = Client::new(named.address.clone(), &credential.token, plain_http).and_then(|client| {
        block_on(async {
            let late = || ClientError::unreachable(&named.address, "it takes too long");
            Ok(timeout(ANSWER, client.get("/api/me")).await.map_err(|_| late())??)
        })
    });
    match me {
        Ok(me) => {
            let text = |key: &str| me.get(key).and_then(Value::as_text).unwrap_or("?");
            let (user, role, organization) = (text("userId"), text("role"), text("organizationId"));
            Check::ok("server token", format!("the token is valid for {user} ({role}) of {organization}"))
        }
        Err(error) => {
            let help =
                format!("`mainspring login {}` stores another; MAINSPRING_TOKEN takes precedence", named.address);
            Check::broken("server token", error.failure.message, help)
        }
    }
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::{super::check::State, *};

    #[test]
    fn responses_of_the_server_give_states() {
        let at = |text: &str| Address::parse(text).unwrap();
        let date = |text: &'static str| HeaderMap::from_iter([(DATE, HeaderValue::from_static(text))]);
        let body = |text: &str| Value::map([("error", Value::from(text))]);
        const NOW: u64 = 1_800_000_000_000;
        let here = env!("CARGO_PKG_VERSION");
        let table = [
            (release(&at("http://127.0.0.1:1"), here), State::Ok, "this release"),
            (release(&at("http://127.0.0.1:1"), "9.9.9"), State::Warning, "9.9.9"),
            (ready(Ok((StatusCode::OK, HeaderMap::new(), Value::Null))), State::Ok, "accepts work"),
            (
                ready(Ok((StatusCode::SERVICE_UNAVAILABLE, HeaderMap::new(), body("stopping")))),
                State::Broken,
                "stopping",
            ),
            (ready(Ok((StatusCode::BAD_GATEWAY, HeaderMap::new(), Value::Null))), State::Broken, "502"),
            (ready(Err("gone".into())), State::Broken, "gone"),
            (clock(&date("Fri, 15 Jan 2027 08:00:05 GMT"), NOW), State::Ok, "to some seconds"),
            (clock(&date("Fri, 15 Jan 2027 08:00:06 GMT"), NOW), State::Warning, "6 s apart"),
            (clock(&date("Fri, 15 Jan 2027 07:59:54 GMT"), NOW), State::Warning, "6 s apart"),
            (clock(&date("yesterday"), NOW), State::Skipped, "no date"),
            (way(&at("https://flows.example.com")), State::Ok, "TLS"),
            (way(&at("http://localhost:1")), State::Ok, "this machine"),
            (way(&at("http://flows.example.com")), State::Warning, "plain HTTP"),
        ];
        for (check, state, said) in table {
            assert!(check.state == state && check.message.contains(said), "{check:?}");
        }
    }
}
