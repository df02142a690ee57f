//! The text formats of metrics, and which of them a scraper wants.

use std::collections::VecDeque;
use std::fmt::Write as _;

/// A text format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextFormat {
    /// Prometheus' own, version 0.0.4.
    Prometheus,
    /// OpenMetrics 1.0.
    OpenMetrics,
}

impl TextFormat {
    /// Returns the media type.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    /// Selects the format for a request by its Accept header (RFC 9110, section 12.5.1). A format that
    /// is named more exactly or has a higher weight wins; Prometheus' own is the default.
    pub fn accepted(header: &str) -> Self {
        let ranges: Vec<_> = header.split(',').filter_map(MediaRange::parse).collect();
        let weight = |format: Self| {
            let fitting = ranges.iter().filter_map(|range| range.fits(format));
            // The most specific range that fits has the say.
            fitting.max().map_or(0, |(_, weight)| weight)
        };
        let is_named = |format: Self| {
            let mut fitting = ranges.iter().filter_map(|range| range.fits(format));
            fitting.any(|(specificity, _)| specificity == MOST_SPECIFIC)
        };
        let (own, open) = (weight(Self::Prometheus), weight(Self::OpenMetrics));
        if open > own || (open == own && open > 0 && is_named(Self::OpenMetrics)) {
            Self::OpenMetrics
        } else {
            Self::Prometheus
        }
    }
}

/// The specificity of a range that names the type and the subtype.
const MOST_SPECIFIC: u8 = 2;

/// A media range of an Accept header.
struct MediaRange<'h> {
    kind: &'h str,
    subtype: &'h str,
    version: Option<&'h str>,
    /// In thousandths.
    weight: u16,
}

impl<'h> MediaRange<'h> {
    /// Reads a range; `None` if it makes no sense.
    fn parse(text: &'h str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let (kind, subtype) = parts.next()?.split_once('/')?;
        let mut range = Self {
            kind,
            subtype,
            version: None,
            weight: 1000,
        };
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            let value = value.trim().trim_matches('"');
            match name.trim().to_ascii_lowercase().as_str() {
                "q" => range.weight = weight(value)?,
                "version" => range.version = Some(value),
                _ => {}
            }
        }
        Some(range)
    }

    /// Returns how specific the range is, and its weight, if it includes a format.
    fn fits(&self, format: TextFormat) -> Option<(u8, u16)> {
        let is = |one: &str, other: &str| one.eq_ignore_ascii_case(other);
        let (kind, subtype, versions) = match format {
            TextFormat::Prometheus => ("text", "plain", ["0.0.4"].as_slice()),
            // Prometheus lists both; the text is the same.
            TextFormat::OpenMetrics => (
                "application",
                "openmetrics-text",
                ["1.0.0", "0.0.1"].as_slice(),
            ),
        };
        let specificity = match (self.kind, self.subtype) {
            ("*", "*") => 0,
            (own, "*") if is(own, kind) => 1,
            (own, sub) if is(own, kind) && is(sub, subtype) => MOST_SPECIFIC,
            _ => return None,
        };
        let has_version = self
            .version
            .is_none_or(|version| versions.contains(&version));
        has_version.then_some((specificity, self.weight))
    }
}

/// Reads a weight, in thousandths: 0 to 1 with at most three decimals.
fn weight(text: &str) -> Option<u16> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let is_number = decimals.bytes().all(|byte| byte.is_ascii_digit());
    if decimals.len() > 3 || !is_number {
        return None;
    }
    let thousandths: u16 = format!("{decimals:0<3}").parse().ok()?;
    match whole {
        "0" => Some(thousandths),
        "1" if thousandths == 0 => Some(1000),
        _ => None,
    }
}

/// Rewrites OpenMetrics text in Prometheus' own format: there a counter's description has the name of its
/// samples, and there are neither units nor an end mark.
pub(crate) fn prometheus_text(open_metrics: &str) -> String {
    let mut out = String::with_capacity(open_metrics.len());
    // The help text comes before the type.
    let mut helps = VecDeque::new();
    for line in open_metrics.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            helps.push_back(help.split_once(' ').unwrap_or((help, "")));
        } else if let Some(described) = line.strip_prefix("# TYPE ") {
            let (name, kind) = described.split_once(' ').unwrap_or((described, "untyped"));
            let (suffix, kind) = match kind {
                "counter" => ("_total", "counter"),
                "info" => ("_info", "gauge"),
                "unknown" => ("", "untyped"),
                kind => ("", kind),
            };
            while let Some((_, help)) = helps.pop_front() {
                let _ = writeln!(out, "# HELP {name}{suffix} {help}");
            }
            let _ = writeln!(out, "# TYPE {name}{suffix} {kind}");
        } else if !line.starts_with('#') {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::TextFormat::{OpenMetrics, Prometheus};
    use super::*;

    #[test]
    fn the_accept_header_selects_the_format() {
        for (header, format) in [
            ("", Prometheus),
            ("*/*", Prometheus),
            ("text/html, */*;q=0.1", Prometheus),
            ("text/plain", Prometheus),
            ("application/openmetrics-text", OpenMetrics),
            ("Application/OpenMetrics-Text; version=1.0.0", OpenMetrics),
            ("application/openmetrics-text; version=2.0.0", Prometheus),
            ("application/*", OpenMetrics),
            (
                "application/openmetrics-text;q=0.4, text/plain;q=0.5",
                Prometheus,
            ),
            (
                "application/openmetrics-text;q=0.5, text/plain;q=0.4",
                OpenMetrics,
            ),
            ("application/openmetrics-text, text/plain", OpenMetrics),
            ("application/openmetrics-text;q=0, */*", Prometheus),
            ("application/openmetrics-text;q=0.9, */*;q=0.9", OpenMetrics),
            ("text/plain;q=0, */*;q=0.1", OpenMetrics),
            (
                "application/openmetrics-text;q=2, text/plain;q=0.1",
                Prometheus,
            ),
            ("application/openmetrics-text;q=x", Prometheus),
            // Prometheus 2.42 and 3.
            (
                "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
                 text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                OpenMetrics,
            ),
            (
                "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,\
                 application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;q=0.3,\
                 text/plain;version=0.0.4;q=0.2,/;q=0.1",
                OpenMetrics,
            ),
        ] {
            assert_eq!(TextFormat::accepted(header), format, "{header}");
        }
    }

    #[test]
    fn weights_have_three_decimals_at_most() {
        let all = ["0", "1", "1.000", "0.5", "0.25", "0.001", "0.", "1."];
        let expected = [0, 1000, 1000, 500, 250, 1, 0, 1000];
        assert_eq!(all.map(weight), expected.map(Some));
        for wrong in ["", "2", "1.1", "0.0001", "-1", "0.+1", ".5", "a"] {
            assert_eq!(weight(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn counters_are_described_by_the_name_of_their_samples() {
        let text = "# HELP a Things: # and more.\n# TYPE a counter\na_total{x=\"# HELP b\"} 1\n\
                    # HELP s_seconds Times.\n# TYPE s_seconds gauge\n# UNIT s_seconds seconds\ns_seconds 2.5\n\
                    # HELP h Sizes.\n# TYPE h histogram\nh_sum 0\nh_count 0\nh_bucket{le=\"+Inf\"} 0\n# EOF\n";
        let expected = "# HELP a_total Things: # and more.\n# TYPE a_total counter\na_total{x=\"# HELP b\"} 1\n\
                        # HELP s_seconds Times.\n# TYPE s_seconds gauge\ns_seconds 2.5\n\
                        # HELP h Sizes.\n# TYPE h histogram\nh_sum 0\nh_count 0\nh_bucket{le=\"+Inf\"} 0\n";
        assert_eq!(prometheus_text(text), expected);
    }

    proptest! {
        /// No header and no text makes it fail, and samples stay as they are.
        #[test]
        fn anything_is_read(header in "[a-z/*;=,.0-9q \"-]{0,60}", text in "[#A-Z a-z0-9_\n]{0,80}") {
            let _ = TextFormat::accepted(&header);
            let samples = |text: &str| -> Vec<String> {
                text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
            };
            prop_assert_eq!(samples(&prometheus_text(&text)), samples(&text));
        }
    }
}
