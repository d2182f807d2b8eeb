//! Parameters that select the objects of a request.

use serde::Serialize;
use utoipa::IntoParams;

use super::{Query, Refused};

/// The objects that a request names, by their names or by their ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Selection {
    pub(crate) names: Vec<String>,
    pub(crate) ids: Vec<String>,
    /// Selects only destroyed objects, or only the others.
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

/// The parameter that names objects that have no ids, for the description.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "only its description is used")]
pub(crate) struct NameParams {
    /// The names of objects, comma-separated: at most 500.
    names: Option<String>,
}

/// The parameter that selects destroyed objects, for the description.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "only its description is used")]
pub(crate) struct DestroyedParam {
    /// Only destroyed ones, or only the others; if left out, both.
    destroyed: Option<bool>,
}

impl Selection {
    /// Takes `names` and `ids`; at most one of them may be given.
    pub(crate) fn take(query: &mut Query) -> Result<Self, Refused> {
        Self::take_named(query, "names", "ids")
    }

    /// Takes names and ids from parameters with other names.
    pub(crate) fn take_named(query: &mut Query, names: &str, ids: &str) -> Result<Self, Refused> {
        let (names, given) = (query.list(names)?, query.list(ids)?);
        if !names.is_empty() && !given.is_empty() {
            return Err(Refused::bad(ids, "Give names or ids, not both."));
        }
        let ids = given;
        Ok(Self { names, ids, destroyed: None })
    }

    /// Takes `destroyed` as well.
    pub(crate) fn take_with_destroyed(query: &mut Query) -> Result<Self, Refused> {
        let destroyed = query.flag("destroyed")?;
        Ok(Self { destroyed, ..Self::take(query)? })
    }

    /// Takes `names` or `ids`; one of them must be given.
    pub(crate) fn required(query: &mut Query) -> Result<Self, Refused> {
        let selection = Self::take(query)?;
        match selection.is_empty() {
            true => Err(Refused::bad("names", "The query parameter `names` or `ids` is required.")),
            false => Ok(selection),
        }
    }

    /// Returns whether no object is named, which means all.
    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty() && self.ids.is_empty()
    }

    /// Returns the names; `name_of` finds the name of an id.
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

/// Returns the result of `one` for each name. Reports all names that were not found at once.
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

/// A reference to an object.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
pub struct Named {
    /// The object's name.
    pub name: String,
}

/// An optional reference: `{}` if there is none.
#[derive(Clone, Debug, Default, Serialize, utoipa::ToSchema)]
pub struct MaybeNamed {
    /// Its name, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub name: Option<String>,
}
