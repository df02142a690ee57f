//! The process that opened a socket, as rules match it.

use std::fmt;
use std::str::FromStr;

/// A control group by its path below the root of the cgroup2 hierarchy: `/system.slice/nginx.service`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CgroupPath(String);

/// A text that is no path of a control group.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no control group: write its path below the root of the cgroup2 hierarchy, for example \
     \"/system.slice/nginx.service\""
)]
pub struct CgroupPathError(String);

impl CgroupPath {
    /// Returns the path, which begins with `/`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether a control group is this one or below it.
    pub fn contains(&self, path: &str) -> bool {
        let rest = path.strip_prefix(self.0.trim_end_matches('/'));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

impl FromStr for CgroupPath {
    type Err = CgroupPathError;

    fn from_str(text: &str) -> Result<Self, CgroupPathError> {
        let mut parts = text.strip_prefix('/').unwrap_or("//").split('/');
        let is_name = |part: &str| !part.is_empty() && part != "." && part != "..";
        if text == "/" || parts.all(is_name) {
            Ok(Self(text.to_owned()))
        } else {
            Err(CgroupPathError(text.to_owned()))
        }
    }
}

impl fmt::Display for CgroupPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A user, by name or number: `www-data`, `33`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum User {
    /// By number.
    Id(u32),
    /// By name.
    Name(String),
}

/// A text that is no user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no user: write a name such as \"www-data\", or a number")]
pub struct UserError(String);

impl FromStr for User {
    type Err = UserError;

    fn from_str(text: &str) -> Result<Self, UserError> {
        if let Ok(id) = text.parse() {
            return Ok(Self::Id(id));
        }
        let forbidden = |c: char| c == ':' || c == '/' || c.is_whitespace() || c.is_control();
        if text.is_empty()
            || text.starts_with(|c: char| c.is_ascii_digit())
            || text.contains(forbidden)
        {
            return Err(UserError(text.to_owned()));
        }
        Ok(Self::Name(text.to_owned()))
    }
}

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => write!(f, "{id}"),
            Self::Name(name) => f.write_str(name),
        }
    }
}

/// A process's name, or a beginning of names: `nginx`, `java*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandPattern(String);

/// A text that is no name of a process.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` names no process: 1 to 15 bytes, as `ps -o comm` shows them, with a `*` at the end for all names \
     that begin so"
)]
pub struct CommandPatternError(String);

impl CommandPattern {
    /// `TASK_COMM_LEN` of linux/sched.h without the terminating zero byte.
    const LONGEST: usize = 15;

    /// Returns the name, or what names begin with, and whether it is the whole name.
    pub fn name(&self) -> (&str, bool) {
        match self.0.strip_suffix('*') {
            Some(beginning) => (beginning, false),
            None => (&self.0, true),
        }
    }

    /// Returns whether the pattern matches this name.
    pub fn matches(&self, name: &str) -> bool {
        match self.name() {
            (beginning, false) => name.starts_with(beginning),
            (whole, true) => name == whole,
        }
    }
}

impl FromStr for CommandPattern {
    type Err = CommandPatternError;

    fn from_str(text: &str) -> Result<Self, CommandPatternError> {
        let name = text.strip_suffix('*').unwrap_or(text);
        let forbidden = |c: char| c == '*' || c.is_control();
        if name.is_empty() || name.len() > Self::LONGEST || name.contains(forbidden) {
            Err(CommandPatternError(text.to_owned()))
        } else {
            Ok(Self(text.to_owned()))
        }
    }
}

impl fmt::Display for CommandPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The process that opened a socket, or the listener that a connection came in by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketOwner<'n> {
    /// Its control group, as a path below the root.
    pub cgroup: Option<&'n str>,
    /// Its user, by name or number as rules write it.
    pub user: Option<&'n User>,
    /// Its name.
    pub command: Option<&'n str>,
}

impl SocketOwner<'_> {
    /// Of which nothing is known.
    pub const UNKNOWN: Self = Self {
        cgroup: None,
        user: None,
        command: None,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_group_contains_those_below_it() {
        let group: CgroupPath = "/system.slice".parse().unwrap();
        assert!(group.contains("/system.slice") && group.contains("/system.slice/nginx.service"));
        assert!(!group.contains("/system.slices") && !group.contains("/"));
        let root: CgroupPath = "/".parse().unwrap();
        assert!(root.contains("/") && root.contains("/a/b"));
        for text in ["", "a", "/a/", "/a//b", "/a/../b", "//"] {
            assert!(text.parse::<CgroupPath>().is_err(), "{text}");
        }
    }

    #[test]
    fn users_are_names_or_numbers() {
        assert_eq!("33".parse(), Ok(User::Id(33)));
        assert_eq!("www-data".parse(), Ok(User::Name("www-data".to_owned())));
        for text in ["", "3a", "a b", "a:b", "5000000000"] {
            assert!(text.parse::<User>().is_err(), "{text}");
        }
    }

    #[test]
    fn commands_match_as_the_kernel_cuts_them() {
        let java: CommandPattern = "java*".parse().unwrap();
        assert!(java.matches("java") && java.matches("javac") && !java.matches("jav"));
        let nginx: CommandPattern = "nginx".parse().unwrap();
        assert!(nginx.matches("nginx") && !nginx.matches("nginx2"));
        for text in ["", "*", "sixteen_bytes_xx", "a*b"] {
            assert!(text.parse::<CommandPattern>().is_err(), "{text}");
        }
    }
}
