//! A login that does not block.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::rc::Rc;

use crate::context::{Context, c_string, library_error};
use crate::ffi;
use crate::session::Session;
use crate::types::{Config, Error, Login};

impl Session {
    /// Begins the login of [`Session::connect`] without waiting for it: a [`crate::Poller`] drives
    /// it, and [`Session::login`] returns its state.
    pub fn begin(config: &Config) -> Result<Self, Error> {
        let context = Context::new(config, ffi::SESSION_NORMAL)?;
        let portal = c_string(&config.portal)?;
        let login = Rc::new(Cell::new(Login::Pending));
        let told: *const Cell<Login> = Rc::as_ptr(&login);
        // SAFETY: the context is live, and the string outlives the call, which copies it. The cell
        // lives as long as the session, which destroys the context before it.
        let result = unsafe {
            ffi::iscsi_full_connect_async(
                context.0.as_ptr(),
                portal.as_ptr(),
                c_int::from(config.lun),
                on_login_end,
                told.cast_mut().cast(),
            )
        };
        if result != 0 {
            return Err(context.error("connect"));
        }
        Ok(Self::of(context, login, config.lun))
    }

    /// Returns the state of the login.
    pub fn login(&self) -> Login {
        match self.login.get() {
            Login::Pending if self.is_lost() => Login::Failed,
            login => login,
        }
    }

    /// Returns libiscsi's last error message, for a failed login.
    pub fn login_error(&self) -> Error {
        library_error(self.context, "connect")
    }
}

/// libiscsi calls this when a login has ended.
// SAFETY: callers (libiscsi alone) pass as `private` the cell of the session, on its thread.
unsafe extern "C" fn on_login_end(
    _context: *mut ffi::Context,
    status: c_int,
    _data: *mut c_void,
    private: *mut c_void,
) {
    // SAFETY: the session holds the cell until its context is destroyed.
    let login = unsafe { &*private.cast::<Cell<Login>>() };
    login.set(if status == 0 { Login::Done } else { Login::Failed });
}
