//! Progress bars of runs that take longer than two seconds.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration as StdDuration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use weir_units::{Duration, Time};

/// Shorter runs have no bar.
const PATIENCE: StdDuration = StdDuration::from_secs(2);

/// The progress of all runs; hidden if standard error is not a terminal.
pub(super) struct Progress {
    bars: MultiProgress,
    /// The bar of all runs together, if there are several.
    all: Option<ProgressBar>,
    runs: usize,
    over: AtomicUsize,
    begin: Instant,
    /// Whether bars are not wanted, or already visible.
    settled: AtomicBool,
    notes: Mutex<BTreeSet<String>>,
}

/// A run's bar, removed when this is dropped.
pub(super) struct Bar<'p> {
    progress: &'p Progress,
    bar: ProgressBar,
    begin: Instant,
    shown: Cell<Time>,
}

impl Progress {
    /// Returns the progress of runs of these lengths.
    pub(super) fn new(wanted: bool, spans: &[Duration]) -> Self {
        let bars = MultiProgress::with_draw_target(ProgressDrawTarget::hidden());
        let sum: Duration = spans.iter().fold(Duration::ZERO, |sum, span| sum + *span);
        let all = (spans.len() > 1).then(|| {
            let bar = bars.add(ProgressBar::new(sum.as_nanos()));
            bar.set_style(style("{bar:24} {msg}, {speed}, {eta} left"));
            bar
        });
        let progress = Self {
            bars,
            all,
            runs: spans.len(),
            over: AtomicUsize::new(0),
            begin: Instant::now(),
            settled: AtomicBool::new(!wanted),
            notes: Mutex::default(),
        };
        progress.update_message();
        progress
    }

    /// Adds the bar of a run of this length.
    pub(super) fn bar(&self, name: &str, span: Duration) -> Bar<'_> {
        let bar = ProgressBar::new(span.as_nanos());
        bar.set_style(style(
            "{bar:24} {simulated}, {speed}, {msg}, {eta} left  {prefix}",
        ));
        bar.set_prefix(name.to_owned());
        bar.set_message(packet_rate(0.0));
        let bar = match &self.all {
            Some(all) => self.bars.insert_before(all, bar),
            None => self.bars.add(bar),
        };
        Bar {
            progress: self,
            bar,
            begin: Instant::now(),
            shown: Cell::new(Time::ZERO),
        }
    }

    /// Prints a note above the bars, once for all runs.
    pub(super) fn note(&self, note: &str) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        if notes.insert(note.to_owned()) {
            self.bars.suspend(|| eprintln!("{note}"));
        }
    }

    /// Removes all bars.
    pub(super) fn clear(&self) {
        if let Some(all) = &self.all {
            all.finish_and_clear();
        }
        // An error on a closed terminal does not matter.
        let _ = self.bars.clear();
    }

    fn show_in_time(&self) {
        if self.begin.elapsed() >= PATIENCE && !self.settled.swap(true, Ordering::Relaxed) {
            self.bars.set_draw_target(ProgressDrawTarget::stderr());
        }
    }

    fn update_message(&self) {
        if let Some(all) = &self.all {
            let over = self.over.load(Ordering::Relaxed);
            all.set_message(format!("{over} of {} runs", self.runs));
        }
    }
}

impl Bar<'_> {
    /// Updates the position of a live run, in real time.
    pub(super) fn show_live(&self, now: Time) {
        self.bar.set_message("live");
        self.advance(now);
    }

    /// Updates the position of a run and the number of packets sent by the measured ports.
    pub(super) fn show(&self, now: Time, packets: u64) {
        let rate = packets as f64 / self.begin.elapsed().as_secs_f64().max(1e-9);
        self.bar.set_message(packet_rate(rate));
        self.advance(now);
    }

    fn advance(&self, now: Time) {
        self.bar.set_position(now.as_nanos());
        if let Some(all) = &self.progress.all {
            all.inc(now.since(self.shown.replace(now)).as_nanos());
        }
        self.progress.show_in_time();
    }
}

impl Drop for Bar<'_> {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
        self.progress.bars.remove(&self.bar);
        self.progress.over.fetch_add(1, Ordering::Relaxed);
        self.progress.update_message();
    }
}

/// Returns the style of a bar whose position is in simulated nanoseconds.
fn style(template: &str) -> ProgressStyle {
    let style = ProgressStyle::with_template(template);
    let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
    style
        .with_key("simulated", |state: &ProgressState, out: &mut dyn Write| {
            let span = state.len().unwrap_or_default();
            let _ = write!(out, "{}", simulated(state.pos(), span));
        })
        .with_key("speed", |state: &ProgressState, out: &mut dyn Write| {
            let _ = write!(out, "{}", speed(state.per_sec() / 1e9));
        })
}

/// Formats `12.3 of 120.0 s`, with as many digits as change visibly.
fn simulated(nanos: u64, span: u64) -> String {
    let digits = match span {
        0..100_000_000 => 6,
        100_000_000..10_000_000_000 => 3,
        _ => 1,
    };
    let seconds = |nanos: u64| nanos as f64 / 1e9;
    format!(
        "{:.digits$} of {:.digits$} s",
        seconds(nanos),
        seconds(span)
    )
}

/// Formats packets per second.
fn packet_rate(rate: f64) -> String {
    format!("{:.2} M packets/s", rate / 1e6)
}

/// Formats simulated seconds per second.
fn speed(rate: f64) -> String {
    match rate {
        0.0..0.1 => format!("{rate:.4} s/s"),
        0.1..100.0 => format!("{rate:.2} s/s"),
        _ => format!("{rate:.0} s/s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_shown_with_enough_digits() {
        assert_eq!(
            simulated(12_340_000_000, 120_000_000_000),
            "12.3 of 120.0 s"
        );
        assert_eq!(simulated(1_234_500_000, 2_000_000_000), "1.234 of 2.000 s");
        assert_eq!(simulated(1_234, 50_000_000), "0.000001 of 0.050000 s");
        assert_eq!(speed(0.01234), "0.0123 s/s");
        assert_eq!(speed(1.5), "1.50 s/s");
        assert_eq!(speed(1234.5), "1234 s/s");
    }
}
