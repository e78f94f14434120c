//! Choosing records: YCSB's request distributions.

use super::properties::{Flavour, KeyDistribution, Workload};
use crate::zipf::{Scrambled, THETA, Zipfian};
use base::Result;
use base::random::Random;

/// Chooses record numbers of one client.
#[derive(Clone, Debug)]
pub(super) enum Chooser {
    Uniform { count: u64 },
    Sequential { count: u64, next: u64 },
    Zipfian(Box<Scrambled>),
    Latest(Box<Zipfian>),
    Exponential { gamma: f64 },
    Hotspot { hot: u64, cold: u64, hot_share: f64 },
}

impl Chooser {
    /// Chooses among the records of `workload`, counted from its first.
    pub(super) fn new(workload: &Workload) -> Result<Chooser> {
        let count = workload.record_count;
        Ok(match workload.distribution {
            KeyDistribution::Uniform => Chooser::Uniform { count },
            KeyDistribution::Sequential => Chooser::Sequential { count, next: 0 },
            KeyDistribution::Zipfian => Chooser::Zipfian(Box::new(scrambled(workload)?)),
            KeyDistribution::Latest => Chooser::Latest(Box::new(Zipfian::new(count, THETA)?)),
            KeyDistribution::Exponential { percentile, fraction } => {
                let range = (count as f64 * fraction).max(1.0);
                Chooser::Exponential { gamma: -(1.0 - percentile / 100.0).ln() / range }
            }
            KeyDistribution::Hotspot { data, operations } => {
                let hot = ((count as f64 * data) as u64).min(count);
                Chooser::Hotspot { hot, cold: count - hot, hot_share: operations }
            }
        })
    }

    /// What the output calls the distribution.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Chooser::Uniform { .. } => "uniform",
            Chooser::Sequential { .. } => "sequential",
            Chooser::Zipfian(scrambled) => scrambled.name(),
            Chooser::Latest(_) => "latest",
            Chooser::Exponential { .. } => "exponential",
            Chooser::Hotspot { .. } => "hotspot",
        }
    }

    /// The next record, among the `readable` ones that exist (at least one).
    pub(super) fn draw(&mut self, random: &mut Random, readable: u64) -> u64 {
        loop {
            let number = self.draw_any(random, readable);
            if number < readable {
                return number;
            }
        }
    }

    fn draw_any(&mut self, random: &mut Random, readable: u64) -> u64 {
        match self {
            Chooser::Uniform { count } => random.below(*count),
            Chooser::Sequential { count, next } => {
                *next += 1;
                (*next - 1) % *count
            }
            Chooser::Zipfian(scrambled) => scrambled.draw(random),
            Chooser::Latest(zipfian) => {
                zipfian.grow(readable);
                readable - 1 - zipfian.draw(random).min(readable - 1)
            }
            Chooser::Exponential { gamma } => {
                let age = -(1.0 - random.unit()).ln() / *gamma;
                // Older than the oldest: drawn again, as a number that is out of range.
                (readable - 1).checked_sub(age as u64).unwrap_or(u64::MAX)
            }
            Chooser::Hotspot { hot, cold, hot_share } => {
                if *cold == 0 || (*hot > 0 && random.unit() < *hot_share) {
                    random.below(*hot)
                } else {
                    *hot + random.below(*cold)
                }
            }
        }
    }
}

/// Zipf over the records that exist and those that the run will insert; the latter are drawn again
/// until they exist.
fn scrambled(workload: &Workload) -> Result<Scrambled> {
    let [_, _, insert_share, _, _] = workload.proportions;
    let expected = (workload.operation_count as f64 * insert_share * 2.0) as u64;
    let items = workload.record_count.saturating_add(expected);
    match workload.flavour {
        Flavour::Java => Ok(Scrambled::java(items)),
        Flavour::C => Scrambled::c(items, THETA),
    }
}

#[cfg(test)]
mod tests {
    use super::super::properties::Properties;
    use super::*;

    fn workload(properties: &str) -> Workload {
        let mut properties = Properties::parse(properties).unwrap();
        properties.set("recordcount", "1000");
        Workload::new("test", &properties).unwrap()
    }

    /// Percent of the choices that `wanted` holds for.
    fn percent(properties: &str, readable: u64, wanted: impl Fn(u64) -> bool) -> f64 {
        let mut chooser = Chooser::new(&workload(properties)).unwrap();
        let mut random = Random::new(5);
        let draws = 100_000;
        let hits = (0..draws).filter(|_| wanted(chooser.draw(&mut random, readable))).count();
        hits as f64 * 100.0 / f64::from(draws)
    }

    fn assert_near(share: f64, expected: f64) {
        assert!((share - expected).abs() < 1.0, "{share} instead of {expected}");
    }

    #[test]
    fn every_distribution_has_its_shape() {
        assert_near(percent("requestdistribution=uniform", 1000, |n| n < 100), 10.0);
        assert_near(percent("requestdistribution=sequential", 1000, |n| n < 100), 10.0);
        assert_near(percent("requestdistribution=hotspot", 1000, |n| n < 200), 80.0);
        let recent = |n| n > 999 - 500;
        let exponential = "requestdistribution=exponential\nexponential.frac=0.5";
        assert_near(percent(exponential, 1000, recent), 95.0);
        // 1 / zeta(1000, 0.99)
        assert_near(percent("requestdistribution=latest", 1000, |n| n == 999), 12.8);
    }

    #[test]
    fn latest_follows_what_became_readable() {
        let newest = percent("requestdistribution=latest", 1500, |n| n == 1499);
        assert_near(newest, 100.0 / crate::zipf::zeta(1500, THETA));
    }

    #[test]
    fn records_that_do_not_exist_are_never_chosen() {
        for distribution in ["zipfian", "latest", "uniform", "exponential"] {
            let properties = format!("requestdistribution={distribution}\ninsertproportion=0.5");
            assert_eq!(percent(&properties, 1000, |n| n >= 1000), 0.0, "{distribution}");
        }
    }

    #[test]
    fn the_flavour_decides_the_skew() {
        let hottest = crate::keys::fnv64(0) % 1000;
        let share = percent("requestdistribution=zipfian\nflavour=c", 1000, |n| n == hottest);
        assert!(share > 12.0, "{share}");
        let hottest = crate::keys::fnv64_java(0) % 1000;
        let share = percent("requestdistribution=zipfian", 1000, |n| n == hottest);
        assert!((3.0..5.0).contains(&share), "{share}");
    }
}
