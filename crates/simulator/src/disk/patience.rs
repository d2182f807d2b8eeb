//! A step that never ends is a failure, and not a run that never ends.
//!
//! Whoever goes on for ever writes or reads for ever: what was refused is tried again, what waits
//! is looked after. So I/Os are counted, those that fail too, and not time.

use super::SimDisk;

/// What a step may do. Nothing legitimate comes near: the longest ones read a whole pool.
const WORK_MAX: u64 = 10_000_000;
/// What a write or a flush counts for. There are far fewer of them, and what leads to one is slow.
pub(super) const WRITE_WORK: u64 = 100;
/// What a read counts for.
pub(super) const READ_WORK: u64 = 1;

/// What is left of it for the step under way. Nobody counts before the first step.
#[derive(Default)]
pub(super) struct Patience(Option<u64>);

impl Patience {
    /// Counts an I/O.
    pub(super) fn spend(&mut self, work: u64) {
        let Some(left) = &mut self.0 else { return };
        assert!(*left >= work, "a step does not end: it reads and writes for ever");
        *left -= work;
    }
}

impl SimDisk {
    /// What the device holds, cached or not.
    pub fn content(&self) -> crate::device::Device {
        self.inner().device.clone()
    }

    /// The device holds something else.
    pub fn set_content(&self, content: crate::device::Device) {
        self.inner().device = content;
    }

    /// A step begins. It panics if it has no end.
    pub fn begin_step(&self) {
        self.inner().patience = Patience(Some(WORK_MAX));
    }
}

#[cfg(test)]
mod tests {
    use sys::Disk as _;

    use super::*;

    #[test]
    #[should_panic = "does not end"]
    fn a_step_that_writes_for_ever_is_ended() {
        let disk = SimDisk::new(1 << 20, 1);
        disk.begin_step();
        disk.set_errors_from(1);
        while disk.flush().is_err() {}
    }

    #[test]
    fn each_step_has_all_of_it() {
        let disk = SimDisk::new(1 << 20, 1);
        for _ in 0..3 {
            disk.begin_step();
            (0..WORK_MAX / WRITE_WORK).for_each(|_| disk.flush().unwrap());
        }
    }
}
