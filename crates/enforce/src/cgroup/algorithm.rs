//! What a rule's congestion control is in the kernel.

use weir_congestion::{AlgorithmSpec, Value};

use crate::bpf::Parameters;

/// A congestion control of the kernel's TCP, and the limits of its window and rate.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct KernelCongestion {
    pub(crate) algorithm: KernelAlgorithm,
    /// Packets.
    pub(crate) initial_window: Option<u32>,
    /// Bytes.
    pub(crate) max_window: Option<u32>,
    /// Bytes per second.
    pub(crate) max_rate: Option<u32>,
}

/// Where the kernel has an algorithm from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum KernelAlgorithm {
    /// Itself, by this name.
    Own(&'static str),
    /// Weir's program of DCTCP.
    Dctcp(Parameters),
    /// Weir's program of D2TCP.
    D2tcp(Parameters),
}

/// Why the kernel has no such algorithm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NotInKernel {
    pub(crate) problem: String,
    pub(crate) remedy: &'static str,
}

const OTHER_PLANES: &str = "`weir enforce --interface` and `--inline` have it (docs/tcon.md)";

impl KernelAlgorithm {
    /// Whether it needs ECN.
    pub(crate) fn needs_ecn(self) -> bool {
        !matches!(self, Self::Own(_))
    }

    fn of(name: &str) -> Option<Self> {
        match name {
            "newreno" => Some(Self::Own("reno")),
            "cubic" => Some(Self::Own("cubic")),
            "bbr" => Some(Self::Own("bbr")),
            "dctcp" => Some(Self::Dctcp(Parameters::default())),
            "d2tcp" => Some(Self::D2tcp(Parameters::default())),
            _ => None,
        }
    }

    fn parameters(&mut self) -> Option<&mut Parameters> {
        match self {
            Self::Own(_) => None,
            Self::Dctcp(parameters) | Self::D2tcp(parameters) => Some(parameters),
        }
    }
}

impl KernelCongestion {
    /// Returns what an algorithm is in the kernel.
    pub(crate) fn of(spec: &AlgorithmSpec) -> Result<Self, NotInKernel> {
        let name = spec.name();
        let algorithm = KernelAlgorithm::of(name).ok_or_else(|| NotInKernel {
            problem: format!(
                "the kernel has no `{name}`, only newreno, cubic, bbr, and by Weir's programs dctcp and d2tcp"
            ),
            remedy: OTHER_PLANES,
        })?;
        let mut congestion = Self {
            algorithm,
            initial_window: None,
            max_window: None,
            max_rate: None,
        };
        for (parameter, value) in spec.values() {
            if !congestion.set(parameter, value) {
                return Err(NotInKernel {
                    problem: format!("the kernel's `{name}` takes no `{parameter} = {value}`"),
                    remedy: OTHER_PLANES,
                });
            }
        }
        Ok(congestion)
    }

    /// Sets a parameter; returns whether the kernel's algorithm has it.
    fn set(&mut self, parameter: &str, value: Value) -> bool {
        match (parameter, value) {
            ("initial_window", value) => {
                self.initial_window = packets(value);
                self.initial_window.is_some()
            }
            ("max_window", Value::Size(size)) => {
                self.max_window = Some(up_to_u32(size.bytes()));
                true
            }
            ("max_rate", Value::Rate(rate)) => {
                self.max_rate = Some(up_to_u32(rate.bits_per_second() / 8));
                true
            }
            (parameter, value) => match self.algorithm.parameters() {
                Some(parameters) => set_parameter(parameters, parameter, value),
                None => false,
            },
        }
    }
}

fn set_parameter(parameters: &mut Parameters, parameter: &str, value: Value) -> bool {
    match (parameter, value) {
        ("g", Value::Float(value)) => parameters.g = value,
        ("initial_alpha", Value::Float(value)) => parameters.initial_alpha = value,
        ("min_window", value) => match packets(value) {
            Some(value) => parameters.min_window = value,
            None => return false,
        },
        _ => return false,
    }
    true
}

/// Returns a whole number of packets, at least one.
fn packets(value: Value) -> Option<u32> {
    let value = match value {
        Value::Integer(value) => value as f64,
        Value::Float(value) => value,
        _ => return None,
    };
    ((1.0..=65_535.0).contains(&value) && value.fract() == 0.0).then_some(value as u32)
}

/// The kernel takes the largest number as no limit.
fn up_to_u32(value: u64) -> u32 {
    u32::try_from(value)
        .unwrap_or(u32::MAX)
        .clamp(1, u32::MAX - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<KernelCongestion, NotInKernel> {
        KernelCongestion::of(&text.parse().unwrap())
    }

    #[test]
    fn the_kernels_names_and_parameters_are_found() {
        let reno = of("newreno,initial_window=20,max_window=1MB,max_rate=8Mbps").unwrap();
        assert_eq!(reno.algorithm, KernelAlgorithm::Own("reno"));
        assert_eq!(reno.initial_window, Some(20));
        assert_eq!(
            (reno.max_window, reno.max_rate),
            (Some(1_000_000), Some(1_000_000))
        );
        let KernelAlgorithm::Dctcp(parameters) = of("dctcp,g=0.125").unwrap().algorithm else {
            panic!("not DCTCP");
        };
        assert_eq!(parameters.g, 0.125);
        assert_eq!(parameters.min_window, 2);
        let fast = of("bbr,max_rate=1Tbps").unwrap();
        assert_eq!(fast.max_rate, Some(u32::MAX - 1));
    }

    #[test]
    fn what_only_weir_has_names_the_other_planes() {
        for text in ["swift", "bbr3", "bbr,min_window=8", "cubic,hystart=false"] {
            let error = of(text).unwrap_err();
            assert!(error.remedy.contains("--interface"), "{text}: {error:?}");
        }
    }
}
