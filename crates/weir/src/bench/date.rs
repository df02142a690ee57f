//! The date that stands in a report.

use std::time::SystemTime;

/// Now, as `2026-11-05T14:30:00Z`.
pub(crate) fn now() -> String {
    let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    format(since.as_secs())
}

fn format(seconds: u64) -> String {
    let (year, month, day) = civil(seconds / 86_400);
    let of_day = seconds % 86_400;
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z",
        of_day / 3600,
        of_day / 60 % 60,
        of_day % 60
    )
}

/// Days since 1970-01-01 as year, month and day. Counts in 400-year cycles from 1 March of year 0,
/// so that leap days are last.
fn civil(days: u64) -> (u64, u64, u64) {
    const CYCLE: u64 = 146_097;
    let days = days + 719_468;
    let of_cycle = days % CYCLE;
    let year = (of_cycle - of_cycle / 1460 + of_cycle / 36_524 - of_cycle / 146_096) / 365;
    let of_year = of_cycle - (365 * year + year / 4 - year / 100);
    let march_based = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_based + 2) / 5 + 1;
    let month = if march_based < 10 {
        march_based + 3
    } else {
        march_based - 9
    };
    let year = year + days / CYCLE * 400 + u64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_days() {
        assert_eq!(format(0), "1970-01-01T00:00:00Z");
        assert_eq!(format(951_782_400 + 86_399), "2000-02-29T23:59:59Z");
        assert_eq!(format(4_107_542_400), "2100-03-01T00:00:00Z");
        assert_eq!(format(1_793_889_000), "2026-11-05T14:30:00Z");
    }
}
