//! Distributions of flow sizes from files.

use weir_scenario_derive::Keys;
use weir_units::ByteSize;

use super::distribution::check_points;
use crate::document::{Cursor, Reported};
use crate::rows::{Row, Rows};
use crate::schema::{Accepts, Fields};

/// The first line that a file may have.
const HEADER: [&str; 2] = ["size", "probability"];
/// The maximum file size in MiB.
const LARGEST_FILE: u64 = 16;

/// The keys of a distribution that a file has.
#[derive(Keys)]
#[keys(
    title = "[groups.NAME.workload.distribution]",
    doc = "Sizes of flows from a file. Each line has a size and the probability of flows up to this size, as in \
           `10KB,0.5`: sizes grow, probabilities do not shrink, and the last one is 1. A size without a unit is in \
           bytes. The first line may be `size,probability`; empty lines and those that begin with `#` do not count. \
           Between two points the distribution is a straight line: sizes there are equally likely. The probability \
           of the first point is that of exactly its size."
)]
pub(crate) struct CdfFile {
    /// The file; a relative path is relative to the scenario file.
    #[key(accepts = Accepts::Text)]
    file: String,
}

/// Reads the points of the distribution.
pub(super) fn read(at: &Cursor<'_>) -> Result<Vec<(ByteSize, f64)>, Reported> {
    let fields = Fields::open(at.clone(), CdfFile::SECTION)?;
    let file = CdfFile::read_keys(&fields, ())?.file;
    let rows = Rows::read(fields.error_position("file"), &file, LARGEST_FILE)?;
    let lines = rows.each(HEADER, |row| Ok((row.line, point(&row)?)))?;
    let (lines, points): (Vec<_>, Vec<_>) = lines.into_iter().unzip();
    check_points(&points).map_err(|wrong| {
        let line = lines.get(wrong.point).copied().unwrap_or(1);
        rows.mistake(line, format!("{}; {}", wrong.what, wrong.remedy))
    })?;
    Ok(points)
}

fn point(row: &Row<'_, 2>) -> Result<(ByteSize, f64), Reported> {
    let [size, probability] = row.fields;
    let size = row.size(size)?;
    let probability = match probability.parse::<f64>() {
        Ok(number) if (0.0..=1.0).contains(&number) => number,
        Ok(_) => {
            return Err(row.mistake(format!(
                "{probability} is no probability; write a number from 0 to 1, such as 0.5 for 50 %"
            )));
        }
        Err(_) => {
            return Err(row.mistake(format!(
                "`{probability}` is no number; write one from 0 to 1"
            )));
        }
    };
    match (size, probability) {
        // A flow has data.
        (ByteSize::ZERO, 0.0) => Ok((ByteSize::from_bytes(1), 0.0)),
        (ByteSize::ZERO, _) => Err(row.mistake(
            "a flow has at least one byte; begin with `0,0`, or with the smallest size of a flow",
        )),
        point => Ok(point),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use weir_units::ByteSize;

    use crate::{Distribution, Scenario, Workload};

    /// Loads a scenario whose distribution is this file.
    fn load(sizes: &str) -> Result<Distribution, String> {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("sizes.csv"), sizes).unwrap();
        let text = "title = 't'\nsource = 's'\nduration = '1s'\n\
            [hosts.a]\n[hosts.b]\n[[links]]\nfrom = 'a'\nto = 'b'\nrate = '1Gbps'\ndelay = '1us'\n\
            [groups.g]\nfrom = 'a'\nto = 'b'\n\
            workload = { kind = 'poisson', mean_interval = '1ms', distribution = { file = 'sizes.csv' } }\n\
            [measurements]\nports = 'a->b'\n";
        let file = folder.path().join("scenario.toml");
        fs::write(&file, text).unwrap();
        let scenario = match Scenario::load(&file, &[]) {
            Ok(loaded) => loaded.scenario,
            Err(error) => return Err(error.to_string()),
        };
        // What a result has of the scenario does not need the file.
        let written = toml::to_string(&scenario).unwrap();
        assert_eq!(
            Scenario::parse("written.toml", &written, &[])
                .unwrap()
                .scenario,
            scenario
        );
        match &scenario.groups[0].workload {
            Workload::Poisson { distribution, .. } => Ok(distribution.clone()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_file_has_the_points() {
        let sizes = load("size,probability\n# small ones\n0,0\n\n1000, 0.5\n1MB,1\n").unwrap();
        let size = ByteSize::from_bytes;
        assert_eq!(
            sizes.points(),
            [(size(1), 0.0), (size(1_000), 0.5), (size(1_000_000), 1.0)]
        );
        assert_eq!(sizes.quantile(0.75), size(500_500));
        assert_eq!(load("64,1\n").unwrap().mean(), size(64));
    }

    #[test]
    fn a_mistake_in_the_file_has_its_line() {
        for (text, line, words) in [
            ("", 1, "has no rows"),
            ("100,0.5\n50,1\n", 2, "ascending"),
            ("100,0.5\n# a\n200,0.9\n", 3, "the last fraction is not 1"),
            ("100 0.5\n", 1, "expected size,probability"),
            ("100,50\n", 1, "50 is no probability"),
            ("100,half\n", 1, "`half` is no number"),
            ("ten,1\n", 1, "ten"),
            ("0,0.5\n10,1\n", 1, "at least one byte"),
            ("100,nan\n", 1, "no probability"),
        ] {
            let error = load(text).unwrap_err();
            assert!(
                error.contains("scenario.toml:14: groups.g.workload.distribution.file: "),
                "{error}"
            );
            assert!(
                error.contains(&format!("sizes.csv:{line}: ")),
                "{text}: {error}"
            );
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
