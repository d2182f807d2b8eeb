//! Finds ISA-L, and links it: the archive where there is one, so that the program needs nothing
//! when it runs, and otherwise the shared library. Debian ships the latter only.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, exit};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=CC");
    println!("cargo:rerun-if-env-changed=LIBRARY_PATH");
    let (kind, library) = match (find("libisal.a"), find("libisal.so")) {
        (Some(archive), _) => ("static", archive),
        (None, Some(shared)) => ("dylib", shared),
        (None, None) => {
            eprintln!("ISA-L is missing. Debian, Ubuntu: apt-get install libisal-dev");
            eprintln!("Fedora: dnf install isa-l-devel. Source: https://github.com/intel/isa-l");
            exit(1);
        }
    };
    let folder = library.parent().unwrap_or(Path::new("/"));
    println!("cargo:rustc-link-search=native={}", folder.display());
    println!("cargo:rustc-link-lib={kind}=isal");
}

/// Where the linker would find a library.
fn find(file_name: &str) -> Option<PathBuf> {
    let compiler = env::var("CC").unwrap_or_else(|_| "cc".into());
    let asked = Command::new(compiler).arg(format!("-print-file-name={file_name}")).output();
    let answer = asked.ok()?.stdout;
    // Of a library that it does not find it says the name only.
    let path = PathBuf::from(String::from_utf8(answer).ok()?.trim());
    path.is_absolute().then_some(path)
}
