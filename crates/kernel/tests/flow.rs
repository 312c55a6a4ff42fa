//! Tests of labels: sources, ways through a plan, calls, and what removes a label.

mod corpus;

use std::{collections::BTreeMap, sync::Arc};

use mainspring_kernel::{
    definition::{Compiled, Syntax, compile, flow_warnings, read},
    document::Document,
    effect_policy::EffectPolicy,
    flow::Surroundings,
    label::Label,
    plan::{Plan, Verdict},
};

fn compiled(steps: &str) -> (Compiled, Document) {
    let is_whole = steps.starts_with("steps:") || steps.starts_with("variables:");
    let text = if is_whole { steps.to_owned() } else { format!("steps:\n{steps}") };
    let document = read(text.as_bytes(), Syntax::Yaml).expect("it reads");
    (compile(&document).unwrap_or_else(|found| panic!("{text}: {found:?}")), document)
}

fn policy(text: &str) -> EffectPolicy {
    let document = read(text.as_bytes(), Syntax::Yaml).expect("it reads");
    EffectPolicy::read(&document.value).expect("a policy").with_servers(["s", "own"].map(String::from))
}

/// The labels of the output of a step, each with its origin.
fn labels(plan: &Plan, policy: &EffectPolicy, step: &str) -> String {
    let number = plan.number_of(step).expect("a step");
    let flows = policy.labels(plan);
    let found = Label::ALL
        .into_iter()
        .filter_map(|label| Some(format!("{label}: {}", flows.of_output(number).get(label)?.words(plan))));
    found.collect::<Vec<_>>().join("; ")
}

#[track_caller]
fn check(steps: &str, step: &str, expected: &str) {
    let (compiled, _) = compiled(steps);
    assert_eq!(labels(&compiled.plan, &policy("{trusted: [own]}"), step), expected, "{steps}");
}

const HTTP: &str = "- {id: get, type: http, url: 'https://a.test'}\n";

#[test]
fn labels_begin_at_their_sources() {
    for (step, expected) in [
        ("type: http, url: 'https://a.test'", "untrusted: the output of `x` (http)"),
        ("type: tool, tool: s.get", "untrusted: the output of `x` (tool)"),
        ("type: tool, tool: own.get", ""),
        ("type: tool, tool: get", "untrusted: the output of `x` (tool)"),
        ("type: agent, goal: Look", "untrusted: the output of `x` (agent)"),
        ("type: agent, goal: Look, tools: [s.get]", "untrusted: the output of `x` (agent)"),
        ("type: signal, signal: go", "untrusted: the output of `x` (signal)"),
        ("type: subworkflow, workflow: other", "untrusted: the output of `x` (subworkflow)"),
        ("type: bash, command: date", ""),
        ("type: bash, command: 'echo \"$A\"', env: {A: '@vars.plain'}", ""),
        ("type: bash, command: 'echo \"$A\"', env: {A: '@vars.secret'}", "private: the variable `secret`"),
        ("type: bash, command: 'echo \"$A\"', env: {A: '@vars'}", "private: the variable `secret`"),
        ("type: approval, prompt: '@vars.secret'", ""),
        ("type: sleep, durationMs: 1", ""),
        ("type: http, url: 'https://a.test', trust: trusted", ""),
        ("type: bash, command: 'echo \"$A\"', env: {A: '@vars.secret'}, trust: [trusted, public]", ""),
        (
            "type: bash, command: 'echo \"$A\"', env: {A: '@vars.secret'}, trust: trusted",
            "private: the variable `secret`",
        ),
    ] {
        let variables = "variables: {plain: {}, secret: {private: true}}";
        check(&format!("{variables}\nsteps:\n- {{id: x, {step}}}"), "x", expected);
    }
}

#[test]
fn labels_follow_references() {
    let untrusted = "untrusted: the output of `get` (http)";
    for (steps, step, expected) in [
        ("- {id: x, type: code, code: 'export default x => x', input: {a: ['@get.body.b']}}", "x", untrusted),
        ("- {id: x, type: bash, command: 'echo @get.body'}", "x", untrusted),
        (
            "- {id: a, type: code, code: 'export default x => x', input: 'at @get.status'}\n- {id: x, type: bash, command: 'echo @a'}",
            "x",
            untrusted,
        ),
        (
            "- {id: x, type: code, code: 'export default x => x', input: '@item', forEach: {ref: '@get.body'}}",
            "x",
            untrusted,
        ),
        (
            "- {id: x, type: loop, forEach: {ref: '@get.body'}, steps: [{id: y, type: bash, command: 'echo @item.a'}]}",
            "y",
            untrusted,
        ),
        (
            "- {id: x, type: loop, forEach: {ref: '@get.body'}, steps: [{id: y, type: bash, command: 'echo @item.a'}]}",
            "x",
            untrusted,
        ),
        (
            "- {id: x, type: parallel, steps: [{id: y, type: bash, command: 'echo @get.body'}, {id: z, type: bash, command: date}]}",
            "x",
            untrusted,
        ),
        (
            "- {id: x, type: parallel, steps: [{id: y, type: bash, command: 'echo @get.body'}, {id: z, type: bash, command: date}]}",
            "z",
            "",
        ),
        (
            "- {id: x, type: conditional, condition: {ref: '@get.status', eq: 200}, then: [{id: y, type: bash, command: date}]}",
            "x",
            "",
        ),
        ("- {id: x, type: bash, command: date, when: {ref: '@get.status', eq: 200}}", "x", ""),
        (
            "- {id: a, type: bash, command: 'echo @get.body', trust: trusted}\n- {id: x, type: bash, command: 'echo @a'}",
            "x",
            "",
        ),
    ] {
        check(&format!("{HTTP}{steps}"), step, expected);
    }
    // A loop that reads its last round.
    let rounds = "steps:\n- {id: x, type: loop, while: {ref: '@index', lt: 3}, maxRounds: 3, steps: [{id: y, type: http, url: 'https://a.test'}, {id: z, type: bash, command: 'echo @y.body'}]}";
    check(rounds, "z", "untrusted: the output of `y` (http)");
}

/// The verdict of a rule for a labeled value, or `warning`, or nothing.
fn flow(policy_text: &str, definition: &str) -> String {
    let (compiled, document) = compiled(definition);
    let policy = policy(policy_text);
    let found = policy.flows(&compiled.plan, Some("acme"));
    assert_eq!(flow_warnings(&compiled, &document, &policy, Some("acme")).len(), found.len());
    let said = found.iter().map(|flow| {
        let verdict = flow.verdict.map_or("warning", Verdict::name);
        format!("{} {} {verdict}", compiled.plan.id(flow.step), flow.label)
    });
    said.collect::<Vec<_>>().join(", ")
}

#[test]
fn each_label_is_judged_at_each_call() {
    let variables = "variables: {token: {private: true}}\nsteps:\n";
    let call = |call: &str| format!("{variables}{HTTP}- {{id: x, {call}}}");
    let pay = call("type: tool, tool: s.pay, arguments: {a: '@get.body'}");
    let say = call("type: tool, tool: s.say, arguments: {a: '@vars.token'}");
    let script = call("type: bash, command: 'echo @get.body'");
    let foreign = call("type: http, method: POST, url: 'https://b.test/x', body: '@vars.token'");
    let delete = call("type: http, method: DELETE, url: 'https://b.test/@{get.body.id}'");
    let classes = "classes: {s.pay: payment, s.say: message, s.get: read}";
    let allowed = format!("{{{classes}, verdicts: {{s.pay: allow, s.say: allow}}}}");
    let asks = format!("{{{classes}}}");
    let rules = |flows: &str| format!("{{{classes}, verdicts: {{s.pay: allow, s.say: allow}}, flows: {flows}}}");
    for (policy, definition, expected) in [
        (allowed.clone(), &pay, "x untrusted warning"),
        (asks.clone(), &pay, ""),
        (allowed.clone(), &say, "x private warning"),
        (asks.clone(), &say, ""),
        (allowed.clone(), &script, ""),
        (allowed.clone(), &delete, ""),
        (allowed.clone(), &foreign, "x private warning"),
        (rules("{hosts: [b.test]}"), &foreign, ""),
        (rules("{private: {foreign: deny}}"), &foreign, "x private deny"),
        (rules("{private: {foreign: deny}, hosts: ['*.test']}"), &foreign, ""),
        (rules("{private: {message: ask}}"), &say, "x private ask"),
        (rules("{untrusted: {execute: ask}}"), &script, "x untrusted ask"),
        (rules("{untrusted: {execute: allow}}"), &script, ""),
        (rules("{untrusted: {payment: deny}}"), &pay, "x untrusted deny"),
        (rules("{}"), &pay, ""),
    ] {
        assert_eq!(flow(&policy, definition), expected, "{policy}\n{definition}");
    }
    // A value that chooses the host of a deletion, and a model that reads untrusted text and may delete.
    let host = call("type: http, method: DELETE, url: '@get.body.url'");
    assert_eq!(flow("{}", &host), "x untrusted warning");
    let agent = call("type: agent, goal: '@get.body', tools: [http]");
    assert_eq!(flow("{}", &agent).matches("untrusted warning").count(), 1);
    let agent = "steps:\n- {id: x, type: agent, goal: Look, tools: [bash]}";
    assert_eq!(flow("{}", agent), "");
    assert_eq!(flow("{flows: {untrusted: {execute: ask}}}", agent).matches("untrusted ask").count(), 1);
}

#[test]
fn a_rule_for_labels_guards_the_call_and_a_stored_plan_keeps_it() {
    let (compiled, _) = compiled(&format!("{HTTP}- {{id: x, type: bash, command: 'echo @get.body', trust: trusted}}"));
    let plan = Arc::new(compiled.plan);
    for (verdict, is_denied) in [("ask", false), ("deny", true)] {
        let policy = policy(&format!("{{flows: {{untrusted: {{execute: {verdict}}}}}}}"));
        let guarded = policy.guarded(&plan, None);
        let guard = guarded.step(1).guard.expect("a guard");
        assert_eq!((guard.label, guard.is_denied), (Some(Label::Untrusted), is_denied));
        assert_eq!(guarded.step(0).guard, None);
        assert_eq!(Plan::decode(&guarded.encode()).unwrap(), *guarded);
        assert_eq!(policy.denied(&plan, None).len(), usize::from(is_denied));
    }
    assert_eq!(policy("{}").guarded(&plan, None).step(1).guard, None);
}

#[test]
fn mistakes_in_rules_and_in_trust_are_named() {
    for (text, place) in [
        ("{flows: {unknown: {}}}", "policy.flows.unknown"),
        ("{flows: {untrusted: {foreign: ask}}}", "policy.flows.untrusted.foreign"),
        ("{flows: {untrusted: {execute: maybe}}}", "policy.flows.untrusted.execute"),
        ("{flows: {hosts: a.test}}", "policy.flows.hosts"),
        ("{flows: 1}", "policy.flows"),
    ] {
        let value = read(text.as_bytes(), Syntax::Yaml).unwrap().value;
        let errors = EffectPolicy::read(&value).unwrap_err();
        assert_eq!(errors[0].path, place, "{text}");
    }
    for trust in ["yes", "[]", "[trusted, secret]", "true"] {
        let text = format!("steps: [{{id: a, type: bash, command: date, trust: {trust}}}]");
        let found = compile(&read(text.as_bytes(), Syntax::Yaml).unwrap()).unwrap_err();
        assert_eq!((found[0].code, found[0].path.to_string().as_str()), ("wrong_value", "steps[0].trust"), "{trust}");
    }
}

/// Warnings are rare: no example and no given case has one.
#[test]
fn no_definition_of_the_corpus_has_a_warning() {
    let policy = EffectPolicy::default();
    let mut count = 0;
    for (name, definition) in corpus::all() {
        let document = Document::placeless(definition);
        let Ok(compiled) = compile(&document) else { continue };
        let found = flow_warnings(&compiled, &document, &policy, None);
        assert!(found.is_empty(), "{name}: {found:?}");
        count += 1;
    }
    assert!(count > 100, "{count}");
}

/// The verdicts of the calls `x` of a root and of the workflows `a` and `b`.
fn in_a_tree(policy_text: &str, [root, a, b]: [&str; 3]) -> [&'static str; 3] {
    let plan = |text: &str| Arc::new(compiled(text).0.plan);
    let policy = policy(policy_text);
    let (root, workflows) = (plan(root), BTreeMap::from([("a".to_owned(), plan(a)), ("b".to_owned(), plan(b))]));
    let tree = policy.surroundings(&root, &workflows).unwrap();
    let verdict = |plan: &Arc<Plan>, around: Surroundings| {
        let guarded = policy.guarded_within(plan, None, &around);
        let guard = guarded.number_of("x").and_then(|step| guarded.step(step).guard);
        guard.map_or("allow", |guard| guard.verdict().name())
    };
    [verdict(&root, tree.of_root()), verdict(&workflows["a"], tree.of("a")), verdict(&workflows["b"], tree.of("b"))]
}

#[test]
fn labels_pass_into_and_out_of_children() {
    let policy = "{classes: {s.pay: payment}, verdicts: {s.pay: allow}, \
                  flows: {untrusted: {payment: deny}, private: {foreign: ask}, hosts: [own.test]}}";
    let none = "- {id: none, type: sleep, durationMs: 1}";
    let pay = |of: &str| format!("- {{id: x, type: tool, tool: s.pay, arguments: {{a: '{of}'}}}}");
    let send = "- {id: x, type: http, method: POST, url: 'https://foreign.test', body: '@input'}";
    let secret = "variables: {secret: {private: true}}\nsteps:\n";
    let start =
        |name: &str, of: &str| format!("- {{id: go, type: subworkflow, workflow: {name}, input: {{v: '{of}'}}}}\n");
    let sends_result =
        format!("{}- {{id: x, type: http, method: POST, url: 'https://foreign.test', body: '@go'}}", start("a", "1"));
    for (root, a, b, expected) in [
        (start("a", "@input.v"), pay("@input.v"), none.into(), ["allow", "allow", "allow"]),
        // Untrusted values go down, through another workflow too.
        (format!("{HTTP}{}", start("a", "@get.body")), pay("@input.v"), none.into(), ["allow", "deny", "allow"]),
        (
            format!("{HTTP}{}", start("a", "@get.body")),
            start("b", "@input.v"),
            pay("@input.v"),
            ["allow", "allow", "deny"],
        ),
        (
            format!("{HTTP}- {{id: go, type: subworkflow, workflow: a, variables: {{v: '@get.body'}}}}"),
            pay("@vars.v"),
            none.into(),
            ["allow", "deny", "allow"],
        ),
        (
            "- {id: go, type: agent, goal: Pay, tools: [{workflow: a}]}".into(),
            pay("@input.v"),
            none.into(),
            ["allow", "deny", "allow"],
        ),
        // A step that vouches for its output stops them.
        (
            format!(
                "{HTTP}- {{id: c, type: code, code: 'export default x => x', input: '@get.body', trust: trusted}}\n{}",
                start("a", "@c")
            ),
            pay("@input.v"),
            none.into(),
            ["allow", "allow", "allow"],
        ),
        // A circle of workflows ends.
        (
            start("a", "@input.v"),
            format!("{HTTP}{}", start("b", "@get.body")),
            format!("{}{}", start("a", "@input.v"), pay("@input.v")),
            ["allow", "allow", "deny"],
        ),
        // Private values go down and come up.
        (format!("{secret}{}", start("a", "@vars.secret")), send.into(), none.into(), ["allow", "ask", "allow"]),
        (
            sends_result.clone(),
            format!("{secret}- {{id: r, type: return, input: '@vars.secret'}}"),
            none.into(),
            ["ask", "allow", "allow"],
        ),
        (
            sends_result.clone(),
            start("b", "1"),
            format!("{secret}- {{id: r, type: http, url: 'https://own.test/@vars.secret', outputVariable: o}}"),
            ["ask", "allow", "allow"],
        ),
    ] {
        assert_eq!(in_a_tree(policy, [&root, &a, &b]), expected, "{root}\n{a}\n{b}");
    }
}

/// The number of follows for a chain of workflows, in which an untrusted value goes down and a private one comes up.
fn follows_in_a_chain(length: usize, name: impl Fn(usize) -> String) -> usize {
    let plan = |text: &str| Arc::new(compiled(text).0.plan);
    let start = |of: &str, at: usize| format!("- {{id: go, type: subworkflow, workflow: {}, input: '{of}'}}", name(at));
    let root = plan(&format!("{HTTP}{}", start("@get.body", 0)));
    let last = length - 1;
    let link = |at: usize| match at == last {
        true => plan("variables: {v: {private: true}}\nsteps: [{id: r, type: return, input: '@vars.v'}]"),
        false => plan(&format!("steps:\n{}\n- {{id: r, type: return, input: '@go'}}", start("@input", at + 1))),
    };
    let workflows: BTreeMap<String, Arc<Plan>> = (0..length).map(|at| (name(at), link(at))).collect();
    let tree = policy("{flows: {untrusted: {payment: deny}}}").surroundings(&root, &workflows).unwrap();
    assert!(tree.of(&name(last)).input.untrusted.is_some(), "the value goes all the way down");
    assert!(tree.of_root().private_workflows.contains(&name(0)), "and all the way up");
    tree.follows()
}

/// Each workflow is followed once on the way down, and each that starts another one once more on the way up.
#[test]
fn analysis_of_a_chain_is_linear_in_both_orders() {
    for length in [2, 50, 300] {
        let orders: [&dyn Fn(usize) -> String; 2] = [&|at| format!("w{at:03}"), &|at| format!("w{:03}", 999 - at)];
        for name in orders {
            assert_eq!(follows_in_a_chain(length, name), 2 * length + 1, "{length}");
        }
    }
}

/// A workflow that starts all links of a chain waits until the last of them is followed.
#[test]
fn a_workflow_that_starts_many_others_is_followed_twice() {
    let plan = |text: &str| Arc::new(compiled(text).0.plan);
    let start = |at: usize| format!("- {{id: s{at}, type: subworkflow, workflow: w{at}}}\n");
    let root = plan(&format!("steps:\n{}", (0..40).map(start).collect::<String>()));
    let link = |at: usize| match at == 39 {
        true => plan("variables: {v: {private: true}}\nsteps: [{id: r, type: return, input: '@vars.v'}]"),
        false => plan(&format!("steps:\n{}- {{id: r, type: return, input: '@s{}'}}", start(at + 1), at + 1)),
    };
    let workflows: BTreeMap<String, Arc<Plan>> = (0..40).map(|at| (format!("w{at}"), link(at))).collect();
    let tree = policy("{flows: {untrusted: {payment: deny}}}").surroundings(&root, &workflows).unwrap();
    assert_eq!((tree.of_root().private_workflows.len(), tree.follows()), (40, 2 * 40 + 1));
}

#[test]
fn labels_of_an_agents_context_reach_its_model() {
    let agent = |rest: &str| {
        format!("variables: {{c: {{private: true}}}}\nsteps:\n- {{id: x, type: agent, goal: Look, {rest}}}")
    };
    for (rest, expected) in [
        ("context: '@vars.c'", "x private deny"),
        ("context: '@vars.c', tools: [ask]", "x#model private deny"),
        ("context: '@vars.c', outputSchema: {type: object}", "x#model private deny"),
        ("tools: [own.get, bash, ask, budget]", ""),
        ("tools: [s.get]", "x#model untrusted ask"),
        ("tools: [http]", "x#model untrusted ask"),
        ("tools: [{workflow: w}]", "x#model untrusted ask"),
    ] {
        let policy = "{trusted: [own], flows: {private: {model: deny}, untrusted: {model: ask}}}";
        assert_eq!(flow(policy, &agent(rest)), expected, "{rest}");
    }
}

/// Nodes may have tools that this process does not know.
#[test]
fn rules_for_labels_apply_without_tool_servers() {
    let (compiled, _) = compiled(&format!("{HTTP}- {{id: x, type: tool, tool: s.pay, arguments: {{a: '@get.body'}}}}"));
    let document = read(b"{flows: {untrusted: {destructive: deny}}}", Syntax::Yaml).expect("it reads");
    let policy = EffectPolicy::read(&document.value).expect("a policy");
    assert_eq!(policy.denied(&compiled.plan, None).len(), 1);
}

/// An agent reads the messages of others in its conversation, also of later steps.
#[test]
fn messages_carry_their_labels_into_a_conversation() {
    let steps = |conversation: &str, content: &str| {
        format!(
            "variables: {{secret: {{type: string, private: true}}}}
steps:
  - {{id: get, type: http, url: 'https://a.test'}}
  - id: both
    type: parallel
    steps:
      - {{id: ask, type: agent, goal: Look, conversation: chat, tools: [s.send]}}
      - {{id: send, type: agent_message, content: '{content}', conversation: {conversation}}}
  - {{id: other, type: agent, goal: Look, conversation: apart}}
"
        )
    };
    let input = |text: &str| {
        let (compiled, _) = compiled(text);
        let policy = policy("{}");
        let (plan, flows) = (&compiled.plan, policy.labels(&compiled.plan));
        let labels = flows.of_input(plan.number_of("ask").expect("a step"));
        Label::ALL.map(|label| labels.get(label).map(|source| source.words(plan)))
    };
    let (get, secret) = (Some("the output of `get` (http)".into()), Some("the variable `secret`".into()));
    assert_eq!(input(&steps("chat", "See @get.body")), [get, None]);
    assert_eq!(input(&steps("chat", "See @vars.secret")), [None, secret.clone()]);
    assert_eq!(input(&steps("apart", "See @vars.secret")), [None, None], "another conversation");
    // The response is a text of the agent, which knows the secret.
    let (compiled, _) = compiled(&steps("chat", "See @vars.secret"));
    let flows = policy("{}").labels(&compiled.plan).of_output(compiled.plan.number_of("send").expect("a step")).clone();
    assert_eq!(flows.get(Label::Private).map(|source| source.words(&compiled.plan)), secret);
}

/// An agent that continues a conversation reads what the model has said before, also where a person vouches for its output.
#[test]
fn an_agent_that_continues_a_conversation_reads_untrusted_values() {
    let text = "
  - {id: first, type: agent, goal: Look, conversation: chat, trust: trusted}
  - {id: second, type: agent, goal: Pay, conversation: chat, tools: [s.pay]}
  - {id: third, type: agent, goal: Pay, tools: [s.pay], instructions: i}
";
    let (compiled, _) = compiled(text);
    let policy = policy("{}");
    let flows = policy.labels(&compiled.plan);
    let is_untrusted =
        |step: &str| flows.of_input(compiled.plan.number_of(step).expect("a step")).get(Label::Untrusted).is_some();
    assert_eq!(["second", "third"].map(is_untrusted), [true, false]);
}
