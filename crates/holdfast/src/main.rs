//! Holdfast: an all-flash storage array in software. This is its one binary: the array itself
//! (`serve`) and the commands that manage it.

mod cli;
mod serve;

/// A frame is 4 KiB, aligned to 4 KiB. The C library's allocator takes twice that for one.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> std::process::ExitCode {
    cli::run()
}
