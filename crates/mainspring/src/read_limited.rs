//! Reads files and standard input up to the size limit of a definition.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use mainspring_kernel::limits::DEFINITION_BYTES_MAX;

/// Reads a file of at most [`DEFINITION_BYTES_MAX`] bytes. The error names the file.
pub fn file(path: &Path) -> Result<Vec<u8>, String> {
    let named = |error: io::Error| format!("{}: {error}", path.display());
    bounded(File::open(path).map_err(named)?).map_err(|why| format!("{}: {why}", path.display()))
}

/// Reads standard input, at most [`DEFINITION_BYTES_MAX`] bytes.
pub fn stdin() -> Result<Vec<u8>, String> {
    bounded(io::stdin().lock()).map_err(|why| format!("standard input: {why}"))
}

fn bounded(source: impl Read) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    source.take(DEFINITION_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() > DEFINITION_BYTES_MAX {
        return Err(format!("more than {DEFINITION_BYTES_MAX} bytes; put large data into files and name them"));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_holds() {
        assert_eq!(bounded(&b"abc"[..]).unwrap(), b"abc");
        assert_eq!(bounded(io::repeat(b'x').take(DEFINITION_BYTES_MAX as u64)).unwrap().len(), DEFINITION_BYTES_MAX);
        assert!(bounded(io::repeat(b'x')).unwrap_err().contains("more than"));
        assert!(file(Path::new("/no/such/file")).unwrap_err().contains("/no/such/file"));
    }
}
