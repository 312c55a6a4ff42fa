//! The audit log outside of the server: what was exported is proven by a file alone.

use std::{path::Path, process::Command};

use mainspring_kernel::value::Value;

use super::{
    process::{Organization, everywhere},
    support::MAINSPRING,
};

/// More than two pages.
const MEMBERS: usize = 450;

fn verify(file: &Path, more: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(MAINSPRING);
    command.args(["audit", "verify", "--json"]).arg(file).args(more).env_clear();
    let output = command.output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap())
}

#[test]
fn an_export_is_the_whole_log_and_is_proven_without_the_server() {
    everywhere(|place| {
        let server = place.start();
        let ours = Organization::new(&server, "acme");
        let viewer = Value::map([("role", Value::from("viewer"))]);
        for number in 0..MEMBERS {
            ours.owner.put(&format!("/api/members/m{number}"), &viewer).expect(200);
        }
        let exported = ours.owner.get("/api/audit/export").expect(200);
        assert_eq!(exported.header("content-type"), Some("application/x-ndjson"));
        let lines: Vec<&str> = exported.text.lines().collect();
        assert_eq!(lines.len(), 2 + MEMBERS, "the head, the organisation's beginning, and every member");
        let log = ours.owner.get("/api/audit?limit=200").expect(200).json();
        let first = &log.get("entries").and_then(Value::as_list).unwrap()[0];
        assert!(lines[1].contains(first.get("hash").and_then(Value::as_text).unwrap()));
        assert!(!exported.text.contains("default"), "nothing of another organisation");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("audit.ndjson");
        std::fs::write(&file, &exported.text).unwrap();
        let (exit, told) = verify(&file, &[]);
        assert!(exit == Some(0) && told.contains("\"isSealed\":false"), "{told}");
        let key = place.key_file();
        let (exit, told) = verify(&file, &["--key", key.to_str().unwrap()]);
        assert!(exit == Some(0) && told.contains("\"isSealed\":true"), "{told}");
        let other = folder.path().join("key");
        std::fs::write(&other, std::fs::read_to_string(&key).unwrap().chars().rev().collect::<String>().trim())
            .unwrap();
        assert_ne!(verify(&file, &["--key", other.to_str().unwrap()]).0, Some(0));
        std::fs::write(&file, exported.text.replace("\"m7\"", "\"m8\"")).unwrap();
        let (exit, told) = verify(&file, &[]);
        assert!(exit == Some(1) && told.contains("line 10"), "{told}");
    });
}
