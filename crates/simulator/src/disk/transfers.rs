//! What the store asks of the disk.

use super::*;

impl sys::Disk for SimDisk {
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

    fn read(&self, offset_bytes: u64, frames: &mut [FrameMut]) -> io::Result<()> {
        let mut inner = lock(&self.inner);
        inner.patience.spend(patience::READ_WORK);
        if inner.dead {
            return Err(power_failed());
        }
        assert!(offset_bytes.is_multiple_of(BLOCK), "a read that is not aligned");
        let end = offset_bytes + frames.len() as u64 * BLOCK;
        if end > inner.len_bytes {
            return Err(io::Error::other("simulated: a read past the end"));
        }
        let faults = inner.faults;
        if inner.refuses_read() {
            inner.note("refused read", offset_bytes, frames.len(), 0);
            return Err(io::Error::other("simulated: a read error that passes"));
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
        Ok(())
    }

    fn write(&self, offset_bytes: u64, frames: &[Frame]) -> io::Result<()> {
        self.put(offset_bytes, frames, false)
    }

    fn write_durable(&self, offset_bytes: u64, frames: &[Frame]) -> io::Result<()> {
        if lock(&self.inner).faults.no_fua {
            return self.write_and_flush(&mut || self.put(offset_bytes, frames, false));
        }
        self.put(offset_bytes, frames, true)
    }

    fn flush(&self) -> io::Result<()> {
        self.flush_since(self.flush_failures())
    }

    fn flush_failures(&self) -> u64 {
        lock(&self.inner).flushes_failed
    }

    fn write_and_flush(&self, write: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
        let mut result = Ok(());
        for _ in 0..FLUSH_TRIES {
            let before = self.flush_failures();
            write()?;
            result = self.flush_since(before);
            if result.is_ok() || lock(&self.inner).dead {
                break;
            }
        }
        result
    }
}
