//! A libiscsi context, before it becomes a session.

use std::ffi::{CStr, CString, c_int};
use std::ptr::NonNull;

use crate::ffi;
use crate::types::{Config, Digest, Error};

/// A context that is not yet a session: destroyed when dropped.
pub(crate) struct Context(pub(crate) NonNull<ffi::Context>);

impl Context {
    /// Creates a context, and sets its names, its secret and its limits.
    pub(crate) fn new(config: &Config, kind: c_int) -> Result<Self, Error> {
        let initiator = c_string(&config.initiator)?;
        let target = c_string(&config.target)?;
        let timeout_s = c_int::try_from(config.timeout_s).unwrap_or(c_int::MAX);
        // SAFETY: the strings outlive the calls, which copy them; the context is live after the
        // first one succeeded.
        unsafe {
            let context = NonNull::new(ffi::iscsi_create_context(initiator.as_ptr()))
                .ok_or(Error::Argument("libiscsi refuses this initiator name"))?;
            let this = Self(context);
            let raw = context.as_ptr();
            ffi::iscsi_set_noautoreconnect(raw, 1);
            ffi::iscsi_set_timeout(raw, timeout_s);
            let digest = match config.digest {
                Digest::None => ffi::DIGEST_NONE,
                Digest::Crc32c => ffi::DIGEST_CRC32C,
            };
            if ffi::iscsi_set_header_digest(raw, digest) != 0
                || ffi::iscsi_set_session_type(raw, kind) != 0
                || (kind == ffi::SESSION_NORMAL
                    && ffi::iscsi_set_targetname(raw, target.as_ptr()) != 0)
            {
                return Err(this.error("set up a session"));
            }
            if let Some(isid) = config.isid
                && ffi::iscsi_set_isid_random(raw, isid & 0xFF_FFFF, 0) != 0
            {
                return Err(this.error("name a session"));
            }
            this.set_chap(config)?;
            Ok(this)
        }
    }

    fn set_chap(&self, config: &Config) -> Result<(), Error> {
        let Some((user, secret)) = &config.chap else { return Ok(()) };
        let (user, secret) = (c_string(user)?, c_string(secret)?);
        // SAFETY: the context is live, and the strings outlive the call, which copies them.
        let result = unsafe {
            ffi::iscsi_set_initiator_username_pwd(self.0.as_ptr(), user.as_ptr(), secret.as_ptr())
        };
        if result == 0 { Ok(()) } else { Err(self.error("set the CHAP secret")) }
    }

    /// libiscsi's last error message.
    pub(crate) fn error(&self, action: &'static str) -> Error {
        library_error(self.0, action)
    }

    /// Passes the context on to a session, which then destroys it.
    pub(crate) fn release(self) -> NonNull<ffi::Context> {
        let context = self.0;
        std::mem::forget(self);
        context
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the context is live and is not used again.
        unsafe { ffi::iscsi_destroy_context(self.0.as_ptr()) };
    }
}

pub(crate) fn library_error(context: NonNull<ffi::Context>, action: &'static str) -> Error {
    // SAFETY: the context is live; the text belongs to it and is copied at once.
    let message = unsafe {
        let text = ffi::iscsi_get_error(context.as_ptr());
        if text.is_null() {
            String::from("no reason given")
        } else {
            CStr::from_ptr(text).to_string_lossy().trim().to_owned()
        }
    };
    Error::Library { action, message }
}

pub(crate) fn c_string(text: &str) -> Result<CString, Error> {
    CString::new(text).map_err(|_| Error::Argument("a name holds a NUL byte"))
}
