//! Destinations that are redirected.

use std::fmt;
use std::str::FromStr;

use weir_policy::{PortRange, Prefix};

/// Destinations: a network, and the ports in it. Written `10.0.0.0/8`, `10.0.0.7:6379`,
/// `10.0.0.0/8:8000-8999`, `[2001:db8::/32]:443`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The network.
    pub network: Prefix,
    /// The ports; `None` for all.
    pub ports: Option<PortRange>,
}

/// What becomes of connections to a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TargetRule {
    /// The destinations.
    pub target: Target,
    /// Whether they are redirected, or left alone.
    pub redirects: bool,
}

/// Text that is no target.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}`: {problem}; write for example 10.0.0.0/8, 10.0.0.7:6379, 10.0.0.0/8:8000-8999 or \
     [2001:db8::/32]:443"
)]
pub struct TargetError {
    text: String,
    problem: String,
}

impl Target {
    /// Returns the rule that redirects connections to it.
    pub fn redirected(self) -> TargetRule {
        TargetRule {
            target: self,
            redirects: true,
        }
    }

    /// Returns the rule that leaves connections to it alone.
    pub fn left_alone(self) -> TargetRule {
        TargetRule {
            target: self,
            redirects: false,
        }
    }
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        let wrong = |problem: String| TargetError {
            text: text.to_owned(),
            problem,
        };
        let (network, ports) = match text.strip_prefix('[') {
            Some(rest) => match rest.split_once(']') {
                Some((network, "")) => (network, None),
                Some((network, ports)) => match ports.strip_prefix(':') {
                    Some(ports) => (network, Some(ports)),
                    None => return Err(wrong("ports follow a colon".to_owned())),
                },
                None => return Err(wrong("a bracket is missing".to_owned())),
            },
            // With one colon it is IPv4 and its ports, with several IPv6.
            None => match text.split_once(':') {
                Some((network, ports)) if !ports.contains(':') => (network, Some(ports)),
                _ => (text, None),
            },
        };
        let network = network.parse::<Prefix>();
        let ports = ports.map(str::parse::<PortRange>).transpose();
        Ok(Self {
            network: network.map_err(|error| wrong(error.to_string()))?,
            ports: ports.map_err(|error| wrong(error.to_string()))?,
        })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.ports, self.network.address().is_ipv6()) {
            (None, _) => write!(f, "{}", self.network),
            (Some(ports), false) => write!(f, "{}:{ports}", self.network),
            (Some(ports), true) => write!(f, "[{}]:{ports}", self.network),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_network_and_its_ports() {
        for text in [
            "10.0.0.0/8",
            "10.0.0.0/8:8000-8999",
            "2001:db8::/32",
            "[2001:db8::/32]:443",
        ] {
            assert_eq!(text.parse::<Target>().unwrap().to_string(), text);
        }
        let one: Target = "10.0.0.7:6379".parse().unwrap();
        assert!(one.network.contains("10.0.0.7".parse().unwrap()));
        assert!(one.ports.unwrap().contains(6379));
        assert!("[::1]".parse::<Target>().unwrap().ports.is_none());
        for wrong in [
            "",
            "redis.svc:6379",
            "10.0.0.1/8",
            "10.0.0.7:",
            "[::1",
            "[::1]443",
            "10.0.0.7:0-x",
        ] {
            let error = wrong.parse::<Target>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("`{wrong}`")), "{error}");
        }
    }
}
