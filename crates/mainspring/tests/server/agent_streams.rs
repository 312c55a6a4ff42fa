//! Streamed answers of models at a server: watchers see them grow, and journals do not hold the progress.

use mainspring_kernel::value::{Map, Value};

use super::{
    agents::{Model, ended},
    events::{Event, Watcher},
    process::everywhere,
    start::{save, start},
    support::yaml,
};

/// The texts of a progress event.
fn text_of(event: &Event) -> String {
    let texts = event.data.get("texts").and_then(Value::as_list).unwrap();
    texts.iter().map(|text| text.get("text").and_then(Value::as_text).unwrap()).collect()
}

/// The kinds of events with their positions.
fn durable(events: Vec<Event>) -> Vec<(String, String)> {
    events.into_iter().map(|event| (event.id, event.kind)).collect()
}

/// The model stops in the middle of its answer, so that everything before it has to arrive by progress.
#[test]
fn partial_answers_are_sent_to_watchers_that_request_them() {
    everywhere(|place| {
        let folder = tempfile::tempdir().unwrap();
        let script = format!(
            "answers: [{{text: 'Grüße \"an\" alle {}', stream: {{deltaChars: 1, chunkBytes: 50, hangAtByte: 20000}}}}]",
            "x".repeat(400)
        );
        let model = Model::start(folder.path(), &script);
        place.configure(&format!("models: {{test: {}}}\n", model.setting(", stream: true")));
        let server = place.start();
        let owner = server.owner();
        save(&owner, "says", yaml("[{id: ask, type: agent, goal: Say, maxTurns: 3}]"));
        let id = start(&owner, "says", "r1", Map::new()).expect(202).text_at("executionId");
        let mut watching = Watcher::of_progress(&owner, &id);
        let (mut seen, mut events) = (String::new(), Vec::new());
        while !seen.contains("alle") {
            let event = watching.next().unwrap();
            if event.kind != "step.progress" {
                events.push(event);
                continue;
            }
            assert_eq!(event.id, "", "it has no position in the journal");
            let text = &event.data.get("texts").and_then(Value::as_list).unwrap()[0];
            assert_eq!(text.get("stepId"), Some(&"ask#1".into()));
            assert_eq!(text.get("attempt"), Some(&1u32.into()));
            seen.push_str(&text_of(&event));
        }
        assert!(seen.starts_with("Grüße \"an\" alle"), "{seen}");
        // A watcher who comes late gets the text from its beginning.
        let mut late = Watcher::of_progress(&owner, &id);
        let first = std::iter::from_fn(|| late.next()).find(|event| event.kind == "step.progress").unwrap();
        assert!(text_of(&first).starts_with("Grüße"), "{first:?}");
        owner.post(&format!("/api/executions/{id}/cancel"), &Value::Map(Map::new())).expect(200);
        assert_eq!(ended(&owner, &id), "cancelled", "a cancel cuts the stream");
        events.extend(watching.all().into_iter().filter(|event| event.kind != "step.progress"));
        let plain = Watcher::new(&owner, &id, None).all();
        assert_eq!(durable(events), durable(plain), "progress takes no place among the events");
        assert_eq!(model.count(), 1);
    });
}

/// The same answers with and without streams give journals with the same events at the same positions.
#[test]
fn streaming_adds_nothing_to_the_journal() {
    everywhere(|place| {
        let folder = tempfile::tempdir().unwrap();
        let script = "answers:\n  - {toolCalls: [{name: nothing, arguments: {q: 'ä'}}], stream: {deltaChars: 1}}\n  \
                      - {text: 'All is „well“', stream: {deltaChars: 1, chunkBytes: 9}}\n";
        let model = Model::start(folder.path(), script);
        place.configure(&format!(
            "models:\n  streamed: {}\n  complete: {}\n",
            model.setting(", stream: true"),
            model.setting(", stream: false, default: true")
        ));
        let server = place.start();
        let owner = server.owner();
        let of = |name: &str| {
            save(&owner, name, yaml(&format!("[{{id: ask, type: agent, goal: Say, maxTurns: 3, model: {name}}}]")));
            let id = start(&owner, name, name, Map::new()).expect(202).text_at("executionId");
            assert_eq!(ended(&owner, &id), "completed", "{}", owner.get(&format!("/api/executions/{id}/steps")).text);
            let usage = owner.get(&format!("/api/executions/{id}")).expect(200).json().get("usage").cloned();
            (durable(Watcher::of_progress(&owner, &id).all()), usage.and_then(|usage| usage.get("used").cloned()))
        };
        let (streamed, complete) = (of("streamed"), of("complete"));
        assert_eq!(streamed.0, complete.0);
        let tokens = |used: &Option<Value>| used.as_ref().and_then(|used| used.get("tokens").cloned());
        assert_eq!(tokens(&streamed.1), tokens(&complete.1));
        assert!(tokens(&complete.1).is_some());
    });
}
