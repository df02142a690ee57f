//! The programs that simulate: this one, that of another commit, ns-3 and htsim.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cases::{Case, SpeedFigures, Work};

/// A program that simulates.
enum Peer {
    /// A binary of this benchmark.
    Speed(PathBuf),
    /// `bench/ns3`.
    Ns3(PathBuf),
    /// `bench/htsim`, or another program with its options and its output.
    Htsim(PathBuf),
}

/// The programs that take part, and how often each runs.
pub(crate) struct Peers {
    ours: Peer,
    base: Option<Peer>,
    ns3: Option<Peer>,
    htsim: Option<Peer>,
    runs: usize,
}

/// The fastest run of each program; `None` for one that is absent or cannot run this.
#[derive(Clone, Copy)]
pub(crate) struct Best {
    pub(crate) ours: SpeedFigures,
    pub(crate) base: Option<SpeedFigures>,
    pub(crate) ns3: Option<SpeedFigures>,
    pub(crate) htsim: Option<SpeedFigures>,
}

/// Whether ns-3 and htsim take part in a row.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Others {
    Join,
    StayAway,
}

impl Peers {
    /// Finds the programs, and says which are missing.
    pub(crate) fn find(runs: usize) -> Result<Self, Box<dyn Error>> {
        let base = from_environment("BASE")?;
        if base.is_none() {
            println!("SKIPPED: another commit: set BASE to its binary of this benchmark");
        }
        let ns3 = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/ns3/build/dumbbell");
        let ns3 = Some(ns3).filter(|program| program.exists());
        if ns3.is_none() {
            println!("SKIPPED: ns-3: bench/ns3/build/dumbbell is not built (make -C bench/ns3)");
        }
        let htsim = from_environment("HTSIM")?;
        if htsim.is_none() {
            println!("SKIPPED: htsim: set HTSIM to the program of bench/htsim (see its README.md)");
        }
        Ok(Self {
            ours: Peer::Speed(std::env::current_exe()?),
            base: base.map(Peer::Speed),
            ns3: ns3.map(Peer::Ns3),
            htsim: htsim.map(Peer::Htsim),
            runs,
        })
    }

    /// Runs `work` with all programs in turn, and returns the fastest run of each.
    pub(crate) fn best(&self, work: &Work, others: Others) -> Result<Best, Box<dyn Error>> {
        let joins = others == Others::Join;
        let programs = [
            Some(&self.ours),
            self.base.as_ref(),
            self.ns3.as_ref().filter(|_| joins),
            self.htsim.as_ref().filter(|_| joins),
        ];
        let mut best: [Option<SpeedFigures>; 4] = [None; 4];
        for round in 0..self.runs {
            for (program, best) in programs.iter().zip(&mut best) {
                let Some(program) = program else { continue };
                // What a program refused once, it refuses again.
                if round > 0 && best.is_none() {
                    continue;
                }
                let run = match program.run(work) {
                    Err(error) if !std::ptr::eq(*program, &raw const self.ours) => {
                        eprintln!("left out of this row: {error}");
                        None
                    }
                    run => run?,
                };
                let faster = |run: &SpeedFigures, best: &SpeedFigures| run.cpu_s < best.cpu_s;
                if let Some(run) = run
                    && best.is_none_or(|best| faster(&run, &best))
                {
                    *best = Some(run);
                }
            }
        }
        let [ours, base, ns3, htsim] = best;
        Ok(Best {
            ours: ours.ok_or("this program refused a case of its own")?,
            base,
            ns3,
            htsim,
        })
    }

    /// Runs each work in turn with ours, and returns the run of each with the least wall-clock time.
    pub(crate) fn fastest<const N: usize>(
        &self,
        works: &[Work; N],
    ) -> Result<[SpeedFigures; N], Box<dyn Error>> {
        let mut fastest: [Option<SpeedFigures>; N] = [None; N];
        for _ in 0..self.runs {
            for (work, fastest) in works.iter().zip(&mut fastest) {
                let run = self.ours.run(work)?;
                let run = run.ok_or("this program refused a case of its own")?;
                if fastest.is_none_or(|fastest| run.wall_s < fastest.wall_s) {
                    *fastest = Some(run);
                }
            }
        }
        let fastest: Option<Vec<SpeedFigures>> = fastest.into_iter().collect();
        let fastest = fastest.and_then(|fastest| fastest.try_into().ok());
        Ok(fastest.ok_or("there was no run")?)
    }

    /// Runs `work` once with ours and once with the base.
    pub(crate) fn once(
        &self,
        work: &Work,
    ) -> Result<(SpeedFigures, Option<SpeedFigures>), Box<dyn Error>> {
        let ours = self.ours.run(work)?;
        let base = self.base.as_ref().map(|base| base.run(work));
        let ours = ours.ok_or("this program refused a case of its own")?;
        Ok((ours, base.and_then(Result::ok).flatten()))
    }
}

/// Returns the program that a variable names; `None` if it is unset or empty.
fn from_environment(name: &str) -> Result<Option<PathBuf>, Box<dyn Error>> {
    let Some(value) = std::env::var_os(name).filter(|value| !value.is_empty()) else {
        return Ok(None);
    };
    let path = PathBuf::from(value);
    if !path.is_file() {
        return Err(format!("{name}={} is no file", path.display()).into());
    }
    Ok(Some(path))
}

impl Peer {
    /// Runs `work`; `None` if the program cannot.
    fn run(&self, work: &Work) -> Result<Option<SpeedFigures>, Box<dyn Error>> {
        let mut command = match (self, work) {
            (Self::Speed(program), work) => {
                let mut command = Command::new(program);
                command.args(work.arguments()?);
                command
            }
            // ns-3's DCTCP stalls on the ACK timer where a window of one segment waits for a second.
            (Self::Ns3(program) | Self::Htsim(program), Work::Case(case))
                if case.ack_every == 1 =>
            {
                let mut command = Command::new(program);
                // ns-3 is slow: a fifth of the time is enough.
                let part = if matches!(self, Self::Ns3(_)) { 5 } else { 1 };
                command.args(options(case, case.duration_ms / part));
                command
            }
            (Self::Ns3(_) | Self::Htsim(_), _) => return Ok(None),
        };
        let output = command.output()?;
        let errors = String::from_utf8_lossy(&output.stderr);
        if !output.status.success() {
            let program = command.get_program().to_string_lossy().into_owned();
            return Err(format!("{program}: {}: {errors}", output.status).into());
        }
        match self {
            // A binary that does not know an argument does nothing.
            Self::Speed(_) if output.stdout.is_empty() => Ok(None),
            Self::Speed(_) | Self::Htsim(_) => Ok(Some(serde_json::from_slice(&output.stdout)?)),
            Self::Ns3(_) => ns3_figures(&output.stdout).map(Some),
        }
    }
}

/// Returns a case as options of ns-3's and htsim's programs.
fn options(case: &Case, duration_ms: u64) -> Vec<String> {
    let option = |name: &str, value: String| format!("--{name}={value}");
    vec![
        option("line-rate", "25Gbps".into()),
        option("dctcp-rtt", "50us".into()),
        option("cubic-rtt", "25ms".into()),
        option("ecn-threshold", "100KB".into()),
        option("red-min", "800KB".into()),
        option("red-max", "800KB".into()),
        option("buffer", "1.8MB".into()),
        option("dctcp-senders", case.dctcp_hosts.to_string()),
        option("cubic-senders", case.cubic_hosts.to_string()),
        option("flows-per-sender", case.flows_per_host.to_string()),
        option("delayed-acks", case.ack_every.to_string()),
        option("socket-buffer", "2MB".into()),
        option("start-window", "10ms".into()),
        option("duration", format!("{duration_ms}ms")),
        option("warm-up", "0ms".into()),
    ]
}

fn ns3_figures(output: &[u8]) -> Result<SpeedFigures, Box<dyn Error>> {
    let result: serde_json::Value = serde_json::from_slice(output)?;
    let number = |path: &str| {
        let value = result.pointer(path).and_then(serde_json::Value::as_f64);
        value.ok_or_else(|| format!("ns-3's output has no {path}"))
    };
    Ok(SpeedFigures {
        packets: number("/ports/bottleneck/whole_run/packets")? as u64,
        simulated_s: number("/simulated_s")?,
        cpu_s: number("/cpu_s")?,
        peak_rss_bytes: number("/peak_rss_bytes")? as u64,
        setup_s: 0.0,
        delivered_bytes: 0,
        wall_s: 0.0,
    })
}
