//! A conversation of 30 model calls and 60 tool calls whose server is killed at random moments, on an embedded store and on
//! three nodes over PostgreSQL. The model streams, so that kills cut answers.
//!
//! `MAINSPRING_KILLS` sets the number of kills, and `MAINSPRING_SEED` the seed. Conversations follow each other until all
//! kills have happened.

use std::{collections::BTreeMap, fs};

use mainspring_kernel::value::{Map, Value};

use super::{
    agents::{Model, configure, ended},
    client::Client,
    process::{Place, Server, everywhere},
    start::start,
    support::{call, yaml},
};

const MODEL_CALLS: usize = 30;
const TOOL_CALLS: usize = 60;

/// Kills of one run of the test. More take minutes.
const KILLS_DEFAULT: u64 = 6;

/// The nodes of a shared store.
const NODES: usize = 3;

const ANSWER: &str = "The answer is 42, and it is the same after every kill.";

/// The number of tool calls after each answer but the last.
fn calls_of(turn: usize) -> usize {
    let (turns, more) = (MODEL_CALLS - 1, TOOL_CALLS % (MODEL_CALLS - 1));
    TOOL_CALLS / turns + usize::from(turn < more)
}

/// Each tool call has a number of its own: a hundred times the turn, and its place.
fn script() -> String {
    let stream = "stream: {deltaChars: 2, chunkBytes: 90, chunkDelayMs: 1}";
    let turn = |turn: usize| {
        let calls =
            (0..calls_of(turn)).map(|at| format!("{{name: issues.get, arguments: {{n: {}}}}}", turn * 100 + at));
        format!("  - {{toolCalls: [{}], {stream}}}\n", calls.collect::<Vec<_>>().join(", "))
    };
    let turns: String = (0..MODEL_CALLS - 1).map(turn).collect();
    format!("answers:\n{turns}  - {{text: '{ANSWER}', {stream}}}\n")
}

/// Most calls of one answer that are out at a time. Conversations take turns with 1 and with more.
fn calls_at_a_time(round: usize) -> u64 {
    if round.is_multiple_of(2) { 1 } else { calls_of(0) as u64 }
}

/// The author permits the repetition of a call whose outcome is unknown.
const AGENT: &str = "[{id: ask, type: agent, goal: Read, tools: ['issues.*'], maxTurns: 40, maxToolCalls: 100, onInterrupted: retry, \
     retry: {maxAttempts: 200, initialDelayMs: 0}, outputVariable: out}]";

/// A deterministic random generator (xorshift, Marsaglia 2003).
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

#[test]
fn random_kills_repeat_no_call_with_a_receipt() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let kills = number("MAINSPRING_KILLS").unwrap_or(KILLS_DEFAULT);
    let seed = number("MAINSPRING_SEED").unwrap_or(20_260_101);
    println!("MAINSPRING_SEED={seed} MAINSPRING_KILLS={kills}");
    assert_eq!((0..MODEL_CALLS - 1).map(calls_of).sum::<usize>(), TOOL_CALLS);
    everywhere(|place| {
        let (mut dice, mut done, mut rounds, mut token) = (Dice(seed), 0, 0, None);
        while done < kills {
            done += Conversation::start(place, rounds, &mut token).kill_until_it_ends(&mut dice, kills - done);
            rounds += 1;
        }
        println!("{done} kills in {rounds} conversations");
    });
}

/// A conversation on its way, and the nodes that may run it.
struct Conversation<'a> {
    place: &'a Place,
    model: Model,
    folder: tempfile::TempDir,
    servers: Vec<Server>,
    token: String,
    id: String,
    round: usize,
    started: usize,
}

impl<'a> Conversation<'a> {
    /// Starts a conversation. The first server of a place makes the token of the owner.
    fn start(place: &'a Place, round: usize, token: &mut Option<String>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let model = Model::start(folder.path(), &script());
        configure(place, &model, folder.path(), ", stream: true");
        let first = place.start_uncontained();
        let token = token.get_or_insert_with(|| first.token.clone().unwrap()).clone();
        let (owner, name) = (first.client(&token), format!("reads{round}"));
        let most = calls_at_a_time(round);
        let data =
            Value::map([("constraints", Value::map([("maxParallel", Value::from(most))])), ("steps", yaml(AGENT))]);
        let body = Value::map([("id", Value::from(name.as_str())), ("data", data)]);
        owner.post("/api/workflows/sync", &body).expect(200);
        let id = start(&owner, &name, &name, Map::new()).expect(202).text_at("executionId");
        let mut conversation = Self { place, model, folder, servers: vec![first], token, id, round, started: 0 };
        while conversation.servers.len() < NODES
            && let Some(other) = conversation.another()
        {
            conversation.servers.push(other);
        }
        conversation
    }

    fn another(&mut self) -> Option<Server> {
        self.started += 1;
        self.place.another_uncontained(&format!("node-{}-{}", self.round, self.started))
    }

    fn client(&self) -> Client {
        self.servers[0].client(&self.token)
    }

    fn tool_calls(&self) -> BTreeMap<usize, u64> {
        let calls = fs::read_to_string(self.folder.path().join("calls")).unwrap_or_default();
        let mut counted = BTreeMap::new();
        for line in calls.lines() {
            *counted.entry(line.parse().unwrap()).or_default() += 1;
        }
        counted
    }

    /// The calls so far. A node that is about to be killed waits for some of them.
    fn count(&self) -> u64 {
        self.model.count() + self.tool_calls().values().sum::<u64>()
    }

    fn has_ended(&self) -> bool {
        let status = self.client().get(&format!("/api/executions/{}", self.id)).expect(200).text_at("status");
        !matches!(status.as_str(), "pending" | "running")
    }

    /// Kills until the conversation has ended. Returns the number of kills.
    fn kill_until_it_ends(mut self, dice: &mut Dice, kills: u64) -> u64 {
        let mut done = 0;
        while done < kills && self.wait_for_some(dice) {
            let victim = dice.below(self.servers.len() as u64) as usize;
            self.servers.remove(victim).kill();
            done += 1;
            let next = self.another().unwrap_or_else(|| self.place.start_uncontained());
            self.servers.push(next);
        }
        let client = self.client();
        assert_eq!(ended(&client, &self.id), "completed", "{}", client.get(&self.steps()).text);
        assert!(client.get(&format!("/api/executions/{}", self.id)).expect(200).text.contains(ANSWER));
        let (interrupted, repeated) = self.check(&client);
        let most = calls_at_a_time(self.round);
        assert!(
            interrupted <= most * done,
            "{interrupted} calls with an unknown outcome at {done} kills of {most} calls"
        );
        println!(
            "{done} kills of {most} at a time, {interrupted} calls with an unknown outcome, {repeated} of them had arrived"
        );
        for mut server in self.servers.drain(..) {
            server.kill();
        }
        let verified = call(self.place.reading_command(&["verify", &self.id]), b"");
        assert_eq!(verified.exit, Some(0), "{}{}", verified.stdout, verified.stderr);
        done
    }

    fn steps(&self) -> String {
        format!("/api/executions/{}/steps", self.id)
    }

    /// Waits for some calls, and a little more. False if the conversation has ended.
    fn wait_for_some(&self, dice: &mut Dice) -> bool {
        let until = self.count() + dice.below(4);
        while self.count() < until {
            if self.has_ended() {
                return false;
            }
        }
        for _ in 0..dice.below(20_000) {
            std::thread::yield_now();
        }
        !self.has_ended()
    }

    /// Compares what the model and the tools have received with the attempts of the journal. Every attempt but the last of a
    /// call was interrupted, so a call was never repeated after its receipt, and no repetition is missing in the journal.
    /// Returns the number of interrupted attempts, and of repeated calls.
    fn check(&self, client: &Client) -> (u64, u64) {
        let attempts = attempts(client, &self.steps());
        let mut received: BTreeMap<String, u64> = BTreeMap::new();
        for (at, count) in self.model.by_answer().into_iter().enumerate() {
            received.insert(format!("ask#{}", at + 1), count);
        }
        for (number, count) in self.tool_calls() {
            received.insert(format!("ask#{}.{}", number / 100 + 1, number % 100 + 1), count);
        }
        assert_eq!(received.len(), MODEL_CALLS + TOOL_CALLS, "{received:?}");
        let (mut interrupted, mut repeated) = (0, 0);
        for (step, count) in &received {
            let Some((last, before)) = attempts.get(step).and_then(|rows| rows.split_last()) else {
                panic!("`{step}` has no attempt: {:?}", attempts.keys());
            };
            assert_eq!(last.0, "completed", "{step}");
            assert!(before.iter().all(|row| row.1.as_deref() == Some("interrupted")), "{step}: {before:?}");
            assert!(
                (1..=before.len() as u64 + 1).contains(count),
                "{step}: {count} calls in {} attempts",
                before.len() + 1
            );
            interrupted += before.len() as u64;
            repeated += count - 1;
        }
        (interrupted, repeated)
    }
}

/// The status and the error of each attempt, by step.
fn attempts(client: &Client, route: &str) -> BTreeMap<String, Vec<(String, Option<String>)>> {
    let mut rows: BTreeMap<String, Vec<_>> = BTreeMap::new();
    let mut cursor = String::new();
    loop {
        let page = client.get(&format!("{route}?limit=100{cursor}")).expect(200).json();
        for row in page.get("steps").and_then(Value::as_list).unwrap() {
            let text = |key: &str| row.get(key).and_then(Value::as_text).map(ToOwned::to_owned);
            let code = row.get("error").and_then(|error| error.get("code")).and_then(Value::as_text);
            let of_step = rows.entry(text("stepId").unwrap()).or_default();
            of_step.push((text("status").unwrap(), code.map(ToOwned::to_owned)));
        }
        match page.get("nextCursor").and_then(Value::as_text) {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return rows,
        }
    }
}
