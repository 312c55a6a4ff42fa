//! Links in Markdown to files and headings resolve, and samples of Rust are compiled.
//!
//! Links to other sites are not checked, since a check must not depend on a network.

use super::measure::Measure;
use crate::finding::Finding;
use crate::prose::LineStarts;
use crate::repository::{File, Repository};
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use std::collections::{BTreeMap, BTreeSet};

/// Marks a sample of Rust that is intentionally not compiled.
const UNCOMPILED: &str = "ignore";

const LINKS: &str = "links that lead nowhere; correct the path or the heading";
const SAMPLES: &str = "samples of Rust that nothing compiles; move it into a doc comment or write ```rust,ignore";

/// Measures both problems, by top folder.
pub(super) fn measure(repository: &Repository) -> Vec<Measure> {
    let documents = || repository.files.iter().filter(|file| file.extension() == "md" && !file.is_given());
    let pages: BTreeMap<&str, Page> = documents().map(|file| (file.path.as_str(), Page::of(&file.text))).collect();
    let mut found: BTreeMap<String, Measure> = BTreeMap::new();
    let mut add = |kind: &str, unit: &str, file: &File, line: usize, message: &str| {
        let key = format!("{kind} {}", file.area());
        let measure = found.entry(key.clone()).or_insert_with(|| Measure::count(key, unit));
        measure.add(Finding::at(&file.path, line, message));
    };
    for file in documents() {
        let page = &pages[file.path.as_str()];
        let broken = page.links.iter().filter_map(|(line, link)| Some((*line, fault(repository, &pages, file, link)?)));
        broken.for_each(|(line, message)| add("links", LINKS, file, line, &message));
        page.uncompiled.iter().for_each(|line| add("samples", SAMPLES, file, *line, ""));
    }
    found.into_values().collect()
}

/// The links, anchors and samples of a document.
#[derive(Default)]
struct Page {
    /// Link targets with their lines.
    links: Vec<(usize, String)>,
    /// The anchors of its headings and HTML elements.
    anchors: BTreeSet<String>,
    /// Lines of unmarked samples of Rust.
    uncompiled: Vec<usize>,
}

impl Page {
    fn of(text: &str) -> Page {
        let lines = LineStarts::of(text);
        let mut page = Page::default();
        let mut heading: Option<String> = None;
        for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
            match event {
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    page.links.push((lines.line(&range), dest_url.into_string()));
                }
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => page.add_anchor(&heading.take().unwrap_or_default()),
                Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) if is_uncompiled(&info) => {
                    page.uncompiled.push(lines.line(&range));
                }
                Event::Text(text) | Event::Code(text) => heading.iter_mut().for_each(|heading| heading.push_str(&text)),
                Event::Html(html) | Event::InlineHtml(html) => page.anchors.extend(named(&html)),
                _ => {}
            }
        }
        page
    }

    /// Adds the anchor of a heading as GitHub builds it; repeated names get a number.
    fn add_anchor(&mut self, heading: &str) {
        let kept = |letter: &char| letter.is_alphanumeric() || ['-', '_', ' '].contains(letter);
        let anchor = heading.trim().to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-");
        let number = (1..).find(|number| !self.anchors.contains(&format!("{anchor}-{number}")));
        match number.filter(|_| self.anchors.contains(&anchor)) {
            Some(number) => self.anchors.insert(format!("{anchor}-{number}")),
            None => self.anchors.insert(anchor),
        };
    }
}

fn is_uncompiled(info: &str) -> bool {
    let mut words = info.split([',', ' ']);
    words.next() == Some("rust") && !words.any(|word| word == UNCOMPILED)
}

/// Returns the values of `id="…"` and `name="…"`.
fn named(html: &str) -> Vec<String> {
    let values = ["id=\"", "name=\""].map(|key| html.split(key).skip(1).filter_map(|rest| rest.split('"').next()));
    values.into_iter().flatten().map(str::to_owned).collect()
}

/// Returns the message about a broken link.
fn fault(repository: &Repository, pages: &BTreeMap<&str, Page>, file: &File, link: &str) -> Option<String> {
    let (target, anchor) = link.split_once('#').map_or((link, None), |(target, anchor)| (target, Some(anchor)));
    if has_scheme(target) {
        return None;
    }
    let Some(path) = resolved(&file.path, target) else {
        return Some(format!("{link} leads out of the repository"));
    };
    let folder = format!("{path}/");
    let is_there = |other: &File| path.is_empty() || other.path == path || other.path.starts_with(&folder);
    if !repository.files.iter().any(is_there) {
        return Some(format!("{link} leads to {path}, which is not there"));
    }
    let anchors = &pages.get(path.as_str())?.anchors;
    let anchor = anchor.filter(|anchor| !anchors.contains(*anchor))?;
    Some(format!("no heading of {path} has the anchor #{anchor}"))
}

fn has_scheme(target: &str) -> bool {
    target.split_once(':').is_some_and(|(scheme, _)| scheme.chars().all(|letter| letter.is_ascii_alphanumeric()))
}

/// Resolves a link target to a path from the root; `None` for a path above the root.
fn resolved(from: &str, target: &str) -> Option<String> {
    if target.is_empty() {
        return Some(from.to_owned());
    }
    let folder = from.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut names: Vec<&str> = if target.starts_with('/') { Vec::new() } else { folder.split('/').collect() };
    for name in target.split('/') {
        match name {
            "" | "." => {}
            ".." => drop(names.pop().filter(|name| !name.is_empty())?),
            name => names.push(name),
        }
    }
    Some(names.into_iter().filter(|name| !name.is_empty()).collect::<Vec<_>>().join("/"))
}

#[cfg(test)]
mod tests {
    use super::measure;
    use crate::tidy::tests::{assert_found, repository};

    /// Checks the findings in a page, with a second page beside it and one above.
    #[track_caller]
    fn check(text: &str, expected: &[(usize, &str)]) {
        let files = [
            ("README.md", "# Read me\n"),
            ("crates/a/src/lib.rs", ""),
            ("docs/page.md", text),
            ("docs/other.md", "# The `a_b` of *C*: d/e!\n## Twice\n## Twice\n<a id=\"own\"></a>\n"),
            ("conformance/given.md", "[a](nowhere.md)\n"),
        ];
        let expected: Vec<(&str, usize, &str)> =
            expected.iter().map(|(line, word)| ("docs/page.md", *line, *word)).collect();
        let found = measure(&repository(&files));
        assert_found(found.into_iter().flat_map(|measure| measure.places).collect(), &expected);
    }

    #[test]
    fn a_link_leads_to_a_file_or_a_folder() {
        check("[a](other.md) [b](../README.md) [c](../crates/a) [d](/README.md) [e](..) ![f](./other.md)\n", &[]);
        check("[a](https://a.b/c) [b](mailto:a@b.c) `[c](d)` [d]: e\n\n```\n[e](f.md)\n```\n", &[]);
        check(
            "\n[a](gone.md)\n![b](gone.svg) [c](../other.md)\n",
            &[(2, "docs/gone.md"), (3, "leads to other.md"), (3, "docs/gone.svg")],
        );
        check("[a][b]\n\n[b]: gone.md\n", &[(1, "gone.md")]);
        check("[a](../../b.md)\n", &[(1, "out of the repository")]);
    }

    #[test]
    fn an_anchor_leads_to_a_heading() {
        check("# One\n[a](#one) [b](other.md#the-a_b-of-c-de) [c](other.md#twice-1) [d](other.md#own)\n", &[]);
        check("# One\n[a](#two)\n[b](other.md#twice-2)\n", &[(2, "#two"), (3, "docs/other.md")]);
        check("[a](../crates/a/src/lib.rs#L7)\n", &[]);
    }

    #[test]
    fn samples_of_rust_are_compiled_or_marked() {
        check("a\n\n```rust\nb\n```\n", &[(3, "")]);
        check("```rust,ignore\nb\n```\n```sh\nrust\n```\n", &[]);
    }
}
