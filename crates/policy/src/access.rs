//! Which client of a tunnel may reach which destination.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use crate::first_match::{Match, first_match};
use crate::{PortRange, Prefix};

/// Rules for the connections of a tunnel's clients. The first one that matches a connection decides; one
/// that no rule matches is refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessPolicy {
    /// The rules, in the file's order.
    pub rules: Vec<AccessRule>,
}

/// A rule. An empty list of conditions matches every connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessRule {
    /// Where the rule begins in its file, counted from 1; 0 without a file.
    pub line: u32,
    /// The identity that the client has proved by its certificate.
    pub clients: Vec<ClientPattern>,
    /// The client's address.
    pub from: Vec<Prefix>,
    /// The destination's address.
    pub to: Vec<Prefix>,
    /// The destination's name, as the client names it; a destination by its address has none.
    pub hosts: Vec<HostPattern>,
    /// The destination's port.
    pub to_ports: Vec<PortRange>,
    /// Whether such connections are allowed, or refused.
    pub allow: bool,
}

/// A connection that a client asks for.
#[derive(Clone, Copy, Debug)]
pub struct AccessRequest<'n> {
    /// What the client has proved to be: the SHA-256 of its certificate, 64 hexadecimal digits in lower
    /// case, and its SPIFFE ID, where it has them.
    pub client: &'n [String],
    /// The client's address.
    pub from: IpAddr,
    /// The destination's name in lower case; `None` for one by its address.
    pub host: Option<&'n str>,
    /// The destination's address; `None` before the name is resolved.
    pub to: Option<IpAddr>,
    /// The destination's port.
    pub to_port: u16,
}

/// A client, by the certificate's SHA-256 or SPIFFE ID, or all workloads of a trust domain or below a
/// path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientPattern {
    /// The one with this text.
    Exact(String),
    /// All whose SPIFFE ID begins so; it ends with a slash.
    Below(String),
}

/// Text that is no client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no client: write its SPIFFE ID such as \"spiffe://prod/web\", \"spiffe://prod/*\" for all \
     below, or the SHA-256 of its certificate, 64 hexadecimal digits"
)]
pub struct ClientPatternError(String);

/// A host's name, or all names below a domain: `redis.svc`, `*.svc`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPattern(String);

/// Text that is no pattern of host names.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no name of a host such as \"redis.svc\" or \"*.svc\"; addresses go to `to`")]
pub struct HostPatternError(String);

impl AccessPolicy {
    /// Returns the rule that decides about a connection.
    pub fn decision(&self, request: &AccessRequest<'_>) -> Option<&AccessRule> {
        first_match(&self.rules, request)
    }

    /// Returns whether a connection is allowed; without the destination's address, whether it is with some
    /// address.
    pub fn allows(&self, request: &AccessRequest<'_>) -> bool {
        if request.to.is_some() {
            return self.decision(request).is_some_and(|rule| rule.allow);
        }
        let mut matching = self.rules.iter().filter(|rule| rule.matches(request));
        // A rule that refuses some addresses leaves it open.
        let decisive = matching.find(|rule| rule.allow || rule.to.is_empty());
        decisive.is_some_and(|rule| rule.allow)
    }
}

impl Match<AccessRequest<'_>> for AccessRule {
    /// An address that is not known yet may be any.
    fn matches(&self, request: &AccessRequest<'_>) -> bool {
        any(&self.clients, |pattern| {
            request.client.iter().any(|client| pattern.matches(client))
        }) && any(&self.from, |prefix| prefix.contains(request.from))
            && any(&self.to, |prefix| {
                request.to.is_none_or(|address| prefix.contains(address))
            })
            && any(&self.hosts, |pattern| {
                request.host.is_some_and(|name| pattern.matches(name))
            })
            && any(&self.to_ports, |ports| ports.contains(request.to_port))
    }
}

/// Returns whether there is no condition, or one of the values matches.
fn any<T>(values: &[T], fits: impl Fn(&T) -> bool) -> bool {
    values.is_empty() || values.iter().any(fits)
}

impl ClientPattern {
    /// Returns whether an identity is meant.
    pub fn matches(&self, identity: &str) -> bool {
        match self {
            Self::Exact(text) => identity == text,
            Self::Below(start) => identity.len() > start.len() && identity.starts_with(start),
        }
    }
}

impl FromStr for ClientPattern {
    type Err = ClientPatternError;

    fn from_str(text: &str) -> Result<Self, ClientPatternError> {
        let wrong = || ClientPatternError(text.to_owned());
        if let Some(name) = text.strip_prefix("spiffe://") {
            let (name, is_below) = match name.strip_suffix("/*") {
                Some(start) => (start, true),
                None => (name, false),
            };
            let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || b".-_/".contains(&byte);
            let mut segments = name.split('/');
            let is_name = name.bytes().all(is_valid) && segments.all(|part| !part.is_empty());
            // A workload has a path.
            if !is_name || !(is_below || name.contains('/')) {
                return Err(wrong());
            }
            return Ok(if is_below {
                Self::Below(format!("spiffe://{name}/"))
            } else {
                Self::Exact(text.to_owned())
            });
        }
        let digits: String = text.chars().filter(|char| *char != ':').collect();
        let is_fingerprint =
            digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_fingerprint
            .then(|| Self::Exact(digits.to_ascii_lowercase()))
            .ok_or_else(wrong)
    }
}

impl fmt::Display for ClientPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(text) => f.write_str(text),
            Self::Below(start) => write!(f, "{start}*"),
        }
    }
}

impl HostPattern {
    /// Returns whether a name in lower case is meant.
    pub fn matches(&self, name: &str) -> bool {
        match self.0.strip_prefix('*') {
            // With the dot, so that something has to be in front of it.
            Some(domain) => name.len() > domain.len() && name.ends_with(domain),
            None => name == self.0,
        }
    }
}

impl FromStr for HostPattern {
    type Err = HostPatternError;

    fn from_str(text: &str) -> Result<Self, HostPatternError> {
        let name = text.strip_prefix("*.").unwrap_or(text);
        let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        let is_name = !name.is_empty()
            && name.len() <= 255
            && name.bytes().all(is_valid)
            && name.parse::<IpAddr>().is_err();
        is_name
            .then(|| Self(text.to_ascii_lowercase()))
            .ok_or_else(|| HostPatternError(text.to_owned()))
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(allow: bool) -> AccessRule {
        AccessRule {
            line: 0,
            clients: Vec::new(),
            from: Vec::new(),
            to: Vec::new(),
            hosts: Vec::new(),
            to_ports: Vec::new(),
            allow,
        }
    }

    fn request<'n>(
        client: &'n [String],
        host: Option<&'n str>,
        to: Option<&str>,
    ) -> AccessRequest<'n> {
        AccessRequest {
            client,
            from: "192.0.2.1".parse().unwrap(),
            host,
            to: to.map(|to| to.parse().unwrap()),
            to_port: 6379,
        }
    }

    #[test]
    fn the_first_rule_that_matches_decides_and_none_refuses() {
        let policy = AccessPolicy {
            rules: vec![
                AccessRule {
                    to: vec!["10.9.0.0/16".parse().unwrap()],
                    ..rule(false)
                },
                AccessRule {
                    clients: vec!["spiffe://prod/web/*".parse().unwrap()],
                    hosts: vec!["*.svc".parse().unwrap()],
                    to_ports: vec!["6379".parse().unwrap()],
                    ..rule(true)
                },
            ],
        };
        let web = ["spiffe://prod/web/7".to_owned()];
        let other = ["spiffe://prod/db".to_owned()];
        assert!(policy.allows(&request(&web, Some("redis.svc"), Some("10.0.0.1"))));
        assert!(!policy.allows(&request(&web, Some("redis.svc"), Some("10.9.0.1"))));
        assert!(!policy.allows(&request(&web, None, Some("10.0.0.1"))));
        assert!(!policy.allows(&request(&other, Some("redis.svc"), Some("10.0.0.1"))));
        assert!(!policy.allows(&request(&[], Some("redis.svc"), Some("10.0.0.1"))));
        // Before the name is resolved.
        assert!(policy.allows(&request(&web, Some("redis.svc"), None)));
        assert!(!policy.allows(&request(&other, Some("redis.svc"), None)));
        let forbidden = AccessPolicy {
            rules: vec![rule(false), rule(true)],
        };
        assert!(!forbidden.allows(&request(&web, Some("redis.svc"), None)));
    }

    #[test]
    fn clients_are_named_exactly_or_below_a_path() {
        let pattern = |text: &str| text.parse::<ClientPattern>();
        assert!(
            pattern("spiffe://prod/*")
                .unwrap()
                .matches("spiffe://prod/a/b")
        );
        assert!(
            !pattern("spiffe://prod/*")
                .unwrap()
                .matches("spiffe://production/a")
        );
        assert!(
            !pattern("spiffe://prod/a")
                .unwrap()
                .matches("spiffe://prod/a/b")
        );
        let digits = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let upper = pattern(&digits.to_uppercase()).unwrap();
        assert!(upper.matches(digits));
        for text in ["spiffe://prod/a", "spiffe://prod/*", digits] {
            assert_eq!(pattern(text).unwrap().to_string(), text);
        }
        for wrong in [
            "",
            "web",
            "spiffe://",
            "spiffe://prod",
            "spiffe:///a",
            "spiffe://a//b",
            "ba78",
        ] {
            assert!(pattern(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn hosts_are_named_exactly_or_below_a_domain() {
        let pattern = |text: &str| text.parse::<HostPattern>();
        assert!(pattern("Redis.svc").unwrap().matches("redis.svc"));
        assert!(pattern("*.svc").unwrap().matches("a.b.svc"));
        assert!(!pattern("*.svc").unwrap().matches("svc"));
        assert!(!pattern("*.svc").unwrap().matches("xsvc"));
        for wrong in ["", "*", "a*", "*.", "10.0.0.1", "a b"] {
            assert!(pattern(wrong).is_err(), "{wrong}");
        }
    }
}
