//! From where volumes can be reached: everywhere, or within one named segment.

use std::collections::HashMap;

use tonic::Status;

use crate::proto::{Topology, TopologyRequirement};

/// The key of the segment.
const KEY: &str = "csi.holdfast/segment";

/// The segment of a network in which the array's portals can be reached; `None` if all nodes can.
#[derive(Clone, Debug, Default)]
pub struct Segment(pub Option<String>);

impl Segment {
    /// Where a volume, or this node, is.
    pub fn topology(&self) -> Option<Topology> {
        let segments = |name: &String| HashMap::from([(KEY.to_owned(), name.clone())]);
        self.0.as_ref().map(|name| Topology { segments: segments(name) })
    }

    /// Checks that a volume may be made here.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` if it has to be elsewhere.
    pub fn check(&self, asked: Option<&TopologyRequirement>) -> Result<(), Status> {
        let places = asked.map_or(&[][..], |asked| &asked.requisite);
        if places.is_empty() || places.iter().any(|place| self.is_in(place)) {
            return Ok(());
        }
        Err(Status::resource_exhausted("the array can't be reached from there"))
    }

    /// Whether this is within a place.
    pub fn is_in(&self, place: &Topology) -> bool {
        let own = self.0.as_deref();
        own.is_none() || place.segments.get(KEY).is_none_or(|name| Some(name.as_str()) == own)
    }
}
