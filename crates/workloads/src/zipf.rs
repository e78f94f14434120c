//! Zipf-distributed numbers, in the forms that published results were made with.
//!
//! [`Zipfian`] is YCSB's generator: the inversion of Gray et al., "Quickly Generating
//! Billion-Record Synthetic Databases" (SIGMOD 1994), which fits its first two items exactly and
//! the rest by an integral; it needs 0 < theta < 1. [`Steep`] serves every theta > 0 without error:
//! rejection-inversion of Hoermann and Derflinger (1996). [`Scrambled`] scatters the ranks over the
//! items; its two flavours differ in skew, so a result must say which one it used:
//!
//! - `zipfian_c`: YCSB-C. Ranks over the actual number of items. At a million items the hottest key
//!   gets 6.5 % of the draws.
//! - `zipfian_java`: YCSB. Ranks over a constant 10^10 items, folded onto the actual ones: the
//!   hottest key gets 3.8 % whatever the number of items, and the tail becomes nearly uniform.
//!   (Later releases of YCSB draw from 10^16 items with the zeta of 10^10; the form here is the
//!   consistent one, which the ports of YCSB share.)

use crate::keys::{fnv64, fnv64_java};
use base::random::Random;
use base::{Error, Result};

/// YCSB's skew.
pub const THETA: f64 = 0.99;
/// Items that Java's scrambled generator draws ranks from.
pub const JAVA_ITEMS: u64 = 10_000_000_000;
/// zeta(10^10, 0.99) as it stands in YCSB.
pub const JAVA_ZETA: f64 = 26.469_028_201_783_02;

/// Terms that [`zeta`] adds up before it goes over to the integral.
const ZETA_EXACT_TERMS: u64 = 10_000;

/// The generalized harmonic number: the sum of `i^-theta` for i in `1..=items`.
///
/// Beyond the first terms the Euler-Maclaurin formula takes over, exact to 12 digits and more.
pub fn zeta(items: u64, theta: f64) -> f64 {
    let term = |i: u64| (i as f64).powf(-theta);
    let exact: f64 = (1..=items.min(ZETA_EXACT_TERMS)).map(term).sum();
    if items <= ZETA_EXACT_TERMS {
        return exact;
    }
    let (from, to) = (ZETA_EXACT_TERMS as f64, items as f64);
    let area = if theta == 1.0 {
        (to / from).ln()
    } else {
        (to.powf(1.0 - theta) - from.powf(1.0 - theta)) / (1.0 - theta)
    };
    let ends = (term(items) - term(ZETA_EXACT_TERMS)) / 2.0;
    let slopes = theta / 12.0 * (from.powf(-theta - 1.0) - to.powf(-theta - 1.0));
    exact + area + ends + slopes
}

/// YCSB's zipfian ranks: 0 is the hottest.
#[derive(Clone, Debug)]
pub struct Zipfian {
    items: u64,
    theta: f64,
    alpha: f64,
    zeta: f64,
    eta: f64,
}

impl Zipfian {
    /// Ranks below `items`, with 0 < `theta` < 1.
    pub fn new(items: u64, theta: f64) -> Result<Zipfian> {
        if !(theta > 0.0 && theta < 1.0) {
            return Err(Error::invalid(format!(
                "a zipfian generator needs a theta between 0 and 1, not {theta}"
            )));
        }
        Ok(Zipfian::with_zeta(items.max(1), theta, zeta(items.max(1), theta)))
    }

    fn with_zeta(items: u64, theta: f64, zeta_items: f64) -> Zipfian {
        let mut zipfian =
            Zipfian { items, theta, alpha: 1.0 / (1.0 - theta), zeta: zeta_items, eta: 0.0 };
        zipfian.set_eta();
        zipfian
    }

    fn set_eta(&mut self) {
        let zeta_2 = 1.0 + 0.5f64.powf(self.theta);
        let rest = 1.0 - (2.0 / self.items as f64).powf(1.0 - self.theta);
        self.eta = rest / (1.0 - zeta_2 / self.zeta);
    }

    /// Lets the ranks reach up to `items`, which is not less than before.
    pub fn grow(&mut self, items: u64) {
        if items > self.items {
            let added = (self.items + 1..=items).map(|i| (i as f64).powf(-self.theta));
            self.zeta += added.sum::<f64>();
            self.items = items;
            self.set_eta();
        }
    }

    /// How many ranks there are.
    pub fn items(&self) -> u64 {
        self.items
    }

    /// The next rank.
    pub fn draw(&self, random: &mut Random) -> u64 {
        let unit = random.unit();
        let scaled = unit * self.zeta;
        if scaled < 1.0 {
            return 0;
        }
        if scaled < 1.0 + 0.5f64.powf(self.theta) {
            return 1.min(self.items - 1);
        }
        let position = (self.eta * unit - self.eta + 1.0).powf(self.alpha);
        ((self.items as f64 * position) as u64).min(self.items - 1)
    }
}

/// Zipf ranks for any theta above 0, by rejection-inversion; 0 is the hottest.
#[derive(Clone, Debug)]
pub struct Steep {
    items: u64,
    theta: f64,
    area_first: f64,
    area_last: f64,
    sure: f64,
}

impl Steep {
    /// Ranks below `items`, with `theta` > 0.
    pub fn new(items: u64, theta: f64) -> Result<Steep> {
        if !(theta > 0.0 && theta.is_finite()) {
            return Err(Error::invalid(format!(
                "a Zipf distribution needs a theta above 0, not {theta}"
            )));
        }
        let mut steep =
            Steep { items: items.max(1), theta, area_first: 0.0, area_last: 0.0, sure: 0.0 };
        steep.area_first = steep.area(1.5) - 1.0;
        steep.area_last = steep.area(steep.items as f64 + 0.5);
        steep.sure = 2.0 - steep.area_inverse(steep.area(2.5) - steep.density(2.0));
        Ok(steep)
    }

    fn density(&self, x: f64) -> f64 {
        x.powf(-self.theta)
    }

    /// The integral of the density from 1 to `x`.
    fn area(&self, x: f64) -> f64 {
        let log = x.ln();
        let exponent = (1.0 - self.theta) * log;
        if exponent.abs() < 1e-8 { log } else { exponent.exp_m1() / (1.0 - self.theta) }
    }

    fn area_inverse(&self, area: f64) -> f64 {
        let product = (1.0 - self.theta) * area;
        if product.abs() < 1e-8 {
            return area.exp();
        }
        (product.max(-1.0).ln_1p() / (1.0 - self.theta)).exp()
    }

    /// The next rank.
    pub fn draw(&self, random: &mut Random) -> u64 {
        loop {
            let area = self.area_last + random.unit() * (self.area_first - self.area_last);
            let x = self.area_inverse(area);
            let rank = x.round().clamp(1.0, self.items as f64);
            if rank - x <= self.sure || area >= self.area(rank + 0.5) - self.density(rank) {
                return rank as u64 - 1;
            }
        }
    }
}

/// Zipf ranks scattered over the items, so that hot keys are no neighbours.
#[derive(Clone, Debug)]
pub enum Scrambled {
    /// `zipfian_c`: ranks over the actual items.
    C(Zipfian),
    /// `zipfian_java`: ranks over 10^10 items; the number of actual items beside.
    Java(Zipfian, u64),
    /// Any theta, scattered like `zipfian_c`.
    Steep(Steep),
}

impl Scrambled {
    /// The flavour of YCSB-C over `items`. A theta of 1 and above goes to [`Steep`].
    pub fn c(items: u64, theta: f64) -> Result<Scrambled> {
        if theta < 1.0 {
            return Ok(Scrambled::C(Zipfian::new(items, theta)?));
        }
        Ok(Scrambled::Steep(Steep::new(items, theta)?))
    }

    /// The flavour of Java's YCSB over `items`.
    pub fn java(items: u64) -> Scrambled {
        // Java's bounds are inclusive on both sides: one item more.
        Scrambled::Java(Zipfian::with_zeta(JAVA_ITEMS + 1, THETA, JAVA_ZETA), items.max(1))
    }

    /// The name that results carry.
    pub fn name(&self) -> &'static str {
        match self {
            Scrambled::C(_) => "zipfian_c",
            Scrambled::Java(..) => "zipfian_java",
            Scrambled::Steep(_) => "zipf_rejection_inversion",
        }
    }

    /// The next item.
    pub fn draw(&self, random: &mut Random) -> u64 {
        match self {
            Scrambled::C(ranks) => fnv64(ranks.draw(random)) % ranks.items,
            Scrambled::Java(ranks, items) => fnv64_java(ranks.draw(random)) % items,
            Scrambled::Steep(ranks) => fnv64(ranks.draw(random)) % ranks.items,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: u64 = 1_000_000;

    /// Percent of the draws whose rank is below each of `limits`.
    fn shares(limits: &[u64], mut draw: impl FnMut() -> u64) -> Vec<f64> {
        let mut counts = vec![0u64; limits.len()];
        for _ in 0..DRAWS {
            let rank = draw();
            for (count, &limit) in counts.iter_mut().zip(limits) {
                *count += u64::from(rank < limit);
            }
        }
        counts.iter().map(|&count| count as f64 * 100.0 / DRAWS as f64).collect()
    }

    #[test]
    fn zeta_agrees_with_the_sum_and_with_the_published_constants() {
        let sum: f64 = (1..=123_456u64).map(|i| (i as f64).powf(-THETA)).sum();
        assert!((zeta(123_456, THETA) - sum).abs() < 1e-9);
        assert!((zeta(JAVA_ITEMS, THETA) - JAVA_ZETA).abs() < 1e-6);
        for (items, expected) in [(100_000, 12.778), (1_000_000, 15.392), (10_000_000, 18.066)] {
            assert!((zeta(items, THETA) - expected).abs() < 0.001, "{items}");
        }
        assert!((zeta(1_000_000, 1.0) - 14.392_726_722_865).abs() < 1e-9);
    }

    /// Items; percent of the draws that fall on the hottest item and on the top 0.01, 0.1, 1, 10 %.
    const SKEW: [(u64, [f64; 5]); 5] = [
        (100_000, [7.83, 23.0, 41.0, 60.0, 80.0]),
        (1_000_000, [6.50, 34.0, 50.0, 66.0, 83.0]),
        (10_000_000, [5.54, 43.0, 57.0, 71.0, 85.0]),
        (42_000_000, [5.06, 47.0, 60.0, 73.0, 86.0]),
        (JAVA_ITEMS, [3.78, 58.0, 68.0, 79.0, 89.0]),
    ];

    #[test]
    fn zipfian_has_the_known_skew() {
        for (items, expected) in SKEW {
            let zipfian = Zipfian::new(items, THETA).unwrap();
            let mut random = Random::new(items);
            let limits = [1, items / 10_000, items / 1_000, items / 100, items / 10];
            let shares = shares(&limits, || zipfian.draw(&mut random));
            assert!((shares[0] - expected[0]).abs() < 0.1, "{items}: {shares:?}");
            for (share, expected) in shares.iter().zip(expected) {
                assert!((share - expected).abs() < 2.0, "{items}: {shares:?}");
            }
        }
    }

    #[test]
    fn the_flavours_differ_in_the_hottest_key() {
        let items = 1_000_000;
        let flavours = [
            (Scrambled::c(items, THETA).unwrap(), fnv64(0) % items, 6.50),
            (Scrambled::java(items), fnv64_java(0) % items, 3.78),
        ];
        for (scrambled, hottest, expected) in flavours {
            let mut random = Random::new(1);
            let hits = (0..DRAWS).filter(|_| scrambled.draw(&mut random) == hottest).count();
            let share = hits as f64 * 100.0 / DRAWS as f64;
            assert!((share - expected).abs() < 0.1, "{}: {share}", scrambled.name());
        }
    }

    #[test]
    fn rejection_inversion_fits_every_theta() {
        for theta in [0.5, 0.99, 1.0, 1.2, 2.0, 5.0] {
            let items = 10_000;
            let steep = Steep::new(items, theta).unwrap();
            let mut random = Random::new(9);
            let limits = [1, 2, 3, 10, 100, 1000, items];
            let shares = shares(&limits, || steep.draw(&mut random));
            for (share, limit) in shares.iter().zip(limits) {
                let expected = 100.0 * zeta(limit, theta) / zeta(items, theta);
                assert!((share - expected).abs() < 0.2, "{theta} {limit}: {share} {expected}");
            }
        }
    }

    #[test]
    fn a_grown_generator_equals_a_new_one() {
        let mut grown = Zipfian::new(1000, THETA).unwrap();
        grown.grow(2000);
        let new = Zipfian::new(2000, THETA).unwrap();
        assert!((grown.zeta - new.zeta).abs() < 1e-9);
        assert!((grown.eta - new.eta).abs() < 1e-9);
    }

    #[test]
    fn the_sequences_are_fixed() {
        let first = |scrambled: Scrambled| {
            let mut random = Random::new(42);
            (0..5).map(|_| scrambled.draw(&mut random)).collect::<Vec<u64>>()
        };
        assert_eq!(
            first(Scrambled::c(1_000_000, THETA).unwrap()),
            [6282, 227360, 519781, 415536, 174405]
        );
        assert_eq!(first(Scrambled::java(1_000_000)), [420525, 281672, 853457, 490304, 966620]);
        assert_eq!(
            first(Scrambled::c(1_000_000, 1.2).unwrap()),
            [584996, 316435, 712524, 88224, 972205]
        );
    }

    #[test]
    fn tiny_item_counts_stay_in_range() {
        for items in 1..5 {
            let mut random = Random::new(3);
            let generators = [
                Scrambled::c(items, THETA).unwrap(),
                Scrambled::java(items),
                Scrambled::c(items, 1.5).unwrap(),
            ];
            for scrambled in generators {
                assert!((0..1000).all(|_| scrambled.draw(&mut random) < items));
            }
        }
    }
}
