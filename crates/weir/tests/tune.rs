//! `weir tune`: the Python package takes over, or its absence is reported.
#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]
#![allow(dead_code, reason = "the support is shared with other tests")]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use support::{command_output, weir};

#[test]
fn a_missing_python_package_is_reported_with_instructions() {
    let output = weir(&["tune", "--help"])
        .env("WEIR_PYTHON", "/nowhere/python")
        .output();
    command_output(output.unwrap())
        .failed(1, &["/nowhere/python", "make python", "docs/python.md"]);
}

#[test]
fn the_package_receives_the_arguments_unchanged() {
    let directory = tempfile::tempdir().unwrap();
    let python = directory.path().join("python");
    // A fake Python with the package: it answers the module check, and then runs.
    fs::write(
        &python,
        "#!/bin/sh\nif [ \"$1\" = -c ]; then exit 0; fi\necho \"$@\"\nexit 3\n",
    )
    .unwrap();
    fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
    let output = weir(&["tune", "--objective", "-drops", "--export", "sonic"])
        .env("WEIR_PYTHON", &python)
        .output();
    let said = command_output(output.unwrap());
    assert_eq!(said.code, Some(3), "{}", said.stderr);
    assert_eq!(
        said.stdout.trim(),
        "-m weir.tuning --objective -drops --export sonic"
    );
}
