//! The states of hosts that the target keeps, and the incarnation of the pool: see
//! [`crate::tables::host_states`].

use block::VolumeId;
use format::HostState;
use store::Change;

use crate::array::Array;
use crate::error::Error;
use crate::state::State;
use crate::tables::host_states::{REGISTRATIONS_MAX, StoredState, note_row};

impl Array {
    /// Begins an incarnation after a power on: nothing that was stored before belongs to it. After
    /// a takeover from another controller, continues its incarnation: all that was stored remains
    /// in force. Returns whether this is a takeover. Opening the pool has made the incarnation
    /// durable, so this commits nothing.
    ///
    /// # Errors
    /// Those of the device, if the count of an earlier program is higher than that of the pool.
    pub fn begin_incarnation(&self) -> Result<bool, Error> {
        let _turn = self.turn();
        let takes_over = self.backing().has_taken_over();
        let noted = self.read().host_states.noted_incarnation();
        if let Some(noted) = noted.filter(|_| !takes_over) {
            self.backing().raise_incarnation(noted.saturating_add(1))?;
        }
        self.write().host_states.set_incarnation(self.backing().incarnation().number);
        Ok(takes_over)
    }

    /// Returns the incarnation of the pool, which began with the last power on.
    pub fn incarnation(&self) -> u64 {
        self.read().host_states.incarnation()
    }

    /// Returns the stored state of hosts for each volume, with the incarnation that wrote it.
    pub fn host_states(&self) -> Vec<(VolumeId, HostState)> {
        self.read().host_states.all()
    }

    /// Stores the state of hosts for a volume, as of this incarnation, and replaces the previous
    /// one; durable when it returns. Does nothing if the volume no longer exists.
    ///
    /// # Errors
    /// `limit_reached`, and those of the store.
    pub fn keep_host_state(&self, volume: VolumeId, kept: Option<HostState>) -> Result<(), Error> {
        if kept.as_ref().is_some_and(|kept| kept.registrations.len() > REGISTRATIONS_MAX) {
            return Err(Error::Limit { what: "registrations", limit: REGISTRATIONS_MAX });
        }
        let of_pool = self.backing().incarnation();
        let plan = |state: &State| {
            let mut change = Change::default();
            let (all, mut note) = (&state.host_states, None);
            let incarnation = all.incarnation();
            let new = |kept| StoredState::new(volume, HostState { incarnation, ..kept });
            let stored = kept.map(new);
            let rows = all.replacement(volume, stored.as_ref());
            if let Some(rows) = rows.filter(|_| state.volumes().contains_key(&volume)) {
                note = all.next_note(of_pool);
                change.config = rows;
                change.config.extend(note.map(note_row));
            }
            Ok((change, (stored, note)))
        };
        self.change(plan, |state, (stored, note)| {
            if let Some(note) = note {
                state.host_states.set_note(note);
            }
            match stored {
                Some(stored) if state.volumes().contains_key(&volume) => {
                    state.host_states.load(volume, stored);
                }
                _ => state.host_states.remove(volume),
            }
        })
    }
}
