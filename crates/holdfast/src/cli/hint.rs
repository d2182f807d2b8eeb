//! Suggestions for an unknown verb: other programs use other names, and another order of words.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory};

use super::args::Cli;

/// The words of other programs, and the corresponding verbs, the likeliest first.
const SYNONYMS: [(&[&str], &[&str]); 14] = [
    (&["rm", "del", "delete", "remove", "drop"], &["destroy", "delete", "remove"]),
    (&["ls", "dir"], &["list"]),
    (&["grow", "expand", "extend", "shrink"], &["resize", "grow"]),
    (&["get", "info", "describe", "display"], &["show", "list"]),
    (&["new", "add", "make", "mk"], &["create"]),
    (&["mv"], &["rename"]),
    (&["cp", "copy"], &["clone"]),
    (&["edit", "modify", "update", "change"], &["set"]),
    (&["undelete", "undestroy", "undo"], &["recover"]),
    (&["purge", "wipe"], &["eradicate"]),
    (&["map", "attach", "present", "export"], &["connect"]),
    (&["unmap", "detach"], &["disconnect"]),
    (&["rollback", "revert"], &["restore"]),
    (&["snap", "snapshots", "backup"], &["snapshot"]),
];

/// Nouns whose objects are made and ended by verbs without a noun: the noun, the words, the verb.
const WITHOUT_NOUN: [(&str, &[&str], &str); 2] = [
    ("connection", &["create", "new", "add", "make"], "connect"),
    ("connection", &["delete", "rm", "del", "remove", "drop", "destroy"], "disconnect"),
];

/// The maximum number of suggestions.
const NAMED_MAX: usize = 3;

/// Returns one line of suggestions for an unknown verb; `None` if it resembles no verb.
pub fn of(words: &[OsString], error: &clap::Error) -> Option<String> {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return None;
    }
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    let root = Cli::command();
    let (verb, path) = walked(&root, words, word);
    let meant = meant(&root, verb, &path, word);
    let shown: Vec<&str> = meant.iter().map(String::as_str).take(NAMED_MAX).collect();
    let (last, before) = shown.split_last()?;
    let all = match before {
        [] => (*last).to_owned(),
        before => format!("{} or {last}", before.join(", ")),
    };
    Some(format!("unknown verb {word:?}; did you mean {all}? (see --help)"))
}

/// Returns the innermost verb before a word, and its full name.
fn walked<'a>(root: &'a Command, words: &[OsString], end: &str) -> (&'a Command, String) {
    let (mut verb, mut path) = (root, root.get_name().to_owned());
    for word in words.iter().skip(1).filter_map(|word| word.to_str()) {
        if word == end {
            break;
        }
        if let Some(inner) = verb.find_subcommand(word) {
            verb = inner;
            path = format!("{path} {word}");
        }
    }
    (verb, path)
}

/// Returns what a word may mean after a verb, the likeliest first.
fn meant(root: &Command, verb: &Command, path: &str, word: &str) -> Vec<String> {
    let word = word.to_ascii_lowercase();
    let synonyms = SYNONYMS.iter().filter(|(others, _)| others.contains(&word.as_str()));
    let own: Vec<&str> = synonyms.flat_map(|(_, own)| own.iter().copied()).collect();
    let of_verb = own.iter().filter(|name| verb.find_subcommand(name).is_some());
    let here: Vec<String> = of_verb.map(|name| format!("{path} {name}")).collect();
    if !here.is_empty() {
        return here;
    }
    let without_noun = WITHOUT_NOUN
        .iter()
        .find(|(noun, words, _)| verb.get_name() == *noun && words.contains(&word.as_str()));
    if let Some((_, _, verb)) = without_noun {
        return vec![format!("{} {verb}", root.get_name())];
    }
    // The noun precedes the verb here; in other programs one verb applies to all nouns.
    let anywhere = own.iter().copied().chain([word.as_str()]);
    let with_noun = anywhere.flat_map(|name| {
        let nouns = root.get_subcommands().filter(|noun| noun.get_name() != "help");
        nouns.filter_map(move |noun| {
            let found = noun.find_subcommand(name)?;
            Some(format!("{} {} {}", root.get_name(), noun.get_name(), found.get_name()))
        })
    });
    let of_all = own.iter().filter(|name| root.find_subcommand(name).is_some());
    let of_all = of_all.map(|name| format!("{} {name}", root.get_name()));
    match verb.get_name() == root.get_name() {
        true => of_all.chain(with_noun).collect(),
        false => of_all.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(line: &str) -> Option<String> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let error = Cli::read(&words).unwrap_err();
        of(&words, &error)
    }

    #[test]
    fn verbs_of_other_programs_are_recognized() {
        for (line, meant) in [
            ("holdfast volume rm v", "mean holdfast volume destroy? ("),
            ("holdfast --pool d volume delete v", "mean holdfast volume destroy? ("),
            ("holdfast volume grow v", "mean holdfast volume resize? ("),
            ("holdfast host remove h", "mean holdfast host delete? ("),
            ("holdfast volume ls --json", "mean holdfast volume list? ("),
            ("holdfast volume attach v h", "mean holdfast connect? ("),
            ("holdfast connection delete v h", "mean holdfast disconnect? ("),
            ("holdfast connection rm v h", "mean holdfast disconnect? ("),
            ("holdfast connection create v h", "mean holdfast connect? ("),
            (
                "holdfast rm v",
                "mean holdfast volume destroy, holdfast snapshot destroy or holdfast g",
            ),
            ("holdfast create v", "mean holdfast pool create, holdfast volume create or "),
            ("holdfast snap v", "mean holdfast snapshot? ("),
            ("holdfast pool expand", "mean holdfast pool grow? ("),
        ] {
            let hint = hint(line).unwrap();
            assert!(hint.contains(meant) && !hint.contains('\n'), "{line}: {hint}");
        }
        assert_eq!(hint("holdfast frobnicate"), None);
        assert_eq!(hint("holdfast volume create"), None);
    }

    #[test]
    fn every_suggested_verb_exists() {
        let root = Cli::command();
        let exists = |name: &str| {
            root.find_subcommand(name).is_some()
                || root.get_subcommands().any(|noun| noun.find_subcommand(name).is_some())
        };
        for name in SYNONYMS.iter().flat_map(|(_, own)| own.iter()) {
            assert!(exists(name), "{name}");
        }
        for (noun, _, verb) in WITHOUT_NOUN {
            assert!(exists(noun) && exists(verb), "{noun} {verb}");
        }
    }
}
