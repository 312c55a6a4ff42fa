//! x
/// x
pub fn mermaid(_: &mainspring_kernel::plan::Plan) -> String { String::new() }
