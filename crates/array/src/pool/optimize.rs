//! The background pass of reduction, which finds reduction that was missed at the time of writing.

use store::OptimizeStatus;

use crate::array::Array;
use crate::error::Error;

impl Array {
    /// Begins a background pass of reduction. It merges duplicate blocks, and
    /// recompresses data that was compressed quickly.
    ///
    /// # Errors
    /// `optimize_running` if one is running.
    pub fn start_optimize(&self) -> Result<OptimizeStatus, Error> {
        if !self.backing().optimize_start() {
            return Err(Error::OptimizeRunning);
        }
        Ok(self.backing().optimize_status())
    }

    /// Stops the running background pass, if any; its results are kept.
    pub fn stop_optimize(&self) -> OptimizeStatus {
        self.backing().optimize_stop();
        self.backing().optimize_status()
    }

    /// Returns the state of the background pass of reduction.
    pub fn optimize(&self) -> OptimizeStatus {
        self.backing().optimize_status()
    }
}
