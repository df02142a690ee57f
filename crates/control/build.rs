//! Generates Rust from `proto/`, by a compiler in Rust: no tool has to be installed.

use std::error::Error;

/// What this crate serves or uses.
const FILES: [&str; 4] = [
    "weir/sed/v1/sed.proto",
    "weir/policy/v1/policy.proto",
    "etcd/etcd.proto",
    "etcd/election.proto",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=../../proto");
    let files = protox::compile(FILES, ["../../proto"])?;
    tonic_prost_build::configure()
        .codec_path("crate::codec::MessageCodec")
        .compile_fds(files)?;
    Ok(())
}
