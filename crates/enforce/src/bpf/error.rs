//! The errors of loading and attaching a program.

use std::io;

/// A program cannot be loaded or attached.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BpfError {
    /// This build has no programs.
    #[error(
        "built without BPF programs, which need clang, libelf and zlib: \
         apt-get install clang libelf-dev zlib1g-dev, then build with make, \
         or with cargo and --features weir-enforce/bpf"
    )]
    NotBuilt,
    /// The process lacks capabilities.
    #[error("loading BPF programs takes root, or {}", missing.join(" and "))]
    NotPermitted {
        /// The capabilities that it lacks.
        missing: Vec<&'static str>,
    },
    /// The kernel does not describe its types.
    #[error("the kernel has no /sys/kernel/btf/vmlinux: it needs CONFIG_DEBUG_INFO_BTF")]
    NoTypes,
    /// The kernel does not support congestion controls as BPF.
    #[error(
        "the kernel takes no TCP congestion control as BPF: it needs Linux 6.4, CONFIG_BPF_JIT"
    )]
    NoStructOps,
    /// The name is not valid for a congestion control.
    #[error("`{name}` names no congestion control: 1 to 15 of A-Z a-z 0-9 _ and . do")]
    Name {
        /// The name.
        name: String,
    },
    /// The kernel already has a congestion control of this name.
    #[error("the kernel has a congestion control `{name}` already")]
    NameTaken {
        /// The name.
        name: String,
    },
    /// A parameter is out of its range.
    #[error("`{parameter}` has to be between {least} and {most}: {found}")]
    Parameter {
        /// Its name.
        parameter: &'static str,
        /// The least value.
        least: f64,
        /// The greatest value.
        most: f64,
        /// The value found.
        found: f64,
    },
    /// There is no such interface.
    #[error("there is no interface `{name}` here; there is {existing}")]
    NoInterface {
        /// Its name.
        name: String,
        /// The names of those that exist.
        existing: String,
    },
    /// Frames on the interface have no Ethernet header.
    #[error("the interface `{name}` carries no Ethernet frames, which the programs read")]
    NotEthernet {
        /// Its name.
        name: String,
    },
    /// The bypass of a killed `weir enforce --inline` or `weir sed agent` forwards the interface's frames.
    #[error(
        "`{name}` has the bypass of a cable whose process has died, which takes its frames: \
         `weir enforce clean` removes it"
    )]
    Bypassed {
        /// Its name.
        name: String,
    },
    /// Another process controls the interface.
    #[error(transparent)]
    Claim(#[from] crate::claim::ClaimError),
    /// The kernel refused the program.
    #[error("the kernel refused the program: {source}{}", with_log(log))]
    Refused {
        /// The system's error.
        source: io::Error,
        /// The output of libbpf and the kernel's verifier, line by line.
        log: Vec<String>,
    },
    /// The object file does not match this loader: it comes from another build.
    #[error("the compiled programs have no `{missing}`")]
    Object {
        /// The missing part.
        missing: &'static str,
    },
    /// A system call failed.
    #[error("{doing}: {source}")]
    System {
        /// The operation that failed.
        doing: &'static str,
        /// The system's error.
        source: io::Error,
    },
}

/// Formats the last lines of a log, which give the reason; a verifier's whole log is long.
fn with_log(log: &[String]) -> String {
    const LINES: usize = 12;
    let lines = log.iter().flat_map(|message| message.lines());
    let lines: Vec<_> = lines.collect();
    let first = lines.len().saturating_sub(LINES);
    lines
        .iter()
        .skip(first)
        .map(|line| format!("\n  {line}"))
        .collect()
}
