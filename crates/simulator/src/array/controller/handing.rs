//! Planned switches: an array that leaves the pool, and the connections that continue at the next
//! one.

use std::sync::Arc;

use front::{Untold, transport};
use store::LogEnd;

use super::super::network::{Link, Network};
use super::super::sockets::Sockets;
use super::{Controller, Setup, SimClock, text};
use crate::disk::SimDisk;

/// What remains of an array.
pub struct Left {
    incarnation: u64,
    log_end: Option<LogEnd>,
    connections: Vec<(Link, transport::Handed, Untold)>,
}

impl Left {
    /// Returns the connections that continue.
    pub fn links(&self) -> impl Iterator<Item = Link> {
        self.connections.iter().map(|(link, ..)| *link)
    }
}

impl Controller {
    /// Begins to leave the pool to the next array.
    pub fn give_way(&self) {
        self.shared.hand_over_at_the_end();
        self.shared.mailboxes.iter().for_each(|mailbox| mailbox.stop());
    }

    /// Returns whether nothing is in flight any longer.
    pub fn has_given_way(&self) -> bool {
        self.threads.iter().all(|thread| thread.front.is_finished())
    }

    /// Ends the array. Connections that do not continue are closed.
    ///
    /// # Errors
    /// Those of the array.
    pub fn leave(mut self, network: &mut Network, is_volatile: bool) -> Result<Left, String> {
        let now = self.clock.time();
        let mut leaving = Vec::new();
        for thread in &mut self.threads {
            let mut sockets = std::mem::take(&mut thread.sockets);
            let mut wires = Sockets { network, sockets: &mut sockets, leaving: &mut leaving, now };
            thread.front.hand_over(&mut wires);
            thread.front.close_all(&mut wires);
        }
        while self.shared.save_next(&*self.array) {}
        let connections = leaving.into_iter().map(|(link, handed)| {
            let untold = self.shared.untold(&handed);
            (link, handed.connection, untold)
        });
        let (incarnation, connections) = (self.store.incarnation().number, connections.collect());
        if is_volatile {
            self.store.checkpoint().map_err(text)?;
        }
        let log_end = self.store.log_end();
        Ok(Left { incarnation, log_end, connections })
    }

    /// Opens the pool that another array has left, and continues with its connections.
    ///
    /// # Errors
    /// Those of the array.
    pub fn take_over(
        disk: &Arc<SimDisk>,
        setup: &Setup,
        clock: &Arc<SimClock>,
        left: Left,
    ) -> Result<Self, String> {
        let mut array = Self::open_as(disk, setup, clock, (Some(left.incarnation), left.log_end))?;
        let links: Vec<Link> = left.links().collect();
        let known = left.connections.into_iter().map(|(_, handed, untold)| (handed, untold));
        let expected = array.shared.expect(known.collect());
        for (link, handed) in links.into_iter().zip(expected) {
            let handed = handed.ok_or("the handed-over state cannot be decoded")?;
            array.take(link, handed.portal_tag, Some(handed));
        }
        Ok(array)
    }
}
