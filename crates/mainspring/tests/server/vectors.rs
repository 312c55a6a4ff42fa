//! The conformance vectors of the API: every case of `conformance/vectors/api.json`. Each starts in a new
//! organization, which is as empty as a new server.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    time::{Duration, Instant},
};

use mainspring_kernel::{
    json::{self, compact},
    value::Value,
};

use super::{
    client::{Client, Reply},
    process::{Organization, Server, everywhere},
};

const FILE: &str = "vectors/api.json";

/// Timeout of a case with `wait_for`.
const PATIENCE: Duration = Duration::from_secs(10);

type Names = BTreeMap<String, String>;

/// The callers of a case.
struct People {
    ours: Organization,
    other: Client,
    admin: Client,
    outsider: Client,
    nobody: Client,
}

#[test]
fn every_case_that_this_build_covers() {
    everywhere(|place| {
        let server = place.start();
        let conformance = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance");
        let uncovered = fs::read_to_string(conformance.join("uncovered.txt")).unwrap();
        let is_covered = |id: &str| !uncovered.lines().any(|line| line.trim() == format!("{FILE} :: {id}"));
        let cases = json::read(&fs::read(conformance.join(FILE)).unwrap()).unwrap().value;
        let cases = cases.get("cases").and_then(Value::as_list).unwrap();
        assert!(cases.len() >= 25, "cases are never taken away");
        let mut wrong = Vec::new();
        for case in cases {
            let id = case.get("id").and_then(Value::as_text).unwrap();
            let people = people(&server, id);
            match (run(case, &people), is_covered(id)) {
                (Err(why), true) => wrong.push(format!("{id}: {why}")),
                (Ok(()), false) => wrong.push(format!("{id} holds: remove it from uncovered.txt")),
                _ => {}
            }
            free_paths(&people);
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    });
}

/// Deletes the triggers of a case. Webhook paths are shared by all organizations, and the next case may use the same.
fn free_paths(people: &People) {
    let listed = people.ours.owner.get("/api/triggers").expect(200).json();
    for trigger in listed.get("triggers").and_then(Value::as_list).unwrap() {
        let path = format!("/api/triggers/{}", text(trigger, "id"));
        people.ours.owner.send("DELETE", &path, &[], None).expect(204);
    }
}

fn people(server: &Server, case: &str) -> People {
    let ours = Organization::new(server, &format!("of-{case}"));
    let theirs = Organization::new(server, &format!("beside-{case}"));
    People {
        other: ours.member("other", "member"),
        admin: ours.member("admin", "admin"),
        outsider: theirs.owner,
        nobody: server.nobody(),
        ours,
    }
}

fn run(case: &Value, people: &People) -> Result<(), String> {
    let mut names = Names::new();
    for (number, call) in case.get("calls").and_then(Value::as_list).unwrap().iter().enumerate() {
        one(call, people, &mut names).map_err(|why| format!("call {number}: {why}"))?;
    }
    Ok(())
}

fn one(call: &Value, people: &People, names: &mut Names) -> Result<(), String> {
    if let Some(pair) = call.get("same").and_then(Value::as_list) {
        let pair: Vec<String> = pair.iter().map(|name| named(name.as_text().unwrap(), names)).collect();
        return if pair[0] == pair[1] { Ok(()) } else { Err(format!("{pair:?} are not the same")) };
    }
    let until = Instant::now() + PATIENCE;
    loop {
        let reply = send(call, people, names);
        let stands = call.get("wait_for").is_none_or(|wanted| is_contained(wanted, &reply.json()));
        if !stands && Instant::now() < until {
            // A long poll, which returns on the next change instead of sleeping.
            let path = named(text(call, "path"), names);
            people.ours.owner.get(&format!("{path}/wait?timeoutMs=500"));
            continue;
        }
        check(call, &reply, stands).map_err(|why| format!("{why}; it answered {reply:?}"))?;
        for (name, field) in call.get("save").and_then(Value::as_map).into_iter().flatten() {
            let found = first(&reply.json(), field.as_text().unwrap());
            names.insert(name.clone(), found.ok_or_else(|| format!("nothing to save as {name} in {reply:?}"))?);
        }
        return Ok(());
    }
}

fn send(call: &Value, people: &People, names: &Names) -> Reply {
    let session;
    let client = match text(call, "as") {
        "owner" => &people.ours.owner,
        "other" => &people.other,
        "admin" => &people.admin,
        "stranger" => &people.outsider,
        "nobody" => &people.nobody,
        "agent" => {
            session = people.ours.session_of(names.get("ex").expect("the execution is saved as `ex`"));
            &session
        }
        who => panic!("unknown person {who}"),
    };
    let body = match (call.get("body"), call.get("raw_body")) {
        (Some(body), _) => Some(named(&compact(body), names)),
        (None, raw) => raw.and_then(Value::as_text).map(ToString::to_string),
    };
    let headers = call.get("headers").and_then(Value::as_map);
    let headers: Vec<_> =
        headers.into_iter().flatten().map(|(key, value)| (key.as_str(), value.as_text().unwrap())).collect();
    client.send(text(call, "method"), &named(text(call, "path"), names), &headers, body.as_deref())
}

/// Each expectation has its own arm, so that an unknown one fails.
fn check(call: &Value, reply: &Reply, stands: bool) -> Result<(), String> {
    let body = reply.json();
    for (key, wanted) in call.as_map().unwrap() {
        let holds = match key.as_str() {
            "as" | "method" | "path" | "headers" | "body" | "raw_body" | "save" => true,
            "wait_for" => stands,
            "status" => match wanted {
                Value::List(any) => any.contains(&u64::from(reply.status).into()),
                one => *one == u64::from(reply.status).into(),
            },
            "has" => is_anywhere(&body, &|part| is_contained(wanted, part)),
            "has_not" => !is_anywhere(&body, &|part| is_contained(wanted, part)),
            "lacks_keys" => wanted.as_list().unwrap().iter().all(|key| first(&body, key.as_text().unwrap()).is_none()),
            "text_contains" => {
                wanted.as_list().unwrap().iter().all(|part| reply.text.contains(part.as_text().unwrap()))
            }
            other => return Err(format!("`{other}` is not understood")),
        };
        if !holds {
            return Err(format!("{key} does not hold: {}", compact(wanted)));
        }
    }
    Ok(())
}

fn text<'a>(call: &'a Value, key: &str) -> &'a str {
    call.get(key).and_then(Value::as_text).unwrap()
}

fn named(text: &str, names: &Names) -> String {
    names.iter().fold(text.to_string(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
}

/// True if `found` contains everything of `wanted`.
fn is_contained(wanted: &Value, found: &Value) -> bool {
    match (wanted, found) {
        (Value::Map(wanted), Value::Map(found)) => {
            wanted.iter().all(|(key, value)| found.get(key).is_some_and(|found| is_contained(value, found)))
        }
        _ => wanted == found,
    }
}

fn is_anywhere(value: &Value, holds: &dyn Fn(&Value) -> bool) -> bool {
    holds(value)
        || match value {
            Value::Map(map) => map.values().any(|part| is_anywhere(part, holds)),
            Value::List(list) => list.iter().any(|part| is_anywhere(part, holds)),
            _ => false,
        }
}

/// The first field with a name at any depth, the outermost first.
fn first(value: &Value, name: &str) -> Option<String> {
    let here = match value.get(name) {
        Some(Value::Text(text)) => Some(text.clone()),
        Some(Value::Null) | None => None,
        Some(other) => Some(compact(other)),
    };
    here.or_else(|| match value {
        Value::Map(map) => map.values().find_map(|part| first(part, name)),
        Value::List(list) => list.iter().find_map(|part| first(part, name)),
        _ => None,
    })
}
