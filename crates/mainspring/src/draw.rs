//! Drawings of plans.
