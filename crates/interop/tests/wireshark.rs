//! Checks that Wireshark decrypts our packets with the key log and finds nothing malformed.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::Command;

use weir_interop::capture::{self, Capture};
use weir_interop::{Direction, Peer};

#[test]
fn tshark_decrypts_all_packets_and_reports_none_malformed() {
    if Command::new("tshark").arg("--version").output().is_err() {
        eprintln!("SKIPPED: no tshark here (apt-get install tshark)");
        return;
    }
    for peer in Peer::ALL {
        for direction in Direction::ALL {
            let capture = capture::conversation(peer, direction).unwrap();
            let name = format!("{peer}, {direction}");
            check(&capture, &name);
        }
    }
}

fn check(capture: &Capture, name: &str) {
    let folder = tempfile::tempdir().unwrap();
    let (packets, keys) = (folder.path().join("packets"), folder.path().join("keys"));
    std::fs::write(&packets, &capture.packets).unwrap();
    std::fs::write(&keys, &capture.keys).unwrap();
    let dissect = |filter: &str, field: &str| {
        let output = Command::new("tshark")
            .arg("-r")
            .arg(&packets)
            .arg("-o")
            .arg(format!("tls.keylog_file:{}", keys.display()))
            .arg("-d")
            .arg(format!("udp.port=={},quic", capture.server_port))
            .args(["-Y", filter, "-T", "fields", "-e", field])
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{name}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let count = dissect("quic", "frame.number").len();
    assert_eq!(count, capture.count, "{name}: packets that are QUIC");
    // A stateless reset looks like a packet with a short header, and has no keys.
    let short = "quic.header_form == 0 && !quic.stateless_reset_token";
    let all = dissect(short, "frame.number").len();
    assert!(all > 100, "{name}: {all} packets with short headers");
    // Wireshark shows frames only in decrypted packets.
    let sealed = dissect(&format!("{short} && !quic.frame_type"), "frame.number");
    assert!(sealed.is_empty(), "{name}: not decrypted: {sealed:?}");
    let malformed = dissect("_ws.malformed", "frame.number");
    assert!(malformed.is_empty(), "{name}: malformed: {malformed:?}");
    // 8388608 is Wireshark's PI_ERROR.
    let errors = dissect("_ws.expert.severity == 8388608", "_ws.expert.message");
    assert!(errors.is_empty(), "{name}: errors: {errors:?}");
}
