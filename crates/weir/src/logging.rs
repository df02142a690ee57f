//! Log lines on standard error: what long-running commands tell while they run, and the libraries'
//! warnings. Each has a time stamp (RFC 3339, UTC), except for systemd's journal, which has its own.

use std::fmt;
use std::io::stderr;
use std::os::unix::fs::MetadataExt as _;

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::{Format, Full, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// Logs warnings and the commands' own events, and more if the user requests it.
pub(crate) fn start(verbose: u8) {
    let filter = match verbose {
        // The targets of this crate's modules begin with `weir::`. The controller tells of versions and
        // hosts itself, a tunnel of refusals.
        0 => "warn,weir::=info,weir_control=info,weir_tunnel=info",
        1 => "info",
        2 => "debug",
        _ => "trace",
    };
    let format = Format::default().with_target(verbose > 0);
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(filter))
        .with_writer(stderr);
    if is_journal() {
        let format = format.without_time().with_level(false);
        subscriber.event_format(JournalFormat(format)).init();
    } else {
        subscriber.event_format(format).init();
    }
}

/// Joins the lines of an error, so that it is one line of the log.
pub(crate) fn in_one_line(error: &impl fmt::Display) -> String {
    error.to_string().trim_end().replace('\n', "; ")
}

/// Returns whether standard error leads to systemd's journal: `$JOURNAL_STREAM` has the numbers of its
/// device and inode (systemd.exec(5)).
fn is_journal() -> bool {
    let Ok(stream) = std::env::var("JOURNAL_STREAM") else {
        return false;
    };
    let own = std::fs::metadata("/proc/self/fd/2");
    own.is_ok_and(|own| stream == format!("{}:{}", own.dev(), own.ino()))
}

/// A line without time, with its level as the journal reads it (sd-daemon(3)).
struct JournalFormat(Format<Full, ()>);

impl<S, N> FormatEvent<S, N> for JournalFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let level = match *event.metadata().level() {
            Level::ERROR => 3,
            Level::WARN => 4,
            Level::INFO => 6,
            _ => 7,
        };
        write!(writer, "<{level}>")?;
        self.0.format_event(context, writer, event)
    }
}
