//! Drawings of plans.
#![allow(missing_docs)]
pub struct Style { pub colour: bool, pub width: usize, pub ascii: bool }
pub fn terminal(_: &mainspring_kernel::plan::Plan, _: &Style) -> String { String::new() }
pub fn mermaid(_: &mainspring_kernel::plan::Plan) -> String { String::new() }
pub fn dot(_: &mainspring_kernel::plan::Plan) -> String { String::new() }
