//! `workflow propose`: always fails in this build, since it has no access to a model.

use mainspring_kernel::{
    failure::{Class, Failure},
    value::Value,
};

use super::{Answer, arguments::Propose, say};
use crate::error::Exit;

pub(super) fn propose(propose: &Propose) -> Answer {
    let message = format!(
        "proposing a change to the workflow `{}` ({}: {:?}) needs a model, and this build has no access to one",
        propose.workflow_id, propose.base_hash, propose.intent
    );
    say(&message);
    let envelope = Value::map([
        ("ok", false.into()),
        ("status", "proposal_failed".into()),
        ("proposal", Value::Null),
        ("error", Failure::new(Class::Unavailable, "not_available", message).to_value()),
    ]);
    (Exit::Failed, envelope)
}
