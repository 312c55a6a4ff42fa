//! Resolves a host to the addresses that may be connected to. The connection uses these addresses, so a second lookup
//! cannot return others (DNS rebinding).

use std::{
    io,
    net::{IpAddr, SocketAddr, ToSocketAddrs},
    sync::{Arc, LazyLock},
};

use tokio::sync::{Semaphore, oneshot};
use url::Host;

use crate::BoxFuture;

use super::{
    allowlist::{Permitted, without_root},
    error::RequestError,
    ip_filter::{METADATA_NAMES, METADATA_USE, special_use},
    limits::{ADDRESSES_MAX, LOOKUPS_AT_A_TIME},
    url::Target,
};

/// Resolves host names to addresses.
pub trait Resolver: Send + Sync {
    /// Returns the addresses of a host name in the order in which they are tried.
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// Uses the resolver of the system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        static LOOKUPS: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(LOOKUPS_AT_A_TIME)));
        let host = host.to_owned();
        let look = move || (host.as_str(), 0).to_socket_addrs().map(|found| found.map(|at| at.ip()).collect());
        Box::pin(on_a_thread(LOOKUPS.clone(), look))
    }
}

/// Runs blocking work on a separate thread once a permit is free. The thread keeps the permit until the work is done,
/// even if the caller was dropped.
async fn on_a_thread<T: Send + 'static>(
    permits: Arc<Semaphore>,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let permit = permits.acquire_owned().await.map_err(io::Error::other)?;
    let (sender, done) = oneshot::channel();
    let run = move || {
        let result = work();
        drop(permit);
        let _ = sender.send(result);
    };
    std::thread::Builder::new().name("lookup".into()).spawn(run)?;
    done.await.map_err(io::Error::other)?
}

/// Returns the addresses of a target that may be connected to, at least one. Others are skipped: a name with a private
/// and a public address is reached by the public one.
pub(super) async fn addresses(
    target: &Target,
    resolver: &dyn Resolver,
    allow: &Permitted,
) -> Result<Vec<SocketAddr>, RequestError> {
    let port = target.port();
    let (found, is_named) = match target.url().host() {
        Some(Host::Ipv4(address)) => (vec![IpAddr::V4(address)], false),
        Some(Host::Ipv6(address)) => (vec![IpAddr::V6(address)], false),
        Some(Host::Domain(name)) => {
            let is_named = allow.holds_name(name, port);
            if METADATA_NAMES.contains(&without_root(name)) && !is_named {
                return Err(refusal(target, METADATA_USE));
            }
            let found =
                resolver.resolve(name).await.map_err(|error| RequestError::NameUnknown(target.shown(), error))?;
            (found, is_named)
        }
        None => (Vec::new(), false),
    };
    let (mut permitted, mut refused) = (Vec::new(), None);
    for address in found {
        let address = SocketAddr::new(address, port);
        match special_use(address.ip()) {
            Some(special_use) if !is_named && !allow.holds_address(address) => refused = Some(special_use),
            _ => permitted.push(address),
        }
    }
    permitted.truncate(ADDRESSES_MAX);
    match (permitted.is_empty(), refused) {
        (false, _) => Ok(permitted),
        (true, Some(special_use)) => Err(refusal(target, special_use)),
        (true, None) => Err(RequestError::NameUnknown(target.shown(), io::Error::other("the name has none"))),
    }
}

fn refusal(target: &Target, special_use: &'static str) -> RequestError {
    let host = target.url().host().map(|host| host.to_string()).unwrap_or_default();
    let entry = format!("{}:{}", without_root(&host), target.port());
    RequestError::AddressRefused { url: target.shown(), special_use, entry }
}

#[cfg(test)]
mod tests {
    use super::{super::allowlist::Allowlist, *};

    /// Resolves every name to the same addresses.
    struct Known(Vec<IpAddr>);

    impl Resolver for Known {
        fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
            Box::pin(async { Ok(self.0.clone()) })
        }
    }

    /// Returns the permitted addresses of a URL whose host resolves to `known`, or the reason for a rejection.
    async fn permitted(url: &str, known: &[&str], allow: &str) -> Result<Vec<String>, String> {
        let known = Known(known.iter().map(|address| address.parse().unwrap()).collect());
        let found = addresses(&Target::parse(url).unwrap(), &known, allow.parse::<Allowlist>().unwrap().of(None)).await;
        match found {
            Ok(found) => Ok(found.iter().map(SocketAddr::to_string).collect()),
            Err(RequestError::AddressRefused { special_use, .. }) => Err(special_use.to_owned()),
            Err(other) => Err(format!("{other:?}")),
        }
    }

    #[tokio::test]
    async fn literal_addresses_are_checked_in_every_spelling() {
        for url in [
            "http://127.0.0.1/",
            "http://2130706433/",
            "http://017700000001/",
            "http://0x7f000001/",
            "http://127.1/",
            "http://0/",
            "http://127.0.0.1./",
            "http://[::1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[::127.0.0.1]/",
            "http://[64:ff9b::7f00:1]/",
            "http://[fe80::1]/",
            "http://169.254.169.254/latest/meta-data",
            "http://[fd00:ec2::254]/",
            "http://10.0.0.1:8080/",
        ] {
            assert!(permitted(url, &["8.8.8.8"], "").await.is_err(), "{url}");
        }
        assert_eq!(permitted("https://8.8.8.8/", &[], "").await, Ok(vec!["8.8.8.8:443".into()]));
        assert_eq!(permitted("http://[2606:4700::1111]:81/", &[], "").await, Ok(vec!["[2606:4700::1111]:81".into()]));
    }

    #[tokio::test]
    async fn private_addresses_of_a_name_are_dropped() {
        let mixed = ["10.0.0.1", "8.8.8.8", "::1", "2606:4700::1111"];
        let public = vec!["8.8.8.8:80".to_owned(), "[2606:4700::1111]:80".into()];
        assert_eq!(permitted("http://a.test/", &mixed, "").await, Ok(public));
        assert_eq!(permitted("http://a.test/", &["10.0.0.1"], "").await, Err("a private address".into()));
        assert!(permitted("http://a.test/", &[], "").await.unwrap_err().contains("NameUnknown"));
        assert_eq!(permitted("http://a.test/", &["8.8.8.8"; 50], "").await.unwrap().len(), ADDRESSES_MAX);
    }

    #[tokio::test]
    async fn only_listed_addresses_are_allowed() {
        let one = Ok(vec!["10.0.0.1:80".to_owned()]);
        assert_eq!(permitted("http://a.test/", &["10.0.0.1", "10.1.0.1"], "10.0.0.0/16").await, one);
        assert_eq!(permitted("http://10.0.0.1/", &[], "10.0.0.1:80").await, one);
        assert_eq!(permitted("http://A.test./", &["10.0.0.1"], "a.test:80").await, one);
        assert!(permitted("http://b.a.test/", &["10.0.0.1"], "a.test").await.is_err());
        assert!(permitted("http://a.test:81/", &["10.0.0.1"], "a.test:80,10.0.0.1:80").await.is_err());
    }

    #[tokio::test]
    async fn metadata_services_are_refused_by_name_too() {
        for name in METADATA_NAMES {
            let url = format!("http://{}./", name.to_uppercase());
            assert_eq!(permitted(&url, &["8.8.8.8"], "0.0.0.0/0").await, Err(METADATA_USE.to_owned()));
            assert!(permitted(&url, &["169.254.169.254"], name).await.is_ok());
        }
    }
}

#[cfg(test)]
mod lookups {
    use std::{sync::mpsc, time::Duration};

    use super::*;

    #[tokio::test]
    async fn unanswered_lookups_use_a_bounded_number_of_threads() {
        let permits = Arc::new(Semaphore::new(2));
        let (began, begun) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let ended = Arc::new(std::sync::Mutex::new(ended));
        let stuck = |number: u32| {
            let (began, ended) = (began.clone(), ended.clone());
            on_a_thread(permits.clone(), move || {
                began.send(number).unwrap();
                let _ = ended.lock().unwrap().recv();
                Ok(number)
            })
        };
        // The callers of two lookups were dropped, and the lookups keep their threads.
        for number in 0..2 {
            tokio::select! {
                biased;
                answer = stuck(number) => panic!("{answer:?}"),
                () = async { while permits.available_permits() > 1 - number as usize { tokio::task::yield_now().await } } => {}
            }
        }
        assert_eq!([begun.recv().unwrap(), begun.recv().unwrap()].iter().sum::<u32>(), 1);
        let third = tokio::spawn(stuck(2));
        tokio::task::yield_now().await;
        assert!(begun.try_recv().is_err(), "there is no third thread");
        drop(end);
        let answer = tokio::time::timeout(Duration::from_secs(60), third).await.expect("no thread came back");
        assert_eq!(answer.unwrap().unwrap(), 2);
    }
}
