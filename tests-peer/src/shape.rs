//! How an array is made.

use std::path::PathBuf;

/// How an array is made.
#[derive(Clone, Debug)]
pub struct Shape {
    /// The pool's capacity, as the command line takes it.
    pub capacity: &'static str,
    /// How many files the pool is on.
    pub devices: u16,
    /// Whether each of them is in a directory of its own; else all are in the pool's.
    pub apart: bool,
    /// How many portals.
    pub portals: usize,
    /// Whether each portal has a target port group of its own, from 1 on; else all are in group 1.
    pub grouped: bool,
    /// The settings of `--config`, in TOML; none for no file.
    pub settings: &'static str,
    /// What is loaded into the process to write down what it does to the pool.
    pub interposer: Option<PathBuf>,
    /// Whether that refuses io_uring.
    pub refuse_uring: bool,
    /// Whether it is started again when it is killed (`--supervised`).
    pub supervised: bool,
    /// Who serves it.
    pub controllers: Controllers,
}

/// Who serves an array.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Controllers {
    /// One controller.
    #[default]
    One,
    /// Two, each with half of the portals, which a supervisor starts.
    Two,
    /// The first of two, without a supervisor. Who wants the second one starts it.
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
        }
    }
}
