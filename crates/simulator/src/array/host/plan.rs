//! What hosts are to do, and the results.

use initiator::Options;

use crate::array::controller::TARGET_NAME;
use crate::rng::Rng;

/// How often hosts do what, as weights.
#[derive(Clone, Copy, Debug)]
pub struct Mix {
    /// READ.
    pub reads: u64,
    /// WRITE.
    pub writes: u64,
    /// WRITE SAME with zeros.
    pub zeros: u64,
    /// UNMAP.
    pub unmaps: u64,
    /// COMPARE AND WRITE.
    pub swaps: u64,
    /// EXTENDED COPY.
    pub copies: u64,
    /// PERSISTENT RESERVE OUT.
    pub persistent_out: u64,
    /// PERSISTENT RESERVE IN.
    pub persistent_in: u64,
    /// RESERVE and RELEASE.
    pub exclusive: u64,
    /// TEST UNIT READY and INQUIRY.
    pub looks: u64,
    /// WRITE SAME with a pattern.
    pub patterns: u64,
    /// SYNCHRONIZE CACHE.
    pub synchronizes: u64,
    /// Of a hundred writes, this many have FUA.
    pub forced_percent: u64,
    /// Of a hundred reads, this many are long.
    pub long_percent: u64,
    /// Of a hundred reads of a volume that is long enough, this many are gathered from several
    /// requests.
    pub gathered_percent: u64,
    /// Of a hundred COMPARE AND WRITE commands whose responses were lost, this many are repeated.
    pub repeated_percent: u64,
    /// Of 10,000 steps of a path, this many times a command in flight is aborted.
    pub aborts: u64,
    /// … a unit is reset, or a task set aborted.
    pub resets: u64,
    /// … the target is pinged.
    pub pings: u64,
    /// … the session is logged out.
    pub logouts: u64,
    /// … the connection is cut.
    pub cuts: u64,
    /// … the session is taken over by another connection.
    pub takeovers: u64,
    /// … an additional connection of the session is opened, if allowed.
    pub joins: u64,
    /// … one of several connections is logged out.
    pub partings: u64,
    /// … a connection is given up while its session continues.
    pub replacements: u64,
}

impl Default for Mix {
    fn default() -> Self {
        Self {
            reads: 30,
            writes: 30,
            zeros: 6,
            unmaps: 6,
            swaps: 10,
            copies: 8,
            persistent_out: 8,
            persistent_in: 3,
            exclusive: 3,
            looks: 4,
            patterns: 0,
            synchronizes: 0,
            forced_percent: 0,
            long_percent: 0,
            gathered_percent: 0,
            repeated_percent: 0,
            aborts: 60,
            resets: 10,
            pings: 20,
            logouts: 8,
            cuts: 8,
            takeovers: 8,
            joins: 0,
            partings: 0,
            replacements: 0,
        }
    }
}

/// The hosts of a world.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The seed of all randomness.
    pub seed: u64,
    /// How many hosts there are.
    pub hosts: usize,
    /// How many paths each has.
    pub paths_per_host: usize,
    /// How many target ports there are.
    pub ports: u16,
    /// The maximum number of commands in flight on each path.
    pub in_flight_max: usize,
    /// The sizes of the volumes in blocks of 4 KiB, from LUN 1 on.
    pub units: Vec<u64>,
    /// From this one on, counted from 0, they are reserved sometimes.
    pub reserved_from: usize,
    /// The maximum number of blocks of a long read.
    pub long_blocks: u64,
    /// Whether writes are durable when they are acknowledged.
    pub is_durable: bool,
    /// Whether each command must get its response within a time limit: nothing stalls, and no host
    /// ends what others have requested.
    pub is_prompt: bool,
    /// The maximum number of connections of a session that hosts offer.
    pub connections: u16,
    /// The number of commands that the target accepts at a time in each session.
    pub window: u32,
    /// What hosts do.
    pub mix: Mix,
}

impl Plan {
    /// Returns the iSCSI names of the hosts.
    pub fn names(&self) -> Vec<String> {
        (0..self.hosts).map(|host| format!("iqn.2026-01.example:host-{host}")).collect()
    }
}

/// The results of commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Commands that ended with GOOD.
    pub good: u64,
    /// RESERVATION CONFLICT.
    pub conflicts: u64,
    /// COMPARE AND WRITE commands that found something else.
    pub miscompares: u64,
    /// Commands that were refused temporarily.
    pub refused: u64,
    /// CHECK CONDITION of other kinds.
    pub failed: u64,
    /// Commands that task management ended.
    pub aborted: u64,
    /// Sessions that began.
    pub logins: u64,
    /// Logouts with a response.
    pub logouts: u64,
    /// COMPARE AND WRITE commands that were repeated, and ended with GOOD.
    pub repeated: u64,
    /// Commands and resets that were refused as unsupported.
    pub unsupported: u64,
    /// Commands that failed because of the disk.
    pub broken: u64,
    /// Responses over additional connections of their session.
    pub further: u64,
    /// Additional connections that were accepted.
    pub joins: u64,
    /// Additional connections that were not.
    pub not_joined: u64,
    /// Accepted connections that replaced a failed one.
    pub replaced: u64,
    /// Connections that were logged out over themselves while their session continued.
    pub partings: u64,
    /// Failed connections that were logged out over another one.
    pub partings_of_others: u64,
    /// Commands that a failed connection may have lost, and that were sent again with their number.
    pub retried: u64,
    /// The same, aborted over another connection.
    pub plugged: u64,
}

/// Returns random options that a path offers at login.
pub(super) fn any_options(name: &str, number: u8, plan: &Plan, rng: &mut Rng) -> Options {
    let max_burst_bytes = rng.between(512, 300_000) as u32;
    Options {
        initiator_name: name.to_owned(),
        target_name: TARGET_NAME.to_owned(),
        isid: [0x80, 0, 0, 0, 0, number],
        security_stage: rng.chance(70),
        header_digest: rng.chance(30),
        data_digest: rng.chance(30),
        immediate_data: rng.chance(50),
        initial_r2t: rng.chance(50),
        max_recv_data_segment_bytes: rng.between(512, 70_000) as u32,
        max_burst_bytes,
        first_burst_bytes: rng.between(512, u64::from(max_burst_bytes)) as u32,
        max_outstanding_r2t: rng.between(1, 4) as u16,
        max_connections: if rng.chance(80) { plan.connections } else { 1 },
        ..Options::default()
    }
}
