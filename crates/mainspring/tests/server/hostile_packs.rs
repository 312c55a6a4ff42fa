//! Packs that grow when Git reads them. No Git writes them, so these are written byte by byte.

use std::fs;

use mainspring_kernel::{json::compact, value::Value};
use ring::digest;

use super::{
    git_remote::Fixture,
    hostile_repositories::run,
    repositories::{Bench, text},
};

/// Types of objects in a pack (gitformat-pack(5)).
const COMMIT: u8 = 1;
const TREE: u8 = 2;
const BLOB: u8 = 3;
const OFS_DELTA: u8 = 6;

/// Most bytes of one copy instruction, and of one stored block of zlib.
const COPY_MAX: u64 = 0x00ff_ffff;
const STORED_MAX: usize = 0xffff;

/// A pack that is being written.
struct PackWriter {
    bytes: Vec<u8>,
    objects: u32,
}

impl PackWriter {
    /// Begins with a commit that has no files, so that all else in the pack is there for Git's reader alone.
    fn of(fixture: &Fixture) -> Self {
        fixture.commit_tree("");
        let mut pack = Self { bytes: b"PACK\0\0\0\x02\0\0\0\0".to_vec(), objects: 0 };
        let commit = format!("{}\n", fixture.git(&["cat-file", "commit", "main"]));
        pack.object(COMMIT, None, commit.as_bytes());
        pack.object(TREE, None, b"");
        pack
    }

    /// Adds an object, and returns its place.
    fn object(&mut self, kind: u8, base: Option<usize>, content: &[u8]) -> usize {
        let place = self.bytes.len();
        let mut rest = content.len() >> 4;
        let low = u8::try_from(content.len() & 15).unwrap();
        self.bytes.push((u8::from(rest > 0) << 7) | (kind << 4) | low);
        while rest > 0 {
            let low = u8::try_from(rest & 127).unwrap();
            rest >>= 7;
            self.bytes.push((u8::from(rest > 0) << 7) | low);
        }
        if let Some(base) = base {
            self.bytes.extend(distance(place - base));
        }
        self.bytes.extend(stored(content));
        self.objects += 1;
        place
    }

    /// Adds a delta whose result is its base, `copies` times, and a number. Returns its place and the length of the result.
    fn delta(&mut self, (base, length): (usize, u64), copies: u64, number: u16) -> (usize, u64) {
        let copied = length.min(COPY_MAX);
        let result = copied * copies + 2;
        let mut content = [size(length), size(result)].concat();
        for _ in 0..copies {
            content.push(0xf0);
            content.extend(&copied.to_le_bytes()[..3]);
        }
        content.push(2);
        content.extend(number.to_be_bytes());
        (self.object(OFS_DELTA, Some(base), &content), result)
    }

    fn finish(mut self) -> Vec<u8> {
        self.bytes[8..12].copy_from_slice(&self.objects.to_be_bytes());
        let sum = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, &self.bytes);
        self.bytes.extend(sum.as_ref());
        self.bytes
    }
}

/// The distance to the base of a delta, in base 128 with the highest digits first.
fn distance(mut rest: usize) -> Vec<u8> {
    let mut digits = vec![u8::try_from(rest & 127).unwrap()];
    while rest > 127 {
        rest = (rest >> 7) - 1;
        digits.insert(0, 128 | u8::try_from(rest & 127).unwrap());
    }
    digits
}

/// A size in a delta, in base 128 with the lowest digits first.
fn size(mut rest: u64) -> Vec<u8> {
    let mut digits = Vec::new();
    loop {
        let low = u8::try_from(rest & 127).unwrap();
        rest >>= 7;
        digits.push((u8::from(rest > 0) << 7) | low);
        if rest == 0 {
            return digits;
        }
    }
}

/// Content in the form of zlib, without compression.
fn stored(content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x78, 0x01];
    let blocks = content.len().div_ceil(STORED_MAX).max(1);
    for number in 0..blocks {
        let block = &content[number * STORED_MAX..content.len().min((number + 1) * STORED_MAX)];
        let length = u16::try_from(block.len()).unwrap();
        bytes.push(u8::from(number + 1 == blocks));
        bytes.extend(length.to_le_bytes());
        bytes.extend((!length).to_le_bytes());
        bytes.extend(block);
    }
    let (mut low, mut high) = (1_u32, 0_u32);
    for byte in content {
        low = (low + u32::from(*byte)) % 65_521;
        high = (high + low) % 65_521;
    }
    bytes.extend(((high << 16) | low).to_be_bytes());
    bytes
}

/// Runs a workflow whose remote answers with a pack, and returns the error of the execution.
fn error_of(bench: &Bench, name: &str, write: impl FnOnce(&mut PackWriter)) -> Value {
    let fixture = bench.remote.repository(name);
    let mut pack = PackWriter::of(&fixture);
    write(&mut pack);
    let pack = pack.finish();
    assert!(pack.len() < 1 << 20, "the pack is small: {}", pack.len());
    bench.remote.answer(name, pack);
    let ended = run(bench, name, "ls -A; echo ran");
    // No file of the commit is left, long before the workspace is removed.
    for workspace in fs::read_dir(bench.folder.path().join("data/workspaces")).unwrap().flatten() {
        if workspace.path().is_dir() {
            assert_eq!(fs::read_dir(workspace.path()).unwrap().count(), 0, "{name}");
        }
    }
    assert_eq!(text(&ended, "status"), "failed", "{name}: {}", compact(&ended));
    ended.get("error").cloned().unwrap()
}

#[test]
fn delta_bombs_are_bounded() {
    let seed = vec![0; 1 << 16];
    // Five objects, of which the last has 4 GiB: no process in a container has this memory.
    let bench = Bench::new("");
    let tall = error_of(&bench, "tall", |pack| {
        let mut last = (pack.object(BLOB, None, &seed), 1 << 16);
        for copies in [16, 16, 17, 256] {
            last = pack.delta(last, copies, 0);
        }
    });
    assert_eq!(text(&tall, "code"), "repository_refused", "{}", compact(&tall));
    assert!(text(&tall, "message").contains("memory"), "{}", compact(&tall));
    // Four thousand objects of 256 MiB, each of which Git copies and hashes: the time is bounded.
    let bench = Bench::new(", timeoutMs: 5000");
    let wide = error_of(&bench, "wide", |pack| {
        let mut last = (pack.object(BLOB, None, &seed), 1 << 16);
        for copies in [16, 16, 17] {
            last = pack.delta(last, copies, 0);
        }
        for number in 0..4000 {
            pack.delta(last, 16, number);
        }
    });
    assert_eq!(text(&wide, "code"), "repository_timeout", "{}", compact(&wide));
    // A pack without a bomb is read, so the packs are refused for their bombs.
    let bench = Bench::new("");
    let fixture = bench.remote.repository("fine");
    let mut pack = PackWriter::of(&fixture);
    let blob = pack.object(BLOB, None, &seed);
    pack.delta((blob, 1 << 16), 16, 0);
    bench.remote.answer("fine", pack.finish());
    let ended = run(&bench, "fine", "git rev-parse HEAD");
    assert_eq!(text(&ended, "status"), "completed", "{}", compact(&ended));
}
