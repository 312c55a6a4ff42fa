//! The traits of the store, one file for each area of the contract.

mod executions;
mod inbox;
mod journal;
mod membership;
