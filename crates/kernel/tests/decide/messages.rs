//! Tests of conversations: messages of steps and people, answers, interruptions, and agents that continue each other.

use mainspring_kernel::{
    apply::apply,
    decide::{DECIDE_VERSION, open_attempt},
    limits::{
        AGENT_CONVERSATION_BYTES_MAX, MESSAGE_BYTES_MAX, MESSAGES_AWAITED_MAX, MESSAGES_KEPT_BYTES_MAX,
        MESSAGES_KEPT_MAX,
    },
    state::{MessageRejection, StepState},
};

use super::*;

/// An execution, with a second state that is folded from the records alone, as after a crash.
struct Run {
    plan: Arc<Plan>,
    state: State,
    folded: State,
    now: u64,
}

impl Run {
    fn new(text: &str, decide_version: u32) -> Self {
        Self::with(text, decide_version, |_| {})
    }

    /// An execution with a changed start.
    fn with(text: &str, decide_version: u32, change: impl FnOnce(&mut Start)) -> Self {
        let document = read(text.as_bytes(), Syntax::Yaml).expect("it reads");
        let plan = Arc::new(compile(&document).unwrap_or_else(|report| panic!("{report:?}")).plan);
        let plan = Arc::new(Plan::decode(&plan.encode()).expect("it reads back"));
        let state = State { decide_version, ..State::new(KEY, plan.clone()) };
        let mut run = Self { plan, folded: state.clone(), state, now: 0 };
        let Input::Start(mut begun) = start(Value::Null) else { panic!("a start") };
        change(&mut begun);
        run.take(&Input::Start(begun));
        run
    }

    /// Processes an input and what continues it. The state must be the fold of the records at every commit.
    fn take(&mut self, input: &Input) -> Turn {
        let turn = take_in(&mut self.state, input, self.now);
        for record in &turn.records {
            apply(&mut self.folded, record, self.now).expect("legal");
        }
        assert_eq!(self.folded, self.state);
        turn
    }

    fn receipt(&mut self, call: &str, outcome: Outcome) -> Turn {
        let instance = at(&self.plan, call);
        let attempt = self.step(call).attempt;
        self.take(&Input::Receipt { instance, attempt, outcome })
    }

    fn answer(&mut self, call: &str, text: &str, tools: &[&str]) -> Turn {
        let call_of = |tool: &&str| {
            Value::map([
                ("id", (*tool).into()),
                ("name", (*tool).into()),
                ("arguments", Value::map([("x", Value::Null)])),
            ])
        };
        let calls: Vec<Value> = tools.iter().map(call_of).collect();
        let answer = Value::map([("text", text.into()), ("toolCalls", calls.into())]);
        self.receipt(call, Outcome::Done(answer))
    }

    fn send(&mut self, id: &str, text: &str, interrupt: bool) -> Turn {
        let (id, content) = (id.to_string(), text.into());
        self.take(&Input::Message { id, conversation: None, content, interrupt, by: "ann".into() })
    }

    fn step(&self, name: &str) -> &StepState {
        &self.state.steps[&at(&self.plan, name)]
    }

    fn code(&self, name: &str) -> &str {
        self.step(name).failure.as_ref().map_or("", |failure| failure.code.as_str())
    }

    /// The parameters of an open call.
    fn params(&self, call: &str) -> Value {
        open_attempt(&self.state, &at(&self.plan, call)).expect("an open attempt").params
    }

    fn words(&self, turn: &Turn) -> String {
        turn.records.iter().map(|record| words(&self.plan, record)).collect::<Vec<_>>().join(", ")
    }
}

fn texts(texts: &[&str]) -> Value {
    texts.iter().map(|text| Value::from(*text)).collect::<Vec<_>>().into()
}

fn messages_of(turn: &Value) -> Option<&Value> {
    turn.get("messages")
}

const BESIDE: &str = "
steps:
  - id: all
    type: parallel
    steps:
      - {id: a, type: agent, goal: g, conversation: chat, tools: [t.*]}
      - {id: nap, type: sleep, durationMs: 10}
";

fn beside(message: &str) -> String {
    BESIDE.replace("- {id: nap, type: sleep, durationMs: 10}", &format!("- {{id: m, type: agent_message, {message}}}"))
}

#[test]
fn a_message_is_read_once_at_the_next_turn() {
    let mut run = Run::new(BESIDE, DECIDE_VERSION);
    assert_eq!(run.words(&run.clone_turn(|run| run.send("1", "hello", false))), "MessageKept");
    run.send("1", "hello", false);
    run.send("2", "there", false);
    run.answer("a#1", "I look", &["t.x"]);
    let turn = run.receipt("a#1.1", Outcome::Done(Value::Null));
    assert!(run.words(&turn).contains("StepStarted a#2, MessagesRead a, AttemptStarted a#2#1"), "{}", run.words(&turn));
    let params = run.params("a#2");
    let turns = params.get("turns").and_then(Value::as_list).expect("turns");
    assert_eq!(messages_of(&turns[0]), Some(&texts(&["hello", "there"])), "in order");
    run.answer("a#2", "done", &[]);
    assert_eq!(run.step("a").status, Status::Completed);
    assert_eq!(run.step("a").output.get("turns"), Some(&2u64.into()));
}

/// The hash of a request covers the messages, so a repeated call of another content has another identity.
#[test]
fn a_message_changes_the_intent_of_the_call_that_reads_it() {
    let intent = |says: bool| {
        let mut run = Run::new(BESIDE, DECIDE_VERSION);
        if says {
            run.send("1", "hello", false);
        }
        run.answer("a#1", "", &["t.x"]);
        run.receipt("a#1.1", Outcome::Done(Value::Null));
        run.step("a#2").intent
    };
    assert_ne!(intent(true), intent(false));
}

#[test]
fn an_agent_does_not_end_with_an_unread_message() {
    let mut run = Run::new(BESIDE, DECIDE_VERSION);
    run.send("1", "wait", false);
    run.answer("a#1", "done", &[]);
    assert_eq!(run.step("a").status, Status::Running);
    run.answer("a#2", "really done", &[]);
    assert_eq!(run.step("a").output.get("text"), Some(&"really done".into()));
    // The last turn is not followed by another one.
    let mut run = Run::new(&BESIDE.replace("tools: [t.*]", "maxTurns: 1"), DECIDE_VERSION);
    run.send("1", "wait", false);
    run.answer("a#1", "done", &[]);
    assert_eq!(run.step("a").status, Status::Completed);
    assert_eq!(run.state.signals.conversations.by_name["chat"].unread.len(), 1);
}

#[test]
fn an_interrupting_message_cancels_the_open_model_call() {
    let mut run = Run::new(BESIDE, DECIDE_VERSION);
    let turn = run.send("1", "stop that", true);
    assert_eq!(run.words(&turn), "MessageKept, AttemptStopping a#1#1");
    assert!(matches!(turn.actions.as_slice(), [Action::Stop { .. }]));
    // A second one finds the call stopping.
    assert_eq!(run.words(&run.clone_turn(|run| run.send("2", "now", true))), "MessageKept");
    run.receipt("a#1", Outcome::Stopped(Value::Null));
    let params = run.params("a#2");
    let turns = params.get("turns").and_then(Value::as_list).expect("turns");
    assert_eq!(messages_of(&turns[0]), Some(&texts(&["stop that"])));
    assert_eq!(turns[0].get("answer").and_then(|answer| answer.get("stopReason")), Some(&"interrupted".into()));
    run.answer("a#2", "yes", &[]);
    assert_eq!(run.step("a").output.get("text"), Some(&"yes".into()));
}

/// No turn is left that could read the message.
#[test]
fn the_call_of_the_last_turn_is_not_interrupted() {
    let mut run = Run::new(&BESIDE.replace("conversation: chat", "conversation: chat, maxTurns: 1"), DECIDE_VERSION);
    let turn = run.send("1", "stop that", true);
    assert_eq!(run.words(&turn), "MessageKept");
    run.answer("a#1", "yes", &[]);
    assert_eq!(run.step("a").output.get("text"), Some(&"yes".into()));
}

/// An answer that came before the executor stopped counts, and the message is read after it.
#[test]
fn an_answer_that_overtakes_the_interruption_counts() {
    let mut run = Run::new(BESIDE, DECIDE_VERSION);
    run.send("1", "stop that", true);
    run.answer("a#1", "done", &[]);
    let params = run.params("a#2");
    let turns = params.get("turns").and_then(Value::as_list).expect("turns");
    assert_eq!(turns[0].get("answer").and_then(|answer| answer.get("text")), Some(&"done".into()));
    assert_eq!(messages_of(&turns[0]), Some(&texts(&["stop that"])));
}

#[test]
fn a_model_call_between_two_attempts_is_interrupted_at_once() {
    let text = BESIDE.replace("tools: [t.*]", "retry: {maxAttempts: 3, initialDelayMs: 1000}");
    let mut run = Run::new(&text, DECIDE_VERSION);
    run.receipt("a#1", Outcome::Failed(Failure::new(Class::Transient, "down", "down")));
    assert_eq!(run.step("a#1").status, Status::Retrying);
    let turn = run.send("1", "now", true);
    assert!(run.words(&turn).contains("StepCompleted a#1"), "{}", run.words(&turn));
    assert_eq!(run.state.open.attempts.iter().next(), Some(&at(&run.plan, "a#2")));
    assert!(run.state.open.timers.iter().all(|(_, timer)| !matches!(timer, Timer::Retry(..))), "the retry is gone");
}

#[test]
fn an_interrupted_call_counts_as_reserved() {
    let mut run = Run::new(&BESIDE.replace("tools: [t.*]", "budget: {tokens: 100000}"), DECIDE_VERSION);
    let reserved = run.state.counts.budgets.execution.reserved;
    assert!(reserved.tokens > 0);
    run.send("1", "stop that", true);
    run.receipt("a#1", Outcome::Stopped(Value::Null));
    let spent = run.state.counts.budgets.execution.spent;
    assert_eq!((spent.tokens, spent.model_calls), (reserved.tokens, 1));
}

#[test]
fn a_step_gets_the_first_answer_with_text() {
    let mut run = Run::new(&beside("content: Where are you?, await_response: true"), DECIDE_VERSION);
    assert_eq!(run.step("m").status, Status::Waiting);
    assert!(run.state.open.attempts.iter().all(|open| *open == at(&run.plan, "a#1")), "no executor performs it");
    run.answer("a#1", "before it has read the message", &["t.x"]);
    assert_eq!(run.step("m").status, Status::Waiting);
    run.receipt("a#1.1", Outcome::Done(Value::Null));
    run.answer("a#2", " ", &["t.x"]);
    assert_eq!(run.step("m").status, Status::Waiting, "an answer without text");
    run.receipt("a#2.1", Outcome::Done(Value::Null));
    run.answer("a#3", "half way", &["t.x"]);
    let expected = Value::map([("conversation", "chat".into()), ("response", Value::from("half way"))]);
    assert_eq!((run.step("m").status, &run.step("m").output), (Status::Completed, &expected));
    assert_eq!(run.step("a").status, Status::Running);
    assert!(run.state.open.timers.iter().all(|(_, timer)| !matches!(timer, Timer::Sleep(_))));
}

#[test]
fn a_step_that_waits_too_long_fails_and_its_message_stays() {
    let mut run = Run::new(&beside("content: hm, await_response: true, onError: continue"), DECIDE_VERSION);
    assert_eq!(run.step("m").times.wake_at, Some(120_000), "the default");
    run.now = 120_000;
    run.take(&Input::Timer(Timer::Sleep(at(&run.plan, "m"))));
    assert_eq!(run.code("m"), "message_timeout:120000");
    run.answer("a#1", "done", &[]);
    assert_eq!(run.step("a").status, Status::Running, "the message is still read");
    run.answer("a#2", "done", &[]);
    assert_eq!(run.step("a").status, Status::Completed);
}

#[test]
fn a_message_to_an_ended_agent_fails() {
    let mut run = Run::new(&beside("content: hm, await_response: true, onError: continue"), DECIDE_VERSION);
    run.answer("a#1", "", &["t.x"]);
    run.receipt("a#1.1", Outcome::Done(Value::Null));
    run.answer("a#2", "", &[]);
    assert_eq!((run.step("a").status, run.code("m")), (Status::Completed, "conversation_ended"));
    // The agent fails before it has read the message.
    let mut run = Run::new(&beside("content: hm, await_response: true, onError: continue"), DECIDE_VERSION);
    run.receipt("a#1", Outcome::Failed(Failure::new(Class::Policy, "model_refused", "no")));
    assert_eq!(run.step("m").status, Status::Cancelled, "its block fails");
    let text = beside("content: hm, await_response: true, onError: continue")
        .replace("goal: g,", "goal: g, onError: continue,");
    let mut run = Run::new(&text, DECIDE_VERSION);
    run.receipt("a#1", Outcome::Failed(Failure::new(Class::Policy, "model_refused", "no")));
    assert_eq!(run.code("m"), "conversation_ended");
    // All agents have ended before the step.
    let text = "steps: [{id: a, type: agent, goal: g, conversation: c}, {id: m, type: agent_message, content: x}]";
    let mut run = Run::new(text, DECIDE_VERSION);
    run.answer("a#1", "done", &[]);
    assert_eq!(run.code("m"), "conversation_ended");
}

#[test]
fn a_message_waits_until_its_agent_begins() {
    let text = "
steps:
  - {id: m, type: agent_message, content: First}
  - {id: a, type: agent, goal: g, conversation: c}
";
    let run = Run::new(text, DECIDE_VERSION);
    assert_eq!(run.step("m").output, Value::map([("conversation", "c".into()), ("response", Value::Null)]));
    assert_eq!(run.params("a#1").get("messages"), Some(&texts(&["First"])));
}

#[test]
fn agents_in_sequence_continue_the_conversation() {
    let text = "
steps:
  - {id: a, type: agent, goal: one, conversation: c}
  - {id: b, type: agent, goal: two, conversation: c, context: {n: 1}}
  - {id: d, type: agent, goal: three, instructions: i}
";
    let mut run = Run::new(text, DECIDE_VERSION);
    assert_eq!(run.params("a#1").get("past"), None);
    run.send("1", "hi", false);
    run.answer("a#1", "first", &[]);
    run.answer("a#2", "second", &[]);
    let past = run.params("b#1").get("past").cloned().expect("what a has said");
    let part = &past.as_list().expect("a list")[0];
    assert_eq!(part.get("goal"), Some(&"one".into()));
    let turns = part.get("turns").and_then(Value::as_list).expect("turns");
    assert_eq!((turns.len(), messages_of(&turns[0])), (2, Some(&texts(&["hi"]))));
    run.answer("b#1", "third", &[]);
    assert_eq!(run.params("d#1").get("past"), None, "a conversation of its own");
}

#[test]
fn agents_beside_each_other_take_turns() {
    let text = "
steps:
  - id: all
    type: parallel
    steps:
      - {id: a, type: agent, goal: one, conversation: c}
      - {id: b, type: agent, goal: two, conversation: c}
";
    let mut run = Run::new(text, DECIDE_VERSION);
    assert_eq!(run.state.open.attempts.iter().collect::<Vec<_>>(), [&at(&run.plan, "a#1")]);
    run.answer("a#1", "done", &[]);
    assert_eq!(run.params("b#1").get("past").and_then(Value::as_list).map(<[_]>::len), Some(1));
    run.answer("b#1", "done", &[]);
    assert_eq!(run.state.status(), ExecutionStatus::Completed);
}

#[test]
fn the_rounds_of_a_loop_continue_the_conversation() {
    let text = "
steps:
  - id: each
    type: loop
    forEach: {ref: \"@input\", concurrency: 3}
    steps: [{id: a, type: agent, goal: \"say @item\", conversation: c}]
";
    let document = read(text.as_bytes(), Syntax::Yaml).expect("it reads");
    let plan = Arc::new(compile(&document).expect("it compiles").plan);
    let mut state = State::new(KEY, plan.clone());
    take_in(&mut state, &input(&plan, "start of 1 2 3"), 0);
    for round in 0..3 {
        let open: Vec<String> = state.open.attempts.iter().map(|open| open.name(&plan)).collect();
        let [call] = open.as_slice() else { panic!("one at a time: {open:?}") };
        let past = open_attempt(&state, &at(&plan, call)).and_then(|open| open.params.get("past").cloned());
        assert_eq!(past.and_then(|past| past.as_list().map(<[_]>::len)).unwrap_or_default(), round);
        let outcome = Outcome::Done("done".into());
        take_in(&mut state, &Input::Receipt { instance: at(&plan, call), attempt: 1, outcome }, 1);
    }
    assert_eq!(state.status(), ExecutionStatus::Completed);
}

#[test]
fn messages_are_bounded() {
    let rejection = |run: &Run, text: &str| run.state.message_rejection("new", Some("chat"), &text.into());
    let mut run = Run::new(BESIDE, DECIDE_VERSION);
    for text in ["", " \n", &"x".repeat(MESSAGE_BYTES_MAX)] {
        assert_eq!(rejection(&run, text), Some(MessageRejection::Size));
    }
    assert_eq!(run.state.message_rejection("new", Some("chat"), &Value::Null), Some(MessageRejection::Size));
    assert_eq!(run.state.message_rejection("new", Some("other"), &"x".into()), Some(MessageRejection::Unknown));
    for number in 0..MESSAGES_KEPT_MAX {
        assert_eq!(rejection(&run, "x"), None);
        assert!(!run.send(&number.to_string(), "x", false).records.is_empty());
    }
    assert_eq!(rejection(&run, "x"), Some(MessageRejection::Full));
    assert!(run.send("new", "x", true).records.is_empty(), "it changes nothing, and interrupts nothing");
    let mut run = Run::new(BESIDE, DECIDE_VERSION);
    let large = "x".repeat(MESSAGE_BYTES_MAX - 8);
    for number in 0..MESSAGES_KEPT_BYTES_MAX / MESSAGE_BYTES_MAX {
        assert_eq!(rejection(&run, &large), None, "{number}");
        run.send(&number.to_string(), &large, false);
    }
    assert_eq!(rejection(&run, &large), Some(MessageRejection::Full));
}

#[test]
fn the_message_of_a_step_is_bounded_as_well() {
    let text = beside("content: \"@input.text\", onError: continue");
    let document = read(text.as_bytes(), Syntax::Yaml).expect("it reads");
    let plan = Arc::new(compile(&document).expect("it compiles").plan);
    for (content, code) in
        [(" ".repeat(9), "message_size"), ("x".repeat(MESSAGE_BYTES_MAX), "message_size"), ("x".into(), "")]
    {
        let mut state = State::new(KEY, plan.clone());
        take_in(&mut state, &start(Value::map([("text", Value::from(content))])), 0);
        let failure = state.steps[&at(&plan, "m")].failure.as_ref();
        assert_eq!(failure.map_or("", |failure| failure.code.as_str()), code);
    }
}

#[test]
fn a_full_conversation_is_tried_again() {
    let text = "
steps:
  - id: all
    type: parallel
    steps:
      - {id: a, type: agent, goal: g, conversation: chat, tools: [t.*]}
      - id: later
        type: conditional
        condition: true
        then:
          - {id: nap, type: sleep, durationMs: 10}
          - {id: m, type: agent_message, content: late, retry: {maxAttempts: 2, initialDelayMs: 1000}}
";
    let mut run = Run::new(text, DECIDE_VERSION);
    for number in 0..MESSAGES_KEPT_MAX {
        run.send(&number.to_string(), "x", false);
    }
    run.now = 10;
    run.take(&Input::Timer(Timer::Sleep(at(&run.plan, "nap"))));
    assert_eq!((run.step("m").status, run.code("m")), (Status::Retrying, "conversation_full"));
    run.answer("a#1", "", &["t.x"]);
    run.receipt("a#1.1", Outcome::Done(Value::Null));
    run.now = 5_000;
    run.take(&Input::Timer(Timer::Retry(at(&run.plan, "m"), 2)));
    assert_eq!(run.step("m").status, Status::Completed);
}

#[test]
fn repeated_and_late_messages_are_rejected() {
    let mut run = Run::new(BESIDE, DECIDE_VERSION);
    run.send("1", "x", false);
    assert!(run.send("1", "y", true).records.is_empty());
    let rejection = |run: &Run, id: &str| run.state.message_rejection(id, None, &"x".into());
    assert_eq!(rejection(&run, "1"), Some(MessageRejection::Repeated));
    run.answer("a#1", "", &[]);
    assert!(run.send("1", "y", true).records.is_empty(), "also after it was read");
    run.answer("a#2", "done", &[]);
    assert_eq!(rejection(&run, "2"), Some(MessageRejection::Ended));
    assert!(run.send("2", "x", false).records.is_empty());
    run.take(&Input::Cancel { reason: "enough".into(), by: "ann".into() });
    assert_eq!(rejection(&run, "3"), Some(MessageRejection::Ended));
}

#[test]
fn a_cancel_ends_the_wait_for_an_answer() {
    let mut run = Run::new(&beside("content: hm, await_response: true"), DECIDE_VERSION);
    run.take(&Input::Cancel { reason: "enough".into(), by: "ann".into() });
    run.receipt("a#1", Outcome::Stopped(Value::Null));
    assert_eq!((run.step("m").status, run.state.status()), (Status::Cancelled, ExecutionStatus::Cancelled));
}

/// Without a conversation in the workflow, and in executions of older rules, the step is an effect.
#[test]
fn a_step_without_a_conversation_is_an_effect() {
    let text = "steps: [{id: m, type: agent_message, content: hi, await_response: true}]";
    assert_eq!(Run::new(text, DECIDE_VERSION).params("m").get("content"), Some(&"hi".into()));
    let mut run = Run::new(&beside("content: hi").replace("goal: g,", "goal: g, onError: continue,"), 8);
    assert_eq!(run.params("m").get("content"), Some(&"hi".into()));
    assert_eq!(run.code("a"), "agents_need_upgrade");
    assert_eq!(run.state.message_rejection("1", None, &"x".into()), Some(MessageRejection::Unknown));
    assert!(run.send("1", "x", true).records.is_empty());
}

/// Two agents of a conversation. The first may make one model call, and its failure is tolerated.
fn within_one_call(more: &str) -> String {
    format!(
        "steps:\n  - {{id: a, type: agent, goal: g, conversation: chat, onError: continue, budget: {{modelCalls: 1{more}}}}}\n\
         \x20 - {{id: b, type: agent, goal: h, conversation: chat}}\n"
    )
}

#[test]
fn messages_stay_unread_if_the_budget_refuses_their_call() {
    let mut run = Run::new(&within_one_call(""), DECIDE_VERSION);
    run.send("1", "hello", false);
    let turn = run.answer("a#1", "done", &[]);
    assert_eq!(run.code("a"), "budget_exceeded", "{}", run.words(&turn));
    assert_eq!(run.params("b#1").get("messages"), Some(&texts(&["hello"])), "the next agent reads it");
    let read = turn.records.iter().filter(|record| matches!(record, Record::MessagesRead { .. })).count();
    assert_eq!(read, 1, "{}", run.words(&turn));
    // Under the rules before, the refused call had read it.
    let mut run = Run::new(&within_one_call(""), 10);
    run.send("1", "hello", false);
    run.answer("a#1", "done", &[]);
    assert_eq!(run.params("b#1").get("messages"), None);
}

#[test]
fn a_call_with_a_raised_budget_keeps_its_messages() {
    let decide = |decision| {
        let mut run = Run::new(&within_one_call(", onExceeded: ask"), DECIDE_VERSION);
        run.send("1", "hello", false);
        run.answer("a#1", "done", &[]);
        run.send("2", "later", false);
        let unread = |run: &Run| run.state.signals.conversations.by_name["chat"].unread.len();
        assert_eq!((run.step("a#2").status, unread(&run)), (Status::WaitingApproval, 2), "none is read yet");
        let (instance, reason) = (at(&run.plan, "a#2"), Value::Null);
        run.take(&Input::Decide { instance, gate: 1, decision, by: "ann".into(), reason });
        (unread(&run), run)
    };
    let (unread, run) = decide(Decision::Approve);
    assert_eq!(unread, 1);
    let params = run.params("a#2");
    let turns = params.get("turns").and_then(Value::as_list).expect("turns");
    assert_eq!(messages_of(&turns[0]), Some(&texts(&["hello"])));
    // The request is recorded by the hash of all that it sends.
    let sent = run.state.blocks.loops[&at(&run.plan, "a")].conversation;
    let settings = run.step("a").intent.expect("the hash of the settings");
    let expected = Hash::of_parts(&[&settings.0, &sent.0]).prefixed();
    assert_eq!(run.step("a#2").input.get("conversation"), Some(&expected.into()));
    let (unread, run) = decide(Decision::Deny);
    assert_eq!((unread, run.code("a")), (0, "budget_exceeded"));
    assert_eq!(run.params("b#1").get("messages"), Some(&texts(&["hello", "later"])));
}

/// The tokens of a message count before it is read, so that the reservation covers the request that is sent.
#[test]
fn the_reservation_of_a_call_counts_its_messages() {
    let reserved = |says: bool| {
        let mut run =
            Run::new(&BESIDE.replace("tools: [t.*]", "budget: {tokens: 100000}, tools: [t.*]"), DECIDE_VERSION);
        if says {
            run.send("1", &"x".repeat(20_000), false);
        }
        run.answer("a#1", "", &["t.x"]);
        run.receipt("a#1.1", Outcome::Done(Value::Null));
        run.state.counts.budgets.execution.reserved.tokens
    };
    assert!(reserved(true) > reserved(false) + 9_000, "{} {}", reserved(true), reserved(false));
}

#[test]
fn only_steps_that_wait_are_awaited_and_their_number_is_bounded() {
    let mut run = Run::new(&beside("content: hi"), DECIDE_VERSION);
    run.answer("a#1", "", &["t.x"]);
    run.receipt("a#1.1", Outcome::Done(Value::Null));
    assert_eq!(
        run.params("a#2").get("turns").and_then(|turns| messages_of(&turns.as_list()?[0]).cloned()),
        Some(texts(&["hi"]))
    );
    assert_eq!(run.state.signals.conversations.by_name["chat"].awaiting, []);
    let group = |number: u64| {
        format!(
            "      - id: group{number}\n        type: conditional\n        condition: true\n        then:\n\
             \x20         - {{id: nap{number}, type: sleep, durationMs: {}}}\n\
             \x20         - id: each{number}\n            type: loop\n            forEach: {{ref: \"@vars.many\", concurrency: 64}}\n\
             \x20           steps: [{{id: m{number}, type: agent_message, content: hi, await_response: true, onError: continue}}]\n",
            number * 10
        )
    };
    let groups: String = (1..=3).map(group).collect();
    let text = format!(
        "steps:\n  - id: all\n    type: parallel\n    steps:\n\
         \x20     - {{id: a, type: agent, goal: g, conversation: chat, tools: [t.*]}}\n{groups}"
    );
    for (decide_version, most) in [(DECIDE_VERSION, MESSAGES_AWAITED_MAX), (10, 3 * MESSAGES_KEPT_MAX)] {
        let mut run = Run::with(&text, decide_version, |start| {
            start.policy = Policy { max_steps: 5_000, max_parallel: 500, ..start.policy };
            let many: Vec<Value> = (0..MESSAGES_KEPT_MAX as u64).map(Value::from).collect();
            start.variables = Value::map([("many", many.into())]);
        });
        for number in 1..=3 {
            run.now = number * 10;
            run.take(&Input::Timer(Timer::Sleep(at(&run.plan, &format!("nap{number}")))));
            run.answer(&format!("a#{number}"), "", &["t.x"]);
            run.receipt(&format!("a#{number}.1"), Outcome::Done(Value::Null));
        }
        let chat = &run.state.signals.conversations.by_name["chat"];
        assert_eq!((chat.awaiting.len(), chat.unread.len()), (most, 0), "version {decide_version}");
        let is_full =
            |step: &StepState| step.failure.as_ref().is_some_and(|failure| failure.code == "conversation_full");
        let refused = run.state.steps.values().filter(|step| is_full(step)).count();
        assert_eq!(refused, 3 * MESSAGES_KEPT_MAX - most, "version {decide_version}");
    }
}

/// A conversation that is too large fails an agent before it calls its model, and does not void a final answer.
#[test]
fn the_size_of_a_conversation_is_checked_before_each_turn() {
    let text = "
steps:
  - {id: a, type: agent, goal: g, conversation: chat, tools: [t.*], maxTurns: 200, maxToolCalls: 200, onError: continue}
  - {id: b, type: agent, goal: h, conversation: chat, onError: continue}
";
    let filled = |decide_version: u32, last: usize| {
        let mut run = Run::with(text, decide_version, |start| start.policy.max_steps = 5_000);
        let results = AGENT_CONVERSATION_BYTES_MAX as usize / (1 << 17) - 1;
        for turn in 1..=results {
            run.answer(&format!("a#{turn}"), "", &["t.x"]);
            run.receipt(&format!("a#{turn}.1"), Outcome::Done("x".repeat(1 << 17).into()));
        }
        run.answer(&format!("a#{}", results + 1), &"y".repeat(last), &[]);
        run
    };
    let run = filled(DECIDE_VERSION, 200_000);
    assert_eq!((run.step("a").status, run.code("b")), (Status::Completed, "agent_conversation_too_large"));
    assert!(!run.state.steps.contains_key(&at(&run.plan, "b#1")), "no call is made");
    let run = filled(DECIDE_VERSION, 1);
    assert_eq!((run.step("a").status, run.step("b").status), (Status::Completed, Status::Running));
    let run = filled(10, 200_000);
    assert_eq!((run.code("a"), run.step("b").status), ("agent_conversation_too_large", Status::Running));
}

impl Run {
    /// Returns the turn of a change that is not kept.
    fn clone_turn(&self, change: impl FnOnce(&mut Self) -> Turn) -> Turn {
        let (plan, state, folded) = (self.plan.clone(), self.state.clone(), self.folded.clone());
        change(&mut Self { plan, state, folded, now: self.now })
    }
}
