//! Finds for each step of one version its counterpart in the other.
//!
//! A name is the best evidence, then equal content. Steps without a name of their own are compared with the steps at the
//! same place.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use mainspring_kernel::hash::Hash;

use crate::outline::{Node, Outline};

/// The counterparts of steps.
pub(crate) struct Pairs {
    /// For each old step the new one.
    pub to_new: Vec<Option<usize>>,
    /// For each new step the old one.
    pub to_old: Vec<Option<usize>>,
    /// New names of renamed steps, by old name.
    pub names: BTreeMap<String, String>,
}

impl Pairs {
    /// Matches the steps of two versions.
    pub(crate) fn of(old: &Outline<'_>, new: &Outline<'_>) -> Self {
        let pairs =
            Self { to_new: vec![None; old.nodes.len()], to_old: vec![None; new.nodes.len()], names: BTreeMap::new() };
        let mut matcher = Matcher { old, new, pairs };
        matcher.by_name();
        matcher.by_place();
        matcher.anywhere(|node| node.deep_hash);
        matcher.anywhere(|node| node.own_hash);
        matcher.by_place();
        let mut pairs = matcher.pairs;
        pairs.names = pairs
            .matched()
            .map(|(from, to)| (&old.nodes[from], &new.nodes[to]))
            .filter(|(from, to)| from.id != to.id)
            .map(|(from, to)| (from.id.clone(), to.id.clone()))
            .collect();
        pairs
    }

    /// Returns the pairs of an old and a new step, in the order of the new version.
    pub(crate) fn matched(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.to_old.iter().enumerate().filter_map(|(new, old)| Some(((*old)?, new)))
    }
}

struct Matcher<'a, 'c> {
    old: &'a Outline<'c>,
    new: &'a Outline<'c>,
    pairs: Pairs,
}

impl Matcher<'_, '_> {
    fn join(&mut self, old: usize, new: usize) {
        if self.pairs.to_new[old].is_none() && self.pairs.to_old[new].is_none() {
            self.pairs.to_new[old] = Some(new);
            self.pairs.to_old[new] = Some(old);
        }
    }

    /// Equal names with equal content, then contents whose old name is gone, then equal names.
    fn by_name(&mut self) {
        let (old, new) = (self.old, self.new);
        let named: BTreeMap<&str, usize> = named(&old.nodes).map(|(index, node)| (node.id.as_str(), index)).collect();
        let kept: BTreeSet<&str> = self::named(&new.nodes).map(|(_, node)| node.id.as_str()).collect();
        for (index, node) in self::named(&new.nodes) {
            if let Some(before) = named.get(node.id.as_str())
                && old.nodes[*before].own_hash == node.own_hash
            {
                self.join(*before, index);
            }
        }
        let open_old = unique(&old.nodes, |index| self.pairs.to_new[index].is_none());
        let open_new = unique(&new.nodes, |index| self.pairs.to_old[index].is_none());
        for (hash, before) in open_old {
            let is_renamed = old.nodes[before].is_named && !kept.contains(old.nodes[before].id.as_str());
            if let Some(after) = open_new.get(&hash).filter(|_| is_renamed) {
                self.join(before, *after);
            }
        }
        for (index, node) in self::named(&new.nodes) {
            if let Some(before) = named.get(node.id.as_str()) {
                self.join(*before, index);
            }
        }
    }

    /// Steps without names in the same block: equal content first, then equal types, each in written order.
    fn by_place(&mut self) {
        let (old, new) = (self.old, self.new);
        self.block(&old.outermost, &new.outermost);
        for index in 0..new.nodes.len() {
            let Some(before) = self.pairs.to_old[index] else { continue };
            for (key, children) in &new.nodes[index].branches {
                let same = old.nodes[before].branches.iter().find(|(branch, _)| branch == key);
                if let Some((_, before)) = same {
                    self.block(before, children);
                }
            }
        }
    }

    fn block(&mut self, old: &[usize], new: &[usize]) {
        self.in_order(old, new, |node| (node.deep_hash.hex(), true));
        self.in_order(old, new, |node| (node.own_hash.hex(), true));
        self.in_order(old, new, |node| (node.kind().to_string(), !node.is_named));
    }

    /// Joins open steps of equal keys in written order. The flag of a key says if the step takes part.
    fn in_order(&mut self, old: &[usize], new: &[usize], key: impl Fn(&Node) -> (String, bool)) {
        let mut open: BTreeMap<String, VecDeque<usize>> = BTreeMap::new();
        for index in old.iter().copied().filter(|index| self.pairs.to_new[*index].is_none()) {
            let (key, takes_part) = key(&self.old.nodes[index]);
            if takes_part {
                open.entry(key).or_default().push_back(index);
            }
        }
        for index in new.iter().copied() {
            let (key, takes_part) = key(&self.new.nodes[index]);
            if takes_part
                && self.pairs.to_old[index].is_none()
                && let Some(before) = open.get_mut(&key).and_then(VecDeque::pop_front)
            {
                self.join(before, index);
            }
        }
    }

    /// Steps of equal content in any block.
    fn anywhere(&mut self, hash: impl Fn(&Node) -> Hash) {
        let (old, new): (Vec<usize>, Vec<usize>) =
            ((0..self.old.nodes.len()).collect(), (0..self.new.nodes.len()).collect());
        self.in_order(&old, &new, |node| (hash(node).hex(), true));
    }
}

fn named(nodes: &[Node]) -> impl Iterator<Item = (usize, &Node)> {
    nodes.iter().enumerate().filter(|(_, node)| node.is_named)
}

/// Returns the steps whose content occurs once among the selected ones, by the hash of the content.
fn unique(nodes: &[Node], is_open: impl Fn(usize) -> bool) -> BTreeMap<Hash, usize> {
    let mut found: BTreeMap<Hash, Option<usize>> = BTreeMap::new();
    for (index, node) in nodes.iter().enumerate().filter(|(index, _)| is_open(*index)) {
        found.entry(node.own_hash).and_modify(|index| *index = None).or_insert(Some(index));
    }
    found.into_iter().filter_map(|(hash, index)| Some((hash, index?))).collect()
}
