//! `weir manual`: writes a manual page for each command, for packages.

use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::{Args, Command, CommandFactory as _};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use crate::Cli;
use crate::failure::Failure;

/// The heading of examples in a command's help.
const EXAMPLES: &str = "Examples:\n";

/// The arguments of `weir manual`.
#[derive(Debug, Args)]
pub(crate) struct Manual {
    /// Output directory
    directory: PathBuf,
}

impl Manual {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let failed = |error| Failure::Failed(format!("{}: {error}", self.directory.display()));
        fs::create_dir_all(&self.directory).map_err(failed)?;
        for (name, page) in pages().map_err(failed)? {
            fs::write(self.directory.join(name), page).map_err(failed)?;
        }
        Ok(())
    }
}

/// Returns the file name and the text of each page.
fn pages() -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut root = Cli::command().disable_help_subcommand(true);
    root.build();
    let mut pages = Vec::new();
    add(&root, None, &mut pages)?;
    Ok(pages)
}

/// Adds the pages of a command and of its subcommands.
fn add(
    command: &Command,
    parent: Option<&str>,
    pages: &mut Vec<(String, Vec<u8>)>,
) -> io::Result<()> {
    let name = command.get_display_name().unwrap_or(command.get_name());
    pages.push((format!("{name}.1"), page(command, name, parent)?));
    for subcommand in visible_subcommands(command) {
        add(subcommand, Some(name), pages)?;
    }
    Ok(())
}

fn visible_subcommands(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|it| !it.is_hide_set())
}

fn page(command: &Command, name: &str, parent: Option<&str>) -> io::Result<Vec<u8>> {
    let man = Man::new(command.clone());
    let mut page = Vec::new();
    // `render_title` leaves an empty date out, and what follows would take its place.
    let version = env!("CARGO_PKG_VERSION");
    writeln!(page, r#".TH "{name}" "1" "" "weir {version}" "Weir""#)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    if command.get_arguments().any(|it| !it.is_hide_set()) {
        man.render_options_section(&mut page)?;
    }
    if visible_subcommands(command).next().is_some() {
        man.render_subcommands_section(&mut page)?;
    }
    let mut rest = Roff::new();
    if let Some(text) = command.get_after_help() {
        after_help(&mut rest, &text.to_string());
    }
    see_also(&mut rest, command, name, parent);
    rest.to_writer(&mut page)?;
    Ok(page)
}

/// Writes the text below a command's help: examples line by line, then notes.
fn after_help(page: &mut Roff, text: &str) {
    let mut has_notes = false;
    for paragraph in text.split("\n\n") {
        if let Some(examples) = paragraph.strip_prefix(EXAMPLES) {
            page.control("SH", ["EXAMPLES"]);
            literal(page, examples);
            continue;
        }
        if !has_notes {
            page.control("SH", ["NOTES"]);
            has_notes = true;
        } else {
            page.control("PP", []);
        }
        if paragraph.lines().all(|line| line.starts_with(' ')) {
            literal(page, paragraph);
        } else {
            page.text([roman(paragraph)]);
        }
    }
}

/// Writes lines that are not filled.
fn literal(page: &mut Roff, text: &str) {
    page.control("nf", []);
    for line in text.lines() {
        page.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
    }
    page.control("fi", []);
}

/// Names the pages of the command above and of those below.
fn see_also(page: &mut Roff, command: &Command, name: &str, parent: Option<&str>) {
    let below = visible_subcommands(command).map(|it| format!("{name}-{}", it.get_name()));
    let pages: Vec<_> = parent.map(str::to_owned).into_iter().chain(below).collect();
    if !pages.is_empty() {
        page.control("SH", ["SEE ALSO"]);
        page.text([roman(format!("{}(1)", pages.join("(1), ")))]);
    }
}
