//! `man` and `version`: the manual and the version of the program.

use std::fs;
use std::path::Path;

use clap::CommandFactory;
use serde_json::json;

use super::args::Cli;
use super::failure::Failure;
use super::output::{Form, show};

/// Prints the version of the program. That of a running array is in `holdfast status`.
pub fn version(form: Form) -> Result<(), Failure> {
    let version = env!("CARGO_PKG_VERSION");
    show(form, &json!({ "version": version }), || format!("holdfast {version}\n"))
}

/// Writes a manual page for each verb.
pub fn write(directory: &Path) -> Result<(), Failure> {
    let refuse = |error| Failure::of_file("write the manual pages to", directory, &error);
    fs::create_dir_all(directory).map_err(refuse)?;
    // A page for each verb, but none for its `help` subcommand.
    let command = without_help(Cli::command());
    clap_mangen::generate_to(command, directory).map_err(refuse)
}

fn without_help(command: clap::Command) -> clap::Command {
    command.disable_help_subcommand(true).mut_subcommands(without_help)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_verb_has_a_page() {
        let directory = tempfile::tempdir().unwrap();
        let inner = directory.path().join("man");
        write(&inner).unwrap();
        let page = |name: &str| fs::read_to_string(inner.join(format!("{name}.1"))).unwrap();
        assert!(page("holdfast").contains("salvage"));
        assert!(page("holdfast-volume-create").contains("block"));
        assert!(page("holdfast-serve").contains("iscsi"));
        assert!(!inner.join("holdfast-volume-help.1").exists());
        // A file is in place of the directory.
        let failure = write(&inner.join("holdfast.1")).unwrap_err();
        assert!(failure.to_string().contains("manual pages"), "{failure}");
    }
}
