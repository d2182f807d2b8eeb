//! Representations of data (RODs; SPC-4, 5.17.6): the data that a ROD token represents.
//!
//! A ROD is a copy, by metadata, of ranges of a volume into an internal volume that no host sees:
//! what the ranges contained at one point in time ("point in time copy"). Writing it elsewhere is
//! another copy of that kind. A token lives until it was not used for its inactivity timeout, for
//! [`LIFETIME_S_MAX`] at most, until it is deleted, until the volume it was created from is
//! sanitized or eradicated, or until a power on.
//!
//! * [`token`]: the 512 bytes that a host has, and their authentication,
//! * [`room`]: the locations of RODs in the internal volume,
//! * [`saving`]: which of this is durable, so that another controller can continue with it.
//!
//! Initiators share tokens on demand: each may have as many as are free for all others
//! ([`State::has_room_for`]), so each gets some, regardless of how many another one takes.
//!
//! # Invariants
//!
//! 1. A token is durable before it is given to a host, and so is its end before a host gets the
//!    response.
//! 2. The space of a ROD is reused only after the end of its token is durable: a token that is
//!    found after a takeover never represents other data.

mod room;
pub mod saving;
mod token;

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use block::{SectorCount, SectorRange, VolumeId, VolumeRequest};
use parking_lot::Mutex;

use crate::saving::{Change, SaveError};
use room::Room;
use saving::Ledger;
pub use token::{ID_AT, SUM_AT, TOKEN_BYTES, Token, TokenKey};

/// The most tokens of the array.
pub const TOKENS_MAX: usize = 1024;
/// The most ranges in one POPULATE TOKEN or WRITE USING TOKEN: the pieces of both together are the
/// segments of one copy.
pub const RANGES_MAX: usize = block::request::limits::COPY_SEGMENTS_MAX / 2;
/// The most bytes that one token represents.
pub const ROD_BYTES_MAX: u64 = 16 << 30;
/// The longest inactivity timeout of a token.
pub const INACTIVITY_S_MAX: u32 = 3600;
/// The default inactivity timeout of POPULATE TOKEN, and the shortest.
pub const INACTIVITY_S_DEFAULT: u32 = 300;
/// The longest time for which a token can be used, however often it is.
pub const LIFETIME_S_MAX: u32 = 24 * 3600;
/// The number of ended tokens that are remembered, to report why they are invalid.
const ENDED_MAX: usize = 1024;
/// RODs that are freed together: their pieces fit into one UNMAP.
const SWEEP_MAX: usize = block::request::limits::UNMAP_RANGES_MAX / RANGES_MAX;

/// The reason why a token is invalid, or can't be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenError {
    /// The limit of tokens or the space is used up.
    NoRoom,
    /// The token is unknown.
    Unknown,
    /// This array has not created it, or it was modified.
    Corrupt,
    /// Its data is gone permanently.
    Revoked,
    /// Its inactivity timeout or lifetime has expired.
    Expired,
    /// A host has deleted it.
    Deleted,
}

/// The internal volume for RODs.
#[derive(Clone, Copy, Debug)]
pub struct RodVolume {
    /// Its id, which no [`block::LunMap`] has.
    pub id: VolumeId,
    /// Its size.
    pub size: SectorCount,
    /// 32 random bytes, new with each power on, which authenticate this array's tokens.
    pub key: TokenKey,
}

/// The data of a token.
#[derive(Debug)]
pub struct Rod {
    id: u64,
    /// Its location in the internal volume, in the order of its bytes.
    pub pieces: Vec<SectorRange>,
    /// The token itself.
    pub token: Token,
    /// The initiator that created it: it is not reported to others.
    pub initiator: String,
    /// The volume that it was copied from.
    source: VolumeId,
    /// The volume's content is gone permanently, and this ROD with it.
    is_revoked: AtomicBool,
    inactivity_s: u32,
    made_ms: u64,
    last_used_ms: AtomicU64,
    /// Why the token could not be made durable: then it never became valid.
    failure: OnceLock<SaveError>,
}

impl Rod {
    /// Returns its length in sectors.
    pub fn sectors(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.count.0).sum()
    }
}

/// All RODs.
#[derive(Debug)]
pub struct Rods {
    volume: VolumeId,
    now_ms: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    key: TokenKey,
    next_id: u64,
    room: Room,
    tokens: BTreeMap<u64, Arc<Rod>>,
    /// RODs without a token, not yet or no longer. Copies in progress from or to one hold a
    /// reference.
    unnamed: Vec<Arc<Rod>>,
    /// Tokens that begin or end once that is durable.
    ledger: Ledger,
    ended: VecDeque<(u64, TokenError)>,
}

impl Rods {
    pub(crate) fn new(volume: RodVolume) -> Self {
        let state = State {
            key: volume.key,
            next_id: 0,
            room: Room::new(volume.size),
            tokens: BTreeMap::new(),
            unnamed: Vec::new(),
            ledger: Ledger::default(),
            ended: VecDeque::new(),
        };
        Self { volume: volume.id, now_ms: AtomicU64::new(0), state: Mutex::new(state) }
    }

    /// Returns the internal volume.
    pub fn volume(&self) -> VolumeId {
        self.volume
    }

    /// Sets the time, in milliseconds since an arbitrary point.
    pub fn set_time(&self, now_ms: u64) {
        self.now_ms.store(now_ms, Ordering::Relaxed);
    }

    /// Reserves space for a copy of these ranges of a volume. [`Rods::publish`] publishes its
    /// token; if that never happens, the space is freed once the ROD was dropped.
    pub fn reserve(
        &self,
        source: VolumeId,
        ranges: &[SectorRange],
        inactivity_s: u32,
        initiator: &str,
        token: Token,
    ) -> Result<Arc<Rod>, TokenError> {
        let mut state = self.state.lock();
        if !state.has_room_for(initiator) {
            return Err(TokenError::NoRoom);
        }
        let pieces = state.room.allocate(ranges).ok_or(TokenError::NoRoom)?;
        let id = state.next_id;
        state.next_id += 1;
        let rod = Arc::new(Rod {
            id,
            pieces,
            token: state.key.sign(token, id),
            initiator: initiator.to_owned(),
            source,
            is_revoked: AtomicBool::new(false),
            inactivity_s,
            made_ms: self.now_ms.load(Ordering::Relaxed),
            last_used_ms: AtomicU64::new(0),
            failure: OnceLock::new(),
        });
        state.unnamed.push(rod.clone());
        Ok(rod)
    }

    /// Publishes the token of a completed copy; it is valid once it is durable.
    pub fn publish(&self, rod: &Arc<Rod>) -> Change {
        rod.last_used_ms.store(self.now_ms.load(Ordering::Relaxed), Ordering::Relaxed);
        let mut state = self.state.lock();
        state.unnamed.retain(|other| other.id != rod.id);
        if rod.is_revoked.load(Ordering::Relaxed) {
            state.unnamed.push(rod.clone());
            state.note_ended(rod.id, TokenError::Revoked);
            return Change::Durable;
        }
        Change::Unsaved(state.ledger.note_begin(rod.clone()))
    }

    /// Ends all tokens created from a volume whose content is gone permanently, and those whose
    /// copy is still in progress.
    pub fn revoke(&self, source: VolumeId) -> Change {
        let mut state = self.state.lock();
        // Under the lock, so that none is published in between.
        let of_source = |rod: &&Arc<Rod>| rod.source == source;
        for rod in state.unnamed.iter().filter(of_source) {
            rod.is_revoked.store(true, Ordering::Relaxed);
        }
        for rod in state.ledger.beginning().into_iter().filter(|rod| rod.source == source) {
            rod.is_revoked.store(true, Ordering::Relaxed);
            state.ledger.note_end(rod);
        }
        let tokens = state.tokens.values().filter(of_source);
        for id in tokens.map(|rod| rod.id).collect::<Vec<_>>() {
            state.end(id, TokenError::Revoked);
        }
        state.ledger.last_change()
    }

    /// Returns the ROD of a token. Holding it keeps its data unchanged.
    pub fn find(&self, token: &Token) -> Result<Arc<Rod>, TokenError> {
        let state = self.state.lock();
        let id = state.key.check(token).ok_or(TokenError::Corrupt)?;
        let Some(rod) = state.tokens.get(&id) else {
            let ended = state.ended.iter().find(|(ended, _)| *ended == id);
            return Err(ended.map_or(TokenError::Unknown, |(_, why)| *why));
        };
        if rod.token != *token {
            return Err(TokenError::Corrupt);
        }
        let now_ms = self.now_ms.load(Ordering::Relaxed);
        if rod.is_expired(now_ms) {
            return Err(TokenError::Expired);
        }
        rod.last_used_ms.store(now_ms, Ordering::Relaxed);
        Ok(rod.clone())
    }

    /// Notes that a token was used, which restarts its inactivity timeout, or deletes it.
    pub fn used(&self, rod: &Rod, delete: bool) -> Change {
        rod.last_used_ms.store(self.now_ms.load(Ordering::Relaxed), Ordering::Relaxed);
        if !delete {
            return Change::Durable;
        }
        let mut state = self.state.lock();
        state.end(rod.id, TokenError::Deleted);
        state.ledger.last_change()
    }

    /// Returns the tokens that an initiator has created.
    pub fn of_host(&self, initiator: &str) -> Vec<Arc<Rod>> {
        let state = self.state.lock();
        state.tokens.values().filter(|rod| rod.initiator == initiator).cloned().collect()
    }

    /// Ends inactive tokens, and frees the space of RODs without references. `unmap` executes a
    /// request, and returns whether it succeeded. Returns false if there is no more to do for now.
    pub fn sweep(&self, unmap: impl FnOnce(VolumeRequest) -> bool) -> bool {
        let dead = self.state.lock().take_dead(self.now_ms.load(Ordering::Relaxed));
        if dead.is_empty() {
            return false;
        }
        let ranges: Vec<_> = dead.iter().flat_map(|rod| rod.pieces.iter().copied()).collect();
        // A token may represent no data.
        let done = ranges.is_empty() || unmap(VolumeRequest::Unmap { volume: self.volume, ranges });
        let mut state = self.state.lock();
        if done {
            dead.iter().for_each(|rod| state.room.free(&rod.pieces));
        } else {
            state.unnamed.extend(dead);
        }
        done
    }
}

impl Rod {
    fn is_expired(&self, now_ms: u64) -> bool {
        let unused_ms = now_ms.saturating_sub(self.last_used_ms.load(Ordering::Relaxed));
        let age_ms = now_ms.saturating_sub(self.made_ms);
        unused_ms > u64::from(self.inactivity_s) * 1000 || age_ms > u64::from(LIFETIME_S_MAX) * 1000
    }
}

impl State {
    /// Returns whether an initiator may have another token: while it has fewer than are free. So a
    /// second initiator can have half of what the first has left, and so on, and none is shut out.
    fn has_room_for(&self, initiator: &str) -> bool {
        let all = || self.tokens.values().chain(&self.unnamed).chain(self.ledger.rods());
        let own = all().filter(|rod| rod.initiator == initiator).count();
        own < TOKENS_MAX.saturating_sub(all().count())
    }

    /// Ends a token at once. Its space is freed when that is durable.
    fn end(&mut self, id: u64, why: TokenError) {
        let Some(rod) = self.tokens.remove(&id) else { return };
        self.ledger.note_end(rod);
        self.note_ended(id, why);
    }

    fn note_ended(&mut self, id: u64, why: TokenError) {
        if self.ended.len() == ENDED_MAX {
            self.ended.pop_front();
        }
        self.ended.push_back((id, why));
    }

    fn take_dead(&mut self, now_ms: u64) -> Vec<Arc<Rod>> {
        let expired = self.tokens.values().filter(|rod| rod.is_expired(now_ms));
        for id in expired.map(|rod| rod.id).collect::<Vec<_>>() {
            self.end(id, TokenError::Expired);
        }
        let (mut dead, mut held) = (Vec::new(), Vec::new());
        for rod in self.unnamed.drain(..) {
            // One reference is this one. Others are only taken of RODs that have a token.
            let is_dead = Arc::strong_count(&rod) == 1 && dead.len() < SWEEP_MAX;
            if is_dead { dead.push(rod) } else { held.push(rod) }
        }
        self.unnamed = held;
        dead
    }
}
