//! The embedded files of the console. Each is stored in two compressed forms; the uncompressed form is computed once,
//! for clients that accept no compression.

use std::{
    collections::BTreeMap,
    io::Read,
    sync::{LazyLock, OnceLock},
};

use bytes::Bytes;
use flate2::read::GzDecoder;
use include_dir::{Dir, include_dir};
use sha2::{Digest, Sha256};

static DIST: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../web/dist");

static FILES: LazyLock<BTreeMap<String, File>> = LazyLock::new(|| collect(&DIST));

/// A file of the console in all its forms.
#[derive(Debug)]
pub(crate) struct File {
    brotli: &'static [u8],
    gzip: &'static [u8],
    /// The uncompressed form; computed for the first client that needs it.
    identity: OnceLock<Bytes>,
    /// Entity tag: a hash of the content, in quotes.
    pub(crate) tag: String,
}

/// A form of a file: the value of `Content-Encoding`, and the bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Form {
    /// `None` for the uncompressed form.
    pub(crate) encoding: Option<&'static str>,
    pub(crate) bytes: Bytes,
}

/// Returns a file by its path in the build, such as `assets/index-1a2b3c4d.js`.
pub(crate) fn file(path: &str) -> Option<&'static File> {
    FILES.get(path)
}

/// Paths of all files.
#[cfg(test)]
pub(crate) fn paths() -> impl Iterator<Item = &'static str> {
    FILES.keys().map(String::as_str)
}

impl File {
    /// The smallest form that an `Accept-Encoding` header accepts (RFC 9110, 12.5.3). Without the header it is the
    /// uncompressed form.
    pub(crate) fn form(&self, accepted: &str) -> Form {
        if accepts(accepted, "br") {
            return Form { encoding: Some("br"), bytes: Bytes::from_static(self.brotli) };
        }
        if accepts(accepted, "gzip") {
            return Form { encoding: Some("gzip"), bytes: Bytes::from_static(self.gzip) };
        }
        let identity = self.identity.get_or_init(|| {
            let mut content = Vec::new();
            GzDecoder::new(self.gzip).read_to_end(&mut content).expect("the build compressed the file");
            content.into()
        });
        Form { encoding: None, bytes: identity.clone() }
    }
}

/// Collects the files below a folder. A file without its gzip form is left out, and the tests find it.
fn collect(folder: &'static Dir<'_>) -> BTreeMap<String, File> {
    let mut found = BTreeMap::new();
    for file in folder.files() {
        let path = file.path().to_string_lossy();
        let Some(name) = path.strip_suffix(".br") else { continue };
        let Some(gzip) = DIST.get_file(format!("{name}.gz")) else { continue };
        let hash = Sha256::digest(file.contents());
        let digits: String = hash.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
        let (brotli, gzip) = (file.contents(), gzip.contents());
        let file = File { brotli, gzip, identity: OnceLock::new(), tag: format!("\"{digits}\"") };
        found.insert(name.to_string(), file);
    }
    found.extend(folder.dirs().flat_map(collect));
    found
}

/// True if the header accepts a coding: it names the coding, or `*`, with a weight above 0. The name takes precedence.
fn accepts(header: &str, coding: &str) -> bool {
    let weight_of = |wanted: &str| {
        header.split(',').find_map(|part| {
            let mut parts = part.split(';').map(str::trim);
            let is_wanted = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(wanted));
            let weight = parts.find_map(|parameter| parameter.strip_prefix("q="));
            is_wanted.then(|| weight.map_or(1.0, |weight| weight.parse().unwrap_or(0.0)))
        })
    };
    weight_of(coding).or_else(|| weight_of("*")).is_some_and(|weight: f32| weight > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_decides_the_form() {
        let page = file("index.html").unwrap();
        let check = |header: &str, expected: Option<&str>| {
            assert_eq!(page.form(header).encoding, expected, "{header}");
        };
        check("gzip, deflate, br, zstd", Some("br"));
        check("gzip, deflate", Some("gzip"));
        check("br;q=0, gzip;q=0.5", Some("gzip"));
        check("br; q=0, *", Some("gzip"));
        check("*", Some("br"));
        check("BR", Some("br"));
        check("identity", None);
        check("br;q=broken", None);
        check("", None);
    }

    #[test]
    fn all_forms_have_one_content() {
        assert!(paths().count() > 10);
        for path in paths() {
            let file = file(path).unwrap();
            let mut gzip = Vec::new();
            GzDecoder::new(file.gzip).read_to_end(&mut gzip).unwrap();
            assert_eq!(file.form("").bytes, gzip, "{path}");
            assert!(!file.brotli.is_empty() && file.brotli.len() <= gzip.len() + 16, "{path}");
        }
        let assets = DIST.get_dir("assets").unwrap().files().count() + DIST.files().count();
        assert_eq!(assets, 2 * paths().count(), "a file has one form only");
    }

    #[test]
    fn pages_load_only_files_of_the_console() {
        let text = |path: &str| String::from_utf8_lossy(&file(path).unwrap().form("").bytes).into_owned();
        let page = text("index.html");
        let sources = page.split(['"']).filter(|part| part.starts_with('/'));
        let sources: Vec<&str> = sources.map(|path| path.trim_start_matches('/')).collect();
        assert!(sources.len() >= 3, "{page}");
        for path in sources {
            assert!(file(path).is_some(), "{path}");
        }
        // The content security policy refuses inline code, so a build must contain none.
        assert!(!page.contains("<style") && !page.contains("onload=") && !page.contains("<script>"), "{page}");
    }
}
