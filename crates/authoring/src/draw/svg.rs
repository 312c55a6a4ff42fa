//! Draws a plan as an SVG picture, without scripts, styles or references, so that every viewer shows the same.

use std::fmt::Write;

use mainspring_kernel::plan::Plan;

use super::{
    graph::{Graph, Node, Shape, Stroke},
    placement::{COLUMN_PX, Drawn, LINE_PX, Line, Placement, Rectangle, placement},
};

const TEXT: &str = "#1f2328";
const SOFT: &str = "#59636e";
const BORDER: &str = "#818b98";
const FAILURE: &str = "#c1272d";

/// Draws a plan as an SVG document.
pub fn svg(plan: &Plan) -> String {
    let graph = Graph::of(plan);
    let Placement { width, height, drawn, lines } = placement(&graph);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" role=\"img\" font-family=\"ui-monospace, Menlo, Consolas, monospace\" \
         font-size=\"11.5\" fill=\"{TEXT}\">\n"
    );
    let name = plan.name.as_deref().unwrap_or("workflow");
    let _ = writeln!(out, "<title>{}</title>", quoted(&crate::text::shown(name)));
    out.push_str(MARKERS);
    let _ = writeln!(out, "<rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>");
    for item in &drawn {
        if let Drawn::Cluster(_, lines, place) = item {
            write_cluster(lines, *place, &mut out);
        }
    }
    lines.iter().for_each(|line| write_line(line, &mut out));
    for item in &drawn {
        if let Drawn::Node(node, place) = item {
            write_node(node, *place, &mut out);
        }
    }
    out.push_str("</svg>\n");
    out
}

/// The heads of arrows. A marker does not take the color of its line in every viewer, so there is one for each color.
const MARKERS: &str = "<defs>\
<marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\">\
<path d=\"M0 0L8 4L0 8z\" fill=\"#818b98\"/></marker>\
<marker id=\"failure\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\">\
<path d=\"M0 0L8 4L0 8z\" fill=\"#c1272d\"/></marker>\
</defs>\n";

// Writing to a String cannot fail.

fn write_cluster(lines: &[String], place: Rectangle, out: &mut String) {
    let Rectangle { x, y, width, height } = place;
    let _ = writeln!(
        out,
        "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"#818b98\" \
         fill-opacity=\"0.07\" stroke=\"{BORDER}\" stroke-dasharray=\"4 3\"/>"
    );
    write_text(lines, (x + 10, y + LINE_PX), "start", out);
}

fn write_node(Node { shape, lines, .. }: &Node, place: Rectangle, out: &mut String) {
    let Rectangle { x, y, width, height } = place;
    let (right, bottom, middle) = (x + width, y + height, y + height / 2);
    let stroke = format!("fill=\"#ffffff\" stroke=\"{BORDER}\"");
    let _ = match shape {
        Shape::Bar if lines.is_empty() => {
            writeln!(out, "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"2\" fill=\"{TEXT}\"/>")
        }
        Shape::Choice | Shape::Gate => {
            let inset = 12;
            let (left, end) = (x + inset, right - inset);
            let fill = if *shape == Shape::Gate { "fill=\"#fff4d6\" stroke=\"#9a6700\"" } else { stroke.as_str() };
            writeln!(out, "<path d=\"M{left} {y}H{end}L{right} {middle}L{end} {bottom}H{left}L{x} {middle}z\" {fill}/>")
        }
        Shape::Terminal | Shape::Work | Shape::Wait | Shape::Bar => {
            let radius = if *shape == Shape::Terminal { height / 2 } else { 6 };
            let dashes = if *shape == Shape::Wait { " stroke-dasharray=\"4 3\"" } else { "" };
            writeln!(
                out,
                "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"{radius}\" {stroke}{dashes}/>"
            )
        }
    };
    let top = y + (height - lines.len() as i32 * LINE_PX) / 2 + LINE_PX - 4;
    write_text(lines, (x + width / 2, top), "middle", out);
}

/// Writes lines of text. The first is bold.
fn write_text(lines: &[String], (x, y): (i32, i32), anchor: &str, out: &mut String) {
    for (place, line) in lines.iter().enumerate() {
        let y = y + place as i32 * LINE_PX;
        let look = if place == 0 { " font-weight=\"600\"".to_string() } else { format!(" fill=\"{SOFT}\"") };
        let _ = writeln!(out, "<text x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\"{look}>{}</text>", quoted(line));
    }
}

fn write_line(Line { edge, points }: &Line<'_>, out: &mut String) {
    let (Some(from), Some(to)) = (points.first(), points.last()) else { return };
    let (mut path, mut label_at) = (format!("M{} {}", from.0, from.1), *to);
    if edge.stroke == Stroke::Back {
        let side = from.0.max(to.0) + 22;
        let _ = write!(path, "C{side} {} {side} {} {} {}", from.1, to.1, to.0, to.1);
        label_at = (side - 8, (from.1 + to.1) / 2);
    } else {
        for pair in points.windows(2) {
            let ((x, y), (next_x, next_y)) = (pair[0], pair[1]);
            let half = (next_y - y) / 2;
            let _ = match x == next_x {
                true => write!(path, "V{next_y}"),
                false => write!(path, "C{x} {} {next_x} {} {next_x} {next_y}", y + half, next_y - half),
            };
        }
        // A label is above the end of its edge: many edges leave one step, and few of them enter the same.
        label_at.1 -= 12 + (edge.label.len() as i32 - 1).max(0) * LINE_PX;
    }
    let (color, marker, more) = match edge.stroke {
        Stroke::Plain => (BORDER, "arrow", ""),
        Stroke::Failure => (FAILURE, "failure", " stroke-dasharray=\"5 3\""),
        Stroke::Aside => (SOFT, "arrow", " stroke-width=\"1.6\""),
        Stroke::Wait => (BORDER, "arrow", " stroke-dasharray=\"1.5 3\""),
        Stroke::Back => (BORDER, "arrow", " stroke-dasharray=\"5 3\""),
    };
    let _ = writeln!(out, "<path d=\"{path}\" fill=\"none\" stroke=\"{color}\" marker-end=\"url(#{marker})\"{more}/>");
    for (place, line) in edge.label.iter().enumerate() {
        let (x, y) = (label_at.0, label_at.1 + place as i32 * LINE_PX);
        let width = crate::text::columns(line) as i32 * COLUMN_PX + 4;
        let (left, top) = (x - width / 2, y - 11);
        let _ = writeln!(
            out,
            "<rect x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"14\" fill=\"#ffffff\"/>\
             <text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\" fill=\"{SOFT}\">{}</text>",
            quoted(line)
        );
    }
}

/// Escapes markup, and replaces characters that XML 1.0 does not allow.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            _ => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_no_markup() {
        for (text, expected) in [
            ("plain é", "plain é"),
            ("</text><script>", "&lt;/text&gt;&lt;script&gt;"),
            ("a\"b&c", "a&quot;b&amp;c"),
            ("a\u{0}\u{ffff}b", "a\u{fffd}\u{fffd}b"),
        ] {
            assert_eq!(quoted(text), expected);
        }
    }
}
