//! Access files: which clients of a tunnel may reach which destinations.

use std::path::Path;

use weir_policy::{AccessPolicy, AccessRule, ClientPattern, HostPattern, PortRange, Prefix};
use weir_scenario_derive::Keys;

use super::{condition, rules};
use crate::ScenarioError;
use crate::document::{Cursor, Reported};
use crate::schema::{Fields, Section};

/// The tables and keys of an access file.
#[derive(Keys)]
#[keys(
    title = "the top of the file",
    doc = "An access policy is a list of rules."
)]
struct File {
    /// The rules; the first one that matches a connection decides. A connection that matches none is refused.
    #[key(accepts = rules::RULES, read = at.all("tables `[[rules]]`", rule))]
    rules: Vec<AccessRule>,
}

/// The keys of a rule.
#[derive(Keys)]
#[keys(
    title = "[[rules]]",
    doc = "A rule is about connections that a client asks for. All its conditions must hold; of a list, one \
           value must match."
)]
struct Rule {
    /// The client, by the certificate that it has shown.
    #[key(absent = "any, also without a certificate", or = Vec::new(), read = condition::read(at))]
    client: Vec<ClientPattern>,
    /// The client's address.
    #[key(absent = "any", or = Vec::new(), read = condition::read(at))]
    from: Vec<Prefix>,
    /// The destination's address; that of a name is the one that the server finds.
    #[key(absent = "any", or = Vec::new(), read = condition::read(at))]
    to: Vec<Prefix>,
    /// The destination's name, as the client gives it; a destination given by its address has none.
    #[key(absent = "any", or = Vec::new(), read = condition::read(at))]
    host: Vec<HostPattern>,
    /// The destination's port.
    #[key(absent = "any", or = Vec::new(), read = condition::read(at))]
    to_port: Vec<PortRange>,
    /// Whether such connections are made, or refused.
    allow: bool,
}

/// The tables of an access file.
pub(crate) const SECTIONS: [&Section; 2] = [File::SECTION, Rule::SECTION];

/// Reads an access file.
///
/// # Errors
/// The file cannot be read, or it has mistakes: the error lists those that were found, with their
/// lines and keys.
pub fn load_access(path: &Path) -> Result<AccessPolicy, ScenarioError> {
    rules::load(path, "access", access)
}

/// Reads an access policy from text; errors contain `name`.
///
/// ```
/// use weir_scenario::parse_access;
///
/// let text = r#"
/// [[rules]]
/// client = "spiffe://prod/web/*"
/// host = "redis.svc"
/// to_port = 6379
/// allow = true
/// "#;
/// let access = parse_access("access.toml", text)?;
/// assert!(access.rules[0].allow);
///
/// let error = parse_access("access.toml", "[[rules]]\nclient = \"web\"\nallow = true").unwrap_err();
/// assert!(error.to_string().starts_with("access.toml:2: rules.0.client: `web`"), "{error}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// See [`load_access`].
pub fn parse_access(name: &str, text: &str) -> Result<AccessPolicy, ScenarioError> {
    rules::parse_as(name, text, access)
}

fn access(at: &Cursor<'_>) -> Result<AccessPolicy, Reported> {
    File::read(at, ()).map(|file| AccessPolicy { rules: file.rules })
}

fn rule(at: &Cursor<'_>) -> Result<AccessRule, Reported> {
    let fields = Fields::open(at.clone(), Rule::SECTION)?;
    let rule = Rule::read_keys(&fields, ())?;
    Ok(AccessRule {
        line: rules::line_of(at),
        clients: rule.client,
        from: rule.from,
        to: rule.to,
        hosts: rule.host,
        to_ports: rule.to_port,
        allow: rule.allow,
    })
}
