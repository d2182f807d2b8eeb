//! Which objects a request is about.

use serde::Serialize;
use utoipa::IntoParams;

use super::{Query, Refused};

/// The objects that a request names, by their names or by their ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Selection {
    pub(crate) names: Vec<String>,
    pub(crate) ids: Vec<String>,
    /// Only those that are destroyed, or only the others.
    pub(crate) destroyed: Option<bool>,
}

/// Parameters that name objects, for the description.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "only its description is used")]
pub(crate) struct SelectionParams {
    /// The names of objects, comma-separated: at most 500.
    names: Option<String>,
    /// The ids of objects, comma-separated, instead of names.
    ids: Option<String>,
}

/// The parameter that names objects without ids, for the description.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "only its description is used")]
pub(crate) struct NameParams {
    /// The names of objects, comma-separated: at most 500.
    names: Option<String>,
}

/// The parameter that tells destroyed objects from others, for the description.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "only its description is used")]
pub(crate) struct DestroyedParam {
    /// Only what is destroyed, or only what is not; without it, both.
    destroyed: Option<bool>,
}

impl Selection {
    /// Takes `names` and `ids`, of which one at most may be given.
    pub(crate) fn take(query: &mut Query) -> Result<Self, Refused> {
        Self::take_named(query, "names", "ids")
    }

    /// Takes names and ids from parameters of other names.
    pub(crate) fn take_named(query: &mut Query, names: &str, ids: &str) -> Result<Self, Refused> {
        let (names, given) = (query.list(names)?, query.list(ids)?);
        if !names.is_empty() && !given.is_empty() {
            return Err(Refused::bad(ids, "Give names or ids, not both."));
        }
        let ids = given;
        Ok(Self { names, ids, destroyed: None })
    }

    /// Takes `destroyed` besides.
    pub(crate) fn take_with_destroyed(query: &mut Query) -> Result<Self, Refused> {
        let destroyed = query.flag("destroyed")?;
        Ok(Self { destroyed, ..Self::take(query)? })
    }

    /// Takes `names` or `ids`, of which one must be given.
    pub(crate) fn required(query: &mut Query) -> Result<Self, Refused> {
        let selection = Self::take(query)?;
        match selection.is_empty() {
            true => Err(Refused::bad("names", "The query parameter `names` or `ids` is required.")),
            false => Ok(selection),
        }
    }

    /// Whether nothing is named: all objects are meant.
    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty() && self.ids.is_empty()
    }

    /// The names, those of ids found by `name_of`.
    pub(crate) fn names(
        &self,
        name_of: impl Fn(&str) -> Option<String>,
    ) -> Result<Vec<String>, Refused> {
        let found = each(&self.ids, |id| {
            name_of(id).ok_or_else(|| Refused::bad(id, format!("The id does not exist: {id}.")))
        });
        Ok(self.names.iter().cloned().chain(found?).collect())
    }
}

/// What `one` finds for each name; all that were not found are told at once.
pub(crate) fn each<T>(
    names: &[String],
    one: impl Fn(&str) -> Result<T, Refused>,
) -> Result<Vec<T>, Refused> {
    let mut found = Ok(Vec::with_capacity(names.len()));
    for name in names {
        found = match (found, one(name)) {
            (Ok(mut found), Ok(item)) => {
                found.push(item);
                Ok(found)
            }
            (Ok(_), Err(refused)) => Err(refused),
            (Err(before), Ok(_)) => Err(before),
            (Err(before), Err(refused)) => Err(before.and(refused)),
        };
    }
    found
}

/// A thing that another names.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
pub struct Named {
    /// Its name.
    pub name: String,
}

/// What may be named, or not: `{}` then.
#[derive(Clone, Debug, Default, Serialize, utoipa::ToSchema)]
pub struct MaybeNamed {
    /// Its name, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}
