//! Draws a plan as a Graphviz graph.

use std::fmt::Write;

use mainspring_kernel::plan::Plan;

use super::graph::{Edge, Graph, Item, Node, Shape, Stroke};

/// Attributes of the whole graph. `dot -G`, `-N` and `-E` override them.
const PREAMBLE: &str = "digraph {
    graph [fontname=\"sans-serif\" labeljust=l style=\"rounded,dashed\"]
    node [fontname=\"sans-serif\" shape=box style=rounded]
    edge [fontname=\"sans-serif\"]
";

/// Draws a plan in the DOT language.
pub fn dot(plan: &Plan) -> String {
    let Graph { items, edges } = Graph::of(plan);
    let mut out = String::from(PREAMBLE);
    items.iter().for_each(|item| write_item(item, 1, &mut out));
    edges.iter().for_each(|edge| write_edge(edge, &mut out));
    out.push_str("}\n");
    out
}

// Writing to a String cannot fail.

fn write_item(item: &Item, depth: usize, out: &mut String) {
    let indent = "    ".repeat(depth);
    match item {
        Item::Node(Node { name, shape, lines }) => {
            let _ = writeln!(out, "{indent}{name} [label=\"{}\"{}]", label(lines), attributes(*shape));
        }
        Item::Cluster { number, lines, items } => {
            let _ = writeln!(out, "{indent}subgraph cluster_{number} {{");
            let _ = writeln!(out, "{indent}    label=\"{}\"", label(lines));
            items.iter().for_each(|item| write_item(item, depth + 1, out));
            let _ = writeln!(out, "{indent}}}");
        }
    }
}

fn write_edge(Edge { from, to, stroke, label: lines }: &Edge, out: &mut String) {
    let text = if lines.is_empty() { String::new() } else { format!("label=\"{}\"", label(lines)) };
    let attributes: Vec<&str> = [text.as_str(), drawn(*stroke)].into_iter().filter(|text| !text.is_empty()).collect();
    let attributes = if attributes.is_empty() { String::new() } else { format!(" [{}]", attributes.join(" ")) };
    let _ = writeln!(out, "    {from} -> {to}{attributes}");
}

/// Attributes of a stroke, in addition to those of the preamble.
fn drawn(stroke: Stroke) -> &'static str {
    match stroke {
        Stroke::Plain => "",
        Stroke::Failure => "style=dashed color=red3 fontcolor=red3",
        Stroke::Aside => "style=bold color=gray40 fontcolor=gray40",
        Stroke::Wait => "style=dotted arrowhead=open",
        Stroke::Back => "style=dashed constraint=false",
    }
}

/// Attributes of a shape, in addition to those of the preamble.
fn attributes(shape: Shape) -> &'static str {
    match shape {
        Shape::Terminal => " shape=oval style=solid",
        Shape::Work => "",
        Shape::Wait => " style=\"rounded,dashed\"",
        Shape::Gate => " shape=hexagon style=solid",
        Shape::Choice => " shape=diamond style=solid",
        Shape::Bar => " style=filled fillcolor=black width=1 height=0.06",
    }
}

fn label(lines: &[String]) -> String {
    lines.iter().map(|line| quoted(line)).collect::<Vec<_>>().join("\\n")
}

/// Inside of double quotes, DOT interprets quotes, backslashes (`\N` is the node's name) and HTML entities.
fn quoted(line: &str) -> String {
    line.replace('&', "&amp;").replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoting() {
        for (line, expected) in [
            ("plain é <b>", "plain é <b>"),
            ("a\" ]; b [", "a\\\" ]; b ["),
            ("\\N\\", "\\\\N\\\\"),
            ("&quot;", "&amp;quot;"),
        ] {
            assert_eq!(quoted(line), expected);
        }
    }
}
