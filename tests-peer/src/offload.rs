//! Random writes, copies, fills, unmaps and compares over real iSCSI, compared with a model.
//!
//! Two volumes and a copy of their bytes in memory. Every operation is applied to both; at the end,
//! and after a restart of the array, every byte must agree. Ranges are from single 512-byte blocks
//! up to megabytes, unaligned, or aligned to 4 KiB or to 1 MiB.

use anyhow::{Context, Result, bail, ensure};
use libiscsi::{Cdb, CopySegment, Data, Naa, Session, Status};

use crate::linear::seen::information;
use crate::random::Random;
use crate::target::Target;

/// The bytes of a logical block.
const BLOCK: usize = 512;
/// The used logical blocks of each volume: 8 MiB.
pub const BLOCKS: u64 = 16_384;
/// The longest write, in blocks.
const WRITE_BLOCKS_MAX: u64 = 512;

/// Two volumes with sessions, and their expected content.
pub struct World {
    sessions: Vec<Session>,
    names: Vec<Naa>,
    model: Vec<Vec<u8>>,
    random: Random,
}

impl World {
    /// Connects to two volumes and fills the first half of each.
    pub fn new(targets: [&Target; 2], seed: u64) -> Result<Self> {
        let mut world = Self {
            sessions: Vec::new(),
            names: Vec::new(),
            model: Vec::new(),
            random: Random::new(seed),
        };
        for target in targets {
            let mut session = Session::connect(&target.config())?;
            world.names.push(session.naa()?.context("the volume has no NAA name")?);
            world.sessions.push(session);
            world.model.push(vec![0; BLOCKS as usize * BLOCK]);
        }
        ensure!(world.names[0] != world.names[1], "two volumes have the same name");
        for volume in 0..2 {
            // Removes what an earlier test left.
            let status = world.sessions[volume].unmap(&[(0, BLOCKS as u32)])?;
            ensure!(status == Status::Good, "UNMAP of all ended with {status}");
            for start in (0..BLOCKS / 2).step_by(WRITE_BLOCKS_MAX as usize) {
                let bytes = world.random.bytes(WRITE_BLOCKS_MAX as usize * BLOCK);
                world.write(volume, start, bytes)?;
            }
        }
        Ok(world)
    }

    /// Executes `count` random operations.
    pub fn run(&mut self, count: usize) -> Result<()> {
        for index in 0..count {
            let volume = self.random.below(2) as usize;
            let kind = self.random.below(100);
            let result = match kind {
                0..30 => self.random_write(volume),
                30..50 => self.random_fill(volume),
                50..65 => self.random_unmap(volume),
                65..85 => self.random_copy(),
                85..92 => self.random_compare_and_write(volume),
                _ => self.random_read(volume),
            };
            result.with_context(|| format!("operation {index} (kind {kind}, volume {volume})"))?;
        }
        Ok(())
    }

    /// Compares all bytes of both volumes.
    pub fn verify(&mut self) -> Result<()> {
        for volume in 0..2 {
            for start in (0..BLOCKS).step_by(1024) {
                self.compare(volume, start, 1024.min(BLOCKS - start))?;
            }
        }
        Ok(())
    }

    /// Reconnects after the array was restarted.
    pub fn reconnect(&mut self, targets: [&Target; 2]) -> Result<()> {
        for (index, target) in targets.iter().enumerate() {
            let mut session = Session::connect(&target.config())?;
            let name = session.naa()?;
            ensure!(name == Some(self.names[index]), "the volume's NAA name changed: {name:?}");
            self.sessions[index] = session;
        }
        Ok(())
    }

    /// Returns a range of up to `longest` blocks, often aligned to 4 KiB or 1 MiB.
    fn range(&mut self, longest: u64) -> (u64, u64) {
        let align = [1, 1, 8, 8, 2048][self.random.below(5) as usize].min(longest);
        let length = (1 + self.random.below(longest)).next_multiple_of(align).min(longest);
        let start = self.random.below(BLOCKS - length + 1) / align * align;
        (start, length)
    }

    fn bytes(&self, volume: usize, start: u64, blocks: u64) -> std::ops::Range<usize> {
        debug_assert!(volume < self.model.len());
        let first = start as usize * BLOCK;
        first..first + blocks as usize * BLOCK
    }

    fn write(&mut self, volume: usize, start: u64, bytes: Vec<u8>) -> Result<()> {
        let range = self.bytes(volume, start, (bytes.len() / BLOCK) as u64);
        self.model[volume][range].copy_from_slice(&bytes);
        Ok(self.sessions[volume].write(start, bytes, BLOCK as u32)?)
    }

    fn random_write(&mut self, volume: usize) -> Result<()> {
        let (start, blocks) = self.range(WRITE_BLOCKS_MAX);
        let bytes = self.random.bytes(blocks as usize * BLOCK);
        self.write(volume, start, bytes)
    }

    /// WRITE SAME (16): zeros, one repeated byte, or a random block; sometimes with UNMAP.
    fn random_fill(&mut self, volume: usize) -> Result<()> {
        let (start, blocks) = self.range(4096);
        let block = match self.random.below(3) {
            0 => vec![0; BLOCK],
            1 => vec![self.random.bits() as u8; BLOCK],
            _ => self.random.bytes(BLOCK),
        };
        let unmap = self.random.below(3) == 0 && block.iter().all(|byte| *byte == 0);
        let range = self.bytes(volume, start, blocks);
        for piece in self.model[volume][range].chunks_mut(BLOCK) {
            piece.copy_from_slice(&block);
        }
        let session = &mut self.sessions[volume];
        good(session.write_same(start, blocks as u32, block, unmap)?)
    }

    fn random_unmap(&mut self, volume: usize) -> Result<()> {
        let mut ranges = Vec::new();
        for _ in 0..1 + self.random.below(4) {
            let (start, blocks) = self.range(3000);
            let range = self.bytes(volume, start, blocks);
            self.model[volume][range].fill(0);
            ranges.push((start, blocks as u32));
        }
        good(self.sessions[volume].unmap(&ranges)?)
    }

    /// EXTENDED COPY of one or a few segments, among the volumes, without overlap in one volume.
    fn random_copy(&mut self) -> Result<()> {
        let mut segments = Vec::new();
        for _ in 0..1 + self.random.below(3) {
            let (from, to) = (self.random.below(2) as usize, self.random.below(2) as usize);
            let (source, length) = self.range(4096);
            let destination = self.random.below(BLOCKS - length + 1);
            // Often with the alignment of the source, so that whole leaves can be shared.
            let destination = if self.random.below(2) == 0 {
                (destination / 2048 * 2048 + source % 2048).min(BLOCKS - length)
            } else {
                destination
            };
            if from == to && source < destination + length && destination < source + length {
                continue;
            }
            let bytes = self.model[from][self.bytes(from, source, length)].to_vec();
            let range = self.bytes(to, destination, length);
            self.model[to][range].copy_from_slice(&bytes);
            segments.push(CopySegment {
                source: from as u16,
                destination: to as u16,
                blocks: length as u16,
                source_lba: source,
                destination_lba: destination,
            });
        }
        if segments.is_empty() {
            return Ok(());
        }
        let names = self.names.clone();
        good(self.sessions[0].extended_copy(&names, &segments, BLOCK as u32)?)
    }

    /// COMPARE AND WRITE that matches, or one that must not change anything.
    fn random_compare_and_write(&mut self, volume: usize) -> Result<()> {
        let (start, blocks) = self.range(8);
        let range = self.bytes(volume, start, blocks);
        let mut expected = self.model[volume][range.clone()].to_vec();
        let data = self.random.bytes(expected.len());
        let fits = self.random.below(2) == 0;
        let at = self.random.below(expected.len() as u64) as usize;
        if fits {
            self.model[volume][range].copy_from_slice(&data);
        } else {
            expected[at] ^= 0x40;
        }
        let session = &mut self.sessions[volume];
        match session.compare_and_write(start, blocks as u8, &expected, &data)? {
            Status::Good if fits => Ok(()),
            Status::CheckCondition(sense) if !fits => {
                ensure!(sense.key == 0x0E && sense.asc_ascq == 0x1D00, "sense {sense:?}");
                let told = information(&sense.raw);
                ensure!(
                    told == Some(at as u32),
                    "the first difference is at {at}, but {told:?} was reported"
                );
                Ok(())
            }
            status => bail!("it ended with {status} (fits: {fits})"),
        }
    }

    fn random_read(&mut self, volume: usize) -> Result<()> {
        let (start, blocks) = self.range(2048);
        self.compare(volume, start, blocks)
    }

    fn compare(&mut self, volume: usize, start: u64, blocks: u64) -> Result<()> {
        let read = self.sessions[volume].read(start, blocks as u32, BLOCK as u32)?;
        let expected = &self.model[volume][self.bytes(volume, start, blocks)];
        let Some(at) = (0..expected.len()).find(|at| read.get(*at) != expected.get(*at)) else {
            return Ok(());
        };
        bail!(
            "volume {volume}, block {}, byte {}: read {:02X?}, written {:02X?}",
            start + (at / BLOCK) as u64,
            at % BLOCK,
            read.get(at..).unwrap_or_default().iter().take(8).collect::<Vec<_>>(),
            expected.get(at..).unwrap_or_default().iter().take(8).collect::<Vec<_>>(),
        );
    }
}

/// READ CAPACITY, GET LBA STATUS and Block Limits agree with what was done.
pub fn lba_status(target: &Target) -> Result<String> {
    let mut session = Session::connect(&target.config())?;
    ensure!(session.capacity()?.thin, "READ CAPACITY (16) does not report a thin volume (LBPME)");
    good(session.unmap(&[(0, 32_768)])?)?;
    session.write(2048, vec![1; 1 << 20], BLOCK as u32)?;
    let first = *session.lba_status(0)?.first().context("GET LBA STATUS returned no descriptor")?;
    ensure!(first.lba == 0 && first.provisioning == 1, "an unmapped block: {first:?}");
    ensure!(first.blocks == 2048, "unmapped up to 1 MiB, where data begins: {first:?}");
    let mapped =
        *session.lba_status(2048)?.first().context("GET LBA STATUS returned no descriptor")?;
    ensure!(mapped.provisioning == 0 && mapped.blocks >= 2048, "a written MiB: {mapped:?}");
    Ok(String::new())
}

/// An invalid command is refused, and the next one is served.
pub fn nonsense(target: &Target) -> Result<String> {
    let mut session = Session::connect(&target.config())?;
    let mut random = Random::new(7);
    let mut refused = 0;
    for _ in 0..400 {
        let mut bytes = random.bytes(16);
        // Any operation code except those that write or wait: this volume has other tests' data.
        bytes[0] = [0x12, 0x1A, 0x25, 0x28, 0x4D, 0x5A, 0x5E, 0x84, 0x88, 0x9E, 0xA0, 0xA3]
            [random.below(12) as usize];
        let length = match bytes[0] >> 5 {
            0 => 6,
            1 | 2 => 10,
            5 => 12,
            _ => 16,
        };
        let cdb = Cdb::raw(&bytes[..length], libiscsi::Direction::In);
        let answer = session.execute(cdb, Data::In(vec![0; 4096]))?;
        match answer.status {
            Status::CheckCondition(sense) => {
                ensure!(sense.key == 5, "{bytes:02X?} got sense {sense:?}");
                refused += 1;
            }
            Status::Good => {}
            status => bail!("{bytes:02X?} ended with {status}"),
        }
    }
    ensure!(session.test_unit_ready()? == Status::Good, "the unit is not ready afterwards");
    Ok(format!("{refused} of 400 refused"))
}

/// Returns an error unless the command ended with GOOD.
pub fn good(status: Status) -> Result<()> {
    ensure!(status == Status::Good, "it ended with {status}");
    Ok(())
}

/// Returns an error unless the command ended with this sense key, and this ASC and ASCQ.
pub fn refused(status: &Status, wanted: (u8, u16)) -> Result<()> {
    let told = match status {
        Status::CheckCondition(sense) => Some((sense.key, sense.asc_ascq)),
        _ => None,
    };
    let (key, code) = wanted;
    ensure!(told == Some(wanted), "it ended with {status}, not with {key:02X}h/{code:04X}h");
    Ok(())
}
