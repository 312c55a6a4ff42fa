//! Seeded exploration: to come in a moment.
