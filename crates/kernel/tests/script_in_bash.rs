//! Prepared scripts are run by bash with hostile values, to see that a value stays a value.
//!
//! The reader of scripts and bash must agree on every place where a reference is accepted. Scripts are put together from
//! a grammar of what people write, run in an empty folder, and judged by two facts: no file appears, which is what every
//! hostile value tries to bring about, and where a script prints its values, they come out byte for byte.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use mainspring_kernel::script::{VARIABLE_PREFIX, prepare};

/// Values that do harm wherever they are read as anything but text.
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

/// Scripts that print the value of each reference on a line of its own, `%s` and nothing else.
const PRINTING: [&str; 34] = [
    "show @vars.a",
    "show \"@vars.a\"",
    "show '@vars.a'",
    "show \"\"@vars.a''",
    "show \"$(printf '%s.' @vars.a)\"",
    "show \"$(printf '%s' \"$(printf '%s.' '@vars.a')\")\"",
    "x=@vars.a; show \"$x\"",
    "x='@vars.a' y=\"@vars.a\"; show \"$x\"; show \"$y\"",
    "x=; x+=@vars.a; show \"$x\"",
    "x=(@vars.a \"@vars.b\" '@vars.a'); for i in \"${x[@]}\"; do show \"$i\"; done",
    "for i in @vars.a '@vars.b'; do show \"$i\"; done",
    "f() { show \"$1\"; }; f @vars.a",
    "function f { local x=@vars.a; show \"$x\"; }; f",
    "case @vars.a in @vars.a) show @vars.a ;; *) show wrong ;; esac",
    "case a in (a|\"@vars.b\") show @vars.a ;& @vars.b) show '@vars.b' ;; esac",
    "show \"$(case a in a) printf '%s.' @vars.a ;; b) echo b ;; esac)\"",
    "if [[ @vars.a == @vars.a && ! a == \"\" ]]; then show @vars.a; fi",
    "[[ @vars.a =~ ^@vars.a$ ]] && show @vars.a",
    "if [ @vars.a = '@vars.a' ]; then show @vars.a; else show wrong; fi",
    "IFS= read -r -d '' x <<< @vars.a; show \"${x%?}\"",
    "IFS= read -r -d '' x < <(printf '%s\\0' @vars.a); show \"$x\"",
    "(show @vars.a; (show \"@vars.b\"))",
    "{ show @vars.a; show '@vars.b'; } 2>&1",
    "cat <<A <<'B' >/dev/null; show @vars.a\n$(echo ')\nA\n'\nB\nshow @vars.b",
    "export X=@vars.a; bash -c 'printf \"%s.\\n\" \"$X\"'",
    "bash -c 'printf \"%s.\\n\" \"$1\"' _ @vars.a",
    "declare X=\"@vars.a\"; show \"$X\"",
    "x=1; ((x << 2)); show @vars.a # it's $(( <<EOF\nshow \"$(( ${#x} + 1 ))\" >/dev/null; show @vars.b",
    "show @vars.a | cat; ! show \"@vars.b\" |& cat",
    "show $'it\\'s' >/dev/null && \\\n  show @vars.a",
    "while :; do show @vars.a; break; done; until show '@vars.b'; do :; done",
    "time -p show @vars.a 2>/dev/null",
    "shopt -s extglob\ncase @vars.a in @(@vars.a|\"@vars.b\")) show @vars.a ;; *) show wrong ;; esac",
    "coproc N { show @vars.a; }; IFS= read -r -d '' -u \"${N[0]}\" x; show \"${x%??}\"",
];

/// Words, lists and what can be around them; `W` and `L` are replaced by another word or list, `N` by a new number.
const WORDS: [&str; 22] = [
    "@vars.a",
    "\"@vars.b\"",
    "'@vars.a'",
    "a@vars.b.c",
    "\"x $(L) y\"",
    "$(L)",
    "<(L)",
    "\"${HOME:-\"it's\"} @vars.a\"",
    "'it'\\''s @vars.b'",
    "preW\"post\"",
    "W\"@vars.a\"W",
    "`echo \\`echo b\\``",
    "$'a\\'b'",
    "\"@vars.a$((1 << 2))\"",
    "{W,@vars.b}",
    "\"$(L)$(L)\"",
    "~@vars.a",
    "*@vars.b?[a-z]",
    "#@vars.a",
    "a#\\#@vars.b",
    "\"\\\\@vars.a\\\"\"",
    "$$@vars.a",
];

const LISTS: [&str; 34] = [
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
    "vN=(W W [3]=W); L",
    "fN() { L; }; fN W",
    "function gN { L; }; gN W",
    "cat <<< W",
    "cat < <(L)",
    "L > /dev/null 2>&1",
    "[[ W == W && -n W ]]",
    "[[ W =~ ^(a|b)W$ || ! (W < W) ]]",
    "[ W = a ] || L",
    "test a != '@vars.a'",
    "while L; do break; done",
    "cat <<E\n' \" ` $(echo a) \\\\\nE\nL",
    "cat <<-'E'; L\n\t$( ' \"\n\tE\nL",
    "# it's a \"comment\nL",
    "L &\nwait",
    "time L",
    "! L",
    "echo a \\\n  W",
    "(( 1 << 2 )) ; L",
    "for ((i=0; i<1; i++)); do L; done",
    "local vN=W 2>/dev/null",
    "export vN=W",
    "read -r vN <<< W",
    "bash -c 'echo \"$1\" \"$0\"' W W",
];

/// A linear congruential generator (Knuth's MMIX): a seed is a script.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

/// A list of commands; the shallowest that there are once the depth is used up.
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
            'N' => text.push_str(&dice.below(1000).to_string()),
            letter => text.push(letter),
        }
    }
    text
}

/// An empty folder of this test, and what is in it afterwards.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("script-in-bash-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("the folder of tests is writable");
        Self(path)
    }

    fn is_empty(&self) -> bool {
        fs::read_dir(&self.0).expect("it was made").next().is_none()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn is_known(name: &str) -> bool {
    name == "vars"
}

/// Prepares a script and runs it in a folder; `None` if it is refused. `values` are those of `@vars.a` and all others.
/// Gives its standard output and its standard error.
fn run(folder: &Folder, command: &str, values: [&str; 2]) -> Option<[String; 2]> {
    let script = prepare(command, is_known).ok()?;
    let mut bash = Command::new("bash");
    bash.args(["--norc", "--noprofile", "-c", &script.text]);
    bash.current_dir(&folder.0).stdin(Stdio::null());
    for (number, reference) in script.references.iter().enumerate() {
        let value = if reference == "vars.a" { values[0] } else { values[1] };
        bash.env(format!("{VARIABLE_PREFIX}{number}"), value);
    }
    let output = bash.output().expect("bash is there");
    Some([output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

/// What a printing script must print: the value of each reference that stands where `show` gets to see it.
fn check_printing(folder: &Folder, template: &str) {
    let command = format!("show() {{ printf '%s.\\n' \"${{1%.}}\"; }}\n{template}");
    for (number, value) in HOSTILE_VALUES.iter().enumerate() {
        // `show` takes one full stop away, which protects a newline at the end from `$( )`.
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
fn values_come_out_as_they_are() {
    let folder = Folder::new("printing");
    for template in PRINTING {
        check_printing(&folder, template);
    }
}

#[test]
fn no_value_is_run_by_a_generated_script() {
    let folder = Folder::new("generated");
    let mut accepted = 0;
    let mut seed = 0;
    while accepted < SCRIPTS {
        seed += 1;
        assert!(seed < 4 * SCRIPTS, "most of what the grammar makes is to be accepted, not {accepted} of {seed}");
        let mut dice = Dice(seed);
        let command = list(&mut dice, 3);
        let values = [(); 2].map(|()| HOSTILE_VALUES[dice.below(HOSTILE_VALUES.len())]);
        if let Some([_, errors]) = run(&folder, &command, values) {
            accepted += 1;
            // What bash refuses to read as a whole would prove nothing.
            assert!(!errors.contains("syntax error near"), "seed {seed}: {errors}\n{command}");
        }
        assert!(folder.is_empty(), "seed {seed} with {values:?} made a file:\n{command}");
    }
}

/// Commands in which values were code before they were judged, and others like them. `{}` is the value's place.
const ATTACKED: [&str; 84] = [
    "echo VERSION | sed \"s/VERSION/{}/\"",
    "echo VERSION | sed -e s/VERSION/{}/",
    "echo a | sed -- {}",
    "awk '{print \"{}\"}' <<< a",
    "awk -v v={} 'BEGIN {print v}'",
    "awk {} <<< a",
    "git fetch origin {}",
    "git fetch origin -- {}",
    "git -c core.pager={} log",
    "git clone {} x",
    "git clone -- {} x",
    "git ls-remote {}",
    "git ls-remote -- {}",
    "git tag -m {} x",
    "git config alias.x {}; git x",
    "git grep {}",
    "echo {} > s.sh; . ./s.sh",
    "echo {} > s; . ./s",
    "echo {} | tee s; bash s",
    "{ echo {}; } > s; sh s",
    "f=s; echo {} > s; . ./\"$f\"",
    "echo {} > Makefile; make",
    "echo {} > ls; chmod +x ls; PATH=.:$PATH ls",
    "eval echo {}",
    "eval \"{}\"",
    "x={}; eval \"$x\"",
    "x={}; eval \"echo $x\"",
    "f() { eval \"$1\"; }; f {}",
    "set -- {}; eval \"$1\"",
    "set {}",
    "bash -c {}",
    "bash -c \"echo {}\"",
    "bash -c 'echo \"$1\"' _ {}",
    "bash {}",
    "bash -- {}",
    "echo {} | bash",
    "bash <<< {}",
    "bash <(echo {})",
    "echo {} > >(bash)",
    "echo {} | tee >(bash)",
    "sh -c 'eval \"$1\"' _ {}",
    "trap {} EXIT",
    "trap -- {} EXIT",
    "echo $(( {} ))",
    "n={}; echo $((n))",
    "n={}; (( n ))",
    "n={}; [[ $n -eq 0 ]]",
    "[[ {} -eq 0 ]]",
    "[[ -v {} ]]",
    "test -v {}",
    "[ -v {} ]",
    "printf -v {} a",
    "printf {} a",
    "printf '%s' {}",
    "printf \"a{}\" b",
    "declare {}=1",
    "declare -i n={}",
    "declare n={}",
    "export {}",
    "export n={}; echo \"$n\"",
    "read {} <<< a",
    "read n <<< {}; echo $((n))",
    "let {}",
    "unset {}",
    "a=(1); echo ${a[{}]}",
    "n={}; echo ${a[$n]}",
    "n={}; echo ${!n}",
    "n={}; echo ${n@P}",
    "PS4={}; set -x; true",
    "BASH_ENV={} bash -c true",
    "env BASH_FUNC_true%%={} bash -c true",
    "find . -name {}",
    "find {}",
    "find . -exec {} \\;",
    "echo {} | xargs",
    "echo {} | xargs git fetch",
    "echo {} | xargs -I% sh -c %",
    "env -S {}",
    "perl -ne print {}",
    "python3 -c 'print(1)' {}",
    "python3 -c \"print('{}')\"",
    "tar cf /dev/null {}",
    "sort {}",
    "case a in {}) ;; esac",
];

/// Values that run `touch PWNED` where they reach a program or a shell as anything but text.
const ATTACKS: [&str; 20] = [
    "x/e;s/^.*$/touch PWNED/e;#",
    "\"; system(\"touch PWNED\"); print \"",
    "--upload-pack=touch PWNED; git-upload-pack",
    "touch PWNED",
    "; touch PWNED",
    "$(touch PWNED)",
    "`touch PWNED`",
    "a[$(touch PWNED)]",
    "touch PWNED|",
    "'); import os; os.system('touch PWNED'); ('",
    "() { touch PWNED; }",
    "-exec=touch PWNED",
    "BEGIN{system(\"touch PWNED\")}",
    "1e touch PWNED",
    "ext::sh -c touch% PWNED",
    "--to-command=touch PWNED",
    "--compress-program=touch PWNED",
    "-c touch PWNED",
    "x\" ; touch PWNED ; \"",
    "-v a[$(touch PWNED)]",
];

/// Whatever is accepted runs with each of these values, in its own folder, and none of them is carried out.
#[test]
fn no_attack_is_carried_out() {
    let folder = Folder::new("attacks");
    let mut accepted = 0;
    for template in ATTACKED {
        let command = template.replace("{}", "@vars.a");
        for value in ATTACKS {
            let made = ["PWNED", "s", "s.sh", "ls", "Makefile", "x"];
            if run(&folder, &command, [value, value]).is_some() {
                accepted += 1;
                assert!(!folder.0.join("PWNED").exists(), "{command}\nwith {value:?} was carried out");
            }
            for name in made {
                let _ = fs::remove_file(folder.0.join(name));
            }
        }
    }
    assert!(accepted >= ATTACKS.len() * 10, "only {accepted} were run: what is refused proves nothing about bash");
}

/// The four of them that a review has found.
#[test]
fn what_was_found_is_refused() {
    let folder = Folder::new("found");
    for command in [
        "echo VERSION | sed \"s/VERSION/@vars.a/\"",
        "awk '{print \"@vars.a\"}'",
        "git fetch origin @vars.a",
        "echo @vars.a > s.sh; . ./s.sh",
    ] {
        assert!(run(&folder, command, ["a", "b"]).is_none(), "{command}");
    }
}

/// How many generated scripts are run.
const SCRIPTS: u64 = 400;
