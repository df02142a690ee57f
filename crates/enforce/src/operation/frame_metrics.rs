//! The metrics of the frames of a cable, by interface and direction.

use weir_metrics::{Registration, SeriesRow, SeriesTable};

/// The frames of an interface of a cable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct InterfaceFrames {
    /// The interface's name.
    pub(crate) interface: String,
    /// Frames that came in, and that the process read.
    pub(crate) read: u64,
    /// Of these, frames that passed unchanged.
    pub(crate) untouched: u64,
    /// Frames that came in and could not be read.
    pub(crate) unreadable: u64,
    /// Frames that came in and were lost before they were read.
    pub(crate) overrun: u64,
    /// Frames that came in and were too old to be forwarded.
    pub(crate) late: u64,
    /// Frames that were to leave, without room.
    pub(crate) full: u64,
    /// Frames that were to leave while the interface was down, or longer than its MTU.
    pub(crate) undeliverable: u64,
    /// Frames that came in and went straight across by the kernel, while the process lived.
    pub(crate) fast_frames: u64,
    /// Their bytes, Ethernet headers included.
    pub(crate) fast_bytes: u64,
}

/// The metrics of the frames. Clones are handles to the same metrics.
#[derive(Clone, Debug)]
pub(crate) struct FrameMetrics {
    received: SeriesTable<InterfaceFrames>,
    sent: SeriesTable<InterfaceFrames>,
}

const LABELS: [&str; 2] = ["interface", "direction"];

static RECEIVED: [SeriesRow<InterfaceFrames>; 5] = [
    SeriesRow::counter("frames", "Frames that came in and were read", |of| of.read),
    SeriesRow::counter(
        "untouched_frames",
        "Frames that are not IP, or malformed: passed as they came",
        |of| of.untouched,
    ),
    SeriesRow::counter("unreadable_frames", "Frames that could not be read", |of| {
        of.unreadable
    }),
    SeriesRow::counter(
        "overrun_frames",
        "Frames lost before they were read",
        |of| of.overrun,
    ),
    SeriesRow::counter(
        "late_frames",
        "Frames dropped after the process had paused",
        |of| of.late,
    ),
];

static FAST_PATH: [SeriesRow<InterfaceFrames>; 2] = [
    SeriesRow::counter(
        "fast_path_frames",
        "Frames that came in and that the kernel forwarded, as no rule was for them",
        |of| of.fast_frames,
    ),
    SeriesRow::counter(
        "fast_path_bytes",
        "Bytes of these frames, with their Ethernet headers",
        |of| of.fast_bytes,
    ),
];

static SENT: [SeriesRow<InterfaceFrames>; 2] = [
    SeriesRow::counter(
        "full_frames",
        "Frames that the interface had no room for",
        |of| of.full,
    ),
    SeriesRow::counter(
        "undeliverable_frames",
        "Frames for an interface that was down, or takes no frames so long",
        |of| of.undeliverable,
    ),
];

impl FrameMetrics {
    /// Registers the metrics of a cable whose frames all get to its process.
    pub(crate) fn register(registration: &mut Registration<'_>) -> Self {
        Self::with(registration, &[])
    }

    /// Registers the metrics of a cable with a fast path.
    pub(crate) fn with_fast_path(registration: &mut Registration<'_>) -> Self {
        Self::with(registration, &FAST_PATH)
    }

    fn with(
        registration: &mut Registration<'_>,
        fast_path: &'static [SeriesRow<InterfaceFrames>],
    ) -> Self {
        let received = |of: &InterfaceFrames| [of.interface.clone(), "received".to_owned()];
        let sent = |of: &InterfaceFrames| [of.interface.clone(), "sent".to_owned()];
        Self {
            received: SeriesTable::register(
                registration,
                &LABELS,
                received,
                RECEIVED.iter().chain(fast_path),
            ),
            sent: SeriesTable::register(registration, &LABELS, sent, &SENT),
        }
    }

    /// Updates the metrics.
    pub(crate) fn set(&self, interfaces: Vec<InterfaceFrames>) {
        self.received.set(interfaces.clone());
        self.sent.set(interfaces);
    }
}
