//! The serde form: `"cubic"`, or a table `{ name = "dctcp", g = 0.0625 }`. Plug-ins are only written; who reads a
//! scenario finds them.

use std::fmt;

use serde::de::{self, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::algorithm::{AlgorithmSpec, Parameter, SpecError, Value};
use crate::plugin::{Plugin, PluginReference};

impl Serialize for AlgorithmSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let reference = self.plugin().map(Plugin::reference);
        let name = match &reference {
            Some(PluginReference::Name(name)) => Some(&name[..]),
            Some(PluginReference::File { .. }) => None,
            None => Some(self.name()),
        };
        if let Some(name) = name
            && self.values().next().is_none()
        {
            return serializer.serialize_str(name);
        }
        let mut table = serializer.serialize_map(None)?;
        if let Some(name) = name {
            table.serialize_entry("name", name)?;
        }
        if let Some(PluginReference::File {
            path,
            sha256,
            parameters,
        }) = &reference
        {
            table.serialize_entry("plugin", path)?;
            table.serialize_entry("sha256", sha256)?;
            for (name, value) in parameters {
                table.serialize_entry(name, value)?;
            }
        }
        for (name, value) in self.values() {
            table.serialize_entry(name, &value)?;
        }
        table.end()
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Float(value) => serializer.serialize_f64(*value),
            Self::Integer(value) => serializer.serialize_u64(*value),
            Self::Boolean(value) => serializer.serialize_bool(*value),
            quantity => serializer.collect_str(quantity),
        }
    }
}

impl<'de> Deserialize<'de> for AlgorithmSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SpecVisitor)
    }
}

struct SpecVisitor;

impl<'de> Visitor<'de> for SpecVisitor {
    type Value = AlgorithmSpec;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a congestion control, or a table with `name` and its parameters")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<AlgorithmSpec, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut table: A) -> Result<AlgorithmSpec, A::Error> {
        // The name may come last, and the other entries depend on it.
        let mut name = None;
        let mut entries: Vec<(String, Scalar)> = Vec::new();
        while let Some(key) = table.next_key::<String>()? {
            if key == "name" {
                if name.replace(table.next_value::<String>()?).is_some() {
                    return Err(de::Error::duplicate_field("name"));
                }
            } else {
                entries.push((key, table.next_value()?));
            }
        }
        let name = name.ok_or_else(|| de::Error::custom(SpecError::MissingName))?;
        let mut spec = AlgorithmSpec::new(&name).map_err(de::Error::custom)?;
        for (key, scalar) in entries {
            let parameter = spec.parameter(&key).map_err(de::Error::custom)?;
            set_scalar(&mut spec, parameter, scalar).map_err(de::Error::custom)?;
        }
        Ok(spec)
    }
}

/// A value as a data format represents it.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "a parameter is a number, true or false, or text"
)]
enum Scalar {
    Boolean(bool),
    Integer(u64),
    Float(f64),
    Text(String),
}

fn set_scalar(
    spec: &mut AlgorithmSpec,
    parameter: &'static Parameter,
    scalar: Scalar,
) -> Result<(), SpecError> {
    let value = match (scalar, parameter.default) {
        (Scalar::Text(text), _) => return spec.set_text(parameter, &text),
        (Scalar::Integer(value), Value::Float(_)) => Value::Float(value as f64),
        (Scalar::Integer(value), _) => Value::Integer(value),
        (Scalar::Float(value), _) => Value::Float(value),
        (Scalar::Boolean(value), _) => Value::Boolean(value),
    };
    spec.set(parameter, value)
}
