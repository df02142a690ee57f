//! Names that stay inside a directory.

use std::fmt;

/// The most bytes of a path.
const LONGEST_PATH: usize = 4096;
/// The most bytes of a name, so that the partial file's name fits into the 255 bytes of most file
/// systems.
const LONGEST_NAME: usize = 240;
/// What a partial file's name begins and ends with.
const PARTIAL: (&str, &str) = (".", ".weir-part");

/// Why a path is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// It starts at the root.
    #[error("`{0}` is absolute: paths are relative to the directory that is served")]
    Absolute(String),
    /// It goes up.
    #[error("`{0}` contains `..`: it would leave the directory that is served")]
    Up(String),
    /// A part is empty or has a byte that no name may have.
    #[error("`{0}` has an empty part, or a control character")]
    Name(String),
    /// It is too long.
    #[error("`{0}` is too long: at most {LONGEST_NAME} bytes a name, and {LONGEST_PATH} in all")]
    Long(String),
    /// It is the name of a partial file.
    #[error("`{0}` is named like an unfinished copy (`.NAME.weir-part`)")]
    Partial(String),
    /// It is not UTF-8.
    #[error("a path is not UTF-8")]
    Encoding,
}

/// A path below a directory, without `..`; empty for the directory itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RelativePath {
    names: Vec<String>,
}

impl RelativePath {
    /// Parses a path with `/` between its names; `.` and the empty text are the directory itself.
    ///
    /// # Errors
    /// [`PathError`], where the path might lead out of the directory or is not a path.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        let refuse = |error: fn(String) -> PathError| Err(error(text.escape_debug().to_string()));
        if text.len() > LONGEST_PATH {
            return Err(PathError::Long(text.chars().take(40).collect()));
        }
        if text.starts_with('/') {
            return refuse(PathError::Absolute);
        }
        let text_names = text.strip_suffix('/').unwrap_or(text);
        if matches!(text_names, "" | ".") {
            return Ok(Self::default());
        }
        let names = text_names.strip_prefix("./").unwrap_or(text_names);
        for name in names.split('/') {
            if name == ".." {
                return refuse(PathError::Up);
            }
            if name.is_empty() || name == "." || name.chars().any(char::is_control) {
                return refuse(PathError::Name);
            }
            if name.len() > LONGEST_NAME {
                return refuse(PathError::Long);
            }
            if name.starts_with(PARTIAL.0) && name.ends_with(PARTIAL.1) {
                return refuse(PathError::Partial);
            }
        }
        let names = names.split('/').map(str::to_owned).collect();
        Ok(Self { names })
    }

    /// Returns this path below `directory`.
    #[must_use]
    pub fn below(&self, directory: &Self) -> Self {
        let names = directory.names.iter().chain(&self.names);
        Self {
            names: names.cloned().collect(),
        }
    }

    /// Returns the directories, and the last name; `None` for the directory itself.
    pub(crate) fn split(&self) -> Option<(&[String], &str)> {
        let (name, directories) = self.names.split_last()?;
        Some((directories, name))
    }

    /// Returns all names.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }
}

impl fmt::Display for RelativePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.names.as_slice() {
            [] => f.write_str("."),
            names => f.write_str(&names.join("/")),
        }
    }
}

/// Returns the name of the partial file of `name`.
pub(crate) fn partial_name(name: &str) -> String {
    format!("{}{name}{}", PARTIAL.0, PARTIAL.1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn paths_that_lead_out_of_the_directory_are_refused() {
        type Refusal = fn(String) -> PathError;
        let wrong: [(&str, Refusal); 12] = [
            ("/etc/passwd", PathError::Absolute),
            ("..", PathError::Up),
            ("../x", PathError::Up),
            ("a/../../x", PathError::Up),
            ("a/..", PathError::Up),
            ("./..", PathError::Up),
            ("a//b", PathError::Name),
            ("a/./b", PathError::Name),
            ("././a", PathError::Name),
            (".a.weir-part", PathError::Partial),
            ("a/.b.weir-part/c", PathError::Partial),
            ("//", PathError::Absolute),
        ];
        for (text, error) in wrong {
            let refused = RelativePath::parse(text);
            assert_eq!(refused, Err(error(text.to_owned())), "{text}");
        }
        let named = RelativePath::parse("a\0b").unwrap_err();
        assert_eq!(named, PathError::Name("a\\0b".to_owned()));
        let long = RelativePath::parse(&"x".repeat(241)).unwrap_err();
        assert!(matches!(long, PathError::Long(_)));
        assert!(RelativePath::parse(&"x".repeat(240)).is_ok());
    }

    #[test]
    fn a_path_is_below_its_directory() {
        let path = |text| RelativePath::parse(text).unwrap();
        assert_eq!(path("./a/b/").to_string(), "a/b");
        assert_eq!(path("").to_string(), ".");
        assert_eq!(path("c").below(&path("a/b")), path("a/b/c"));
        assert_eq!(path("c").below(&path(".")), path("c"));
        assert_eq!(path("..a/b..").to_string(), "..a/b..");
    }

    proptest! {
        #[test]
        fn an_accepted_path_has_only_names_and_is_read_again(text in "[./a\\PC]{0,12}") {
            if let Ok(path) = RelativePath::parse(&text) {
                for name in path.names() {
                    prop_assert!(!name.is_empty() && name != "." && name != ".." && !name.contains('/'));
                }
                prop_assert_eq!(RelativePath::parse(&path.to_string()), Ok(path));
            }
        }
    }
}
