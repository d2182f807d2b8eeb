//! One local file or block device.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use sys::{Disk, FileDisk, Ring};

use crate::channel::Channel;
use crate::slow::{SlowChannel, SlowDisk};

/// One local file or block device, as fast as it is, or slower.
#[derive(Clone, Debug)]
pub struct Local {
    file: Arc<FileDisk>,
    /// What each request takes more.
    latency: Option<Duration>,
}

impl Local {
    /// All that there is in this file.
    pub fn new(file: Arc<FileDisk>) -> Self {
        Self { file, latency: None }
    }

    /// The same, where each request takes so much longer: see [`crate::slow`].
    pub fn slowed(file: Arc<FileDisk>, latency: Duration) -> Self {
        Self { file, latency: Some(latency) }
    }

    /// The file, or the device.
    pub fn file(&self) -> &Arc<FileDisk> {
        &self.file
    }

    /// For who may wait.
    pub fn blocking(&self) -> Arc<dyn Disk> {
        match self.latency {
            None => self.file.clone(),
            Some(latency) => Arc::new(SlowDisk::new(self.file.clone(), latency)),
        }
    }

    /// A channel of the calling thread, with at most `entries` requests on their way at once; more
    /// wait in the channel.
    ///
    /// # Errors
    /// What the system says. Where it only refuses io_uring, that is a notice.
    pub fn channel(&self, entries: u32) -> io::Result<Box<dyn Channel>> {
        let ring = Box::new(Ring::new(self.file.clone(), entries));
        Ok(match self.latency {
            None => ring,
            Some(latency) => Box::new(SlowChannel::new(ring, latency)?),
        })
    }

    /// What an administrator should know about it, one sentence each; mostly nothing.
    pub fn notices(&self) -> Vec<String> {
        let slow = self.latency.map(|latency| {
            let ms = latency.as_secs_f64() * 1e3;
            format!("each request to the device is held back for {ms} ms, for tests")
        });
        self.file.notices().iter().cloned().chain(slow).collect()
    }
}
