//! Generates Rust from `proto/`, by a compiler in Rust: no tool has to be installed.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=../../proto/grpc");
    let files = protox::compile(["grpc/testing/testing.proto"], ["../../proto"])?;
    tonic_prost_build::configure().compile_fds(files)?;
    Ok(())
}
