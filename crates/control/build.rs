//! Generates Rust from `proto/`, by a compiler in Rust: no tool has to be installed.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=../../proto");
    let files = protox::compile(["weir/sed/v1/sed.proto"], ["../../proto"])?;
    tonic_prost_build::configure().compile_fds(files)?;
    Ok(())
}
