//! Checks what other users can read: metrics on a network address, a token in a file.

use std::net::ToSocketAddrs;

use super::{Installation, check::Check};
use crate::{
    paths::FIRST_TOKEN,
    telemetry::{ADDRESS_VARIABLE, warning},
};

/// Checks the metrics address in the environment, and the first token. Absent ones give no check.
pub(super) fn check(installation: &Installation) -> Vec<Check> {
    let address = std::env::var(ADDRESS_VARIABLE).ok().filter(|address| !address.is_empty());
    let metrics = address.map(|address| metrics(&address));
    let file = installation.home.folder().join(FIRST_TOKEN);
    let token = file.exists().then(|| {
        let message = format!("the owner's first token is still in {}", file.display());
        let help = "store it with `mainspring login`, and remove the file";
        Check::warning("first token", message, help)
    });
    metrics.into_iter().chain(token).collect()
}

fn metrics(address: &str) -> Check {
    let message = format!("{ADDRESS_VARIABLE} shows them at http://{address}/metrics");
    let bound = match address.to_socket_addrs().map(|mut found| found.next()) {
        Ok(Some(bound)) => bound,
        Ok(None) | Err(_) => {
            let message = format!("{ADDRESS_VARIABLE}: {address} is not an address of this machine");
            return Check::broken("metrics", message, "give an address and a port, as 127.0.0.1:9464");
        }
    };
    match warning(bound) {
        Some(why) => {
            let help = "bind a loopback address, or restrict the port to your scraper with a firewall";
            let why = why.split(": ").next().unwrap_or(why);
            Check::warning("metrics", format!("{message}; {why}"), help)
        }
        None => Check::ok("metrics", format!("{message}, to this machine alone")),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::check::State, *};

    #[test]
    fn public_metrics_give_a_warning() {
        let table = [
            ("127.0.0.1:9464", State::Ok, "this machine alone"),
            ("[::1]:9464", State::Ok, "this machine alone"),
            ("0.0.0.0:9464", State::Warning, "without a credential"),
            ("[::]:9464", State::Warning, "without a credential"),
            ("192.0.2.1:9464", State::Warning, "without a credential"),
            ("nonsense", State::Broken, "not an address"),
        ];
        for (address, state, said) in table {
            let check = metrics(address);
            assert!(check.state == state && check.message.contains(said), "{check:?}");
        }
    }
}
