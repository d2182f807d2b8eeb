//! `seeds DIRECTORY`: writes the seeds of all targets, a directory each.

use std::path::Path;
use std::process::ExitCode;

fn write(directory: &Path) -> std::io::Result<()> {
    for target in fuzz::seeds::TARGETS {
        let directory = directory.join(target.name);
        std::fs::create_dir_all(&directory)?;
        for (index, seed) in (target.seeds)().iter().enumerate() {
            std::fs::write(directory.join(format!("seed-{index:03}")), seed)?;
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    let Some(directory) = std::env::args_os().nth(1) else {
        eprintln!("usage: seeds DIRECTORY");
        return ExitCode::from(2);
    };
    match write(Path::new(&directory)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("can't write seeds to {}: {error}", directory.display());
            ExitCode::FAILURE
        }
    }
}
