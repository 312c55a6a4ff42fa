//! The coined terms of this project, each with the standard term of the field.
//!
//! Words that are standard in most of their uses are not listed, since a count could not distinguish: `place` (of a
//! file, of a source text), `listen` (TCP, PostgreSQL), `begin` and `begun` (`BEGIN`), `held` (a lease is held), `hand
//! over`, `take`, `line`, `answer`. Words like `home`, `reach`, `table`, `look`, `life` and `told` count only in the
//! paths in which they were names of this project.

/// A term to replace, with its forms.
pub(super) struct Term {
    /// Name in the ratchet.
    pub(super) name: &'static str,
    /// Whole words in lowercase; several words follow each other in one identifier or one sentence.
    pub(super) forms: &'static [&'static str],
    /// The term of the field.
    pub(super) instead: &'static str,
    /// Prefixes of the paths in which it counts.
    pub(super) paths: &'static [&'static str],
}

const EVERYWHERE: &[&str] = &[""];
const CRATES: &[&str] = &["crates/"];
const ENGINE: &[&str] = &["crates/engine/"];
/// The crates with code about nodes.
const NODES: &[&str] = &["crates/engine/", "crates/sim/", "crates/store/"];
const NODES_AND_PAGES: &[&str] = &["crates/engine/", "crates/sim/", "crates/store/", "docs/"];

const fn term(
    name: &'static str,
    forms: &'static [&'static str],
    instead: &'static str,
    paths: &'static [&'static str],
) -> Term {
    Term { name, forms, instead, paths }
}

/// Compounds with such words that the field uses.
pub(super) const KEPT: [&str; 9] = [
    "algorithm family",
    "config home",
    "decision table",
    "home dir",
    "home directory",
    "in flight",
    "look up",
    "looked up",
    "looks up",
];

pub(super) const TERMS: [Term; 59] = [
    // Nodes and leases.
    term(
        "word",
        &["word", "words"],
        "heartbeat",
        &["crates/engine/", "crates/sim/src/cluster", "crates/store/src/contract_tests/membership"],
    ),
    term(
        "word",
        &["node s word", "its word", "no word", "lease words"],
        "heartbeat",
        &["ARCHITECTURE.md", "CHANGELOG.md", "crates/mainspring/", "docs/"],
    ),
    term("speak", &["beat", "beats", "speak", "speaking", "speaks", "spoken"], "heartbeat", NODES),
    term("heard", &["hear", "heard", "hears"], "renewed, acknowledged", NODES),
    term("heard", &["unheard"], "unreachable, rejected", CRATES),
    term("owning", &["owning"], "ownership, handoff", NODES),
    term("lent", &["lend", "lending", "lends", "lent"], "detached attempt, pooled connection", EVERYWHERE),
    term("give-up", &["gave up", "give up", "given up", "gives up", "giving up"], "release, hand off", NODES_AND_PAGES),
    term("life", &["life"], "incarnation", &["crates/engine/", "crates/sim/"]),
    term("life", &["reborn"], "rejoin", EVERYWHERE),
    term("wish", &["wish", "wishes"], "rebalance plan, cancel flag", CRATES),
    term("table", &["table", "tables"], "cluster view", ENGINE),
    // The inbox.
    term("letter", &["letter", "letters"], "inbox message", NODES_AND_PAGES),
    term("letter", &["inbox letter", "inbox letters"], "inbox message", EVERYWHERE),
    term("bell", &["bell", "bells"], "wake-up socket, notify", EVERYWHERE),
    term("bell", &["rang", "ring", "rings", "rung"], "wake", ENGINE),
    term("hint", &["hint", "hints"], "notify", NODES),
    term("burial", &["burial", "burials", "buried", "buries", "bury"], "discard", EVERYWHERE),
    // The driver and the shard.
    term("rim", &["rim"], "driver", EVERYWHERE),
    term("fate", &["fate", "fated", "fates"], "outcome, disposition, recovery", EVERYWHERE),
    term(
        "look",
        &["look", "looked", "looking", "looks"],
        "poll, refresh, read, inspect, check",
        &["crates/engine/", "crates/sim/", "crates/mainspring/src/"],
    ),
    term("flight", &["flight", "flights"], "in-flight commit", ENGINE),
    term("passenger", &["passenger", "passengers"], "effects of a commit", EVERYWHERE),
    term("land", &["has landed", "land", "landing", "lands"], "release", ENGINE),
    term("spent", &["spent"], "recycled", ENGINE),
    term("moment", &["moment", "moments"], "committed frame", &["crates/engine/", "crates/server/"]),
    term(
        "tell",
        &["tell", "teller", "telling", "tells", "told", "untold"],
        "notify",
        &["crates/engine/", "crates/kernel/", "crates/server/"],
    ),
    term("resting", &["resting", "rests"], "idle, settled", CRATES),
    term("tally", &["census", "tally"], "counters, statistics", EVERYWHERE),
    term("desk", &["desk", "desks", "parked", "turn out", "turnout", "turnouts"], "queue, actions, deferred", ENGINE),
    term("desk", &["lane", "lanes"], "concurrency key", ENGINE),
    term("reach", &["reach", "reaches"], "scope", ENGINE),
    term("attend", &["attend", "attends"], "activate", CRATES),
    term("home", &["home", "homes"], "data folder", ENGINE),
    term(
        "family",
        &["families", "family"],
        "execution tree",
        &[
            "crates/engine/",
            "crates/kernel/",
            "crates/mainspring/",
            "crates/server/",
            "crates/sim/",
            "crates/store/",
            "docs/",
        ],
    ),
    term(
        "noting",
        &["noted", "noting"],
        "audit, audited",
        &["crates/engine/", "crates/mainspring/", "crates/server/", "crates/store/"],
    ),
    term("ground", &["ground", "grounds"], "location, test folder, options", CRATES),
    // The store and the server.
    term("shelf", &["shelf", "shelves"], "repository", EVERYWHERE),
    term("noun", &["noun", "nouns"], "resource, kind", &["crates/", "docs/"]),
    term("thing", &["thing", "things"], "resource, item", &["crates/server/", "crates/store/"]),
    term("held", &["held"], "stored", &["crates/server/"]),
    term("door", &["door", "doors"], "authentication, entry point, ready", EVERYWHERE),
    term("stranger", &["stranger", "strangers"], "anonymous client, untrusted code", EVERYWHERE),
    term("let-in", &["let in", "lets in", "letting in"], "authenticate", EVERYWHERE),
    term("deed", &["deed", "deeds"], "operation", EVERYWHERE),
    // The simulator.
    term("misfortune", &["misfortune", "misfortunes"], "fault", EVERYWHERE),
    term("misfortune", &["blow", "blows", "strike", "strikes", "struck"], "fault", CRATES),
    // The command line and the documents.
    term("trouble", &["trouble", "troubles"], "error", EVERYWHERE),
    term("mend", &["mend", "mended", "mends"], "help, fix", EVERYWHERE),
    term("seeing", &["seeing"], "telemetry, observability", EVERYWHERE),
    term(
        "called-off",
        &["call it off", "call off", "called off", "calling off", "calls it off", "calls off", "calls them off"],
        "cancel",
        EVERYWHERE,
    ),
    term("set-aside", &["set aside", "sets aside", "setting aside"], "quarantine", EVERYWHERE),
    term("goes-on", &["go on", "goes on", "going on", "gone on", "went on"], "resume, continue", EVERYWHERE),
    term("begun", &["attempts begun", "executions begun"], "started", EVERYWHERE),
    // American spelling, as the API has it.
    term("british", &["authorisation", "authorise", "authorised"], "authorize", EVERYWHERE),
    term(
        "british",
        &["behaviour", "behaviours", "honour", "honours", "neighbour", "neighbours"],
        "behavior, honor, neighbor",
        EVERYWHERE,
    ),
    term("british", &["colour", "coloured", "colours"], "color", EVERYWHERE),
    term("british", &["initialise", "initialised", "recognise", "recognised", "unoptimised"], "-ize", EVERYWHERE),
    term("british", &["organisation", "organisations"], "organization", EVERYWHERE),
];
