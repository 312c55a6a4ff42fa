//! The address filter for other clients of HTTP, such as that of tool servers, which connect by themselves.

use std::{net::SocketAddr, sync::Arc};

use mainspring_kernel::failure::{Class, Failure};
use tokio_rustls::rustls::ClientConfig;

use super::{
    allowlist::Allowlist,
    resolve::{Resolver, addresses},
    tls_roots::TlsRoots,
    url::Target,
};

/// Returns the addresses of a URL's host that an organization may connect to, at least one; `None` stands for an
/// execution of the command line. A client must connect to these addresses and look up no others.
pub async fn permitted_addresses(
    url: &str,
    organization: Option<&str>,
    allow: &Allowlist,
    resolver: &dyn Resolver,
) -> Result<Vec<SocketAddr>, Failure> {
    let target = Target::parse(url)
        .map_err(|why| Failure::new(Class::Invalid, "http_parameter_invalid", format!("the URL {why}")))?;
    let found = addresses(&target, resolver, allow.of(organization)).await;
    found.map_err(|refusal| refusal.of_organization(organization).into())
}

impl TlsRoots {
    /// Returns the TLS configuration of a client that trusts these authorities.
    pub fn to_client_config(&self) -> Arc<ClientConfig> {
        self.clone().into_config()
    }
}

#[cfg(test)]
mod tests {
    use super::{super::resolve::SystemResolver, *};

    #[tokio::test]
    async fn only_permitted_addresses_are_returned() {
        let check = async |url: &str, allow: &str, expected: Result<&str, &str>| {
            let allow: Allowlist = allow.parse().unwrap();
            let found = permitted_addresses(url, None, &allow, &SystemResolver).await;
            match (found, expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, [expected.parse().unwrap()], "{url}"),
                (Err(failure), Err(code)) => assert_eq!(failure.code, code, "{url}"),
                (found, _) => panic!("{url}: {found:?}"),
            }
        };
        check("http://127.0.0.1:80/mcp", "", Err("http_address_refused")).await;
        check("http://127.0.0.1:80/mcp", "127.0.0.1:80", Ok("127.0.0.1:80")).await;
        check("http://1.1.1.1/mcp", "", Ok("1.1.1.1:80")).await;
        check("http://user:secret@1.1.1.1/", "", Err("http_parameter_invalid")).await;
        check("ftp://1.1.1.1/", "", Err("http_parameter_invalid")).await;
    }
}
