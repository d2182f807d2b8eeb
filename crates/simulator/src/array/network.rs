//! A network of connections between hosts and the array, from a seed and in simulated time.
//!
//! A connection is two streams of bytes. What is sent is cut into pieces that arrive after
//! individual delays, in order within a stream and in any order between streams; what has arrived
//! is read in parts of any size, pieces split or merged. A stream holds a bounded number of bytes
//! that were sent and not read, so that a slow reader stops its writer.
//!
//! # How to use it
//! [`Network::open`] a connection, [`Network::send`] and [`Network::receive`] at both of its ends.
//! `receive` returns `Some(0)` forever once the stream has ended. When no party has anything left
//! to do, advance the time to [`Network::next_event_at`]. A side that is done with a connection
//! calls [`Network::close`]; what it has sent still arrives. [`Network::cut`] and
//! [`Network::stall`] are the faults.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::rng::Rng;

/// A connection. The number is never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Link(pub u64);

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// The side that opened it.
    Host,
    /// The side that accepted it.
    Array,
}

/// How the network behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The maximum number of bytes of a stream that were sent and not read. Not 0.
    pub window_bytes: usize,
    /// The minimum delay of a piece.
    pub delay_min: Duration,
    /// The maximum delay of a piece, except slow ones.
    pub delay_max: Duration,
    /// How many of a hundred pieces are slow.
    pub slow_percent: u64,
    /// The maximum delay of a slow piece.
    pub slow_delay_max: Duration,
    /// The maximum number of bytes in a piece. Not 0.
    pub piece_bytes_max: usize,
    /// How many of a hundred reads get less than has arrived.
    pub short_read_percent: u64,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            window_bytes: 256 << 10,
            delay_min: Duration::from_micros(20),
            delay_max: Duration::from_micros(300),
            slow_percent: 2,
            slow_delay_max: Duration::from_millis(20),
            piece_bytes_max: 64 << 10,
            short_read_percent: 20,
        }
    }
}

/// How a connection is cut. Both ends see it in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Everything unread is lost, and both ends see it at once.
    AtOnce,
    /// A part of what is in flight still arrives, in both directions; each end sees the cut after
    /// that.
    AfterSome,
}

/// Bytes in flight.
#[derive(Debug)]
struct Piece {
    at: Duration,
    bytes: Vec<u8>,
    /// How many of them were read.
    read: usize,
}

impl Piece {
    fn left(&self) -> usize {
        self.bytes.len() - self.read
    }
}

/// The bytes in one direction.
#[derive(Debug, Default)]
struct Stream {
    pieces: VecDeque<Piece>,
    /// Bytes that were sent and not read, including lost ones.
    used: usize,
    /// When the last piece arrives.
    last_at: Duration,
    /// When its reader sees the end, after all pieces.
    end_at: Option<Duration>,
    /// What is sent from here on is lost.
    broken: bool,
    /// The reader has seen the end, or has closed.
    done: bool,
}

/// A connection.
#[derive(Debug, Default)]
struct Pair {
    to_host: Stream,
    to_array: Stream,
    /// Nothing arrives before this time.
    stalled_until: Duration,
}

impl Pair {
    /// Returns the stream that `side` reads.
    fn towards(&mut self, side: Side) -> &mut Stream {
        match side {
            Side::Host => &mut self.to_host,
            Side::Array => &mut self.to_array,
        }
    }

    /// Returns the stream that `side` writes.
    fn from(&mut self, side: Side) -> &mut Stream {
        match side {
            Side::Host => &mut self.to_array,
            Side::Array => &mut self.to_host,
        }
    }

    fn streams(&mut self) -> [&mut Stream; 2] {
        [&mut self.to_host, &mut self.to_array]
    }
}

/// The network.
#[derive(Debug)]
pub struct Network {
    rules: Rules,
    rng: Rng,
    links: BTreeMap<Link, Pair>,
    next_link: u64,
}

impl Network {
    /// Creates a network whose behavior is determined by `seed` and by the calls.
    pub fn new(seed: u64, rules: Rules) -> Self {
        Self { rules, rng: Rng::new(seed), links: BTreeMap::new(), next_link: 0 }
    }

    /// Opens a connection.
    pub fn open(&mut self, now: Duration) -> Link {
        let link = Link(self.next_link);
        self.next_link += 1;
        self.links.insert(link, Pair { stalled_until: now, ..Pair::default() });
        link
    }

    /// Sends bytes from `side`. Returns how many were accepted, which is 0 if the stream is full or
    /// `side` has seen the end of the connection.
    pub fn send(&mut self, link: Link, side: Side, bytes: &[u8], now: Duration) -> usize {
        let taken = bytes.len().min(self.room(link, side));
        let Some(pair) = self.links.get_mut(&link) else { return 0 };
        let stream = pair.from(side);
        stream.used += taken;
        if stream.broken {
            return taken;
        }
        let mut rest = &bytes[..taken];
        while !rest.is_empty() {
            let most = self.rules.piece_bytes_max;
            // Small pieces split headers, large ones contain many.
            let most = if self.rng.chance(25) { most.min(64) } else { most };
            let (piece, more) =
                rest.split_at(self.rng.between(1, most as u64).min(rest.len() as u64) as usize);
            rest = more;
            let at = stream.last_at.max(now + delay(&mut self.rng, &self.rules));
            stream.last_at = at;
            stream.pieces.push_back(Piece { at, bytes: piece.to_vec(), read: 0 });
        }
        taken
    }

    /// Returns whether what `side` sends is lost, because the other side is gone or the connection
    /// is cut.
    pub fn is_broken(&self, link: Link, side: Side) -> bool {
        self.links.get(&link).is_none_or(|pair| match side {
            Side::Host => pair.to_array.broken,
            Side::Array => pair.to_host.broken,
        })
    }

    /// Returns how many bytes [`Network::send`] would accept from `side`.
    pub fn room(&self, link: Link, side: Side) -> usize {
        let Some(pair) = self.links.get(&link) else { return 0 };
        let (out, back) = match side {
            Side::Host => (&pair.to_array, &pair.to_host),
            Side::Array => (&pair.to_host, &pair.to_array),
        };
        match back.done {
            true => 0,
            false => self.rules.window_bytes - out.used.min(self.rules.window_bytes),
        }
    }

    /// Reads what has arrived at `side`. Returns the number of bytes; `Some(0)` at the end; `None`
    /// if nothing is there yet.
    ///
    /// # Panics
    /// If `into` is empty.
    pub fn receive(
        &mut self,
        link: Link,
        side: Side,
        into: &mut [u8],
        now: Duration,
    ) -> Option<usize> {
        assert!(!into.is_empty(), "the buffer is empty");
        let Some(pair) = self.links.get_mut(&link) else { return Some(0) };
        let stalled = pair.stalled_until > now;
        let stream = pair.towards(side);
        if stream.done {
            return Some(0);
        }
        if stalled {
            return None;
        }
        let arrived = stream.pieces.iter().take_while(|piece| piece.at <= now);
        let arrived: usize = arrived.map(Piece::left).sum();
        if arrived == 0 {
            let ended = stream.pieces.is_empty() && stream.end_at.is_some_and(|at| at <= now);
            stream.done = ended;
            self.forget_if_done(link);
            return ended.then_some(0);
        }
        let mut bytes = arrived.min(into.len());
        if self.rng.chance(self.rules.short_read_percent) {
            bytes = self.rng.between(1, bytes as u64) as usize;
        }
        stream.read(&mut into[..bytes]);
        Some(bytes)
    }

    /// Returns whether [`Network::receive`] would return something at `side`.
    pub fn is_readable(&self, link: Link, side: Side, now: Duration) -> bool {
        let Some(pair) = self.links.get(&link) else { return true };
        let stream = match side {
            Side::Host => &pair.to_host,
            Side::Array => &pair.to_array,
        };
        let next = stream.pieces.front().map(|piece| piece.at).or(stream.end_at);
        stream.done || pair.stalled_until <= now && next.is_some_and(|at| at <= now)
    }

    /// Closes the connection at `side`, which reads and sends nothing more. What it has sent
    /// arrives, then the other side sees the end. What is sent to it is lost.
    pub fn close(&mut self, link: Link, side: Side, now: Duration) {
        let wait = delay(&mut self.rng, &self.rules);
        let Some(pair) = self.links.get_mut(&link) else { return };
        let out = pair.from(side);
        out.end_at = out.end_at.or(Some(out.last_at.max(now + wait)));
        let back = pair.towards(side);
        back.pieces.clear();
        back.broken = true;
        back.done = true;
        self.forget_if_done(link);
    }

    /// Cuts a connection. What is sent from here on is lost, until its sender sees the end.
    pub fn cut(&mut self, link: Link, cut: Cut, now: Duration) {
        let Some(pair) = self.links.get_mut(&link) else { return };
        for stream in pair.streams() {
            stream.broken = true;
            let keep = match cut {
                Cut::AtOnce => 0,
                Cut::AfterSome => {
                    let left: usize = stream.pieces.iter().map(Piece::left).sum();
                    self.rng.between(0, left as u64) as usize
                }
            };
            stream.keep(keep);
            let last = stream.pieces.back().map_or(now, |piece| piece.at.max(now));
            stream.end_at = Some(match cut {
                Cut::AtOnce => now,
                Cut::AfterSome => last + delay(&mut self.rng, &self.rules),
            });
        }
        if cut == Cut::AtOnce {
            pair.stalled_until = now;
        }
    }

    /// Lets nothing arrive on this connection before `until`.
    pub fn stall(&mut self, link: Link, until: Duration) {
        if let Some(pair) = self.links.get_mut(&link) {
            pair.stalled_until = pair.stalled_until.max(until);
        }
    }

    /// Returns the next time after `now` at which something more can be read, or an end be seen;
    /// `None` if nothing is in flight. What can be read at `now` does not count.
    pub fn next_event_at(&self, now: Duration) -> Option<Duration> {
        self.links.values().filter_map(|pair| pair.next_event_at(now)).min()
    }

    /// Returns the connections that are open on at least one side.
    pub fn links(&self) -> impl Iterator<Item = Link> + '_ {
        self.links.keys().copied()
    }

    fn forget_if_done(&mut self, link: Link) {
        if self.links.get(&link).is_some_and(|pair| pair.to_host.done && pair.to_array.done) {
            self.links.remove(&link);
        }
    }
}

impl Pair {
    fn next_event_at(&self, now: Duration) -> Option<Duration> {
        let of = |stream: &Stream| {
            if stream.done {
                return None;
            }
            let times = stream.pieces.iter().map(|piece| piece.at).chain(stream.end_at);
            times.map(|at| at.max(self.stalled_until)).find(|at| *at > now)
        };
        of(&self.to_host).into_iter().chain(of(&self.to_array)).min()
    }
}

impl Stream {
    /// Fills `into` from the first pieces, which have enough.
    fn read(&mut self, into: &mut [u8]) {
        self.used -= into.len();
        let mut done = 0;
        while done < into.len() {
            let Some(piece) = self.pieces.front_mut() else { return };
            let bytes = piece.left().min(into.len() - done);
            into[done..done + bytes].copy_from_slice(&piece.bytes[piece.read..piece.read + bytes]);
            piece.read += bytes;
            done += bytes;
            if piece.left() == 0 {
                self.pieces.pop_front();
            }
        }
    }

    /// Drops all but the first bytes.
    fn keep(&mut self, bytes: usize) {
        let mut left = bytes;
        self.pieces.retain_mut(|piece| {
            let keeps = piece.left().min(left);
            piece.bytes.truncate(piece.read + keeps);
            left -= keeps;
            keeps > 0
        });
    }
}

fn delay(rng: &mut Rng, rules: &Rules) -> Duration {
    let slow = rng.chance(rules.slow_percent);
    let most = if slow { rules.slow_delay_max.max(rules.delay_min) } else { rules.delay_max };
    let nanos = rng.between(rules.delay_min.as_nanos() as u64, most.as_nanos() as u64);
    Duration::from_nanos(nanos)
}

#[cfg(test)]
mod tests;
