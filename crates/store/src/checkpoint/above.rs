//! Metadata that a capture changes in addition to the metadata that has changed already: the
//! directories above changed pages, and the rows of changed nodes, which get their new locations.
//!
//! They may have been evicted, so they are read before the writer's lock is taken, and stay in
//! memory (`plans`). The few that change in between are checked again under the lock; another round
//! of reads follows only if one of those is not in memory.

use std::collections::BTreeSet;

use format::page::ROWS_PER_PAGE;

use crate::chunks::asking::Asked;
use crate::chunks::pages::{PageKey, parent_of};
use crate::chunks::plans::Held;
use crate::chunks::table::Table;
use crate::sync::{Mutex, MutexGuard};
use crate::world::World;
use crate::world::view::View;
use crate::writer::Writer;

/// How often to check that everything is in memory; after that the capture itself reads what is
/// missing.
const TURNS_MAX: usize = 16;

/// How many changed pages of each table, and how many changed nodes, were checked.
pub(crate) type Seen = [usize; 4];

/// Locks the writer, with everything in memory that a capture changes.
pub(crate) fn lock_for_capture<'a>(
    world: &World,
    writer: &'a Mutex<Writer>,
) -> (Held, MutexGuard<'a, Writer>) {
    let plan = world.memory.plans.hold();
    let waiting = View::from(world).planning(plan.number);
    let mut seen = Seen::default();
    for _ in 0..TURNS_MAX {
        // If a page can't be read, the capture reports the error.
        seen = look_above_changed(waiting, seen);
        let locked = writer.lock();
        let asked = Asked::default();
        look_above_changed(View::asking(world, &asked).planning(plan.number), seen);
        if !asked.is_waiting() {
            return (plan, locked);
        }
    }
    (plan, writer.lock())
}

/// Loads what is above changes that were not `seen`; returns what was seen then.
pub(crate) fn look_above_changed(view: View<'_>, seen: Seen) -> Seen {
    let tables = [&view.chunks, &view.nodes.table, &view.volume_table];
    let mut now = seen;
    let mut above: [BTreeSet<PageKey>; 3] = Default::default();
    for (index, table) in tables.iter().enumerate() {
        let dirty = table.dirty.lock();
        let new = dirty.get(seen[index]..).unwrap_or(&dirty[..]);
        above[index].extend(new.iter().map(|key| parent_of(*key)));
        now[index] = dirty.len();
    }
    {
        let dirty = view.nodes.dirty.lock();
        let new = dirty.get(seen[3]..).unwrap_or(&dirty[..]);
        above[1].extend(new.iter().map(|id| (0, id.0 / ROWS_PER_PAGE)));
        now[3] = dirty.len();
    }
    for (table, keys) in tables.into_iter().zip(above) {
        look_at_and_above(view, table, keys);
    }
    now
}

fn look_at_and_above(view: View<'_>, table: &Table, mut keys: BTreeSet<PageKey>) {
    let height = table.root.read().height;
    while let Some(key) = keys.pop_first() {
        if key.0 > height {
            continue;
        }
        let _ = table.read_page(view.medium, key, |_| ());
        keys.insert(parent_of(key));
    }
}
