//! Places the items of a graph in the plane: layers from top to bottom, a container around its contents.
//!
//! The method is Sugiyama's: longest paths give the layers, an edge over several layers gets a bend in each, and
//! repeated averages order and align a layer. All numbers are whole pixels, so that a drawing has the same bytes on
//! every machine.

use std::collections::BTreeMap;

use crate::text::columns;

use super::graph::{Edge, Graph, Item, Name, Node, Shape, Stroke};

/// Pixels of a column of text and of a line.
pub(super) const COLUMN_PX: i32 = 7;
pub(super) const LINE_PX: i32 = 16;

const PADDING_PX: i32 = 12;
const GAP_X_PX: i32 = 24;
const GAP_Y_PX: i32 = 36;
/// Extra distance between layers for each line of an edge's label.
const LABEL_PX: i32 = LINE_PX;
const BAR_WIDTH_PX: i32 = 80;
const BAR_HEIGHT_PX: i32 = 4;
/// Space beside the contents of a container for its edges back.
const BACK_PX: i32 = 28;
const BEND_PX: i32 = 8;

/// Rounds of averages. More do not change small plans, and large ones are not read as a picture.
const ROUNDS: usize = 6;

/// Bends of all edges of a container. An edge beyond this bound is a straight line, so that a plan with many long edges
/// costs no quadratic memory.
const BENDS_MAX: usize = 20_000;

/// A rectangle in pixels, from the upper left corner.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Rectangle {
    pub x: i32,
    pub y: i32,
    pub width: i32,
    pub height: i32,
}

impl Rectangle {
    fn middle(&self) -> i32 {
        self.x + self.width / 2
    }

    fn contains(&self, other: Self) -> bool {
        (self.x..self.x + self.width).contains(&other.x) && (self.y..self.y + self.height).contains(&other.y)
    }
}

/// A placed container or node.
#[derive(Debug)]
pub(super) enum Drawn<'g> {
    Node(&'g Node, Rectangle),
    Cluster(u32, &'g [String], Rectangle),
}

/// A placed edge: the points that it goes through. An edge back has only its two ends.
#[derive(Debug)]
pub(super) struct Line<'g> {
    pub edge: &'g Edge,
    pub points: Vec<(i32, i32)>,
}

/// A graph in the plane.
#[derive(Debug, Default)]
pub(super) struct Placement<'g> {
    pub width: i32,
    pub height: i32,
    /// Containers come before their contents.
    pub drawn: Vec<Drawn<'g>>,
    pub lines: Vec<Line<'g>>,
}

/// The place of something within its container.
#[derive(Debug, Default, Clone)]
struct Spot {
    layer: usize,
    x: i32,
    width: i32,
}

/// One item, its size, and the placement of its contents.
struct Part<'g> {
    item: &'g Item,
    width: i32,
    height: i32,
    inside: Option<Block<'g>>,
}

/// Items that are placed in relation to each other: the contents of a container, or the whole graph.
struct Block<'g> {
    parts: Vec<Part<'g>>,
    corners: Vec<(i32, i32)>,
    width: i32,
    height: i32,
    /// The ways of edges between the parts, by the place of the edge in the graph.
    ways: BTreeMap<usize, Way>,
}

/// The way of an edge between its ends. It leaves and enters a layer straight, so that it does not cross a neighbor that
/// is taller than its end.
#[derive(Debug, Clone)]
struct Way {
    /// The lower border of the layer of the source.
    leaves_at: i32,
    bends: Vec<(i32, i32)>,
    /// The upper border of the layer of the target.
    enters_at: i32,
}

pub(super) fn placement(graph: &Graph) -> Placement<'_> {
    let homes = homes(&graph.items);
    let mut of_blocks: BTreeMap<Vec<usize>, Vec<usize>> = BTreeMap::new();
    for (number, edge) in graph.edges.iter().enumerate() {
        let (from, to) = (&homes[&edge.from], &homes[&edge.to]);
        let shared = from.iter().zip(to).take_while(|(from, to)| from == to).count();
        of_blocks.entry(from[..shared.min(from.len() - 1)].to_vec()).or_default().push(number);
    }
    let whole = Placer { graph, homes: &homes, of_blocks: &of_blocks }.block(&graph.items, &mut Vec::new());
    let mut placed = Placement { width: whole.width, height: whole.height, ..Placement::default() };
    let mut places = BTreeMap::new();
    let mut ways = BTreeMap::new();
    collect(&whole, (0, 0), &mut placed, &mut places, &mut ways);
    let clusters: BTreeMap<Name, Rectangle> = (placed.drawn.iter())
        .filter_map(|drawn| match drawn {
            Drawn::Cluster(number, _, place) => Some((Name::Step(*number), *place)),
            Drawn::Node(..) => None,
        })
        .collect();
    // The way out of a container begins at its border, not at its first node, from which it would cross the others.
    let source = |edge: &Edge, to: Rectangle| {
        clusters.get(&edge.from).filter(|cluster| !cluster.contains(to)).copied().unwrap_or(places[&edge.from])
    };
    placed.lines = (graph.edges.iter().enumerate())
        .map(|(number, edge)| (number, edge, places[&edge.to]))
        .map(|(number, edge, to)| line(edge, source(edge, to), to, ways.get(&number)))
        .collect();
    placed
}

fn line<'g>(edge: &'g Edge, from: Rectangle, to: Rectangle, way: Option<&Way>) -> Line<'g> {
    if edge.stroke == Stroke::Back {
        let side = |place: Rectangle| (place.x + place.width, place.y + place.height / 2);
        return Line { edge, points: vec![side(from), side(to)] };
    }
    let mut points = vec![(from.middle(), from.y + from.height)];
    if let Some(Way { leaves_at, bends, enters_at }) = way {
        points.push((from.middle(), *leaves_at));
        points.extend(bends);
        points.push((to.middle(), *enters_at));
    }
    points.push((to.middle(), to.y));
    points.dedup();
    Line { edge, points }
}

/// The way to each node: the places of its containers, and its own.
fn homes(items: &[Item]) -> BTreeMap<Name, Vec<usize>> {
    fn add(items: &[Item], way: &mut Vec<usize>, homes: &mut BTreeMap<Name, Vec<usize>>) {
        for (place, item) in items.iter().enumerate() {
            way.push(place);
            match item {
                Item::Node(node) => drop(homes.insert(node.name, way.clone())),
                Item::Cluster { items, .. } => add(items, way, homes),
            }
            way.pop();
        }
    }
    let mut homes = BTreeMap::new();
    add(items, &mut Vec::new(), &mut homes);
    homes
}

fn collect<'g>(
    block: &Block<'g>,
    (left, top): (i32, i32),
    placed: &mut Placement<'g>,
    places: &mut BTreeMap<Name, Rectangle>,
    ways: &mut BTreeMap<usize, Way>,
) {
    for (number, Way { leaves_at, bends, enters_at }) in &block.ways {
        let bends = bends.iter().map(|(x, y)| (x + left, y + top)).collect();
        ways.insert(*number, Way { leaves_at: leaves_at + top, bends, enters_at: enters_at + top });
    }
    for (part, (x, y)) in block.parts.iter().zip(&block.corners) {
        let place = Rectangle { x: x + left, y: y + top, width: part.width, height: part.height };
        match (part.item, &part.inside) {
            (Item::Node(node), _) => {
                places.insert(node.name, place);
                placed.drawn.push(Drawn::Node(node, place));
            }
            (Item::Cluster { number, lines, .. }, Some(inside)) => {
                placed.drawn.push(Drawn::Cluster(*number, lines, place));
                let heading = lines.len() as i32 * LINE_PX;
                let indent = (part.width - inside.width) / 2;
                collect(inside, (place.x + indent, place.y + heading), placed, places, ways);
            }
            (Item::Cluster { .. }, None) => {}
        }
    }
}

struct Placer<'g, 'h> {
    graph: &'g Graph,
    homes: &'h BTreeMap<Name, Vec<usize>>,
    /// The edges between the parts of each block, by the way to it.
    of_blocks: &'h BTreeMap<Vec<usize>, Vec<usize>>,
}

impl<'g> Placer<'g, '_> {
    fn block(&self, items: &'g [Item], way: &mut Vec<usize>) -> Block<'g> {
        let mut parts = Vec::with_capacity(items.len());
        for (place, item) in items.iter().enumerate() {
            way.push(place);
            parts.push(self.part(item, way));
            way.pop();
        }
        let own = self.of_blocks.get(way.as_slice()).map_or(&[][..], Vec::as_slice);
        let part_of = |name: Name| self.homes[&name][way.len()];
        let edges: Vec<(usize, usize, usize)> = own
            .iter()
            .filter(|number| self.graph.edges[**number].stroke != Stroke::Back)
            .map(|number| (*number, part_of(self.graph.edges[*number].from), part_of(self.graph.edges[*number].to)))
            .filter(|(_, from, to)| from < to)
            .collect();
        let has_back = own.iter().any(|number| self.graph.edges[*number].stroke == Stroke::Back);
        self.arranged(parts, &edges, if has_back { BACK_PX } else { 0 })
    }

    fn part(&self, item: &'g Item, way: &mut Vec<usize>) -> Part<'g> {
        match item {
            Item::Node(node) => {
                let (width, height) = size(node);
                Part { item, width, height, inside: None }
            }
            Item::Cluster { lines, items, .. } => {
                let inside = self.block(items, way);
                let heading = lines.len() as i32 * LINE_PX;
                let width = inside.width.max(text_width(lines) + 2 * PADDING_PX);
                Part { item, width, height: inside.height + heading, inside: Some(inside) }
            }
        }
    }

    /// Arranges the parts in layers. `edges` have their place in the graph, and go from an earlier part to a later one.
    fn arranged(&self, parts: Vec<Part<'g>>, edges: &[(usize, usize, usize)], right_px: i32) -> Block<'g> {
        let mut spots: Vec<Spot> = parts.iter().map(|part| Spot { width: part.width, ..Spot::default() }).collect();
        for (_, from, to) in sorted_by_source(edges) {
            spots[to].layer = spots[to].layer.max(spots[from].layer + 1);
        }
        let layers = spots.iter().map(|spot| spot.layer + 1).max().unwrap_or(0);
        let mut label_lines = vec![0; layers + 1];
        let mut ways = Vec::with_capacity(edges.len());
        for &(number, from, to) in edges {
            let label = self.graph.edges[number].label.len() as i32;
            let after = &mut label_lines[spots[to].layer];
            *after = label.max(*after);
            let mut way = vec![from];
            for layer in spots[from].layer + 1..spots[to].layer {
                if spots.len() >= parts.len() + BENDS_MAX {
                    break;
                }
                spots.push(Spot { layer, x: 0, width: BEND_PX });
                way.push(spots.len() - 1);
            }
            way.push(to);
            ways.push((number, way));
        }
        align(&mut spots, layers, &ways);
        let heights = layer_heights(&parts, &spots, layers);
        let tops = layer_tops(&heights, &label_lines);
        let left = spots.iter().map(|spot| spot.x).min().unwrap_or(0) - PADDING_PX;
        let width = spots.iter().map(|spot| spot.x + spot.width - left).max().unwrap_or(0) + PADDING_PX + right_px;
        let corner = |spot: &Spot, height: i32| (spot.x - left, tops[spot.layer] + (heights[spot.layer] - height) / 2);
        let corners = parts.iter().zip(&spots).map(|(part, spot)| corner(spot, part.height)).collect();
        let top_of = |place: usize| tops[spots[place].layer];
        let bottom_of = |place: usize| top_of(place) + heights[spots[place].layer];
        let ways = ways.iter().map(|(number, way)| {
            let (from, to) = (way[0], way[way.len() - 1]);
            let bends = way[1..way.len() - 1].iter().flat_map(|place| {
                let x = spots[*place].x - left + BEND_PX / 2;
                [(x, top_of(*place)), (x, bottom_of(*place))]
            });
            (*number, Way { leaves_at: bottom_of(from), bends: bends.collect(), enters_at: top_of(to) })
        });
        let ways = ways.collect();
        let height = tops.last().zip(heights.last()).map_or(0, |(top, height)| top + height) + PADDING_PX;
        Block { parts, corners, width, height, ways }
    }
}

/// The items of a plan are in its order, so a source is complete before the edges that leave it are seen.
fn sorted_by_source(edges: &[(usize, usize, usize)]) -> Vec<(usize, usize, usize)> {
    let mut sorted = edges.to_vec();
    sorted.sort_by_key(|(number, from, _)| (*from, *number));
    sorted
}

fn layer_heights(parts: &[Part<'_>], spots: &[Spot], layers: usize) -> Vec<i32> {
    let mut heights = vec![0; layers];
    for (part, spot) in parts.iter().zip(spots) {
        heights[spot.layer] = part.height.max(heights[spot.layer]);
    }
    heights
}

fn layer_tops(heights: &[i32], label_lines: &[i32]) -> Vec<i32> {
    let mut top = PADDING_PX;
    let mut tops = Vec::with_capacity(heights.len());
    for (layer, height) in heights.iter().enumerate() {
        if layer > 0 {
            top += GAP_Y_PX + label_lines[layer] * LABEL_PX;
        }
        tops.push(top);
        top += height;
    }
    tops
}

/// Orders the spots of each layer, and moves each below the average of its neighbors.
fn align(spots: &mut [Spot], layers: usize, ways: &[(usize, Vec<usize>)]) {
    let mut rows: Vec<Vec<usize>> = vec![Vec::new(); layers];
    for (place, spot) in spots.iter().enumerate() {
        rows[spot.layer].push(place);
    }
    let (mut above, mut below) = (vec![Vec::new(); spots.len()], vec![Vec::new(); spots.len()]);
    for step in ways.iter().flat_map(|(_, way)| way.windows(2)) {
        above[step[1]].push(step[0]);
        below[step[0]].push(step[1]);
    }
    for row in &rows {
        spread(row, &vec![None; row.len()], spots);
    }
    for round in 0..ROUNDS {
        let is_down = round % 2 == 0;
        let neighbors = if is_down { &above } else { &below };
        let order: Vec<usize> = if is_down { (0..layers).collect() } else { (0..layers).rev().collect() };
        for layer in order {
            let row = &mut rows[layer];
            let target = |place: usize, spots: &[Spot]| {
                let of = &neighbors[place];
                let sum: i64 = of.iter().map(|other| i64::from(spots[*other].x + spots[*other].width / 2)).sum();
                (!of.is_empty()).then(|| (sum / of.len() as i64) as i32)
            };
            row.sort_by_key(|place| target(*place, spots).unwrap_or(spots[*place].x + spots[*place].width / 2));
            let targets: Vec<Option<i32>> = row.iter().map(|place| target(*place, spots)).collect();
            spread(row, &targets, spots);
        }
    }
}

/// Places a row from left to right with gaps, then moves it as a whole so that targets are met on average.
fn spread(row: &[usize], targets: &[Option<i32>], spots: &mut [Spot]) {
    let mut end = i32::MIN;
    for (place, target) in row.iter().zip(targets) {
        let spot = &mut spots[*place];
        let target = target.map_or(spot.x, |middle| middle - spot.width / 2);
        spot.x = if end == i32::MIN { target } else { target.max(end + GAP_X_PX) };
        end = spot.x + spot.width;
    }
    let off = row.iter().zip(targets).filter_map(|(place, target)| {
        target.map(|middle| i64::from(middle - spots[*place].x - spots[*place].width / 2))
    });
    let (sum, count) = off.fold((0, 0), |(sum, count), off| (sum + off, count + 1));
    let shift = if count == 0 { 0 } else { (sum / count) as i32 };
    row.iter().for_each(|place| spots[*place].x += shift);
}

fn text_width(lines: &[String]) -> i32 {
    lines.iter().map(|line| columns(line) as i32 * COLUMN_PX).max().unwrap_or(0)
}

fn size(node: &Node) -> (i32, i32) {
    if node.shape == Shape::Bar && node.lines.is_empty() {
        return (BAR_WIDTH_PX, BAR_HEIGHT_PX);
    }
    let (width, height) = (text_width(&node.lines), node.lines.len() as i32 * LINE_PX);
    let slant = if matches!(node.shape, Shape::Choice | Shape::Gate) { 2 * PADDING_PX } else { 0 };
    (width + 2 * PADDING_PX + slant, height + PADDING_PX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_keeps_its_gaps_and_centers_below_its_targets() {
        let mut spots = vec![Spot { width: 40, ..Spot::default() }; 3];
        spread(&[0, 1, 2], &[Some(100), Some(100), Some(100)], &mut spots);
        let starts: Vec<i32> = spots.iter().map(|spot| spot.x).collect();
        assert_eq!(starts, [16, 80, 144]);
    }
}
