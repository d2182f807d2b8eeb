//! Third-party copy (SPC-4, 5.17, 6.4 to 6.5, 6.18 to 6.24).
//!
//! * [`extended`]: EXTENDED COPY, [`parse`]: its parameter lists, [`cscd`]: the volumes in them,
//! * [`odx`]: POPULATE TOKEN and WRITE USING TOKEN, [`token`]: the tokens,
//! * [`running`]: a copy of either kind, from its request to its end,
//! * [`results`]: status and results of copies.

pub(crate) mod cscd;
pub(crate) mod extended;
pub(crate) mod odx;
pub(crate) mod parse;
pub(crate) mod results;
pub(crate) mod running;
pub(crate) mod token;
