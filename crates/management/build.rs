//! Has the program built again when the web page that it embeds has changed.

use std::path::Path;

fn main() {
    let (page, source) = (Path::new("../../web/dist"), Path::new("../../web"));
    // Cargo takes a path that is not there as one that has changed, and would build every time.
    let watched = [page, source].into_iter().find(|path| path.is_dir());
    let watched = watched.unwrap_or(Path::new("build.rs"));
    println!("cargo::rerun-if-changed={}", watched.display());
}
