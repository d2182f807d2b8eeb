//! Holdfast: an all-flash storage array in software. This is its one binary: the array itself
//! (`serve`) and the commands that manage it.

mod cli;
mod serve;

fn main() -> std::process::ExitCode {
    cli::run()
}
