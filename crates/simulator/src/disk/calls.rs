//! The calls of the product's own code to the device below it, and of others to the disk.

use std::time::Duration;

use sys::Persist;

use super::*;

impl sys::Calls for Below {
    fn len_bytes(&self) -> u64 {
        lock(&self.inner).len_bytes
    }

    fn grow(&self, len_bytes: u64) -> io::Result<()> {
        let mut inner = lock(&self.inner);
        let (done, result) = inner.count(false);
        if done && (result.is_ok() || inner.rng.chance(50)) {
            inner.note("grow", len_bytes, 0, 0);
            inner.len_bytes = inner.len_bytes.max(len_bytes);
        }
        result
    }

    /// All of it, or an error.
    fn read(
        &self,
        offset_bytes: u64,
        frames: &mut [FrameMut],
        skip_bytes: usize,
    ) -> io::Result<usize> {
        assert_eq!(skip_bytes, 0, "a read transfers all its bytes");
        let mut inner = lock(&self.inner);
        inner.patience.spend(patience::READ_WORK);
        if inner.dead {
            return Err(power_failed());
        }
        let faults = inner.faults;
        if inner.refuses_read(offset_bytes / BLOCK) {
            inner.note("refused read", offset_bytes, frames.len(), 0);
            return Err(error_that_may_pass());
        }
        let (failed, led_astray, other) =
            (inner.rng.below(1000), inner.rng.below(1000), inner.rng.between(1, 64));
        let mut first = offset_bytes / BLOCK;
        if failed < faults.failed_reads_per_mille {
            inner.note("failed read", offset_bytes, frames.len(), 0);
            return Err(io::Error::other("simulated: a read error"));
        }
        if led_astray < faults.misdirected_reads_per_mille {
            inner.note("misdirected read", offset_bytes, frames.len(), other);
            first += other;
        }
        for (number, frame) in (first..).zip(frames.iter_mut()) {
            match inner.device.read(number) {
                Some(stored) => frame.copy_from_slice(&stored[..]),
                None => frame.fill(0),
            }
        }
        inner.read_count += 1;
        inner.note("read", offset_bytes, frames.len(), 0);
        Ok(frames.len() * BLOCK as usize)
    }

    fn write(
        &self,
        offset_bytes: u64,
        frames: &[Frame],
        skip_bytes: usize,
        dsync: bool,
    ) -> io::Result<usize> {
        if dsync && lock(&self.inner).faults.no_fua {
            return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
        }
        let skipped = skip_bytes / BLOCK as usize;
        let first = offset_bytes / BLOCK + skipped as u64;
        let result =
            self.write_some((first..).zip(frames[skipped..].iter().cloned()).collect(), dsync);
        self.after();
        result
    }

    fn sync(&self) -> io::Result<()> {
        let result = self.flush_once();
        self.after();
        result
    }

    /// Gives the blocks other content, which becomes durable like written data, so that readers of
    /// discarded blocks read something wrong.
    fn discard(&self, offset_bytes: u64, len_bytes: u64) -> io::Result<bool> {
        let mut garbage = FrameMut::zeroed();
        {
            let mut inner = lock(&self.inner);
            inner.note("discard", offset_bytes, (len_bytes / BLOCK) as usize, 0);
            garbage.iter_mut().for_each(|byte| *byte = inner.rng.draw() as u8);
        }
        let (first, blocks) = (offset_bytes / BLOCK, len_bytes / BLOCK);
        let rest = (first + 1..first + blocks).map(|block| (block, Frame::zeros()));
        let all = std::iter::once((first, garbage.freeze())).chain(rest).collect();
        let result = self.write_some(all, false);
        self.after();
        result.map(|_| true)
    }

    /// Time passes at once.
    fn sleep(&self, _pause: Duration) {}
}

impl sys::Disk for SimDisk {
    fn len_bytes(&self) -> u64 {
        self.disk.len_bytes()
    }

    fn grow(&self, len_bytes: u64) -> io::Result<()> {
        self.disk.grow(len_bytes)
    }

    fn read(&self, offset_bytes: u64, frames: &mut [FrameMut]) -> io::Result<()> {
        self.disk.read(offset_bytes, frames)
    }

    fn read_patiently(&self, offset_bytes: u64, frames: &mut [FrameMut]) -> io::Result<()> {
        self.disk.read_patiently(offset_bytes, frames)
    }

    fn write(&self, offset_bytes: u64, frames: &[Frame]) -> io::Result<()> {
        self.disk.write(offset_bytes, frames)
    }

    fn flush(&self) -> io::Result<()> {
        self.disk.flush()
    }

    fn flush_failures(&self) -> u64 {
        self.disk.flush_failures()
    }

    fn discard(&self, offset_bytes: u64, len_bytes: u64) -> io::Result<bool> {
        self.disk.discard(offset_bytes, len_bytes)
    }

    fn has_given_up(&self) -> bool {
        self.disk.has_given_up()
    }

    fn write_as(&self, offset_bytes: u64, frames: &[Frame], persist: Persist) -> io::Result<()> {
        self.disk.write_as(offset_bytes, frames, persist)
    }

    fn set_redundant(&self, redundant: bool) {
        self.disk.set_redundant(redundant);
    }

    fn give_way(&self) -> bool {
        self.disk.calls().after()
    }

    fn write_and_flush(&self, write: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
        self.disk.write_and_flush(write)
    }

    fn write_durable(&self, offset_bytes: u64, frames: &[Frame]) -> io::Result<()> {
        self.disk.write_durable(offset_bytes, frames)
    }
}
