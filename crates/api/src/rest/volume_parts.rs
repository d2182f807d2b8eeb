//! Parts of a volume in the terms of REST 2.x.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The object that a volume or a snapshot was created from; `{}` if it was created empty.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub struct RestSource {
    /// Its id; the object may be gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub id: Option<String>,
    /// Its name; if the object is gone, the name that it had then.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub name: Option<String>,
}

/// The adjustment of a volume's priority: none.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestPriority {
    /// `+`.
    pub priority_adjustment_operator: String,
    /// 0.
    pub priority_adjustment_value: i32,
}

/// A reference to another object.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Reference {
    /// Its name.
    pub name: Option<String>,
    /// Its id, instead.
    pub id: Option<String>,
}
