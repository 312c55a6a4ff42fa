//! Bounds of secrets.

/// Fewest bytes of a value. Shorter texts are part of ordinary outputs, and to redact them would destroy these outputs.
pub const SECRET_BYTES_MIN: usize = 8;

/// Most bytes of a value: a private key with its certificates, and less than a header or a variable can hold.
pub const SECRET_BYTES_MAX: usize = 32 * 1024;

/// Fewest bytes of a line of a secret that is redacted by itself. Shorter lines are `}` or `-----`.
pub(super) const LINE_BYTES_MIN: usize = SECRET_BYTES_MIN;

/// Fewest bytes of a beginning of a secret that is redacted at the end of a text, where a bound may have cut it.
pub(super) const CUT_BYTES_MIN: usize = 6;
