//! The arithmetic of bpf/fraction.h, run outside the kernel and compared with floating point.
#![cfg(bpf_programs)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

const ONE: f64 = (1_u32 << 20) as f64;

/// Returns the results of the C functions: `a` is alpha's next value, `w` the reduced window, `p` the
/// penalty, `i` the imminence, each with its arguments.
fn answers(questions: &[(char, [u64; 4])]) -> Vec<f64> {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("fraction");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/fraction.c");
    let status = Command::new(env!("WEIR_CLANG"))
        .args(["-O1", "-Wall", "-Werror", "-o"])
        .args([&program, &source])
        .status()
        .unwrap();
    assert!(status.success());

    let mut lines = String::new();
    for (what, [a, b, c, d]) in questions {
        writeln!(lines, "{what} {a} {b} {c} {d}").unwrap();
    }
    let input = directory.path().join("input");
    std::fs::write(&input, lines).unwrap();
    let output = Command::new(&program)
        .stdin(Stdio::from(std::fs::File::open(input).unwrap()))
        .output()
        .unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<_> = output.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(answers.len(), questions.len());
    answers
}

#[test]
fn alpha_follows_rfc_8257() {
    let mut questions = Vec::new();
    let mut expected = Vec::new();
    for alpha in [0, 1, 1_000, 65_536, 524_288, 1_048_576] {
        for g in [11, 65_536, 1_048_576] {
            for (delivered, marked) in [(0, 0), (1, 1), (10, 3), (4_000_000_000, 3_999_999_999)] {
                questions.push(('a', [alpha, g, delivered, marked]));
                let weight = g as f64 / ONE;
                let fraction = if delivered == 0 {
                    0.0
                } else {
                    marked as f64 / delivered as f64
                };
                expected.push(alpha as f64 / ONE * (1.0 - weight) + weight * fraction);
            }
        }
    }
    for ((question, answer), expected) in questions.iter().zip(answers(&questions)).zip(expected) {
        assert!(
            (answer / ONE - expected).abs() < 3.0 / ONE,
            "{question:?}: {answer}"
        );
    }
}

#[test]
fn the_penalty_is_a_power_of_alpha() {
    let mut questions = Vec::new();
    for exponent in 0..=20 {
        for imminence in 32..=128 {
            questions.push(('p', [1 << exponent, imminence, 0, 0]));
            questions.push(('p', [(3 << exponent) / 4, imminence, 0, 0]));
        }
    }
    for ((what, question), answer) in questions.iter().zip(answers(&questions)) {
        let [alpha, imminence, ..] = *question;
        let expected = (alpha as f64 / ONE).powf(imminence as f64 / 64.0);
        let error = (answer / ONE - expected).abs();
        assert!(
            error < 0.001,
            "{what} {question:?}: {answer}, not {expected}"
        );
    }
}

#[test]
fn imminence_is_the_time_needed_over_the_time_left() {
    let questions = [
        // 750 packets at 75 per round trip of 100 us need 1000 us.
        (('i', [750_000, 1_000, 100_000, 100]), 64.0),
        (('i', [750_000, 800, 100_000, 100]), 80.0),
        (('i', [750_000, 1_250, 100_000, 100]), 51.0),
        (('i', [750_000, 0, 100_000, 100]), 128.0),
        (('i', [750_000, 10, 100_000, 100]), 128.0),
        (('i', [1, 1_000_000, 100_000, 100]), 32.0),
        (('i', [u64::MAX, 1, 1, u64::MAX]), 128.0),
        (('i', [u64::MAX, u64::MAX, u64::MAX / 4, 1]), 32.0),
        (('i', [1, 1, 0, 1]), 64.0),
    ];
    let asked: Vec<_> = questions.iter().map(|(question, _)| *question).collect();
    for ((question, expected), answer) in questions.iter().zip(answers(&asked)) {
        assert_eq!(answer, *expected, "{question:?}");
    }
}

#[test]
fn a_window_shrinks_by_half_the_penalty() {
    let full = 1 << 20;
    let questions = [
        (('w', [100, full, 2, 0]), 50.0),
        (('w', [100, full / 4, 2, 0]), 88.0),
        (('w', [10, full / 16, 2, 0]), 10.0),
        (('w', [3, full, 2, 0]), 2.0),
        (('w', [1, full, 1, 0]), 1.0),
        (('w', [2, full, 4, 0]), 4.0),
        (('w', [4_294_967_295, full, 2, 0]), 2_147_483_648.0),
    ];
    let asked: Vec<_> = questions.iter().map(|(question, _)| *question).collect();
    for ((question, expected), answer) in questions.iter().zip(answers(&asked)) {
        assert_eq!(answer, *expected, "{question:?}");
    }
}
