//! The volumes of the commands: 64 TiB each.

use anyhow::{Context, Result, ensure};
use libiscsi::{Cdb, Data, Naa, Session, Status};

use super::lists::{Segment, copy_list};
use crate::array::Array;
use crate::random::Random;
use crate::target::{self, Target};

/// Blocks of a volume: 64 TiB.
pub const BLOCKS: u64 = (64 << 40) / 512;
/// The part of a volume with random data throughout: 2 GiB from the beginning.
const DENSE_BLOCKS: u64 = (2 << 30) / 512;
/// The random data itself, which is copied until the region is full: 32 MiB.
const RANDOM_BLOCKS: u64 = (32 << 20) / 512;
/// The blocks of one WRITE while filling: 4 MiB.
const WRITE_BLOCKS: u64 = 8192;
/// The number of clones and snapshots.
const IMAGES: usize = 32;
/// The number of 4 KiB blocks written before each: half of them in the dense region.
const WRITES: usize = 32;

/// The volume of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// A volume that was never written.
    Empty,
    /// One that is full of one repeated block.
    Same,
    /// One with many clones, and writes between them.
    Cloned,
    /// One with many snapshots, and writes between them.
    Snapshots,
}

impl On {
    pub const ALL: [Self; 4] = [Self::Empty, Self::Same, Self::Cloned, Self::Snapshots];

    /// Returns its name in rows.
    pub fn says(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Same => "one block",
            Self::Cloned => "clones",
            Self::Snapshots => "snapshots",
        }
    }

    /// Returns the volume's name.
    pub fn volume(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::Same => "same",
            Self::Cloned => "cloned",
            Self::Snapshots => "snapped",
        }
    }
}

/// Returns the block of which one volume is full.
pub fn repeated_block() -> Vec<u8> {
    Random::new(3).bytes(512)
}

/// Returns the volumes in the order of [`On::ALL`], connected to a separate host.
pub fn units(array: &Array, watched: &Target) -> Result<[Target; 4]> {
    let other = target::second(&watched.initiator).replace("second", "bounded");
    array.host("bounded", &[&other])?;
    let unit = |on: On| {
        let target = array.volume(on.volume(), "64T", "bounded", on as u16 + 1)?;
        Ok(target.as_initiator(&other))
    };
    let units: Result<Vec<Target>> = On::ALL.into_iter().map(unit).collect();
    units?.try_into().ok().context("the number of volumes is fixed")
}

/// Returns the NAA names of all volumes, in the order of [`On::ALL`].
pub fn names(units: &[Target; 4]) -> Result<Vec<Naa>> {
    let name = |unit: &Target| {
        Session::connect(&unit.config())?.naa()?.context("the volume has no NAA name")
    };
    units.iter().map(name).collect()
}

/// Fills one volume with one block, and makes another dense.
pub fn fill_two(units: &[Target; 4]) -> Result<String> {
    let names = names(units)?;
    let mut same = Session::connect(&units[On::Same as usize].config())?;
    same.execute(Cdb::write_same_16(0, 0, false), Data::Out(repeated_block()))?;
    let mut dense = Session::connect(&units[On::Cloned as usize].config())?;
    fill_densely(&mut dense, &names, On::Cloned, &mut Random::new(4))?;
    Ok("64 TiB each".into())
}

/// Gives the volumes the content that their rows name.
pub fn fill(array: &Array, units: &[Target; 4], names: &[Naa]) -> Result<String> {
    let mut same = Session::connect(&units[On::Same as usize].config())?;
    same.execute(Cdb::write_same_16(0, 0, false), Data::Out(repeated_block()))?;
    let mut random = Random::new(4);
    for on in [On::Cloned, On::Snapshots] {
        let mut session = Session::connect(&units[on as usize].config())?;
        fill_densely(&mut session, names, on, &mut random)?;
        for image in 0..IMAGES {
            write_some(&mut session, &mut random)?;
            make_image(array, on, image)?;
        }
    }
    Ok("64 TiB each".into())
}

fn fill_densely(session: &mut Session, names: &[Naa], on: On, random: &mut Random) -> Result<()> {
    for lba in (0..RANDOM_BLOCKS).step_by(WRITE_BLOCKS as usize) {
        session.write(lba, random.bytes(WRITE_BLOCKS as usize * 512), 512)?;
    }
    let copies = 1..DENSE_BLOCKS / RANDOM_BLOCKS;
    let segments: Vec<Segment> = copies
        .map(|n| Segment {
            on,
            bytes: (RANDOM_BLOCKS * 512) as u32,
            from: 0,
            to: n * RANDOM_BLOCKS,
        })
        .collect();
    let list = copy_list(names, &segments);
    let done = session.execute(Cdb::extended_copy(list.len() as u32), Data::Out(list))?;
    ensure!(done.status == Status::Good, "EXTENDED COPY: {:?}", done.status);
    Ok(())
}

fn write_some(session: &mut Session, random: &mut Random) -> Result<()> {
    for n in 0..WRITES {
        let within = if n % 2 == 0 { DENSE_BLOCKS } else { BLOCKS };
        session.write(8 * random.below(within / 8), random.bytes(4096), 512)?;
    }
    Ok(())
}

fn make_image(array: &Array, on: On, image: usize) -> Result<()> {
    let name = format!("s{image}");
    array.verb(&["snapshot", "create", on.volume(), "--suffix", &name])?;
    if on == On::Cloned {
        let of = format!("{}.{name}", on.volume());
        array.verb(&["volume", "clone", &of, &format!("clone-{image}")])?;
    }
    Ok(())
}
