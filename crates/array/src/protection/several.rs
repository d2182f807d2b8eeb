//! Changes of several groups at once: see [`crate::array::distinct`].

use super::groups::{GroupChange, GroupInfo, info, plan_change, plan_new, show_group};
use crate::array::Array;
use crate::array::distinct::{check, check_all, check_single};
use crate::error::Error;
use crate::state::State;
use crate::values::name::GroupName;

impl Array {
    /// Creates groups without volumes.
    ///
    /// # Errors
    /// Those of [`Array::create_group`], and `named_twice`.
    pub fn create_groups(
        &self,
        names: Vec<GroupName>,
        created_ms: u64,
    ) -> Result<Vec<GroupInfo>, Error> {
        check(names.iter().map(GroupName::as_str))?;
        let plan =
            |state: &State, before, name: GroupName| plan_new(state, before, name, &[], created_ms);
        self.change_all(names, plan, show_group)
    }

    /// Changes groups, all in the same way.
    ///
    /// # Errors
    /// Those of [`Array::change_group`]; `named_twice`; `only_one` for a new name.
    pub fn change_groups(
        &self,
        names: &[String],
        change: &GroupChange,
    ) -> Result<Vec<GroupInfo>, Error> {
        check_all(names)?;
        check_single(names.len(), change.name.is_some(), "a new name")?;
        let plan = |state: &State, _, name: &String| plan_change(state, name, change);
        self.change_all(names, plan, show_group)
    }

    /// Changes groups, each by the change that `change` derives from its state.
    ///
    /// # Errors
    /// Those of [`Array::change_groups`] and of `change`.
    pub fn change_each_group(
        &self,
        names: &[String],
        change: impl Fn(&GroupInfo) -> Result<GroupChange, Error>,
    ) -> Result<Vec<GroupInfo>, Error> {
        check_all(names)?;
        let plan = |state: &State, _, name: &String| {
            let (id, group) = state.group(name)?;
            let change = change(&info(state, id, group))?;
            check_single(names.len(), change.name.is_some(), "a new name")?;
            plan_change(state, name, &change)
        };
        self.change_all(names, plan, show_group)
    }
}
