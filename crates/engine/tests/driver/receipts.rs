//! Pages of checked receipts: the signatures that each page checks, and its cursor.

use std::{cell::Cell, sync::Arc};

use mainspring_effects::Executors;
use mainspring_engine::{
    journal_loader::Loader,
    receipts::{CheckedReceipt, PageEnd, ReceiptPlace, Verdict},
    start_request::StartRequest,
};
use mainspring_kernel::{
    effect::Outcome, input::Input, instance::Instance, key::ExecutionKey, plan::Constraints, value::Value,
};
use mainspring_store::memory::MemoryStore;
use mainspring_store::prelude::*;

use crate::{block_on, engine, request, status, undecodable::Returns, until};

const RECEIPTS: usize = 300;
const PAGE: usize = 50;

/// A call for each item.
const EACH: &str = r#"{"steps":[{"type":"loop","id":"l","forEach":{"ref":"@input","concurrency":16},
    "steps":[{"type":"tool","id":"a","tool":"s.t"}]}]}"#;

fn page(loader: &Loader, execution: ExecutionKey, after: Option<ReceiptPlace>) -> (Vec<CheckedReceipt>, PageEnd) {
    let mut page = Vec::new();
    let each = |checked| {
        page.push(checked);
        page.len() < PAGE
    };
    let end = loader.receipts_after(execution, after, each).unwrap().expect("it exists");
    (page, end)
}

#[test]
fn a_page_checks_only_its_own_signatures() {
    let store = MemoryStore::new();
    block_on(async {
        let executors = Executors::new(vec![Arc::new(Returns(Some(Outcome::Done(Value::Null))))]);
        let engine = engine(store.clone(), executors, None);
        let bounds = Constraints { max_steps: Some(10_000), ..Constraints::default() };
        let input = Value::List(vec![Value::Null; RECEIPTS]);
        let execution = engine.start(StartRequest { bounds, input, ..request(EACH) }).await.unwrap().execution;
        until(async || status(&store, execution) == "completed").await;
        let loader = Loader::new(Arc::new(store.clone()), [1; 32]);
        let mut all = Vec::new();
        let counts = loader.receipts(execution, |checked| all.push(checked)).unwrap().expect("it exists");
        assert_eq!((counts.proven, counts.broken), (RECEIPTS as u64, None));
        let (mut paged, mut after, mut checks) = (Vec::new(), None, 0);
        loop {
            let (page, end) = page(&loader, execution, after);
            assert!(end.signature_checks <= page.len() as u64, "{} of {}", end.signature_checks, page.len());
            assert!(page.iter().all(|one| matches!(one.verdict, Verdict::Proven(_))));
            checks += end.signature_checks;
            paged.extend(page);
            match end.next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        // With the signatures of the whole journal in each page, it would be six times as many.
        assert!(checks <= RECEIPTS as u64, "{checks}");
        assert!(paged == all, "the pages have each receipt once");
        // A receipt that arrives later does not shift the next page.
        let instance = Instance { step: 1, rounds: vec![0] };
        let late = Input::Receipt { instance, attempt: 1, outcome: Outcome::Done("again".into()) };
        engine.enqueue(execution, &late, None).unwrap();
        until(async || !store.late_receipts(execution).unwrap().is_empty()).await;
        let (last, end) = page(&loader, execution, after);
        assert_eq!((last.len(), end.next.is_some()), (PAGE, true));
        assert!(last == paged[RECEIPTS - PAGE..]);
        let (late, end) = page(&loader, execution, end.next);
        assert_eq!((late.len(), end.next, end.signature_checks), (1, None, 1));
        let beyond = page(&loader, execution, Some(ReceiptPlace::Late(0)));
        assert_eq!(beyond, (Vec::new(), PageEnd::default()));
        engine.drain().await;
    });
}

/// The walk asks for no receipt before the cursor.
#[test]
fn unrequested_receipts_are_skipped() {
    let store = MemoryStore::new();
    block_on(async {
        let executors = Executors::new(vec![Arc::new(Returns(Some(Outcome::Done(Value::Null))))]);
        let engine = engine(store.clone(), executors, None);
        let input = Value::List(vec![Value::Null; 3]);
        let execution = engine.start(StartRequest { input, ..request(EACH) }).await.unwrap().execution;
        until(async || status(&store, execution) == "completed").await;
        engine.drain().await;
        let loader = Loader::new(Arc::new(store.clone()), [1; 32]);
        let passed = Cell::new(0);
        let each = |_| {
            passed.set(passed.get() + 1);
            false
        };
        let end = loader.receipts_after(execution, None, each).unwrap().expect("it exists");
        assert_eq!((passed.get(), end.next.is_some(), end.signature_checks), (1, true, 1));
        assert_eq!(loader.receipts_after(ExecutionKey([9; 16]), None, |_| true).unwrap(), None);
    });
}
