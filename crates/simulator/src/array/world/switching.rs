//! Planned switches: the array shuts down while hosts continue, and the next one continues with
//! what it has left.

use store::Durability;

use super::super::controller::Controller;
use super::super::network::{Cut, Link, Side};
use super::{Inner, Parts, Run};

/// The maximum number of steps for an array to shut down.
const STEPS_MAX: u32 = 200_000;

impl Run<'_> {
    /// The array leaves the pool to another one.
    pub(super) fn switch(&mut self) -> Result<(), String> {
        self.inner()?.disk.note("switch");
        self.inner()?.array.give_way();
        let mut steps = 0;
        while !self.inner()?.array.has_given_way() {
            let inner = self.inner()?;
            if inner.disk.has_failed() {
                return Ok(()); // It ends by that.
            }
            // A command may be waiting for a chore.
            self.usual()?;
            steps += 1;
            if steps > STEPS_MAX {
                return Err("an array does not hand over".into());
            }
        }
        let Some(inner) = self.inner.take() else { return Err("the world is lost".into()) };
        let Inner { disk, clock, mut network, array, hosts, rng, begins, .. } = inner;
        let before: Vec<Link> = network.links().collect();
        let is_volatile = self.world.setup.options.durability == Durability::Flush;
        let left = array.leave(&mut network, is_volatile);
        let has_left = left.is_ok();
        let go_on: Vec<Link> = left.iter().flat_map(|left| left.links()).collect();
        let count = go_on.len() as u64;
        disk.restart();
        let (world, now) = (self.world, clock.time());
        let next = left.and_then(|left| Controller::take_over(&disk, &world.setup, &clock, left));
        for link in before {
            if next.is_err() || !go_on.contains(&link) {
                network.cut(link, Cut::AtOnce, now);
                network.close(link, Side::Array, now);
            }
        }
        let has_failed = disk.has_failed();
        let parts = Parts { disk, clock, network, hosts, rng, begins };
        match next {
            Ok(array) => {
                self.done.switches += 1;
                self.done.handed += count;
                self.go_on_with(parts, array);
                Ok(())
            }
            Err(_) if has_failed => self.start_anew(parts, true),
            // Without its last checkpoint, for which there was no location: as if it was killed.
            Err(_) if !has_left => self.start_anew(parts, false),
            Err(error) => Err(format!("switching: {error}")),
        }
    }
}
