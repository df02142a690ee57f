//! Computes the digests of the code that determines results, so that results of different versions are never mixed.

#[path = "build/parts.rs"]
mod parts;

use std::io;
use std::path::Path;

fn main() -> io::Result<()> {
    let crates = Path::new("..");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build");
    for path in parts::inputs(crates) {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    let parts = parts::digests(crates)?;
    let parts: Vec<_> = parts
        .iter()
        .map(|(name, digest)| format!("{name}:{digest}"))
        .collect();
    println!("cargo::rustc-env=WEIR_CODE={}", parts.join(" "));
    Ok(())
}
