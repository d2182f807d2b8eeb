//! What is made of results.

pub mod number;

#[cfg(test)]
pub(crate) mod sample;
