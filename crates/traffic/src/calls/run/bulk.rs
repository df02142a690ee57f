//! Downloads.

use weir_units::Duration;

use super::pair::Download;
use super::plan::BulkPlan;
use super::{MeasuredTransport, Runner};
use crate::calls::placement::Placement;
use crate::calls::report::Bulk;

impl Runner<'_> {
    pub(super) fn bulk(
        &mut self,
        placement: Placement,
        plan: BulkPlan,
        contenders: &mut [MeasuredTransport<'_>],
    ) {
        let what = self.situation(&format!("bulk {} B", plan.size.bytes()), placement);
        let mut rounds: Vec<Option<Vec<Download>>> =
            contenders.iter().map(|_| Some(Vec::new())).collect();
        for _ in 0..plan.rounds {
            for (contender, downloads) in contenders.iter_mut().zip(&mut rounds) {
                let Some(so_far) = downloads else {
                    self.done += 1;
                    continue;
                };
                match self.step(contender, &what, |pair| pair.download(plan)) {
                    Some(download) => so_far.push(download),
                    None => *downloads = None,
                }
            }
        }
        let gigabytes = plan.size.bytes() as f64 / 1e9;
        for (contender, downloads) in contenders.iter().zip(rounds) {
            let Some(downloads) = downloads.filter(|downloads| !downloads.is_empty()) else {
                continue;
            };
            let of = |value: fn(&Download) -> f64| median(downloads.iter().map(value));
            let server = downloads
                .iter()
                .map(|download| download.server.map(Duration::as_secs_f64))
                .collect::<Option<Vec<f64>>>()
                .map(|seconds| median(seconds.into_iter()) / gigabytes);
            let client = of(|download| download.client.as_secs_f64()) / gigabytes;
            self.report.bulk.push(Bulk {
                transport: contender.specification.to_string(),
                placement,
                network: self.plan.network.name.clone(),
                size_bytes: plan.size.bytes(),
                rounds: downloads.len(),
                gbit_per_s: 8.0 * gigabytes / of(|download| download.elapsed.as_secs_f64()),
                cpu_s_per_gb: server.map(|server| server + client),
                client_cpu_s_per_gb: client,
                server_cpu_s_per_gb: server,
            });
        }
    }
}

/// Returns the median; the upper one of the middle two, or 0 without values.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), 2.0);
        assert_eq!(median(std::iter::empty()), 0.0);
    }
}
