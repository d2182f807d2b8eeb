//! A step that never ends is a failure, instead of a run that never ends.
//!
//! An endless loop writes or reads forever: what was refused is retried, what waits is maintained.
//! So I/Os are counted, including failing ones, and not time.

use super::SimDisk;

/// The maximum for a step. Nothing legitimate comes near: the longest steps read a whole pool.
const WORK_MAX: u64 = 10_000_000;
/// The weight of a write or a flush. There are far fewer of them, and what leads to one is slow.
pub(super) const WRITE_WORK: u64 = 100;
/// The weight of a read.
pub(super) const READ_WORK: u64 = 1;

/// What is left of it for the current step. Nothing is counted before the first step.
#[derive(Default)]
pub(super) struct Patience(Option<u64>);

impl Patience {
    /// Counts an I/O.
    pub(super) fn spend(&mut self, work: u64) {
        let Some(left) = &mut self.0 else { return };
        assert!(*left >= work, "a step does not end: it has used up its I/O budget");
        *left -= work;
    }
}

impl SimDisk {
    /// Returns the content of the device, cached or not.
    pub fn content(&self) -> crate::device::Device {
        self.inner().device.clone()
    }

    /// Replaces the content of the device.
    pub fn set_content(&self, content: crate::device::Device) {
        self.inner().device = content;
    }

    /// Begins a step. Panics if it does not end.
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
    fn a_step_that_never_stops_writing_is_aborted() {
        let disk = SimDisk::new(1 << 20, 1);
        disk.begin_step();
        disk.set_errors_from(1);
        while disk.flush().is_err() {}
    }

    #[test]
    fn each_step_gets_the_full_budget() {
        let disk = SimDisk::new(1 << 20, 1);
        for _ in 0..3 {
            disk.begin_step();
            (0..WORK_MAX / WRITE_WORK).for_each(|_| disk.flush().unwrap());
        }
    }
}
