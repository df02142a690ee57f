//! curl as the client.

use std::process::Command;

use crate::support::{World, mirror, run};

/// curl's output for a URL of the server; `None` without curl.
fn curl(world: &World, arguments: &[&str], path: &str) -> Option<String> {
    let port = world.address().port();
    let output = Command::new("curl")
        .args(["--silent", "--show-error", "--include", "--cacert"])
        .arg(world.directory.path().join("tls.crt"))
        .arg("--resolve")
        .arg(format!("localhost:{port}:127.0.0.1"))
        .args(arguments)
        .arg(format!("https://localhost:{port}{path}"))
        .output()
        .ok()?;
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn curl_speaks_http2_and_http1() {
    run(async {
        let world = World::new(mirror());
        let port = world.address().port();
        for (version, first) in [("--http2", "HTTP/2 200"), ("--http1.1", "HTTP/1.1 200 OK")] {
            let arguments = [version, "--data", "hello"];
            let output = tokio::task::block_in_place(|| curl(&world, &arguments, "/a?b=c"));
            let Some(output) = output else {
                eprintln!("SKIPPED: no curl");
                return;
            };
            assert!(output.starts_with(first), "{output}");
            let alt_svc = format!("alt-svc: h3=\":{port}\"; ma=86400\r\n");
            assert!(output.contains(&alt_svc), "{output}");
            let end =
                format!("POST https://localhost:{port}/a?b=c from 127.0.0.1 to localhost: hello");
            assert!(output.ends_with(&end), "{output}");
        }
    });
}
