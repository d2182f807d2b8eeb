//! Unit attentions: the sense data that reports an event to a host (SAM-5, 5.14; SPC-4, annex F).

use target::Attention;

use crate::sense::{Sense, SenseKey};

/// Returns the sense data of an event.
pub(crate) fn sense(what: Attention) -> Sense {
    let (asc, ascq) = match what {
        // POWER ON, RESET, OR BUS DEVICE RESET OCCURRED. Unknown nexuses also get this one, and
        // libiscsi's tools give up on POWER ON OCCURRED (29h/01h).
        Attention::PowerOn => (0x29, 0x00),
        Attention::TargetReset => (0x29, 0x02), // SCSI BUS RESET OCCURRED
        Attention::UnitReset => (0x29, 0x03),   // BUS DEVICE RESET FUNCTION OCCURRED
        Attention::NexusLoss => (0x29, 0x07),   // I_T NEXUS LOSS OCCURRED
        Attention::Capacity => (0x2a, 0x09),    // CAPACITY DATA HAS CHANGED
        Attention::Identity => (0x3f, 0x03),    // INQUIRY DATA HAS CHANGED
        Attention::Units => (0x3f, 0x0e),       // REPORTED LUNS DATA HAS CHANGED
        Attention::Settings => (0x2a, 0x01),    // MODE PARAMETERS CHANGED
        Attention::SoftThreshold => (0x38, 0x07), // THIN PROVISIONING SOFT THRESHOLD REACHED
        Attention::AccessState => (0x2a, 0x06), // ASYMMETRIC ACCESS STATE CHANGED
        Attention::ReservationsPreempted => (0x2a, 0x03), // RESERVATIONS PREEMPTED
        Attention::ReservationsReleased => (0x2a, 0x04), // RESERVATIONS RELEASED
        Attention::RegistrationsPreempted => (0x2a, 0x05), // REGISTRATIONS PREEMPTED
    };
    Sense::new(SenseKey::UnitAttention, asc, ascq)
}
