//! Where volumes can be reached: everywhere, or within one named segment.

use std::collections::HashMap;

use tonic::Status;

use crate::proto::{Topology, TopologyRequirement};

/// The key of the segment.
const KEY: &str = "csi.holdfast/segment";

/// The network segment in which the array's portals can be reached; `None` if all nodes can reach
/// them.
#[derive(Clone, Debug, Default)]
pub struct Segment(pub Option<String>);

impl Segment {
    /// Returns the topology of a volume, or of this node.
    pub fn topology(&self) -> Option<Topology> {
        let segments = |name: &String| HashMap::from([(KEY.to_owned(), name.clone())]);
        self.0.as_ref().map(|name| Topology { segments: segments(name) })
    }

    /// Checks that a volume may be created here.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` if it must be elsewhere.
    pub fn check(&self, asked: Option<&TopologyRequirement>) -> Result<(), Status> {
        let places = asked.map_or(&[][..], |asked| &asked.requisite);
        if places.is_empty() || places.iter().any(|place| self.is_in(place)) {
            return Ok(());
        }
        Err(Status::resource_exhausted("the array can't be reached from there"))
    }

    /// Returns whether this segment is within a topology.
    pub fn is_in(&self, place: &Topology) -> bool {
        let own = self.0.as_deref();
        own.is_none() || place.segments.get(KEY).is_none_or(|name| Some(name.as_str()) == own)
    }
}
