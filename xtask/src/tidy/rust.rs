//! Checks that parse Rust: doc comments, `unsafe`, banned names, lengths of functions.

use std::ops::RangeInclusive;
use std::sync::LazyLock;

use regex::Regex;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::{Finding, Tree};

/// The crates that may contain unsafe code.
const UNSAFE: &[&str] = &["crates/sys/", "crates/libiscsi/", "crates/parity/src/library.rs"];

/// How many lines above an `unsafe` its reason may be.
const SAFETY_LINES: usize = 12;

/// The crates that decide and have no effects; see `clippy.toml`.
const CORE: &[&str] = &[
    "block",
    "format",
    "store",
    "scsi",
    "iscsi",
    "initiator",
    "array",
    "api",
    "front",
    "history",
    "simulator",
];

/// The core crates whose runs must be identical for one seed. Look-ups in maps with a random order
/// are fine, so `HashMap` is not banned: the simulator shows that their order never matters, by
/// running seeds twice and comparing the traces.
const DETERMINISTIC: &[&str] = &["block", "format", "front", "store", "initiator", "simulator"];

/// A name, the crates in which it is banned, and what to use instead.
struct Ban {
    pattern: Regex,
    crates: &'static [&'static str],
    instead: &'static str,
}

/// Bans that clippy's lists can't express, or that clippy applies only where the item is called and
/// not where it is named.
static BANS: LazyLock<Vec<Ban>> = LazyLock::new(|| {
    let ban = |pattern: &str, crates, instead| Ban {
        pattern: Regex::new(pattern).expect("the pattern is constant"),
        crates,
        instead,
    };
    vec![
        ban(r"\bstd::time::(Instant|SystemTime)\b", CORE, "take the time from the caller"),
        ban(r"\b(Instant|SystemTime)::now\b", CORE, "take the time from the caller"),
        ban(r"\b(std::)?thread::(spawn|sleep|Builder)\b", CORE, "threads belong to the programs"),
        ban(r"\bTcp(Stream|Listener)\b|\bUdpSocket\b", CORE, "sockets belong to the programs"),
        ban(r"\bstd::(fs|env|process)\b", CORE, "files and processes belong to the programs"),
        ban(r"\be?print(ln)?!", CORE, "return the text to the caller"),
        ban(r"\b(rand|getrandom|fastrand)::", CORE, "take entropy from the caller"),
        ban(
            r"\bRandomState\b",
            DETERMINISTIC,
            "use a hasher with a fixed key: runs must be reproducible",
        ),
        ban(r"\bstatic mut\b", CORE, "an owner"),
    ]
});

/// A function, its location and length.
pub struct Function {
    /// Its name, with the type it belongs to.
    pub name: String,
    /// The line of its signature, from 1.
    pub line: usize,
    /// The number of lines from its signature to its closing bracket.
    pub length: usize,
}

/// Checks that every file parses, and that every one except tests begins with `//!`: its purpose.
pub fn check_documents(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.ending_in(".rs") {
        if let Err(error) = syn::parse_file(text) {
            let line = error.span().start().line;
            findings.push(Finding::new(path, line, format!("the file does not parse: {error}")));
        } else if !text.starts_with("//!") && !is_test_file(path) {
            findings.push(Finding::new(path, 1, "start with `//!`: the purpose of this file"));
        }
    }
    findings
}

/// Checks that `unsafe` is only where it is allowed, with its reason.
pub fn check_unsafe(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.ending_in(".rs") {
        let Ok(file) = syn::parse_file(text) else { continue };
        let mut unsafes = Unsafes::default();
        unsafes.visit_file(&file);
        let allowed = UNSAFE.iter().any(|place| path.starts_with(place));
        let lines: Vec<&str> = text.lines().collect();
        for line in unsafes.lines {
            if !allowed {
                let message = format!("`unsafe` outside {}", UNSAFE.join(" and "));
                findings.push(Finding::new(path, line, message));
            } else if !has_reason(&lines, line) {
                findings.push(Finding::new(path, line, "`unsafe` without a SAFETY: comment"));
            }
        }
        let mut allows = Allows::default();
        allows.visit_file(&file);
        if !allowed {
            for line in allows.lines {
                findings.push(Finding::new(
                    path,
                    line,
                    "the lint against `unsafe` is disabled here",
                ));
            }
        }
    }
    findings
}

/// Checks that core crates do not use banned names outside their tests.
pub fn check_banned_names(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.ending_in(".rs") {
        let Some(name) = path.strip_prefix("crates/").and_then(|rest| rest.split('/').next())
        else {
            continue;
        };
        if is_test_file(path) || is_program(path) {
            continue;
        }
        let Ok(file) = syn::parse_file(text) else { continue };
        let tests = test_lines(&file);
        for (index, line) in text.lines().enumerate() {
            let number = index + 1;
            let code = line.split("//").next().unwrap_or_default();
            if tests.iter().any(|range| range.contains(&number)) {
                continue;
            }
            for ban in BANS.iter().filter(|ban| ban.crates.contains(&name)) {
                if let Some(found) = ban.pattern.find(code) {
                    let message = format!("`{}` in `{name}`: {}", found.as_str(), ban.instead);
                    findings.push(Finding::new(path, number, message));
                }
            }
        }
    }
    findings
}

/// Returns the functions of a file, including tests; none if it does not parse.
pub fn functions(text: &str) -> Vec<Function> {
    let Ok(file) = syn::parse_file(text) else { return Vec::new() };
    let mut lengths = Lengths::default();
    lengths.visit_file(&file);
    lengths.functions
}

/// Returns whether a file contains only tests.
pub fn is_test_file(path: &str) -> bool {
    path.ends_with("tests.rs") || path.contains("tests/") || path.contains("fuzz/")
}

/// Returns whether a file of a core crate is a separate program, which may have effects.
fn is_program(path: &str) -> bool {
    path.contains("src/bin/")
        || path.ends_with("src/main.rs")
        || path.contains("examples/")
        || path.ends_with("build.rs")
}

/// Returns the lines of everything under `#[cfg(test)]`.
fn test_lines(file: &syn::File) -> Vec<RangeInclusive<usize>> {
    let mut found = Vec::new();
    for item in &file.items {
        if attributes(item).is_some_and(are_for_tests) {
            found.push(item.span().start().line..=item.span().end().line);
        }
    }
    found
}

/// Returns the attributes of an item, of the kinds that tests consist of.
pub fn attributes(item: &syn::Item) -> Option<&[syn::Attribute]> {
    match item {
        syn::Item::Mod(item) => Some(&item.attrs),
        syn::Item::Fn(item) => Some(&item.attrs),
        syn::Item::Impl(item) => Some(&item.attrs),
        syn::Item::Use(item) => Some(&item.attrs),
        syn::Item::Struct(item) => Some(&item.attrs),
        _ => None,
    }
}

/// Returns whether there is a `#[cfg(test)]` among these.
pub fn are_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Ident>().is_ok_and(|condition| condition == "test")
    })
}

/// Returns whether a comment above `line` (from 1), or on it, gives the reason for an `unsafe`.
fn has_reason(lines: &[&str], line: usize) -> bool {
    let last = line.min(lines.len());
    let first = last.saturating_sub(SAFETY_LINES + 1);
    lines[first..last].iter().any(|line| line.contains("SAFETY:") || line.contains("# Safety"))
}

/// Finds unsafe code.
#[derive(Default)]
struct Unsafes {
    lines: Vec<usize>,
}

impl<'ast> Visit<'ast> for Unsafes {
    fn visit_expr_unsafe(&mut self, node: &'ast syn::ExprUnsafe) {
        self.lines.push(node.unsafe_token.span.start().line);
        visit::visit_expr_unsafe(self, node);
    }

    fn visit_item_impl(&mut self, node: &'ast syn::ItemImpl) {
        self.lines.extend(node.unsafety.map(|token| token.span.start().line));
        visit::visit_item_impl(self, node);
    }

    fn visit_item_trait(&mut self, node: &'ast syn::ItemTrait) {
        self.lines.extend(node.unsafety.map(|token| token.span.start().line));
        visit::visit_item_trait(self, node);
    }

    fn visit_signature(&mut self, node: &'ast syn::Signature) {
        if let syn::Safety::Unsafe(token) = &node.safety {
            self.lines.push(token.span.start().line);
        }
        visit::visit_signature(self, node);
    }
}

/// Finds `allow(unsafe_code)`.
#[derive(Default)]
struct Allows {
    lines: Vec<usize>,
}

impl<'ast> Visit<'ast> for Allows {
    fn visit_attribute(&mut self, node: &'ast syn::Attribute) {
        if let syn::Meta::List(list) = &node.meta
            && (list.path.is_ident("allow") || list.path.is_ident("expect"))
            && list.tokens.to_string().contains("unsafe_code")
        {
            self.lines.push(node.span().start().line);
        }
    }
}

/// Measures functions.
#[derive(Default)]
struct Lengths {
    /// The type or module that is being visited.
    scope: Vec<String>,
    functions: Vec<Function>,
}

impl Lengths {
    fn add(&mut self, signature: &syn::Signature, end: proc_macro2::Span) {
        let line = signature.span().start().line;
        let mut name = self.scope.join("::");
        if !name.is_empty() {
            name.push_str("::");
        }
        name.push_str(&signature.ident.to_string());
        self.functions.push(Function { name, line, length: end.end().line + 1 - line });
    }
}

impl<'ast> Visit<'ast> for Lengths {
    fn visit_item_fn(&mut self, node: &'ast syn::ItemFn) {
        self.add(&node.sig, node.block.span());
        visit::visit_item_fn(self, node);
    }

    fn visit_impl_item_fn(&mut self, node: &'ast syn::ImplItemFn) {
        self.add(&node.sig, node.block.span());
        visit::visit_impl_item_fn(self, node);
    }

    fn visit_trait_item_fn(&mut self, node: &'ast syn::TraitItemFn) {
        if let Some(block) = &node.default {
            self.add(&node.sig, block.span());
        }
        visit::visit_trait_item_fn(self, node);
    }

    fn visit_item_mod(&mut self, node: &'ast syn::ItemMod) {
        self.scope.push(node.ident.to_string());
        visit::visit_item_mod(self, node);
        self.scope.pop();
    }

    fn visit_item_impl(&mut self, node: &'ast syn::ItemImpl) {
        let name = match node.self_ty.as_ref() {
            syn::Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
            _ => None,
        };
        self.scope.push(name.unwrap_or_else(|| "impl".to_owned()));
        visit::visit_item_impl(self, node);
        self.scope.pop();
    }
}
