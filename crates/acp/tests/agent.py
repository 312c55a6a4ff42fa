"""A scripted agent that speaks the Agent Client Protocol. The mode is its first argument."""
import json
import os
import sys
import time

MODE = sys.argv[1]
OPTIONS = [
    {"optionId": "always", "name": "Always", "kind": "allow_always"},
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]
CALLS = [
    ("read", "Read notes.txt", {"path": "notes.txt"}),
    ("delete", "Delete old.txt\u001b[2K", {"path": "old.txt"}),
    ("execute", "Run make", {"command": "make"}),
]
state = {"cwd": ".", "session": "s-1", "requests": 100}


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def receive():
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)


def path(name):
    return os.path.join(state["cwd"], name)


def note(name, text):
    with open(path(name), "a") as file:
        file.write(text + "\n")


def update(what, **fields):
    send({"method": "session/update", "params": {"sessionId": state["session"], "update": {"sessionUpdate": what, **fields}}})


def say(text):
    update("agent_message_chunk", content={"type": "text", "text": text})


def ask(kind, title, raw):
    state["requests"] += 1
    call = f"call-{state['requests']}"
    update("tool_call", toolCallId=call, title=title, kind=kind, status="pending", rawInput=raw)
    request = {"sessionId": state["session"], "toolCall": {"toolCallId": call}, "options": OPTIONS}
    send({"id": state["requests"], "method": "session/request_permission", "params": request})
    while True:
        message = receive()
        if message.get("method") == "session/cancel":
            note("canceled", "yes")
            state["is_canceled"] = True
        elif message.get("id") == state["requests"] and "method" not in message:
            outcome = message["result"]["outcome"]
            answer = outcome.get("optionId", outcome["outcome"])
            update("tool_call_update", toolCallId=call, status="completed" if answer == "yes" else "failed")
            return answer


def done(kind):
    try:
        with open(path("log")) as file:
            return any(line.startswith(kind + " ") for line in file)
    except FileNotFoundError:
        return False


def first(name):
    if os.path.exists(path(name)):
        return False
    note(name, "yes")
    return True


def work():
    if MODE == "slow":
        say("begun")
        note("begun", "yes")
        while receive().get("method") != "session/cancel":
            pass
        note("canceled", "yes")
        return "cancelled"
    for kind, title, raw in CALLS:
        if MODE in ("loads", "dies", "blocks") and done(kind):
            continue
        answer = ask(kind, title, raw)
        if state.get("is_canceled"):
            return "cancelled"
        note("log", f"{kind} {answer}")
        if MODE == "dies" and first("died"):
            os._exit(9)
        if MODE == "blocks" and first("blocked"):
            with open(path("../pipe"), "w") as pipe:
                pipe.write("blocked\n")
            time.sleep(600)
    with open(path("log")) as file:
        log = file.read().split("\n")[-4:-1]
    say("Here is ")
    say("the result: " + json.dumps({"log": log}))
    return "end_turn"


def hostile():
    """Breaks the protocol in the middle of a turn."""
    if MODE == "line":
        for _ in range(100):
            sys.stdout.write("x" * (1024 * 1024))
            sys.stdout.flush()
    elif MODE == "updates":
        text = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x"}}
        line = json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s-1", "update": text}})
        line += " " * 1_500_000
        while True:
            sys.stdout.write(line + "\n")
    elif MODE == "forged":
        send({"id": 77, "result": {"outcome": {"outcome": "selected", "optionId": "yes"}}})
    elif MODE == "options":
        same = [{**option, "optionId": "x"} for option in OPTIONS]
        params = {"sessionId": "s-1", "toolCall": {"toolCallId": "1", "kind": "read"}, "options": same}
        send({"id": 1, "method": "session/request_permission", "params": params})
    elif MODE == "garbage":
        sys.stdout.write("Welcome to the agent!\n")
        sys.stdout.flush()
    elif MODE == "methods":
        answers = []
        for number, method in enumerate(["fs/read_text_file", "fs/write_text_file", "terminal/create", "session/\u001b[2J" + "x" * 5000]):
            send({"id": f"m{number}", "method": method, "params": {"sessionId": "s-1", "path": "/etc/passwd"}})
            answers.append(receive()["error"]["code"])
        foreign = {"sessionId": "s-2", "toolCall": {"toolCallId": "1", "kind": "read"}, "options": OPTIONS}
        send({"id": "f", "method": "session/request_permission", "params": foreign})
        answers.append(receive()["error"]["code"])
        send({"method": "session/update", "params": {"sessionId": "s-2", "update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "of another session"}}}})
        send({"method": "_later/notice", "params": {}})
        say(json.dumps(answers))
        return "end_turn"
    elif MODE == "refusal":
        return "refusal"
    elif MODE == "secret":
        say("the key is " + os.environ["KEY"])
        return "end_turn"
    time.sleep(600)


def handle(message):
    method, params = message.get("method"), message.get("params", {})
    if method == "initialize":
        if MODE == "silent-end":
            sys.stderr.write("no key\n")
            sys.exit(3)
        version = 2 if MODE == "version" else 1
        capabilities = {"loadSession": MODE in ("loads", "dies", "blocks", "held")}
        return {"protocolVersion": version, "agentCapabilities": capabilities, "authMethods": []}
    if method == "session/new":
        if MODE == "account":
            send({"id": message["id"], "error": {"code": -32000, "message": "Authentication required"}})
            return None
        state["cwd"] = params["cwd"]
        note("sessions", "new")
        return {"sessionId": state["session"]}
    if method == "session/load":
        state["cwd"] = params["cwd"]
        note("sessions", "load " + params["sessionId"])
        if os.path.exists(path("prompts")):
            update("user_message_chunk", content={"type": "text", "text": "the goal"})
            say("of an earlier turn")
        return {}
    if method == "session/prompt":
        note("prompts", json.dumps(params["prompt"][0]["text"]))
        known = ("asks", "loads", "dies", "blocks", "held", "slow")
        return {"stopReason": work() if MODE in known else hostile(), "usage": {"totalTokens": 7, "inputTokens": 5, "outputTokens": 2}}
    return None


while True:
    message = receive()
    result = handle(message)
    if result is not None:
        send({"id": message["id"], "result": result})
