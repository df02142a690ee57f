//! `weir algorithms`

use std::fmt::Write as _;
use std::fs;

use clap::Args;
use serde::Serialize;
use weir_congestion::{Algorithm, Parameter, Value, algorithms};

use crate::failure::Failure;
use crate::output;

/// The arguments of `weir algorithms`.
#[derive(Debug, Args)]
#[command(after_help = "\
An algorithm is chosen by its name, its parameters follow after commas:
  weir perf client HOST --pin 3f5a… --congestion dctcp,g=0.125")]
pub(crate) struct Algorithms {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Algorithms {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        if self.json {
            let all: Vec<Description> = algorithms().map(Description::of).collect();
            return output::print_json(&all);
        }
        let mut out = String::new();
        for algorithm in algorithms() {
            let _ = writeln!(out, "{:<9}{}", algorithm.name, algorithm.summary);
            for parameter in algorithm.parameters() {
                let _ = writeln!(
                    out,
                    "    {:<22} {:<10} {}",
                    parameter.name,
                    parameter.default.to_string(),
                    parameter.doc
                );
            }
            out.push('\n');
        }
        out.push_str("These drive DCQUIC; beside each parameter stands its default.\n");
        if let Some(kernel) = kernel_algorithms() {
            let _ = writeln!(
                out,
                "This machine's kernel has for tcp and tcp-tls: {kernel}."
            );
        }
        output::print(&out)
    }
}

fn kernel_algorithms() -> Option<String> {
    let names = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").ok()?;
    Some(names.split_whitespace().collect::<Vec<_>>().join(", "))
}

#[derive(Serialize)]
struct Description {
    name: &'static str,
    summary: &'static str,
    parameters: Vec<ParameterDescription>,
}

#[derive(Serialize)]
struct ParameterDescription {
    name: &'static str,
    kind: &'static str,
    default: serde_json::Value,
    min: serde_json::Value,
    max: serde_json::Value,
    description: &'static str,
}

impl Description {
    fn of(algorithm: &Algorithm) -> Self {
        Self {
            name: algorithm.name,
            summary: algorithm.summary,
            parameters: algorithm
                .parameters()
                .map(ParameterDescription::of)
                .collect(),
        }
    }
}

impl ParameterDescription {
    fn of(parameter: &Parameter) -> Self {
        Self {
            name: parameter.name,
            kind: match parameter.default {
                Value::Float(_) => "number",
                Value::Integer(_) => "integer",
                Value::Boolean(_) => "boolean",
                Value::Duration(_) => "duration",
                Value::Size(_) => "size",
                Value::Rate(_) => "rate",
            },
            default: json(&parameter.default),
            min: json(&parameter.min),
            max: json(&parameter.max),
            description: parameter.doc,
        }
    }
}

/// Converts a value: numbers and booleans as such, quantities as text with their unit.
fn json(value: &Value) -> serde_json::Value {
    match value {
        Value::Float(value) => (*value).into(),
        Value::Integer(value) => (*value).into(),
        Value::Boolean(value) => (*value).into(),
        quantity => quantity.to_string().into(),
    }
}
