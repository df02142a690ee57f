//! Fail-open: an agent that is killed and started again in the middle of transfers.

use rustix::process::Signal;

use crate::files::Files;
use crate::namespace::can_fail_open;
use crate::network::{CLIENT, Row, wait};
use crate::support::command_output;

#[test]
fn transfers_survive_a_killed_agent_and_the_next_one() {
    if !can_fail_open("transfers_survive_a_killed_agent_and_the_next_one") {
        return;
    }
    let row = Row::new();
    let arguments = ["--rate", "1Gbps", "--metrics", "9102"];
    let agent = row.agent(&arguments);
    let files = Files::start([&row.server, &row.client], (CLIENT, 8001), (20, 1_000_000));
    files.wait_for_more(300_000);
    eprintln!("longest gap as usual: {:?}", files.take_longest_gap());
    agent.signal(Signal::KILL);
    let (status, told) = agent.end();
    assert!(
        !status.success() && told.contains("fail-open is armed"),
        "{told}"
    );
    // Nobody is there to forward these.
    files.wait_for_more(500_000);
    eprintln!("longest gap after kill -9: {:?}", files.take_longest_gap());

    let agent = row.agent(&arguments);
    wait("the agent forwards", || row.metric("frames_total") > 150);
    files.wait_for_more(500_000);
    eprintln!(
        "longest gap at the takeover: {:?}",
        files.take_longest_gap()
    );
    assert_eq!(row.metric("fail_open"), 1);
    assert!(row.metric("bypasses_total") >= 1);
    // At least one frame for each 64 KB of these files.
    assert!(row.metric("bypassed_frames_total") > 150);
    files.finish();

    agent.signal(Signal::INT);
    let (status, told) = agent.end();
    assert!(status.success(), "{status}: {told}");
    assert!(told.contains("since an earlier process died"), "{told}");
    let mut command = row.middle.command(env!("CARGO_BIN_EXE_weir"));
    let cleaned = command_output(command.args(["enforce", "clean"]).output().unwrap());
    assert!(
        cleaned.ok().stdout.contains("nothing to remove"),
        "{}",
        cleaned.stdout
    );
}
