//! What of the reservations is kept through a loss of power (APTPL; SPC-4, 5.13.5), and when a
//! command may say so.
//!
//! A change is made in memory at once, for all to see, but PERSISTENT RESERVE OUT answers GOOD, and
//! tells others, only when what is to be kept is durable. There is no I/O here: the command becomes
//! a [`crate::Step::Persist`], and the transport
//!
//! 1. takes what is to be written from [`DeviceServer::unsaved_reservations`], as it is *then*,
//! 2. makes it durable,
//! 3. says so with [`DeviceServer::reservations_saved`],
//! 4. goes on with the commands that waited: [`DeviceServer::resume_saved`].
//!
//! One worker does 1 to 3 for a volume at a time, so that what is written later is newer. If it
//! fails, all changes that are not durable are taken back together, and each of their commands says
//! that it failed: so what is in force is what was answered.

use std::collections::{BTreeMap, VecDeque};

use block::VolumeId;

use super::persistent::{Effect, Refusal};
use super::register::NO_ROOM;
use super::{Kind, NexusId, Registrant, Registry, Reservation, VolumeState};
use crate::nexus::InitiatorPort;
use crate::response::{Pending, Response, Rest, Step};
use crate::sense::{Sense, SenseKey};
use crate::server::DeviceServer;

/// The reservations of a volume, as they are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SavedReservations {
    /// The registrants.
    pub registrations: Vec<SavedRegistration>,
    /// The persistent reservation.
    pub reservation: Option<SavedReservation>,
}

/// A registered nexus, as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedRegistration {
    /// The initiator's end.
    pub initiator: InitiatorPort,
    /// The relative identifier of the target's end.
    pub target_port: u16,
    /// The reservation key.
    pub key: u64,
}

/// A persistent reservation, as it is kept. Its scope is always the logical unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavedReservation {
    /// The type, by its code (SPC-4, 6.15.3.4).
    pub type_code: u8,
    /// Which of the registrations holds it; `None` if all do, by its type.
    pub holder: Option<usize>,
}

/// Why reservations could not be made durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaveError {
    /// There is no room.
    NoRoom,
    /// The device or the store failed.
    Failed,
}

/// What is to be made durable.
#[derive(Debug)]
pub struct UnsavedReservations {
    volume: VolumeId,
    /// The last change that is in it.
    change: u64,
    registry: Registry,
}

impl UnsavedReservations {
    /// What to write; `None` where nothing is to be kept any more.
    pub fn record(&self) -> Option<SavedReservations> {
        self.registry.aptpl.then(|| SavedReservations::of(&self.registry))
    }
}

impl SavedReservations {
    fn of(registry: &Registry) -> Self {
        let registration = |who: &Registrant| SavedRegistration {
            initiator: who.nexus.initiator.clone(),
            target_port: who.nexus.target_port,
            key: who.key,
        };
        let position =
            |holder: &NexusId| registry.registrants.iter().position(|who| who.nexus == *holder);
        let reservation = registry.reservation.as_ref().map(|held| SavedReservation {
            type_code: held.kind as u8,
            holder: if held.kind.all_registrants() { None } else { position(&held.holder) },
        });
        let registrations = registry.registrants.iter().map(registration).collect();
        Self { registrations, reservation }
    }

    /// `None` where it makes no sense.
    fn into_registry(self) -> Option<Registry> {
        let nexus = |saved: &SavedRegistration| NexusId {
            initiator: saved.initiator.clone(),
            target_port: saved.target_port,
        };
        let reservation = match self.reservation {
            None => None,
            Some(saved) => {
                let kind = Kind::from_code(saved.type_code)?;
                // For the "all registrants" types any of them will do as the holder.
                let holder = if kind.all_registrants() { Some(0) } else { saved.holder }
                    .unwrap_or(usize::MAX);
                Some(Reservation { kind, holder: nexus(self.registrations.get(holder)?) })
            }
        };
        let registrant = |saved| Registrant { nexus: nexus(saved), key: saved.key };
        let registrants = self.registrations.iter().map(registrant).collect();
        Some(Registry { registrants, reservation, aptpl: true })
    }
}

/// How far the changes of a volume are durable.
#[derive(Debug, Default)]
pub(crate) struct Saving {
    /// Counts the changes that had to be made durable.
    last_change: u64,
    /// The durable state, which stays in force if saving fails, while there are changes that are
    /// not durable yet.
    base: Option<Box<Registry>>,
    /// What these changes do to others, by their numbers, in their order.
    waiting: VecDeque<(u64, Effect)>,
    /// Changes that were taken back, until their commands have said so.
    failed: BTreeMap<u64, SaveError>,
}

/// What became of a change.
#[derive(Debug)]
pub(crate) enum Changed {
    /// It is done: this is to be done to others.
    AtOnce(Effect),
    /// It is done when the change with this number is durable.
    MustBeSaved(u64),
}

impl VolumeState {
    /// Makes a change, wholly or not at all.
    pub(super) fn change(
        &mut self,
        act: impl FnOnce(&mut Registry) -> Result<Effect, Refusal>,
    ) -> Result<Changed, Refusal> {
        let before = self.registry.clone();
        let effect = act(&mut self.registry).inspect_err(|_| self.registry.clone_from(&before))?;
        let is_kept = before.aptpl || self.registry.aptpl;
        let saving = &mut self.saving;
        // A command that changes nothing may still rely on changes that are not durable yet.
        if saving.base.is_none() && (!is_kept || before == self.registry) {
            return Ok(Changed::AtOnce(effect));
        }
        saving.base.get_or_insert_with(|| Box::new(before));
        saving.last_change += 1;
        saving.waiting.push_back((saving.last_change, effect));
        Ok(Changed::MustBeSaved(saving.last_change))
    }

    /// Whether what is durable is kept through a loss of power.
    pub(crate) fn is_kept(&self) -> bool {
        self.saving.base.as_deref().unwrap_or(&self.registry).aptpl
    }

    fn saved(&mut self, saved: UnsavedReservations) -> Vec<Effect> {
        let saving = &mut self.saving;
        // There are later changes, or (less) the volume was destroyed meanwhile.
        saving.base = (saving.last_change > saved.change).then(|| Box::new(saved.registry));
        let count = saving.waiting.iter().take_while(|(change, _)| *change <= saved.change).count();
        saving.waiting.drain(..count).map(|(_, effect)| effect).collect()
    }

    fn take_back(&mut self, error: SaveError) {
        let saving = &mut self.saving;
        if let Some(base) = saving.base.take() {
            self.registry = *base;
            // Keys that could be read are no longer there.
            self.generation = self.generation.wrapping_add(1);
        }
        saving.failed.extend(saving.waiting.drain(..).map(|(change, _)| (change, error)));
    }
}

impl DeviceServer {
    /// Puts reservations in force that were kept, before any command. False where they make no
    /// sense.
    #[must_use]
    pub fn restore_reservations(&self, volume: VolumeId, saved: SavedReservations) -> bool {
        let Some(registry) = saved.into_registry() else { return false };
        self.reservations.with(volume, |state| state.registry = registry);
        true
    }

    /// What has to be made durable of a volume now; `None` where everything is.
    pub fn unsaved_reservations(&self, volume: VolumeId) -> Option<UnsavedReservations> {
        self.reservations.with(volume, |state| {
            state.saving.base.as_ref()?;
            let (change, registry) = (state.saving.last_change, state.registry.clone());
            Some(UnsavedReservations { volume, change, registry })
        })
    }

    /// What [`DeviceServer::unsaved_reservations`] gave is durable, or could not be made so.
    pub fn reservations_saved(&self, what: UnsavedReservations, result: Result<(), SaveError>) {
        let volume = what.volume;
        self.reservations.with(volume, |state| match result {
            Ok(()) => {
                for effect in state.saved(what) {
                    self.deliver(volume, &effect);
                }
            }
            Err(error) => state.take_back(error),
        });
    }

    /// Goes on with a command that waited for [`crate::Step::Persist`].
    pub fn resume_saved(&self, pending: Pending) -> Step {
        let Pending { wanted, volume, rest, .. } = pending;
        let Rest::Save { change, after, registers } = rest else {
            return Step::Done(Response::check(Sense::INTERNAL_FAILURE));
        };
        let failed = self.reservations.with(volume, |state| state.saving.failed.remove(&change));
        let response = match failed {
            None => Response { after, ..Response::good() },
            Some(SaveError::NoRoom) if registers => Response::check(NO_ROOM),
            // INSUFFICIENT RESOURCES
            Some(SaveError::NoRoom) => {
                Response::check(Sense::new(SenseKey::IllegalRequest, 0x55, 0x03))
            }
            Some(SaveError::Failed) => Response::check(Sense::INTERNAL_FAILURE),
        };
        self.with_format(volume, Step::Done(response.wanting(wanted)))
    }
}
