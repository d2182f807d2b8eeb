//! Checks that top-level modules of a crate do not import each other in cycles.
//!
//! The modules of a cycle can only be understood, tested and moved together. The ratchet contains
//! how many modules of each crate were in cycles when that was accepted.
//!
//! A module imports another one if one of its files names it outside tests: by `crate::`, by as
//! many `super::` as lead to the root, or by a name that the root re-exports. Items that the root
//! itself defines do not count.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};

use super::{Finding, Tree, ratchet, rust};

/// The top-level modules of a crate, with the modules that each imports.
type Graph = BTreeMap<String, BTreeSet<String>>;

/// Checks that no crate has more modules in cycles than was accepted.
pub fn check(tree: &Tree) -> Vec<Finding> {
    // The check of lengths reports a ratchet that does not parse.
    let Ok(accepted) = ratchet::accepted(tree) else { return Vec::new() };
    let mut findings = Vec::new();
    for (name, circles) in all(tree) {
        let count = circles.iter().map(Vec::len).sum::<usize>();
        let most = accepted.circles.get(&name).copied().unwrap_or(0);
        if count > most {
            let circles: Vec<String> = circles.iter().map(|circle| circle.join(", ")).collect();
            let message = format!(
                "{count} modules import each other in circles; at most {most}. These do: {}",
                circles.join("; ")
            );
            findings.push(Finding::new(&root_of(tree, &name), 0, message));
        }
    }
    findings
}

/// Returns how many modules are in cycles, of each crate that has any.
pub fn counts(tree: &Tree) -> BTreeMap<String, usize> {
    let all = all(tree).into_iter();
    all.map(|(name, circles)| (name, circles.iter().map(Vec::len).sum())).collect()
}

/// Returns the cycles of each crate that has any.
fn all(tree: &Tree) -> BTreeMap<String, Vec<Vec<String>>> {
    let crates: BTreeSet<&str> =
        tree.files().filter_map(|(path, _)| place(path)).map(|p| p.0).collect();
    let found = crates.into_iter().map(|name| (name.to_owned(), circles(&graph(tree, name))));
    found.filter(|(_, circles)| !circles.is_empty()).collect()
}

/// Returns the crate of a source file, and its path below `src`.
fn place(path: &str) -> Option<(&str, &str)> {
    let (name, file) = path.strip_prefix("crates/")?.split_once("/src/")?;
    (file.ends_with(".rs") && !name.contains('/')).then_some((name, file))
}

/// Returns the file with the root module of a crate.
fn root_of(tree: &Tree, name: &str) -> String {
    let library = format!("crates/{name}/src/lib.rs");
    if tree.get(&library).is_some() { library } else { format!("crates/{name}/src/main.rs") }
}

/// Returns the imports between the top-level modules of a crate.
fn graph(tree: &Tree, name: &str) -> Graph {
    let root = tree.get(&root_of(tree, name)).and_then(|text| syn::parse_file(text).ok());
    let Some(root) = root else { return Graph::new() };
    let for_tests = test_modules(&root);
    let mut named: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (path, text) in tree.ending_in(".rs") {
        let Some((_, file)) = place(path).filter(|(of, _)| *of == name) else { continue };
        let modules = modules_of(file);
        let Some(top) = modules.first() else { continue };
        if rust::is_test_file(path) || for_tests.contains(*top) {
            continue;
        }
        // Another check reports one that does not parse.
        let Ok(parsed) = syn::parse_file(text) else { continue };
        let mut names = Names { depth: modules.len(), found: BTreeSet::new() };
        names.visit_file(&parsed);
        named.entry((*top).to_owned()).or_default().extend(names.found);
    }
    let exported = re_exports(&root, &named);
    let resolve = |name: String| match named.contains_key(&name) {
        true => Some(name),
        false => exported.get(&name).cloned(),
    };
    let imports = |(module, names): (&String, &BTreeSet<String>)| {
        let others = names.iter().cloned().filter_map(resolve).filter(|other| other != module);
        (module.clone(), others.collect())
    };
    named.iter().map(imports).collect()
}

/// Returns the path of a file's module below the root: empty for the root itself and for programs.
fn modules_of(file: &str) -> Vec<&str> {
    let mut parts: Vec<&str> = file.trim_end_matches(".rs").split('/').collect();
    if parts.last() == Some(&"mod") {
        parts.pop();
    }
    match parts[..] {
        ["lib" | "main"] | ["bin", ..] => Vec::new(),
        _ => parts,
    }
}

/// Returns the modules that the root declares for tests only.
fn test_modules(root: &syn::File) -> BTreeSet<String> {
    let modules = root.items.iter().filter_map(|item| match item {
        syn::Item::Mod(module) => Some(module),
        _ => None,
    });
    let for_tests = modules.filter(|module| rust::are_for_tests(&module.attrs));
    for_tests.map(|module| module.ident.to_string()).collect()
}

/// Returns the names that the root imports, and so re-exports within the crate, with their modules.
fn re_exports(
    root: &syn::File,
    modules: &BTreeMap<String, BTreeSet<String>>,
) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for item in &root.items {
        let syn::Item::Use(item) = item else { continue };
        let mut paths = Vec::new();
        leaves(&item.tree, &mut Vec::new(), &mut paths);
        for (path, name) in paths {
            let mut path = path.into_iter().skip_while(|part| part == "crate" || part == "self");
            if let Some(module) = path.next().filter(|part| modules.contains_key(part)) {
                found.insert(name, module);
            }
        }
    }
    found
}

/// Collects the full paths of an import, each with the name that it binds; `*` binds none.
fn leaves(tree: &syn::UseTree, before: &mut Vec<String>, found: &mut Vec<(Vec<String>, String)>) {
    let whole = |last: &syn::Ident, before: &[String]| {
        let mut path = before.to_vec();
        if last != "self" {
            path.push(last.to_string());
        }
        path
    };
    match tree {
        syn::UseTree::Path(path) => {
            before.push(path.ident.to_string());
            leaves(&path.tree, before, found);
            before.pop();
        }
        syn::UseTree::Name(name) => {
            let path = whole(&name.ident, before);
            let given = path.last().cloned().unwrap_or_default();
            found.push((path, given));
        }
        syn::UseTree::Rename(name) => {
            found.push((whole(&name.ident, before), name.rename.to_string()));
        }
        syn::UseTree::Group(group) => {
            group.items.iter().for_each(|tree| leaves(tree, before, found));
        }
        syn::UseTree::Glob(_) => found.push((before.clone(), "*".to_owned())),
    }
}

/// The names at the root of the crate that a file uses outside its tests.
struct Names {
    /// How many modules below the root the current code is.
    depth: usize,
    found: BTreeSet<String>,
}

impl Names {
    /// Adds a path as written.
    fn add(&mut self, path: &[String]) {
        let supers = path.iter().take_while(|part| *part == "super").count();
        let name = match path.first().map(String::as_str) {
            Some("crate") => path.get(1),
            Some("super") if supers == self.depth => path.get(supers),
            _ => None,
        };
        self.found.extend(name.cloned());
    }

    /// Adds the paths in the arguments of a macro, which are only tokens.
    fn add_tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.add(&path);
                        path.clear();
                    }
                    path.push(ident.to_string());
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Group(group) => self.add_tokens(group.stream()),
                _ => colons = 0,
            }
        }
        self.add(&path);
    }
}

impl<'ast> Visit<'ast> for Names {
    fn visit_item(&mut self, node: &'ast syn::Item) {
        if !rust::attributes(node).is_some_and(rust::are_for_tests) {
            visit::visit_item(self, node);
        }
    }

    fn visit_item_mod(&mut self, node: &'ast syn::ItemMod) {
        self.depth += 1;
        visit::visit_item_mod(self, node);
        self.depth -= 1;
    }

    fn visit_item_use(&mut self, node: &'ast syn::ItemUse) {
        let mut paths = Vec::new();
        leaves(&node.tree, &mut Vec::new(), &mut paths);
        paths.iter().for_each(|(path, _)| self.add(path));
    }

    fn visit_path(&mut self, node: &'ast syn::Path) {
        let path: Vec<String> = node.segments.iter().map(|part| part.ident.to_string()).collect();
        self.add(&path);
        visit::visit_path(self, node);
    }

    fn visit_macro(&mut self, node: &'ast syn::Macro) {
        visit::visit_macro(self, node);
        self.add_tokens(node.tokens.clone());
    }
}

/// Returns the cycles of a graph: groups of modules of which each reaches all others.
fn circles(graph: &Graph) -> Vec<Vec<String>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        graph.keys().map(|module| (module.as_str(), reached_from(graph, module))).collect();
    let mut found: BTreeSet<Vec<String>> = BTreeSet::new();
    for (module, others) in &reached {
        if others.contains(module) {
            let back = others.iter().filter(|other| reached[*other].contains(module));
            found.insert(back.map(|other| (*other).to_owned()).collect());
        }
    }
    found.into_iter().collect()
}

/// Returns what a module imports, directly or indirectly: including itself, if it is in a cycle.
fn reached_from<'a>(graph: &'a Graph, module: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<&str> = graph[module].iter().map(String::as_str).collect();
    while let Some(one) = next.pop() {
        if reached.insert(one) {
            next.extend(graph[one].iter().map(String::as_str));
        }
    }
    reached
}
