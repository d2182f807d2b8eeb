//! Changes of several hosts or connections at once: see [`crate::array::distinct`].

use std::cell::RefCell;

use super::connections::{
    ConnectionInfo, connect, disconnect, plan_connection, plan_disconnection,
};
use super::free_luns::HostLuns;
use super::hosts::{
    HostChange, HostInfo, NewHost, plan_host, plan_host_change, plan_host_end, show_host,
    show_new_host,
};
use crate::array::Array;
use crate::array::distinct::{check, check_all, check_pairs, check_single};
use crate::error::Error;
use crate::state::State;

impl Array {
    /// Creates hosts.
    ///
    /// # Errors
    /// Those of [`Array::create_host`]; `named_twice`; `only_one` for initiators.
    pub fn create_hosts(&self, new: Vec<NewHost>) -> Result<Vec<HostInfo>, Error> {
        check(new.iter().map(|new| new.name.as_str()))?;
        let have_initiators = new.iter().any(|new| !new.initiators.is_empty());
        check_single(new.len(), have_initiators, "these initiators")?;
        self.change_all(new, plan_host, show_new_host)
    }

    /// Changes hosts, all in the same way.
    ///
    /// # Errors
    /// Those of [`Array::change_host`]; `named_twice`; `only_one` for a name and initiators.
    pub fn change_hosts(
        &self,
        names: &[String],
        change: &HostChange,
    ) -> Result<Vec<HostInfo>, Error> {
        check_all(names)?;
        check_single(names.len(), change.name.is_some(), "a new name")?;
        let has_initiators = change.initiators.as_ref().is_some_and(|all| !all.is_empty())
            || !change.add_initiators.is_empty();
        check_single(names.len(), has_initiators, "these initiators")?;
        let plan = |state: &State, _, name: &String| plan_host_change(state, name, change.clone());
        self.change_all(names, plan, show_host)
    }

    /// Deletes hosts.
    ///
    /// # Errors
    /// Those of [`Array::delete_host`], and `named_twice`.
    pub fn delete_hosts(&self, names: &[String]) -> Result<(), Error> {
        check_all(names)?;
        let plan = |state: &State, _, name: &String| plan_host_end(state, name);
        self.change_all(names, plan, State::remove_host).map(|_| ())
    }

    /// Connects volumes to hosts, as pairs (volume, host); each under `lun`, or like
    /// [`Array::connect`].
    ///
    /// # Errors
    /// Those of [`Array::connect`]; `named_twice`; `lun_in_use` if two volumes of one host would
    /// get it.
    pub fn connect_all(
        &self,
        pairs: &[(String, String)],
        lun: Option<u16>,
    ) -> Result<Vec<ConnectionInfo>, Error> {
        check_pairs(pairs)?;
        let luns = RefCell::new(HostLuns::default());
        let plan = |state: &State, _, (volume, host): &(String, String)| {
            plan_connection(state, volume, host, lun, &mut luns.borrow_mut())
        };
        self.change_all(pairs, plan, connect)
    }

    /// Disconnects volumes from hosts, as pairs (volume, host).
    ///
    /// # Errors
    /// Those of [`Array::disconnect`], and `named_twice`.
    pub fn disconnect_all(&self, pairs: &[(String, String)]) -> Result<(), Error> {
        check_pairs(pairs)?;
        let plan = |state: &State, _, (volume, host): &(String, String)| {
            plan_disconnection(state, volume, host)
        };
        self.change_all(pairs, plan, disconnect).map(|_| ())
    }
}
