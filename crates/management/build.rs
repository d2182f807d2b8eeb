//! Rebuilds the program when the embedded web page has changed.

use std::path::Path;

fn main() {
    let (page, source) = (Path::new("../../web/dist"), Path::new("../../web"));
    // Cargo treats a missing path as changed, and would rebuild every time.
    let watched = [page, source].into_iter().find(|path| path.is_dir());
    let watched = watched.unwrap_or(Path::new("build.rs"));
    println!("cargo::rerun-if-changed={}", watched.display());
}
