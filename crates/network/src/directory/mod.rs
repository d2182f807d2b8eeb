//! Logins of users of a directory service (LDAP), within a time limit.
//!
//! The array binds as its own user, looks up the user by name, then the groups that have roles, and
//! finally binds as the user. Referrals and aliases are not followed.
//!
//! * [`login`]: the requests of a login,
//! * [`connection`]: a connection to a server, encrypted,
//! * [`message`]: the messages that a login needs, [`ber`]: their encoding.
//!
//! The protocol is implemented here because no available crate tolerates every response that a
//! server may send: see docs/rfcs/0005-management.md.

mod ber;
mod connection;
mod login;
mod message;

#[cfg(test)]
mod tests;

use std::io;
use std::sync::mpsc;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use array::{Array, Directory, DirectoryUri, Role};
use parking_lot::Mutex;

use connection::Connection;
use login::{bound, log_in, test, with_a_server};

use crate::Names;

/// The time limit of a login or a test, for all servers together.
pub const DIRECTORY_TIMEOUT: Duration = Duration::from_secs(5);
/// The interval for checking whether a server responds.
const CHECK_PAUSE: Duration = Duration::from_secs(60);
/// The interval for checking whether the settings have changed.
const LOOK_PAUSE: Duration = Duration::from_secs(1);

/// The result of a login at a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DirectoryLogin {
    /// The user is known, the password is right, and a group of the user has a role.
    Known {
        /// The user name, as the directory writes it.
        name: String,
        /// The most powerful role of its groups.
        role: Role,
    },
    /// The login was refused; the reason is for the array's log only.
    Refused(&'static str),
    /// No server could be used, and why.
    Unreachable(String),
}

/// The result of testing a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryTest {
    /// The server.
    pub uri: String,
    /// The groups that were found, or why the server can't be used.
    pub result: Result<String, String>,
}

#[derive(Default)]
struct Checked {
    /// The revision of the settings.
    revision: u64,
    at: Option<Instant>,
    /// Since when no server can be used, and why.
    trouble: Option<(Instant, String)>,
}

/// The directory service of an array, if configured. A thread checks each minute whether it
/// responds, until this is dropped.
pub struct Directories {
    array: Weak<Array>,
    names: Arc<Names>,
    checked: Mutex<Checked>,
}

impl Directories {
    /// Starts checking whether servers respond.
    ///
    /// # Errors
    /// If no thread can be created.
    pub fn start(array: &Arc<Array>, names: Arc<Names>) -> io::Result<Arc<Self>> {
        let made = Self::new(array, names);
        let its = Arc::downgrade(&made);
        thread::Builder::new().name("directory".into()).spawn(move || {
            while let Some(made) = its.upgrade() {
                made.turn(Instant::now());
                drop(made);
                thread::sleep(LOOK_PAUSE);
            }
        })?;
        Ok(made)
    }

    fn new(array: &Arc<Array>, names: Arc<Names>) -> Arc<Self> {
        Arc::new(Self { array: Arc::downgrade(array), names, checked: Mutex::default() })
    }

    /// Returns the current settings.
    fn settings(&self) -> Arc<Directory> {
        self.array.upgrade().map(|array| array.directory()).unwrap_or_default()
    }

    /// Checks whether a server responds, if that is due.
    fn turn(&self, now: Instant) {
        let settings = self.settings();
        let is_due = {
            let checked = self.checked.lock();
            checked.revision != settings.revision()
                || checked.at.is_none_or(|at| now.saturating_duration_since(at) >= CHECK_PAUSE)
        };
        if !is_due {
            return;
        }
        let end = now + DIRECTORY_TIMEOUT;
        let found = match settings.is_enabled {
            true => with_a_server(&settings, end, |uri, end| {
                bound(uri, &settings, &self.names, end).map(Connection::end)
            }),
            false => Ok(()),
        };
        let mut checked = self.checked.lock();
        let before = checked.trouble.take().filter(|_| checked.revision == settings.revision());
        let since = before.map_or(now, |(since, _)| since);
        *checked = Checked {
            revision: settings.revision(),
            at: Some(now),
            trouble: found.err().map(|why| (since, why)),
        };
    }

    /// Returns for how long no server could be used, and why.
    pub fn trouble(&self) -> Option<(Duration, String)> {
        let checked = self.checked.lock();
        checked.trouble.as_ref().map(|(since, why)| (since.elapsed(), why.clone()))
    }

    /// Checks whether a user with this password may log in, on a separate thread, and passes the
    /// result to the callback. The caller bounds the number of threads.
    pub fn log_in(
        &self,
        user: String,
        password: String,
        tell: impl FnOnce(DirectoryLogin) + Send + 'static,
    ) {
        let (settings, names) = (self.settings(), self.names.clone());
        // Without a thread there is no result, as if no server responded.
        let begun = thread::Builder::new().name("directory-login".into()).spawn(move || {
            let end = Instant::now() + DIRECTORY_TIMEOUT;
            tell(log_in(&settings, &names, &user, &password, end));
        });
        if let Err(error) = begun {
            tracing::error!("there is no thread to ask the directory service: {error}");
        }
    }

    /// Tests all servers at the same time, and waits for the results, at most
    /// [`DIRECTORY_TIMEOUT`].
    pub fn test(&self) -> Vec<DirectoryTest> {
        let settings = self.settings();
        let end = Instant::now() + DIRECTORY_TIMEOUT;
        let test = |uri: &DirectoryUri| {
            let (tell, told) = mpsc::sync_channel(1);
            let (uri, settings, names) = (uri.clone(), settings.clone(), self.names.clone());
            // The system's resolver may take longer: then nobody waits for this one.
            let begun = thread::Builder::new().name("directory-test".into()).spawn(move || {
                let _ = tell.send(test(&uri, &settings, &names, end));
            });
            begun.map(|_| told)
        };
        let begun: Vec<_> = settings.uris.iter().map(|uri| (uri, test(uri))).collect();
        let result = |begun: io::Result<mpsc::Receiver<io::Result<String>>>| {
            let left = end.saturating_duration_since(Instant::now());
            let told = begun?.recv_timeout(left);
            told.unwrap_or_else(|_| Err(io::Error::other("it does not answer in time")))
        };
        let tested = begun.into_iter().map(|(uri, begun)| DirectoryTest {
            uri: uri.to_string(),
            result: result(begun).map_err(|error| error.to_string()),
        });
        tested.collect()
    }
}
