//! The corpus that `tests-reduction/build` makes: a list of parts, in the order of writing.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

/// Deduplication works on blocks of this size, aligned to it.
pub const BLOCK_BYTES: usize = 4096;

/// The set to which the aim for inline reduction refers.
pub const IMAGES: &str = "images";

/// A file that becomes a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The kind of data: `images`, `database`, …
    pub set: String,
    /// Its name: the file's, without `.img`.
    pub name: String,
    /// The file.
    pub path: PathBuf,
}

/// Returns the parts listed in `DIRECTORY/parts`, one line with a set and a file name each.
pub fn parts(directory: &Path) -> Result<Vec<Part>> {
    let list = directory.join("parts");
    let text = std::fs::read_to_string(&list)
        .with_context(|| format!("{}: no corpus; run tests-reduction/build", list.display()))?;
    let parts: Vec<Part> = text
        .lines()
        .map(|line| {
            let (set, file) = line.split_once(' ').context("a line is `SET FILE`")?;
            let name = file.trim_end_matches(".img").to_owned();
            Ok(Part { set: set.to_owned(), name, path: directory.join(file) })
        })
        .collect::<Result<_>>()?;
    ensure!(!parts.is_empty(), "{}: no parts", list.display());
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_keep_their_order() {
        let directory = tempfile::tempdir().unwrap();
        let list = directory.path().join("parts");
        std::fs::write(&list, "images image-web.img\nmail mail.img\n").unwrap();
        let found = parts(directory.path()).unwrap();
        assert_eq!((found[0].set.as_str(), found[0].name.as_str()), ("images", "image-web"));
        assert_eq!(found[1].path, directory.path().join("mail.img"));
        std::fs::write(&list, "images\n").unwrap();
        assert!(parts(directory.path()).is_err());
    }
}
