//! A strict parser of the Prometheus text format, version 0.0.4.

use std::collections::{BTreeMap, BTreeSet};

/// A parsed scrape.
#[derive(Debug, Default)]
pub(crate) struct Scraped {
    kinds: BTreeMap<String, String>,
    helps: BTreeSet<String>,
    samples: BTreeMap<String, f64>,
}

impl Scraped {
    /// Parses a text. Panics on anything that a scraper would reject.
    #[track_caller]
    pub(crate) fn read(text: &str) -> Self {
        assert!(text.ends_with('\n'), "the last line ends");
        let mut scraped = Self::default();
        for line in text.lines().filter(|line| !line.is_empty()) {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, words) = rest.split_once(' ').expect("a name and words");
                assert!(words.len() > 10, "{line}");
                assert!(scraped.helps.insert(name.into()), "{line}");
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').expect("a name and a type");
                assert!(matches!(kind, "counter" | "gauge" | "histogram"), "{line}");
                assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
                assert!(scraped.kinds.insert(name.into(), kind.into()).is_none(), "{line}");
            } else {
                let (name, value) = line.rsplit_once(' ').expect("a sample has a value");
                let value = value.parse().unwrap_or_else(|_| panic!("{line}"));
                scraped.check_name(name);
                assert!(scraped.samples.insert(name.into(), value).is_none(), "twice: {line}");
            }
        }
        scraped.check_histograms();
        scraped
    }

    #[track_caller]
    fn check_name(&self, sample: &str) {
        let (name, labels) = match sample.split_once('{') {
            None => (sample, ""),
            Some((name, rest)) => (name, rest.strip_suffix('}').expect("labels end")),
        };
        let is_name =
            |text: &str| !text.is_empty() && text.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric());
        assert!(is_name(name), "{sample}");
        for label in labels.split(',').filter(|label| !label.is_empty()) {
            let (key, value) = label.split_once('=').expect("a label has a value");
            let value = value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).expect("in quotes");
            assert!(is_name(key), "{sample}");
            // Label values are constants of Mainspring: no names of users and no execution keys.
            let is_ours = value == "+Inf"
                || value.len() <= 16 && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.".contains(&byte));
            assert!(is_ours, "{sample}");
        }
        let of_histogram = ["_bucket", "_sum", "_count"].iter().find_map(|suffix| name.strip_suffix(suffix));
        let metric = of_histogram
            .filter(|metric| self.kinds.get(*metric).is_some_and(|kind| kind == "histogram"))
            .unwrap_or(name);
        assert!(self.kinds.contains_key(metric) && self.helps.contains(metric), "{sample} has no type or no help");
    }

    #[track_caller]
    fn check_histograms(&self) {
        for (name, kind) in self.kinds.iter().filter(|(_, kind)| *kind == "histogram") {
            let infinite = self
                .samples
                .iter()
                .filter(|(sample, _)| sample.starts_with(&format!("{name}_bucket")) && sample.contains("le=\"+Inf\""));
            let count: f64 = infinite.map(|(_, count)| count).sum();
            assert_eq!(count, self.sum(&format!("{name}_count")), "{name} is no {kind}");
            assert!(
                self.samples.keys().filter(|sample| sample.starts_with(&format!("{name}_bucket"))).count() > 5,
                "{name}"
            );
        }
    }

    /// The type of a metric.
    pub(crate) fn kind(&self, metric: &str) -> Option<&str> {
        self.kinds.get(metric).map(String::as_str)
    }

    pub(crate) fn metrics(&self) -> impl Iterator<Item = &str> {
        self.kinds.keys().map(String::as_str)
    }

    /// The value of a sample, by its name with labels as they are written.
    #[track_caller]
    pub(crate) fn one(&self, sample: &str) -> f64 {
        self.sample(sample).unwrap_or_else(|| panic!("{sample} is not there"))
    }

    /// The value of a sample; `None` if it is absent.
    pub(crate) fn sample(&self, sample: &str) -> Option<f64> {
        self.samples.get(sample).copied()
    }

    /// The sum of all samples of a metric.
    pub(crate) fn sum(&self, name: &str) -> f64 {
        let is_of =
            |sample: &str| sample == name || sample.strip_prefix(name).is_some_and(|rest| rest.starts_with('{'));
        self.samples.iter().filter(|(sample, _)| is_of(sample)).map(|(_, value)| value).sum()
    }
}
