//! Refusals in the format of REST 2.x: `{"errors": [{"context": NAME, "message": TEXT}]}`.
//!
//! Clients distinguish errors by the message and by the status: 400 for any error in the request,
//! 401 only for an ended session (they log in again), 404 for a path that does not exist, 500 if
//! the array failed.
//!
//! Some clients search a message for words, others compare the whole message. For the errors that
//! they recognise, [`sentence`] returns exactly the sentence that they know, and the name is in the
//! context. All other messages are those of [`array::Error`].

use array::{ContainerKind, Kind};
use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::{IntoResponses, ToSchema};

use super::FilterError;
use crate::access::denied::Denied;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RestFault {
    /// The name of the object or parameter that is wrong; empty for the whole request.
    pub context: String,
    /// What is wrong and what to do: one line.
    #[schema(example = "Volume already exists.")]
    pub message: String,
}

impl RestFault {
    /// The full message, for people: a short one that clients know names no object, and does
    /// not say what to do. `array::Error` does.
    pub fn at_length(&self) -> String {
        if self.message == VOLUME_DELETED {
            return array::Error::VolumeDestroyed(self.context.clone()).to_string();
        }
        let of_context = KNOWN.iter().map(|make| make(self.context.clone()));
        let mut meant = of_context.filter(|error| sentence(error) == Some(self.message.as_str()));
        meant.next().map_or_else(|| self.message.clone(), |error| error.to_string())
    }
}

/// The errors with a [`sentence`] that are about one name.
const KNOWN: [fn(String) -> array::Error; 16] = [
    array::Error::VolumeExists,
    array::Error::NoSuchVolume,
    array::Error::VolumeDestroyed,
    array::Error::SnapshotExists,
    array::Error::NoSuchSnapshot,
    array::Error::SnapshotDestroyed,
    array::Error::HostExists,
    array::Error::NoSuchHost,
    array::Error::HostGroupExists,
    array::Error::NoSuchHostGroup,
    |name| array::Error::ContainerExists(ContainerKind::VolumeGroup, name),
    |name| array::Error::NoSuchContainer(ContainerKind::VolumeGroup, name),
    |name| array::Error::ContainerDestroyed(ContainerKind::VolumeGroup, name),
    |name| array::Error::ContainerExists(ContainerKind::Pod, name),
    |name| array::Error::NoSuchContainer(ContainerKind::Pod, name),
    |name| array::Error::ContainerDestroyed(ContainerKind::Pod, name),
];

/// The body of a refusal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RestRefusal {
    /// What is wrong: at least one.
    pub errors: Vec<RestFault>,
}

/// A refusal with its status.
#[derive(Clone, Debug)]
pub(crate) struct Refused {
    status: StatusCode,
    /// The code of `/v1`, for the audit log.
    code: &'static str,
    errors: Vec<RestFault>,
}

impl Refused {
    fn new(status: StatusCode, context: &str, message: impl Into<String>) -> Self {
        let fault = RestFault { context: shown(context), message: message.into() };
        let code = match status {
            StatusCode::INTERNAL_SERVER_ERROR => "internal",
            _ => "bad_request",
        };
        Self { status, code, errors: vec![fault] }
    }

    /// Returns the code, for the audit log.
    pub(crate) fn code(&self) -> &'static str {
        self.code
    }

    /// Returns the refusal of a wrong request; `context` names the wrong part.
    pub(crate) fn bad(context: &str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, context, message)
    }

    /// Returns the refusal of a name that does not exist.
    pub(crate) fn missing(name: &str) -> Self {
        Self::bad(name, format!("{name} does not exist."))
    }

    /// Refuses names other than that of the only object.
    pub(crate) fn unless_only(name: &str, names: &[String]) -> Result<(), Self> {
        names.iter().find(|other| *other != name).map_or(Ok(()), |other| Err(Self::missing(other)))
    }

    /// Returns the refusal of an unsupported feature, which is never ignored.
    pub(crate) fn unsupported(context: &str, what: &str) -> Self {
        let refused = Self::bad(context, format!("{what}: not supported by this array."));
        Self { code: "not_supported", ..refused }
    }

    /// Returns a refusal because of the caller, its rate, or its password.
    pub(crate) fn denied(status: StatusCode, code: &'static str, text: String) -> Self {
        Self { code, ..Self::new(status, "", text) }
    }

    pub(crate) fn no_such_path() -> Self {
        let text = "This path does not exist; see /v1/openapi.json.";
        Self::new(StatusCode::NOT_FOUND, "", text)
    }

    pub(crate) fn no_such_method() -> Self {
        let text = "This path does not support this method; see /v1/openapi.json.";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "", text)
    }

    pub(crate) fn broken() -> Self {
        let text = "The array failed to do this; its log says why.";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "", text)
    }

    /// Returns the refusal of a body or a query that can't be read. `text` may span lines.
    pub(crate) fn unreadable(status: StatusCode, text: &str) -> Self {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        // 422 means the same as 400 here, and clients know 400.
        let status = match status {
            StatusCode::UNPROCESSABLE_ENTITY => StatusCode::BAD_REQUEST,
            other => other,
        };
        Self::new(status, "", text)
    }

    /// Returns a refusal by the array, about `context`.
    pub(crate) fn about(context: &str, error: &array::Error) -> Self {
        let status = match error.kind() {
            Kind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Kind::Fault => StatusCode::INTERNAL_SERVER_ERROR,
            _ => StatusCode::BAD_REQUEST,
        };
        let message = sentence(error).map_or_else(|| error.to_string(), str::to_owned);
        Self { code: error.code(), ..Self::new(status, context, message) }
    }

    /// Returns the refusal to destroy a volume, with a special message if it is already destroyed.
    pub(crate) fn to_destroy(error: array::Error) -> Self {
        let is_destroyed = matches!(error, array::Error::VolumeDestroyed(_));
        let mut refused = Self::from(error);
        if is_destroyed {
            refused.errors.iter_mut().for_each(|fault| fault.message = VOLUME_DELETED.into());
        }
        refused
    }

    /// Adds the errors of `other`, and takes the worse of the two statuses.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.status = self.status.max(other.status);
        self.errors.extend(other.errors);
        self
    }
}

/// The response to a second request to destroy a volume.
const VOLUME_DELETED: &str = "Volume has been deleted.";

/// Returns the whole message of errors that published clients recognise by it. They compare the
/// whole message, or search for a part, so it never changes.
fn sentence(error: &array::Error) -> Option<&'static str> {
    use array::Error;
    Some(match error {
        Error::VolumeExists(_) => "Volume already exists.",
        Error::NoSuchVolume(_) => "Volume does not exist.",
        Error::VolumeDestroyed(_) => "Volume has been destroyed.",
        Error::SnapshotExists(_) => "Volume snapshot already exists.",
        Error::NoSuchSnapshot(_) => "No such volume or snapshot.",
        // The programs in this message are not ours, but one client compares the whole message.
        Error::SnapshotDestroyed(_) => {
            "Volume snapshot has been destroyed. It can be recovered by purevol recover and \
             eradicated by purevol eradicate."
        }
        Error::HostExists(_) => "Host already exists.",
        Error::NoSuchHost(_) => "Host does not exist.",
        Error::HostGroupExists(_) => "Host group already exists.",
        Error::NoSuchHostGroup(_) => "Host group does not exist.",
        Error::ContainerExists(ContainerKind::VolumeGroup, _) => "Volume group already exists.",
        Error::NoSuchContainer(ContainerKind::VolumeGroup, _) => "Volume group does not exist.",
        Error::ContainerDestroyed(ContainerKind::VolumeGroup, _) => {
            "Volume group has been destroyed."
        }
        Error::ContainerExists(ContainerKind::Pod, _) => "Pod already exists.",
        Error::NoSuchContainer(ContainerKind::Pod, _) => "Pod does not exist.",
        Error::ContainerDestroyed(ContainerKind::Pod, _) => "Pod has been destroyed.",
        Error::ConnectionExists { .. } => "Connection already exists.",
        Error::NoSuchConnection { .. } => "Connection does not exist.",
        _ => return None,
    })
}

/// Returns a name from a request in a form that fits on one line.
fn shown(name: &str) -> String {
    name.chars().take(80).filter(|c| !c.is_control()).collect()
}

/// Returns the subject of an error, if it has one.
fn subject(error: &array::Error) -> &str {
    use array::Error;
    match error {
        Error::VolumeExists(name)
        | Error::NoSuchVolume(name)
        | Error::VolumeDestroyed(name)
        | Error::SnapshotExists(name)
        | Error::NoSuchSnapshot(name)
        | Error::NoSuchGroupSnapshot(name)
        | Error::SnapshotDestroyed(name)
        | Error::GroupExists(name)
        | Error::NoSuchGroup(name)
        | Error::GroupDestroyed(name)
        | Error::HostExists(name)
        | Error::NoSuchHost(name)
        | Error::ContainerExists(_, name)
        | Error::NoSuchContainer(_, name)
        | Error::ContainerDestroyed(_, name)
        | Error::ContainerNotEmpty(_, name)
        | Error::HostGroupExists(name)
        | Error::NoSuchHostGroup(name)
        | Error::HostGroupNotEmpty(name)
        | Error::UserExists(name)
        | Error::NoSuchUser(name)
        | Error::BuiltInUser(name) => name,
        Error::TokenExists { user, .. } | Error::NoSuchToken { user, .. } => user,
        Error::NotDestroyed(object) | Error::Eradicated(object) => last_word(object),
        Error::ExistingConnections { object, .. } | Error::InGroup { object, .. } => {
            last_word(object)
        }
        Error::InHostGroup { host, .. } | Error::NotInHostGroup { host, .. } => host,
        Error::NoSuchTag { object, .. } => object,
        Error::ReceiverExists { name, .. } | Error::NoSuchReceiver { name, .. } => name,
        Error::InitiatorInUse { initiator, .. } => initiator,
        Error::ConnectionExists { volume, .. }
        | Error::NoSuchConnection { volume, .. }
        | Error::SharedConnection { volume, .. }
        | Error::WouldTruncate { volume, .. }
        | Error::LunInUse { volume, .. } => volume,
        _ => "",
    }
}

/// Returns the name of an object: errors contain objects as `Volume x`.
fn last_word(object: &str) -> &str {
    object.rsplit(' ').next().unwrap_or(object)
}

impl From<array::Error> for Refused {
    fn from(error: array::Error) -> Self {
        Self::about(subject(&error), &error)
    }
}

impl From<Denied> for Refused {
    fn from(denied: Denied) -> Self {
        Self::denied(denied.status(), denied.code(), denied.text())
    }
}

impl From<FilterError> for Refused {
    fn from(error: FilterError) -> Self {
        Self::bad("filter", error.to_string())
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        (self.status, Json(RestRefusal { errors: self.errors })).into_response()
    }
}

/// The refusals that every request may get, for the description.
#[derive(IntoResponses)]
#[allow(dead_code, reason = "only its description is used")]
pub(crate) enum Refusals {
    /// The request is wrong: the message says how.
    #[response(status = 400)]
    Bad(RestRefusal),
    /// The session has ended.
    #[response(status = 401)]
    Unauthorized(RestRefusal),
    /// The role does not allow it.
    #[response(status = 403)]
    Forbidden(RestRefusal),
    /// The version does not exist.
    #[response(status = 404)]
    NotThere(RestRefusal),
    /// The body is too long.
    #[response(status = 413)]
    TooLong(RestRefusal),
    /// Too many requests: Retry-After says when to try again.
    #[response(status = 429)]
    TooMany(RestRefusal),
    /// The array failed.
    #[response(status = 500)]
    Broken(RestRefusal),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_messages_have_a_full_form_for_people() {
        for make in KNOWN {
            let error = make("db1".into());
            let fault = Refused::from(make("db1".into())).errors.remove(0);
            assert_eq!(Some(fault.message.as_str()), sentence(&error), "{error}");
            assert_eq!(fault.at_length(), error.to_string());
        }
        let other = RestFault { context: "lun".into(), message: "It is too big.".into() };
        assert_eq!(other.at_length(), "It is too big.");
    }
}
