//! The programs, run by the kernel on test frames (`BPF_PROG_TEST_RUN`), against a model.

use std::process::Command;

use libbpf_rs::{ProgramInput, ProgramMut};
use proptest::prelude::*;
use rustix::thread::{CpuSet, UnshareFlags, sched_getcpu, sched_setaffinity, unshare_unsafe};

use super::armed::{CAPABILITIES, FILTER};
use super::*;
use crate::bpf::loader::check_capabilities;
use crate::bpf::tcx;
use crate::operation::clean::{Left, clean};
use crate::port::PacketSocket;

/// Verdicts of the kernel's: TCX_NEXT and TCX_REDIRECT.
const NEXT: i32 = -1;
const REDIRECT: i32 = 7;

#[derive(Clone, Copy, Debug)]
enum Event {
    Beat,
    /// The last beat gets stale.
    Hang,
    /// A frame arrives.
    Frame,
    /// A frame arrives after the socket was closed.
    FrameWithoutSocket,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        8 => Just(Event::Beat),
        1 => Just(Event::Hang),
        4 => Just(Event::Frame),
        1 => Just(Event::FrameWithoutSocket),
    ];
    prop::collection::vec(event, 1..80)
}

/// The rules of `bpf/bypass.bpf.c`.
#[derive(Debug, Default)]
struct Model {
    is_stale: bool,
    beats: u64,
    is_bypassed: bool,
    resumes_at: u64,
    times: u64,
    frames: u64,
}

impl Model {
    /// Returns whether the process gets the frame.
    fn on_frame(&mut self, has_socket: bool) -> bool {
        if self.is_stale || !has_socket {
            self.times += u64::from(!self.is_bypassed);
            self.is_bypassed = true;
            self.resumes_at = self.beats + BEATS;
        } else if self.beats >= self.resumes_at {
            self.is_bypassed = false;
        }
        self.frames += u64::from(self.is_bypassed);
        !self.is_bypassed
    }
}

fn run(bypass: &mut Bypass, program: &str) -> i32 {
    let program: ProgramMut<'_> = (bypass.object.progs_mut())
        .find(|found| found.name() == program)
        .unwrap();
    let output = program.test_run(ProgramInput {
        data_in: Some(&[0; 64]),
        ..ProgramInput::default()
    });
    output.unwrap().return_value as i32
}

/// Handles an event, and compares each verdict with the model's.
fn apply(bypass: &mut Bypass, model: &mut Model, event: Event) {
    // Beats of the future stay fresh, however slow the test is.
    let fresh = u64::MAX >> 2;
    match event {
        Event::Beat => {
            model.beats += 1;
            model.is_stale = false;
            bypass.set(Word::Beats, model.beats);
            bypass.set(Word::BeatAt, fresh);
        }
        Event::Hang => {
            model.is_stale = true;
            bypass.set(Word::BeatAt, 0);
        }
        Event::Frame => {
            let expected = if model.on_frame(true) {
                (-1, NEXT)
            } else {
                (0, REDIRECT)
            };
            let found = (run(bypass, FILTER), run(bypass, PROGRAM));
            assert_eq!(found, expected, "{model:?}");
        }
        Event::FrameWithoutSocket => {
            model.on_frame(false);
            assert_eq!(run(bypass, PROGRAM), REDIRECT, "{model:?}");
        }
    }
}

proptest! {
    #[test]
    fn the_programs_follow_the_model_and_each_frame_has_one_way(events in events()) {
        if check_capabilities(&CAPABILITIES).is_err() {
            println!("SKIPPED: root is needed");
            return Ok(());
        }
        // The verdict on a frame is kept by the CPU.
        let mut here = CpuSet::new();
        here.set(sched_getcpu());
        sched_setaffinity(None, &here).unwrap();
        let mut bypass = Bypass::load([1, 2], 1).unwrap();
        bypass.prepare(&[None, None]);
        let mut model = Model::default();
        apply(&mut bypass, &mut model, Event::Beat);
        for event in events {
            apply(&mut bypass, &mut model, event);
            let counts = bypass.counts();
            prop_assert_eq!((counts.times, counts.frames), (model.times, model.frames));
            let is_active = model.is_bypassed && model.beats < model.resumes_at;
            prop_assert_eq!(counts.is_active, is_active);
        }
    }
}

#[test]
fn the_process_forwards_after_ten_beats_and_not_before() {
    if check_capabilities(&CAPABILITIES).is_err() {
        println!("SKIPPED: root is needed");
        return;
    }
    let mut here = CpuSet::new();
    here.set(sched_getcpu());
    sched_setaffinity(None, &here).unwrap();
    let mut bypass = Bypass::load([1, 2], 1).unwrap();
    bypass.prepare(&[None, None]);
    let mut model = Model::default();
    let mut apply = |event| apply(&mut bypass, &mut model, event);
    for event in [Event::Beat, Event::Frame, Event::Hang, Event::Frame] {
        apply(event);
    }
    for _ in 0..10 {
        apply(Event::Beat);
        apply(Event::Frame);
    }
    let counts = bypass.counts();
    assert_eq!((counts.times, counts.frames), (1, 10));
    assert!(!counts.is_active);
}

/// Runs a closure in a network namespace of its own, with sockets at two interfaces. Their peers are down, so
/// that no frame comes: the programs' words change by what the test does only.
fn with_interfaces(work: impl FnOnce([PacketSocket; 2]) + Send) {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            // SAFETY: only this thread changes its namespace, and nothing depends on the one before.
            unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.unwrap();
            for words in [
                "link add one type veth peer name beyond-one",
                "link add two type veth peer name beyond-two",
                "link set one up",
                "link set two up",
            ] {
                let status = Command::new("ip").args(words.split(' ')).status();
                assert!(status.unwrap().success(), "ip {words}");
            }
            work(["one", "two"].map(|name| PacketSocket::bind(name).unwrap()));
        });
        thread.join().unwrap();
    });
}

#[test]
fn the_next_process_replaces_the_programs_and_the_last_removes_them() {
    let has_ip = Command::new("ip").arg("-V").output().is_ok();
    if check_capabilities(&CAPABILITIES).is_err() || !has_ip {
        println!("SKIPPED: root and `ip` are needed");
        return;
    }
    with_interfaces(|sockets| {
        let [one, two] = &sockets;
        let ends = [one.interface(), two.interface()];
        let count = || ends.map(|end| tcx::query(end).unwrap().len());
        let (first, arming) = Bypass::arm([one, two], 1).unwrap();
        assert_eq!((arming, count()), (Arming::Fresh, [1, 1]));
        // Like a kill: nobody removes anything.
        std::mem::forget(first);
        let (second, arming) = Bypass::arm([one, two], 1).unwrap();
        assert_eq!((arming, count()), (Arming::TookOver, [1, 1]));
        let counts = second.counts();
        assert!(counts.times == 1 && !counts.is_active, "{counts:?}");
        std::mem::forget(second);
        // The sides may be named in the other order.
        let (third, arming) = Bypass::arm([two, one], 1).unwrap();
        assert_eq!((arming, count()), (Arming::TookOver, [1, 1]));
        assert_eq!(third.counts().times, 2);
        drop(third);
        assert_eq!(count(), [0, 0]);
        assert!(
            !promiscuous::set(ends[0], false).unwrap(),
            "it is not left so"
        );
        // Those of a cable with another interface are replaced, but nothing has passed by them.
        let (fourth, _) = Bypass::arm([one, two], 1).unwrap();
        fourth.set(Word::Ends, leftover::word_of([ends[0], 99]));
        std::mem::forget(fourth);
        let (fifth, arming) = Bypass::arm([one, two], 1).unwrap();
        assert_eq!((arming, count()), (Arming::Fresh, [1, 1]));
        drop(fifth);
        assert_eq!(count(), [0, 0]);
        assert_eq!(clean().unwrap(), []);
    });
}

#[test]
fn a_panic_leaves_the_bypass_as_a_kill_does() {
    let has_ip = Command::new("ip").arg("-V").output().is_ok();
    if check_capabilities(&CAPABILITIES).is_err() || !has_ip {
        println!("SKIPPED: root and `ip` are needed");
        return;
    }
    with_interfaces(|[one, two]| {
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _bypass = Bypass::arm([&one, &two], 1).unwrap();
            std::panic::resume_unwind(Box::new("a bug"));
        }));
        assert!(caught.is_err());
        let cleaned = clean().unwrap();
        let found = cleaned
            .iter()
            .map(|it| (it.name.as_str(), it.left, it.in_use.as_deref()));
        let mut found: Vec<_> = found.collect();
        found.sort_by_key(|(name, ..)| *name);
        let expected = [("one", Left::Bypass, None), ("two", Left::Bypass, None)];
        assert_eq!(found, expected);
        assert_eq!(clean().unwrap(), []);
    });
}
