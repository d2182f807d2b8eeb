//! Logins of users of a directory service. A waiting login occupies no thread of this interface.
//!
//! The directory service is never asked about a user of the array, whatever the password: the
//! administrator of the directory does not thereby control the array. Response times do not reveal
//! which names exist: while a directory service is in use, the response to a failed login is
//! delayed to a whole second.

use std::sync::Arc;
use std::time::Duration;

use array::{Role, TokenHash};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{sleep, timeout};

use super::{Caller, Credential};
use crate::Interface;

/// The maximum number of concurrent queries: each has its own thread.
const ASKING_MAX: usize = 2;
/// The timeout of a login, including the wait for a permit.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Failed logins are answered after a multiple of this time, in milliseconds.
const STEP_MS: u64 = 1000;
/// The maximum lifetime of a session, even if it is in use: group membership is checked only at
/// login.
pub(super) const LIFE_MS: u64 = 12 * 60 * 60 * 1000;

/// The result of a login at a directory service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DirectoryLogin {
    /// The password is right, and one of the user's groups has a role.
    Known {
        /// The user, as the directory writes it.
        name: String,
        /// The role.
        role: Role,
    },
    /// The directory service refuses the login.
    Refused,
    /// The directory service can't be reached.
    Unreachable,
}

/// Receives the result of a login; may be dropped without a call if there is none.
pub type TellLogin = Box<dyn FnOnce(DirectoryLogin) + Send>;

/// The permits for queries.
pub(super) struct Turns(Arc<Semaphore>);

impl Default for Turns {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(ASKING_MAX)))
    }
}

/// Waits until the elapsed time, now `gone_ms`, is a multiple of the step.
pub(super) async fn wait_for_a_step(gone_ms: u64) {
    let left_ms = STEP_MS - gone_ms % STEP_MS;
    sleep(Duration::from_millis(left_ms)).await;
}

impl Interface {
    /// Returns whether users of a directory service may log in.
    pub(super) fn has_directory(&self) -> bool {
        self.array.directory().is_enabled
    }

    /// Asks the directory service about a user who is not a user of the array.
    pub(super) async fn ask_directory(&self, user: &str, password: String) -> Option<Caller> {
        let revision = self.array.directory().revision();
        let turns = self.access.directory.0.clone();
        let asked = async {
            let turn = turns.acquire_owned().await.ok()?;
            let (tell, reported) = oneshot::channel();
            // The permit is held until the directory has answered, even if the client has gone
            // away.
            let tell: TellLogin = Box::new(move |login| {
                let _ = tell.send(login);
                drop(turn);
            });
            self.watch.log_in_by_directory(user.to_owned(), password, tell);
            reported.await.ok()
        };
        let reported = timeout(TIMEOUT, asked).await.ok().flatten();
        match reported.unwrap_or(DirectoryLogin::Unreachable) {
            DirectoryLogin::Known { name, role } => {
                let credential = credential(&name, role, revision);
                self.caller(credential, &name).filter(|_| !self.is_own(&name))
            }
            DirectoryLogin::Refused => None,
            DirectoryLogin::Unreachable => {
                tracing::warn!("the directory service can't be queried for a login");
                None
            }
        }
    }

    /// Returns the credential of a new session of a directory user.
    pub(super) fn directory_credential(&self, caller: &Caller) -> Credential {
        credential(&caller.user, caller.role, self.array.directory().revision())
    }

    /// Returns whether the array has a user of this name.
    pub(super) fn is_own(&self, name: &str) -> bool {
        self.array.user(name).is_ok()
    }
}

fn credential(name: &str, role: Role, revision: u64) -> Credential {
    let user = TokenHash::of(format!("directory user {}", name.to_lowercase()).as_bytes());
    Credential::Directory { user, role, revision }
}
