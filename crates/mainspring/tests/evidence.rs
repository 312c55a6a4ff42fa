//! `mainspring evidence`: archives verify with the public key alone, every manipulation is found, and a rewound store too.

use std::{
    collections::BTreeMap,
    fs,
    io::{Cursor, Read},
    path::PathBuf,
    process::Command,
};

mod support;
use mainspring_evidence::{Trust, archive, signing::SigningKey, verify};
use mainspring_kernel::hash::unhex;
use support::{TestDir, call};

const DEFINITION: &str = r#"
name: release
steps:
  - {id: build, type: bash, command: "echo built"}
  - {id: ask, type: approval, prompt: "Ship it?"}
  - {id: ship, type: bash, command: "echo shipped"}
"#;

struct Exported {
    dir: TestDir,
    file: PathBuf,
    key: PathBuf,
}

fn exported() -> Exported {
    let dir = TestDir::new();
    fs::write(dir.root().join("wf.yaml"), DEFINITION).unwrap();
    for id in ["e1", "e2"] {
        assert_eq!(call(dir.mainspring(&["run", "wf.yaml", "--id", id, "--yes"]), b"").exit, Some(0));
    }
    let file = dir.root().join("evidence.tar");
    let all = ["evidence", "export", "--since", "2020-01-01T00:00:00Z", "-o", "evidence.tar"];
    let answer = call(dir.mainspring(&all), b"");
    assert!(answer.exit == Some(0) && answer.stdout.contains("2 executions"), "{answer:?}");
    let pem = call(dir.mainspring(&["evidence", "key"]), b"").stdout;
    let key = dir.root().join("key.pem");
    fs::write(&key, pem).unwrap();
    Exported { dir, file, key }
}

/// The key that signs in this folder.
fn signing(dir: &TestDir) -> SigningKey {
    let text = fs::read_to_string(dir.root().join("home/.config/mainspring/key")).unwrap();
    let mut key = [0; 32];
    assert!(unhex(text.trim(), &mut key), "the key file has 64 hexadecimal digits");
    SigningKey::of_installation(&key)
}

#[test]
fn an_archive_verifies_without_the_store_and_is_deterministic() {
    let Exported { dir, file, key } = exported();
    let again = ["evidence", "export", "--since", "2020-01-01T00:00:00Z", "-o", "again.tar"];
    assert_eq!(call(dir.mainspring(&again), b"").exit, Some(0));
    assert_eq!(fs::read(&file).unwrap(), fs::read(dir.root().join("again.tar")).unwrap());
    assert_eq!(call(dir.mainspring(&again), b"").exit, Some(10), "an existing file is not replaced");
    // Another folder, without a store and without the secret key.
    let other = TestDir::new();
    let (file, key) = (file.to_str().unwrap(), key.to_str().unwrap());
    let checked = call(other.mainspring(&["evidence", "verify", file, "--public-key", key]), b"");
    assert_eq!(checked.exit, Some(0), "{checked:?}");
    for part in ["e1 ok  completed", "e2 ok  completed", "decided again with the same result", "signed with sha256:"] {
        assert!(checked.stdout.contains(part), "{part}: {checked:?}");
    }
    let unknown = call(other.mainspring(&["evidence", "verify", file]), b"");
    assert!(unknown.exit == Some(0) && unknown.stdout.contains("could be forged"), "{unknown:?}");
    // The key of another installation.
    fs::write(other.root().join("wf.yaml"), DEFINITION).unwrap();
    assert_eq!(call(other.mainspring(&["run", "wf.yaml", "--yes"]), b"").exit, Some(0));
    fs::write(other.root().join("key.pem"), call(other.mainspring(&["evidence", "key"]), b"").stdout).unwrap();
    let wrong = call(other.mainspring(&["evidence", "verify", file, "--public-key", "key.pem"]), b"");
    assert_eq!(wrong.exit, Some(1), "{wrong:?}");
    let one = call(dir.mainspring(&["evidence", "export", "e1", "-o", "one.tar", "--json"]), b"");
    assert_eq!((one.exit, one.at("executions")), (Some(0), 1u64.into()), "{one:?}");
}

/// Replaces the first occurrence of some bytes.
fn replaced(content: &[u8], from: &str, to: &str) -> Vec<u8> {
    let text = String::from_utf8(content.to_vec()).unwrap();
    assert!(text.contains(from), "{from} in {text}");
    text.replacen(from, to, 1).into_bytes()
}

/// Removes a line, counted from the end if it is negative.
fn without_line(content: &[u8], place: isize) -> Vec<u8> {
    let text = String::from_utf8(content.to_vec()).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    let place = if place < 0 { lines.len() as isize + place } else { place };
    lines.remove(place as usize);
    lines.iter().map(|line| format!("{line}\n")).collect::<String>().into_bytes()
}

fn swapped(content: &[u8], one: usize, other: usize) -> Vec<u8> {
    let text = String::from_utf8(content.to_vec()).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.swap(one, other);
    lines.iter().map(|line| format!("{line}\n")).collect::<String>().into_bytes()
}

type Change = Box<dyn Fn(&mut BTreeMap<String, Vec<u8>>)>;

/// Changes the content of one file.
fn edit(path: String, change: impl Fn(&[u8]) -> Vec<u8> + 'static) -> Change {
    Box::new(move |files| {
        let content = change(&files[&path]);
        files.insert(path.clone(), content);
    })
}

/// Exchanges two files.
fn exchange(one: String, other: String) -> Change {
    Box::new(move |files| {
        let (a, b) = (files[&one].clone(), files[&other].clone());
        files.extend([(one.clone(), b), (other.clone(), a)]);
    })
}

/// Each file of an execution is removed, lengthened and damaged.
fn damages(folder: &str) -> Vec<(String, Change)> {
    let names = [
        "journal.ndjson",
        "plan.cbor",
        "checkpoint.dsse.json",
        "approvals.ndjson",
        "policy.ndjson",
        "receipts.ndjson",
        "summary.md",
    ];
    let mut changes: Vec<(String, Change)> = Vec::new();
    for path in names.map(|name| format!("{folder}/{name}")) {
        let gone = path.clone();
        changes.push((format!("{path} is missing"), Box::new(move |files| drop(files.remove(&gone)))));
        changes.push((format!("{path} is longer"), edit(path.clone(), |content| [content, b"\n"].concat())));
        let flipped = |content: &[u8]| {
            let mut content = content.to_vec();
            let place = content.len() / 2;
            content[place] ^= 1;
            content
        };
        changes.push((format!("{path} has another byte"), edit(path, flipped)));
    }
    changes
}

/// The content of files is changed so that it stays readable.
fn edits(folder: &str) -> Vec<(String, Change)> {
    let path = |name: &str| format!("{folder}/{name}");
    let mut changes: Vec<(String, Change)> = Vec::new();
    for place in [0, 1, 2, -1] {
        let change = edit(path("journal.ndjson"), move |content| without_line(content, place));
        changes.push((format!("{folder}: the journal has no line {place}"), change));
    }
    changes.push((format!("{folder}: another order"), edit(path("journal.ndjson"), |content| swapped(content, 1, 2))));
    for (name, from, to) in [
        ("summary.md", "completed", "failed"),
        ("summary.md", "approve", "deny"),
        ("summary.md", "Ship it?", "Ship nothing?"),
        ("receipts.ndjson", "\"done\"", "\"failed\""),
        ("policy.ndjson", "allow", "ask"),
    ] {
        changes.push((
            format!("{folder}: {name} says {to}"),
            edit(path(name), move |content| replaced(content, from, to)),
        ));
    }
    changes
}

/// The manipulations: each changes the files of an archive.
fn manipulations(files: &BTreeMap<String, Vec<u8>>) -> Vec<(String, Change)> {
    let folders: Vec<String> =
        files.keys().filter_map(|name| name.strip_suffix("/plan.cbor").map(Into::into)).collect();
    let mut changes: Vec<(String, Change)> = Vec::new();
    for folder in &folders {
        changes.extend(damages(folder));
        changes.extend(edits(folder));
    }
    for name in ["journal.ndjson", "checkpoint.dsse.json", "summary.md"] {
        let paths = [0, 1].map(|place| format!("{}/{name}", folders[place]));
        let [one, other] = paths;
        changes.push((format!("{name} is exchanged"), exchange(one, other)));
    }
    changes.push(("a file is added".into(), Box::new(|files| drop(files.insert("notes.txt".into(), b"x".to_vec())))));
    let name = format!("{}/definition.json", folders[0]);
    changes.push((
        "a definition is added".into(),
        Box::new(move |files| drop(files.insert(name.clone(), b"{\"steps\": []}".to_vec()))),
    ));
    changes
}

/// Writes files with the signed list of the original.
fn repacked(manifest: &[u8], files: &BTreeMap<String, Vec<u8>>) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, content) in [(&archive::MANIFEST.to_string(), &manifest.to_vec())].into_iter().chain(files) {
        let mut header = tar::Header::new_ustar();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, content.as_slice()).unwrap();
    }
    builder.into_inner().unwrap()
}

#[test]
fn every_manipulation_is_found() {
    let Exported { dir, file, .. } = exported();
    let bytes = fs::read(&file).unwrap();
    let (manifest, files) = archive::read(&bytes).unwrap();
    let signing = signing(&dir);
    let trust = Trust::Given(signing.public());
    assert_eq!(verify(&bytes, trust).unwrap().executions.len(), 2);
    assert!(verify(&repacked(&manifest, &files), trust).is_ok(), "packing again is no manipulation");
    let changes = manipulations(&files);
    assert!(changes.len() >= 50, "{}", changes.len());
    for (name, change) in &changes {
        let mut changed = files.clone();
        change(&mut changed);
        assert!(verify(&repacked(&manifest, &changed), trust).is_err(), "not found: {name}");
        // An insider who can sign the list again is found by the journal, its checkpoint, and what derives from them. The
        // policy and the plan are covered by the hash in the journal.
        changed.remove(archive::PUBLIC_KEY);
        let mut signed = Vec::new();
        archive::write(&changed, &signing, &mut signed).unwrap();
        assert!(verify(&signed, trust).is_err(), "not found with a new list: {name}");
    }
    // The bytes of the archive themselves: cut off, or with another signature.
    assert!(verify(&bytes[..bytes.len() / 2], trust).is_err());
    let forger = SigningKey::of_installation(&[9; 32]);
    let mut forged = Vec::new();
    archive::write(&files, &forger, &mut forged).unwrap();
    assert!(verify(&forged, trust).is_err() && verify(&forged, Trust::OfArchive).is_err());
    let mut read = String::new();
    let mut tar = tar::Archive::new(Cursor::new(&bytes));
    let mut entries = tar.entries().unwrap();
    entries.next().unwrap().unwrap().read_to_string(&mut read).unwrap();
    assert!(read.contains("application/vnd.in-toto+json"), "the list is the first file");
}

/// Two executions in the folder `data`, and the file of the public key.
fn in_data() -> (TestDir, PathBuf) {
    let dir = TestDir::new();
    fs::write(dir.root().join("wf.yaml"), DEFINITION).unwrap();
    for id in ["e1", "e2"] {
        let run = ["run", "wf.yaml", "--id", id, "--dir", "data", "--yes"];
        assert_eq!(call(dir.mainspring(&run), b"").exit, Some(0));
    }
    let key = dir.root().join("key.pem");
    fs::write(&key, call(dir.mainspring(&["evidence", "key", "--dir", "data"]), b"").stdout).unwrap();
    (dir, key)
}

/// One broken signature does not stop the evidence of all executions: the archive shows where it is.
#[test]
fn a_broken_signature_is_reported_and_the_others_are_exported() {
    let (dir, key) = in_data();
    let intruder = rusqlite::Connection::open(dir.root().join("data/journal.db")).unwrap();
    let (execution, frame): (Vec<u8>, u32) = intruder
        .query_row(
            "SELECT execution, min(sequence) FROM frames WHERE receipt_proof IS NOT NULL AND execution = \
             (SELECT execution FROM executions WHERE id = 'e1')",
            [],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .unwrap();
    let place = format!("signature broken at frame {frame}: ");
    let broken = format!("{place}the receipt of step `build`, attempt 1");
    let all = ["evidence", "export", "--since", "2020-01-01T00:00:00Z", "--dir", "data", "-o"];
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/verify_evidence.py");
    let key = key.to_str().unwrap();
    for (name, proof, why) in [
        ("garbage", Some(&b"garbage"[..]), "its signature cannot be read"),
        ("missing", None, "its signature is missing"),
    ] {
        let sql = "UPDATE frames SET receipt_proof = ?1 WHERE execution = ?2 AND sequence = ?3";
        assert_eq!(intruder.execute(sql, rusqlite::params![proof, execution, frame]).unwrap(), 1);
        let file = format!("{name}.tar");
        let answer = call(dir.mainspring(&[&all[..], &[&file]].concat()), b"");
        assert_eq!(answer.exit, Some(1), "{answer:?}");
        let said = format!("e1 failed  {broken}: {why}");
        assert!(answer.stdout.contains(&said) && answer.stdout.contains("2 executions"), "{answer:?}");
        let (_, files) = archive::read(&fs::read(dir.root().join(&file)).unwrap()).unwrap();
        let summaries: Vec<_> = files.iter().filter(|(name, _)| name.ends_with("summary.md")).collect();
        let reported = summaries.iter().filter(|(_, text)| String::from_utf8_lossy(text).contains(&place));
        assert_eq!((summaries.len(), reported.count()), (2, 1));
        let checked = call(dir.mainspring(&["evidence", "verify", &file, "--public-key", key]), b"");
        assert_eq!(checked.exit, Some(1), "{checked:?}");
        for part in ["e1 failed  completed", "e2 ok  completed", &format!("{broken}: {why}")] {
            assert!(checked.stdout.contains(part), "{part}: {checked:?}");
        }
        let json = call(dir.mainspring(&["evidence", "verify", &file, "--public-key", key, "--json"]), b"");
        assert_eq!((json.exit, json.at("ok")), (Some(1), false.into()), "{json:?}");
        let mut python = Command::new("python3");
        python.args([script, &file, key]).current_dir(dir.root());
        let checked = call(python, b"");
        assert!(checked.exit == Some(1) && checked.stderr.contains(&place), "{checked:?}");
    }
}

#[test]
fn a_script_verifies_without_mainspring() {
    let Exported { dir, file, key } = exported();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/verify_evidence.py");
    let run = |file: &str| {
        let mut python = Command::new("python3");
        python.args([script, file, key.to_str().unwrap()]).current_dir(dir.root());
        call(python, b"")
    };
    let sound = run(file.to_str().unwrap());
    assert!(sound.exit == Some(0) && sound.stdout.contains("2 executions"), "{sound:?}");
    let (manifest, files) = archive::read(&fs::read(&file).unwrap()).unwrap();
    let signing = signing(&dir);
    for (place, (name, change)) in manipulations(&files).into_iter().enumerate().step_by(9) {
        let mut changed = files.clone();
        change(&mut changed);
        fs::write(dir.root().join("changed.tar"), repacked(&manifest, &changed)).unwrap();
        let found = run("changed.tar");
        assert_eq!(found.exit, Some(1), "{place} {name}: {found:?}");
    }
    // A journal that was cut off and signed again as a list, but not as a checkpoint.
    let mut cut = files.clone();
    let journal = files.keys().find(|name| name.ends_with("journal.ndjson")).unwrap();
    cut.insert(journal.clone(), without_line(&files[journal], -1));
    cut.remove(archive::PUBLIC_KEY);
    let mut signed = Vec::new();
    archive::write(&cut, &signing, &mut signed).unwrap();
    fs::write(dir.root().join("cut.tar"), signed).unwrap();
    let found = run("cut.tar");
    assert!(found.exit == Some(1) && found.stderr.contains("checkpoint"), "{found:?}");
}

/// JSON leaves the line separators of Unicode as they are, so only a newline ends a line.
#[test]
fn the_script_splits_lines_at_newlines_alone() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/verify_evidence.py");
    let code = format!(
        "import importlib.util\n\
         spec = importlib.util.spec_from_file_location('verify', {script:?})\n\
         verify = importlib.util.module_from_spec(spec)\n\
         spec.loader.exec_module(verify)\n\
         print(len(verify.lines_of('a\\u2028b\\u2029c\\u0085d\\x0be\\nf\\n'.encode())))\n"
    );
    let mut python = Command::new("python3");
    python.args(["-c", &code]);
    let answer = call(python, b"");
    assert_eq!((answer.exit, answer.stdout.trim()), (Some(0), "2"), "{answer:?}");
    let text = fs::read_to_string(script).unwrap();
    assert!(!text.contains(".splitlines()"), "a file of the archive is split by `lines_of`");
}

/// One journal that cannot be read hides no other one.
#[test]
fn an_unreadable_journal_is_named_in_the_archive() {
    let (dir, key) = in_data();
    let intruder = rusqlite::Connection::open(dir.root().join("data/journal.db")).unwrap();
    let sql = "UPDATE frames SET frame = x'ff' WHERE sequence = 1 AND execution = \
               (SELECT execution FROM executions WHERE id = 'e1')";
    assert_eq!(intruder.execute(sql, []).unwrap(), 1);
    let all = ["evidence", "export", "--since", "2020-01-01T00:00:00Z", "--dir", "data", "-o", "rest.tar"];
    let answer = call(dir.mainspring(&all), b"");
    assert_eq!(answer.exit, Some(1), "{answer:?}");
    assert!(answer.stdout.contains("e1 failed  its journal is not in the archive"), "{answer:?}");
    assert!(answer.stdout.contains("1 execution, "), "{answer:?}");
    let key = key.to_str().unwrap();
    let checked = call(dir.mainspring(&["evidence", "verify", "rest.tar", "--public-key", key]), b"");
    assert!(checked.exit == Some(1) && checked.stdout.contains("e2 ok  completed"), "{checked:?}");
    assert!(checked.stdout.contains("e1 failed  its journal is not in the archive"), "{checked:?}");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/verify_evidence.py");
    let mut python = Command::new("python3");
    python.args([script, "rest.tar", key]).current_dir(dir.root());
    let checked = call(python, b"");
    assert!(checked.exit == Some(1) && checked.stderr.contains("execution e1 is not in the archive"), "{checked:?}");
    // By itself it is an error.
    let one = call(dir.mainspring(&["evidence", "export", "e1", "--dir", "data", "-o", "one.tar"]), b"");
    assert_eq!(one.exit, Some(10), "{one:?}");
}

#[test]
fn a_rewound_store_lacks_pinned_heads() {
    let dir = TestDir::new();
    fs::write(dir.root().join("wf.yaml"), DEFINITION).unwrap();
    assert_eq!(call(dir.mainspring(&["run", "wf.yaml", "--id", "e1", "--dir", "data", "--yes"]), b"").exit, Some(0));
    let backup = call(dir.mainspring(&["backup", "early.db", "--dir", "data"]), b"");
    assert_eq!(backup.exit, Some(0), "{backup:?}");
    assert_eq!(call(dir.mainspring(&["run", "wf.yaml", "--id", "e2", "--dir", "data", "--yes"]), b"").exit, Some(0));
    let pin = call(dir.mainspring(&["evidence", "pin", "-o", "pin.json", "--dir", "data"]), b"");
    assert!(pin.exit == Some(0) && pin.stdout.contains("2 heads"), "{pin:?}");
    let against = ["evidence", "pin", "--against", "pin.json", "--dir", "data"];
    let whole = call(dir.mainspring(&against), b"");
    assert!(whole.exit == Some(0) && whole.stdout.contains("all 2 heads"), "{whole:?}");
    // The store returns to the backup, which does not have the second execution.
    for name in ["journal.db", "journal.db-wal", "journal.db-shm"] {
        let _ = fs::remove_file(dir.root().join("data").join(name));
    }
    fs::copy(dir.root().join("early.db"), dir.root().join("data/journal.db")).unwrap();
    let rewound = call(dir.mainspring(&against), b"");
    assert!(rewound.exit == Some(1) && rewound.stdout.contains("lacks 1 of 2 heads"), "{rewound:?}");
    // A pin that another key has signed proves nothing.
    let text = fs::read_to_string(dir.root().join("pin.json")).unwrap();
    fs::write(dir.root().join("pin.json"), text.replace("\"sig\":\"", "\"sig\":\"AAAA")).unwrap();
    assert_eq!(call(dir.mainspring(&against), b"").exit, Some(10));
}
