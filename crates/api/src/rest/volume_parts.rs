//! What parts of a volume are called in REST 2.x.

use serde::Serialize;
use utoipa::ToSchema;

/// What a volume or a snapshot was made of; `{}` where it was made empty.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub struct RestSource {
    /// Its id; it may be gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its name; the one that it had then, if it is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// What is added to the priority of a volume: nothing.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestPriority {
    /// `+`.
    pub priority_adjustment_operator: String,
    /// 0.
    pub priority_adjustment_value: i32,
}
