//! What happens to which controller, and when: each cell of a table, in an order that a seed
//! decides.

use std::fmt::{self, Display};
use std::time::Duration;

use tests_peer::random::Random;

/// The affected controller, by its role before the fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Whom {
    /// The owner.
    Owner,
    /// The one that forwards.
    Other,
    /// Both, within 100 ms.
    Both,
}

/// A direction of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// Both.
    Both,
    /// From the other controller to the owner.
    ToOwner,
    /// From the owner.
    FromOwner,
}

/// The kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// SIGKILL.
    Kill,
    /// SIGSTOP, and SIGCONT after this many milliseconds.
    Stop(u64),
    /// SIGTERM: a clean shutdown.
    End,
    /// `controller switch`.
    Switch,
    /// All link connections are shut down.
    Cut(Way),
}

/// What happens at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum When {
    /// Only the commands of hosts.
    Alone,
    /// The owner writes a checkpoint.
    Checkpoint,
    /// A switch was just requested.
    Switch,
    /// One of them was just killed.
    After,
}

/// A cell of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// The kind of fault.
    pub what: What,
    /// The affected controller.
    pub whom: Whom,
    /// What happens at the same time.
    pub when: When,
}

/// How often the owner is killed for each occurrence of any other cell.
const OWNER_KILLS: usize = 5;
const STOPS_MS: [u64; 3] = [200, 2_000, 20_000];

/// Returns all cells, in an order that `random` decides.
pub fn deck(random: &mut Random) -> Vec<Fault> {
    let mut deck = Vec::new();
    let mut add = |what, whom, when| deck.push(Fault { what, whom, when });
    for when in [When::Alone, When::Checkpoint, When::Switch, When::After] {
        for whom in [Whom::Owner, Whom::Other] {
            add(What::Kill, whom, when);
            add(What::End, whom, when);
            STOPS_MS.into_iter().for_each(|ms| add(What::Stop(ms), whom, when));
        }
        (1..OWNER_KILLS).for_each(|_| add(What::Kill, Whom::Owner, when));
        add(What::Kill, Whom::Both, when);
        for way in [Way::Both, Way::ToOwner, Way::FromOwner] {
            add(What::Cut(way), Whom::Owner, when);
        }
        if when != When::Switch {
            add(What::Switch, Whom::Owner, when);
        }
    }
    for at in (1..deck.len()).rev() {
        deck.swap(at, random.below(at as u64 + 1) as usize);
    }
    deck
}

/// Returns a random duration between these.
pub fn millis(random: &mut Random, from: u64, to: u64) -> Duration {
    Duration::from_millis(from + random.below(to - from))
}

impl Fault {
    /// Returns the fault without its circumstances.
    pub fn kind(&self) -> String {
        let whom = match self.whom {
            Whom::Owner => "the owner",
            Whom::Other => "the other controller",
            Whom::Both => "both",
        };
        match self.what {
            What::Kill => format!("kill -9 of {whom}"),
            What::Stop(ms) => format!("STOP of {whom} for {} s", ms as f64 / 1000.0),
            What::End => format!("SIGTERM to {whom}"),
            What::Switch => "a switch".to_owned(),
            What::Cut(Way::Both) => "the link is cut".to_owned(),
            What::Cut(Way::ToOwner) => "the link is cut towards the owner".to_owned(),
            What::Cut(Way::FromOwner) => "the link is cut from the owner".to_owned(),
        }
    }
}

impl Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let when = match self.when {
            When::Alone => "alone",
            When::Checkpoint => "during a checkpoint",
            When::Switch => "during a switch",
            When::After => "shortly after a kill",
        };
        write!(f, "{}, {when}", self.kind())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn a_seed_decides_the_order_and_every_cell_occurs() {
        let order = |seed| deck(&mut Random::new(seed));
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
        let mut counts = BTreeMap::<Fault, usize>::new();
        order(3).into_iter().for_each(|fault| *counts.entry(fault).or_default() += 1);
        assert_eq!(counts.len(), 4 * (2 * 5 + 1 + 3) + 3);
        for (fault, count) in counts {
            let is_owner_kill = (fault.what, fault.whom) == (What::Kill, Whom::Owner);
            assert_eq!(count, if is_owner_kill { OWNER_KILLS } else { 1 }, "{fault}");
        }
    }
}
