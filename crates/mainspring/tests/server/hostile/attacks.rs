//! The attacks of a hostile tenant, in one table. Each is a function of a target.

use std::{
    collections::BTreeMap,
    io::{Read, Write},
    net::TcpStream,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use super::super::client::Client;

/// A node under attack, and the credentials of the hostile organization.
#[derive(Clone)]
pub(super) struct Target<'a> {
    pub(super) owner: Client,
    pub(super) member: Client,
    pub(super) viewer: Client,
    pub(super) anonymous: Client,
    pub(super) address: String,
    pub(super) tarpit_port: u16,
    pub(super) sent: &'a Sent,
}

/// The attacks sent to all nodes.
#[derive(Default)]
pub(super) struct Sent {
    pub(super) is_over: AtomicBool,
    /// Attacks begun by all attackers. The first of them are one of each.
    pub(super) number: AtomicU64,
    /// Counts by attack and status; 0 for no response.
    pub(super) answers: Mutex<BTreeMap<&'static str, BTreeMap<u16, u64>>>,
}

impl Sent {
    /// True if each attack was begun at least once. Attackers finish what they have begun.
    pub(super) fn has_begun_all(&self) -> bool {
        self.number.load(Ordering::Relaxed) >= ATTACKS.len() as u64
    }
}

/// An attack. Returns the status of the response, or 0 without one.
type Attack = fn(&Target<'_>, u64) -> u16;

/// Every attack by name.
pub(super) const ATTACKS: [(&str, Attack); 36] = [
    ("yaml aliases", |t, _| t.validate(&t.viewer, &bomb(7))),
    ("yaml aliases of a long text", |t, _| t.validate(&t.viewer, &long_alias())),
    ("deep yaml", |t, _| t.validate(&t.viewer, &format!("steps: {}", "[".repeat(100_000)))),
    ("deep json", |t, _| t.post(&t.viewer, "/api/definitions/validate", &"[".repeat(1_000_000))),
    ("costly patterns", |t, n| t.validate(&t.viewer, &patterns(n, 200))),
    ("many schemas", |t, n| t.validate(&t.viewer, &schemas(n))),
    ("ten thousand steps", |t, _| t.validate(&t.viewer, &many_steps(10_000))),
    ("a large plan", |t, _| t.post(&t.viewer, "/api/definitions/plan", &definition_body(&many_steps(5_000)))),
    ("an endless function", |t, n| t.run("endless", n, "{}")),
    ("a native loop", |t, n| t.run("native", n, "{}")),
    ("a function that takes memory", |t, n| t.run("memory", n, "{}")),
    ("many heavy functions", |t, n| t.run("codes", n, "{}")),
    ("a catastrophic pattern", |t, n| t.run("redos", n, "{}")),
    ("rounds that do nothing", |t, n| t.run("hog", n, "{}")),
    ("steps that are skipped", |t, n| t.run("skip", n, &items(2_000, "{\"go\":false}"))),
    ("a tree of workflows", |t, n| t.run("tree", n, "{}")),
    ("a wide fan-out", |t, n| t.run("fan", n, &items(500, "1"))),
    ("children that are not waited for", |t, n| t.run("forget", n, "{}")),
    ("requests that are never answered", |t, n| t.run("tarpit", n, &items(1_500, "1"))),
    ("names that do not resolve", |t, n| t.run("names", n, &items(500, "1"))),
    ("scripts that fork", |t, n| t.run("fork", n, "{}")),
    ("scripts that fill the disk", |t, n| t.run("fill", n, "{}")),
    ("timers", |t, n| t.run("timers", n, &items(1_000, "1"))),
    ("large gates", |t, n| t.run("gates", n, &format!("{{\"text\":\"{}\"}}", "x".repeat(200_000)))),
    ("large inputs", |t, n| t.run("quick", n, &format!("{{\"text\":\"{}\"}}", "x".repeat(3_000_000)))),
    ("large definitions", |t, n| t.save(&format!("large{}", n % 50), &many_steps(9_000))),
    ("many versions", |t, n| t.save("versions", &format!("{{\"name\":\"v{n}\",\"steps\":[{{\"type\":\"return\"}}]}}"))),
    ("large signals", |t, _| t.signal_all(&"x".repeat(200_000))),
    ("wrong tokens", |t, n| t.wrong_token(n)),
    ("half requests", |t, _| t.half_requests(8)),
    ("bodies that never end", |t, _| t.slow_body()),
    ("watchers that do not read", |t, _| t.watchers(8)),
    ("waits", |t, _| t.waits(8)),
    ("lists", |t, _| t.get(&t.viewer, "/api/executions?limit=200")),
    ("exports of the audit log", |t, _| t.get(&t.owner, "/api/audit/export")),
    ("strange paths", |t, n| t.get(&t.viewer, &format!("/api/workflows/..%2f..%2f{n}%00%ff"))),
];

/// Strides of the attackers through the table. They are coprime with its length, so each attacker sends every
/// attack.
const STRIDES: [u64; 8] = [1, 5, 7, 11, 13, 17, 19, 23];

const _: () = assert!(ATTACKS.len() == 36, "choose strides that are coprime with the number of attacks");

impl Target<'_> {
    /// The same credentials at another node.
    pub(super) fn at(&self, address: &str) -> Self {
        Self {
            owner: self.owner.at(address),
            member: self.member.at(address),
            viewer: self.viewer.at(address),
            anonymous: self.anonymous.at(address),
            address: address.to_owned(),
            ..self.clone()
        }
    }

    /// Saves the workflows of the attacks, and sets the highest limits.
    pub(super) fn prepare(&self) {
        let limits = r#"{"limits":{"perUser":1000000,"perOrganization":1000000}}"#;
        let _ = self.owner.try_send("PATCH", "/api/organization", &[], Some(limits));
        for (name, definition) in workflows(self.tarpit_port) {
            let status = self.save(name, &definition);
            assert!(matches!(status, 200 | 201 | 400 | 403 | 422), "{name}: {status}");
        }
    }

    /// Sends one attack after another until the test ends. The attackers share the first round through the table;
    /// after it, each sends the attacks in its own order.
    pub(super) fn attack(&self, attacker: u64) {
        let mut at = attacker;
        while !self.sent.is_over.load(Ordering::Relaxed) {
            let number = self.sent.number.fetch_add(1, Ordering::Relaxed);
            let place = if number < ATTACKS.len() as u64 { number } else { at % ATTACKS.len() as u64 };
            let (name, attack) = ATTACKS[place as usize];
            at += STRIDES[attacker as usize % STRIDES.len()];
            let status = attack(self, number);
            *self.sent.answers.lock().unwrap().entry(name).or_default().entry(status).or_default() += 1;
        }
    }

    fn send(&self, client: &Client, method: &str, path: &str, body: Option<&str>) -> u16 {
        client.try_send(method, path, &[], body).map_or(0, |reply| reply.status)
    }

    fn get(&self, client: &Client, path: &str) -> u16 {
        self.send(client, "GET", path, None)
    }

    fn post(&self, client: &Client, path: &str, body: &str) -> u16 {
        self.send(client, "POST", path, Some(body))
    }

    fn validate(&self, client: &Client, text: &str) -> u16 {
        self.post(client, "/api/definitions/validate", &definition_body(text))
    }

    fn save(&self, id: &str, definition: &str) -> u16 {
        self.post(&self.owner, "/api/workflows/sync", &format!("{{\"id\":\"{id}\",\"data\":{definition}}}"))
    }

    fn run(&self, workflow: &str, number: u64, variables: &str) -> u16 {
        let body = format!(
            "{{\"workflowId\":\"{workflow}\",\"clientRequestId\":\"a{number}\",\"variables\":{variables},\"input\":{variables}}}"
        );
        let status = self.post(&self.member, "/api/triggers/manual/run", &body);
        if status != 400 {
            return status;
        }
        let body =
            format!("{{\"workflowId\":\"{workflow}\",\"clientRequestId\":\"a{number}\",\"variables\":{variables}}}");
        self.post(&self.member, "/api/triggers/manual/run", &body)
    }

    /// The newest executions of the organization.
    fn executions(&self, count: usize) -> Vec<String> {
        let Ok(page) = self.viewer.try_send("GET", "/api/executions?limit=20", &[], None) else { return Vec::new() };
        let json = page.json();
        let rows = json.get("executions").and_then(|rows| rows.as_list()).map(<[_]>::to_vec).unwrap_or_default();
        let id = |row: &mainspring_kernel::value::Value| Some(row.get("id")?.as_text()?.to_string());
        rows.iter().filter_map(id).take(count).collect()
    }

    fn signal_all(&self, text: &str) -> u16 {
        let body = format!("{{\"name\":\"go\",\"payload\":\"{text}\"}}");
        let send = |id: &String| self.post(&self.owner, &format!("/api/executions/{id}/signal"), &body);
        self.executions(10).iter().map(send).max().unwrap_or(0)
    }

    fn wrong_token(&self, number: u64) -> u16 {
        let guess = format!("msp_{number:018}_{}", "0".repeat(64));
        self.get(&Client::new(&self.address, Some(&guess)), "/api/me")
    }

    fn half_requests(&self, count: usize) -> u16 {
        let open = |_| {
            let mut stream = TcpStream::connect(&self.address).ok()?;
            stream.write_all(b"GET /api/me HTTP/1.1\r\nhost: a\r\n").ok()?;
            stream.set_read_timeout(Some(Duration::from_secs(2))).ok()?;
            Some(stream)
        };
        let mut held: Vec<TcpStream> = (0..count).filter_map(open).collect();
        // The connections stay open until the server closes them, or for two seconds.
        held.first_mut().map_or(0, |first| first.read(&mut [0; 64]).map_or(0, |_| 408))
    }

    fn slow_body(&self) -> u16 {
        let token = self.viewer.token();
        let head = format!(
            "POST /api/definitions/validate HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\ncontent-length: 4000000\r\n\r\n{{"
        );
        let Ok(mut stream) = TcpStream::connect(&self.address) else { return 0 };
        let _ = stream.set_read_timeout(Some(Duration::from_secs(2)));
        let _ = stream.write_all(head.as_bytes());
        let _ = stream.write_all(&vec![b' '; 1_000_000]);
        stream.read(&mut [0; 64]).map_or(0, |_| 408)
    }

    fn watchers(&self, count: usize) -> u16 {
        let Some(id) = self.executions(1).pop() else { return 0 };
        let path = format!("/api/executions/{id}/events");
        let token = self.viewer.token();
        let open = |_| {
            let mut stream = TcpStream::connect(&self.address).ok()?;
            let head = format!("GET {path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {token}\r\n\r\n");
            stream.write_all(head.as_bytes()).ok()?;
            Some(stream)
        };
        let mut held: Vec<TcpStream> = (0..count).filter_map(open).collect();
        let Some(first) = held.first_mut() else { return 0 };
        let _ = first.set_read_timeout(Some(Duration::from_secs(2)));
        u16::from(first.read(&mut [0; 16]).is_ok()) * 200
    }

    fn waits(&self, count: usize) -> u16 {
        let wait = |id: &String| self.get(&self.viewer, &format!("/api/executions/{id}/wait?timeoutMs=200"));
        let signed_out = self.get(&self.anonymous, "/api/me");
        self.executions(count).iter().map(wait).max().unwrap_or(signed_out)
    }
}

fn definition_body(text: &str) -> String {
    let text = mainspring_kernel::json::compact(&mainspring_kernel::value::Value::from(text));
    format!("{{\"definition\":{text}}}")
}

fn items(count: usize, item: &str) -> String {
    format!("{{\"items\":[{}]}}", vec![item; count].join(","))
}

/// Aliases of aliases: each level contains ten of the level before.
fn bomb(levels: usize) -> String {
    let mut text = "steps: [{id: r, type: return, input: 1}]\nmeta:\n  a0: &a0 [1,1,1,1,1,1,1,1,1,1]\n".to_string();
    for level in 1..levels {
        let before = vec![format!("*a{}", level - 1); 10].join(",");
        text += &format!("  a{level}: &a{level} [{before}]\n");
    }
    text
}

fn long_alias() -> String {
    let aliases = vec!["*a"; 200_000].join(",");
    format!("steps: [{{id: r, type: return, input: 1}}]\nmeta:\n  a: &a {}\n  b: [{aliases}]\n", "x".repeat(200_000))
}

fn pattern_properties(number: u64, of: usize, count: usize) -> String {
    let one = |at: usize| format!(r#""{at:x}":{{"pattern":"(?:[\\w\\s]{{1,40}}|x){{1,20}}{number}_{of}_{at}"}}"#);
    (0..count).map(one).collect::<Vec<_>>().join(",")
}

fn patterns(number: u64, count: usize) -> String {
    let properties = pattern_properties(number, 0, count);
    format!(
        r#"{{"steps":[{{"id":"s","type":"code","code":"export default () => ({{}})","outputSchema":{{"properties":{{{properties}}}}}}}]}}"#
    )
}

fn schemas(number: u64) -> String {
    let step = |of: usize| {
        let properties = pattern_properties(number, of, 40);
        format!(
            r#"{{"id":"s{of}","type":"code","code":"export default () => ({{}})","outputSchema":{{"properties":{{{properties}}}}}}}"#
        )
    };
    format!(r#"{{"steps":[{}]}}"#, (0..20).map(step).collect::<Vec<_>>().join(","))
}

fn many_steps(count: usize) -> String {
    let step = |at: usize| format!(r#"{{"id":"s{at}","type":"sleep","durationMs":1}}"#);
    format!(r#"{{"steps":[{}]}}"#, (0..count).map(step).collect::<Vec<_>>().join(","))
}

fn code(id: &str, code: &str, more: &str) -> String {
    let code = mainspring_kernel::json::compact(&mainspring_kernel::value::Value::from(code));
    format!(r#"{{"id":"{id}","type":"code","code":{code}{more}}}"#)
}

/// The workflows whose execution is an attack.
fn workflows(tarpit_port: u16) -> Vec<(&'static str, String)> {
    let steps = |steps: &str| format!(r#"{{"steps":[{steps}]}}"#);
    let wide =
        |steps: &str| format!(r#"{{"constraints":{{"maxSteps":1000000,"maxParallel":10000}},"steps":[{steps}]}}"#);
    let sort = "export default () => { const a=[]; for (let i=0;i<100000;i++) a.push((i*7919)%1000003); let s=0; \
                for (let k=0;k<400;k++) { const b=a.slice(); b.sort(); s+=b.length } return s }";
    let native = "export default () => { const t='a'.repeat(5000000); let s=0; for(;;) s+=t.indexOf('b'); }";
    let memory = "export default () => { const a=[]; for(;;) a.push('x'.repeat(1000000) + a.length); }";
    let redos = r#"export default () => /^(a+)+$/.test("a".repeat(40) + "b")"#;
    let heavy: Vec<String> = (0..12).map(|at| code(&format!("c{at}"), sort, r#","timeoutMs":60000"#)).collect();
    let kids: Vec<String> = ["a", "b", "c", "d", "e", "f", "g", "h"]
        .map(|id| format!(r#"{{"id":"{id}","type":"conditional","condition":true,"then":[{{"id":"{id}1","type":"subworkflow","workflow":"tree"}}]}}"#))
        .to_vec();
    let forget = r#"{"id":"k","type":"conditional","condition":true,"then":[{"id":"k1","type":"subworkflow","workflow":"forget","wait":false}]}"#;
    let each = r#""forEach":{"ref":"@vars.items","concurrency":10000}"#;
    let skipped: Vec<String> = (0..20)
        .map(|at| format!(r#"{{"id":"s{at}","type":"sleep","durationMs":1,"when":{{"ref":"@item.go"}}}}"#))
        .collect();
    vec![
        ("quick", steps(r#"{"id":"r","type":"return"}"#)),
        ("endless", steps(&code("e", "export default () => { for(;;); }", ""))),
        ("native", steps(&code("n", native, r#","timeoutMs":8000"#))),
        ("memory", steps(&code("m", memory, ""))),
        ("redos", steps(&code("r", redos, ""))),
        ("codes", steps(&heavy.join(","))),
        (
            "hog",
            wide(
                r#"{"id":"spin","type":"loop","while":true,"maxRounds":1000000,"steps":[{"id":"c","type":"conditional","condition":true,"then":[]}]}"#,
            ),
        ),
        (
            "skip",
            steps(&format!(
                r#"{{"id":"each","type":"loop","forEach":{{"ref":"@vars.items","concurrency":1}},"steps":[{}]}}"#,
                skipped.join(",")
            )),
        ),
        ("tree", steps(&format!(r#"{{"id":"all","type":"parallel","steps":[{}]}}"#, kids.join(",")))),
        ("fan", wide(&format!(r#"{{"id":"k","type":"subworkflow","workflow":"quick",{each}}}"#))),
        ("forget", steps(&format!("{forget},{}", forget.replace("\"k", "\"l")))),
        (
            "tarpit",
            wide(&format!(
                r#"{{"id":"h","type":"http","url":"http://127.0.0.1:{tarpit_port}/","timeoutMs":600000,{each}}}"#
            )),
        ),
        (
            "names",
            wide(&format!(
                r#"{{"id":"h","type":"http","url":"http://no-such-host.invalid/","retry":{{"maxAttempts":1}},{each}}}"#
            )),
        ),
        ("fork", steps(r#"{"id":"f","type":"bash","command":"b() { b | b & }; b; sleep 5","timeoutMs":5000}"#)),
        (
            "fill",
            steps(
                r#"{"id":"f","type":"bash","command":"head -c 5G /dev/zero > big; tail -c 2G /dev/zero","timeoutMs":5000}"#,
            ),
        ),
        ("timers", wide(&format!(r#"{{"id":"t","type":"sleep","durationMs":0,{each}}}"#))),
        ("gates", steps(r#"{"id":"g","type":"approval","prompt":"Go?","items":{"of":"@vars.text"}}"#)),
    ]
}
