//! Computes the version of the code: a hash of the sources that determine the results and of the lock
//! file, so that results of different versions are never mixed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// The crates that determine a simulation's results.
const CRATES: [&str; 12] = [
    "units",
    "wire",
    "congestion",
    "fabric",
    "tcp",
    "quic",
    "dcudp",
    "tcon",
    "sed",
    "scenario",
    "results",
    "sim",
];

fn main() -> io::Result<()> {
    let crates = Path::new("..");
    let mut files = Vec::new();
    for name in CRATES {
        let source = crates.join(name).join("src");
        println!("cargo::rerun-if-changed={}", source.display());
        collect(&source, &mut files)?;
    }
    let lock = crates.join("../Cargo.lock");
    println!("cargo::rerun-if-changed={}", lock.display());
    files.push(lock);
    files.sort();
    let mut hash = Sha256::new();
    for file in files {
        let contents = fs::read(&file)?;
        hash.update(file.to_string_lossy().as_bytes());
        hash.update((contents.len() as u64).to_le_bytes());
        hash.update(contents);
    }
    let digest = hash.finalize();
    let version: String = digest[..8]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    println!("cargo::rustc-env=WEIR_CODE_VERSION={version}");
    Ok(())
}

/// Collects the Rust sources below a directory.
fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(())
}
