//! Files that cannot be read.

use weir_scenario::Scenario;

use crate::FILE;

#[test]
fn unreadable_files_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("none.toml");
    let message = Scenario::load(&missing, &[])
        .expect_err("no file")
        .to_string();
    assert!(message.contains("none.toml"), "{message}");
    let bytes = folder.path().join("bytes.toml");
    std::fs::write(&bytes, [0xff, 0xfe]).unwrap();
    let message = Scenario::load(&bytes, &[])
        .expect_err("no text")
        .to_string();
    assert!(message.contains("bytes.toml"), "{message}");
    let right = folder.path().join("right.toml");
    std::fs::write(&right, FILE).unwrap();
    assert!(Scenario::load(&right, &[]).is_ok());
}

#[test]
fn a_pipe_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe.toml");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let message = Scenario::load(&pipe, &[]).expect_err("a pipe").to_string();
    assert!(message.contains("no regular file"), "{message}");
}
