//! Proposals that a scripted model writes: right answers, wrong ones that are fixed, and hostile ones.

use std::{
    fs,
    path::Path,
    process::Command,
    sync::{Arc, Mutex},
};

use mainspring_kernel::{
    definition::{Syntax, read},
    json::{self, compact},
    value::Value,
};

use super::{
    agents::Model,
    client::{Client, Reply},
    fault_proxy::{Between, Fault},
    process::{Server, everywhere},
    start::start,
    support::{MAINSPRING, call},
};

const BASE: &str = "{constraints: {allowSelfModification: true}, steps: [{id: ask, type: approval, prompt: Ship?}, \
     {id: wait, type: sleep, durationMs: 1}]}";

/// The definition that right answers have: another duration.
const CHANGED: &str = "{constraints: {allowSelfModification: true}, steps: [{id: ask, type: approval, prompt: Ship?}, \
     {id: wait, type: sleep, durationMs: 2}]}";

fn value(text: &str) -> Value {
    read(text.as_bytes(), Syntax::Yaml).unwrap().value
}

/// The text of an answer with a definition.
fn answer(definition: &str) -> String {
    let rationale = "One millisecond is too short.";
    let parts = [("workflow", value(definition)), ("summary", "Waits longer.".into()), ("rationale", rationale.into())];
    compact(&Value::map(parts))
}

/// The script of a model with these answers. The second and each later one has to follow a text.
fn script(answers: &[(&str, String)]) -> String {
    let entry = |(when, text): &(&str, String)| {
        let when = Some(*when).filter(|when| !when.is_empty()).map(|when| ("when", Value::from(when)));
        Value::map([("text", Value::from(text.as_str()))].into_iter().chain(when))
    };
    compact(&Value::map([("answers", Value::List(answers.iter().map(entry).collect()))]))
}

fn model(folder: &Path, name: &str, answers: &[(&str, String)]) -> (String, Model) {
    let folder = folder.join(name);
    fs::create_dir_all(&folder).unwrap();
    (name.into(), Model::start(&folder, &script(answers)))
}

/// The settings with these models, the first of which is the default.
fn settings(models: &[(String, Model)]) -> String {
    let setting = |(at, (name, model)): (usize, &(String, Model))| {
        format!("  {name}: {}\n", model.setting(if at == 0 { ", default: true" } else { "" }))
    };
    let default = &models[0].0;
    let prices =
        format!("prices: {{date: 2026-11-01, currency: USD, models: {{{default}: {{input: 3, output: 15}}}}}}\n");
    let policy = "policy: {verdicts: {message: allow, execute: deny}}\n";
    let models: String = models.iter().enumerate().map(setting).collect();
    format!("models:\n{models}{prices}{policy}")
}

fn sync(client: &Client, id: &str, definition: &str) -> String {
    let body = Value::map([("id", Value::from(id)), ("data", value(definition))]);
    client.post("/api/workflows/sync", &body).expect(200).text_at("workflowHash")
}

fn write(client: &Client, workflow: &str, more: &[(&'static str, &str)]) -> Reply {
    let fields = more.iter().map(|(key, text)| (*key, Value::from(*text)));
    let body = Value::map([("intent", Value::from("Wait longer."))].into_iter().chain(fields));
    client.post(&format!("/api/workflows/{workflow}/proposals/write"), &body)
}

fn proposals(client: &Client, workflow: &str) -> usize {
    let page = client.get(&format!("/api/workflows/{workflow}/proposals")).expect(200).json();
    page.get("proposals").and_then(Value::as_list).unwrap().len()
}

/// The entries of the audit log about calls of models, as action and detail.
fn calls(client: &Client) -> Vec<(String, Value)> {
    let log = client.get("/api/audit?limit=200").expect(200).json();
    let entries = log.get("entries").and_then(Value::as_list).unwrap().iter();
    let of = |entry: &Value| {
        (entry.get("action").unwrap().as_text().unwrap().to_string(), entry.get("detail").unwrap().clone())
    };
    entries.map(of).filter(|(action, _)| action.starts_with("proposal.model")).collect()
}

fn text<'a>(value: &'a Value, path: &[&str]) -> &'a str {
    path.iter().fold(value, |value, key| value.get(key).unwrap_or(&Value::Null)).as_text().unwrap_or_default()
}

fn codes(created: &Value) -> Vec<String> {
    let findings = created.get("report").and_then(|report| report.get("findings")).and_then(Value::as_list).unwrap();
    findings.iter().map(|finding| text(finding, &["code"]).to_string()).collect()
}

fn code(reply: Reply) -> (u16, String) {
    (reply.status, reply.text_at("code"))
}

/// A definition with a key that no step has.
const UNKNOWN: &str = "{constraints: {allowSelfModification: true}, steps: [{id: wait, type: sleep, duration: 2}]}";

#[test]
fn prose_becomes_a_proposal_and_mistakes_are_fixed() {
    everywhere(|place| {
        let folder = tempfile::tempdir().unwrap();
        let models = [
            model(folder.path(), "right", &[("", answer(CHANGED))]),
            model(
                folder.path(),
                "fixed",
                &[("", "Done!".into()), ("no JSON object", answer(UNKNOWN)), ("unknown_key", answer(CHANGED))],
            ),
            model(
                folder.path(),
                "wrong",
                &[("", answer(UNKNOWN)), ("", "no".into()), ("", answer(BASE)), ("", answer(CHANGED))],
            ),
        ];
        place.configure(&settings(&models));
        let server = place.start();
        let owner = server.owner();
        let base = sync(&owner, "w", BASE);

        let created = write(&owner, "w", &[("baseWorkflowHash", &base)]).expect(201).json();
        assert_eq!(text(&created, &["status"]), "pending");
        assert_eq!(text(&created, &["proposal", "summary"]), "Waits longer.");
        assert_eq!(text(&created, &["proposal", "rationale"]), "One millisecond is too short.");
        assert_eq!(text(&created, &["report", "risk"]), "low", "{created:?}");
        assert_eq!(text(&created, &["proposedBy"]), "owner");
        let written = created.get("proposal").and_then(|change| change.get("written")).unwrap();
        assert_eq!((text(written, &["intent"]), text(written, &["model"])), ("Wait longer.", "m"));
        assert_eq!(written.get("calls").and_then(Value::as_u64), Some(1));
        assert_eq!(created.get("proposal").unwrap().get("proposedWorkflow"), Some(&value(CHANGED)));
        assert_eq!(owner.get("/api/workflows/w").expect(200).text_at("workflowHash"), base, "nothing is applied");
        let logged = calls(&owner);
        assert_eq!(
            logged.iter().map(|(action, _)| action.as_str()).collect::<Vec<_>>(),
            ["proposal.model_call", "proposal.model_answer"]
        );
        assert!(text(&logged[0].1, &["request"]).starts_with("sha256:"), "{logged:?}");
        assert!(text(&logged[1].1, &["answer"]).starts_with("sha256:"), "{logged:?}");
        // The scripted model counts 10 tokens of the request and 5 of the answer.
        let used = json::value(br#"{"tokens": 15, "cost": 0.000105, "currency": "USD"}"#).unwrap();
        assert_eq!(logged[1].1.get("used"), Some(&used), "{logged:?}");
        let reserved = logged[0].1.get("reserved").unwrap();
        assert!(reserved.get("tokens").and_then(Value::as_u64).unwrap() > 10_000, "{reserved:?}");

        let fixed = write(&owner, "w", &[("model", "fixed")]).expect(201).json();
        assert_eq!(
            fixed
                .get("proposal")
                .and_then(|change| change.get("written"))
                .unwrap()
                .get("calls")
                .and_then(Value::as_u64),
            Some(3)
        );
        assert_eq!(text(&fixed, &["proposedWorkflowHash"]), text(&created, &["proposedWorkflowHash"]));

        let before = proposals(&owner, "w");
        let failed = write(&owner, "w", &[("model", "wrong")]).expect(502);
        assert_eq!(failed.text_at("code"), "MODEL_FAILED");
        for part in ["no usable change in 3 answers", "nothing is changed"] {
            assert!(failed.text_at("error").contains(part), "{failed:?}");
        }
        assert_eq!((proposals(&owner, "w"), models[2].1.count()), (before, 3), "three calls and no proposal");
        assert_eq!(calls(&owner).len(), 14, "seven calls, each with its answer");
    });
}

#[test]
fn hostile_answers_are_data() {
    let folder = tempfile::tempdir().unwrap();
    let large = format!("{{\"workflow\": {{\"steps\": []}}, \"summary\": \"{}\"}}", "x".repeat(240 * 1024));
    let bomb: String = (1..60).map(|n| format!("a{n}: &a{n} [*a{0}, *a{0}, *a{0}]\n", n - 1)).collect();
    let bomb = format!("a0: &a0 [x]\n{bomb}workflow: {{steps: *a59}}\nsummary: s\n");
    let approves = answer(CHANGED).replacen('{', r#"{"approve": true, "status": "approved", "#, 1);
    let bare = "{constraints: {allowSelfModification: true}, steps: [{id: wait, type: sleep, durationMs: 1}]}";
    let hidden = CHANGED.replace("Ship?", "Ship\u{202e}?");
    let denied = CHANGED.replace("type: sleep, durationMs: 2", "type: bash, command: id");
    let three = |text: &str| [("", text.to_string()), ("", text.to_string()), ("", text.to_string())];
    let models = [
        model(folder.path(), "bare", &[("", answer(bare))]),
        model(folder.path(), "large", &three(&large)),
        model(folder.path(), "bomb", &three(&bomb)),
        model(folder.path(), "approves", &three(&approves)),
        model(folder.path(), "hidden", &[("", answer(&hidden))]),
        model(folder.path(), "denied", &three(&answer(&denied))),
    ];
    let server_folder = tempfile::tempdir().unwrap();
    let config = server_folder.path().join(".config/mainspring");
    fs::create_dir_all(&config).unwrap();
    fs::write(config.join("config.yaml"), settings(&models)).unwrap();
    let server = Server::start(server_folder.path());
    let owner = server.owner();
    let base = sync(&owner, "w", BASE);
    for (name, calls) in [("large", 1), ("bomb", 3), ("approves", 3), ("denied", 3)] {
        let failed = write(&owner, "w", &[("model", name)]);
        assert_eq!((failed.status, failed.text_at("code").as_str()), (502, "MODEL_FAILED"), "{name}: {failed:?}");
        let asked = models.iter().find(|(known, _)| known == name).unwrap().1.count();
        assert_eq!((asked, proposals(&owner, "w")), (calls, 0), "{name}");
    }
    let failed = |name: &str| write(&owner, "w", &[("model", name)]).text_at("error");
    assert!(failed("denied").contains("policy_denied") && failed("approves").contains("`approve` is no key"));
    let removed = write(&owner, "w", &[]).expect(201).json();
    assert!(codes(&removed).contains(&"gate_removed".to_string()), "{removed:?}");
    assert_eq!((text(&removed, &["report", "risk"]), text(&removed, &["status"])), ("high", "pending"));
    let hidden = write(&owner, "w", &[("model", "hidden")]).expect(201).json();
    assert!(codes(&hidden).contains(&"hidden_text".to_string()), "{hidden:?}");
    assert_eq!(owner.get("/api/workflows/w").expect(200).text_at("workflowHash"), base);
}

#[test]
fn only_people_request_written_proposals() {
    let folder = tempfile::tempdir().unwrap();
    let models = [model(folder.path(), "right", &[("", answer(CHANGED))])];
    let server_folder = tempfile::tempdir().unwrap();
    let config = server_folder.path().join(".config/mainspring");
    fs::create_dir_all(&config).unwrap();
    fs::write(config.join("config.yaml"), settings(&models)).unwrap();
    let server = Server::start(server_folder.path());
    let owner = server.owner();
    sync(&owner, "w", BASE);
    sync(&owner, "closed", "{steps: [{id: wait, type: sleep, durationMs: 1}]}");
    let token = |fields: &[(&'static str, &str)]| {
        let fields = fields.iter().map(|(key, text)| (*key, Value::from(*text)));
        let made = owner.post("/api/tokens", &Value::map([("name", Value::from("t"))].into_iter().chain(fields)));
        server.client(&made.expect(201).text_at("token"))
    };
    owner.put("/api/members/robot", &Value::map([("role", "agent".into())])).expect(200);
    owner.put("/api/members/reader", &Value::map([("role", "viewer".into())])).expect(200);
    let execution = start(&owner, "w", "r", mainspring_kernel::value::Map::new()).text_at("executionId");
    for client in [token(&[("userId", "robot")]), token(&[("userId", "reader")]), token(&[("sessionOf", &execution)])] {
        assert_eq!(code(write(&client, "w", &[])).0, 403);
    }
    assert_eq!(code(write(&owner, "closed", &[])), (409, "CONFLICT".into()));
    assert_eq!(code(write(&owner, "none", &[])), (404, "NOT_FOUND".into()));
    let other = format!("sha256:{}", "0".repeat(64));
    assert_eq!(code(write(&owner, "w", &[("baseWorkflowHash", &other)])), (409, "CONFLICT".into()));
    for (key, text) in [
        ("model", "other"),
        ("intent", " "),
        ("intent", &"x".repeat(4_001)),
        ("approve", "yes"),
        ("model", &"m".repeat(201)),
    ] {
        assert_eq!(code(write(&owner, "w", &[(key, text)])), (400, "VALIDATION_ERROR".into()), "{key}");
    }
    assert_eq!((models[0].1.count(), calls(&owner).len()), (0, 2), "the unknown model is asked in vain");
    let plain = tempfile::tempdir().unwrap();
    let server = Server::start(plain.path());
    sync(&server.owner(), "w", BASE);
    let refused = write(&server.owner(), "w", &[]);
    assert!(refused.text_at("error").contains("no model is configured"), "{refused:?}");
    assert_eq!(code(refused), (501, "NOT_AVAILABLE".into()));
}

type SharedWork = Arc<Mutex<Option<Box<dyn FnOnce() + Send>>>>;

/// A model behind a proxy that does something once, while the first call of a conversation is in progress.
struct Interrupted {
    model: Model,
    proxy: Between,
    work: SharedWork,
}

impl Interrupted {
    fn start(folder: &Path, name: &str, answers: &[(&str, String)]) -> Self {
        let model = model(folder, name, answers).1;
        let work: SharedWork = Arc::default();
        let shared = work.clone();
        let proxy = Between::new(&model.address, move |_, _| {
            if let Some(work) = shared.lock().unwrap().take() {
                work();
            }
            Fault::Pass
        });
        Self { model, proxy, work }
    }
}

#[test]
fn a_credential_that_is_revoked_during_a_call_proposes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let models = [
        Interrupted::start(folder.path(), "right", &[("", answer(CHANGED))]),
        Interrupted::start(folder.path(), "fixed", &[("", "no".into()), ("", answer(CHANGED))]),
    ];
    let setting =
        |model: &Interrupted| format!("{{provider: openai, model: m, baseUrl: 'http://{}/v1'}}", model.proxy.address);
    let server_folder = tempfile::tempdir().unwrap();
    let config = server_folder.path().join(".config/mainspring");
    fs::create_dir_all(&config).unwrap();
    let configuration = format!("models: {{right: {}, fixed: {}}}\n", setting(&models[0]), setting(&models[1]));
    fs::write(config.join("config.yaml"), configuration).unwrap();
    let server = Server::start(server_folder.path());
    let owner = server.owner();
    sync(&owner, "w", BASE);
    for (model, name) in models.iter().zip(["right", "fixed"]) {
        let made = owner.post("/api/tokens", &Value::map([("name", Value::from("t"))])).expect(201);
        let (by, id, caller) = (owner.clone(), made.text_at("id"), server.client(&made.text_at("token")));
        *model.work.lock().unwrap() = Some(Box::new(move || {
            by.send("DELETE", &format!("/api/tokens/{id}"), &[], None).expect(204);
        }));
        let refused = write(&caller, "w", &[("model", name)]).expect(401);
        let why = refused.text_at("error");
        assert!(
            why.contains("after 1 call of a model") && why.contains("revoked or has expired"),
            "{name}: {refused:?}"
        );
        assert_eq!((proposals(&owner, "w"), model.model.count()), (0, 1), "{name}: one call and no proposal");
    }
    owner.put("/api/members/ann", &Value::map([("role", "admin".into())])).expect(200);
    let token = Value::map([("name", Value::from("t")), ("userId", "ann".into())]);
    let ann = server.client(&owner.post("/api/tokens", &token).expect(201).text_at("token"));
    let by = owner.clone();
    *models[0].work.lock().unwrap() = Some(Box::new(move || {
        by.put("/api/members/ann", &Value::map([("role", "viewer".into())])).expect(200);
    }));
    let refused = write(&ann, "w", &[("model", "right")]).expect(403);
    assert!(refused.text_at("error").contains("`proposals:write`"), "{refused:?}");
    assert_eq!(proposals(&owner, "w"), 0);
    let written = write(&owner, "w", &[("model", "right")]).expect(201).json();
    assert_eq!(text(&written, &["status"]), "pending", "without a change the same model proposes");
}

#[test]
fn the_command_proposes_from_prose() {
    let folder = tempfile::tempdir().unwrap();
    let models = [
        model(folder.path(), "right", &[("", answer(CHANGED))]),
        model(folder.path(), "wrong", &[("", "a".into()), ("", "b".into()), ("", "c".into())]),
    ];
    let server_folder = tempfile::tempdir().unwrap();
    let config = server_folder.path().join(".config/mainspring");
    fs::create_dir_all(&config).unwrap();
    fs::write(config.join("config.yaml"), settings(&models)).unwrap();
    let server = Server::start(server_folder.path());
    let owner = server.owner();
    sync(&owner, "w", BASE);
    let run = |arguments: &[&str]| {
        let mut command = Command::new(MAINSPRING);
        command.args(arguments).env("MAINSPRING_SERVER", format!("http://{}", server.address));
        command.env("MAINSPRING_TOKEN", owner.token()).env("HOME", folder.path());
        call(command, b"")
    };
    let proposed = run(&["propose", "w", "Wait longer."]);
    assert_eq!(proposed.exit, Some(0), "{proposed:?}");
    for part in
        ["Waits longer.", "One millisecond", "risk: low", "written by m in 1 answer, 15 tokens", "approve w pr-"]
    {
        assert!(proposed.stdout.contains(part), "{part}: {proposed:?}");
    }
    let failed = run(&["propose", "w", "Wait longer.", "--model", "wrong"]);
    assert!(failed.exit == Some(40) && failed.stderr.contains("no usable change"), "{failed:?}");
    for arguments in
        [&["propose", "w"][..], &["propose", "w", "x", "--from", "y"], &["propose", "w", "x", "--summary", "s"]]
    {
        assert!(matches!(run(arguments).exit, Some(10 | 20)), "{arguments:?}");
    }
}
