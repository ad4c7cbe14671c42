//! Comparing two shapes on a machine that others use as well.
//!
//! The two are run in turn, in slices of a few milliseconds: what disturbs one disturbs the other about
//! as much, and what comes and goes disturbs few of the slices. Each slice of the one is set against its
//! neighbour of the other. The figure is the median of these ratios; its *noise* is half of the distance
//! between their quartiles, as a part of the median: half of the ratios are that close to it.

use crate::Shape;
use std::time::{Duration, Instant};

/// How much is measured.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// How long a slice is to take.
    pub slice: Duration,
    /// Slices of each side.
    pub slices: usize,
}

impl Effort {
    /// As much as a check takes for one figure.
    pub const CHECK: Self = Self {
        slice: Duration::from_micros(500),
        slices: 401,
    };
}

/// What was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// The ratio, or how many nanoseconds.
    pub value: f64,
    /// Its noise, as a part of it.
    pub noise: f64,
    /// Nanoseconds an operation: of what was measured, and of what it was compared with.
    pub nanoseconds: (f64, Option<f64>),
}

/// How often a shape is to be done so that it takes about so long. What it prepares is not counted,
/// but where that takes much longer it is done less often.
fn calibrate(shape: &mut Shape, slice: Duration) -> u64 {
    // The first time it may prepare for all others.
    shape.run(1);
    let mut n = 1;
    loop {
        let start = Instant::now();
        let timed = shape.run(n);
        if timed >= slice / 4 || start.elapsed() >= 20 * slice {
            let wanted = slice.as_secs_f64() / timed.as_secs_f64().max(1e-9);
            return ((n as f64 * wanted.min(4.0)) as u64).max(1);
        }
        n *= 2;
    }
}

fn per_operation(shape: &mut Shape, n: u64) -> f64 {
    shape.run(n).as_secs_f64() * 1e9 / n as f64
}

/// The middle of some numbers, and half the distance of their quartiles.
#[must_use]
pub fn median_and_spread(mut numbers: Vec<f64>) -> (f64, f64) {
    numbers.sort_by(f64::total_cmp);
    let at = |part: usize| numbers[(numbers.len() - 1) * part / 4];
    (at(2), (at(3) - at(1)) / 2.0)
}

/// How many times as long as `base` does `own` take?
pub fn ratio(own: &mut Shape, base: &mut Shape, effort: Effort) -> Figure {
    let often = [calibrate(own, effort.slice), calibrate(base, effort.slice)];
    let (mut ratios, mut owns, mut bases) = (Vec::new(), Vec::new(), Vec::new());
    for i in 0..effort.slices {
        // In turns, so that a machine that gets slower and slower disturbs neither more.
        let (a, b) = if i % 2 == 0 {
            let a = per_operation(own, often[0]);
            (a, per_operation(base, often[1]))
        } else {
            let b = per_operation(base, often[1]);
            (per_operation(own, often[0]), b)
        };
        ratios.push(a / b);
        owns.push(a);
        bases.push(b);
    }
    let (value, spread) = median_and_spread(ratios);
    Figure {
        value,
        noise: spread / value,
        nanoseconds: (median_and_spread(owns).0, Some(median_and_spread(bases).0)),
    }
}

/// How many nanoseconds does it take?
pub fn nanoseconds(own: &mut Shape, effort: Effort) -> Figure {
    let often = calibrate(own, effort.slice);
    let all = (0..effort.slices)
        .map(|_| per_operation(own, often))
        .collect();
    let (value, spread) = median_and_spread(all);
    Figure {
        value,
        noise: spread / value,
        nanoseconds: (value, None),
    }
}

/// How many nanoseconds more than `base` does `own` take? The noise is that of `own`'s time: a
/// difference of almost nothing has none that says anything.
pub fn difference(own: &mut Shape, base: &mut Shape, effort: Effort) -> Figure {
    let figure = ratio(own, base, effort);
    let (own, base) = figure.nanoseconds;
    Figure {
        value: own - base.unwrap_or_default(),
        ..figure
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUICK: Effort = Effort {
        slice: Duration::from_micros(100),
        slices: 41,
    };

    /// Takes so many nanoseconds an operation, as `nanoseconds` says for each run.
    fn fake(mut nanoseconds: impl FnMut(u64) -> f64 + Send + 'static) -> Shape {
        let mut runs = 0;
        Shape::new(move |n| {
            runs += 1;
            Duration::from_secs_f64(nanoseconds(runs) * n as f64 / 1e9)
        })
    }

    #[test]
    fn the_ratio_is_that_of_the_medians() {
        let figure = ratio(&mut fake(|_| 30.0), &mut fake(|_| 10.0), QUICK);
        assert!((figure.value - 3.0).abs() < 0.01, "{figure:?}");
        assert!(figure.noise < 0.01, "{figure:?}");
    }

    #[test]
    fn a_few_disturbed_slices_change_nothing() {
        let disturbed = |run| if run % 7 == 0 { 5000.0 } else { 20.0 };
        let figure = ratio(&mut fake(disturbed), &mut fake(|_| 10.0), QUICK);
        assert!((figure.value - 2.0).abs() < 0.01, "{figure:?}");
    }

    #[test]
    fn what_swings_is_noise() {
        let swinging = |run: u64| if run % 4 < 2 { 10.0 } else { 20.0 };
        let figure = ratio(&mut fake(swinging), &mut fake(|_| 10.0), QUICK);
        assert!(figure.noise > 0.2, "{figure:?}");
    }

    #[test]
    fn what_slows_both_down_is_none() {
        let slower = |run| 10.0 + 0.5 * run as f64;
        let figure = ratio(&mut fake(slower), &mut fake(slower), QUICK);
        assert!((figure.value - 1.0).abs() < 0.1, "{figure:?}");
        assert!(figure.noise < 0.1, "{figure:?}");
    }

    #[test]
    fn a_difference_is_in_nanoseconds() {
        let figure = difference(&mut fake(|_| 12.5), &mut fake(|_| 10.0), QUICK);
        assert!((figure.value - 2.5).abs() < 0.01, "{figure:?}");
    }
}
