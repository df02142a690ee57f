//! Conditions of rules: one value or a list.

use std::fmt::Display;
use std::str::FromStr;

use weir_policy::{
    CgroupPath, ClientPattern, CommandPattern, Dscp, HostPattern, NamePattern, PortRange, Prefix,
    User,
};

use crate::document::{Cursor, Reported, Value};
use crate::error::ProblemKind;
use crate::schema::{Accepted, Accepts};

/// A property of flows that a rule can match.
pub(crate) trait Condition: FromStr<Err: Display> {
    /// The accepted values of the key.
    const ACCEPTS: &str;
}

impl Condition for Prefix {
    const ACCEPTS: &str = "a set of addresses such as \"10.0.0.0/8\", or a list of such sets";
}

impl Condition for PortRange {
    const ACCEPTS: &str = "a port such as 443, a range such as \"8000-8999\", or a list of these";
}

impl Condition for NamePattern {
    const ACCEPTS: &str = "an interface's name, a beginning of names such as \"veth*\", or a list";
}

impl Condition for Dscp {
    const ACCEPTS: &str =
        "a name such as \"af41\" or \"ef\", a number from 0 to 63, or a list of these";
}

impl Condition for CgroupPath {
    const ACCEPTS: &str = "a path below the root of the cgroup2 hierarchy such as \
                           \"/system.slice/nginx.service\", or a list of such paths";
}

impl Condition for User {
    const ACCEPTS: &str = "a user's name such as \"www-data\", a number, or a list of these";
}

impl Condition for CommandPattern {
    const ACCEPTS: &str = "a process's name, a beginning of names such as \"java*\", or a list";
}

impl Condition for ClientPattern {
    const ACCEPTS: &str = "a SPIFFE ID such as \"spiffe://prod/web\", all below one such as \"spiffe://prod/*\", the \
                           SHA-256 of a certificate, or a list of these";
}

impl Condition for HostPattern {
    const ACCEPTS: &str =
        "a name such as \"redis.svc\", all below a domain such as \"*.svc\", or a list of these";
}

impl<T: Condition> Accepted for Vec<T> {
    const ACCEPTS: Accepts = Accepts::Other(T::ACCEPTS);
}

/// Reads a key that takes one or several values of a type, as text or as numbers.
pub(super) fn read<T: Condition>(at: &Cursor<'_>) -> Result<Vec<T>, Reported> {
    let items = at.items();
    if items.is_empty() {
        return Err(at.conflict(
            "an empty list fits no flow",
            format!(
                "write {}, or leave `{}` out so that it fits every flow",
                T::ACCEPTS,
                at.name()
            ),
        ));
    }
    // Report every wrong value, not only the first.
    let read: Vec<_> = items.iter().map(value).collect();
    read.into_iter().collect()
}

/// Reads a key that takes one value of a type, as text or as a number.
pub(crate) fn value<T: Condition>(at: &Cursor<'_>) -> Result<T, Reported> {
    let text = match &at.node.value {
        Value::Text(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        _ => return Err(at.wrong_kind(T::ACCEPTS)),
    };
    text.parse().map_err(|error: T::Err| {
        let message = error.to_string();
        at.problem(ProblemKind::Condition { message })
    })
}
