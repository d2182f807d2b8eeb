//! Metadata that a host's request needs and that is not in memory: it is read like data.
//!
//! A front end waits for no device. So a map node or a page of a table that a request meets, and
//! that is not in memory, is noted ([`Asked`]); when the request can't go further without, its
//! thread gets these reads like any others ([`crate::ReadOperation`]), and begins anew when they
//! have come. Who may wait (a background thread, recovery, a tool) reads in place. Both walk the
//! same maps with the same code: a [`View`](crate::world::view::View) of the world says which.
//!
//! Invariants:
//! 1. A request that asks comes to an end, however little memory there is: what it has read is its
//!    own until then, and is not read again while it is the newest version.
//! 2. What was read is believed only for the reference that it was read for: place and checksum.
//!    Whether that reference is the newest one is told when it is looked for again, as always
//!    ([`crate::chunks::table::Table`], `load`).
//!    Nothing keeps its segment from becoming something else meanwhile.
//! 3. Something counts as unreadable only when its second copy was read as well
//!    ([`format::Geometry::copy_of`]), and both on each device that has them.

use std::cell::{Cell, RefCell};
use std::ops::Deref;
use std::sync::Arc;

use block::{Frame, FrameMut};
use format::Place;
use format::map::{NODE_BYTES, Node};
use format::page::{PAGE_BYTES, PageRef};

use crate::chunks::medium::{Copied, Medium, covering};
use crate::{DiskRead, DiskReads, StoreError};

/// Reads that one request has under way at most for metadata.
const LOADS_MAX: usize = 64;
/// The same for recovery, which has metadata of many records read at once.
pub(crate) const MANY_LOADS_MAX: usize = 256;

/// Something to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Load {
    reference: PageRef,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Page,
    /// Of this level.
    Node(u8),
}

impl Kind {
    fn bytes(self) -> usize {
        match self {
            Self::Page => PAGE_BYTES,
            Self::Node(_) => NODE_BYTES,
        }
    }
}

/// Something that was read.
#[derive(Clone, Debug)]
enum Had {
    Page(Copied<Frame>),
    Node(Copied<Arc<Node>>),
    /// The device has failed to read it.
    Failed,
    /// It is not what was written there.
    Damaged(String),
}

impl Had {
    fn error(&self) -> StoreError {
        match self {
            Self::Damaged(why) => StoreError::Damaged(why.clone()),
            _ => StoreError::Io(std::io::Error::other("metadata can't be read")),
        }
    }
}

/// What a request has read of metadata, and what it asks for next.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    /// Most of it is in memory when it is looked for again, so this is searched only now and then.
    had: Vec<(Load, Had)>,
    wanted: RefCell<Vec<Load>>,
    /// How often segments had been laid anew when the first of these was asked for, modulo 2^16.
    layings: Cell<u16>,
    /// What was not right in its first copy: it is read in its second.
    seconds: Vec<Load>,
    /// How many more than [`LOADS_MAX`] may be under way.
    more_loads: u16,
    /// How often something was asked for that was not there yet.
    absences: Cell<u32>,
}

impl Asked {
    /// For a caller that has much metadata read at once, such as recovery.
    pub(crate) fn many() -> Self {
        Self { more_loads: (MANY_LOADS_MAX - LOADS_MAX) as u16, ..Self::default() }
    }

    fn loads_max(&self) -> usize {
        LOADS_MAX + usize::from(self.more_loads)
    }

    /// How often something was asked for that was not there yet, modulo 2^32.
    pub(crate) fn absences(&self) -> u32 {
        self.absences.get()
    }

    /// Lets go of what was read: whoever needed it has looked at it.
    pub(crate) fn let_go(&mut self) {
        self.had.clear();
    }

    /// Whether something is to be read before the request can go on. What came of it so far counts
    /// for nothing then, errors too.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.wanted.borrow().is_empty()
    }

    /// Whether no more is noted: who looks on for more to ask for may stop.
    pub(crate) fn is_full(&self) -> bool {
        self.wanted.borrow().len() >= self.loads_max()
    }

    /// How much it has read, or asks for.
    pub(crate) fn load_count(&self) -> usize {
        self.had.len() + self.wanted.borrow().len()
    }

    /// What was read for this reference; an error that says nothing of it if that was not yet.
    fn get(&self, medium: &Medium, load: Load) -> Result<Had, StoreError> {
        match self.had.iter().find(|(known, _)| *known == load) {
            Some((_, had)) => Ok(had.clone()),
            None => {
                load.span(medium, load.reference.place)?;
                self.absences.set(self.absences.get().wrapping_add(1));
                let mut wanted = self.wanted.borrow_mut();
                if wanted.is_empty() {
                    self.layings.set(medium.layings());
                }
                if wanted.len() < self.loads_max() && !wanted.contains(&load) {
                    wanted.push(load);
                }
                Err(StoreError::Absent)
            }
        }
    }

    /// The reads that it waits for, and what each is of.
    pub(crate) fn reads(&mut self, medium: &Medium) -> (Vec<Load>, DiskReads) {
        let loads = std::mem::take(self.wanted.get_mut());
        let read = |load: &Load| {
            let place = load.place(medium, self.seconds.contains(load));
            // It was looked at. If its segment was laid anew since, there may be no such place:
            // then reading it fails, and the reference is not the newest one.
            let (place, _, count) = load.covered(place);
            let frames = (0..count).map(|_| FrameMut::stale()).collect();
            DiskRead { place, frames, failed: false }
        };
        let reads = loads.iter().map(read).collect();
        (loads, reads)
    }

    /// They have come.
    pub(crate) fn came(&mut self, medium: &Medium, loads: Vec<Load>, reads: DiskReads) {
        for (load, read) in loads.into_iter().zip(reads) {
            let is_second = self.seconds.contains(&load);
            let had = load.read(medium, read, is_second);
            let is_bad = matches!(had, Had::Failed | Had::Damaged(_));
            if is_bad && medium.layings() != self.layings.get() {
                // Where it was something else is now. If it is there still it is asked for again.
                continue;
            }
            if is_bad && !is_second && load.second_place(medium).is_some() {
                self.seconds.push(load);
                continue;
            }
            // Waits: devices seldom lie, and both copies had to be bad on those asked first.
            let is_elsewhere = is_bad && medium.disk.copies() > 1;
            let other = if is_elsewhere { load.read_anywhere(medium) } else { None };
            self.had.push((load, other.unwrap_or(had)));
        }
    }
}

impl Load {
    /// Where its first block is, how many bytes of that come before it, and how many blocks it is
    /// in, of the copy at `place`.
    fn span(&self, medium: &Medium, place: Place) -> Result<(Place, usize, usize), StoreError> {
        match self.kind {
            Kind::Page => medium.page_span(place),
            Kind::Node(_) => medium.node_span(place),
        }
    }

    /// The same, of a place that may be anywhere.
    fn covered(&self, place: Place) -> (Place, usize, usize) {
        let (skip, count) = covering(place, self.kind.bytes());
        (place.block_start(), skip, count)
    }

    /// Where its second copy is, if it may have one.
    fn second_place(&self, medium: &Medium) -> Option<Place> {
        let place = self.reference.place;
        medium.geometry_of(place.segment).copy_of(place, self.kind.bytes() as u64)
    }

    /// Where one of its copies is.
    fn place(&self, medium: &Medium, is_second: bool) -> Place {
        let second = if is_second { self.second_place(medium) } else { None };
        second.unwrap_or(self.reference.place)
    }

    /// What one of several devices has right.
    fn read_anywhere(&self, medium: &Medium) -> Option<Had> {
        match self.kind {
            Kind::Page => medium.read_page(self.reference).ok().map(Had::Page),
            Kind::Node(level) => {
                let Copied { content, is_second } = medium.read_node(self.reference, level).ok()?;
                Some(Had::Node(Copied { content: Arc::new(content), is_second }))
            }
        }
    }

    fn read(&self, medium: &Medium, read: DiskRead, is_second: bool) -> Had {
        if read.failed {
            return Had::Failed;
        }
        let found = match self.kind {
            Kind::Page => {
                let frame = read.frames.into_iter().next().ok_or(StoreError::Absent);
                let page = frame.and_then(|frame| medium.page_in(frame, self.reference));
                page.map(|content| Had::Page(Copied { content, is_second }))
            }
            Kind::Node(level) => {
                let node = medium.node_in(&read.frames, self.reference, level).map(Arc::new);
                node.map(|content| Had::Node(Copied { content, is_second }))
            }
        };
        found.unwrap_or_else(|error| match error {
            StoreError::Damaged(why) => Had::Damaged(why),
            _ => Had::Failed,
        })
    }
}

/// Where metadata comes from that is not in memory: from the device at once, or when it was asked
/// for.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    medium: &'a Medium,
    asked: Option<&'a Asked>,
    /// What is looked at stays in memory for the plan with this number; 0: for none.
    plan: u64,
}

impl Deref for Source<'_> {
    type Target = Medium;

    fn deref(&self) -> &Medium {
        self.medium
    }
}

impl<'a> From<&'a Medium> for Source<'a> {
    fn from(medium: &'a Medium) -> Self {
        Self { medium, asked: None, plan: 0 }
    }
}

impl<'a> From<&Source<'a>> for Source<'a> {
    fn from(source: &Source<'a>) -> Self {
        *source
    }
}

impl<'a> Source<'a> {
    /// For a caller that asks for what is not in memory, and does not wait.
    pub(crate) fn asking(medium: &'a Medium, asked: &'a Asked) -> Self {
        Self { medium, asked: Some(asked), plan: 0 }
    }

    /// The same, for a plan that what is looked at is kept in memory for (`plans`).
    pub(crate) fn planning(self, plan: u64) -> Self {
        Self { plan, ..self }
    }

    /// Where the caller notes what it asks for; `None` if it waits.
    pub(crate) fn asked(self) -> Option<&'a Asked> {
        self.asked
    }

    /// The plan that what is looked at is marked for.
    pub(crate) fn plan(self) -> u64 {
        self.plan
    }

    /// Whether it reads at once, and waits.
    pub(crate) fn waits(self) -> bool {
        self.asked.is_none()
    }

    /// A page of a table.
    ///
    /// # Errors
    /// [`StoreError::Absent`] if it is asked for from now on.
    pub(crate) fn page(self, reference: PageRef) -> Result<Copied<Frame>, StoreError> {
        let Some(asked) = self.asked else { return self.medium.read_page(reference) };
        match asked.get(self.medium, Load { reference, kind: Kind::Page })? {
            Had::Page(page) => Ok(page),
            had => Err(had.error()),
        }
    }

    /// A node of the map.
    ///
    /// # Errors
    /// [`StoreError::Absent`] if it is asked for from now on.
    pub(crate) fn node(
        self,
        reference: PageRef,
        level: u8,
    ) -> Result<Copied<Arc<Node>>, StoreError> {
        let Some(asked) = self.asked else {
            let Copied { content, is_second } = self.medium.read_node(reference, level)?;
            return Ok(Copied { content: Arc::new(content), is_second });
        };
        match asked.get(self.medium, Load { reference, kind: Kind::Node(level) })? {
            Had::Node(node) => Ok(node),
            had => Err(had.error()),
        }
    }
}
