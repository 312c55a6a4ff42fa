//! Regression tests: scripts that earlier versions of the checker accepted, each with a value that was executed.
//!
//! Each script must be rejected or run without creating the file `PWNED`.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use mainspring_kernel::script::{Script, Surroundings, VARIABLE_PREFIX, prepare};

use super::{Folder, is_known};

/// A value that is a command, and one that arithmetic evaluates.
const SHELL: &str = "touch PWNED";
const NUMBER: &str = "a[$(touch PWNED)]";

/// Scripts with the value that was executed.
const RAN: &[(&str, &str)] = &[
    // With a second `!` the checker skipped the command after it.
    ("! ! trap 'eval \"$n\"' EXIT; n=@vars.x", SHELL),
    ("! ! shopt -s expand_aliases\n! ! alias echo=eval\necho @vars.x", SHELL),
    ("n=@vars.x; ! ! [[ n -eq 1 ]]", NUMBER),
    ("n=@vars.x; ! ! ! eval \"$n\"", SHELL),
    ("n=@vars.x; !\teval \"$n\"", SHELL),
    ("! ! eval @vars.x", SHELL),
    // An expansion completes the name of a variable.
    ("a5=@vars.x; a=1; n=5; echo $((a$n))", NUMBER),
    ("x1=@vars.x; i=1; x=0; for i in 1 2 3; do echo $((x$i)); done", NUMBER),
    ("x0=@vars.x; x=0; (( x$# ))", NUMBER),
    ("x0=@vars.x; x=0; echo $((x$?))", NUMBER),
    ("x0=@vars.x; x=0; echo $((1 + x$#))", NUMBER),
    ("n=1; m=2; n2=@vars.x; echo $((n$m))", NUMBER),
    ("n=1; m=2; n2=@vars.x; (( $n$m )); (( n$m ))", NUMBER),
    // `export` assigns to a variable.
    ("n=0; export n=x; x=@vars.x; echo $((n))", NUMBER),
    ("n=0; export n=x; x=@vars.x; [[ $n -eq 1 ]]", NUMBER),
    ("n=0; export \"n\"=x; x=@vars.x; echo $((n))", NUMBER),
    ("n=0; if true; then export m n=x; fi; x=@vars.x; (( n ))", NUMBER),
    // A program copies its standard input.
    ("echo @vars.x | cp /dev/stdin run; bash run", SHELL),
    ("echo @vars.x | cp /dev/stdin .git/hooks/post-checkout; bash .git/hooks/post-checkout", SHELL),
    ("cd /; cd \"$OLDPWD\"; d=dev; echo @vars.x | cp /$d/stdin run; bash run", SHELL),
    ("echo @vars.x | { cp /dev/fd/0 run; }; bash run", SHELL),
    // `find` parses an expression after `--`.
    ("echo @vars.x | find -- . -maxdepth 0 -exec sh \\;", SHELL),
    ("echo @vars.x > n.txt; find -- . -name n.txt -exec sh {} \\;", SHELL),
    ("echo @vars.x | timeout 5 find -- . -maxdepth 0 -exec sh \\;", SHELL),
    // A redirection does not replace the input that it seems to replace.
    ("bash <<< @vars.x < //dev/stdin", SHELL),
    ("echo @vars.x | bash < /./dev/stdin", SHELL),
    ("echo @vars.x | cat < //dev/stdin > run; bash run", SHELL),
    ("ln -s /dev/stdin in; echo @vars.x | bash < in", SHELL),
    ("o=$PWD; cd /; bash -c \"cd $o; $(cat)\" <<< @vars.x < dev/stdin", SHELL),
    ("o=$PWD; d=dev; cd /; echo \"cd $o; \"@vars.x | bash < $d/stdin", SHELL),
    ("{ bash /proc/$$/fd/0 < /dev/null; } <<< @vars.x", SHELL),
    ("sleep 1 <<< @vars.x & bash /proc/$!/fd/0; wait", SHELL),
    ("{ echo @vars.x; bash /dev/stdout; } | sleep 1", SHELL),
    ("{ echo @vars.x; timeout 1 bash < /dev/stdout; } | sleep 1", SHELL),
    // `set -x` prints the words of a test unquoted.
    ("{ set -x; [[ -n @vars.x ]]; } 2>&1 | sh", "; touch PWNED #"),
    ("{ set -x; [[ a == @vars.x ]]; } 2>&1 | sh", "; touch PWNED #"),
    ("{ set -x; [[ -n @vars.x ]]; } 2> log; sh log", "; touch PWNED #"),
    ("{ set -x; case @vars.x in a) ;; esac; } 2>&1 | sh", "; touch PWNED #"),
    ("{ set -x; for i in @vars.x; do :; done; } 2>&1 | sh", "; touch PWNED #"),
    // A program reads its environment or data of other processes.
    ("true @vars.x; env | grep REF_0 | cut -d= -f2- | bash", SHELL),
    ("true @vars.x; printenv | grep REF_0 | cut -d= -f2- | bash", SHELL),
    ("true @vars.x; export | grep REF_0 | sed 's/^[^\"]*\"//; s/\"$//' | bash", SHELL),
    ("true @vars.x; export MAIN\"SPRING_RE\"F_0; env | grep REF_0 | cut -d= -f2- | bash", SHELL),
    ("true @vars.x; env | cut -d= -f2- | grep '^touch' | sh", SHELL),
    ("cat /proc/self/environ | tr '\\0' '\\n' | grep REF_0 | cut -d= -f2 | sh; true @vars.x", SHELL),
    ("cat /proc/$$/environ | tr '\\0' '\\n' | grep REF_0 | cut -d= -f2 | sh; true @vars.x", SHELL),
    ("ps eww | grep -o 'touch PWNED' | sh; true @vars.x", SHELL),
    ("/bin/ps eww | grep -o 'touch PWNED' | head -n 1 > s; sh s; true @vars.x", SHELL),
    // A script uses the name of the folder as text.
    ("mkdir -p -- @vars.x; cd -- @vars.x; printf ~+ PATH; bash -c \"cd ..; $PATH\"", "touch PWNED"),
    ("mkdir -p -- @vars.x; cd -- @vars.x; n=${x:-~+}; cd ..; bash -c \"${n##*/}\"", SHELL),
    ("mkdir -p -- @vars.x; cd -- @vars.x; cd ..; n=~-; bash -c \"${n##*/}\"", SHELL),
];

/// Scripts that run with an exported variable `version` and a `Makefile` that prints it.
const MADE: &[(&str, &str)] = &[
    ("version=@vars.x; make -s", "$(shell touch PWNED)"),
    ("VERSION=@vars.x; make -s", "$(shell touch PWNED)"),
    ("for version in @vars.x; do make -s; done", "$(shell touch PWNED)"),
    ("read -r version <<< @vars.x; make -s", "$(shell touch PWNED)"),
    ("true @vars.x; make -s", "$(shell touch PWNED)"),
];

const MAKEFILE: &str = "x:\n\t@echo $(version) $(VERSION) $(MAINSPRING_REF_0)\n";

/// Runs a script as the engine does, with one value for all of its references.
fn run(folder: &Path, script: &Script, value: &str, variables: &[(&str, &str)]) {
    let mut bash = Command::new("timeout");
    bash.args(["5", "bash", "--norc", "--noprofile", "-c", &script.text]).current_dir(folder);
    bash.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    bash.env("HOME", folder).envs(variables.iter().copied());
    for number in 0..script.references.len() {
        bash.env(format!("{VARIABLE_PREFIX}{number}"), value);
    }
    let _ = bash.output().expect("bash is there");
}

/// Returns true if the file `PWNED` exists anywhere in the folder, and empties the folder.
fn take_marker(folder: &Path) -> bool {
    let mut found = false;
    for entry in fs::read_dir(folder).expect("it was made").flatten() {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        found |= entry.file_name() == "PWNED" || (is_folder && take_marker(&entry.path()));
        let _ = if is_folder { fs::remove_dir(entry.path()) } else { fs::remove_file(entry.path()) };
    }
    found
}

/// Returns the scripts of a table that create the file `PWNED`.
fn harmful<'a>(name: &str, table: &[(&'a str, &str)], variables: &[(&str, &str)]) -> Vec<&'a str> {
    let folder = Folder::new(name);
    let mut harmful = Vec::new();
    for (command, value) in table {
        let Ok(script) = prepare(command, Surroundings::default(), is_known) else { continue };
        fs::create_dir_all(folder.0.join(".git/hooks")).expect("the folder of tests is writable");
        fs::write(folder.0.join("Makefile"), MAKEFILE).expect("the folder of tests is writable");
        run(&folder.0, &script, value, variables);
        if take_marker(&folder.0) {
            harmful.push(*command);
        }
    }
    harmful
}

#[test]
fn reviewed_scripts_execute_no_value() {
    let harmful = harmful("ran", RAN, &[]);
    assert!(harmful.is_empty(), "{harmful:#?}");
}

#[test]
fn no_program_finds_a_value_in_its_environment() {
    let harmful = harmful("made", MADE, &[("version", "1"), ("VERSION", "1")]);
    assert!(harmful.is_empty(), "{harmful:#?}");
}
