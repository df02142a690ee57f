//! The printed tables.

use comfy_table::{CellAlignment, LineStyle, Table, TableStyle};

/// What stands for a figure that there is not.
const NONE: &str = "–";

/// A line under the header and one under the table.
const STYLE: TableStyle = TableStyle::new()
    .header_separator(LineStyle::none().fill('─').junction('─'))
    .bottom_border(LineStyle::none().fill('─').junction('─'));

/// A table whose first column is text, and the others numbers.
pub(crate) struct Figures {
    table: Table,
}

impl Figures {
    pub(crate) fn new(header: &[&str]) -> Self {
        let mut table = Table::new();
        table.load_style(STYLE);
        table.set_header(header);
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        Self { table }
    }

    pub(crate) fn add<const N: usize>(&mut self, row: [String; N]) {
        self.table.add_row(row);
    }

    /// Prints the table, unless it is empty.
    pub(crate) fn print(&self) {
        if self.table.row_count() > 0 {
            println!("\n{}", self.table);
        }
    }
}

/// Formats a figure with so many decimals; a dash if there is none.
pub(crate) fn decimals(figure: Option<f64>, decimals: usize) -> String {
    figure.map_or(NONE.to_owned(), |figure| format!("{figure:.decimals$}"))
}
