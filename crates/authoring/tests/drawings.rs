//! Compares drawings of definitions with golden files. `MAINSPRING_UPDATE_GOLDEN=1` rewrites the files; review
//! their diff.

use std::{collections::BTreeSet, fmt::Write, fs, path::Path};

use mainspring_authoring::draw::{Style, dot, mermaid, svg, terminal};
use mainspring_kernel::{
    definition::{Syntax, compile, read},
    json,
    plan::Plan,
};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/drawings");

const DEFINITIONS: [&str; 13] = [
    "branches",
    "containers",
    "dataflow",
    "deep",
    "diamond",
    "edged_sequence",
    "everything",
    "fan",
    "graph",
    "hostile",
    "hostile_graph",
    "loops",
    "release",
];

fn compiled(text: &str) -> Plan {
    let document = read(text.as_bytes(), Syntax::Yaml).expect("the definition can be read");
    compile(&document).map(|compiled| compiled.plan).unwrap_or_else(|found| panic!("{found:#?}"))
}

fn definitions() -> impl Iterator<Item = (&'static str, Plan)> {
    DEFINITIONS.into_iter().map(|name| {
        let text = fs::read_to_string(format!("{FOLDER}/{name}.yaml")).expect("the definition is there");
        (name, compiled(&text))
    })
}

fn plain(width: usize) -> Style {
    Style { color: false, width, ascii: false }
}

/// Compares a text with a golden file, or rewrites it.
#[track_caller]
fn check_golden(file: &str, text: &str) {
    let path = Path::new(FOLDER).join(file);
    if std::env::var_os("MAINSPRING_UPDATE_GOLDEN").is_some_and(|value| value == "1") {
        return fs::write(path, text).expect("the golden file can be written");
    }
    let expected = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{file}: {error}"));
    let lines = text.lines().zip(expected.lines()).enumerate();
    let difference = lines.into_iter().find(|(_, (now, before))| now != before);
    let first = difference.map_or_else(
        || "one is longer".into(),
        |(at, (now, before))| format!("line {}\n  picture: {before}\n  now:     {now}", at + 1),
    );
    assert!(text == expected, "{file}: {first}\n(MAINSPRING_UPDATE_GOLDEN=1 writes it anew)");
}

#[test]
fn drawings_match_the_goldens() {
    for (name, plan) in definitions() {
        let mut pictures = String::new();
        for width in [60, 80, 120] {
            let _ = writeln!(pictures, "== {width} columns\n\n{}", terminal(&plan, &plain(width)));
        }
        let ascii = terminal(&plan, &Style { ascii: true, ..plain(60) });
        let color = terminal(&plan, &Style { color: true, ..plain(60) }).replace('\u{1b}', "^");
        let _ = writeln!(pictures, "== 60 columns, ASCII\n\n{ascii}");
        let _ = write!(pictures, "== 60 columns, in colors\n\n{color}");
        check_golden(&format!("{name}.txt"), &pictures);
        check_golden(&format!("{name}.mmd"), &mermaid(&plan));
        check_golden(&format!("{name}.dot"), &dot(&plan));
        check_golden(&format!("{name}.svg"), &svg(&plan));
    }
}

/// Columns of a line. Wide characters of the definitions in this folder are listed here.
fn columns(line: &str) -> usize {
    line.chars().map(|letter| if "日本語🎉".contains(letter) { 2 } else { 1 }).sum()
}

#[test]
fn lines_fit_the_width() {
    for (name, plan) in definitions() {
        for width in (0..160).step_by(3) {
            for style in [plain(width), Style { ascii: true, ..plain(width) }] {
                let drawing = terminal(&plan, &style);
                let widest = drawing.lines().map(columns).max().unwrap_or(0);
                assert!(widest <= width.max(40), "{name}: {widest} columns in {style:?}\n{drawing}");
                assert!(drawing.lines().all(|line| line.trim_end() == line), "{name}: spaces at an end in {style:?}");
            }
        }
    }
}

#[test]
fn drawings_contain_no_control_characters() {
    let is_obeyed = |letter: char| letter.is_control() && letter != '\n' || "\u{200b}\u{202e}\u{feff}".contains(letter);
    for (name, plan) in definitions() {
        let texts = [60, 80, 120].map(|width| terminal(&plan, &plain(width)));
        for text in texts.into_iter().chain([mermaid(&plan), dot(&plan)]) {
            assert_eq!(text.chars().find(|letter| is_obeyed(*letter)), None, "{name}");
        }
        let ascii = terminal(&plan, &Style { ascii: true, ..plain(80) });
        assert!(ascii.is_ascii(), "{name}");
        let colored = terminal(&plan, &Style { color: true, ..plain(80) });
        assert_eq!(without_colors(&colored), terminal(&plan, &plain(80)), "{name}");
    }
}

/// Removes `ESC [ … m` sequences and nothing else.
fn without_colors(text: &str) -> String {
    let mut pieces = text.split("\u{1b}[");
    let first = pieces.next().unwrap_or_default().to_string();
    pieces.fold(first, |plain, piece| {
        let (codes, rest) = piece.split_once('m').expect("a color ends");
        assert!(codes.bytes().all(|byte| byte.is_ascii_digit() || byte == b';'), "{codes}");
        plain + rest
    })
}

#[test]
fn every_step_is_in_every_drawing() {
    for (name, plan) in definitions() {
        for drawing in [terminal(&plan, &plain(120)), mermaid(&plan), dot(&plan), svg(&plan)] {
            for step in &plan.steps {
                let id = step.id.as_str();
                // Mermaid drawings contain underscores and brackets of an id as entities.
                let entities = id.replace('_', "#95;").replace('[', "#91;").replace(']', "#93;");
                assert!(drawing.contains(id) || drawing.contains(&entities), "{name}: {id} in\n{drawing}");
            }
        }
    }
}

/// The declared names of a drawing, and the names used by its edges. Every line must be a declaration with one
/// quoted label, an edge, or a keyword of the notation; a label that escapes its quotes is found here.
fn names(drawing: &str, arrow: &str, is_word: fn(&str) -> bool) -> (Vec<String>, BTreeSet<String>) {
    let (mut declared, mut used) = (Vec::new(), BTreeSet::new());
    for line in drawing.lines().map(str::trim) {
        let is_name = |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if let Some((from, to)) = line.split_once(&format!(" {arrow}")) {
            let to = to.trim_start_matches(['|', ' ']);
            let to = to.rsplit(['|', ' ']).next().filter(|_| arrow == "-->").unwrap_or(to);
            let to = to.split(' ').next().unwrap_or_default();
            assert!(is_name(from) && is_name(to), "{line}");
            used.extend([from.to_string(), to.to_string()]);
        } else if !is_word(line) {
            let end = line.find(|letter: char| !letter.is_ascii_alphanumeric()).unwrap_or(line.len());
            assert!(is_name(&line[..end]), "{line}");
            declared.push(line[..end].to_string());
        }
    }
    (declared, used)
}

fn check_graph(name: &str, (declared, used): (Vec<String>, BTreeSet<String>), steps: usize) {
    let unique: BTreeSet<_> = declared.iter().cloned().collect();
    assert_eq!(unique.len(), declared.len(), "{name}: {declared:?}");
    assert!(declared.len() > steps, "{name}: a node for each step and one for the beginning");
    assert!(used.is_subset(&unique), "{name}: {used:?} of {unique:?}");
}

#[test]
fn graphs_are_well_formed() {
    for (name, plan) in definitions() {
        let words = |line: &str| {
            let starts = ["flowchart TD", "end", "subgraph c", "linkStyle "];
            starts.iter().any(|start| line.starts_with(start))
        };
        let drawing = mermaid(&plan);
        check_graph(name, names(&drawing, "-->", words), plan.steps.len());
        for label in drawing.lines().filter_map(|line| line.split_once('"')) {
            let (label, _) = label.1.rsplit_once('"').expect("a label ends");
            let label = label.replace("<br/>", "");
            assert!(!label.contains(['"', '<', '>', '`', '%', '[', ']', '{', '}', '|']), "{name}: {label}");
        }
        let drawing = dot(&plan);
        let words = |line: &str| {
            let starts = ["digraph {", "graph [", "node [", "edge [", "subgraph cluster_", "label=\"", "}"];
            starts.iter().any(|start| line.starts_with(start))
        };
        check_graph(name, names(&drawing, "->", words), plan.steps.len());
    }
}

/// Text never becomes markup: every tag is one that the drawing writes itself, and all quotes are closed.
#[test]
fn pictures_are_well_formed() {
    const TAGS: [&str; 7] = ["svg", "title", "defs", "marker", "rect", "path", "text"];
    for (name, plan) in definitions() {
        let drawing = svg(&plan);
        for tag in drawing.split('<').skip(1) {
            let (inside, text) = tag.split_once('>').unwrap_or_else(|| panic!("{name}: {tag}"));
            let word = inside.split([' ', '/']).find(|word| !word.is_empty()).unwrap_or_default();
            assert!(TAGS.contains(&word), "{name}: {tag}");
            assert!(inside.matches('"').count().is_multiple_of(2), "{name}: {tag}");
            assert!(!text.contains(['"', '>']), "{name}: {text}");
        }
        for size in ["width=\"-", "height=\"-", "NaN"] {
            assert!(!drawing.contains(size), "{name}");
        }
    }
}

/// The plan survives a round trip through its JSON form.
#[test]
fn drawing_data_is_complete() {
    for (name, plan) in definitions() {
        let text = json::pretty(&plan.to_value());
        let value = json::read(text.as_bytes()).expect("what is printed can be read").value;
        assert_eq!(Plan::from_value(&value).as_ref(), Ok(&plan), "{name}");
    }
}

/// The size of a drawing of a hundred steps on a terminal of default width.
#[test]
fn a_hundred_steps_by_edges_are_readable() {
    let node = |number: usize| format!("{{\"type\":\"bash\",\"id\":\"s{number}\",\"command\":\"true\"}}");
    let edge = |number: usize| {
        let when = if number.is_multiple_of(9) { "on_failure" } else { "on_success" };
        format!("{{\"from\":\"s{}\",\"to\":\"s{number}\",\"when\":\"{when}\"}}", number / 3)
    };
    let nodes = (0..100).map(node).collect::<Vec<_>>().join(",");
    let edges = (1..100).map(edge).collect::<Vec<_>>().join(",");
    let plan = compiled(&format!("{{\"nodes\":[{nodes}],\"edges\":[{edges}]}}"));
    let drawing = terminal(&plan, &plain(80));
    check_golden("hundred.txt", &drawing);
    assert!(drawing.lines().count() < 220 && drawing.lines().all(|line| columns(line) <= 80));
    for number in 1..100 {
        let parent = format!("s{}", number / 3);
        let word = if number % 9 == 0 { "✗ on failure of" } else { "on success of" };
        assert!(drawing.contains(&format!("{word} {parent}")), "{number}");
    }
}

#[test]
fn large_plans_have_large_drawings() {
    let step = |number: usize| format!("{{\"type\":\"bash\",\"id\":\"s{number}\",\"command\":\"true\"}}");
    let steps = (0..10_000).map(step).collect::<Vec<_>>().join(",");
    let deep = (0..30).fold(step(10_000), |inside, level| {
        format!("{{\"type\":\"parallel\",\"id\":\"p{level}\",\"steps\":[{inside},{}]}}", step(level))
    });
    for (definition, most_lines) in [
        (format!("{{\"steps\":[{steps}]}}"), 20_010),
        (format!("{{\"order\":\"edges\",\"steps\":[{steps}]}}"), 40_010),
        (format!("{{\"steps\":[{{\"type\":\"parallel\",\"id\":\"all\",\"steps\":[{steps}]}}]}}"), 20_010),
        (format!("{{\"steps\":[{deep}]}}"), 400),
    ] {
        let plan = compiled(&definition);
        for width in [40, 80, 1000] {
            let drawing = terminal(&plan, &plain(width));
            assert!(drawing.lines().count() <= most_lines, "{} lines", drawing.lines().count());
            assert!(drawing.lines().all(|line| columns(line) <= width));
        }
        for number in [0, 15, plan.steps.len() / 2] {
            let step = &plan.steps[number].id;
            assert!(mermaid(&plan).contains(step.as_str()) && dot(&plan).contains(step.as_str()));
            assert!(svg(&plan).contains(step.as_str()));
        }
    }
}
