//! The access state of a unit over each path: asymmetric logical unit access (ALUA, SPC-4, 5.15).

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use libiscsi::{Cdb, Completion, Data, Direction, Status};

use super::counters::Class;
use super::device::{Device, Inner};
use super::path::Path;

/// The pause before another query if there was no response.
const ASK_AGAIN: Duration = Duration::from_millis(20);
/// The maximum number of unit attentions for one query.
const ATTENTIONS_MAX: u32 = 8;

/// The state of a target port group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// The preferred state. Unknown states count as this one.
    #[default]
    Optimized,
    /// It works, and should only be used if no other does.
    NonOptimized,
    /// Commands on it fail at present: standby, unavailable, offline, or changing.
    Away,
}

/// What a device knows about its paths.
#[derive(Debug, Default)]
pub(super) struct Ways {
    known: RefCell<Vec<Way>>,
    stale: Cell<bool>,
    looking: Cell<bool>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Way {
    /// How often the path had logged in at the last query.
    logins: u64,
    group: Option<u16>,
    access: Access,
}

impl Ways {
    /// Returns the access state of the unit over a path.
    pub(super) fn access(&self, path: usize) -> Access {
        self.known.borrow().get(path).map_or(Access::Optimized, |way| way.access)
    }

    /// Records that the array has reported a change.
    pub(super) fn expire(&self) {
        self.stale.set(true);
    }

    fn is_stale(&self, paths: &[Rc<Path>]) -> bool {
        let known = self.known.borrow();
        let logins = |index: usize| known.get(index).map_or(0, |way| way.logins);
        let mut paths = paths.iter().enumerate();
        self.stale.get() || paths.any(|(at, path)| path.is_up() && path.logins() != logins(at))
    }
}

impl Inner {
    /// Queries the paths in the background, if something may have changed.
    pub(super) fn keep_ways_fresh(self: &Rc<Self>) {
        let paths = self.host.paths();
        if !self.limits.has_groups || paths.len() < 2 || !self.ways.is_stale(paths) {
            return;
        }
        if self.ways.looking.replace(true) {
            return;
        }
        let (inner, reactor) = (Rc::downgrade(self), self.host.reactor().clone());
        let task = self.host.reactor().spawn(async move {
            let Some(inner) = inner.upgrade() else { return };
            let device = Device(inner);
            device.0.ways.stale.set(false);
            if device.look_at_ways().await.is_none() {
                device.0.ways.stale.set(true);
                reactor.sleep(ASK_AGAIN).await;
            }
            device.0.ways.looking.set(false);
        });
        task.forget();
    }
}

impl Device {
    /// Returns the access state of the unit over each path of the host.
    pub fn access(&self) -> Vec<Access> {
        (0..self.0.host.paths().len()).map(|path| self.0.ways.access(path)).collect()
    }

    /// Queries each path that has logged in again for its group, and one of them for the states of
    /// all groups. `None` if one did not respond.
    pub(super) async fn look_at_ways(&self) -> Option<()> {
        let paths: Vec<_> = self.0.host.paths().to_vec();
        let mut ways = self.0.ways.known.borrow().clone();
        ways.resize(paths.len(), Way::default());
        for (way, path) in ways.iter_mut().zip(&paths) {
            if path.is_up() && way.logins != path.logins() {
                let logins = path.logins();
                let page = self.ask_over(path, Cdb::inquiry(Some(0x83), 1024), 1024).await?;
                *way = Way { logins, group: group_of(page.get(4..)?), ..Way::default() };
            }
        }
        let access = |(way, path): (&Way, &Rc<Path>)| path.is_up().then_some(way.access);
        let all: Vec<_> = ways.iter().zip(&paths).map(access).collect();
        let path = &paths[choose(&all, 0)?];
        let states = states(&self.ask_over(path, report_groups(1024), 1024).await?);
        for way in &mut ways {
            let state = way.group.and_then(|group| states.get(&group));
            way.access = state.copied().unwrap_or_default();
        }
        *self.0.ways.known.borrow_mut() = ways;
        Some(())
    }

    /// Over this path and no other one.
    async fn ask_over(&self, path: &Rc<Path>, cdb: Cdb, length: usize) -> Option<Vec<u8>> {
        for _ in 0..ATTENTIONS_MAX {
            let started = std::time::Instant::now();
            let end = path.execute(self.0.lun, cdb, Data::In(vec![0; length])).await;
            let Completion { status, buffer, .. } = end;
            let mut counters = self.0.counters.borrow_mut();
            if status == Status::Good {
                counters.add(Class::Other, true, 0, started.elapsed());
                return Some(buffer);
            }
            // Whatever it is: the query will be repeated, and the host continues with what it
            // knows.
            counters.retries += 1;
            match status {
                Status::CheckCondition(sense) if sense.key == 6 => {}
                _ => return None,
            }
        }
        None
    }
}

/// REPORT TARGET PORT GROUPS (SPC-4, 6.36).
fn report_groups(length: u32) -> Cdb {
    let [a, b, c, d] = length.to_be_bytes();
    Cdb::raw(&[0xA3, 0x0A, 0, 0, 0, 0, a, b, c, d, 0, 0], Direction::In)
}

/// Returns the state of each target port group.
fn states(answer: &[u8]) -> BTreeMap<u16, Access> {
    let mut states = BTreeMap::new();
    let mut at = 4;
    while let Some(&[state, _, high, low, _, _, _, ports]) = answer.get(at..at + 8) {
        if ports == 0 {
            // What is after the last one is zeros.
            break;
        }
        let access = match state & 0x0F {
            0 => Access::Optimized,
            1 => Access::NonOptimized,
            _ => Access::Away,
        };
        states.insert(u16::from_be_bytes([high, low]), access);
        at += 8 + 4 * usize::from(ports);
    }
    states
}

/// Returns the target port group of the port, from the designators of VPD page 83h (SPC-4,
/// 7.8.6.9).
fn group_of(mut list: &[u8]) -> Option<u16> {
    while let Some(&[_, kind, _, length]) = list.get(..4) {
        let end = 4 + usize::from(length);
        let designator = list.get(4..end)?;
        if kind & 0x3F == 0x15 {
            return designator.get(2..4).map(|group| u16::from_be_bytes([group[0], group[1]]));
        }
        list = &list[end..];
    }
    None
}

/// Chooses, of the paths that are up, the next one from `first` on among those with the best access
/// state.
pub(super) fn choose(paths: &[Option<Access>], first: usize) -> Option<usize> {
    let best = paths.iter().flatten().min()?;
    let mut order = (0..paths.len()).map(|offset| (first + offset) % paths.len());
    order.find(|index| paths[*index].as_ref() == Some(best))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_and_states_are_read() {
        let mut answer = vec![0, 0, 0, 28, 0x80, 0x8F, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1];
        answer.extend([1, 0x8F, 1, 2, 0, 2, 0, 2, 0, 0, 0, 2, 0, 0, 0, 3]);
        answer.extend([3, 0x8F, 0, 3, 0, 2, 0, 1, 0, 0, 0, 4]);
        answer.extend([0; 32]);
        let expected = [(1, Access::Optimized), (0x102, Access::NonOptimized), (3, Access::Away)];
        assert_eq!(states(&answer), BTreeMap::from(expected));
        assert!(states(&answer[..9]).is_empty());
        assert!(states(&[]).is_empty());

        let mut list = vec![1, 3, 0, 4, 0x60, 1, 2, 3, 1, 0x14, 0, 4, 0, 0, 0, 1];
        list.extend([1, 0x15, 0, 4, 0, 0, 1, 2]);
        assert_eq!(group_of(&list), Some(0x102));
        assert_eq!(group_of(&list[..16]), None);
        assert_eq!(group_of(&list[..22]), None);
    }

    #[test]
    fn the_best_paths_that_are_up_are_used_in_turn() {
        let (best, other, away) =
            (Some(Access::Optimized), Some(Access::NonOptimized), Some(Access::Away));
        let paths = [best, other, best, None];
        assert_eq!([0, 1, 2, 3].map(|first| choose(&paths, first).unwrap()), [0, 2, 2, 0]);
        assert_eq!(choose(&[None, other, away, other], 2), Some(3));
        assert_eq!(choose(&[None, away], 0), Some(1));
        assert_eq!(choose(&[None, None], 0), None);
        assert_eq!(choose(&[], 0), None);
    }
}
