//! Logins of users of a directory service. Whoever waits for it holds no thread of this interface.
//!
//! A user of the array is never asked for there, whatever its password: who may run the directory
//! does not run the array by that. And who guesses names learns nothing from how long an answer
//! takes: while a directory service is in use, a login that fails is answered on a full second.

use std::sync::Arc;
use std::time::Duration;

use array::{Role, TokenHash};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{sleep, timeout};

use super::{Caller, Credential};
use crate::Interface;

/// How many logins ask at the same time: each has a thread of its own.
const ASKING_MAX: usize = 2;
/// How long a login may take, with the wait for its turn.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Failed logins are answered after a whole number of these, in milliseconds.
const STEP_MS: u64 = 1000;
/// How long a session goes on, however busy it is: whether somebody is still in a group is asked
/// at a login only.
pub(super) const LIFE_MS: u64 = 12 * 60 * 60 * 1000;

/// What a directory service says of a login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DirectoryLogin {
    /// It knows the user, whose password this is, and a group of it has a role.
    Known {
        /// The user, as the directory writes it.
        name: String,
        /// What it may do.
        role: Role,
    },
    /// It does not let in.
    Refused,
    /// It can't be asked.
    Unreachable,
}

/// Told what a directory service says; may be dropped if it says nothing.
pub type TellLogin = Box<dyn FnOnce(DirectoryLogin) + Send>;

/// Turns at asking.
pub(super) struct Turns(Arc<Semaphore>);

impl Default for Turns {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(ASKING_MAX)))
    }
}

/// Waits until a whole number of steps have gone by, of which so much has gone by.
pub(super) async fn wait_for_a_step(gone_ms: u64) {
    let left_ms = STEP_MS - gone_ms % STEP_MS;
    sleep(Duration::from_millis(left_ms)).await;
}

impl Interface {
    /// Whether users of a directory service may log in.
    pub(super) fn has_directory(&self) -> bool {
        self.array.directory().is_enabled
    }

    /// Asks the directory service whether somebody may log in, who is no user of the array.
    pub(super) async fn ask_directory(&self, user: &str, password: String) -> Option<Caller> {
        let revision = self.array.directory().revision();
        let turns = self.access.directory.0.clone();
        let asked = async {
            let turn = turns.acquire_owned().await.ok()?;
            let (tell, told) = oneshot::channel();
            // The turn lasts until the directory has been asked, even if nobody waits for it.
            let tell: TellLogin = Box::new(move |login| {
                let _ = tell.send(login);
                drop(turn);
            });
            self.watch.log_in_by_directory(user.to_owned(), password, tell);
            told.await.ok()
        };
        let told = timeout(TIMEOUT, asked).await.ok().flatten();
        match told.unwrap_or(DirectoryLogin::Unreachable) {
            DirectoryLogin::Known { name, role } => {
                let credential = credential(&name, role, revision);
                self.caller(credential, &name).filter(|_| !self.is_own(&name))
            }
            DirectoryLogin::Refused => None,
            DirectoryLogin::Unreachable => {
                tracing::warn!("the directory service can't be asked for a login");
                None
            }
        }
    }

    /// What a session of a user of the directory service, who was let in just now, depends on.
    pub(super) fn directory_credential(&self, caller: &Caller) -> Credential {
        credential(&caller.user, caller.role, self.array.directory().revision())
    }

    /// Whether the array has a user of this name.
    pub(super) fn is_own(&self, name: &str) -> bool {
        self.array.user(name).is_ok()
    }
}

fn credential(name: &str, role: Role, revision: u64) -> Credential {
    let user = TokenHash::of(format!("directory user {}", name.to_lowercase()).as_bytes());
    Credential::Directory { user, role, revision }
}
