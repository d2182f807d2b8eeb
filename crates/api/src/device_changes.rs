//! Changes of the devices of a pool, under `/v1/devices`.

use array::Kind;
use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{ApiError, Device, Interface, Refusal, Shared, access};

/// Changes the devices of the pool that is being served. Called from threads that may block.
pub trait DeviceChanges: Send + Sync {
    /// Makes a change; returns the number of the device.
    ///
    /// # Errors
    /// See [`DeviceRefusal`].
    fn change(&self, change: DeviceChange) -> Result<u16, DeviceRefusal>;
}

/// A change of the devices of a pool. The numbers are those of [`Device::number`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceChange {
    /// Adds a device to the pool; it then catches up.
    Add(DeviceAdd),
    /// Removes a device from the pool for good.
    Remove(u16),
    /// Stops using a device, which remains a device of the pool.
    TakeOut(u16),
    /// Uses a device again that was taken out; it first catches up.
    TakeBack(u16),
    /// Reads the device for some seconds, so that people see which one it is.
    Identify(u16),
}

/// Why a change of devices is refused.
#[derive(Clone, Debug)]
pub struct DeviceRefusal {
    /// The kind of refusal.
    pub kind: Kind,
    /// The code, for programs.
    pub code: &'static str,
    /// What is wrong and what to do: one line.
    pub message: String,
}

impl DeviceRefusal {
    fn of_input(code: &'static str, message: &str) -> Self {
        Self { kind: Kind::Invalid, code, message: message.to_owned() }
    }
}

impl From<array::Error> for DeviceRefusal {
    fn from(error: array::Error) -> Self {
        Self { kind: error.kind(), code: error.code(), message: error.to_string() }
    }
}

impl From<DeviceRefusal> for ApiError {
    fn from(refusal: DeviceRefusal) -> Self {
        let DeviceRefusal { kind, code, message } = refusal;
        Self::of_kind(kind, code, message)
    }
}

/// A device to add to the pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DeviceAdd {
    /// A directory, in which a file is created, or a block device, on the array's machine.
    pub place: String,
    /// The number of the device that it replaces, if any: that one is then out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<u16>,
    /// Whether a block device that is not blank is overwritten.
    #[serde(default)]
    pub force: bool,
}

/// The change of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DeviceStateChange {
    /// `out`: it is no longer used. `in`: a device that is out catches up, and is then in.
    pub state: String,
}

async fn change(
    interface: std::sync::Arc<Interface>,
    change: DeviceChange,
) -> Result<Option<Device>, ApiError> {
    let work = move |interface: &Interface| {
        let number = interface.changes.change(change)?;
        Ok(interface.devices().devices.into_iter().find(|device| device.number == number))
    };
    match access::run(interface, work, |refusal: &DeviceRefusal| refusal.code).await {
        Some(result) => result.map_err(ApiError::from),
        None => Err(ApiError::broken()),
    }
}

/// Returns the device that was changed, or an internal error if there is none.
fn changed(device: Option<Device>) -> Result<Json<Device>, ApiError> {
    device.map(Json).ok_or_else(ApiError::broken)
}

/// Adds a device to the pool, which is in once it has caught up, or replaces another one. A pool
/// that was created on one device can't be extended.
#[utoipa::path(post, path = "/v1/devices", request_body = DeviceAdd, responses(
    (status = 201, body = Device),
    (status = 400, body = Refusal),
    (status = 401, body = Refusal),
    (status = 404, body = Refusal),
    (status = 409, body = Refusal),
))]
pub(crate) async fn add(
    State(interface): Shared,
    body: Result<Json<DeviceAdd>, JsonRejection>,
) -> Result<(StatusCode, Json<Device>), ApiError> {
    let Json(asked) = body?;
    let device = change(interface, DeviceChange::Add(asked)).await?;
    Ok((StatusCode::CREATED, changed(device)?))
}

/// Takes a device out of use, or brings back one that is out, which then catches up.
#[utoipa::path(
    patch,
    path = "/v1/devices/{number}",
    params(("number" = u16, Path)),
    request_body = DeviceStateChange,
    responses(
        (status = 200, body = Device),
        (status = 400, body = Refusal),
        (status = 401, body = Refusal),
        (status = 404, body = Refusal),
        (status = 409, body = Refusal),
    )
)]
pub(crate) async fn change_state(
    State(interface): Shared,
    number: Result<Path<u16>, PathRejection>,
    body: Result<Json<DeviceStateChange>, JsonRejection>,
) -> Result<Json<Device>, ApiError> {
    let (Path(number), Json(asked)) = (number?, body?);
    let wanted = match asked.state.as_str() {
        "in" => DeviceChange::TakeBack(number),
        "out" => DeviceChange::TakeOut(number),
        _ => {
            let text = "A device can be made `in` or `out`; DELETE removes it for good.";
            return Err(DeviceRefusal::of_input("invalid_state", text).into());
        }
    };
    changed(change(interface, wanted).await?)
}

/// Removes a device from the pool for good. Its content stays on it, but is no longer used.
#[utoipa::path(
    delete,
    path = "/v1/devices/{number}",
    params(("number" = u16, Path)),
    responses(
        (status = 204, description = "The device was removed from the pool, or is being emptied."),
        (status = 401, body = Refusal),
        (status = 404, body = Refusal),
        (status = 409, body = Refusal),
    )
)]
pub(crate) async fn remove(
    State(interface): Shared,
    number: Result<Path<u16>, PathRejection>,
) -> Result<StatusCode, ApiError> {
    let Path(number) = number?;
    change(interface, DeviceChange::Remove(number)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Reads from a device for some seconds, so that its activity light identifies it. The array
/// does not control locator lights.
#[utoipa::path(
    post,
    path = "/v1/devices/{number}/identify",
    params(("number" = u16, Path)),
    responses(
        (status = 200, body = Device),
        (status = 401, body = Refusal),
        (status = 404, body = Refusal),
        (status = 409, body = Refusal),
    )
)]
pub(crate) async fn identify(
    State(interface): Shared,
    number: Result<Path<u16>, PathRejection>,
) -> Result<Json<Device>, ApiError> {
    let Path(number) = number?;
    changed(change(interface, DeviceChange::Identify(number)).await?)
}
