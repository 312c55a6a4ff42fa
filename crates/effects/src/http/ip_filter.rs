//! Addresses that are not on the public internet, as a table.
//!
//! It follows the registries of special-purpose addresses (RFC 6890; IANA, iana-ipv4-special-registry and
//! iana-ipv6-special-registry). In IPv6 only the global unicast range is public, except for addresses that embed an
//! IPv4 address: they would reach addresses that the table for IPv4 rejects.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};

/// Returns a description of the special use of an address, or `None` if it is public.
pub(super) fn special_use(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => SPECIAL_V4.iter().find(|(range, _)| range.contains(&address)).map(|(_, use_)| *use_),
        IpAddr::V6(address) => match SPECIAL_V6.iter().find(|(range, _)| range.contains(&address)) {
            Some((_, use_)) => Some(use_),
            None if GLOBAL_UNICAST_V6.contains(&address) => None,
            None => Some("a reserved address"),
        },
    }
}

/// Host names under which clouds offer the credentials of the machine. They almost always resolve to link-local
/// addresses, and are rejected by name for the other cases.
pub(super) const METADATA_NAMES: [&str; 5] =
    ["metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal"];

/// The special use of the addresses of metadata services, in any range.
pub(super) const METADATA_USE: &str = "a cloud's metadata service";

const GLOBAL_UNICAST_V6: Ipv6Net = v6(0x2000, 0, 0, 3);

/// The first range that contains an address determines its use.
const SPECIAL_V4: [(Ipv4Net, &str); 20] = [
    (v4(169, 254, 169, 254, 32), METADATA_USE),
    (v4(168, 63, 129, 16, 32), METADATA_USE),
    (v4(100, 100, 100, 200, 32), METADATA_USE),
    (v4(192, 0, 0, 192, 32), METADATA_USE),
    (v4(0, 0, 0, 0, 8), "an unspecified address"),
    (v4(10, 0, 0, 0, 8), "a private address"),
    (v4(100, 64, 0, 0, 10), "a shared address behind a carrier's NAT"),
    (v4(127, 0, 0, 0, 8), "a loopback address"),
    (v4(169, 254, 0, 0, 16), "a link-local address"),
    (v4(172, 16, 0, 0, 12), "a private address"),
    (v4(192, 0, 0, 0, 24), "an address of protocols"),
    (v4(192, 0, 2, 0, 24), "a documentation address"),
    (v4(192, 88, 99, 0, 24), "a relay of 6to4"),
    (v4(192, 168, 0, 0, 16), "a private address"),
    (v4(198, 18, 0, 0, 15), "a benchmarking address"),
    (v4(198, 51, 100, 0, 24), "a documentation address"),
    (v4(203, 0, 113, 0, 24), "a documentation address"),
    (v4(224, 0, 0, 0, 4), "a multicast address"),
    (v4(255, 255, 255, 255, 32), "the broadcast address"),
    (v4(240, 0, 0, 0, 4), "a reserved address"),
];

const SPECIAL_V6: [(Ipv6Net, &str); 16] = [
    (address_v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254], 128), METADATA_USE),
    (address_v6([0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254], 128), METADATA_USE),
    (address_v6([0, 0, 0, 0, 0, 0, 0, 0], 128), "an unspecified address"),
    (address_v6([0, 0, 0, 0, 0, 0, 0, 1], 128), "a loopback address"),
    (address_v6([0, 0, 0, 0, 0, 0xffff, 0, 0], 96), "an IPv4 address inside of an IPv6 one"),
    (v6(0x64, 0xff9b, 0, 96), "an IPv4 address behind NAT64"),
    (v6(0x64, 0xff9b, 1, 48), "an IPv4 address behind NAT64"),
    (v6(0x100, 0, 0, 64), "an address that discards"),
    (v6(0x2001, 0, 0, 32), "an IPv4 address behind Teredo"),
    (v6(0x2001, 0, 0, 23), "an address of protocols"),
    (v6(0x2001, 0xdb8, 0, 32), "a documentation address"),
    (v6(0x2002, 0, 0, 16), "an IPv4 address behind 6to4"),
    (v6(0x3fff, 0, 0, 20), "a documentation address"),
    (v6(0xfc00, 0, 0, 7), "a private address"),
    (v6(0xfe80, 0, 0, 10), "a link-local address"),
    (v6(0xff00, 0, 0, 8), "a multicast address"),
];

const fn v4(a: u8, b: u8, c: u8, d: u8, length: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), length)
}

/// Makes a range from its first three groups.
const fn v6(a: u16, b: u16, c: u16, length: u8) -> Ipv6Net {
    address_v6([a, b, c, 0, 0, 0, 0, 0], length)
}

const fn address_v6([a, b, c, d, e, f, g, h]: [u16; 8], length: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, d, e, f, g, h), length)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(address: &str, expected: Option<&str>) {
        let special = special_use(address.parse().unwrap());
        match expected {
            Some(part) => assert!(special.is_some_and(|use_| use_.contains(part)), "{address}: {special:?}"),
            None => assert_eq!(special, None, "{address}"),
        }
    }

    /// Both ends of every range, and the neighbors outside of them.
    #[test]
    fn ranges_of_ipv4_have_exact_ends() {
        for (inside, use_, outside) in [
            (["0.0.0.0", "0.255.255.255"], "unspecified", ["1.0.0.0", "1.1.1.1"]),
            (["10.0.0.0", "10.255.255.255"], "private", ["9.255.255.255", "11.0.0.0"]),
            (["100.64.0.0", "100.127.255.255"], "carrier", ["100.63.255.255", "100.128.0.0"]),
            (["127.0.0.0", "127.255.255.255"], "loopback", ["126.255.255.255", "128.0.0.0"]),
            (["169.254.0.0", "169.254.255.255"], "link-local", ["169.253.255.255", "169.255.0.0"]),
            (["172.16.0.0", "172.31.255.255"], "private", ["172.15.255.255", "172.32.0.0"]),
            (["192.0.0.0", "192.0.0.255"], "protocols", ["191.255.255.255", "192.0.1.0"]),
            (["192.0.2.0", "192.0.2.255"], "documentation", ["192.0.1.255", "192.0.3.0"]),
            (["192.88.99.0", "192.88.99.255"], "6to4", ["192.88.98.255", "192.88.100.0"]),
            (["192.168.0.0", "192.168.255.255"], "private", ["192.167.255.255", "192.169.0.0"]),
            (["198.18.0.0", "198.19.255.255"], "benchmarking", ["198.17.255.255", "198.20.0.0"]),
            (["198.51.100.0", "198.51.100.255"], "documentation", ["198.51.99.255", "198.51.101.0"]),
            (["203.0.113.0", "203.0.113.255"], "documentation", ["203.0.112.255", "203.0.114.0"]),
            (["224.0.0.0", "239.255.255.255"], "multicast", ["223.255.255.255", "8.8.8.8"]),
            (["240.0.0.0", "255.255.255.254"], "reserved", ["223.255.255.255", "8.8.8.8"]),
        ] {
            inside.iter().for_each(|address| check(address, Some(use_)));
            outside.iter().for_each(|address| check(address, None));
        }
        check("255.255.255.255", Some("broadcast"));
    }

    #[test]
    fn ranges_of_ipv6_have_exact_ends() {
        for (inside, use_) in [
            (["::", "::"], "unspecified"),
            (["::1", "::1"], "loopback"),
            (["::2", "::127.0.0.1"], "reserved"),
            (["::ffff:0.0.0.0", "::ffff:8.8.8.8"], "inside of an IPv6"),
            (["::ffff:0:7f00:1", "4000::"], "reserved"),
            (["64:ff9b::", "64:ff9b::ffff:ffff"], "NAT64"),
            (["64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff"], "NAT64"),
            (["100::", "100::ffff:ffff:ffff:ffff"], "discards"),
            (["2001::", "2001:0:ffff:ffff:ffff:ffff:ffff:ffff"], "Teredo"),
            (["2001:1::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff"], "protocols"),
            (["2001:2::", "2001:20::"], "protocols"),
            (["2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"], "documentation"),
            (["2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff"], "6to4"),
            (["3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff"], "documentation"),
            (["fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"], "private"),
            (["fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff"], "link-local"),
            (["fec0::", "5f00::"], "reserved"),
            (["ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"], "multicast"),
        ] {
            inside.iter().for_each(|address| check(address, Some(use_)));
        }
        for public in ["2000::", "2001:200::", "2001:4860:4860::8888", "2003::", "2606:4700::1111", "3ffe:ffff::"] {
            check(public, None);
        }
    }

    #[test]
    fn metadata_services_are_named_in_the_error() {
        for address in ["169.254.169.254", "168.63.129.16", "100.100.100.200", "192.0.0.192", "fd00:ec2::254"] {
            check(address, Some("metadata"));
        }
    }

    proptest! {
        /// An IPv4 address stays rejected in every form in which IPv6 embeds it.
        #[test]
        fn embedded_ipv4_addresses_are_not_public(address: u32) {
            let [high, low] = [(address >> 16) as u16, address as u16];
            for disguise in [
                Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, high, low),
                Ipv6Addr::new(0, 0, 0, 0, 0, 0, high, low),
                Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, high, low),
                Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low),
                Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, high, low),
                Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1),
                Ipv6Addr::new(0x2001, 0, high, low, 0, 0, !high, !low),
            ] {
                prop_assert!(special_use(IpAddr::V6(disguise)).is_some(), "{disguise}");
            }
        }

        /// The predicates of the standard library check most of the table independently.
        #[test]
        fn the_standard_library_agrees(address: u32) {
            let address = Ipv4Addr::from(address);
            let is_special = address.is_private() || address.is_loopback() || address.is_link_local()
                || address.is_broadcast() || address.is_documentation() || address.is_multicast()
                || address.is_unspecified();
            prop_assert!(!is_special || special_use(IpAddr::V4(address)).is_some(), "{address}");
        }
    }
}
