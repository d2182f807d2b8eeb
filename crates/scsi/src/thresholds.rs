//! Soft thresholds of pool space (SBC-3, 4.7.3.7 and 6.5.8): when usage rises above one, each I_T
//! nexus that exists at that time is notified once, on each logical unit (06h/38h/07h). One that
//! logs in later is not: the condition is the crossing, not the state, which the log page (0Ch)
//! reports.
//!
//! A crossed threshold is armed again when usage has fallen below it by the hysteresis: one
//! hundredth of the pool, at most 1 GiB. So usage that fluctuates around a threshold, as it does
//! while hosts write and deallocate, is reported once.
//!
//! ```text
//! mode page 1Ch/02h           threshold descriptor, 8 bytes, from byte 16 on
//!  0  1  5Ch: SPF, 1Ch         0  1  ENABLED bit 7, type bits 5..3, arming bits 2..0
//!  1  1  02h                   1  1  resource: 02h, used
//!  2  2  bytes that follow     2  2  zero
//!  4  1  SITUA bit 0: 0        4  4  count, in units of VPD B2h's threshold exponent
//!  5 11  zero
//! ```

use parking_lot::Mutex;

/// The unit of the counts: 1 MiB, reported by the threshold exponent of VPD B2h.
pub(crate) const SET_BYTES: u64 = 1 << 20;

/// The hysteresis is the pool's capacity divided by this.
const HYSTERESIS_SHARE: u64 = 100;
/// The upper limit of the hysteresis.
const HYSTERESIS_BYTES_MAX: u64 = 1 << 30;

/// THRESHOLD TYPE 000b (a count), THRESHOLD ARMING 001b (armed increasing), ENABLED.
const ENABLED_INCREASING: u8 = 0x81;
/// THRESHOLD RESOURCE: used LBA mapping resources, log parameter 0002h.
const USED: u8 = 0x02;
/// Bytes before the descriptors.
const HEADER_BYTES: usize = 16;

/// The state of the pool, and which thresholds are armed.
#[derive(Debug, Default)]
pub(crate) struct Thresholds(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    capacity_bytes: u64,
    /// The thresholds in percent of the capacity, and whether each is armed.
    thresholds: Vec<(u8, bool)>,
}

impl State {
    fn bytes(&self, percent: u8) -> u64 {
        (u128::from(self.capacity_bytes) * u128::from(percent) / 100) as u64
    }

    /// Updates the state. Returns whether the mode page changes, and whether a threshold was
    /// crossed.
    fn update(&mut self, percents: &[u8], used_bytes: u64, capacity_bytes: u64) -> (bool, bool) {
        let same = self.thresholds.iter().map(|(percent, _)| percent).eq(percents);
        let changed = !same || self.capacity_bytes != capacity_bytes;
        self.capacity_bytes = capacity_bytes;
        if !same {
            // A threshold below the current usage was not crossed.
            let armed = |percent: u8| used_bytes < self.bytes(percent);
            self.thresholds = percents.iter().map(|&percent| (percent, armed(percent))).collect();
        }
        let hysteresis = (capacity_bytes / HYSTERESIS_SHARE).min(HYSTERESIS_BYTES_MAX);
        let mut crossed = false;
        for index in 0..self.thresholds.len() {
            let (percent, armed) = self.thresholds[index];
            let at = self.bytes(percent);
            let arm = if armed { used_bytes < at } else { used_bytes + hysteresis < at };
            crossed |= armed && !arm;
            self.thresholds[index].1 = arm;
        }
        (changed, crossed)
    }
}

impl Thresholds {
    /// Updates the state. Returns whether the mode page changes, except for the first update, and
    /// whether a threshold was crossed.
    pub(crate) fn update(
        &self,
        percents: &[u8],
        used_bytes: u64,
        capacity_bytes: u64,
    ) -> (bool, bool) {
        let mut state = self.0.lock();
        let is_first = state.capacity_bytes == 0;
        let (changed, crossed) = state.update(percents, used_bytes, capacity_bytes);
        (changed && !is_first, crossed)
    }

    /// Returns whether there are no thresholds.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().thresholds.is_empty()
    }

    /// Returns the logical block provisioning mode page, with its current or with its changeable
    /// values, of which there are none.
    pub(crate) fn mode_page(&self, with_values: bool) -> Vec<u8> {
        let state = self.0.lock();
        let length = HEADER_BYTES + 8 * state.thresholds.len();
        let mut out = vec![0; HEADER_BYTES];
        out[..2].copy_from_slice(&[0x40 | 0x1c, 0x02]);
        out[2..4].copy_from_slice(&((length - 4) as u16).to_be_bytes());
        for &(percent, _) in state.thresholds.iter().filter(|_| with_values) {
            let count = state.bytes(percent) / SET_BYTES;
            out.extend([ENABLED_INCREASING, USED, 0, 0]);
            out.extend(u32::try_from(count).unwrap_or(u32::MAX).to_be_bytes());
        }
        out.resize(length, 0);
        out
    }
}
