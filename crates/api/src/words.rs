//! Fields with one of a few words: what the description says of them. In answers they are texts, as
//! clients of other versions may meet others.

#![allow(dead_code, reason = "only the descriptions are used")]

use utoipa::ToSchema;

/// What a user may do: see [`array::users::Role`].
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub(crate) enum Role {
    ArrayAdmin,
    StorageAdmin,
    Readonly,
}

/// How serious an alert is: see [`array::alerts::Severity`].
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub(crate) enum AlertSeverity {
    Info,
    Warning,
    Critical,
}

/// Whether the condition of an alert holds: see [`array::alerts::AlertState`].
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub(crate) enum AlertState {
    Open,
    Closing,
    Closed,
}

/// What a controller is to the pool: see [`crate::Controller::mode`].
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub(crate) enum ControllerMode {
    Primary,
    Secondary,
}

/// Whether a controller does it: see [`crate::Controller::status`].
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub(crate) enum ControllerStatus {
    Ready,
    #[schema(rename = "not ready")]
    NotReady,
    Stopped,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::controllers::{NOT_THERE, READY, STOPPED};

    #[test]
    fn the_description_has_the_words_that_are_used() {
        let description = serde_json::to_value(crate::openapi()).unwrap();
        let words = |name: &str| description["components"]["schemas"][name]["enum"].clone();
        let all = |words: &[&str]| json!(words);
        let roles = array::users::Role::ALL.map(|role| role.name());
        let severities = array::alerts::Severity::ALL.map(|severity| severity.name());
        let states = ["open", "closing", "closed"];
        assert!(states.map(array::alerts::AlertState::of_name).iter().all(Option::is_some));
        for (name, expected) in [
            ("Role", all(&roles)),
            ("AlertSeverity", all(&severities)),
            ("AlertState", all(&states)),
            ("ControllerMode", all(&["primary", "secondary"])),
            ("ControllerStatus", all(&[READY, NOT_THERE, STOPPED])),
        ] {
            assert!(expected != Value::Null && words(name) == expected, "{name}: {}", words(name));
        }
    }
}
