//! `weir compare`

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use weir_results::{Comparison, Ratio, StagedFile};

use crate::arguments;
use crate::failure::Failure;
use crate::output;

/// The arguments of `weir compare`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weir run dctcp-queue --out simulated
  weir run --live dctcp-queue --out live
  weir compare simulated live                     differences in percent of the first
  weir compare simulated live --report both.html  both in the same plots
  weir run dctcp-queue --seeds 1..8 --out simulated
  weir run --live dctcp-queue --seeds 1..5 --out live
  weir compare simulated live --within 5%         means, intervals, and what they say

The directories are those of `weir run --out`; any two will do that have a group or a measured port in
common, and directories with the repetitions that `--seeds` writes. What else differs between them,
settings or scenario, is said above the table. With repetitions, two means agree if the 95 % confidence
interval of their difference lies within the tolerance, and differ if it lies outside; if it does
neither, more repetitions may tell.")]
pub(crate) struct Compare {
    /// Directory of the first experiment: A
    #[arg(value_name = "DIR")]
    first: PathBuf,

    /// Directory of the second experiment: B
    #[arg(value_name = "DIR")]
    second: PathBuf,

    /// With repetitions: the difference up to which two means agree
    #[arg(long, value_name = "PERCENT", default_value = "10%", value_parser = arguments::percent)]
    within: Ratio,

    /// Print JSON
    #[arg(long)]
    json: bool,

    /// Write an HTML page with both in the same plots
    #[arg(long, alias = "html", value_name = "FILE")]
    report: Option<PathBuf>,
}

impl Compare {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let comparison = Comparison::read(&self.first, &self.second, self.within);
        let comparison = comparison.map_err(Failure::of)?;
        if let Some(path) = &self.report {
            let mut file = StagedFile::create(path).map_err(Failure::of)?;
            let written = file.write_all(comparison.to_html().as_bytes());
            written.map_err(|error| {
                Failure::Failed(format!("cannot write {}: {error}", path.display()))
            })?;
            let path = file.persist().map_err(Failure::of)?;
            eprintln!("written to {}", path.display());
        }
        if self.json {
            output::print(&comparison.to_json().map_err(Failure::of)?)
        } else {
            output::print(&comparison.to_text())
        }
    }
}
