//! The archive: a tar file with a signed list of its files.
//!
//! Names, order, times and owners are fixed, so equal contents give equal bytes.

use std::{
    collections::BTreeMap,
    io::{self, Read},
};

use mainspring_kernel::{hash::Hash, value::Value};
use tar::{Archive, Builder, EntryType, Header};

use crate::{
    dsse::{self, Subject},
    limits::{ARCHIVE_BYTES_MAX, FILES_MAX},
    signing::{PublicKey, SigningKey},
};

/// The signed list of files.
pub const MANIFEST: &str = "manifest.dsse.json";

/// The key that proves all signatures, as PEM.
pub const PUBLIC_KEY: &str = "public-key.pem";

/// The predicate type of the list.
pub const MANIFEST_TYPE: &str = "https://mainspring.dev/evidence/manifest/v1";

/// The files of an archive by path.
pub type Files = BTreeMap<String, Vec<u8>>;

/// Writes an archive of the files, with the public key and the signed list.
///
/// # Errors
/// Fails if `out` does.
pub fn write(files: &Files, key: &SigningKey, out: impl io::Write) -> io::Result<()> {
    let mut files = files.clone();
    files.insert(PUBLIC_KEY.into(), key.public().pem().into_bytes());
    let subject =
        |(name, content): (&String, &Vec<u8>)| Subject { name: name.clone(), sha256: Hash::of(content).hex() };
    let subjects: Vec<Subject> = files.iter().map(subject).collect();
    let predicate = Value::map([("files", Value::from(subjects.len() as u64))]);
    let manifest = dsse::sign(key, &subjects, MANIFEST_TYPE, predicate);
    let mut builder = Builder::new(out);
    let all = [(MANIFEST.to_string(), manifest)].into_iter().chain(files);
    for (name, content) in all {
        let mut header = Header::new_ustar();
        header.set_entry_type(EntryType::Regular);
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        builder.append_data(&mut header, &name, content.as_slice())?;
    }
    builder.finish()
}

/// Reads an archive without checking signatures: the signed list, and the files.
///
/// # Errors
/// Says what is wrong with the archive.
pub fn read(bytes: &[u8]) -> Result<(Vec<u8>, Files), String> {
    if bytes.len() as u64 > ARCHIVE_BYTES_MAX {
        return Err(format!("the archive has more than {ARCHIVE_BYTES_MAX} bytes"));
    }
    let damaged = |error: io::Error| format!("the archive is no tar file, or is cut off: {error}");
    let (mut files, mut manifest, mut end) = (Files::new(), None, 0);
    for entry in Archive::new(bytes).entries().map_err(damaged)? {
        let mut entry = entry.map_err(damaged)?;
        if entry.header().entry_type() != EntryType::Regular {
            return Err("the archive has an entry that is no regular file".into());
        }
        let name = String::from_utf8(entry.path_bytes().into_owned()).map_err(|_| "a name is not UTF-8")?;
        if files.len() >= FILES_MAX {
            return Err(format!("the archive has more than {FILES_MAX} files"));
        }
        // The size in a header is bounded by the archive, which is in memory.
        let mut content = Vec::new();
        entry.read_to_end(&mut content).map_err(damaged)?;
        end = (entry.raw_file_position() as usize).saturating_add(content.len());
        let is_new = if name == MANIFEST {
            manifest.replace(content).is_none()
        } else {
            files.insert(name.clone(), content).is_none()
        };
        if !is_new {
            return Err(format!("the archive has the file {name} twice"));
        }
    }
    // Other programs may read further, and find files that were not checked.
    if bytes.get(end..).unwrap_or_default().iter().any(|byte| *byte != 0) {
        return Err("the archive has data after its end".into());
    }
    Ok((manifest.ok_or_else(|| format!("the archive has no {MANIFEST}"))?, files))
}

/// Checks that the signed list names exactly these files with their digests.
///
/// # Errors
/// Names the first difference.
pub fn check(manifest: &[u8], files: &Files, key: PublicKey) -> Result<(), String> {
    let statement = dsse::open(manifest, key).map_err(|why| format!("{MANIFEST}: {why}"))?;
    if statement.predicate_type != MANIFEST_TYPE {
        return Err(format!("{MANIFEST}: it is a statement of another type"));
    }
    let listed: BTreeMap<&str, &str> =
        statement.subjects.iter().map(|subject| (subject.name.as_str(), subject.sha256.as_str())).collect();
    if listed.len() != statement.subjects.len() {
        return Err(format!("{MANIFEST}: it lists a file twice"));
    }
    for (name, content) in files {
        match listed.get(name.as_str()) {
            None => return Err(format!("{name}: it is not in the signed list")),
            Some(digest) if *digest != Hash::of(content).hex() => {
                return Err(format!("{name}: its content is not the one that was signed"));
            }
            Some(_) => {}
        }
    }
    match listed.keys().find(|name| !files.contains_key(**name)) {
        Some(name) => Err(format!("{name}: it is in the signed list, and missing in the archive")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(files: &[(&str, &str)]) -> Vec<u8> {
        let files: Files = files.iter().map(|(name, text)| (name.to_string(), text.as_bytes().to_vec())).collect();
        let mut bytes = Vec::new();
        write(&files, &SigningKey::of_installation(&[1; 32]), &mut bytes).expect("written");
        bytes
    }

    #[test]
    fn data_behind_an_archive_is_rejected() {
        let whole = archive(&[("controls.md", "text"), ("README.md", &"x".repeat(512))]);
        let (_, files) = read(&whole).expect("read");
        assert_eq!(files.len(), 3, "with the public key");
        assert!(read(&whole[..whole.len() - 1024]).is_ok(), "without the blocks of zeros at the end");
        let zeros = [&whole[..], &[0; 10_240]].concat();
        assert!(read(&zeros).is_ok(), "padded to the record size of a tape");
        for more in [&archive(&[("controls.md", "other")])[..], b"A", &[&[0; 512], &whole[..]].concat()] {
            assert_eq!(read(&[&whole[..], more].concat()), Err("the archive has data after its end".into()));
        }
    }
}
