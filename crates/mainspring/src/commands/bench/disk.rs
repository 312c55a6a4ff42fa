//! The floor of every durable store: the duration of one synchronized write on this disk.

use std::{
    fs::File,
    io::{self, Write},
    path::Path,
    time::{Duration, Instant},
};

use super::load_generator::Measured;

/// Appends and syncs blocks for the given duration.
pub(super) fn fdatasync(folder: &Path, duration: Duration) -> io::Result<Measured> {
    let mut file = File::create(folder.join("fdatasync"))?;
    let (block, mut each, began) = ([0x5a; 4096], Vec::new(), Instant::now());
    while began.elapsed() < duration {
        let one = Instant::now();
        file.write_all(&block)?;
        file.sync_data()?;
        each.push(one.elapsed());
    }
    Ok(Measured { each, all: began.elapsed() })
}
