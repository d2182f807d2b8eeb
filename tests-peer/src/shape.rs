//! The parameters of an array.

use std::path::PathBuf;

/// The parameters of an array.
#[derive(Clone, Debug)]
pub struct Shape {
    /// The pool's capacity, in the format of the command line.
    pub capacity: &'static str,
    /// The number of the pool's files.
    pub devices: u16,
    /// Whether each of them is in a separate directory; otherwise all are in the pool's.
    pub apart: bool,
    /// The number of portals.
    pub portals: usize,
    /// Whether each portal has its own target port group, from 1 on; otherwise all are in group 1.
    pub grouped: bool,
    /// The settings of `--config`, in TOML; empty for no file.
    pub settings: &'static str,
    /// A library that is loaded into the process to trace its operations on the pool.
    pub interposer: Option<PathBuf>,
    /// Whether that refuses io_uring.
    pub refuse_uring: bool,
    /// Whether it is restarted when it is killed (`--supervised`).
    pub supervised: bool,
    /// The controllers that serve it.
    pub controllers: Controllers,
    /// Whether management is encrypted.
    pub encrypted: bool,
}

/// The controllers that serve an array.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Controllers {
    /// One controller.
    #[default]
    One,
    /// Two, each with half of the portals, started by a supervisor.
    Two,
    /// The first of two, without a supervisor. The test starts the second one if needed.
    First,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            capacity: "3G",
            devices: 1,
            apart: false,
            portals: 2,
            grouped: false,
            settings: "",
            interposer: None,
            refuse_uring: false,
            supervised: false,
            controllers: Controllers::One,
            encrypted: false,
        }
    }
}
