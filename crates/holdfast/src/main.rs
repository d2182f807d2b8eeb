//! Holdfast: an all-flash storage array in software. This is its one binary: the array itself
//! (`serve`) and the commands that manage it.

// `println!` and `eprintln!` panic when the output takes nothing (a full file system, a pipe whose
// reader is gone), and a panic ends the array: `cli::output` prints.
#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod cli;
mod serve;

/// A frame is 4 KiB, aligned to 4 KiB. The C library's allocator takes twice that for one.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> std::process::ExitCode {
    cli::run()
}
