//! The example's generated code is that of its `.proto` file; `UPDATE_GENERATED=1` writes it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

#[test]
fn the_examples_code_is_that_of_its_proto_file() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/grpc-kv");
    let files = protox::compile(["kv.proto"], [&directory]).unwrap();
    let output = tempfile::tempdir().unwrap();
    // Without `connect`, which is for HTTP/2.
    tonic_prost_build::configure()
        .build_transport(false)
        .out_dir(output.path())
        .compile_fds(files)
        .unwrap();
    let generated = std::fs::read_to_string(output.path().join("kv.rs")).unwrap();
    let committed = directory.join("generated.rs");
    if std::env::var_os("UPDATE_GENERATED").is_some() {
        std::fs::write(&committed, &generated).unwrap();
    }
    let committed = std::fs::read_to_string(committed).unwrap_or_default();
    assert!(
        committed == generated,
        "run UPDATE_GENERATED=1 cargo test -p weir-grpc --test generated"
    );
}
