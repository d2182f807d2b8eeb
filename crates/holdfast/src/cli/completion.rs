//! `completion`: shell completion.
//!
//! The script in the shell calls this program with [`VARIABLE`] set; then it prints the candidates
//! at the cursor, and does nothing else. Names come from the array that a verb without `--pool` and
//! `--api` would use; without such an array no names are completed.

use std::ffi::OsStr;

use clap::builder::Command;
use clap::{CommandFactory, Parser};
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::{CompleteEnv, EnvCompleter, Shells};
use serde::Deserialize;

use super::args::{Cli, Shell};
use super::client::Client;
use super::failure::Failure;
use super::output::print;
use super::rest::Named;

/// Set if a shell calls the program.
const VARIABLE: &str = "HOLDFAST_COMPLETE";

/// The kind of name that is typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Volume,
    Snapshot,
    Group,
    Host,
    HostGroup,
    VolumeGroup,
    Pod,
    User,
}

/// Prints completions if a shell called the program; returns whether it did.
pub fn answer() -> bool {
    let complete = CompleteEnv::with_factory(command).var(VARIABLE).bin("holdfast");
    let directory = std::env::current_dir().ok();
    let answered = complete.try_complete(std::env::args_os(), directory.as_deref());
    answered.unwrap_or_else(|error| error.exit())
}

/// Prints the script for a shell.
pub fn run(shell: Shell) -> Result<(), Failure> {
    let name = match shell {
        Shell::Bash => "bash",
        Shell::Zsh => "zsh",
        Shell::Fish => "fish",
    };
    let refuse = |why: &str| Failure::Machine(format!("can't write the script for {name}: {why}"));
    let shells = Shells::builtins();
    let completer = shells.completer(name).ok_or_else(|| refuse("there is none"))?;
    let mut script = Vec::new();
    EnvCompleter::write_registration(
        completer,
        VARIABLE,
        "holdfast",
        "holdfast",
        "holdfast",
        &mut script,
    )
    .map_err(|error| refuse(&error.to_string()))?;
    print(&String::from_utf8_lossy(&script))
}

/// Returns the verbs, with completion of names.
fn command() -> Command {
    named(Cli::command(), &mut Vec::new())
}

fn named(command: Command, verbs: &mut Vec<String>) -> Command {
    let at = verbs.clone();
    let command = command.mut_args(|arg| match kind(&at, arg.get_id().as_str()) {
        Some(kind) => arg.add(ArgValueCompleter::new(move |typed: &OsStr| matching(kind, typed))),
        None => arg,
    });
    command.mut_subcommands(|verb| {
        verbs.push(verb.get_name().to_owned());
        let verb = named(verb, verbs);
        verbs.pop();
        verb
    })
}

/// Returns the kind of object that an argument names; `None` if it is a new name, or not an object.
fn kind(verbs: &[String], argument: &str) -> Option<Kind> {
    let verbs: Vec<&str> = verbs.iter().map(String::as_str).collect();
    let is_new = matches!(&verbs[..], [_, "create"] | ["volume", "clone"]);
    match (&verbs[..], argument) {
        (["user", _], "name") if !is_new => Some(Kind::User),
        (["token" | "user" | "provision", ..], "name" | "volume") => None,
        (["volume", _], "source" | "from" | "snapshot") => Some(Kind::Snapshot),
        (["volume", _], "name" | "names") if !is_new => Some(Kind::Volume),
        (["snapshot", "show" | "rename" | "destroy"], "name" | "names") => Some(Kind::Snapshot),
        (["group", _], "name") if !is_new => Some(Kind::Group),
        (["host", _], "name") if !is_new => Some(Kind::Host),
        (["host-group", _], "name") if !is_new => Some(Kind::HostGroup),
        (["volume-group", _], "name") if !is_new => Some(Kind::VolumeGroup),
        (["pod", _], "name") if !is_new => Some(Kind::Pod),
        (["tag", _], "name") => Some(Kind::Snapshot),
        (_, "volume" | "volumes") => Some(Kind::Volume),
        (_, "host" | "hosts") => Some(Kind::Host),
        (_, "host_group" | "host_groups") => Some(Kind::HostGroup),
        (_, "group") => Some(Kind::Group),
        (_, "user") => Some(Kind::User),
        _ => None,
    }
}

/// A page of a list, with the fields that contain the items.
#[derive(Deserialize)]
struct Page {
    #[serde(alias = "users")]
    items: Vec<Named>,
}

/// Returns the names of a kind that begin with the typed text.
fn matching(kind: Kind, typed: &OsStr) -> Vec<CompletionCandidate> {
    let Some(typed) = typed.to_str() else { return Vec::new() };
    let rest = |list: &str| format!("/api/2.26/{list}?limit=1000{}", beginning(typed));
    let lists = match kind {
        Kind::Volume => vec![rest("volumes")],
        // A snapshot is allowed wherever a volume is copied from.
        Kind::Snapshot => vec![rest("volume-snapshots"), rest("volumes")],
        Kind::Group => vec![rest("protection-groups")],
        Kind::Host => vec![rest("hosts")],
        Kind::HostGroup => vec![rest("host-groups")],
        Kind::VolumeGroup => vec![rest("volume-groups")],
        Kind::Pod => vec![rest("pods")],
        Kind::User => vec!["/v1/users".to_owned()],
    };
    let found = lists.iter().filter_map(|list| first_page(list).ok()).flatten();
    let names = found.filter_map(|named| named.name);
    let wanted = |name: &String| {
        let begins = name.get(..typed.len());
        begins.is_some_and(|begins| begins.eq_ignore_ascii_case(typed))
    };
    names.filter(wanted).map(CompletionCandidate::new).collect()
}

/// Returns a filter for names that begin with the typed text; none if no name can begin with it.
fn beginning(typed: &str) -> String {
    let of_a_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ':');
    match typed.chars().all(of_a_name) {
        true => format!("&filter=name%3D%27{typed}*%27"),
        false => String::new(),
    }
}

/// Returns the names on the first page of a list: nobody would choose from more.
fn first_page(list: &str) -> Result<Vec<Named>, Failure> {
    let cli = Cli::try_parse_from(["holdfast", "status"]);
    let cli = cli.map_err(|error| Failure::Usage(error.to_string()))?;
    let page: Page = Client::find(&cli.common)?.get(list)?;
    Ok(page.items)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_complete_to_the_kind_that_the_verb_takes() {
        let kind = |verbs: &str, argument| {
            kind(&verbs.split(' ').map(str::to_owned).collect::<Vec<_>>(), argument)
        };
        assert_eq!(kind("volume show", "name"), Some(Kind::Volume));
        assert_eq!(kind("volume create", "name"), None);
        assert_eq!(kind("volume clone", "source"), Some(Kind::Snapshot));
        assert_eq!(kind("connect", "host"), Some(Kind::Host));
        assert_eq!(kind("connect", "host_group"), Some(Kind::HostGroup));
        assert_eq!(kind("volume-group rename", "name"), Some(Kind::VolumeGroup));
        assert_eq!(kind("pod destroy", "name"), Some(Kind::Pod));
        assert_eq!(kind("group add", "volumes"), Some(Kind::Volume));
        assert_eq!(kind("snapshot create", "group"), Some(Kind::Group));
        assert_eq!(kind("user set", "name"), Some(Kind::User));
        assert_eq!(kind("user create", "name"), None);
        assert_eq!(kind("token create", "user"), Some(Kind::User));
        assert_eq!(kind("token delete", "name"), None);
        assert_eq!(kind("provision", "volume"), None);
    }

    #[test]
    fn the_completed_command_line_is_consistent() {
        command().debug_assert();
    }
}
