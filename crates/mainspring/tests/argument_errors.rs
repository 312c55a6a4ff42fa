//! Invalid command lines: with `--json` the error is JSON, even if other flags are wrong.

mod support;
use support::{TestDir, call};

#[test]
fn argument_errors_use_the_requested_format() {
    let dir = TestDir::new();
    for (arguments, exit, code, said) in [
        (&["--json", "list", "--none"][..], 10, "bad_arguments", "--none"),
        (&["list", "--none", "--json"], 10, "bad_arguments", "--none"),
        (&["--json", "lst"], 10, "bad_arguments", "lst"),
        (&["--json"], 10, "bad_arguments", "subcommand"),
        (&["--json", "list", "--limit", "0"], 10, "bad_arguments", "--limit"),
        (&["--json", "run"], 20, "missing_flag", "<FILE>"),
        (&["--json", "verify"], 20, "missing_flag", "--all"),
        (&["--json", "run", "x.yaml", "--yes", "--detach"], 10, "bad_arguments", "--yes"),
    ] {
        let answer = call(dir.mainspring(arguments), b"");
        assert_eq!(answer.exit, Some(exit), "{arguments:?}: {answer:?}");
        let envelope = answer.envelope();
        assert_eq!(envelope.get("ok"), Some(&false.into()), "{arguments:?}");
        assert_eq!(answer.text("status"), "failed", "{arguments:?}");
        assert_eq!(answer.text("error.code"), code, "{arguments:?}");
        let message = answer.text("error.message");
        assert!(message.contains(said) && !message.starts_with("error"), "{arguments:?}: {message}");
        assert!(answer.stderr.contains(said), "{arguments:?}: stderr has it too: {answer:?}");
    }
}

#[test]
fn argument_errors_without_json_go_to_stderr() {
    let dir = TestDir::new();
    for (arguments, exit) in
        [(&["list", "--none"][..], 10), (&["run"], 20), (&[], 10), (&["run", "--", "--json", "x"], 10)]
    {
        let answer = call(dir.mainspring(arguments), b"");
        assert_eq!((answer.exit, answer.stdout.as_str()), (Some(exit), ""), "{arguments:?}: {answer:?}");
        assert!(answer.stderr.contains("Usage: mainspring"), "{arguments:?}: {answer:?}");
    }
}

/// Help and version are successful, and print no envelope.
#[test]
fn help_exits_with_success() {
    let dir = TestDir::new();
    for command in [
        dir.mainspring(&["--help"]),
        dir.mainspring(&["--json", "--version"]),
        dir.workflow(&[]),
        dir.workflow(&["--help"]),
    ] {
        let answer = call(command, b"");
        assert_eq!(answer.exit, Some(0), "{answer:?}");
        assert!(!answer.stdout.is_empty() && !answer.stdout.starts_with('{'), "{answer:?}");
    }
}

#[test]
fn usage_omits_global_flags() {
    let dir = TestDir::new();
    for (arguments, usage) in [
        (&["deny", "--dir", "x"][..], "Usage: mainspring deny <ID>"),
        (&["deny", "--dir", "x", "e", "--reson", "y"], "Usage: mainspring deny --reason <TEXT> <ID>"),
        (&["lst", "--dir", "x"], "Usage: mainspring"),
    ] {
        let answer = call(dir.mainspring(arguments), b"");
        assert!(answer.stderr.contains(usage) && !answer.stderr.contains("--dir <DIR>"), "{arguments:?}: {answer:?}");
    }
    let tip = call(dir.mainspring(&["deny", "e", "--reson", "y"]), b"");
    assert!(tip.stderr.contains("tip: a similar argument exists: '--reason'"), "{tip:?}");
}
