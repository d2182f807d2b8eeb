//! The refusals of changes of devices, in the form of interfaces.

use api::DeviceRefusal;
use array::Kind;
use segments::DeviceError;

use super::state_of;
use crate::cli::failure::Failure;

/// Returns the refusal of a place that can't be a device of the pool.
pub(super) fn of_place(failure: Failure) -> DeviceRefusal {
    let (kind, code) = match &failure {
        Failure::Refused(_) => (Kind::Conflict, "place_in_use"),
        _ => (Kind::Invalid, "invalid_place"),
    };
    DeviceRefusal { kind, code, message: sentence(&failure.to_string()) }
}

pub(super) fn fault(text: &str) -> DeviceRefusal {
    DeviceRefusal { kind: Kind::Fault, code: "internal", message: sentence(text) }
}

pub(super) fn refusal(error: DeviceError) -> DeviceRefusal {
    let (kind, code, instead) = match &error {
        DeviceError::Unknown(_) => {
            (Kind::NotFound, "no_such_device", "`holdfast device list` lists them")
        }
        DeviceError::OnlyOne => (Kind::Conflict, "one_device", ""),
        DeviceError::Last(_) => {
            (Kind::Conflict, "last_device", "add another one first, and let it catch up")
        }
        DeviceError::Needed { .. } => {
            (Kind::Conflict, "device_needed", "first return another one, or replace one")
        }
        DeviceError::InStripes(_) => (Kind::Conflict, "pool_in_stripes", ""),
        DeviceError::State { number, state, instead } => {
            let state = state_of(*state).name().replace('_', " ");
            let message = sentence(&format!("device {number} is {state}: {instead}"));
            return DeviceRefusal { kind: Kind::Conflict, code: "device_state", message };
        }
        DeviceError::Small { .. } => (Kind::Invalid, "device_too_small", "name a larger one"),
        DeviceError::NoRoom { .. } => (Kind::Conflict, "no_room_for_parts", "add one first"),
        DeviceError::Full(_) => {
            (Kind::Conflict, "too_many_devices", "remove one first, or replace it")
        }
        DeviceError::Io(_) => (Kind::Fault, "device_failed", "the log of the kernel says more"),
    };
    let text = match instead {
        "" => error.to_string(),
        _ => format!("{error}: {instead}"),
    };
    DeviceRefusal { kind, code, message: sentence(&text) }
}

/// Returns a message of the interface: from a capital letter to a full stop.
pub(super) fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).chain(Some('.')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_to_do() {
        for (error, code, reported) in [
            (DeviceError::Unknown(7), "no_such_device", "The pool has no device 7: `holdfast"),
            (DeviceError::OnlyOne, "one_device", "create a pool on several."),
            (DeviceError::Last(0), "last_device", "add another one first"),
            (DeviceError::Small { has_bytes: 1, needs_bytes: 2 }, "device_too_small", "larger"),
            (DeviceError::Full(3), "too_many_devices", "replace it."),
        ] {
            let refused = refusal(error);
            assert_eq!(refused.code, code);
            assert!(refused.message.contains(reported), "{}", refused.message);
        }
    }
}
