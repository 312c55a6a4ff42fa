//! x
/// x
pub fn dot(_: &mainspring_kernel::plan::Plan) -> String { String::new() }
