//! The reference of all keys, as `docs/scenario.md`, `docs/policy.md` and `docs/deadlines.md` have it.

use std::fmt::Write as _;

use super::{Literal, Presence, Section};
use crate::{
    fault, group, live, loader, measurements, policy_file, queue, sed, topology, transport,
    workload,
};

/// All tables, in the order in which people meet them.
pub(super) fn sections() -> impl Iterator<Item = &'static Section> {
    let first: [&'static Section; 20] = [
        &loader::FILE,
        &topology::DUMBBELL,
        &topology::SENDERS,
        &topology::RECEIVERS,
        &topology::STAR,
        &topology::STAR_HOSTS,
        &topology::HOST,
        &topology::SWITCH,
        &topology::SHARED_BUFFER,
        &topology::TCON,
        &topology::LINK,
        &topology::ROUTE,
        &group::GROUP,
        transport::TcpOptions::SECTION,
        transport::TlsOptions::SECTION,
        transport::QuicOptions::SECTION,
        transport::MigrationOptions::SECTION,
        transport::DcudpOptions::SECTION,
        transport::DcudpQuit::SECTION,
        transport::UdpOptions::SECTION,
    ];
    (first.into_iter())
        .chain(workload::Workload::SECTIONS)
        .chain(queue::Discipline::SECTIONS)
        .chain(fault::FaultKind::SECTIONS)
        .chain([
            &measurements::MEASUREMENTS,
            &measurements::REDUCTION,
            sed::SedOptions::SECTION,
            live::LiveOptions::SECTION,
        ])
}

/// Every table of a scenario with its keys, what they take, their defaults and meanings, as Markdown.
pub fn key_reference() -> String {
    page(sections())
}

/// The same of a policy.
pub fn policy_key_reference() -> String {
    page(policy_file::SECTIONS.into_iter())
}

/// The same of a file of deadlines.
pub fn deadline_key_reference() -> String {
    page(policy_file::DEADLINE_SECTIONS.into_iter())
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
