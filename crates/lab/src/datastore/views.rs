//! A host's knowledge of locks and their content, which saves reading them again. `lock` explains
//! why that is safe.

use std::cell::RefCell;
use std::collections::HashMap;

use super::error::DatastoreError;
use super::layout::Guard;
use super::lock_record::LockRecord;
use super::sector::{Sector, damaged};

/// A lock, and its content as long as it was in this state.
#[derive(Clone, Debug)]
pub(super) struct View {
    pub(super) image: Box<Sector>,
    /// `None`: it must be read once the lock is held.
    pub(super) content: Option<Vec<u8>>,
}

impl View {
    /// Creates one from lock and content that were read, perhaps at different times: the content is
    /// trusted if the lock has its stamp.
    pub(super) fn of(guard: Guard, bytes: &[u8]) -> Result<Self, DatastoreError> {
        let Some((image, content)) = bytes.split_first_chunk() else {
            return Err(damaged(guard.lock, "it is not a sector"));
        };
        let record = LockRecord::decode(image, guard.lock)?;
        let is_whole = bytes.len() as u64 == guard.bytes();
        let content = (is_whole && record.proves(content)).then(|| content.to_vec());
        Ok(Self { image: Box::new(*image), content })
    }
}

/// A remembered view of a lock that was free.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) view: View,
    /// No other host has taken the lock recently, so that it is worth trying without reading it.
    pub(super) is_alone: bool,
    /// It was read a moment ago.
    is_fresh: bool,
}

impl Known {
    pub(super) fn is_worth_a_try(&self) -> bool {
        self.is_alone || self.is_fresh
    }
}

/// By lock: at most one for each cluster, descriptor and directory.
#[derive(Debug, Default)]
pub(super) struct Views(RefCell<HashMap<u64, Known>>);

impl Views {
    /// Returns what is known, and forgets it, so that an aborted task leaves nothing stale.
    pub(super) fn take(&self, guard: Guard) -> Option<Known> {
        self.0.borrow_mut().remove(&guard.lock)
    }

    /// Records that this host has given the lock back, and no host has it.
    pub(super) fn left(&self, guard: Guard, view: View, is_alone: bool) {
        self.0.borrow_mut().insert(guard.lock, Known { view, is_alone, is_fresh: false });
    }

    /// Records that lock and content were read in order to take the lock. Invalid content is
    /// noticed when it is taken.
    pub(super) fn saw(&self, guard: Guard, bytes: &[u8]) {
        let Ok(view) = View::of(guard, bytes) else { return };
        if view.content.is_none() {
            return;
        }
        let mut all = self.0.borrow_mut();
        let is_alone = match all.get(&guard.lock) {
            Some(known) => known.view.image == view.image,
            None => true,
        };
        all.insert(guard.lock, Known { view, is_alone, is_fresh: true });
    }
}

#[cfg(test)]
mod tests {
    use super::super::lock_record::{Holder, HostId, Mode};
    use super::*;

    #[test]
    fn content_with_the_stamp_of_its_free_lock_is_trusted() {
        let guard = Guard { lock: 1024, content_bytes: 1024 };
        let (old, new) = ([1; 1024], [2; 1024]);
        let content = |record: &LockRecord, content: &[u8]| {
            let bytes = [&record.encode(guard.lock)[..], content].concat();
            View::of(guard, &bytes).unwrap().content
        };
        let free = LockRecord::free_before(&new);
        assert_eq!(content(&free, &new).unwrap(), new);
        assert_eq!(content(&free, &old), None, "read before the lock was given back");
        assert_eq!(content(&free, &[&new[..512], &old[512..]].concat()), None, "torn");
        assert_eq!(content(&free, &new[..512]), None, "not all of it");
        assert_eq!(content(&LockRecord { stamp: 0, ..free.clone() }, &new), None);
        let me = Holder { host: HostId::of_name("me"), slot: 0, generation: 1 };
        assert_eq!(content(&free.with(me, Mode::Exclusive).unwrap(), &new), None, "held");
        assert!(View::of(guard, &[0; 512]).is_err() && View::of(guard, &[0; 100]).is_err());
    }

    #[test]
    fn a_view_is_forgotten_when_it_is_taken() {
        let guard = Guard { lock: 1024, content_bytes: 512 };
        let image = Box::new(LockRecord::free_before(&[3; 512]).encode(guard.lock));
        let bytes = [&image[..], &[3; 512]].concat();
        let views = Views::default();
        let view = View::of(guard, &bytes).unwrap();
        views.left(guard, view.clone(), false);
        assert!(!views.take(guard).unwrap().is_worth_a_try(), "others come and go");
        assert!(views.take(guard).is_none());
        views.left(guard, view, false);
        views.saw(guard, &bytes);
        let known = views.take(guard).unwrap();
        assert!(known.is_alone && known.is_worth_a_try(), "no other host has had it since");
        views.saw(guard, &[3; 1024]);
        assert!(views.take(guard).is_none(), "invalid content is not remembered");
    }
}
