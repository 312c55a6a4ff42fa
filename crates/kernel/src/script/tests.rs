//! Tables of commands with what becomes of them. That bash reads the results as it should is tested with bash itself,
//! in `tests/script_in_bash.rs`.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use proptest::prelude::*;

use super::{Place, prepare};

fn is_known(name: &str) -> bool {
    matches!(name, "vars" | "input" | "fetch" | "item")
}

/// The prepared text with `MAINSPRING_REF_` shortened to `R`, or where the first refused reference stands.
fn outcome(command: &str) -> Result<String, Place> {
    match prepare(command, is_known) {
        Ok(script) => Ok(script.text.replace(super::VARIABLE_PREFIX, "R")),
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
        (" @vars.program\n", " \"${R0}\"\n"),
        (r#"echo "hi @vars.name""#, r#"echo "hi ${R0}""#),
        ("echo 'hi @vars.name'", r#"echo 'hi '"${R0}"''"#),
        (r#"echo @vars.a "@vars.b" '@vars.a'"#, r#"echo "${R0}" "${R1}" ''"${R0}"''"#),
        ("echo @item[0].name. @fetch.0", r#"echo "${R0}". "${R1}""#),
        ("echo \\\\@vars.x '\\\\@vars.x' \"\\\\@vars.x\"", r#"echo \\"${R0}" '\\'"${R0}"'' "\\${R0}""#),
        ("echo '$@vars.x' $$@vars.x \"$HOME@vars.x\"", r#"echo '$'"${R0}"'' $$"${R0}" "$HOME${R0}""#),
        ("cat < @vars.in > @vars.out 2>&1", r#"cat < "${R0}" > "${R1}" 2>&1"#),
        ("cat <<< @vars.x", r#"cat <<< "${R0}""#),
        ("a=@vars.x b+=@vars.y cmd", r#"a="${R0}" b+="${R1}" cmd"#),
        ("a=(@vars.x [2]='@vars.y')", r#"a=("${R0}" [2]=''"${R1}"'')"#),
        ("echo {a,@vars.x} ~@vars.x *@vars.x", r#"echo {a,"${R0}"} ~"${R0}" *"${R0}""#),
        ("cd /srv && \\\n  ls -- @vars.x \\\n  # done\n", "cd /srv && \\\n  ls -- \"${R0}\" \\\n  # done\n"),
    ]);
}

#[test]
fn levels_are_read_as_what_they_are() {
    check(&[
        ("echo $(echo @vars.x)", r#"echo $(echo "${R0}")"#),
        (r#"echo "$(echo "@vars.x" '@vars.x')""#, r#"echo "$(echo "${R0}" ''"${R0}"'')""#),
        (r#"echo "a $(echo ")" "$(echo @vars.x)") @vars.x""#, r#"echo "a $(echo ")" "$(echo "${R0}")") ${R0}""#),
        ("diff <(echo @vars.x) >(cat '@vars.x')", r#"diff <(echo "${R0}") >(cat ''"${R0}"'')"#),
        ("(echo @vars.x; (echo @vars.x))", r#"(echo "${R0}"; (echo "${R0}"))"#),
        (
            "f() { echo @vars.x; }; function g { echo @vars.x; }",
            r#"f() { echo "${R0}"; }; function g { echo "${R0}"; }"#,
        ),
        ("for i in a @vars.x; do echo @vars.x; done", r#"for i in a "${R0}"; do echo "${R0}"; done"#),
        ("case @vars.x in (@vars.y|b) echo @vars.x;; esac", r#"case "${R0}" in ("${R1}"|b) echo "${R0}";; esac"#),
        ("x=$(case a in a) echo @vars.x;& b) ;; esac)", r#"x=$(case a in a) echo "${R0}";& b) ;; esac)"#),
        (
            "if [[ @vars.x == a* && b =~ ^@vars.y$ ]]; then :; fi",
            r#"if [[ "${R0}" == a* && b =~ ^"${R1}"$ ]]; then :; fi"#,
        ),
        ("[ @vars.x = @vars.y ] && ! time -p echo @vars.x", r#"[ "${R0}" = "${R1}" ] && ! time -p echo "${R0}""#),
        ("coproc N { echo @vars.x; }", r#"coproc N { echo "${R0}"; }"#),
        ("shopt -s extglob\nls !(@vars.x|b)", "shopt -s extglob\nls !(\"${R0}\"|b)"),
        (
            "cat <<A <<-'B'; echo @vars.x\na\nA\n\tb\n\tB\necho @vars.x",
            "cat <<A <<-'B'; echo \"${R0}\"\na\nA\n\tb\n\tB\necho \"${R0}\"",
        ),
        ("echo $(cat <<E\n'\nE\n) @vars.x", "echo $(cat <<E\n'\nE\n) \"${R0}\""),
        ("echo $# ${#a} a#b @vars.x # it's", r#"echo $# ${#a} a#b "${R0}" # it's"#),
        ("cat <<E\nE'\n E\nE \nE\necho @vars.x", "cat <<E\nE'\n E\nE \nE\necho \"${R0}\""),
        ("((n << 2)); echo $((1 << 2)) @vars.x", r#"((n << 2)); echo $((1 << 2)) "${R0}""#),
        ("for ((i=0; i<3; i++)); do echo @vars.x; done", r#"for ((i=0; i<3; i++)); do echo "${R0}"; done"#),
        ("echo `it's` $'it\\'s' @vars.x", r#"echo `it's` $'it\'s' "${R0}""#),
        ("a[$(echo 1)]=@vars.x", r#"a[$(echo 1)]="${R0}""#),
        ("cmd &> @vars.x |& tee -a -- @vars.x", r#"cmd &> "${R0}" |& tee -a -- "${R0}""#),
    ]);
}

#[test]
fn values_may_be_data_of_inner_scripts() {
    check(&[
        (r#"bash -c 'echo "$1"' _ @vars.x"#, r#"bash -c 'echo "$1"' _ "${R0}""#),
        ("bash -euo pipefail -- build.sh -- @vars.x", r#"bash -euo pipefail -- build.sh -- "${R0}""#),
        ("bash -c $'echo \"$1\"' _ @vars.x", "bash -c $'echo \"$1\"' _ \"${R0}\""),
        ("python3 -u main.py -- @vars.x", r#"python3 -u main.py -- "${R0}""#),
        ("awk -v v=@vars.x '{print v}' file", "awk -v v=\"${R0}\" '{print v}' file"),
        ("jq -n --arg v @vars.x '{v: $v}'", "jq -n --arg v \"${R0}\" '{v: $v}'"),
        ("echo @vars.x | sed 's/a/b/' | jq -R .", "echo \"${R0}\" | sed 's/a/b/' | jq -R ."),
        ("echo @vars.x | python3 -c 'print(1)'", r#"echo "${R0}" | python3 -c 'print(1)'"#),
        ("echo @vars.x | xargs -n1 sh -c 'echo \"$1\"' _", "echo \"${R0}\" | xargs -n1 sh -c 'echo \"$1\"' _"),
        ("python3 - @vars.x <<'E'\nprint(1)\nE", "python3 - \"${R0}\" <<'E'\nprint(1)\nE"),
        ("timeout @vars.s nice -n @vars.n ls -- @vars.x", r#"timeout "${R0}" nice -n "${R1}" ls -- "${R2}""#),
        (
            "command -v python3 || exit; python3 --version; cat <<< @vars.x",
            "command -v python3 || exit; python3 --version; cat <<< \"${R0}\"",
        ),
        ("export A=@vars.x; local b='@vars.x'", r#"export A="${R0}"; local b=''"${R0}"''"#),
        ("declare -a l=(@vars.x); printf '%s' @vars.x", r#"declare -a l=("${R0}"); printf '%s' "${R0}""#),
        ("mapfile -t a <<< @vars.x; read -r b <<< @vars.x", r#"mapfile -t a <<< "${R0}"; read -r b <<< "${R0}""#),
        (
            "cp -- @vars.x{,.old}; find . -name @vars.x -exec sh {} +",
            r#"cp -- "${R0}"{,.old}; find . -name "${R0}" -exec sh {} +"#,
        ),
        ("env A=@vars.x sudo -u @vars.user id", r#"env A="${R0}" sudo -u "${R1}" id"#),
    ]);
}

/// What release workflows do.
const ORDINARY: &[&str] = &[
    "echo \"version @vars.version\" >> notes.txt",
    "git tag -a v@vars.version -m @vars.message",
    "git tag -- @vars.tag",
    "git commit -m \"release @vars.version\"",
    "git fetch origin -- @vars.ref",
    "git push origin v@vars.version",
    "git checkout -b @vars.branch",
    "gh release create v@vars.version --title @vars.title --notes \"see @vars.url\"",
    "docker build -t registry/app:@vars.version . && docker push registry/app:@vars.version",
    "kubectl -n @vars.namespace set image deploy/app app=registry/app:@vars.version",
    "helm upgrade app ./chart --set-string @vars.values",
    "tar czf release-@vars.version.tar.gz target/release && sha256sum release-@vars.version.tar.gz > SHA256SUMS",
    "curl -fsSL https://example.com/@vars.path -o out.tar.gz",
    "curl -H @vars.header -d @vars.body https://example.com/",
    "npm version -- @vars.version && npm publish",
    "mkdir -p -- @vars.folder && cp -- @vars.file dist/@vars.name",
    "rm -rf -- @vars.folder; ls @vars.folder; cat @vars.file",
    "./deploy.sh -- @vars.target; ./deploy.sh to/@vars.target",
    "find . -name @vars.pattern -print",
    "if [ -e dist/@vars.archive.tar.gz ]; then printf yes; fi",
    "n=@vars.n; case $n in ''|*[!0-9]*) exit 2;; esac; echo \"$n\"",
    "version=@vars.version; echo \"${version#v}\" > VERSION",
    "grep -q @vars.word file || echo none",
    "printf '%s\\n' @vars.x | sort -u | tee -- out.txt",
    "eval \"$(ssh-agent -s)\"; echo @vars.x",
    "retry() { \"$@\" || \"$@\"; }; retry echo @vars.x",
];

#[test]
fn ordinary_scripts_are_taken() {
    for command in ORDINARY {
        assert!(outcome(command).is_ok(), "{command}: {:?}", outcome(command));
    }
}

#[test]
fn files_that_are_run_are_not_written_with_values() {
    check_refused(
        Place::WrittenCode,
        &[
            "echo @vars.x > s.sh; . ./s.sh",
            "echo @vars.x > s; . ./s",
            "echo @vars.x > s; source s",
            "echo @vars.x > s; chmod +x s; ./s",
            "echo @vars.x | tee -a run; bash run",
            "{ echo @vars.x; } > run; bash run",
            "exec > run; echo @vars.x; exec > /dev/null; bash ./run",
            "f=$(mktemp); echo @vars.x > \"$f\"; . \"$f\"",
            "f=$(mktemp); echo @vars.x > \"$f\"; bash \"$f\"",
            "f=run; echo @vars.x > run; chmod +x run; \"$f\"",
            "echo @vars.x > a; cp a b; python3 b",
            "echo @vars.x > ls; PATH=.:/bin; ls",
            "echo @vars.x > Makefile",
            "echo @vars.x | tee build.py",
            "echo @vars.x >> ~/.bashrc",
            "echo @vars.x > .git/hooks/pre-commit",
            "printf %s @vars.x > \"$HOME\"/.profile",
        ],
    );
    check(&[("cat > s.sh <<'E'\nls\nE\nbash s.sh -- @vars.x", "cat > s.sh <<'E'\nls\nE\nbash s.sh -- \"${R0}\"")]);
}

/// What is in a variable or a parameter is judged where the same script evaluates it.
#[test]
fn variables_that_are_evaluated_are_refused() {
    check_refused(
        Place::EvaluatedVariable,
        &[
            "n=@vars.x; echo $((n + 1))",
            "n=@vars.x; (( n > 1 ))",
            "n=@vars.x; [[ $n -eq 1 ]]",
            "n=@vars.x; echo ${a[n]}",
            "n=@vars.x; echo \"${s:n}\"",
            "n=@vars.x; echo \"${!n}\"",
            "n=@vars.x; echo \"${n@P}\"",
            "n=@vars.x; a[$n]=1",
            "for n in @vars.x; do echo $((n)); done",
            "read n <<< @vars.x; echo $((n))",
            "f() { echo $(( $1 )); }; f @vars.x",
            "PATH=@vars.x:$PATH",
            "LD_PRELOAD=@vars.x ls",
            "export GIT_SSH_COMMAND=@vars.x",
            "env BASH_FUNC_ls%%=@vars.x bash -c ls",
        ],
    );
    check_refused(
        Place::EvaluatedArgument,
        &[
            "x=@vars.x; eval \"echo $x\"",
            "f() { eval \"$1\"; }; f @vars.x",
            "set -- @vars.x; eval \"$1\"",
            "x=@vars.x; bash -c \"echo $x\"",
            "x=@vars.x; sudo sh -c \"echo $x\"",
        ],
    );
}

#[test]
fn arguments_that_are_code_are_refused() {
    for program in [
        "sed",
        "gawk",
        "ssh",
        "psql",
        "mysql",
        "sqlite3",
        "vim",
        "ex",
        "ed",
        "gdb",
        "at",
        "batch",
        "make",
        "crontab",
        "npx",
        "pip",
        "parallel",
        "watch",
        "jq",
        "busybox",
        "docker run",
        "kubectl exec",
        "git config",
        "git -c",
        "perl -ne 1",
        "ruby -ne 1",
    ] {
        for argument in ["@vars.x", "-- @vars.x", "a@vars.x", "'s/X/@vars.x/'", "-e @vars.x", "-c 'echo @vars.x'"] {
            let command = format!("{program} {argument}");
            assert!(outcome(&command).is_err(), "{command}");
            let wrapped = format!("sudo -u me timeout 5 env A=b {program} {argument}");
            assert!(outcome(&wrapped).is_err(), "{wrapped}");
        }
    }
    for program in [
        "ssh host",
        "psql",
        "sqlite3 db",
        "at now",
        "batch",
        "crontab -",
        "ed f",
        "gdb",
        "make -f -",
        "sed -f - f",
        "docker exec -i x sh",
    ] {
        for input in [
            "echo @vars.x | {}",
            "{} <<< @vars.x",
            "{ {}; } < <(echo @vars.x)",
            "echo @vars.x | sudo {}",
            "f() { {}; }; echo @vars.x | f",
        ] {
            let command = input.replace("{}", program);
            assert!(outcome(&command).is_err(), "{command}");
        }
    }
}

#[test]
fn values_that_may_be_options_are_refused() {
    check_refused(
        Place::Option,
        &[
            "git fetch origin @vars.x",
            "rsync @vars.x host:",
            "tar -cf a @vars.x",
            "curl @vars.x",
            "rm -f @vars.x",
            "cp @vars.x a",
            "sort @vars.x",
            "unknown @vars.x",
            "unknown \"@vars.x\"",
            "unknown $(echo @vars.x)",
            "unknown \"$(echo @vars.x)\"",
            "unknown a$(echo @vars.x)",
            "unknown $unset@vars.x",
            "unknown --eval=@vars.x",
            "unknown -e@vars.x",
            "unknown -e a@vars.x",
            "tar --checkpoint-action=exec=@vars.x -cf a b",
            "rsync -e ./@vars.x a b:",
            "git fetch --upload-pack=@vars.x",
            "\"$tool\" @vars.x",
            "set @vars.x",
            "unknown {a,@vars.x}",
            "python3 main.py @vars.x",
            "echo @vars.x | cat; sort a --compress-program=@vars.x",
        ],
    );
}

#[test]
fn values_within_code_of_programs_are_refused() {
    check_refused(
        Place::InnerScript,
        &[
            "unknown 'do @vars.x'",
            "unknown \"a; @vars.x\"",
            "unknown <(echo @vars.x)",
            "echo @vars.x > >(bash)",
            "bash -- @vars.x",
            "python3 ./@vars.x",
            "echo @vars.x | xargs git fetch",
            "echo @vars.x | xargs rm",
            "echo @vars.x | xargs -I{} unknown {}",
            "find . -exec unknown @vars.x \\;",
            "find @vars.x",
            "awk -v 'v@vars.x=1' 1",
            "awk '{print \"@vars.x\"}'",
            "node -e 1 @vars.x",
        ],
    );
}

#[test]
fn the_mend_shows_what_to_write() {
    let problem = |command: &str| prepare(command, is_known).expect_err("refused").remove(0).to_string();
    let text = problem("git fetch origin @vars.tag");
    assert!(text.contains("`-- @vars.tag`") && text.contains(r#"`env: {NAME: "@vars.tag"}`"#), "{text}");
    let text = problem("sed \"s/X/@vars.tag/\" file");
    assert!(text.contains(r#"`env: {NAME: "@vars.tag"}`"#), "{text}");
}

#[test]
fn a_doubled_at_sign_is_an_at_sign_everywhere() {
    check(&[
        ("echo @@vars.x # @@vars", "echo @vars.x # @vars"),
        ("echo @@@vars.x @@@@", r#"echo @"${R0}" @@"#),
        ("cat <<E\n@@vars\nE\necho '@@' \"@@\" \\@@vars", "cat <<E\n@vars\nE\necho '@' \"@\" \\@vars"),
        ("ls @@(a|@vars.x)", r#"ls @(a|"${R0}")"#),
    ]);
}

#[test]
fn what_is_no_reference_stays() {
    let commands = [
        "git clone git@host:a/b.git; echo \"${array[@]}\" $@ me@example.com @unknown.x @ @1 \"$@\"",
        "echo 'unterminated @",
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
fn every_problem_is_reported_with_its_offset_in_the_command() {
    let problems = prepare("@@ # @vars.a\necho @vars.b `@input.c`", is_known).expect_err("two cannot stand");
    let seen: Vec<_> = problems.iter().map(|problem| (problem.offset, &problem.reference[..], problem.place)).collect();
    assert_eq!(seen, [(5, "vars.a", Place::Comment), (27, "input.c", Place::Backquotes)]);
    let expected = "@vars.a stands inside a comment. Write @@ for a literal @, or take the reference out.";
    assert_eq!(problems[0].to_string(), expected);
}

#[test]
fn places_that_bash_reads_as_something_else_are_refused() {
    check_refused(
        Place::HereDocument,
        &[
            "cat <<E\n@vars.x\nE",
            "cat <<'E'\n@vars.x\nE",
            "cat <<-\"E\"\n\t@vars.x\n\tE",
            "cat <<A <<B\nA\n@vars.x\nB",
            "cat <<E\nE\\\n@vars.x\nE",
            "cat <<E\n@vars.x",
            "cat <<@vars.x\na",
        ],
    );
    check_refused(Place::Comment, &["# @vars.x", "echo a;# @vars.x", "(a)# @vars.x", "a=( # @vars.x\n)"]);
    check_refused(
        Place::Arithmetic,
        &[
            "echo $((@vars.x))",
            "((@vars.x))",
            "echo $[ @vars.x ]",
            "for ((i=@vars.x;;)); do :; done",
            "echo $(( $(echo \"@vars.x\") + 1 ))",
            "if (( (1) + @vars.x )); then :; fi",
        ],
    );
    check_refused(Place::Subscript, &["a[@vars.x]=1", "a=([@vars.x]=1)", "a[$(echo @vars.x)]+=1", "a['@vars.x']=1"]);
    check_refused(
        Place::ParameterExpansion,
        &["echo ${a:-@vars.x}", "echo \"${a:@vars.x}\"", "echo ${a:-$(echo \"@vars.x\")}"],
    );
    check_refused(Place::EscapedString, &["echo $'@vars.x'", "echo $'\\'@vars.x'"]);
    check_refused(Place::TranslatedString, &["echo $\"@vars.x\"", "echo $\"$(echo @vars.x)\""]);
    check_refused(Place::Backquotes, &["echo `echo @vars.x`", "echo \"`echo @vars.x`\""]);
    check_refused(
        Place::AfterBackslash,
        &["echo \\@vars.x", "echo \"\\@vars.x\"", "echo '\\@vars.x'", "echo '\\\\\\@vars.x'"],
    );
    check_refused(Place::AfterDollar, &["echo $@vars.x", "echo \"$@input\"", "echo $$$@vars.x"]);
    check_refused(
        Place::EvaluatingTest,
        &["[[ @vars.x -eq 1 ]]", "[[ -v @vars.x ]]", "[[ a && $(echo @vars.x) -lt 2 ]]", "[[ (@vars.x -ge 2) ]]"],
    );
}

#[test]
fn arguments_that_are_evaluated_are_refused() {
    check_refused(
        Place::EvaluatedArgument,
        &[
            "eval echo @vars.x",
            "ev''al \"echo @vars.x\"",
            "\\eval '@vars.x'",
            "command -p eval \"$(echo @vars.x)\"",
            "let n=@vars.x",
            "trap 'rm @vars.x' EXIT",
            "mapfile -C 'echo @vars.x' a",
            "jobs -x @vars.x",
            "compgen -W @vars.x",
            "x=1 builtin let a=@vars.x",
            "if true; then eval @vars.x; fi",
            "coproc N { let @vars.x; }",
            "> /dev/null eval @vars.x",
            "$unset eval @vars.x",
            "echo $(time eval @vars.x)",
            "\"${none[@]}\" eval @vars.x",
        ],
    );
    check_refused(
        Place::VariableName,
        &[
            "export @vars.x=1",
            "declare a@vars.x=1",
            "unset \"@vars.x\"",
            "unset 'a[@vars.x]'",
            "read -r @vars.x",
            "printf -v @vars.x a",
            "wait -p @vars.x",
            "getopts ab @vars.x",
            "[ -v @vars.x ]",
            "test -v 'a[@vars.x]'",
            "for @vars.x in a; do :; done",
            "exec {a[@vars.x]}>/dev/null",
        ],
    );
    check_refused(
        Place::EvaluatedVariable,
        &[
            "declare -i n=@vars.x",
            "f() { local -ri n=\"@vars.x\"; }",
            "n=@vars.x; declare -i n",
            "declare -i n; for n in @vars.x; do :; done",
            "declare -i n; read n <<< @vars.x",
            "echo @vars.x | while read -r OPTIND; do :; done",
            "declare -n r=@vars.x",
            "declare -a a=@vars.x",
            "declare -a \"a=(@vars.x)\"",
            "a=(); declare a=@vars.x",
            "PS4=@vars.x",
            "read PS4 <<< @vars.x",
            "env BASH_ENV=@vars.x bash x",
            "RANDOM=@vars.x",
            "declare $flags n=@vars.x",
        ],
    );
}

#[test]
fn options_and_names_of_commands_are_refused() {
    check_refused(
        Place::Option,
        &[
            "printf @vars.x a",
            "printf $unset @vars.x a",
            "printf -va[@vars.x] a",
            "[ @vars.x @vars.y ]",
            "[ $(echo @vars.x) ]",
            "test ! @vars.x \"$B\"",
        ],
    );
    check_refused(
        Place::CommandName,
        &[
            "@vars.x a",
            "'@vars.x'",
            "a=1 ./@vars.x",
            "exec @vars.x",
            "env -i A=b @vars.x",
            "@vars.x() { :; }",
            "$unset @vars.x",
            "exec $unset @vars.x",
            "timeout -k 1 5 @vars.x",
            "nice @vars.x",
            "find . -exec @vars.x \\;",
        ],
    );
}

#[test]
fn targets_that_bash_expands_twice_are_refused() {
    check_refused(
        Place::Duplicate,
        &["echo >&@vars.x", "{ echo; } >& \"a@vars.x\"", "echo 2>&$(echo @vars.x)", "cat <&@vars.x"],
    );
}

#[test]
fn code_for_other_interpreters_is_refused() {
    check_refused(
        Place::InnerScript,
        &[
            "bash -c \"echo @vars.x\"",
            "sh -ec 'echo @vars.x'",
            "/usr/bin/env bash -lc 'echo @vars.x'",
            "bash -o pipefail -c 'echo @vars.x'",
            "bash -co pipefail 'echo @vars.x'",
            "bash -c -- 'echo @vars.x'",
            "find . -exec sh -c 'echo @vars.x' \\;",
            "find . -name python -exec sh -c 'echo @vars.x' \\;",
            "sudo -u script bash -c 'echo @vars.x'",
            "python3.11 -c 'print(\"@vars.x\")'",
            "python3 -W ignore -c '@vars.x'",
            "perl -ne 'a' -e '@vars.x'",
            "node --eval='@vars.x'",
            "\"$SHELL\" -c 'echo @vars.x'",
            "bash <<< 'echo @vars.x'",
            "echo 'echo @vars.x' | bash",
            "echo @vars.x | sh -s -- a",
            "{ echo @vars.x; } | bash",
            "for i in @vars.x; do echo \"$i\"; done | sh",
            "echo @vars.x | { cat | bash; }",
            "echo @vars.x | (bash)",
            "bash <(echo @vars.x)",
            ". <(echo @vars.x)",
            "source @vars.x",
            "echo @vars.x | xargs -I{} sh -c 'echo {}'",
            "echo @vars.x | xargs sh -c",
            "echo @vars.x | xargs -n1 env",
            "\\time sh <<< @vars.x",
            "sh -v $unset <<< @vars.x",
            "bash -c $unset 'echo @vars.x'",
            "bash -Oc extglob 'echo @vars.x'",
            ". /dev/stdin <<< @vars.x",
            "bash /dev/fd/3 3<<< @vars.x",
            "{ bash; } <<< @vars.x",
            "f() { sh -s; }; echo @vars.x | f",
            "exec <<< @vars.x; python3",
            "env -S 'bash -c' @vars.x",
            "echo @vars.x | xargs --replace=_ bash -c _",
        ],
    );
    check_refused(Place::Option, &["bash @vars.a @vars.b", "python3 @vars.x", "perl -M@vars.x -e 1", "env -@vars.x"]);
}

#[test]
fn what_is_not_sure_is_refused() {
    check_refused(
        Place::Unterminated,
        &[
            "echo '@vars.x",
            "echo \"@vars.x",
            "echo $(echo @vars.x",
            "case a in b) echo @vars.x",
            "(echo @vars.x; echo `a",
        ],
    );
    check_refused(
        Place::Unclear,
        &[
            "echo \"${a:-'}'}\" @vars.x",
            "((a); b); echo @vars.x",
            "echo ${ echo a; } @vars.x",
            "echo a) @vars.x",
            "esac; echo @vars.x",
            "a\\\n(b) @vars.x",
            "echo $\\\n(echo @vars.x)",
            "x <\\\n<E\n@vars.x",
            "echo $(cat <<E\nE) @vars.x",
            "cat <<E $(echo\n) @vars.x",
            "!(a) @vars.x",
            "alias a=b; a @vars.x",
            "BASH_ALIASES[e]=eval\ne @vars.x",
            "{eval,a} @vars.x",
            "[ {-v,@vars.x} ]",
            "x* eval @vars.x",
            "cat <((( 1 )); echo @vars.x)",
            "x=$(cat <<E\nE\necho @vars.x)",
            "x=$(echo \"@vars.x\"; cat <<E\nE\n)",
            "cat <(time case a in a) echo @vars.x;; esac)",
            "a | time { echo @vars.x; }",
            "bash {-c,'echo @vars.x'}",
            "[[ (a = b)]]\neval @vars.x\n[[ c ]]",
            "\0 echo @vars.x",
        ],
    );
    let deep = format!("{} @vars.x", "$(".repeat(100));
    check_refused(Place::TooDeep, &[&deep]);
}

#[test]
fn places_before_the_unclear_one_are_not_refused_for_it() {
    let problems = prepare("echo @vars.a\necho '@vars.b", is_known).expect_err("the quote is open");
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].reference, "vars.b");
}

#[test]
fn hostile_lengths_take_linear_time() {
    // Each would take minutes or overflow the stack if anything were read twice per level.
    let pieces = [
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
        "@(",
        "\\\n",
        "| bash ",
        "bash -x ",
        "perl -e ",
        "su ",
        "{ echo @vars.x; ",
        "echo @vars.x | bash; } ",
        "} | bash ",
        "cat <<E\n",
        "declare -i a=@vars.x ",
        "[ @vars.x @vars.x ",
        "for a in ",
        "@vars.x ",
        "@@",
    ];
    for piece in pieces {
        let mut text = piece.repeat(200_000 / piece.len());
        text.push_str(" @vars.x");
        assert!(
            prepare(&text, is_known).map_or_else(|problems| !problems.is_empty(), |script| !script.text.is_empty())
        );
    }
    let nested = format!("{}{}", "{ echo @vars.x; ".repeat(10_000), "} | bash; ".repeat(10_000));
    assert_eq!(prepare(&nested, is_known).map_err(|problems| problems.len()), Err(10_000));
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
        "bash ",
        "-c ",
        "é",
        "\0",
        "\t",
        "!",
        "@(",
        "function ",
        "coproc ",
        "time ",
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
    fn without_references_nothing_changes(command in pieces()) {
        let command = command.replace('@', "a@b ");
        prop_assert_eq!(outcome(&command), Ok(command));
    }

    #[test]
    fn taking_the_expansions_out_gives_the_command_back(command in pieces()) {
        if let Ok(script) = prepare(&command, is_known) {
            let expansion = |place: usize| format!("${{{}{place}}}", super::VARIABLE_PREFIX);
            let text = script.references.iter().enumerate().fold(script.text.clone(), |text, (place, reference)| {
                text.replace(&expansion(place), &format!("@{reference}"))
            });
            // Besides the names only quotes are put in.
            let plain = |text: &str| text.replace(['\'', '"'], "");
            prop_assert_eq!(plain(&text), plain(&command.replace("@@", "@")));
        }
    }
}
