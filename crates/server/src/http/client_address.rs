//! The network address of the client of a request, behind trusted proxies.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use axum::{extract::ConnectInfo, http::request::Parts};

use crate::http::rate_limit::Limiter;

/// Request extension: the client address, for routes that put it into the audit log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClientAddress(pub IpAddr);

/// The client address of a request.
pub(crate) fn client_address(limiter: &Limiter, parts: &Parts) -> IpAddr {
    let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>();
    let peer = peer.map_or(Ipv4Addr::UNSPECIFIED.into(), |ConnectInfo(peer)| peer.ip());
    let forwarded = parts.headers.get_all("x-forwarded-for");
    limiter.address(peer, forwarded.iter().filter_map(|line| line.to_str().ok()))
}
