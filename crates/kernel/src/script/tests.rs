//! Tests with tables of commands and their results. The behavior of bash and of programs on the results is tested with
//! bash itself, in `tests/script_in_bash.rs`.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use proptest::prelude::*;

use super::{Place, Problem, Script, Surroundings, without_prologue};
use crate::limits::SCRIPT_BYTES_MAX;

mod near;
mod refused;
mod taken;

fn is_known(name: &str) -> bool {
    matches!(name, "vars" | "input" | "fetch" | "item")
}

fn prepare(command: &str, is_known: impl Fn(&str) -> bool) -> Result<Script, Vec<Problem>> {
    super::prepare(command, Surroundings::default(), is_known)
}

/// Returns the prepared text without its prologue and with `MAINSPRING_REF_` shortened to `R`, or the reason for the
/// first rejected reference.
fn outcome(command: &str) -> Result<String, Place> {
    match prepare(command, is_known) {
        Ok(script) => Ok(without_prologue(&script.text).replace(super::VARIABLE_PREFIX, "R")),
        Err(problems) => Err(problems[0].place),
    }
}

fn check(table: &[(&str, &str)]) {
    for (command, text) in table {
        assert_eq!(outcome(command).as_deref(), Ok(*text), "{command}");
    }
}

fn check_refused(place: Place, commands: &[&str]) {
    for command in commands {
        assert_eq!(outcome(command), Err(place), "{command}");
    }
}

#[test]
fn a_reference_becomes_a_quoted_expansion() {
    check(&[
        ("echo @vars.name", r#"echo "${R0}""#),
        ("echo a@vars.x.b!", r#"echo a"${R0}"!"#),
        (r#"echo "hi @vars.name""#, r#"echo "hi ${R0}""#),
        ("echo 'hi @vars.name'", r#"echo 'hi '"${R0}"''"#),
        (r#"echo @vars.a "@vars.b" '@vars.a'"#, r#"echo "${R0}" "${R1}" ''"${R0}"''"#),
        ("echo @item[0].name. @fetch.0", r#"echo "${R0}". "${R1}""#),
        ("echo \\\\@vars.x '\\\\' \"\\\\@vars.x\"", r#"echo \\"${R0}" '\\' "\\${R0}""#),
        ("echo '$@vars.x' \"$HOME@vars.x\"", r#"echo '$'"${R0}"'' "$HOME${R0}""#),
        ("cat <<< @vars.x", r#"cat <<< "${R0}""#),
        ("a=@vars.x; b+=@vars.y", r#"a="${R0}"; b+="${R1}""#),
        ("cd /srv && \\\n  ls -- @vars.x \\\n  # done\n", "cd /srv && \\\n  ls -- \"${R0}\" \\\n  # done\n"),
    ]);
}

/// A value is checked where it is expanded if another one would change what the author has written.
#[test]
fn values_of_refs_and_of_paths_are_checked() {
    let filled = "the value of @vars.x is empty, and the path would be another one";
    let root = |before: &str, after: &str| format!("{before}\"${{R0:?{filled}}}\"{after}");
    check(&[
        ("git push origin HEAD:refs/heads/@vars.x", r#"git push origin HEAD:refs/heads/"${R0//:/^}""#),
        ("git push origin 'HEAD:refs/tags/v@vars.x'", r#"git push origin 'HEAD:refs/tags/v'"${R0//:/^}"''"#),
        ("rm -rf -- @vars.x/*", &root("rm -rf -- ", "/*")),
        ("rm -rf -- \"$a\"@vars.x/b", &root("rm -rf -- \"$a\"", "/b")),
        ("rm -rf -- @vars.x*", &root("rm -rf -- ", "*")),
        ("timeout 5 cp -- @vars.x/a b", &root("timeout 5 cp -- ", "/a b")),
        ("cd -- @vars.x/a", &root("cd -- ", "/a")),
        ("rm -rf -- @vars.x a/@vars.x/*", r#"rm -rf -- "${R0}" a/"${R0}"/*"#),
        ("echo @vars.x/*; ls -- @vars.x/a", r#"echo "${R0}"/*; ls -- "${R0}"/a"#),
    ]);
    check_refused(Place::Root, &["rm -rf -- \"$(echo @vars.x)/a\""]);
    let beside = ["x=@vars.x; rm -rf -- \"$x\"/*", "tag=v@vars.x; git push origin \"HEAD:refs/tags/$tag\""];
    check_refused(Place::Beside, &beside);
    let messages = beside.map(|command| prepare(command, is_known).expect_err(command)[0].to_string());
    assert!(
        messages[0].contains("write \"${NAME:?}\" there") && messages[1].contains("write the reference itself"),
        "{messages:?}"
    );
    check_refused(Place::Revision, &["git checkout v@vars.x", "git reset v@vars.x"]);
    check_refused(Place::Registry, &["docker push app:@vars.x", "docker pull app:@vars.x"]);
}

#[test]
fn nested_shell_contexts_are_recognized() {
    check(&[
        ("echo $(echo @vars.x)", r#"echo $(echo "${R0}")"#),
        (r#"echo "$(echo "@vars.x" '@vars.x')""#, r#"echo "$(echo "${R0}" ''"${R0}"'')""#),
        (r#"echo "a $(echo ")" "$(echo @vars.x)") @vars.x""#, r#"echo "a $(echo ")" "$(echo "${R0}")") ${R0}""#),
        ("(echo @vars.x; (echo @vars.x))", r#"(echo "${R0}"; (echo "${R0}"))"#),
        ("for i in a @vars.x; do echo @vars.x; done", r#"for i in a "${R0}"; do echo "${R0}"; done"#),
        ("case @vars.x in (@vars.y|b) echo @vars.x;; esac", r#"case "${R0}" in ("${R1}"|b) echo "${R0}";; esac"#),
        ("case a in a) echo @vars.x;& b) ;; esac", r#"case a in a) echo "${R0}";& b) ;; esac"#),
        ("if [[ @vars.x == a* && b != c ]]; then :; fi", r#"if [[ "${R0}" == a* && b != c ]]; then :; fi"#),
        ("[ @vars.x = @vars.y ] && ! echo @vars.x", r#"[ "${R0}" = "${R1}" ] && ! echo "${R0}""#),
        (
            "cat <<A <<-'B'; echo @vars.x\na\nA\n\tb\n\tB\necho @vars.x",
            "cat <<A <<-'B'; echo \"${R0}\"\na\nA\n\tb\n\tB\necho \"${R0}\"",
        ),
        ("echo $# ${#a} a#b @vars.x # it's", r#"echo $# ${#a} a#b "${R0}" # it's"#),
        ("cat <<E\nE'\n E\nE \nE\necho @vars.x", "cat <<E\nE'\n E\nE \nE\necho \"${R0}\""),
        ("echo $((1 << 2)) $'it\\'s' @vars.x", r#"echo $((1 << 2)) $'it\'s' "${R0}""#),
    ]);
}

#[test]
fn a_doubled_at_sign_is_an_at_sign_everywhere() {
    check(&[
        ("echo @@vars.x # @@vars", "echo @vars.x # @vars"),
        ("echo @@@vars.x @@@@", r#"echo @"${R0}" @@"#),
        ("cat <<E\n@@vars\nE\necho '@@' \"@@\" \\@@vars", "cat <<E\n@vars\nE\necho '@' \"@\" \\@vars"),
    ]);
}

/// A script without references is not checked.
#[test]
fn text_without_references_is_unchanged() {
    let commands = [
        "git clone git@host:a/b.git; echo \"${array[@]}\" $@ me@example.com @unknown.x @ @1 \"$@\"",
        "echo 'unterminated @",
        "eval \"$x\"; f() { \"$@\"; }; f sed \"s/a/$x/\"; `let n=n+1`",
        "\0(((`",
        "",
    ];
    for command in commands {
        assert_eq!(outcome(command).as_deref(), Ok(command));
    }
}

#[test]
fn references_are_numbered_in_the_order_of_the_text() {
    let script = prepare("echo @vars.b '@input.a' @vars.b", is_known).expect("all stand well");
    assert_eq!(script.references, ["vars.b", "input.a"]);
}

#[test]
fn references_in_special_bash_syntax_are_refused() {
    check_refused(Place::HereDocument, &["cat <<'E'\n@vars.x\nE", "cat <<-\"E\"\n\t@vars.x\n\tE", "cat <<@vars.x\na"]);
    check_refused(Place::Comment, &["# @vars.x", "echo a;# @vars.x", "(a)# @vars.x"]);
    check_refused(Place::Arithmetic, &["echo $((@vars.x))", "((@vars.x))", "echo $[ @vars.x ]"]);
    check_refused(Place::Subscript, &["a[@vars.x]=1", "a=([@vars.x]=1)", "a=(@vars.x)"]);
    check_refused(Place::ParameterExpansion, &["echo ${a:-@vars.x}", "echo \"${a:@vars.x}\""]);
    check_refused(Place::EscapedString, &["echo $'@vars.x'", "echo $'\\'@vars.x'"]);
    check_refused(Place::TranslatedString, &["echo $\"@vars.x\""]);
    check_refused(Place::Backquotes, &["echo `echo @vars.x`", "echo \"`echo @vars.x`\""]);
    check_refused(Place::AfterBackslash, &["echo \\@vars.x", "echo \"\\@vars.x\"", "echo '\\@vars.x'"]);
    check_refused(Place::AfterDollar, &["echo $@vars.x", "echo \"$@input\"", "echo $$$@vars.x"]);
    check_refused(Place::EvaluatingTest, &["[[ @vars.x -eq 1 ]]", "[[ -v @vars.x ]]", "[[ (@vars.x -ge 2) ]]"]);
    check_refused(Place::Unterminated, &["echo '@vars.x", "echo \"@vars.x", "echo $(echo @vars.x"]);
    check_refused(Place::TooLong, &[&format!("echo @vars.x #{}", "a".repeat(SCRIPT_BYTES_MAX))]);
    check_refused(Place::TooDeep, &[&format!("{} @vars.x", "$(".repeat(100))]);
}

#[test]
fn references_outside_of_the_program_table_are_refused() {
    check_refused(Place::Option, &["git tag @vars.x", "rm -f @vars.x", "git fetch origin --upload-pack=@vars.x"]);
    check_refused(Place::Argument, &["unknown -- @vars.x", "git push -- @vars.x", "sudo ls @vars.x"]);
    check_refused(Place::InnerScript, &["sed \"s/X/@vars.x/\" f", "awk '{print \"@vars.x\"}'"]);
    check_refused(Place::Input, &["git add a <<< @vars.x"]);
    check_refused(Place::CommandName, &["@vars.x", " @vars.x\n", "@vars.x a", "./@vars.x"]);
    check_refused(Place::Assignment, &["PATH=@vars.x", "LANG=@vars.x", "x=@vars.x ls", "export x=@vars.x"]);
    check_refused(Place::Target, &["ls > @vars.x", "cat < @vars.x"]);
    check_refused(Place::Written, &["echo @vars.x > Makefile", "echo @vars.x > .git/hooks/pre-commit"]);
    check_refused(Place::JoinedTest, &["[ @vars.x = a -o @vars.x = b ]", "x=@vars.x; test a = b -a @vars.x = c"]);
    check_refused(Place::Data, &["curl -d @vars.x https://h/", "curl --json \"$(echo @vars.x)\" https://h/"]);
    check_refused(Place::Registry, &["docker push v@vars.x", "docker build --push -t @vars.x ."]);
    check_refused(Place::Format, &["printf @vars.x a", "printf \"a@vars.x\" b", "printf %n @vars.x"]);
    check_refused(Place::Beside, &["n=@vars.x; let n=n+1", "f() { \"$@\"; }\necho @vars.x", "x=@vars.x; eval \"$x\""]);
}

/// A variable of the step's `env` is exported and may contain a value. A folder that a value selects may contain any
/// code.
#[test]
fn the_environment_of_a_script_is_checked() {
    let taken = |command: &str, variables: &[(&str, bool)], is_folder_named| {
        super::prepare(command, Surroundings { variables, is_folder_named }, is_known).is_ok()
    };
    for command in [
        "version=@vars.x; make",
        "for version in @vars.x; do make; done",
        "read -r version <<< @vars.x",
        "version=1; echo $((version)) @vars.x",
        "version=1 true; echo $((version)) @vars.x",
        "[ $version = 1 ]; echo @vars.x",
        "mkdir -p \"$version/@vars.x\"; ls -- \"$version@vars.x\"; git tag \"$version/@vars.x\"",
    ] {
        assert!(!taken(command, &[("version", true)], false), "{command}");
    }
    assert!(!taken("n=1 true; echo $((n)) @vars.x", &[], false));
    assert!(taken("version=@vars.x; make", &[("other", true)], false));
    assert!(taken("[ $version = 1 ]; ./deploy.sh \"$version\"; echo @vars.x", &[("version", false)], false));
    for command in ["make; echo @vars.x", "echo @vars.x > post-it.txt", "git add @vars.x", "printf \"$PWD\" @vars.x"] {
        assert!(!taken(command, &[], true), "{command}");
    }
    assert!(taken("echo @vars.x; ls -- @vars.x | sort", &[], true));
}

/// No program of the script receives a value in its environment.
#[test]
fn a_script_first_removes_values_from_its_environment() {
    let prepared = |command: &str| prepare(command, is_known).expect("all stand well").text;
    assert_eq!(
        prepared("# a\necho @vars.x @vars.y"),
        "export -n MAINSPRING_REF_0 MAINSPRING_REF_1; # a\necho \"${MAINSPRING_REF_0}\" \"${MAINSPRING_REF_1}\""
    );
    let text = prepared("B=@vars.x; read -r -d '' -p c a <<< \"$B\"; n=1; for i in $a; do :; done");
    assert!(text.starts_with("export -n MAINSPRING_REF_0 B a i; B="), "{text}");
    assert_eq!(without_prologue(&text), &text["export -n MAINSPRING_REF_0 B a i; ".len()..]);
    assert_eq!(without_prologue("export -n x; ls"), "export -n x; ls");
}

#[test]
fn a_script_has_a_bounded_number_of_problems() {
    let many = |command: &str| prepare(command, is_known).expect_err("none can stand").len();
    assert_eq!(many(&"unknown @vars.x\n".repeat(1_000)), crate::limits::SCRIPT_PROBLEMS_MAX);
    assert_eq!(many(&"unknown @vars.x\n".repeat(SCRIPT_BYTES_MAX)), 1);
}

#[test]
fn every_problem_is_reported_with_its_offset_in_the_command() {
    let problems = prepare("@@ # @vars.a\necho @vars.b `@input.c`", is_known).expect_err("two cannot stand");
    let seen: Vec<_> = problems.iter().map(|problem| (problem.offset, &problem.reference[..], problem.place)).collect();
    let expected = [(5, "vars.a", Place::Comment), (18, "vars.b", Place::Beside), (27, "input.c", Place::Backquotes)];
    assert_eq!(seen, expected);
    let comment = "@vars.a stands inside a comment. Write @@ for a literal @, or take the reference out.";
    assert_eq!(problems[0].to_string(), comment);
    let beside = problems[1].to_string();
    assert!(beside.contains("`` `@input.c` `` (line 2)") || beside.contains("(line 2)"), "{beside}");
}

/// Each help text shows the solution with `env` and its safe use in the script.
#[test]
fn the_help_shows_the_solution() {
    let problem = |command: &str| prepare(command, is_known).expect_err("refused").remove(0).to_string();
    for command in refused::REVIEWED {
        let text = problem(command);
        assert!(text.contains(r#"`env: {NAME: "@vars."#), "{command}: {text}");
    }
    for command in ["git tag @vars.tag", "./deploy.sh @vars.tag"] {
        let text = problem(command);
        assert!(text.contains(r#"`env: {NAME: "@vars.tag"}`"#) && text.contains("-- \"$NAME\""), "{text}");
    }
    let text = problem("x=@vars.tag\nls\nsed \"s/X/$x/\" notes");
    assert!(text.contains("`sed \"s/X/$x/\" notes` (line 3), which a value reaches"), "{text}");
}

/// Checks time and recursion: each piece is repeated up to the maximum size of a script.
#[test]
fn hostile_input_is_checked_in_bounded_time() {
    for piece in [
        "$(",
        "(",
        "((",
        "{ ",
        "`",
        "'",
        "\"",
        "\"$(",
        "${",
        "$((",
        "$[",
        "[[ ",
        "case a in a) ",
        "<<E ",
        "a=(",
        "a[",
        "\\\n",
        "if ",
        "! ",
        "a=$b;",
        "echo @vars.x; ",
        "x=@vars.x;",
        "cat <<E\n",
        "cat <<E\nE\n",
        "for a in ",
        "@@",
        "@vars.x ",
        "echo $(echo @vars.x)\n",
        "| cat ",
        "&& true ",
        "[[ ! ",
        "[[ (",
    ] {
        let mut text = piece.repeat((SCRIPT_BYTES_MAX - 100) / piece.len());
        text.push_str(" @vars.x");
        let _ = prepare(&text, is_known);
    }
    // The analysis stops at its limit of passes for a chain of assignments in reverse text order.
    let chain: String = (0..4_000).rev().map(|at| format!("v{}=$v{at};", at + 1)).collect();
    assert!(prepare(&format!("{chain}v0=@vars.x;sed \"s/X/$v4000/\" f"), is_known).is_err());
}

fn pieces() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(alloc::vec![
        "@vars.x",
        "@@",
        "'",
        "\"",
        "`",
        "$(",
        ")",
        "(",
        "${",
        "}",
        "$((",
        "))",
        "((",
        "[[ ",
        " ]]",
        "[",
        "]",
        " ",
        "\n",
        ";",
        ";;",
        "|",
        "&",
        "<",
        ">",
        "<<E",
        "<<<",
        "E\n",
        "#",
        "\\",
        "$",
        "$'",
        "$\"",
        "a",
        "=",
        "case ",
        " in ",
        " esac ",
        "for ",
        " do ",
        " done ",
        "{ ",
        " }",
        "eval ",
        "echo ",
        "-c ",
        "é",
        "\0",
        "\t",
        "!",
        "@(",
        "function ",
        "if ",
        " then ",
        " fi",
        "x=",
        "$x",
    ]);
    prop::collection::vec(pieces, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn preparing_is_total(command in any::<String>(), made in pieces()) {
        let _ = prepare(&command, |_| true);
        let _ = prepare(&made, is_known);
    }

    #[test]
    fn commands_without_references_are_unchanged(command in pieces()) {
        let command = command.replace('@', "a@b ");
        prop_assert_eq!(outcome(&command), Ok(command));
    }

    #[test]
    fn removing_the_expansions_restores_the_command(command in pieces()) {
        if let Ok(script) = prepare(&command, is_known) {
            let expansion = |place: usize| format!("${{{}{place}}}", super::VARIABLE_PREFIX);
            let text = without_prologue(&script.text).to_string();
            let text = script.references.iter().enumerate().fold(text, |text, (place, reference)| {
                text.replace(&expansion(place), &format!("@{reference}"))
            });
            // Only names and quotes differ from the command.
            let plain = |text: &str| text.replace(['\'', '"'], "");
            prop_assert_eq!(plain(&text), plain(&command.replace("@@", "@")));
        }
    }
}
