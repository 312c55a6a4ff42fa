//! Runs prepared scripts in bash with hostile values and checks that a value is never executed.
//!
//! The checker and bash must agree on every position where a reference is accepted. Scripts are generated from a
//! grammar of common constructs and run in an empty folder. Two facts are checked: no file appears, although every
//! hostile value tries to create one, and scripts that print values print them byte for byte. `attacks` combines
//! commands of real programs and runs the accepted ones, `recorded` compares the arguments that programs receive,
//! `requests` checks the requests of `curl`, and `repository` checks the effect of a value on a git repository and its
//! remote.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use mainspring_kernel::script::{Surroundings, VARIABLE_PREFIX, prepare};

#[path = "script_in_bash/attacks.rs"]
mod attacks;
#[path = "script_in_bash/recorded.rs"]
mod recorded;
#[path = "script_in_bash/repository.rs"]
mod repository;
#[path = "script_in_bash/requests.rs"]
mod requests;
#[path = "script_in_bash/reviewed.rs"]
mod reviewed;

/// Values that have an effect if they are interpreted as anything but text.
const HOSTILE_VALUES: [&str; 18] = [
    "'; touch PWNED; '",
    "\"; touch PWNED; \"",
    "$(touch PWNED)",
    "`touch PWNED`",
    "a[$(touch PWNED)]",
    "([0]=$(touch PWNED))",
    "x\ntouch PWNED\n",
    "' \" ` \\",
    "*",
    "-n",
    "-v",
    "\\",
    "",
    " a  b\t",
    "$HOME ${HOME} $((1+1)) ~",
    ") touch PWNED; (",
    "}; touch PWNED; {",
    "#; & | < > ! @vars.other é",
];

/// Scripts that only print the value of each reference, followed by a period and a newline.
const PRINTING: [&str; 34] = [
    "show @vars.a",
    "show \"@vars.a\"",
    "show '@vars.a'",
    "show \"\"@vars.a''",
    "printf '%s\\n' \"$(printf '%s.' @vars.a)\"",
    "printf '%s\\n' \"$(printf '%s' \"$(printf '%s.' '@vars.a')\")\"",
    "x=@vars.a; show \"$x\"",
    "x='@vars.a'; y=\"@vars.a\"; show \"$x\"; show \"$y\"",
    "x=; x+=@vars.a; show \"$x\"",
    "for i in @vars.a '@vars.b'; do show \"$i\"; done",
    "case @vars.a in @vars.a) show @vars.a ;; *) show wrong ;; esac",
    "case a in (a|\"@vars.b\") show @vars.a ;& @vars.b) show '@vars.b' ;; esac",
    "if [[ @vars.a == @vars.a && ! a == \"\" ]]; then show @vars.a; fi",
    "if [ @vars.a = '@vars.a' ]; then show @vars.a; else show wrong; fi",
    "IFS= read -r -d '' x <<< @vars.a; printf '%s.\\n' \"${x%?}\"",
    "(show @vars.a; (show \"@vars.b\"))",
    "{ show @vars.a; show '@vars.b'; } 2>&1",
    "cat <<A <<'B' >/dev/null; show @vars.a\n$HOME ' )\nA\n'\nB\nshow @vars.b",
    "x=1; show \"${#x}\" >/dev/null # it's $(( <<EOF\nshow @vars.b",
    "show @vars.a | cat; ! show \"@vars.b\" |& cat",
    "show $'it\\'s' >/dev/null && \\\n  show @vars.a",
    "while :; do show @vars.a; break; done; until show '@vars.b'; do :; done",
    "x=@vars.a\ncat <<E\n$x.\nE",
    "read -r _ _ <<< @vars.b; for _ in {1..2}; do show @vars.a; done",
    "d=$(mktemp -d); trap 'rm -rf \"$d\"' EXIT; printf '%s.\\n' @vars.a > \"$d/in.txt\"; cat \"$d/in.txt\"",
    "printf '%s.\\n' @vars.a > a.txt; mv a.txt b.txt; cat b.txt; rm b.txt",
    "x=a@vars.a; y=${x:1}; n=$((RANDOM % 2 + SECONDS * 0)); [[ $n -ge 0 ]] && show \"$y\"",
    "cat <<E\n@vars.a.\nE",
    "cat <<-E\n\t@vars.a.\n\t@vars.b.\n\tE",
    "V=@vars.a\ncat <<END; show @vars.b\n${V}.\n$V.\nEND",
    "tmp=$(mktemp); printf '%s.\\n' @vars.a > \"$tmp\"; cat \"$tmp\"; rm -- \"$tmp\"",
    "show @vars.a | sed 's/^/&/'",
    "cat <<< \"@vars.a\".",
    "jq -nj --arg v @vars.a '$v + \".\\n\"'",
];

/// Templates of words and lists. `W` and `L` are replaced by another word or list, `N` by a number.
const WORDS: [&str; 25] = [
    "@vars.a",
    "\"@vars.b\"",
    "'@vars.a'",
    "a@vars.b.c",
    "\"x $(L) y\"",
    "$(L)",
    "\"${HOME:-none} @vars.a\"",
    "'it'\\''s @vars.b'",
    "preW\"post\"",
    "W\"@vars.a\"W",
    "$'a\\'b'",
    "\"@vars.a$((1 << 2))\"",
    "\"$(L)$(L)\"",
    "~@vars.a",
    "*@vars.b?[a-z]",
    "#@vars.a",
    "a#\\#@vars.b",
    "\"\\\\@vars.a\\\"\"",
    "$$@vars.a",
    "\"$vN\"",
    "$vN",
    "\"${VN}\"",
    "\"${vN: -3}${vN#a}\"",
    "{1..2}",
    "\"$((vN + 1))\"",
];

const LISTS: [&str; 44] = [
    "printf '%s\\n' W W",
    "true W; L",
    "L | cat",
    "L && L",
    "(L)",
    "{ L; }",
    "if L; then L; else L; fi",
    "for iN in W W; do L; done",
    "case W in W) L ;; (W|W) L ;& *) L ;; esac",
    "vN=W; L",
    "vN=W; echo $((vN + 1)); L",
    "while read -r vN; do L; done <<< W",
    "fN() { L; }; fN W",
    "cat <<< W",
    "L > /dev/null 2>&1",
    "L > out.txt; cat out.txt",
    "[[ W == W && -n W ]]",
    "[[ W =~ ^(a|b)$ || ! (W < W) ]]",
    "[ W = a ] || L",
    "test a != '@vars.a'",
    "while L; do break; done",
    "cat <<E\n' \" $vN \\\\\nE\nL",
    "cat <<-'E'; L\n\t$( ' \"\n\tE\nL",
    "# it's a \"comment\nL",
    "L &\nwait",
    "! L",
    "echo a \\\n  W",
    "vN=1; ((vN << 2)); L",
    "L | while read -r vN; do L; done",
    "read -r vN <<< W",
    "vN=$(L); L",
    "cat -- W 2>/dev/null",
    "L | sort | uniq -c",
    "eval W",
    "cat <<E\n@vars.a '$vN' \"${VN}\" \\$x @vars.b\nE\nL",
    "cat <<-E | sort; L\n\t@vars.b $VN\n\tE",
    "while read -r vN; do L; done <<E\n@vars.a\nE",
    "VN=W; L; printf '%s\\n' \"$VN\"",
    "vN=$(mktemp); printf %s W > \"$vN\"; cat \"$vN\"; rm -f \"$vN\"",
    "trap 'rm -f \"$vN\"' EXIT; L",
    "for _ in {1..2}; do L; done",
    "vN=$((vN + 1)); L",
    "if [[ $vN -ge 0 ]]; then L; fi",
    "vN=1; L; echo $((vN))",
];

/// A linear congruential generator (Knuth's MMIX). A seed determines a script.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

/// Generates a list of commands; the simplest template if the depth is used up.
fn list(dice: &mut Dice, depth: usize) -> String {
    let template = LISTS[dice.below(if depth == 0 { 1 } else { LISTS.len() })];
    fill(dice, template, depth)
}

fn word(dice: &mut Dice, depth: usize) -> String {
    let template = WORDS[dice.below(if depth == 0 { 4 } else { WORDS.len() })];
    fill(dice, template, depth)
}

fn fill(dice: &mut Dice, template: &str, depth: usize) -> String {
    let mut text = String::new();
    for letter in template.chars() {
        match letter {
            'L' => text.push_str(&list(dice, depth.saturating_sub(1))),
            'W' => text.push_str(&word(dice, depth.saturating_sub(1))),
            // With few variable names, values spread through a script.
            'N' => text.push_str(&dice.below(3).to_string()),
            letter => text.push(letter),
        }
    }
    text
}

/// A temporary folder, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("script-in-bash-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("the folder of tests is writable");
        Self(path)
    }

    /// Creates the folder that `mktemp` uses.
    fn temporary(&self) -> PathBuf {
        let path = self.0.with_extension("tmp");
        fs::create_dir_all(&path).expect("the folder of tests is writable");
        path
    }

    fn is_empty(&self) -> bool {
        fs::read_dir(&self.0).expect("it was made").next().is_none()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
        let _ = fs::remove_dir_all(self.0.with_extension("tmp"));
    }
}

fn is_known(name: &str) -> bool {
    name == "vars"
}

/// Prepares a script and runs it; `None` if it is rejected. `values` are the values of `@vars.a` and of all other
/// references. Returns standard output and standard error.
fn run(folder: &Folder, command: &str, values: [&str; 2]) -> Option<[String; 2]> {
    let script = prepare(command, Surroundings::default(), is_known).ok()?;
    let mut bash = Command::new("bash");
    bash.args(["--norc", "--noprofile", "-c", &script.text]);
    bash.current_dir(&folder.0).stdin(Stdio::null()).env("TMPDIR", folder.temporary());
    for (number, reference) in script.references.iter().enumerate() {
        let value = if reference == "vars.a" { values[0] } else { values[1] };
        bash.env(format!("{VARIABLE_PREFIX}{number}"), value);
    }
    let output = bash.output().expect("bash is there");
    Some([output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

/// Checks that a printing script prints the value of each reference that it shows.
fn check_printing(folder: &Folder, template: &str) {
    let command = template.replace("show", "printf '%s.\\n'");
    for (number, value) in HOSTILE_VALUES.iter().enumerate() {
        let other = HOSTILE_VALUES[(number + 7) % HOSTILE_VALUES.len()];
        let [output, _] = run(folder, &command, [value, other]).unwrap_or_else(|| panic!("refused: {template}"));
        let lines = [format!("{value}.\n"), format!("{other}.\n")];
        let mut rest = &output[..];
        let mut seen = 0;
        while let Some(line) = lines.iter().find(|line| rest.starts_with(&line[..])) {
            rest = &rest[line.len()..];
            seen += 1;
        }
        assert!(rest.is_empty() && seen > 0, "{template}\nwith {value:?} and {other:?} prints\n{output}");
        assert!(folder.is_empty(), "{template}\nwith {value:?} and {other:?} made a file");
    }
}

#[test]
fn an_empty_value_at_the_start_of_a_path_ends_the_script() {
    let folder = Folder::new("empty");
    for command in ["cd -- @vars.x/; echo after", "rm -rf -- @vars.x/none-of-these*; echo after"] {
        let script = prepare(command, Surroundings::default(), is_known).expect(command);
        let run = |value: &str| {
            let mut bash = Command::new("bash");
            bash.args(["-c", &script.text]).current_dir(&folder.0).env(format!("{VARIABLE_PREFIX}0"), value);
            let output = bash.output().expect("bash is there");
            (
                output.status.success(),
                [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()),
            )
        };
        let (succeeds, [output, error]) = run("");
        assert!(
            !succeeds && output.is_empty() && error.contains("the value of @vars.x is empty"),
            "{command}: {error}"
        );
        let (succeeds, [output, _]) = run(".");
        assert!(succeeds && output == "after\n", "{command}: {output}");
    }
}

#[test]
fn values_are_printed_unchanged() {
    let folder = Folder::new("printing");
    for template in PRINTING {
        check_printing(&folder, template);
    }
}

#[test]
fn a_generated_script_executes_no_value() {
    let folder = Folder::new("generated");
    let (mut accepted, mut seed) = (0, 0);
    while accepted < SCRIPTS {
        seed += 1;
        assert!(seed < 100 * SCRIPTS, "some of what the grammar makes is to be accepted, not {accepted} of {seed}");
        let mut dice = Dice(seed);
        let command = list(&mut dice, 3);
        let values = [(); 2].map(|()| HOSTILE_VALUES[dice.below(HOSTILE_VALUES.len())]);
        if command.contains("@vars")
            && let Some([_, errors]) = run(&folder, &command, values)
        {
            accepted += 1;
            // A script with a syntax error would prove nothing.
            assert!(!errors.contains("syntax error near"), "seed {seed}: {errors}\n{command}");
        }
        let _ = fs::remove_file(folder.0.join("out.txt"));
        assert!(folder.is_empty(), "seed {seed} with {values:?} made a file:\n{command}");
    }
}

/// The number of generated scripts that are run.
const SCRIPTS: u64 = 1_000;
