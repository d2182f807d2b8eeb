//! Members of groups: pairs of a group and a member, which several resources list and change.

use std::collections::HashSet;

use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use super::{Listed, Named, Query, Refused, Selection};

/// A member of a group.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestMember {
    /// The group.
    pub group: Named,
    /// The member.
    pub member: Named,
}

impl RestMember {
    pub(super) fn new(group: &str, member: String) -> Self {
        Self { group: Named { name: group.to_owned() }, member: Named { name: member } }
    }

    /// Returns the requested members of a group, by their names; all of them if `only` is empty.
    pub(super) fn all(group: &str, members: Vec<String>, only: &Only) -> Vec<Self> {
        let is_wanted = |name: &String| only.has(name);
        let mut members: Vec<String> = members.into_iter().filter(is_wanted).collect();
        members.sort_unstable();
        members.into_iter().map(|member| Self::new(group, member)).collect()
    }
}

impl Listed for RestMember {
    fn key(&self) -> String {
        format!("{}/{}", self.group.name, self.member.name)
    }
}

/// Names, in any case; no names means all. One look-up, however many there are.
#[derive(Clone, Debug, Default)]
pub(super) struct Only(HashSet<String>);

impl Only {
    pub(super) fn of(names: &[String]) -> Self {
        Self(names.iter().map(|name| name.to_ascii_lowercase()).collect())
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.is_empty() || self.0.contains(&name.to_ascii_lowercase())
    }
}

/// Parameters that name groups and members, for the description.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "only its description is used")]
pub(super) struct MemberParams {
    /// The names of groups, comma-separated.
    group_names: Option<String>,
    /// The ids of groups, comma-separated, instead; host groups have none.
    group_ids: Option<String>,
    /// The names of members, comma-separated.
    member_names: Option<String>,
    /// The ids of members, comma-separated, instead; only volumes have ids.
    member_ids: Option<String>,
}

/// The groups and members of a request.
#[derive(Debug)]
pub(super) struct Members {
    pub(super) groups: Selection,
    pub(super) members: Selection,
}

impl Members {
    pub(super) fn take(query: &mut Query) -> Result<Self, Refused> {
        Ok(Self {
            groups: Selection::take_named(query, "group_names", "group_ids")?,
            members: Selection::take_named(query, "member_names", "member_ids")?,
        })
    }

    pub(super) fn required(query: &mut Query) -> Result<Self, Refused> {
        let members = Self::take(query)?;
        if members.groups.is_empty() || members.members.is_empty() {
            let text = "Both `group_names` and `member_names` are required.";
            return Err(Refused::bad("group_names", text));
        }
        Ok(members)
    }

    /// Returns the names of groups and members, for kinds that have no ids.
    pub(super) fn names(&self) -> Result<(Vec<String>, Vec<String>), Refused> {
        Ok((self.groups.names(|_| None)?, self.members.names(|_| None)?))
    }
}
