//! Fields that have one of a few words, for the description. In responses they are texts, because
//! clients may meet the words of other versions.

#![allow(dead_code, reason = "only the descriptions are used")]

use utoipa::ToSchema;

/// The role of a user: see [`array::users::Role`].
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub(crate) enum Role {
    ArrayAdmin,
    StorageAdmin,
    Readonly,
}

/// The severity of an alert: see [`array::alerts::Severity`].
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub(crate) enum AlertSeverity {
    Info,
    Warning,
    Critical,
}

/// The state of an alert: see [`array::alerts::AlertState`].
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub(crate) enum AlertState {
    Open,
    Closing,
    Closed,
}

/// The mode of a controller: see [`crate::Controller::mode`].
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub(crate) enum ControllerMode {
    Primary,
    Secondary,
}

/// The status of a controller: see [`crate::Controller::status`].
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
    fn the_description_has_all_words_in_use() {
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
