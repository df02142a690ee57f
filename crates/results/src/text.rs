//! A summary as text for a terminal.

use std::fmt::Write as _;

use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};

use crate::overview::{self, Grid};
use crate::quantity::{percent, time};
use crate::{RunSummary, Summary};

impl Summary {
    /// Returns the summary as text for a terminal: the run's settings, a table of the groups and
    /// one of the ports.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        let _ = writeln!(out, "{}", self.title);
        if !self.source.is_empty() {
            let _ = writeln!(out, "{}", self.source);
        }
        let _ = writeln!(out, "{}", facts(&self.run));
        for (key, value) in &self.run.settings {
            let _ = writeln!(out, "{key} = {value}");
        }
        for grid in overview::all_in_brief(self) {
            if !grid.rows.is_empty() {
                let _ = write!(out, "\n{}", table(grid));
            }
        }
        for (name, run) in self.runs() {
            remarks(&mut out, name, run);
        }
        for (name, run) in self.runs().filter(|(_, run)| run.interrupted) {
            let _ = writeln!(
                out,
                "\n{} was interrupted after {} of simulated time: this is what there was.",
                name.unwrap_or("The run"),
                time(run.simulated)
            );
        }
        safe(out)
    }
}

/// Writes the notes on a run that its tables do not contain.
fn remarks(out: &mut String, name: Option<&str>, run: &RunSummary) {
    let of = name.map_or_else(String::new, |name| format!("{name}: "));
    if let Some(reduction) = run.reduction {
        let _ = writeln!(out, "\n{of}reduction {}", percent(reduction));
    }
    for remark in overview::remarks(run) {
        let _ = writeln!(out, "\n{of}{remark}");
    }
    for (switch, tcon) in &run.tcon {
        let _ = writeln!(out, "\n{of}TCon at {switch}: {tcon}");
    }
    if let Some(emulation) = &run.emulation {
        let verdict = if emulation.faithful {
            "faithful"
        } else {
            "NOT FAITHFUL: these figures are not to be trusted"
        };
        let _ = writeln!(
            out,
            "\n{of}emulation {verdict}; packets late by {} (p50), {} (p99)",
            time(emulation.lateness_p50),
            time(emulation.lateness_p99)
        );
        for reason in &emulation.reasons {
            let _ = writeln!(out, "{of}{reason}");
        }
    }
}

/// Removes terminal control characters, which could come from a file.
pub(crate) fn safe(mut text: String) -> String {
    text.retain(|character| character == '\n' || !character.is_control());
    text
}

/// Returns the facts of the run in one line.
fn facts(run: &RunSummary) -> String {
    let mut out = format!("{} {}", time(run.simulated), run.world.name());
    if !run.warm_up.is_zero() {
        let _ = write!(out, ", the first {} not counted", time(run.warm_up));
    }
    let _ = write!(out, ", in {} of CPU time; seed {}", time(run.cpu), run.seed);
    out
}

/// A rule under the header and one under the table.
const STYLE: TableStyle = TableStyle::new()
    .header_separator(LineStyle::none().fill('─').junction('─'))
    .bottom_border(LineStyle::none().fill('─').junction('─'));

pub(crate) fn table(grid: Grid) -> String {
    let mut table = Table::new();
    table.load_style(STYLE);
    let columns = grid.header.len();
    table.set_header(grid.header);
    for index in 0..columns {
        if let Some(column) = table.column_mut(index) {
            column.set_padding((0, 1));
            if index >= grid.names {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
    }
    for row in grid.rows {
        table.add_row(row);
    }
    let lines = table.lines();
    lines.map(|line| format!("{}\n", line.trim_end())).collect()
}

#[cfg(test)]
mod tests {
    use weir_units::{ByteSize, Duration, Rate};

    use super::*;
    use crate::{CompletionTimes, Drops, GroupSummary, PortSummary, Ratio};

    fn run() -> RunSummary {
        let group = GroupSummary {
            goodput: Rate::from_mbps(15_000),
            share: Ratio::of(3, 4),
            flows: 100,
            marks: 7_000,
            ..GroupSummary::default()
        };
        let port = PortSummary {
            packets: 20_000_000,
            queue_mean: ByteSize::from_bytes(399_000),
            utilization: Ratio::ONE,
            drops: Drops {
                red: 40,
                ..Drops::default()
            },
            ..PortSummary::default()
        };
        RunSummary {
            seed: 7,
            simulated: Duration::from_secs(12),
            warm_up: Duration::from_secs(2),
            cpu: Duration::from_secs(2),
            groups: [("dctcp".to_owned(), group)].into(),
            ports: [("bottleneck".to_owned(), port)].into(),
            ..RunSummary::default()
        }
    }

    #[test]
    fn the_text_summary_is_formatted() {
        let mut summary = Summary::new("Buffer sharing", "003, section 6", run());
        summary.run.settings = [("seed".to_owned(), "7".to_owned())].into();
        assert_eq!(
            summary.to_text(),
            "\
Buffer sharing
003, section 6
12.0 s simulated, the first 2.00 s not counted, in 2.00 s of CPU time; seed 7
seed = 7

group  flows    goodput   share  retransmits  timeouts  marks
──────────────────────────────────────────────────────────────
dctcp    100  15.0 Gbps  75.0 %            0         0  7,000
──────────────────────────────────────────────────────────────

port           packets  utilization  queue: mean  p50  p99  max  marks  drops: red  tail  buffer
─────────────────────────────────────────────────────────────────────────────────────────────────
bottleneck  20,000,000      100.0 %       399 KB  0 B  0 B  0 B      0          40     0       0
─────────────────────────────────────────────────────────────────────────────────────────────────
"
        );
    }

    #[test]
    fn an_unfaithful_emulation_is_marked() {
        let mut summary = Summary::new("t", "", run());
        summary.run.world = crate::RunKind::Live;
        summary.run.reduction = Ratio::new(0.9312);
        summary.run.emulation = Some(crate::Emulation {
            reasons: vec!["the CPU was busy".to_owned()],
            ..crate::Emulation::default()
        });
        let epochs = crate::EpochSummary {
            count: 1000,
            total: Duration::from_millis(1_500),
            lost: 0,
        };
        summary.run.groups["dctcp"].epochs = Some(epochs);
        let text = summary.to_text();
        for part in [
            "12.0 s live, ",
            "reduction 93.1 %",
            "emulation NOT FAITHFUL",
            "the CPU was busy",
            "1,000  1.50 s     0",
        ] {
            assert!(text.contains(part), "{part} is missing in\n{text}");
        }
    }

    #[test]
    fn control_characters_in_a_title_are_removed() {
        let text = Summary::new("\u{1b}[2Jtitle\r", "\u{9b}31m", run()).to_text();
        assert!(text.starts_with("[2Jtitle\n31m\n"), "{text:?}");
    }

    #[test]
    fn variants_are_listed_in_one_table() {
        let mut summary = Summary::new("", "", run());
        let mut variant = run();
        variant.interrupted = true;
        variant.groups["dctcp"].completion = CompletionTimes::of(&mut [Duration::from_millis(5)]);
        variant.ports["bottleneck"].drops.loss = 3;
        summary.variants.insert("ecn=100KB".to_owned(), variant);
        let text = summary.to_text();
        let words = |start| {
            let mut lines = text
                .lines()
                .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
            let found = lines.find(|line| line.starts_with(start));
            found.unwrap_or_else(|| panic!("no line {start} in\n{text}"))
        };
        assert_eq!(
            words("variant group"),
            "variant group flows goodput share retransmits timeouts marks completed unfinished \
             time: mean p50 p99 max"
        );
        assert!(words("as in the file dctcp").ends_with("7,000 0 0"));
        assert!(words("ecn=100KB dctcp").ends_with("0 5.00 ms 5.00 ms 5.00 ms 5.00 ms"));
        assert!(words("ecn=100KB bottleneck").ends_with("40 0 0 3"));
        assert!(text.contains("ecn=100KB was interrupted after 12.0 s"));
    }
}
