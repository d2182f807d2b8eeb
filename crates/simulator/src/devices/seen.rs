//! The results of runs of pools on several disks.

/// The results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// A hash of every I/O and answer.
    pub trace: u64,
    /// Completed requests.
    pub answers: u64,
    /// Writes and flushes of all disks.
    pub writes: u64,
    /// Calls that failed because of the trouble of a disk.
    pub troubled: u64,
    /// How often the power failed; how often during an opening; and how often a disk with all of
    /// the pool did not return.
    pub crashes: [u64; 3],
    /// How often the pool was opened with the administrator's consent.
    pub forced: u64,
    /// How often a disk had a fault; and how often it lied.
    pub faults: [u64; 2],
    /// How often a disk was taken out; taken back; replaced.
    pub changed: [u64; 3],
    /// How often a disk began to catch up, and had caught up.
    pub caught_up: [u64; 2],
    /// How often a disk was removed, and how often a removal was cancelled.
    pub members: [u64; 2],
    /// How often columns began to be moved, and how often that ended without a crash.
    pub batches: [u64; 2],
    /// How often a segment became narrower, and wider.
    pub laid: [u64; 2],
    /// Checkpoints.
    pub checkpoints: u64,
    /// How often the promise was checked, once per disk; and how often with the disks that open
    /// without consent.
    pub promises: [u64; 2],
    /// Records that a follower applied while the pool was used.
    pub followed: u64,
    /// How often its state was taken over; and how often it could not be used.
    pub takeovers: [u64; 2],
    /// With too few disks: how many reads were right, and how many were refused.
    pub too_few: [u64; 2],
}

impl std::ops::AddAssign for Seen {
    fn add_assign(&mut self, other: Self) {
        let add = |to: &mut [u64], from: &[u64]| {
            to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
        };
        self.trace = crate::rng::mix(self.trace ^ other.trace);
        self.answers += other.answers;
        self.writes += other.writes;
        self.troubled += other.troubled;
        add(&mut self.crashes, &other.crashes);
        self.forced += other.forced;
        add(&mut self.faults, &other.faults);
        add(&mut self.changed, &other.changed);
        add(&mut self.caught_up, &other.caught_up);
        add(&mut self.members, &other.members);
        add(&mut self.batches, &other.batches);
        add(&mut self.laid, &other.laid);
        self.checkpoints += other.checkpoints;
        add(&mut self.promises, &other.promises);
        add(&mut self.too_few, &other.too_few);
        self.followed += other.followed;
        add(&mut self.takeovers, &other.takeovers);
    }
}

impl std::fmt::Display for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { answers, writes, troubled, crashes, faults, changed, .. } = self;
        let Self { caught_up, checkpoints, promises, too_few, forced, trace, .. } = self;
        writeln!(
            f,
            "{answers} requests, {checkpoints} checkpoints, {writes} writes and flushes; {} disks \
             with faults ({} of them lied), {troubled} calls failed",
            faults[0], faults[1]
        )?;
        writeln!(
            f,
            "{} crashes ({} of them in an opening), and {} disks that had all did not come back, \
             {forced} opened without most; \
             {} taken out, {} taken back, {} replaced; {} began to catch up, {} have caught up",
            crashes[0],
            crashes[1],
            crashes[2],
            changed[0],
            changed[1],
            changed[2],
            caught_up[0],
            caught_up[1]
        )?;
        let ([removed, kept], [began, ended]) = (self.members, self.batches);
        let [narrower, wider] = self.laid;
        writeln!(
            f,
            "{removed} removed, {kept} kept after all; {began} times columns began to be moved, \
             {ended} times that had an end; {narrower} segments became narrower, {wider} wider"
        )?;
        let (followed, [taken, useless]) = (self.followed, self.takeovers);
        writeln!(
            f,
            "{followed} records followed, {taken} takeovers from there, {useless} from a checkpoint"
        )?;
        write!(
            f,
            "{} times all was held by as few disks as it takes, {} times by some; with fewer {} \
             reads were right and {} refused; trace {trace:016x}",
            promises[0], promises[1], too_few[0], too_few[1]
        )
    }
}
