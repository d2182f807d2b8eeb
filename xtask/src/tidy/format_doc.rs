//! Generates `docs/on-disk-format.md` from the byte tables at the head of the modules of
//! `crates/format`, so that layout and document have one source.

use std::path::Path;

use anyhow::Result;

use super::{Finding, Tree};

/// The document.
const DOCUMENT: &str = "docs/on-disk-format.md";

/// The modules, in the order of the document, with their headings.
const MODULES: [(&str, &str); 14] = [
    ("lib.rs", "On-disk format"),
    ("geometry.rs", "Segments and locations"),
    ("superblock.rs", "Superblock"),
    ("log.rs", "Log records"),
    ("entry.rs", "Redo entries"),
    ("map.rs", "Map nodes"),
    ("row.rs", "Rows"),
    ("label.rs", "Labels of devices"),
    ("parts_map.rs", "The map of parts"),
    ("segment_row.rs", "Rows of the segment table"),
    ("page.rs", "Pages and streams"),
    ("key_space.rs", "Key-value space"),
    ("checksum.rs", "Checksums"),
    ("codec.rs", "Integers"),
];

/// Returns the document generated from the sources.
fn render(tree: &Tree) -> Result<String, Finding> {
    let mut out = String::new();
    for (index, (file, heading)) in MODULES.iter().enumerate() {
        let path = format!("crates/format/src/{file}");
        let source =
            tree.get(&path).ok_or_else(|| Finding::new(&path, 0, "the file does not exist"))?;
        let level = if index == 0 { "#" } else { "\n##" };
        out.push_str(&format!("{level} {heading}\n\n{}", module_text(source)));
        if index == 0 {
            out.push_str(
                "\nGenerated from `crates/format/src` by `cargo xtask format-doc`; make changes \
                 there.\n[crash-consistency.md](crash-consistency.md) explains the order of \
                 writes.\n",
            );
        }
    }
    Ok(out)
}

/// Returns the comment at the head of a module, without its slashes.
fn module_text(source: &str) -> String {
    source
        .lines()
        .map_while(|line| line.strip_prefix("//!"))
        .map(|line| format!("{}\n", line.strip_prefix(' ').unwrap_or(line)))
        .collect()
}

/// Writes the document.
pub fn write(root: &Path) -> Result<()> {
    let tree = Tree::tracked(root)?;
    let text = render(&tree).map_err(|finding| anyhow::anyhow!("{finding}"))?;
    Ok(std::fs::write(root.join(DOCUMENT), text)?)
}

/// Checks that the document matches the sources.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let expected = match render(tree) {
        Ok(expected) => expected,
        Err(finding) => return vec![finding],
    };
    if tree.get(DOCUMENT) == Some(expected.as_str()) {
        return Vec::new();
    }
    vec![Finding::new(DOCUMENT, 0, "out of date; run cargo xtask format-doc")]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_opening_comment_is_taken() {
        let source = "//! One.\n//!\n//! ```text\n//!  0  4  x\n//! ```\n\nuse a;\n//! not this\n";
        assert_eq!(module_text(source), "One.\n\n```text\n 0  4  x\n```\n");
    }
}
