//! Checks a shared store: the PostgreSQL server, the role and the schema.

use mainspring_engine::limits::CLOCK_APART_MS_MAX;
use mainspring_store::{
    Inspection, StoreError,
    postgres::{InspectedServer, PostgresInspection, PostgresStore},
};

use super::{
    Opened,
    check::{Check, Report},
    refused, sqlite,
};

/// The oldest tested major version of PostgreSQL.
const MAJOR_TRIED: u64 = 15;

/// Leases use the database's clock, and frames that of their node. A larger difference makes their times
/// contradictory.
const CLOCK_APART_MS: u64 = 1_000;

/// A commit takes two round trips. At this value in microseconds a step without work takes a tenth of a second.
const ROUND_SLOW_US: u64 = 20_000;

/// The checks that need a connection.
const BEHIND: [&str; 6] =
    ["database permissions", "database disk", "database clock", "database connection", "connections", "format"];

/// Checks the server, the role and the schema.
pub(super) fn check(address: &str, report: &mut Report) -> Option<Opened> {
    let inspection = match PostgresStore::inspect(address) {
        Ok(inspection) => inspection,
        Err(error @ StoreError::Newer { .. }) => {
            report.add(Check::ok("store", "the database is reached"));
            let behind = BEHIND.iter().filter(|name| **name != "format");
            report.extend(behind.map(|name| Check::skipped(name, "see format")).collect::<Vec<_>>());
            report.add(refused("format", &error));
            return None;
        }
        Err(error) => {
            report.add(refused("store", &error));
            report.extend(BEHIND.map(|name| Check::skipped(name, "the database cannot be used")));
            return None;
        }
    };
    let server = inspection.server();
    report.add(version(server, address));
    report.add(rights(&inspection));
    report.add(disk(server));
    report.add(clock(server));
    report.add(way(server));
    report.add(connections(server));
    let before = "copy the schema with pg_dump before a node starts: older builds do not read it then";
    report.add(sqlite::format(inspection.format(), before));
    Some(Box::new(inspection))
}

fn version(server: &InspectedServer, address: &str) -> Check {
    let shown = PostgresStore::shown_address(address).unwrap_or_default();
    let message = format!("{shown} is PostgreSQL {}", server.version);
    let check = if server.reads_only {
        let message = format!("{message}, which is read-only: a standby, or configured so");
        Check::broken(
            "store",
            message,
            "use the address of the primary; of several hosts the first writable one is used",
        )
    } else if server.major < MAJOR_TRIED {
        let message = format!("{message}, older than any that this was tried with");
        Check::warning("store", message, format!("bring it to {MAJOR_TRIED} or later"))
    } else {
        Check::ok("store", message)
    };
    check.with("version", server.version.as_str())
}

fn rights(inspection: &PostgresInspection) -> Check {
    let (server, locked) = (inspection.server(), inspection.locked_tables());
    if !locked.is_empty() {
        let message = format!("the role may not read and write {}", locked.join(", "));
        return Check::broken(
            "database permissions",
            message,
            "grant the role USAGE on the schema, and all on its tables",
        );
    }
    if inspection.format().found == 0 && !server.may_create {
        let message = "it is empty, and the role cannot create a schema";
        return Check::broken(
            "database permissions",
            message,
            "grant the role CREATE on the database, or create a schema for it",
        );
    }
    Check::ok("database permissions", "the role has the required permissions; each session sets its isolation level")
}

fn disk(server: &InspectedServer) -> Check {
    if !server.fsync {
        let message = "fsync is off: acknowledged commits may not survive a crash of the server";
        return Check::broken("database disk", message, "set fsync = on, and restart the server");
    }
    if !server.full_page_writes {
        let message = "full_page_writes is off: a page that is torn in a power cut cannot be repaired";
        return Check::warning(
            "database disk",
            message,
            "set full_page_writes = on, unless the filesystem never tears a page",
        );
    }
    Check::ok("database disk", "fsync is on; each session of ours waits for its commits")
}

fn clock(server: &InspectedServer) -> Check {
    let ahead = server.clock_ahead_ms;
    let side = if ahead < 0 { "behind" } else { "ahead of" };
    let message = format!("its clock is {} ms {side} that of this machine", ahead.unsigned_abs());
    let check = if ahead.unsigned_abs() > CLOCK_APART_MS_MAX {
        let message = format!("{message}: a node on this machine owns no partitions until its clock is corrected");
        Check::broken("database clock", message, "set the clocks, and synchronize them with NTP")
    } else if ahead.unsigned_abs() > CLOCK_APART_MS {
        Check::warning("database clock", message, "set the clocks, and synchronize them with NTP")
    } else {
        Check::ok("database clock", message)
    };
    check.with("aheadMs", ahead)
}

/// Checks the connection: round trip and TLS.
fn way(server: &InspectedServer) -> Check {
    let round = format!("a round trip takes {}.{:02} ms", server.round_us / 1_000, server.round_us % 1_000 / 10);
    let check = match (&server.tls, server.is_local) {
        (None, false) => {
            let message = format!("{round}, without TLS: everyone on the network path can read and change the traffic");
            Check::warning("database connection", message, "set it in the address: sslmode=verify-full")
        }
        _ if server.round_us > ROUND_SLOW_US => {
            let message = format!("{round}, and every step waits for several");
            Check::warning("database connection", message, "move the nodes nearer to the database")
        }
        (Some(tls), _) => Check::ok("database connection", format!("{round}, by {tls}")),
        (None, true) => Check::ok("database connection", format!("{round}, on this machine")),
    };
    check.with("roundMicroseconds", server.round_us).with("tls", server.tls.as_deref())
}

fn connections(server: &InspectedServer) -> Check {
    let InspectedServer { connections, connections_max, connections_of_node, .. } = *server;
    let message =
        format!("{connections} of {connections_max} are in use, and a node takes up to {connections_of_node}");
    let of_role = server.connections_of_role_max.filter(|max| *max < connections_of_node);
    let check = match of_role {
        Some(max) => {
            let message = format!("{message}; the role may have {max} at a time");
            Check::warning("connections", message, "ALTER ROLE … CONNECTION LIMIT: as many as all nodes use together")
        }
        None if connections.saturating_add(connections_of_node) > connections_max => {
            Check::warning("connections", message, "raise max_connections, or reduce other connections")
        }
        None => Check::ok("connections", message),
    };
    check.with("used", connections).with("max", connections_max)
}

#[cfg(test)]
mod tests {
    use super::{super::check::State, *};

    fn server() -> InspectedServer {
        InspectedServer {
            version: "15.4".into(),
            major: 15,
            fsync: true,
            full_page_writes: true,
            reads_only: false,
            tls: Some("TLSv1.3".into()),
            is_local: false,
            connections_max: 97,
            connections: 5,
            connections_of_role_max: None,
            connections_of_node: 11,
            may_create: true,
            clock_ahead_ms: -3,
            round_us: 412,
        }
    }

    #[test]
    fn properties_of_the_server_give_states() {
        let address = "postgres://u:secret@h/d";
        let table = [
            (version(&server(), address), State::Ok, "PostgreSQL 15.4"),
            (version(&InspectedServer { major: 14, ..server() }, address), State::Warning, "older"),
            (version(&InspectedServer { reads_only: true, ..server() }, address), State::Broken, "which is read-only"),
            (disk(&server()), State::Ok, "fsync is on"),
            (disk(&InspectedServer { fsync: false, ..server() }), State::Broken, "fsync is off"),
            (disk(&InspectedServer { full_page_writes: false, ..server() }), State::Warning, "torn"),
            (clock(&server()), State::Ok, "3 ms behind"),
            (clock(&InspectedServer { clock_ahead_ms: 1_000, ..server() }), State::Ok, "1000 ms ahead"),
            (clock(&InspectedServer { clock_ahead_ms: -1_001, ..server() }), State::Warning, "1001 ms behind"),
            (clock(&InspectedServer { clock_ahead_ms: 2_000, ..server() }), State::Warning, "2000 ms ahead"),
            (clock(&InspectedServer { clock_ahead_ms: 2_001, ..server() }), State::Broken, "owns no partitions"),
            (way(&server()), State::Ok, "0.41 ms, by TLSv1.3"),
            (way(&InspectedServer { tls: None, ..server() }), State::Warning, "without TLS"),
            (way(&InspectedServer { tls: None, is_local: true, ..server() }), State::Ok, "on this machine"),
            (way(&InspectedServer { round_us: 20_001, ..server() }), State::Warning, "waits for several"),
            (connections(&server()), State::Ok, "5 of 97"),
            (connections(&InspectedServer { connections: 86, ..server() }), State::Ok, "86 of 97"),
            (connections(&InspectedServer { connections: 87, ..server() }), State::Warning, "87 of 97"),
            (
                connections(&InspectedServer { connections_of_role_max: Some(10), ..server() }),
                State::Warning,
                "may have 10",
            ),
        ];
        for (check, state, said) in table {
            assert!(
                check.state == state && check.message.contains(said) && !check.message.contains("secret"),
                "{check:?}"
            );
        }
    }
}
