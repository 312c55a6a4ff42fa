//! Draws a plan as a Mermaid flowchart.
//!
//! Mermaid parses a label several times: for directives and comments, by its grammar, as Markdown, as HTML. One
//! quoting is safe in all of them: every character but letters, digits and some punctuation is written as `#code;`,
//! an entity that Mermaid decodes last.

use std::fmt::Write;

use mainspring_kernel::plan::Plan;

use super::graph::{Edge, Graph, Item, Node, Shape, Stroke};

/// ASCII punctuation without a meaning to any of Mermaid's parsers inside of a quoted label.
const HARMLESS: &str = " .,:/?!=+-";

/// Draws a plan as a Mermaid flowchart, from top to bottom.
///
/// Mermaid refuses more than 500 edges or 50,000 characters unless it is configured otherwise.
pub fn mermaid(plan: &Plan) -> String {
    let Graph { items, edges } = Graph::of(plan);
    let mut out = String::from("flowchart TD\n");
    items.iter().for_each(|item| write_item(item, 1, &mut out));
    edges.iter().for_each(|edge| write_edge(edge, &mut out));
    edges.iter().enumerate().for_each(|(number, edge)| write_style(number, edge.stroke, &mut out));
    out
}

// Writing to a String cannot fail.

fn write_item(item: &Item, depth: usize, out: &mut String) {
    let indent = "    ".repeat(depth);
    match item {
        Item::Node(Node { name, shape, lines }) => {
            let (open, close) = brackets(*shape);
            let _ = writeln!(out, "{indent}{name}{open}\"{}\"{close}", label(lines));
        }
        Item::Cluster { number, lines, items } => {
            let _ = writeln!(out, "{indent}subgraph c{number}[\"{}\"]", label(lines));
            items.iter().for_each(|item| write_item(item, depth + 1, out));
            let _ = writeln!(out, "{indent}end");
        }
    }
}

fn write_edge(Edge { from, to, label: lines, .. }: &Edge, out: &mut String) {
    let arrow = if lines.is_empty() { "-->".into() } else { format!("-->|\"{}\"|", label(lines)) };
    let _ = writeln!(out, "    {from} {arrow} {to}");
}

/// Mermaid styles links by their index.
fn write_style(number: usize, stroke: Stroke, out: &mut String) {
    let style = match stroke {
        Stroke::Plain => return,
        Stroke::Failure => "stroke:#c00,stroke-width:2px,stroke-dasharray:6,color:#c00",
        Stroke::Aside => "stroke:#666,stroke-width:3px",
        Stroke::Wait => "stroke-dasharray:2",
        Stroke::Back => "stroke-dasharray:6",
    };
    let _ = writeln!(out, "    linkStyle {number} {style}");
}

fn brackets(shape: Shape) -> (&'static str, &'static str) {
    match shape {
        Shape::Terminal => ("([", "])"),
        Shape::Work => ("[", "]"),
        Shape::Wait => ("(", ")"),
        Shape::Gate => ("{{", "}}"),
        Shape::Choice => ("{", "}"),
        Shape::Bar => ("((", "))"),
    }
}

/// Joins the lines of a label. An empty label is replaced by a space, since Mermaid would show the node's name
/// instead.
fn label(lines: &[String]) -> String {
    let lines: Vec<String> = lines.iter().map(|line| quoted(line)).collect();
    if lines.is_empty() { " ".into() } else { lines.join("<br/>") }
}

fn quoted(line: &str) -> String {
    let mut quoted = String::with_capacity(line.len());
    for (at, letter) in line.chars().enumerate() {
        // A digit, a dash or a plus at the start of a line would begin a Markdown list.
        let is_plain = match at {
            0 => letter.is_ascii_alphabetic(),
            _ => letter.is_ascii_alphanumeric() || HARMLESS.contains(letter),
        };
        if is_plain || letter.is_alphabetic() && !letter.is_ascii() {
            quoted.push(letter);
        } else {
            let _ = write!(quoted, "#{};", u32::from(letter));
        }
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoting() {
        for (line, expected) in [
            ("plain text, 1.5", "plain text, 1.5"),
            ("“é”", "#8220;é#8221;"),
            ("\"]; click", "#34;#93;#59; click"),
            ("a#35;b", "a#35;35#59;b"),
            ("<b>&amp;", "#60;b#62;#38;amp#59;"),
            ("%%{init}%%", "#37;#37;#123;init#125;#37;#37;"),
            ("`**x**`", "#96;#42;#42;x#42;#42;#96;"),
            ("1. one", "#49;. one"),
            ("- one", "#45; one"),
            ("a|b\\n", "a#124;b#92;n"),
        ] {
            assert_eq!(quoted(line), expected);
        }
    }
}
