//! The source of the data: one device, or the present ones of several.

use std::path::PathBuf;
use std::sync::Arc;

use format::label::MemberState;
use segments::{Local, Segments as _, Shared, Survey};

use super::super::failure::Failure;
use super::super::medium::{Medium, Use, is_in_stripes};
use super::super::place::{Place, Places, open_disk_to_read};

/// The source of the data.
pub(super) struct Source {
    /// The place of its first device.
    pub(super) pool: PathBuf,
    pub(super) segments: Shared,
    /// The consequence of too few devices, if there are too few.
    pub(super) lacking: Option<String>,
    /// Notices for the administrator about the devices.
    pub(super) notices: Vec<String>,
}

impl Source {
    /// # Errors
    /// If nothing of a pool can be opened there.
    pub(super) fn of(places: Places) -> Result<Self, Failure> {
        let pool = places.first().pool.clone();
        let (survey, opened) = Medium::survey(&places, Use::Salvage)?;
        match opened {
            Ok(medium) => Ok(Self {
                pool,
                segments: medium.segments(),
                lacking: survey.as_ref().and_then(what_is_lacking),
                notices: medium.notices(),
            }),
            Err(failure) if places.all.iter().any(is_in_stripes) => Err(failure),
            Err(failure) => match best(places) {
                // Each device had the whole pool, even one that was out, or of which labels say
                // nothing.
                Some(place) => {
                    tracing::warn!("{failure}: {} is read alone", place.data.display());
                    let disk: Arc<dyn sys::Disk> = Arc::new(open_disk_to_read(&place)?);
                    let (segments, notices) = (disk.into(), Vec::new());
                    Ok(Self { pool: place.pool, segments, lacking: None, notices })
                }
                None => Err(failure),
            },
        }
    }
}

fn what_is_lacking(survey: &Survey) -> Option<String> {
    let lacking = survey.lacking().filter(|lacking| *lacking > 0)?;
    let there = survey.there();
    Some(format!(
        "{there} current devices are present, and {} are needed for the whole pool: connect \
         {lacking} more to salvage what is lost",
        there + lacking
    ))
}

/// Returns, of several devices with the whole pool each, one that was in by the newest label.
fn best(places: Places) -> Option<Place> {
    places.all.into_iter().max_by_key(rate)
}

/// Returns the rank of a device: the newest change of devices in its label, and whether it was in
/// then.
fn rate(place: &Place) -> (u64, bool) {
    let Ok(disk) = open_disk_to_read(place) else { return (0, false) };
    let labels = Local::over(Arc::new(disk)).labels();
    let rate = |label: &format::Label| {
        let own = label.members.iter().find(|member| member.device == label.device);
        (label.sequence, own.is_some_and(|member| member.state == MemberState::In))
    };
    labels.iter().flatten().map(rate).max().unwrap_or_default()
}
