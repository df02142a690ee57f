//! Generates the key reference of `docs/scenario.md`, `docs/policy.md` and `docs/deadlines.md`.

use std::fmt::Write as _;
use std::iter;

use crate::fault::FaultKind;
use crate::queue::Discipline;
use crate::read::File;
use crate::schema::{Literal, Presence, Section};
use crate::transport::{
    DcudpOptions, DcudpQuit, MigrationOptions, QuicOptions, TcpOptions, TlsOptions, UdpOptions,
};
use crate::workload::CdfFile;
use crate::{
    Group, LiveOptions, Measurements, Reduction, SedOptions, StandsFor, Workload, change,
    policy_file, topology,
};

/// Returns all tables, in the order of the reference.
pub(crate) fn sections() -> impl Iterator<Item = &'static Section> {
    (iter::once(File::SECTION).chain(topology::SECTIONS))
        .chain([
            Group::SECTION,
            StandsFor::SECTION,
            TcpOptions::SECTION,
            TlsOptions::SECTION,
            QuicOptions::SECTION,
            MigrationOptions::SECTION,
            DcudpOptions::SECTION,
            DcudpQuit::SECTION,
            UdpOptions::SECTION,
        ])
        .chain(Workload::SECTIONS)
        .chain([CdfFile::SECTION])
        .chain(Discipline::SECTIONS)
        .chain(FaultKind::SECTIONS)
        .chain(change::SECTIONS)
        .chain([
            Measurements::SECTION,
            Reduction::SECTION,
            SedOptions::SECTION,
            LiveOptions::SECTION,
        ])
}

/// Returns every table of a scenario with its keys, accepted values, defaults and meanings, as
/// Markdown.
pub fn key_reference() -> String {
    page(sections())
}

/// Returns the same for a policy.
pub fn policy_key_reference() -> String {
    page(policy_file::POLICY_SECTIONS.into_iter())
}

/// Returns the same for a deadline file.
pub fn deadline_key_reference() -> String {
    page(policy_file::DEADLINE_SECTIONS.into_iter())
}

/// Returns the same for an access file.
pub fn access_key_reference() -> String {
    page(policy_file::ACCESS_SECTIONS.into_iter())
}

fn page(sections: impl Iterator<Item = &'static Section>) -> String {
    let mut page = String::new();
    for section in sections {
        // Writing to a string cannot fail.
        let _ = write!(page, "### `{}`\n\n{}\n\n", section.title, section.doc);
        page.push_str("| key | takes | if absent | meaning |\n|---|---|---|---|\n");
        for key in section.keys {
            let absent = match key.presence {
                Presence::Required => "an error".to_owned(),
                Presence::Optional(meaning) => meaning.to_owned(),
                Presence::Default(Literal::Text(text)) => format!("`\"{text}\"`"),
                Presence::Default(Literal::Integer(value)) => format!("`{value}`"),
                Presence::Default(Literal::Boolean(value)) => format!("`{value}`"),
            };
            let _ = writeln!(
                page,
                "| `{}` | {} | {absent} | {} |",
                key.name, key.accepts, key.doc
            );
        }
        page.push('\n');
    }
    page
}
