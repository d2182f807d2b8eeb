//! Which tokens are durable, so that another controller can continue with them.
//!
//! A token becomes valid, and its end is reported, when that is durable ([`crate::saving`]
//! describes how such commands wait). Changes become durable in order. A token that can't be made
//! durable never becomes valid. An end takes effect at once and is never rolled back: saving it is
//! retried with the next change, and until then the space of its ROD is kept.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use block::{SectorRange, VolumeId};

use super::{RANGES_MAX, Rod, Rods, TOKENS_MAX, Token, TokenError, TokenKey};
use crate::saving::{Change, SaveError};

/// Changes that are made durable together: their records fit one commit of a few blocks.
const BATCH_MAX: usize = 64;
/// Identifiers that are reserved together.
const IDS: u64 = 1 << 16;

/// No array creates so many tokens: larger identifiers are invalid.
const ID_END: u64 = 1 << 60;

/// The stored form of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptRod {
    /// The identifier in the token.
    pub id: u64,
    /// The token.
    pub token: Token,
    /// The initiator that created it.
    pub initiator: String,
    /// The volume that it was copied from.
    pub source: VolumeId,
    /// Its location in the internal volume.
    pub pieces: Vec<SectorRange>,
    /// Its inactivity timeout, in seconds.
    pub inactivity_s: u32,
}

/// The generator of tokens: no two are ever created with the same key and identifier, also after a
/// takeover.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenMaker {
    /// The key that signs them.
    pub key: TokenKey,
    /// The lower bound of unused identifiers.
    pub next_id: u64,
}

/// The stored form of all tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptRods {
    /// Their generator.
    pub maker: TokenMaker,
    /// The tokens.
    pub rods: Vec<KeptRod>,
}

/// Changes of tokens that must be made durable.
#[derive(Debug)]
pub struct UnsavedRods {
    /// The generator, if it has changed.
    pub maker: Option<TokenMaker>,
    /// The new record of each token by identifier; `None` if it has ended.
    pub rows: BTreeMap<u64, Option<KeptRod>>,
    /// The number of changes.
    count: usize,
}

/// The begin or the end of a token.
#[derive(Debug)]
struct Entry {
    change: u64,
    rod: Arc<Rod>,
    is_end: bool,
}

/// The changes that are not durable yet.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// The changes, in order.
    entries: VecDeque<Entry>,
    last_change: u64,
    /// Tokens below this identifier may be durable.
    durable_ids: u64,
    /// Why the last turn failed.
    failure: Option<SaveError>,
}

impl Ledger {
    pub(super) fn note_begin(&mut self, rod: Arc<Rod>) -> u64 {
        self.note(rod, false)
    }

    pub(super) fn note_end(&mut self, rod: Arc<Rod>) {
        self.note(rod, true);
    }

    fn note(&mut self, rod: Arc<Rod>, is_end: bool) -> u64 {
        self.last_change += 1;
        self.entries.push_back(Entry { change: self.last_change, rod, is_end });
        self.last_change
    }

    /// Returns the RODs whose tokens are not durable yet, and do not end.
    pub(super) fn beginning(&self) -> Vec<Arc<Rod>> {
        let begins = self
            .entries
            .iter()
            .filter(|entry| !entry.is_end && !entry.rod.is_revoked.load(Ordering::Relaxed));
        begins.map(|entry| entry.rod.clone()).collect()
    }

    /// Returns its RODs; one appears twice if its token has not begun and will end.
    pub(super) fn rods(&self) -> impl Iterator<Item = &Arc<Rod>> {
        self.entries.iter().map(|entry| &entry.rod)
    }

    /// Returns the last change so far.
    pub(super) fn last_change(&self) -> Change {
        match self.entries.back() {
            Some(entry) => Change::Unsaved(entry.change),
            None => Change::Durable,
        }
    }

    fn is_durable(&self, change: u64) -> bool {
        self.entries.front().is_none_or(|entry| entry.change > change)
    }

    fn next(&self, key: TokenKey) -> Option<UnsavedRods> {
        let count = self.entries.len().min(BATCH_MAX);
        let mut rows = BTreeMap::new();
        for Entry { rod, is_end, .. } in self.entries.iter().take(count) {
            rows.insert(rod.id, (!is_end).then(|| rod.kept()));
        }
        let highest = rows.iter().filter(|(_, row)| row.is_some()).map(|(id, _)| *id).max();
        let highest = highest.filter(|id| *id >= self.durable_ids);
        let maker = highest.map(|id| TokenMaker { key, next_id: (id + 1).next_multiple_of(IDS) });
        (count > 0).then_some(UnsavedRods { maker, rows, count })
    }
}

impl Rod {
    fn kept(&self) -> KeptRod {
        KeptRod {
            id: self.id,
            token: self.token,
            initiator: self.initiator.clone(),
            source: self.source,
            pieces: self.pieces.clone(),
            inactivity_s: self.inactivity_s,
        }
    }
}

impl Rods {
    /// Restores what another controller has stored, before any session, as if each token had just
    /// been created.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn restore(&self, kept: KeptRods) -> Result<(), &'static str> {
        let mut state = self.state.lock();
        let now_ms = self.now_ms.load(Ordering::Relaxed);
        if kept.rods.len() > TOKENS_MAX {
            return Err("too many ROD tokens");
        }
        let TokenMaker { key, next_id } = kept.maker;
        if next_id >= ID_END {
            return Err("ROD tokens with impossible identifiers");
        }
        (state.key, state.next_id) = (key, next_id);
        state.ledger.durable_ids = next_id;
        for rod in kept.rods {
            if key.check(&rod.token) != Some(rod.id) || rod.id >= next_id {
                return Err("a ROD token is not genuine");
            }
            if rod.pieces.len() > RANGES_MAX || !state.room.take(&rod.pieces) {
                return Err("the space of a ROD overlaps that of another one");
            }
            let KeptRod { id, token, initiator, source, pieces, inactivity_s } = rod;
            let rod = Arc::new(Rod {
                id,
                pieces,
                token,
                initiator,
                source,
                is_revoked: false.into(),
                inactivity_s,
                made_ms: now_ms,
                last_used_ms: now_ms.into(),
                failure: OnceLock::new(),
            });
            if state.tokens.insert(id, rod).is_some() {
                return Err("two ROD tokens have one identifier");
            }
        }
        Ok(())
    }

    /// Returns whether there are changes to be made durable.
    pub fn has_unsaved(&self) -> bool {
        !self.state.lock().ledger.entries.is_empty()
    }

    /// Returns the changes that must be made durable now; `None` if there are none.
    pub fn unsaved(&self) -> Option<UnsavedRods> {
        let state = self.state.lock();
        state.ledger.next(state.key)
    }

    /// Reports whether the changes from [`Rods::unsaved`] were made durable. Must be called before
    /// [`Rods::unsaved`] is called again.
    pub fn saved(&self, what: UnsavedRods, result: Result<(), SaveError>) {
        let mut state = self.state.lock();
        let state = &mut *state;
        state.ledger.failure = result.err();
        if let Some(maker) = what.maker.filter(|_| result.is_ok()) {
            state.ledger.durable_ids = maker.next_id;
        }
        let entries: Vec<_> = state.ledger.entries.drain(..what.count).collect();
        let mut left = Vec::new();
        for entry in entries {
            let Entry { rod, is_end, .. } = &entry;
            // If it was revoked meanwhile, its end is a later entry.
            let is_revoked = rod.is_revoked.load(Ordering::Relaxed);
            match (result, is_end) {
                (Ok(()), false) if is_revoked => state.note_ended(rod.id, TokenError::Revoked),
                (Ok(()), false) => drop(state.tokens.insert(rod.id, rod.clone())),
                (Ok(()), true) => state.unnamed.push(entry.rod),
                (Err(error), false) => {
                    // Set once, because a token begins once.
                    let _ = rod.failure.set(error);
                    if !is_revoked {
                        state.unnamed.push(entry.rod);
                    }
                }
                (Err(_), true) => left.push(entry),
            }
        }
        for entry in left.into_iter().rev() {
            state.ledger.entries.push_front(entry);
        }
    }

    /// Returns the outcome of a change that had to be made durable, and of the token of this ROD if
    /// the change begins one.
    ///
    /// # Errors
    /// If it is not durable.
    pub fn outcome(&self, change: u64, begun: Option<&Rod>) -> Result<(), SaveError> {
        if let Some(error) = begun.and_then(|rod| rod.failure.get()) {
            return Err(*error);
        }
        let ledger = &self.state.lock().ledger;
        if ledger.is_durable(change) {
            return Ok(());
        }
        Err(ledger.failure.unwrap_or(SaveError::Failed))
    }
}
