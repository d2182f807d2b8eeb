//! SCSI reservations that survive a restart. The array stores them with their volume, without
//! knowing what they mean.

use block::VolumeId;
use store::Change;

use crate::record::{self, ReservationPart};
use crate::state::State;
use crate::{Array, Error};

/// The most registrations kept for a volume: they must fit one change of the store.
pub const REGISTRATIONS_MAX: usize = 512;
/// How many registrations one record holds: a value of the store has 64 KiB, and a registration
/// with the longest names takes less than 300 bytes.
const PART_REGISTRATIONS: usize = 200;

/// A key of the store, and its new value; `None` removes it.
type Row = (Vec<u8>, Option<Vec<u8>>);

/// The reservations of a volume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reservations {
    /// The type code of the persistent reservation, if there is one.
    pub type_code: Option<u8>,
    /// The registration that holds it, unless all do.
    pub holder: Option<usize>,
    /// The registrants.
    pub registrations: Vec<Registration>,
}

/// A registered I_T nexus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    /// The iSCSI name of the initiator.
    pub initiator: String,
    /// The initiator's part of the session identifier.
    pub isid: [u8; 6],
    /// The relative identifier of the target port.
    pub target_port: u16,
    /// The reservation key.
    pub key: u64,
}

impl Reservations {
    /// How many records it takes.
    fn part_count(&self) -> usize {
        self.registrations.len().div_ceil(PART_REGISTRATIONS).max(1)
    }

    fn rows(&self, volume: VolumeId) -> Result<Vec<Row>, Error> {
        let mut chunks = self.registrations.chunks(PART_REGISTRATIONS);
        let row = |number: usize| {
            let part = ReservationPart {
                parts: self.part_count(),
                type_code: self.type_code,
                holder: self.holder,
                registrations: chunks.next().unwrap_or_default().to_vec(),
            };
            Ok((record::reservation_key(volume, number), Some(record::reservation(&part)?)))
        };
        (0..self.part_count()).map(row).collect()
    }

    /// Joins the stored parts, the first one first; `None` if they do not match.
    pub(crate) fn from_parts(parts: Vec<ReservationPart>) -> Option<Self> {
        let first = parts.first()?;
        let (type_code, holder) = (first.type_code, first.holder);
        let fits = |part: &ReservationPart| {
            (part.parts, part.type_code, part.holder) == (parts.len(), type_code, holder)
        };
        if !parts.iter().all(fits) {
            return None;
        }
        let registrations: Vec<_> = parts.into_iter().flat_map(|p| p.registrations).collect();
        let is_held = holder.is_none_or(|holder| holder < registrations.len());
        is_held.then_some(Self { type_code, holder, registrations })
    }
}

/// The removal of all records of a volume.
pub(crate) fn removal(state: &State, volume: VolumeId) -> Vec<Row> {
    let count = state.reservations.get(&volume).map_or(0, Reservations::part_count);
    (0..count).map(|number| (record::reservation_key(volume, number), None)).collect()
}

impl Array {
    /// The reservations that are kept, by the volumes they belong to.
    pub fn reservations(&self) -> Vec<(VolumeId, Reservations)> {
        let state = self.state.read();
        let mut all: Vec<_> =
            state.reservations.iter().map(|(id, kept)| (*id, kept.clone())).collect();
        all.sort_by_key(|(id, _)| *id);
        all
    }

    /// Stores a volume's reservations, replacing the old ones; durable when it returns. Does
    /// nothing if the volume no longer exists.
    ///
    /// # Errors
    /// `limit_reached`, and those of the store.
    pub fn keep_reservations(
        &self,
        volume: VolumeId,
        kept: Option<Reservations>,
    ) -> Result<(), Error> {
        if kept.as_ref().is_some_and(|kept| kept.registrations.len() > REGISTRATIONS_MAX) {
            return Err(Error::Limit { what: "registrations", limit: REGISTRATIONS_MAX });
        }
        let plan = |state: &State| {
            let mut change = Change::default();
            if state.volumes.contains_key(&volume)
                && state.reservations.get(&volume) != kept.as_ref()
            {
                let rows = kept.as_ref().map_or(Ok(Vec::new()), |kept| kept.rows(volume))?;
                change.config = removal(state, volume).into_iter().skip(rows.len()).collect();
                change.config.extend(rows);
            }
            Ok((change, kept))
        };
        self.change(plan, |state, kept| match kept {
            Some(kept) if state.volumes.contains_key(&volume) => {
                state.reservations.insert(volume, kept);
            }
            _ => drop(state.reservations.remove(&volume)),
        })
    }
}
