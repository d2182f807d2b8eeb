//! Metadata that a host's request needs and that is not in memory: it is read like data.
//!
//! A front end does not wait for the device. If a request needs a map node or a table page that is
//! not in memory, it is recorded ([`Asked`]); when the request can't continue without it, its
//! thread gets these reads like any others ([`crate::ReadOperation`]), and restarts the request
//! when they have completed. Code that may block (a background thread, recovery, a tool) reads
//! directly. Both walk the same maps with the same code: a [`View`](crate::world::view::View) of
//! the world determines which it is.
//!
//! Invariants:
//! 1. A request that asks for metadata terminates, however little memory there is: until then it
//!    keeps what it has read, and does not read it again while it is the newest version.
//! 2. What was read is valid only for the reference for which it was read: location and checksum.
//!    Whether that reference is the newest one is checked when it is looked up again, as always
//!    ([`crate::chunks::table::Table`], `load`). Nothing keeps its segment from being reused
//!    meanwhile.
//! 3. Metadata counts as unreadable only after its second copy was read as well
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

/// The maximum number of metadata reads of one request in flight.
const LOADS_MAX: usize = 64;
/// The same for recovery, which reads the metadata of many records at once.
pub(crate) const MANY_LOADS_MAX: usize = 256;

/// Metadata to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Load {
    reference: PageRef,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Page,
    /// A node of this level.
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

/// The result of a read.
#[derive(Clone, Debug)]
enum Had {
    Page(Copied<Frame>),
    Node(Copied<Arc<Node>>),
    /// The device failed to read it.
    Failed,
    /// The content differs from what was written.
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

/// The metadata that a request has read, and what it asks for next.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    /// Searched rarely, because most of it is in memory when it is looked up again.
    had: Vec<(Load, Had)>,
    wanted: RefCell<Vec<Load>>,
    /// The number of layout changes of segments, modulo 2^16, when the first of these was asked
    /// for.
    layings: Cell<u16>,
    /// What was bad in its first copy: its second copy is read.
    seconds: Vec<Load>,
    /// How many more than [`LOADS_MAX`] may be in flight.
    more_loads: u16,
    /// How often something was missing.
    absences: Cell<u32>,
}

impl Asked {
    /// For callers that read much metadata at once, such as recovery.
    pub(crate) fn many() -> Self {
        Self { more_loads: (MANY_LOADS_MAX - LOADS_MAX) as u16, ..Self::default() }
    }

    fn loads_max(&self) -> usize {
        LOADS_MAX + usize::from(self.more_loads)
    }

    /// Returns how often something was missing, modulo 2^32.
    pub(crate) fn absences(&self) -> u32 {
        self.absences.get()
    }

    /// Drops what was read, once it was used.
    pub(crate) fn let_go(&mut self) {
        self.had.clear();
    }

    /// Returns whether the request must wait for reads. Its results so far are then void, errors
    /// too.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.wanted.borrow().is_empty()
    }

    /// Returns whether no more is recorded, so that callers need not look for more.
    pub(crate) fn is_full(&self) -> bool {
        self.wanted.borrow().len() >= self.loads_max()
    }

    /// Returns how much it has read or asks for.
    pub(crate) fn load_count(&self) -> usize {
        self.had.len() + self.wanted.borrow().len()
    }

    /// Returns what was read for this reference; if it was not read yet, [`StoreError::Absent`].
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

    /// Returns the reads that it waits for, and what each is of.
    pub(crate) fn reads(&mut self, medium: &Medium) -> (Vec<Load>, DiskReads) {
        let loads = std::mem::take(self.wanted.get_mut());
        let read = |load: &Load| {
            let place = load.place(medium, self.seconds.contains(load));
            // The reference was checked. If its segment has a new layout since, there may be no
            // such place: the read then fails, and the reference is not the newest one.
            let (place, _, count) = load.covered(place);
            let frames = (0..count).map(|_| FrameMut::stale()).collect();
            DiskRead { place, frames, failed: false }
        };
        let reads = loads.iter().map(read).collect();
        (loads, reads)
    }

    /// Stores the results of reads.
    pub(crate) fn came(&mut self, medium: &Medium, loads: Vec<Load>, reads: DiskReads) {
        for (load, read) in loads.into_iter().zip(reads) {
            let is_second = self.seconds.contains(&load);
            let had = load.read(medium, read, is_second);
            let is_bad = matches!(had, Had::Failed | Had::Damaged(_));
            if is_bad && medium.layings() != self.layings.get() {
                // Its location may contain something else now. If the reference is still valid, it
                // is asked for again.
                continue;
            }
            if is_bad && !is_second && load.second_place(medium).is_some() {
                self.seconds.push(load);
                continue;
            }
            // This blocks, but rarely: both copies must have been bad on the devices read first.
            let is_elsewhere = is_bad && medium.disk.copies() > 1;
            let other = if is_elsewhere { load.read_anywhere(medium) } else { None };
            self.had.push((load, other.unwrap_or(had)));
        }
    }
}

impl Load {
    /// Returns the first block of the copy at `place`, how many bytes come before it in that block,
    /// and its number of blocks.
    fn span(&self, medium: &Medium, place: Place) -> Result<(Place, usize, usize), StoreError> {
        match self.kind {
            Kind::Page => medium.page_span(place),
            Kind::Node(_) => medium.node_span(place),
        }
    }

    /// The same, for any location.
    fn covered(&self, place: Place) -> (Place, usize, usize) {
        let (skip, count) = covering(place, self.kind.bytes());
        (place.block_start(), skip, count)
    }

    /// Returns the location of its second copy, if it has one.
    fn second_place(&self, medium: &Medium) -> Option<Place> {
        let place = self.reference.place;
        medium.geometry_of(place.segment).copy_of(place, self.kind.bytes() as u64)
    }

    /// Returns the location of one of its copies.
    fn place(&self, medium: &Medium, is_second: bool) -> Place {
        let second = if is_second { self.second_place(medium) } else { None };
        second.unwrap_or(self.reference.place)
    }

    /// Returns it from any device that has it intact.
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

/// The source of metadata that is not in memory: read at once, or recorded and read later.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    medium: &'a Medium,
    asked: Option<&'a Asked>,
    /// What is used stays in memory for the plan with this number; 0: for none.
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
    /// For a caller that records what is not in memory, and does not wait.
    pub(crate) fn asking(medium: &'a Medium, asked: &'a Asked) -> Self {
        Self { medium, asked: Some(asked), plan: 0 }
    }

    /// The same, for a plan that needs what is used to stay in memory (`plans`).
    pub(crate) fn planning(self, plan: u64) -> Self {
        Self { plan, ..self }
    }

    /// Returns where the caller records what it asks for; `None` if it waits.
    pub(crate) fn asked(self) -> Option<&'a Asked> {
        self.asked
    }

    /// Returns the plan for which what is used is marked.
    pub(crate) fn plan(self) -> u64 {
        self.plan
    }

    /// Returns whether it reads at once, and waits.
    pub(crate) fn waits(self) -> bool {
        self.asked.is_none()
    }

    /// Reads a page of a table.
    ///
    /// # Errors
    /// [`StoreError::Absent`] if it is now recorded.
    pub(crate) fn page(self, reference: PageRef) -> Result<Copied<Frame>, StoreError> {
        let Some(asked) = self.asked else { return self.medium.read_page(reference) };
        match asked.get(self.medium, Load { reference, kind: Kind::Page })? {
            Had::Page(page) => Ok(page),
            had => Err(had.error()),
        }
    }

    /// Reads a node of the map.
    ///
    /// # Errors
    /// [`StoreError::Absent`] if it is now recorded.
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
