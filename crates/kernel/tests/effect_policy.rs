//! Tests of the policy of effects: the table of classes, levels and outcomes, names, and mistakes in rules.

use std::sync::Arc;

use mainspring_kernel::{
    definition::{Syntax, compile, denied_calls, read},
    diagnostic::{Diagnostic, Severity},
    effect_policy::{Call, EffectPolicy},
    plan::{EffectClass, Verdict, VerdictRules, Work},
    template::Template,
    value::Value,
};

fn value(text: &str) -> Value {
    read(text.as_bytes(), Syntax::Yaml).expect("it reads").value
}

fn policy(text: &str) -> EffectPolicy {
    let policy = EffectPolicy::read(&value(text)).expect("a policy");
    policy.with_servers(["s", "t"].map(String::from))
}

fn rules(text: &str) -> VerdictRules {
    VerdictRules::read("", &value(text)).expect("rules")
}

/// Each combination of a class with the verdicts of three levels, or no rule at a level. The verdict is the strictest
/// one, and the default counts only where the installation has no rule.
#[test]
fn the_strictest_level_decides_for_each_class() {
    let levels: Vec<Option<Verdict>> = [None].into_iter().chain(Verdict::ALL.map(Some)).collect();
    let mut checked = 0;
    for class in EffectClass::ALL {
        let asks = matches!(class, EffectClass::Message | EffectClass::Payment | EffectClass::Destructive);
        let usual = if asks { Verdict::Ask } else { Verdict::Allow };
        for installation in &levels {
            for organization in &levels {
                for workflow in &levels {
                    let rule = |verdict: &Option<Verdict>| match verdict {
                        Some(verdict) => format!("{{{}: {}}}", class.name(), verdict.name()),
                        None => "{}".into(),
                    };
                    let text = format!(
                        "classes: {{s.x: {}}}\nverdicts: {}\norganizations: {{acme: {}, other: {{s.x: deny}}}}",
                        class.name(),
                        rule(installation),
                        rule(organization)
                    );
                    let judged = policy(&text).judge(Call::Tool("s.x"), Some("acme"), &rules(&rule(workflow)));
                    let lower = [*organization, *workflow].into_iter().flatten();
                    let expected = lower.fold(installation.unwrap_or(usual), Verdict::max);
                    assert_eq!((judged.class, judged.verdict), (class, expected), "{text} {}", rule(workflow));
                    checked += 1;
                }
            }
        }
    }
    assert_eq!(checked, 7 * 4 * 4 * 4);
}

/// The verdict of one call under a policy, as `CLASS SOURCE VERDICT`.
fn judged(text: &str, call: Call<'_>) -> String {
    let judged = policy(text).judge(call, None, &VerdictRules::default());
    format!("{} {:?} {}", judged.class.name(), judged.source, judged.verdict.name())
}

#[test]
fn a_tool_without_a_rule_is_assumed_to_be_destructive_and_asks() {
    let check = |text: &str, tool: &str, expected: &str| {
        assert_eq!(judged(text, Call::Tool(tool)), expected, "{text} {tool}");
    };
    check("{}", "s.x", "destructive Assumed ask");
    // Only a rule with the name allows a tool about which nothing is known.
    check("verdicts: {destructive: allow}", "s.x", "destructive Assumed ask");
    check("verdicts: {\"s.*\": allow}", "s.x", "destructive Assumed allow");
    check("verdicts: {destructive: deny}", "s.x", "destructive Assumed deny");
    check("verdicts: {\"*\": deny, s.x: allow}", "s.x", "destructive Assumed deny");
    // The most specific class applies.
    check("classes: {\"s.*\": payment, \"s.get_*\": read}", "s.get_all", "read Rule allow");
    check("classes: {\"s.*\": payment, \"s.get_*\": read}", "s.pay", "payment Rule ask");
    check("classes: {\"s.a*\": read, \"s.*b\": destructive}", "s.ab", "destructive Rule ask");
}

/// A name without a server can mean a tool of each server, so a rule for one of them applies.
#[test]
fn a_short_name_is_judged_as_the_strictest_of_its_meanings() {
    let check = |text: &str, tool: &str, expected: &str| {
        assert_eq!(judged(text, Call::Tool(tool)), expected, "{text} {tool}");
    };
    check("verdicts: {s.x: deny, t.x: allow}", "x", "destructive Assumed deny");
    check("verdicts: {s.x: allow, t.x: allow}", "x", "destructive Assumed allow");
    check("verdicts: {s.x: allow}", "x", "destructive Assumed ask");
    // The part before the dot names no server, so the tool's own name has a dot.
    check("verdicts: {t.u.x: deny}", "u.x", "destructive Assumed deny");
    check("verdicts: {t.u.x: deny}", "s.u.x", "destructive Assumed ask");
}

#[test]
fn annotations_count_for_trusted_servers_only() {
    let annotated = |text: &str| {
        let tools = [("s", EffectClass::Read), ("t", EffectClass::Read)];
        policy(text).with_annotations(tools.map(|(server, class)| (server.into(), "x".into(), class)))
    };
    let check = |text: &str, tool: &str, expected: Verdict| {
        let judged = annotated(text).judge(Call::Tool(tool), None, &VerdictRules::default());
        assert_eq!(judged.verdict, expected, "{text} {tool}");
    };
    check("trusted: [s]", "s.x", Verdict::Allow);
    check("trusted: [s]", "t.x", Verdict::Ask);
    check("{}", "s.x", Verdict::Ask);
    // A rule of the installation takes precedence over the annotations of the server.
    check("{trusted: [s], classes: {s.x: payment}}", "s.x", Verdict::Ask);
}

#[test]
fn steps_of_other_types_run_unless_a_rule_names_them() {
    let check = |text: &str, step: &str, expected: &str| {
        let text_of = format!("steps: [{step}]");
        let document = read(text_of.as_bytes(), Syntax::Yaml).expect("it reads");
        let plan = compile(&document).expect("it compiles").plan;
        let judged = policy(text).judge_step(&plan, 0, None);
        let said = judged.map(|judged| format!("{} {}", judged.class.name(), judged.verdict.name()));
        assert_eq!(said.as_deref().unwrap_or("none"), expected, "{text} {step}");
    };
    let http = |method: &str| format!("{{type: http, url: \"https://example.com\", method: {method}}}");
    check("{}", "{type: bash, command: ls}", "execute allow");
    check("verdicts: {execute: deny}", "{type: bash, command: ls}", "execute deny");
    check("verdicts: {bash: ask}", "{type: bash, command: ls}", "execute ask");
    check("{}", &http("GET"), "read allow");
    check("{}", &http("POST"), "write allow");
    check("{}", &http("DELETE"), "destructive allow");
    check("verdicts: {destructive: ask}", &http("DELETE"), "destructive ask");
    check("verdicts: {http: deny}", &http("GET"), "read deny");
    check("{}", "{type: sleep, durationMs: 1}", "none");
}

#[test]
fn a_denial_that_is_certain_is_a_diagnostic() {
    let text = "policy: {effects: {payment: deny}}\nsteps:\n  - {id: ok, type: tool, tool: s.get}\n  - {id: pay, type: tool, tool: s.pay}\n";
    let document = read(text.as_bytes(), Syntax::Yaml).expect("it reads");
    let compiled = compile(&document).expect("it compiles");
    let found = |text: &str, organization| denied_calls(&compiled, &document, &policy(text), organization);
    let errors = found("classes: {s.pay: payment, s.get: read}", None);
    let shown: Vec<_> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        ["4:5 steps[1]: the policy denies the call of the step \"pay\", which is of the class payment \
          [policy_denied]; remove the step, or change the rule of `policy` that denies it"]
    );
    assert_eq!(found("{}", None).len(), 0, "the workflow's rule is for payments");
    let organization = "organizations: {acme: {\"*\": deny}}";
    assert_eq!((found(organization, None).len(), found(organization, Some("acme")).len()), (0, 2));
    // Rules apply without a tool server too: another node may have one. Without both, a step fails as having no executor.
    let without_servers = |text: &str| EffectPolicy::read(&value(text)).expect("a policy");
    let denied = |text: &str| denied_calls(&compiled, &document, &without_servers(text), None).len();
    assert_eq!((denied("verdicts: {\"*\": deny}"), denied("verdicts: {s.pay: deny}"), denied("{}")), (2, 1, 0));
    let plain = compile(&read(b"steps: [{type: tool, tool: s.get}]", Syntax::Yaml).expect("it reads")).expect("a plan");
    let judged = |text: &str| without_servers(text).judge_step(&plain.plan, 0, None).map(|judged| judged.verdict);
    assert_eq!((judged("{}"), judged("verdicts: {execute: ask}")), (None, Some(Verdict::Ask)));
}

fn errors(found: &[Diagnostic]) -> impl Iterator<Item = &Diagnostic> {
    found.iter().filter(|found| found.severity == Severity::Error)
}

/// The cost of a policy depends on the names of tools, which the author of a definition chooses.
#[test]
fn the_names_of_tools_are_bounded() {
    let found = |text: &str| match compile(&read(text.as_bytes(), Syntax::Yaml).expect("it reads")) {
        Ok(_) => "none".to_owned(),
        Err(found) => {
            errors(&found).map(|found| format!("{} {} {}\n", found.path, found.code, found.message)).collect()
        }
    };
    let step = |tool: &str| format!("steps: [{{type: tool, tool: {tool}}}]");
    let agent = |tool: &str| format!("steps: [{{type: agent, goal: g, tools: [{tool}]}}]");
    for (text, expected) in [
        (step(&"x".repeat(512)), "none"),
        (step(&"x".repeat(513)), "steps[0] too_large the name of a tool has 513 bytes, more than 512\n"),
        (
            agent(&format!("s.{}", "x".repeat(511))),
            "steps[0] too_large the name of a tool has 513 bytes, more than 512\n",
        ),
    ] {
        assert_eq!(found(&text), expected);
    }
    let many = |count: usize| -> String {
        let steps = (0..count).map(|at| format!("- {{type: tool, tool: t{at}}}\n")).collect::<String>();
        found(&format!("steps:\n{steps}- {{type: tool, tool: t0}}\n"))
    };
    let expected = "steps[4096] too_large the steps up to this one name more than 4096 different tools\n";
    assert_eq!((many(4096).as_str(), many(4097).as_str()), ("none", expected));
}

#[test]
fn mistakes_in_rules_are_named_with_their_place() {
    let check = |text: &str, expected: &str| {
        let errors = EffectPolicy::read(&value(text)).expect_err("a mistake");
        let shown: Vec<_> = errors.iter().map(ToString::to_string).collect();
        assert!(shown.iter().any(|error| error.contains(expected)), "{text}: {shown:?}");
    };
    check("[]", "policy: this is");
    check("verdict: {}", "policy.verdict: this key is not known; the keys are classes, trusted, verdicts");
    check("verdicts: {payment: maybe}", "policy.verdicts.payment: `maybe` is not known here; write allow, ask, deny");
    check("verdicts: {payment: 1}", "policy.verdicts.payment: ");
    check("verdicts: {\"a b\": ask}", "policy.verdicts.a b: a pattern has no spaces");
    check("classes: {s.x: reads}", "policy.classes.s.x: `reads` is not known here; write read, model, write");
    check("trusted: s", "policy.trusted: this is not a list");
    check("trusted: [1]", "policy.trusted[0]: ");
    check("organizations: {acme: {payment: no}}", "policy.organizations.acme.payment: ");
    let many: String = (0..201).map(|number| format!("t{number}: ask, ")).collect();
    check(&format!("verdicts: {{{many}}}"), "more than 200");
}

#[test]
fn mistakes_in_the_rules_of_a_workflow_are_diagnostics() {
    let check = |rule: &str, expected: &str| {
        let text = format!("policy: {{effects: {rule}}}\nsteps: [{{type: bash, command: ls}}]");
        let found = compile(&read(text.as_bytes(), Syntax::Yaml).expect("it reads")).expect_err("a mistake");
        let shown: Vec<_> = found.iter().map(ToString::to_string).collect();
        assert!(shown.iter().any(|error| error.contains(expected)), "{rule}: {shown:?}");
    };
    check("deny", "policy.effects: ");
    check(
        "{payment: never}",
        "policy.effects.payment: `never` is not known here [wrong_value]; write allow, ask, deny",
    );
    check("{\"a b\": deny}", "a pattern has no spaces");
}

/// The verdicts of the steps of an agent with these tools, under these rules.
fn agent_verdicts(rules: &str, tools: &str) -> Vec<&'static str> {
    let text = format!("steps: [{{id: a, type: agent, goal: g, tools: {tools}}}]");
    let plan = compile(&read(text.as_bytes(), Syntax::Yaml).expect("it reads")).expect("it compiles").plan;
    let steps = 0..plan.steps.len() as u32;
    let judged = steps.filter_map(|step| policy(rules).judge_step(&plan, step, None));
    judged.map(|judged| judged.verdict.name()).collect()
}

/// The first verdict is that of the model call, the second that of each tool call.
#[test]
fn the_strictest_tool_of_an_agent_decides_for_its_calls() {
    for (rules, tools, expected) in [
        ("{}", "[bash]", "allow"),
        ("verdicts: {execute: ask}", "[bash]", "ask"),
        ("{}", "[http]", "allow"),
        ("verdicts: {destructive: ask}", "[http]", "ask"),
        // The model chooses the method, so a rule for any class of requests applies.
        ("verdicts: {write: deny}", "[http]", "deny"),
        ("verdicts: {read: ask}", "[http]", "ask"),
        ("verdicts: {execute: deny}", "[http]", "allow"),
        ("{}", "[s.x]", "ask"),
        ("classes: {s.x: read}", "[s.x]", "allow"),
        ("classes: {s.x: read, s.y: payment}", "[s.x, s.y]", "ask"),
        ("classes: {s.x: read}\nverdicts: {s.y: deny}", "[s.x, s.y]", "deny"),
        ("classes: {s.x: read}\nverdicts: {s.y: deny}", "[s.x]", "allow"),
        ("{}", "['s.*']", "ask"),
        ("classes: {'s.*': read}", "['s.*']", "allow"),
        ("classes: {'s.*': read, s.pay: payment}", "['s.*']", "ask"),
        ("classes: {'s.*': read}\nverdicts: {s.delete: deny}", "['s.*']", "deny"),
        ("classes: {'s.*': read}\nverdicts: {'*delete*': deny}", "['s.*']", "deny"),
        ("classes: {'s.*': read}\nverdicts: {'t.*': deny}", "['s.*']", "allow"),
        ("classes: {'s.*': read}\nverdicts: {read: ask}", "['s.*']", "ask"),
    ] {
        assert_eq!(agent_verdicts(rules, tools), ["allow", expected], "{rules} {tools}");
    }
}

#[test]
fn a_denied_tool_of_an_agent_is_an_error_at_the_agent() {
    for (tools, rule, is_denied) in [
        ("[s.delete, s.x]", "s.delete", true),
        ("['s.*']", "'s.*'", true),
        ("['s.*']", "'*delete*'", true),
        // The agent calls the other tools, and the model learns that this one is denied.
        ("['s.*']", "s.delete", false),
        ("['s.*', s.delete]", "s.delete", true),
    ] {
        let text = format!("steps: [{{id: a, type: agent, goal: g, tools: {tools}}}]");
        let document = read(text.as_bytes(), Syntax::Yaml).expect("it reads");
        let compiled = compile(&document).expect("it compiles");
        let denied = denied_calls(&compiled, &document, &policy(&format!("verdicts: {{{rule}: deny}}")), None);
        let found: Vec<_> = denied.iter().map(|found| (found.code, found.path.to_string())).collect();
        let expected: &[_] = if is_denied { &[("policy_denied", "steps[0]".to_string())] } else { &[] };
        assert_eq!(found, expected, "{tools} {rule}");
    }
}

const STEPS: &str = "
steps:
  - {id: a, type: tool, tool: s.read, arguments: {}}
  - {id: b, type: tool, tool: s.send, arguments: {}}
  - {id: c, type: agent, goal: g, tools: [bash, s.send, s.find]}
";

#[test]
fn unclassified_tools_are_named_once() {
    let plan = compile(&read(STEPS.as_bytes(), Syntax::Yaml).expect("it reads")).expect("it compiles").plan;
    let named = |text: &str, servers: &[&str]| {
        let policy = EffectPolicy::read(&value(text)).expect("a policy");
        let policy = policy.with_servers(servers.iter().map(|name| (*name).to_owned()));
        policy.unclassified(&plan).into_iter().map(str::to_owned).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(named("{classes: {s.read: read}}", &["s"]), "s.find s.send");
    assert_eq!(named("{classes: {\"s.*\": read}}", &["s"]), "");
    assert_eq!(named("{verdicts: {s.send: deny}}", &["s"]), "s.find s.read");
    // Another node may have the servers and their classes.
    assert_eq!(named("{}", &[]), "");
}

/// Nodes can have more servers than the process that starts an execution, and its rules apply to them.
#[test]
fn rules_for_a_server_of_another_node_hold() {
    for (text, tool, expected) in [
        ("verdicts: {\"own.*\": deny}", "own.get", Verdict::Deny),
        ("verdicts: {own.get: deny}", "own.get", Verdict::Deny),
        ("{classes: {own.pay: payment}, verdicts: {payment: deny}}", "own.pay", Verdict::Deny),
        ("organizations: {acme: {\"own.*\": deny}}", "own.get", Verdict::Deny),
        ("verdicts: {s.files.read: allow, t.files.read: allow}", "files.read", Verdict::Allow),
        ("verdicts: {\"own.*\": deny}", "other.get", Verdict::Ask),
        ("verdicts: {\"s.*\": deny}", "own.get", Verdict::Deny),
    ] {
        let judged = policy(text).judge(Call::Tool(tool), Some("acme"), &VerdictRules::default());
        assert_eq!(judged.verdict, expected, "{text} {tool}");
    }
    let judged = policy("{}").judge(Call::Tool("own.get"), None, &rules("{own.get: deny}"));
    assert_eq!(judged.verdict, Verdict::Deny, "a rule of the workflow");
}

/// The verdicts for the permission requests of an external agent, as `KIND=VERDICT`, in the plan of an execution.
fn permissions(text: &str, workflow: &str) -> String {
    let definition = format!("{workflow}steps: [{{id: a, type: agent, runner: coder, goal: g}}]");
    let document = read(definition.as_bytes(), Syntax::Yaml).expect("it reads");
    let plan = Arc::new(compile(&document).expect("it compiles").plan);
    let guarded = policy(text).guarded(&plan, None);
    let Work::Effect { params: Template::Literal(params), .. } = &guarded.steps[0].work else { panic!("{guarded:?}") };
    let verdicts = params.get("permissions").and_then(Value::as_map).expect("verdicts");
    let words = verdicts.iter().map(|(kind, verdict)| format!("{kind}={}", verdict.as_text().unwrap_or_default()));
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn permission_requests_of_agents_are_judged_before_the_agent_starts() {
    let usual = "delete=ask edit=allow execute=allow fetch=allow move=allow other=ask read=allow search=allow \
                 switch_mode=ask think=allow";
    assert_eq!(permissions("{}", ""), usual);
    let check = |text: &str, workflow: &str, expected: &str| {
        let judged = permissions(text, workflow);
        assert!(judged.split(' ').any(|one| one == expected), "{text}: {judged} lacks {expected}");
    };
    check("verdicts: {coder.execute: deny}", "", "execute=deny");
    check("verdicts: {other.execute: deny}", "", "execute=allow");
    check("verdicts: {write: ask}", "", "edit=ask");
    check("classes: {coder.fetch: message}", "", "fetch=ask");
    check("verdicts: {destructive: allow}", "", "delete=allow");
    // A kind that says nothing is not covered by a rule for the class that is assumed.
    check("verdicts: {destructive: allow}", "", "other=ask");
    check("verdicts: {coder.other: allow}", "", "other=allow");
    // A lower level tightens, and labels do as well: a model writes the arguments.
    check("verdicts: {coder.edit: deny}", "policy: {effects: {coder.edit: allow}}\n", "edit=deny");
    check("{}", "policy: {effects: {coder.read: ask}}\n", "read=ask");
    check("flows: {untrusted: {write: ask}}", "", "edit=ask");
}
