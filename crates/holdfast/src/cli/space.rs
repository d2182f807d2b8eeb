//! `pool space`, and the space that other verbs show.

use std::thread;
use std::time::Duration;

use api::{PoolSpace, Space, SpaceFigures};

use super::args::Common;
use super::client::Client;
use super::failure::Failure;
use super::output::{facts, show, time};
use super::size::human;

/// The interval of polling for new figures.
const ASK_INTERVAL: Duration = Duration::from_millis(200);

/// Shows which objects the pool's bytes are stored for; with `refresh`, after new figures are
/// available.
pub fn run(common: &Common, refresh: bool) -> Result<(), Failure> {
    let client = Client::find(common)?;
    let mut space: PoolSpace = match refresh {
        true => client.post("/v1/pool/space", &())?,
        false => client.get("/v1/pool/space")?,
    };
    while refresh && space.pending {
        thread::sleep(ASK_INTERVAL);
        space = client.get("/v1/pool/space")?;
    }
    show(common.form, &space, || text(&space))
}

fn text(space: &PoolSpace) -> String {
    let Some(figures) = &space.figures else {
        return "Nothing is known yet. Compute it: holdfast pool space --refresh\n".into();
    };
    let moment = if space.current { "nothing has changed since" } else { "before later changes" };
    let SpaceFigures { unique_bytes, snapshots_bytes, shared_bytes, .. } = *figures;
    facts(&[
        ("As of", format!("{} ({moment})", time(figures.as_of_ms))),
        ("Provisioned", human(figures.provisioned_bytes)),
        ("Mapped", human(figures.mapped_bytes)),
        ("Unique", human(unique_bytes)),
        ("Snapshots", human(snapshots_bytes)),
        ("Shared", human(shared_bytes)),
        ("System", human(figures.system_bytes)),
        ("Live", human(figures.live_bytes)),
        ("Data reduction", format!("{} (with zeros)", reduction(figures.data_reduction))),
        ("Without zeros", reduction(figures.reduction_without_zeros)),
        ("Total reduction", reduction(figures.total_reduction)),
    ])
}

/// Returns a ratio as `3.1 to 1`.
pub fn reduction(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "-".into(), |ratio| format!("{ratio:.1} to 1"))
}

/// Returns whether the figures cover an object that was created at this time.
pub fn covers(space: &PoolSpace, created_ms: u64) -> bool {
    let is_before = |figures: &SpaceFigures| created_ms <= figures.as_of_ms;
    space.figures.as_ref().is_some_and(|figures| space.current || is_before(figures))
}

/// Returns what eradicating only this volume would free, if known.
pub fn unique(space: Option<&Space>) -> String {
    space.map_or_else(|| "-".into(), |space| human(space.unique_bytes))
}

/// Returns the lines of a volume or a snapshot that is shown by itself.
pub fn lines(space: Option<&Space>) -> [(&'static str, String); 4] {
    let unknown = "not known yet";
    let shown = |tell: &dyn Fn(&Space) -> String| space.map_or_else(|| unknown.into(), tell);
    [
        ("Unique", shown(&|s| format!("{} (as of {})", human(s.unique_bytes), time(s.as_of_ms)))),
        ("Share", shown(&|s| human(s.share_bytes))),
        ("Data reduction", shown(&|s| reduction(s.data_reduction))),
        ("Total reduction", shown(&|s| reduction(s.total_reduction))),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_figures_are_not_shown_as_zero() {
        let space = PoolSpace::default();
        assert!(text(&space).starts_with("Nothing is known yet."));
        assert!(lines(None).iter().all(|(_, value)| value == "not known yet"));
        assert_eq!(unique(None), "-");
        let figures = SpaceFigures { data_reduction: Some(3.12), ..SpaceFigures::default() };
        let space = PoolSpace { figures: Some(figures), current: true, pending: false };
        let text = text(&space);
        assert!(text.contains("nothing has changed since") && text.contains("3.1 to 1"), "{text}");
        assert!(covers(&space, u64::MAX));
        assert!(!covers(&PoolSpace { figures: None, ..space }, 0));
        let stale = PoolSpace { current: false, ..space };
        assert!(covers(&stale, 0) && !covers(&stale, 1));
        let total = text.lines().last().unwrap();
        assert!(total.starts_with("Total reduction:") && total.ends_with(" -"), "{text}");
    }
}
