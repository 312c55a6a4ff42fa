//! The address of a store: `postgres://user:password@host:port/database?sslmode=…`.
//!
//! | parameter | meaning |
//! |---|---|
//! | `sslmode` | `disable`, `prefer`, `require`, or `verify-full`, the only one that authenticates the server. The default is `verify-full`, or `prefer` for a host on the loopback address; `prefer` is rejected for other hosts |
//! | `sslrootcert` | a file of certificates (PEM) to trust with `verify-full`, instead of Mozilla's authorities |
//! | `schema` | the schema of the tables, by default `mainspring` |
//! | `host`, `user`, `password` | as in the part before the `?`; `host=/path` is the folder of a unix socket |
//!
//! If there are several hosts (`a:5432,b:5432`), the first one that accepts writes is used.

use std::{fmt, net::IpAddr, path::PathBuf};

use tokio_postgres::config::{Config, Host, SslMode, TargetSessionAttrs};
use url::form_urlencoded;

use crate::StoreError;

const PARAMETERS: &str = "host, password, schema, sslmode, sslrootcert, user";
const SCHEMA: &str = "mainspring";
/// The channel for notifications is named after it, and PostgreSQL truncates names to 63 bytes.
const SCHEMA_BYTES_MAX: usize = 48;

/// A parsed address. Formats without the password.
#[derive(Clone)]
pub(super) struct Address {
    pub(super) server: Config,
    pub(super) tls: Tls,
    pub(super) schema: String,
}

/// The security required of the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Tls {
    /// TLS without authentication of the server; `sslmode` decides whether it is required.
    Unverified,
    /// A certificate for the host name, signed by an authority of this file or of Mozilla's list.
    Verified(Option<PathBuf>),
}

impl Address {
    /// Returns the identity of the store: the same text for every spelling of its address and every user, and a
    /// different one for another schema, database or host.
    pub(super) fn identity(&self) -> String {
        let ports = self.server.get_ports();
        let mut hosts: Vec<String> = Vec::new();
        for (number, host) in self.server.get_hosts().iter().enumerate() {
            let port = ports.get(number).or(ports.first()).copied().unwrap_or(5432);
            hosts.push(match host {
                Host::Tcp(name) => format!("{}:{port}", name.to_ascii_lowercase()),
                Host::Unix(folder) => format!("{}:{port}", folder.display()),
            });
        }
        hosts.sort();
        let database = self.server.get_dbname().or(self.server.get_user()).unwrap_or_default();
        format!("postgres://{}/{database}?schema={}", hosts.join(","), self.schema)
    }

    /// Parses an address. Errors do not repeat it, since it may contain a password.
    pub(super) fn parse(text: &str) -> Result<Self, StoreError> {
        read(text).map_err(|why| {
            StoreError::Unavailable(format!(
                "the address of the database cannot be used: {why}. Give postgres://USER:PASSWORD@HOST:PORT/DATABASE, \
                 with special characters percent-encoded"
            ))
        })
    }
}

impl Address {
    /// Lists the Unix sockets of the address. Several hosts have a port each, or share one.
    pub(super) fn sockets(&self) -> Vec<PathBuf> {
        let ports = self.server.get_ports();
        let port = |number: usize| ports.get(number).or(ports.first()).copied().unwrap_or(5432);
        let hosts = self.server.get_hosts().iter().enumerate();
        let socket = |(number, host): (usize, &Host)| match host {
            Host::Unix(folder) => Some(folder.join(format!(".s.PGSQL.{}", port(number)))),
            Host::Tcp(_) => None,
        };
        hosts.filter_map(socket).collect()
    }
}

fn read(text: &str) -> Result<Address, String> {
    let (base, query) = text.split_once('?').unwrap_or((text, ""));
    if !base.starts_with("postgres://") && !base.starts_with("postgresql://") {
        return Err("it does not begin with postgres:// or postgresql://".into());
    }
    let mut server: Config =
        base.parse().map_err(|_| "the part before the first ? is not USER:PASSWORD@HOST:PORT/DATABASE".to_owned())?;
    let mut given = Given::default();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        given.take(&name, value.into_owned())?;
    }
    if let Some(host) = &given.host {
        server.host(host);
    }
    if let Some(user) = &given.user {
        server.user(user);
    }
    if let Some(password) = &given.password {
        server.password(password);
    }
    let hosts = server.get_hosts();
    if hosts.is_empty() {
        return Err("it names no host".into());
    }
    if hosts.len() > 1 {
        server.target_session_attrs(TargetSessionAttrs::ReadWrite);
    }
    let way = Way::of(server.get_hosts());
    let tls = given.tls(&mut server, way)?;
    Ok(Address { server, tls, schema: schema(given.schema)? })
}

/// The distance to the server; for several hosts, the largest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    /// On this machine, through a socket.
    Socket,
    /// On this machine, through its loopback address.
    Loopback,
    /// Over a network, where the traffic may be intercepted.
    Network,
}

impl Way {
    fn of(hosts: &[Host]) -> Self {
        let of_host = |host: &Host| match host {
            Host::Unix(_) => Self::Socket,
            Host::Tcp(name) => {
                let name = name.trim_start_matches('[').trim_end_matches(']');
                let is_loopback = name.parse::<IpAddr>().map_or(name == "localhost", |address| address.is_loopback());
                if is_loopback { Self::Loopback } else { Self::Network }
            }
        };
        hosts.iter().map(of_host).max().unwrap_or(Self::Network)
    }
}

/// The parameters as given, each at most once.
#[derive(Default)]
struct Given {
    host: Option<String>,
    password: Option<String>,
    schema: Option<String>,
    sslmode: Option<String>,
    sslrootcert: Option<String>,
    user: Option<String>,
}

impl Given {
    fn take(&mut self, name: &str, value: String) -> Result<(), String> {
        let place = match name {
            "host" => &mut self.host,
            "password" => &mut self.password,
            "schema" => &mut self.schema,
            "sslmode" => &mut self.sslmode,
            "sslrootcert" => &mut self.sslrootcert,
            "user" => &mut self.user,
            _ => return Err(format!("{name:?} is not a parameter; the parameters are {PARAMETERS}")),
        };
        match place.replace(value) {
            None => Ok(()),
            Some(_) => Err(format!("{name} is given twice")),
        }
    }

    fn tls(&self, server: &mut Config, way: Way) -> Result<Tls, String> {
        let is_local = way == Way::Socket;
        let word = self.sslmode.as_deref().unwrap_or(match way {
            Way::Socket => "disable",
            Way::Loopback => "prefer",
            Way::Network => "verify-full",
        });
        let mode = match word {
            "disable" => SslMode::Disable,
            "prefer" if way == Way::Network => {
                return Err("sslmode=prefer lets an attacker on the network path disable TLS: leave sslmode out \
                            for verify-full, or set sslmode=require or sslmode=disable if you trust the network"
                    .into());
            }
            "prefer" => SslMode::Prefer,
            "require" | "verify-full" if is_local => {
                return Err(format!("a unix socket has no TLS: leave sslmode={word} out"));
            }
            "require" | "verify-full" => SslMode::Require,
            _ => return Err(format!("{word:?} is not an sslmode; use disable, prefer, require or verify-full")),
        };
        server.ssl_mode(mode);
        match (word, &self.sslrootcert) {
            ("verify-full", file) => Ok(Tls::Verified(file.as_ref().map(PathBuf::from))),
            (_, None) => Ok(Tls::Unverified),
            _ => Err("sslrootcert is used with sslmode=verify-full only: set that, or leave it out".into()),
        }
    }
}

/// Parses the schema: a name that needs no quotes, so that none can be forgotten.
fn schema(given: Option<String>) -> Result<String, String> {
    let name = given.unwrap_or_else(|| SCHEMA.to_owned());
    let is_plain = |message: char| message.is_ascii_lowercase() || message.is_ascii_digit() || message == '_';
    let begins_well = name.starts_with(|message: char| message.is_ascii_lowercase() || message == '_');
    // PostgreSQL reserves names that start with pg_.
    if name.len() > SCHEMA_BYTES_MAX || !begins_well || !name.chars().all(is_plain) || name.starts_with("pg_") {
        return Err(format!(
            "{name:?} is not a name of a schema: use a-z, 0-9 and _, at most {SCHEMA_BYTES_MAX}, not pg_ in front"
        ));
    }
    Ok(name)
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ports = self.server.get_ports();
        out.write_str("postgres://")?;
        for (number, host) in self.server.get_hosts().iter().enumerate() {
            let separator = if number == 0 { "" } else { "," };
            let port = ports.get(number).or(ports.first()).copied().unwrap_or(5432);
            match host {
                Host::Tcp(name) => write!(out, "{separator}{name}:{port}")?,
                Host::Unix(folder) => write!(out, "{separator}{}:{port}", folder.display())?,
            }
        }
        let database = self.server.get_dbname().or(self.server.get_user()).unwrap_or_default();
        write!(out, "/{database}, schema {}", self.schema)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let table = [
            ("postgres://u:secret@db:5433/d", "postgres://db:5433/d, schema mainspring"),
            ("postgresql://u@db/d?schema=flows_2", "postgres://db:5432/d, schema flows_2"),
            ("postgres://u@a:1,b:2/d", "postgres://a:1,b:2/d, schema mainspring"),
            ("postgres:///d?host=/run/pg&user=u&password=secret", "postgres:///run/pg:5432/d, schema mainspring"),
            ("postgres://u@%2Frun%2Fpg:6/d", "postgres:///run/pg:6/d, schema mainspring"),
            ("postgres://u:secret%3F%40@[::1]:7/d?sslmode=disable", "postgres://[::1]:7/d, schema mainspring"),
        ];
        for (text, shown) in table {
            let address = Address::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(address.to_string().replace("[::1]", "::1"), shown.replace("[::1]", "::1"), "{text}");
            assert!(!format!("{address:?} {:?}", address.server).contains("secret"), "{text}");
        }
        let address = Address::parse("postgres://u:secret%3F%40@h/d").unwrap();
        assert_eq!(address.server.get_password(), Some(&b"secret?@"[..]));
    }

    #[test]
    fn a_store_has_one_unique_name() {
        let place = |text: &str| Address::parse(text).unwrap().identity();
        let one = place("postgres://u:secret@db/d");
        assert_eq!(one, "postgres://db:5432/d?schema=mainspring");
        for same in ["postgresql://v@DB:5432/d", "postgres://db/d?user=a@b&sslmode=require&schema=mainspring"] {
            assert_eq!(place(same), one, "{same}");
        }
        assert_eq!(place("postgres://u@b:2,a:1/d"), place("postgres://u@a:1,b:2/d"));
        assert_ne!(place("postgres:///d?host=/run/pg1&user=u"), place("postgres:///d?host=/run/pg2&user=u"));
        for other in ["postgres://u@db/d?schema=staging", "postgres://u@db:1/d", "postgres://u@db/e"] {
            assert_ne!(place(other), one, "{other}");
        }
    }

    #[test]
    fn sslmode_is_one_of_four() {
        let tls = |query: &str| {
            let address = Address::parse(&format!("postgres://u@h/d?{query}")).map_err(|error| error.to_string())?;
            Ok::<_, String>((address.server.get_ssl_mode(), address.tls))
        };
        assert_eq!(tls(""), Ok((SslMode::Require, Tls::Verified(None))));
        assert!(tls("sslmode=prefer").unwrap_err().contains("leave sslmode out"));
        let of =
            |place: &str| Address::parse(&format!("postgres://{place}")).map(|address| address.server.get_ssl_mode());
        for here in ["u@localhost/d", "u@127.0.0.1/d", "u@127.8.8.8:6/d", "u@[::1]/d", "u@localhost:1,127.0.0.1:2/d"] {
            assert_eq!(of(here), Ok(SslMode::Prefer), "{here}");
        }
        for away in ["u@127.0.0.1.example.com/d", "u@localhost,db/d", "u@10.0.0.1/d", "u@%2Frun,db/d"] {
            assert_eq!(of(away), Ok(SslMode::Require), "{away}");
            assert!(of(&format!("{away}?sslmode=prefer")).is_err(), "{away}");
        }
        assert_eq!(of("u@%2Frun/d"), Ok(SslMode::Disable));
        assert_eq!(tls("sslmode=disable"), Ok((SslMode::Disable, Tls::Unverified)));
        assert_eq!(tls("sslmode=require"), Ok((SslMode::Require, Tls::Unverified)));
        assert_eq!(tls("sslmode=verify-full"), Ok((SslMode::Require, Tls::Verified(None))));
        let file = Tls::Verified(Some("/a b.pem".into()));
        assert_eq!(tls("sslmode=verify-full&sslrootcert=/a%20b.pem"), Ok((SslMode::Require, file)));
        assert!(tls("sslmode=verify-ca").unwrap_err().contains("verify-full"));
        assert_eq!(tls("sslrootcert=/a.pem"), Ok((SslMode::Require, Tls::Verified(Some("/a.pem".into())))));
        assert!(tls("sslmode=require&sslrootcert=/a.pem").unwrap_err().contains("verify-full"));
        let local = Address::parse("postgres:///d?host=/run&sslmode=require").unwrap_err();
        assert!(local.to_string().contains("unix socket"), "{local}");
    }

    #[test]
    fn unusable_addresses_are_refused_and_not_echoed() {
        let table = [
            ("mysql://u:secret@h/d", "does not begin with"),
            ("u:secret@h/d", "does not begin with"),
            ("postgres://u:secret@h:port/d", "before the first ?"),
            ("postgres://u:secret@/d", "names no host"),
            ("postgres://u:secret@h/d?sslmod=require", "\"sslmod\" is not a parameter; the parameters are host"),
            ("postgres://u:secret@h/d?user=a&user=b", "user is given twice"),
            ("postgres://u:secret@h/d?schema=", "not a name of a schema"),
            ("postgres://u:secret@h/d?schema=pg_flows", "not a name of a schema"),
            ("postgres://u:secret@h/d?schema=a%3Bb", "not a name of a schema"),
            ("postgres://u:secret@h/d?schema=Flows", "not a name of a schema"),
            ("postgres://u:secret@h/d?schema=1a", "not a name of a schema"),
        ];
        for (text, why) in table {
            let error = Address::parse(text).err().unwrap_or_else(|| panic!("{text} is taken")).to_string();
            assert!(error.contains(why) && !error.contains("secret"), "{text}: {error}");
        }
    }
}
