//! Each check gets a tree with a fault that it must find, and one without.

use super::*;

/// Returns a tree of these files.
fn tree(files: &[(&str, &str)]) -> Tree {
    let mut tree = Tree::default();
    for (path, text) in files {
        tree.insert(path, text);
    }
    tree
}

/// Returns the lines on which `check` finds a fault in one file.
fn lines_found(check: fn(&Tree) -> Vec<Finding>, path: &str, text: &str) -> Vec<usize> {
    check(&tree(&[(path, text)])).into_iter().map(|finding| finding.line).collect()
}

/// No line.
const NOWHERE: [usize; 0] = [];

fn manifest(name: &str, dependencies: &str) -> String {
    format!("[package]\nname = \"{name}\"\n[lints]\nworkspace = true\n{dependencies}")
}

#[test]
fn a_dependency_of_a_protocol_on_the_store_is_found() {
    let good = manifest("scsi", "[dependencies]\nblock.workspace = true\nthiserror = \"2\"\n");
    assert!(arrows::check_arrows(&tree(&[("crates/scsi/Cargo.toml", &good)])).is_empty());
    for section in ["dependencies", "dev-dependencies", "target.'cfg(unix)'.dependencies"] {
        let bad = manifest("scsi", &format!("[{section}]\nstore = {{ path = \"../store\" }}\n"));
        let findings = arrows::check_arrows(&tree(&[("crates/scsi/Cargo.toml", &bad)]));
        assert_eq!(findings.len(), 1, "{section}");
        assert!(findings[0].message.contains("`scsi` may not depend on `store`"));
    }
}

#[test]
fn a_renamed_dependency_is_found() {
    let bad = manifest("lab", "[dependencies]\ninner = { package = \"store\" }\n");
    assert_eq!(arrows::check_arrows(&tree(&[("crates/lab/Cargo.toml", &bad)])).len(), 1);
}

#[test]
fn a_crate_without_a_row_or_without_the_lints_is_found() {
    let unknown = manifest("surprise", "");
    assert_eq!(arrows::check_arrows(&tree(&[("crates/surprise/Cargo.toml", &unknown)])).len(), 1);
    let lax = "[package]\nname = \"block\"\n";
    assert_eq!(arrows::check_arrows(&tree(&[("crates/block/Cargo.toml", lax)])).len(), 1);
}

#[test]
fn dependencies_need_a_row_and_rows_a_dependency() {
    let table = "| crate | why |\n|---|---|\n| `serde` | x |\n| `old` | y |\n";
    let uses = manifest("array", "[dependencies]\nserde = \"1\"\nnew = \"1\"\nblock = \"0\"\n");
    let files =
        [("docs/rfcs/0002-dependencies.md", table), ("crates/array/Cargo.toml", uses.as_str())];
    let messages: Vec<String> =
        arrows::check_dependencies(&tree(&files)).into_iter().map(|f| f.message).collect();
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert!(messages[0].contains("`new` has no row"));
    assert!(messages[1].contains("`old`"));
}

#[test]
fn long_lines_tabs_and_trailing_blanks_are_found() {
    let long = "x".repeat(101);
    assert_eq!(lines_found(text::check_lines, "a.rs", &format!("ok\n{long}\n")), [2]);
    assert_eq!(lines_found(text::check_lines, "a.rs", &format!("{}\n", "é".repeat(100))), NOWHERE);
    assert_eq!(lines_found(text::check_lines, "a.md", &format!("| {long}\n")), NOWHERE);
    assert_eq!(lines_found(text::check_lines, "a.md", &format!("{long}\n")), NOWHERE);
    assert_eq!(lines_found(text::check_lines, "a.md", &format!("{}\n", "x".repeat(126))), [1]);
    assert_eq!(lines_found(text::check_lines, "a.rs", "a\tb\nc \n"), [1, 2]);
    assert_eq!(lines_found(text::check_lines, "a.rs", "not ended"), [0]);
    assert_eq!(lines_found(text::check_lines, "Cargo.lock", &format!("{long}\n")), NOWHERE);
}

#[test]
fn markers_are_found_but_not_inside_words() {
    let bad = ["// TO", "DO later\nlet x = db", "g!(y);\nto", "do!()\n"].concat();
    assert_eq!(lines_found(text::check_markers, "a.rs", &bad), [1, 2, 3]);
    assert_eq!(lines_found(text::check_markers, "a.rs", "// HACKNEY, mastodon\n"), NOWHERE);
}

#[test]
fn paths_and_hosts_of_one_machine_are_found() {
    let home = ["see `/ho", "me/me/x`\n"].concat();
    assert_eq!(lines_found(text::check_places, "README.md", &home), [1]);
    assert_eq!(
        lines_found(text::check_places, "a.rs", "/dev/nvme0n1, a/b/c, /proc/self/io\n"),
        NOWHERE
    );
    let host = ["http", "://mirror.internal/x\n"].concat();
    assert_eq!(lines_found(text::check_places, "a.toml", &host), [1]);
    assert_eq!(lines_found(text::check_places, "a.md", "https://github.com/a/b\n"), NOWHERE);
    assert_eq!(lines_found(text::check_places, "x", "#!/usr/bin/env bash\n"), NOWHERE);
}

#[test]
fn a_file_without_a_document_or_that_does_not_parse_is_found() {
    assert_eq!(lines_found(rust::check_documents, "crates/a/src/lib.rs", "fn f() {}\n"), [1]);
    assert_eq!(lines_found(rust::check_documents, "crates/a/src/lib.rs", "//! A.\n"), NOWHERE);
    assert_eq!(
        lines_found(rust::check_documents, "crates/a/src/x/tests.rs", "fn f() {}\n"),
        NOWHERE
    );
    assert_eq!(lines_found(rust::check_documents, "crates/a/src/lib.rs", "//! A.\nfn (\n"), [2]);
}

#[test]
fn unsafe_is_found_outside_of_its_crates_and_without_its_reason() {
    let silent = "//! A.\nfn f() {\n    unsafe { g() }\n}\n";
    assert_eq!(lines_found(rust::check_unsafe, "crates/store/src/a.rs", silent), [3]);
    assert_eq!(lines_found(rust::check_unsafe, "crates/sys/src/a.rs", silent), [3]);
    let reasoned = "//! A.\nfn f() {\n    // SAFETY: g asks for nothing.\n    unsafe { g() }\n}\n";
    assert_eq!(lines_found(rust::check_unsafe, "crates/sys/src/a.rs", reasoned), NOWHERE);
    assert_eq!(lines_found(rust::check_unsafe, "crates/store/src/a.rs", reasoned), [4]);
    for item in ["unsafe impl Send for A {}", "unsafe fn f() {}", "unsafe trait A {}"] {
        assert_eq!(lines_found(rust::check_unsafe, "crates/sys/src/a.rs", item), [1], "{item}");
    }
    let hidden = "// unsafe { } in a comment\nconst A: &str = \"unsafe { }\";\n";
    assert_eq!(lines_found(rust::check_unsafe, "crates/store/src/a.rs", hidden), NOWHERE);
    let off = "#![allow(unsafe_code)]\n";
    assert_eq!(lines_found(rust::check_unsafe, "crates/store/src/a.rs", off), [1]);
}

#[test]
fn banned_names_are_found_in_core_crates_but_not_in_their_tests() {
    let bad = "fn f() {\n    let t = std::time::Instant::now();\n    println!(\"{t:?}\");\n}\n";
    let found = lines_found(rust::check_banned_names, "crates/store/src/a.rs", bad);
    assert_eq!(found, [2, 2, 3]);
    assert_eq!(lines_found(rust::check_banned_names, "crates/holdfast/src/a.rs", bad), NOWHERE);
    assert_eq!(lines_found(rust::check_banned_names, "crates/store/tests/a.rs", bad), NOWHERE);
    let program = "crates/simulator/src/main.rs";
    assert_eq!(lines_found(rust::check_banned_names, program, bad), NOWHERE);
    let inline = format!("#[cfg(test)]\nmod tests {{\n{bad}}}\n{bad}");
    let found = lines_found(rust::check_banned_names, "crates/store/src/a.rs", &inline);
    assert_eq!(found, [9, 9, 10]);
    let comment = "// std::time::Instant::now() is what the caller uses\n";
    assert_eq!(lines_found(rust::check_banned_names, "crates/store/src/a.rs", comment), NOWHERE);
}

#[test]
fn long_files_and_functions_are_found_unless_the_ratchet_accepts_them() {
    let body = "    g();\n".repeat(69);
    let fits = format!("fn f() {{\n{}}}\n", "    g();\n".repeat(68));
    let long = format!("struct A;\nimpl A {{\nfn f() {{\n{body}}}\n}}\n");
    assert!(ratchet::check(&tree(&[("crates/a/src/a.rs", &fits)])).is_empty());
    let mut grown = tree(&[("crates/a/src/a.rs", &long)]);
    let findings = ratchet::check(&grown);
    assert_eq!(findings.len(), 1);
    assert!(findings[0].message.contains("A::f: 71 lines; at most 70"));
    let accepted = ratchet::accept(&grown);
    grown.insert(ratchet::PATH, &accepted);
    assert!(ratchet::check(&grown).is_empty());
    let longer = long.replacen("    g();\n", "    g();\n    g();\n", 1);
    grown.insert("crates/a/src/a.rs", &longer);
    assert_eq!(ratchet::check(&grown).len(), 1);
}

#[test]
fn no_ratchet_allows_a_file_over_the_hard_limit() {
    let mut tree = tree(&[("crates/a/src/a.rs", &"//\n".repeat(801))]);
    let accepted = ratchet::accept(&tree);
    tree.insert(ratchet::PATH, &accepted);
    let findings = ratchet::check(&tree);
    assert_eq!(findings.len(), 1);
    assert!(findings[0].message.contains("at most 800"));
}

#[test]
fn dead_links_and_headings_are_found() {
    let files = [
        ("docs/a.md", "# A thing, done\n[b](b.md) [c](c.md) [up](../README.md#here)\n"),
        ("docs/b.md", "[a](a.md#a-thing-done) [gone](a.md#gone) [out](../../x)\n"),
        ("README.md", "## Here\n```\n[not](a-link)\n```\n`[nor](this)` [d](docs)\n"),
    ];
    let found: Vec<String> =
        docs::check_links(&tree(&files)).into_iter().map(|finding| finding.message).collect();
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found[0].contains("c.md does not exist"));
    assert!(found[1].contains("no heading #gone"));
    assert!(found[2].contains("out of the repository"));
}

#[test]
fn a_document_that_the_readme_does_not_name_is_found() {
    let files = [
        ("README.md", "[a](docs/a.md) [all](docs/rfcs/)\n"),
        ("docs/a.md", "\n"),
        ("docs/lost.md", "\n"),
        ("docs/rfcs/0001-x.md", "\n"),
    ];
    let found = docs::check_index(&tree(&files));
    assert_eq!(found.len(), 1);
    assert!(found[0].message.contains("docs/lost.md"));
}

#[test]
fn commands_and_their_document_must_match() {
    let table = "static COMMANDS: &[Entry] = &[\nplain(\"READ (10)\", Read, &[0x28, 0xf8], x),\n\
                 action(\"GET LBA STATUS\", Read,\n        &[0x9e, 0x12, F], y),\n];\n";
    let rows = "| 28h |  | READ (10) | a | b | c |\n| 9Eh | 12h | GET LBA STATUS | a | b | c |\n\
                | 00h | a page of two columns |\n";
    let files =
        |document| tree(&[("crates/scsi/src/table.rs", table), ("docs/conformance.md", document)]);
    assert_eq!(conformance::check_commands(&files(rows)), []);
    let stale = rows.replace("(10)", "(12)");
    let found = conformance::check_commands(&files(&stale));
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].message.contains("28h |  | READ (10)"));
    assert!(found[1].message.contains("no command implements"));
}

/// Returns a crate whose root declares `a` and `b`, with these two modules.
fn two_modules(root: &str, a: &str, b: &str) -> Tree {
    tree(&[("crates/c/src/lib.rs", root), ("crates/c/src/a.rs", a), ("crates/c/src/b/mod.rs", b)])
}

#[test]
fn import_circles_are_found_with_any_path_syntax() {
    let root = "mod a;\nmod b;\npub use b::inner::{B, C as D};\nuse crate::a::A;\n";
    let to_a = "use crate::a::thing;\n";
    for to_b in [
        "use crate::b::thing;\n",
        "use crate::{a, b::{self, other}};\n",
        "use super::b;\n",
        "use crate::B;\n",
        "use crate::D;\n",
        "fn f() -> crate::b::Thing {}\n",
        "fn f() {\n    g(|| super::b::thing());\n}\n",
        "fn f() {\n    assert!(true, \"{}\", crate::b::NAME);\n}\n",
        "mod inner {\n    use super::super::b;\n}\n",
    ] {
        let findings = circles::check(&two_modules(root, to_b, to_a));
        assert_eq!(findings.len(), 1, "{to_b}");
        assert_eq!(findings[0].path, "crates/c/src/lib.rs");
        assert!(findings[0].message.contains("2 modules"), "{}", findings[0].message);
        assert!(findings[0].message.contains("These do: a, b"), "{}", findings[0].message);
    }
    let findings = circles::check(&two_modules(root, "use crate::b;\n", "use crate::A;\n"));
    assert_eq!(findings.len(), 1, "by a name that the root imports privately");
}

#[test]
fn submodules_count_as_their_module() {
    let mut tree = two_modules("mod a;\nmod b;\n", "use crate::b;\n", "mod inner;\n");
    assert!(circles::check(&tree).is_empty());
    tree.insert("crates/c/src/b/inner.rs", "use super::a;\n");
    assert!(circles::check(&tree).is_empty(), "`b::a` is no module at the top");
    tree.insert("crates/c/src/b/inner.rs", "use super::super::a;\n");
    assert_eq!(circles::check(&tree).len(), 1);
}

#[test]
fn imports_in_comments_texts_and_tests_make_no_circle() {
    let root = "mod a;\nmod b;\n#[cfg(test)]\nmod fixtures;\npub struct Own;\npub use store::B;\n";
    for harmless in [
        "//! See [`crate::b`].\n// use crate::b;\nconst TEXT: &str = \"crate::b\";\n",
        "#[cfg(test)]\nmod tests {\n    use crate::b;\n}\n",
        "#[cfg(test)]\nuse crate::b;\n",
        "use crate::Own;\nuse crate::B;\nuse std::b;\nuse crate::a::b;\nuse super::*;\n",
    ] {
        let mut tree = two_modules(root, harmless, "use crate::a;\n");
        tree.insert("crates/c/src/a/tests.rs", "use crate::b;\n");
        tree.insert("crates/c/src/fixtures.rs", "use crate::a;\n");
        tree.insert("crates/c/src/bin/tool.rs", "use crate::a;\n");
        assert!(circles::check(&tree).is_empty(), "{harmless}");
    }
}

#[test]
fn the_ratchet_accepts_known_circles_but_no_further_module() {
    let root = "mod a;\nmod b;\nmod c;\n";
    let mut tree = two_modules(root, "use crate::b;\n", "use crate::a;\n");
    let accepted = ratchet::accept(&tree);
    assert!(accepted.ends_with("[circles]\nc = 2\n"), "{accepted}");
    tree.insert(ratchet::PATH, &accepted);
    assert!(circles::check(&tree).is_empty());
    tree.insert("crates/c/src/c.rs", "use crate::a;\n");
    assert!(circles::check(&tree).is_empty(), "nothing imports `c`");
    tree.insert("crates/c/src/b/mod.rs", "use crate::{a, c};\n");
    let findings = circles::check(&tree);
    assert_eq!(findings.len(), 1);
    assert!(findings[0].message.contains("3 modules import each other in circles; at most 2"));
}
