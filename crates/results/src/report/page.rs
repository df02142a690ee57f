//! What all pages share: the frame with style, script and data, and tables.

use std::fmt::Write as _;

use super::html::Escaped;
use crate::overview::Grid;

/// The style and the script, built from `crates/studio/page`.
const STYLE: &str = include_str!("../../page-dist/report.css");
const SCRIPT: &str = include_str!("../../page-dist/report.js");

/// The most rows of a table, until the text is small enough.
const ROWS: [usize; 4] = [400, 150, 50, 15];
/// The most bytes of tables and text.
const MOST_BYTES: usize = 600_000;

/// A page.
pub(crate) struct Page<'p> {
    pub(crate) title: &'p str,
    /// The figures' data as JSON; none without figures.
    pub(crate) data: Option<String>,
    /// Where the numbers are.
    pub(crate) footer: &'static str,
}

/// How the rows of a table are chosen that has too many.
pub(crate) struct Order<'o> {
    pub(crate) most_rows: usize,
    /// The place of a row among all, the worst first.
    pub(crate) rank: &'o dyn Fn(&[String]) -> usize,
}

// Writing to a string cannot fail.
impl Page<'_> {
    /// Returns the page; `body` writes what needs no script, with at most so many rows of a table.
    pub(crate) fn write(&self, body: impl Fn(&mut String, usize)) -> String {
        let mut text = String::new();
        for most_rows in ROWS {
            text.clear();
            body(&mut text, most_rows);
            if text.len() <= MOST_BYTES {
                break;
            }
        }
        let mut out = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body class=\"report\">\n<main>\n{text}\
             </main>\n<footer>Written by weir. {}</footer>\n",
            Escaped(self.title),
            self.footer
        );
        if let Some(data) = &self.data {
            let _ = writeln!(
                out,
                "<script type=\"application/json\" id=\"figures-data\">{data}</script>"
            );
        }
        let _ = write!(out, "<script>\n{SCRIPT}</script>\n</body>\n</html>\n");
        out
    }
}

/// Writes the place of the figures.
pub(crate) fn figures(out: &mut String) {
    out.push_str(
        "<h2>Plots</h2>\n<noscript><p class=\"aside\">Plots need JavaScript; the tables do not.</p></noscript>\n\
         <div id=\"figures\"></div>\n",
    );
}

/// Writes a table, unless it is empty. Of more rows than `order` allows, the worst are written.
pub(crate) fn table(out: &mut String, title: &str, grid: &Grid, order: &Order<'_>) {
    if grid.rows.is_empty() {
        return;
    }
    let (rows, left_out) = chosen(grid, order);
    let title = Escaped(title);
    let _ = writeln!(
        out,
        "<div class=\"wide tall\" tabindex=\"0\" role=\"region\" aria-label=\"{title}\"><table>\n\
         <thead><tr>"
    );
    for (index, title) in grid.header.iter().enumerate() {
        let class = class(grid, index, "");
        let _ = write!(out, "<th scope=\"col\"{class}>{}</th>", Escaped(title));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        out.push_str("<tr>");
        for (index, cell) in row.iter().enumerate() {
            let _ = write!(
                out,
                "<td{}>{}</td>",
                class(grid, index, cell),
                Escaped(cell)
            );
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table></div>\n");
    if left_out > 0 {
        let _ = writeln!(
            out,
            "<p class=\"aside\">The {} worst of {} rows; all are in the files.</p>",
            grid.rows.len() - left_out,
            grid.rows.len()
        );
    }
}

/// Returns a cell's attribute: names stand on the left, and verdicts have looks.
fn class(grid: &Grid, index: usize, cell: &str) -> String {
    if index < grid.names {
        " class=\"name\"".to_owned()
    } else if grid.header.get(index) == Some(&"verdict") && !cell.is_empty() {
        format!(" class=\"verdict {}\"", cell.replace(' ', "-"))
    } else {
        String::new()
    }
}

/// Returns the rows to write, and the number of those left out.
fn chosen(grid: &Grid, order: &Order<'_>) -> (Vec<Vec<String>>, usize) {
    if grid.rows.len() <= order.most_rows {
        return (grid.rows.clone(), 0);
    }
    // The first column of a run's other rows is empty.
    let mut variant = String::new();
    let complete = grid.rows.iter().map(|row| {
        let mut row = row.clone();
        if let Some(first) = row.first_mut().filter(|_| grid.names > 1) {
            if first.is_empty() {
                first.clone_from(&variant);
            } else {
                variant.clone_from(first);
            }
        }
        row
    });
    let mut rows: Vec<Vec<String>> = complete.collect();
    rows.sort_by_key(|row| (order.rank)(row));
    rows.truncate(order.most_rows);
    let left_out = grid.rows.len() - rows.len();
    (rows, left_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_rows_of_many_are_written_with_their_variants() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let grid = Grid {
            header: vec!["variant", "group", "verdict"],
            rows: vec![
                row(["one", "a", "agree"]),
                row(["", "b", "cannot tell"]),
                row(["", "c", "agree"]),
            ],
            names: 2,
        };
        let written = |most_rows| {
            let mut out = String::new();
            let rank = |row: &[String]| usize::from(row[1] != "b");
            table(
                &mut out,
                "T",
                &grid,
                &Order {
                    most_rows,
                    rank: &rank,
                },
            );
            out
        };
        assert_eq!(written(3).matches("<tr>").count(), 4);
        let one = written(1);
        assert!(one.contains(
            "<td class=\"name\">one</td><td class=\"name\">b</td><td class=\"verdict cannot-tell\">"
        ));
        assert!(one.contains("The 1 worst of 3 rows"), "{one}");
        assert_eq!(one.matches("<tr>").count(), 2);
    }

    #[test]
    fn nothing_ends_the_script_early() {
        assert!(!SCRIPT.contains("</script") && !SCRIPT.contains("<!--"));
        assert!(!STYLE.contains("</style"));
    }
}
