//! Discovery: the targets of a portal (RFC 7143, appendix C).

use std::ffi::{CStr, c_char};

use crate::context::{Context, c_string};
use crate::ffi;
use crate::types::{Config, Error};

/// A target and its portals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its name.
    pub name: String,
    /// Its portals, as the target listed them: `address:port,group`.
    pub portals: Vec<String>,
}

/// Asks the portal of `config` for its targets, with SendTargets=All. The target and the logical
/// unit of `config` are not used.
pub fn discover(config: &Config) -> Result<Vec<Target>, Error> {
    let context = Context::new(config, ffi::SESSION_DISCOVERY)?;
    let portal = c_string(&config.portal)?;
    let raw = context.0.as_ptr();
    // SAFETY: the context is live, and the string outlives the call. libiscsi owns the returned
    // list until it is freed, and it is copied before.
    unsafe {
        if ffi::iscsi_connect_sync(raw, portal.as_ptr()) != 0 {
            return Err(context.error("connect"));
        }
        if ffi::iscsi_login_sync(raw) != 0 {
            return Err(context.error("log in for discovery"));
        }
        let list = ffi::iscsi_discovery_sync(raw);
        if list.is_null() {
            return Err(context.error("discover"));
        }
        let targets = read_targets(list);
        ffi::iscsi_free_discovery_data(raw, list);
        ffi::iscsi_logout_sync(raw);
        Ok(targets)
    }
}

/// # Safety
/// `entry` is null, or the head of a list from libiscsi.
unsafe fn read_targets(mut entry: *const ffi::DiscoveryAddress) -> Vec<Target> {
    let mut targets = Vec::new();
    // SAFETY: guaranteed by the caller; every link is null or live.
    unsafe {
        while let Some(address) = entry.as_ref() {
            let mut portals = Vec::new();
            let mut portal: *const ffi::TargetPortal = address.portals;
            while let Some(found) = portal.as_ref() {
                portals.push(read_text(found.portal));
                portal = found.next;
            }
            targets.push(Target { name: read_text(address.target_name), portals });
            entry = address.next;
        }
    }
    targets
}

/// # Safety
/// `text` is null or a C string.
unsafe fn read_text(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: guaranteed by the caller.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}
