//! The results of worlds.

use crate::rng::mix;

/// Counts of sessions with several connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Several {
    /// Responses over additional connections of their session.
    pub answers: u64,
    /// Additional connections that were accepted.
    pub joins: u64,
    /// Those of them that replaced a failed one.
    pub replaced: u64,
    /// Connections that were logged out while their session went on.
    pub partings: u64,
    /// Commands that a failed connection may have lost, and that were repeated or aborted over
    /// another one.
    pub plugged: u64,
}

impl std::ops::AddAssign<Several> for Several {
    fn add_assign(&mut self, other: Several) {
        self.answers += other.answers;
        self.joins += other.joins;
        self.replaced += other.replaced;
        self.partings += other.partings;
        self.plugged += other.plugged;
    }
}

impl std::fmt::Display for Several {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { answers, joins, replaced, partings, plugged } = self;
        write!(
            f,
            "{answers} of them over {joins} further connections of sessions ({replaced} in the \
             place of one that had failed, {partings} logged out, {plugged} lost commands plugged)"
        )
    }
}

/// The result of a world in which nothing was wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The number of responses to hosts' requests.
    pub answers: u64,
    /// The number of power losses.
    pub crashes: u64,
    /// The number of killed processes.
    pub kills: u64,
    /// Planned switches.
    pub switches: u64,
    /// Connections that have continued after these.
    pub handed: u64,
    /// Chores.
    pub chores: u64,
    /// Connections that were cut or have stalled.
    pub cuts: u64,
    /// Writes and flushes of the disk.
    pub io_count: u64,
    /// Worlds that ended early, because too much may have happened to be judged.
    pub given_up: u64,
    /// Counts of sessions with several connections.
    pub several: Several,
    /// A hash of every I/O and every answer.
    pub trace: u64,
}

impl std::ops::AddAssign<Summary> for Summary {
    fn add_assign(&mut self, other: Summary) {
        self.answers += other.answers;
        self.crashes += other.crashes;
        self.kills += other.kills;
        self.switches += other.switches;
        self.handed += other.handed;
        self.chores += other.chores;
        self.cuts += other.cuts;
        self.io_count += other.io_count;
        self.given_up += other.given_up;
        self.several += other.several;
        self.trace = mix(self.trace ^ other.trace);
    }
}

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { answers, crashes, kills, chores, cuts, io_count, given_up, .. } = self;
        let Self { several, switches, handed, trace, .. } = self;
        write!(
            f,
            "{answers} responses to hosts, {several}, {crashes} losses of power, \
             {kills} kills, {switches} switches ({handed} connections went on), {chores} chores, \
             {cuts} cuts and stalls of connections, \
             {io_count} writes and flushes, {given_up} worlds given up, trace {trace:016x}"
        )
    }
}
