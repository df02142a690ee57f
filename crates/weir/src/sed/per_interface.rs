//! Options with a value for each of two interfaces: `--rate 1Gbps`, `--rate lan0=10Gbps`.

use std::fmt::Display;
use std::str::FromStr;

use crate::failure::Failure;

/// A value and its interface; without an interface, it applies to both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PerInterface<T> {
    interface: Option<String>,
    value: T,
}

impl<T: FromStr<Err: Display>> FromStr for PerInterface<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (interface, value) = match text.split_once('=') {
            Some((interface, value)) => (Some(interface.to_owned()), value),
            None => (None, text),
        };
        let value = value.parse().map_err(|error| format!("{error}"))?;
        Ok(Self { interface, value })
    }
}

/// Returns the values of each of two interfaces, including those that apply to both.
pub(super) fn per_interface<T: Clone>(
    option: &str,
    names: [&str; 2],
    said: &[PerInterface<T>],
) -> Result<[Vec<T>; 2], Failure> {
    let is_unknown = |name: &&String| !names.contains(&name.as_str());
    let named = said.iter().filter_map(|said| said.interface.as_ref());
    if let Some(name) = { named }.find(is_unknown) {
        let [one, other] = names;
        let problem = format!("`{name}` is neither `{one}` nor `{other}` of --inline");
        return Err(Failure::option(option, problem));
    }
    let values = |name: &str| {
        let is_of = |said: &&PerInterface<T>| said.interface.as_deref().is_none_or(|it| it == name);
        said.iter()
            .filter(is_of)
            .map(|said| said.value.clone())
            .collect()
    };
    Ok(names.map(values))
}

/// Returns the single value of each of two interfaces: its own, or else the one for both.
pub(super) fn required_per_interface<T: Clone>(
    option: &str,
    names: [&str; 2],
    said: &[PerInterface<T>],
) -> Result<[T; 2], Failure> {
    let mut own = per_interface(option, names, &only(said, Option::is_some))?;
    let mut both = per_interface(option, names, &only(said, Option::is_none))?;
    let mut value = |side: usize| {
        let name = names[side];
        let (own, both) = (&mut own[side], &mut both[side]);
        if own.len() > 1 || both.len() > 1 {
            let problem = format!("there is more than one for `{name}`");
            return Err(Failure::option(option, problem));
        }
        own.pop().or_else(|| both.pop()).ok_or_else(|| {
            let problem = format!("there is none for `{name}`: write `--{option} {name}=…` too");
            Failure::option(option, problem)
        })
    };
    Ok([value(0)?, value(1)?])
}

/// Returns the single value of each of two interfaces, if there is one.
pub(super) fn optional_per_interface<T: Clone>(
    option: &str,
    names: [&str; 2],
    said: &[PerInterface<T>],
) -> Result<[Option<T>; 2], Failure> {
    if said.is_empty() {
        return Ok([None, None]);
    }
    required_per_interface(option, names, said).map(|values| values.map(Some))
}

fn only<T: Clone>(
    said: &[PerInterface<T>],
    is_wanted: fn(&Option<String>) -> bool,
) -> Vec<PerInterface<T>> {
    let wanted = said.iter().filter(|said| is_wanted(&said.interface));
    wanted.cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(texts: &[&str]) -> Vec<PerInterface<u32>> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn required(texts: &[&str]) -> Result<[u32; 2], String> {
        let values = required_per_interface("rate", ["a", "b"], &said(texts));
        values.map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_value_for_one_interface_overrides_the_common_one() {
        assert_eq!(required(&["5"]), Ok([5, 5]));
        assert_eq!(required(&["5", "b=6"]), Ok([5, 6]));
        assert_eq!(required(&["b=6", "a=7"]), Ok([7, 6]));
        let wrong = |texts: &[&str]| required(texts).unwrap_err();
        assert!(wrong(&["a=7"]).contains("none for `b`"));
        assert!(wrong(&["a=7", "a=8", "b=1"]).contains("more than one for `a`"));
        assert!(wrong(&["5", "c=7"]).contains("`c` is neither"));
        assert!("a=x".parse::<PerInterface<u32>>().is_err());
        let all = per_interface("behind", ["a", "b"], &said(&["a=1", "a=2", "b=3"]));
        assert_eq!(all.ok(), Some([vec![1, 2], vec![3]]));
    }
}
