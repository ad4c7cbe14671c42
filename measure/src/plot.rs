//! The documents' pictures.

use crate::latency::Latencies;
use anyhow::{Result, anyhow};
use plotters::coord::{CoordTranslate, Shift};
use plotters::prelude::*;
use std::path::Path;

/// One line of a plot: its name, and its points.
#[derive(Clone, Debug)]
pub struct Line {
    /// What it is.
    pub name: String,
    /// In order of the first coordinate.
    pub points: Vec<(f64, f64)>,
}

/// What the axes are.
#[derive(Clone, Copy, Debug)]
pub struct Axes {
    /// The plot's title.
    pub title: &'static str,
    /// The horizontal axis.
    pub x: &'static str,
    /// The vertical axis.
    pub y: &'static str,
}

const COLORS: [RGBColor; 6] = [
    RGBColor(0x1f, 0x77, 0xb4),
    RGBColor(0xd6, 0x27, 0x28),
    RGBColor(0x7f, 0x7f, 0x7f),
    RGBColor(0x2c, 0xa0, 0x2c),
    RGBColor(0xff, 0x7f, 0x0e),
    RGBColor(0x94, 0x67, 0xbd),
];

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

const SIZE: (u32, u32) = (800, 420);
const FONT: &str = "sans-serif";

/// What plotters says is tied to the picture.
fn told(e: impl std::fmt::Display) -> anyhow::Error {
    anyhow!("a plot: {e}")
}

/// The powers of ten around some numbers.
fn decades(numbers: impl Iterator<Item = f64>) -> (f64, f64) {
    let (least, most) = numbers.fold((f64::MAX, f64::MIN), |(a, b), n| (a.min(n), b.max(n)));
    let round = |n: f64, to: fn(f64) -> f64| 10_f64.powf(to(n.log10()));
    (round(least, f64::floor), round(most, f64::ceil))
}

/// Draws lines, both axes logarithmic.
///
/// # Errors
/// Where the picture can't be written.
pub fn lines(to: &Path, axes: Axes, lines: &[Line]) -> Result<()> {
    let all = || lines.iter().flat_map(|line| &line.points);
    let (left, right) = all().fold((f64::MAX, f64::MIN), |(a, b), p| (a.min(p.0), b.max(p.0)));
    let (low, high) = decades(all().map(|p| p.1));
    let root = SVGBackend::new(to, SIZE).into_drawing_area();
    root.fill(&WHITE).map_err(told)?;
    let mut chart = ChartBuilder::on(&root)
        .caption(axes.title, (FONT, 20))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(64)
        .build_cartesian_2d((left..right).log_scale(), (low..high).log_scale())
        .map_err(told)?;
    chart
        .configure_mesh()
        .x_desc(axes.x)
        .y_desc(axes.y)
        .light_line_style(TRANSPARENT)
        .x_label_formatter(&number)
        .y_label_formatter(&number)
        .draw()
        .map_err(told)?;
    for (line, color) in lines.iter().zip(COLORS.iter().cycle()) {
        let style = color.stroke_width(2);
        chart
            .draw_series(LineSeries::new(line.points.iter().copied(), style).point_size(3))
            .map_err(told)?
            .label(&line.name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], style));
    }
    finish(&root, &mut chart)
}

/// Adds what each series is called, and writes the picture.
fn finish<'a, C: CoordTranslate>(
    root: &Area<'a>,
    chart: &mut ChartContext<'a, SVGBackend<'a>, C>,
) -> Result<()> {
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .border_style(TRANSPARENT)
        .draw()
        .map_err(told)?;
    root.present().map_err(told)
}

fn number(n: &f64) -> String {
    if *n >= 1.0 {
        format!("{n:.0}")
    } else {
        format!("{n}")
    }
}

/// Several bars beside each other, for each of several things: what it is, and each bar's height.
pub type Bars<'a> = &'a [(&'a str, Vec<f64>)];

/// Draws bars, their heights logarithmic.
///
/// # Errors
/// Where the picture can't be written.
pub fn bars(to: &Path, axes: Axes, names: &[&str], bars: Bars<'_>) -> Result<()> {
    let (low, high) = decades(bars.iter().flat_map(|(_, heights)| heights.iter().copied()));
    let root = SVGBackend::new(to, SIZE).into_drawing_area();
    root.fill(&WHITE).map_err(told)?;
    let mut chart = ChartBuilder::on(&root)
        .caption(axes.title, (FONT, 20))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(64)
        .build_cartesian_2d(0.0..bars.len() as f64, (low..high).log_scale())
        .map_err(told)?;
    let name_of = |x: &f64| {
        let there = bars
            .get(*x as usize)
            .filter(|_| (x.fract() - 0.5).abs() < 0.01);
        there.map_or_else(String::new, |(name, _)| (*name).to_owned())
    };
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_labels(2 * bars.len() + 1)
        .x_desc(axes.x)
        .y_desc(axes.y)
        .light_line_style(TRANSPARENT)
        .x_label_formatter(&name_of)
        .y_label_formatter(&number)
        .draw()
        .map_err(told)?;
    let width = 0.8 / names.len() as f64;
    for (i, name) in names.iter().enumerate() {
        let color = COLORS[i % COLORS.len()];
        let at = |group: usize| group as f64 + 0.1 + width * i as f64;
        let rectangles = bars.iter().enumerate().map(|(group, (_, heights))| {
            let corners = [(at(group), low), (at(group) + 0.92 * width, heights[i])];
            Rectangle::new(corners, color.filled())
        });
        chart
            .draw_series(rectangles)
            .map_err(told)?
            .label(*name)
            .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 14, y + 5)], color.filled()));
        let texts = bars.iter().enumerate().map(|(group, (_, heights))| {
            let text = format!("{:.0}", heights[i]);
            Text::new(
                text,
                (at(group) + 0.2 * width, heights[i] * 1.25),
                (FONT, 13),
            )
        });
        chart.draw_series(texts).map_err(told)?;
    }
    finish(&root, &mut chart)
}

/// Draws how much of all calls takes how long.
///
/// # Errors
/// Where the picture can't be written.
pub fn latencies(to: &Path, latencies: &Latencies) -> Result<()> {
    const TAILS: [f64; 13] = [
        0.5, 0.25, 0.1, 0.05, 0.025, 0.01, 0.005, 0.0025, 0.001, 0.0005, 0.0001, 0.00005, 0.00001,
    ];
    let line = |name: &str, histogram: &hdrhistogram::Histogram<u64>| Line {
        name: name.to_owned(),
        points: TAILS
            .map(|tail| {
                // A tenth of a nanosecond is nothing, and has a logarithm.
                let ns = histogram.value_at_quantile(1.0 - tail) as f64;
                (1.0 / tail, ns.max(0.1))
            })
            .to_vec(),
    };
    let axes = Axes {
        title: "Single calls, while another thread toggles and a third one completes",
        x: "one call in so many takes longer",
        y: "ns",
    };
    let all = [
        line("dispatch", &latencies.dispatch),
        line("completion", &latencies.complete),
    ];
    lines(to, axes, &all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decades_reach_around_all_numbers() {
        assert_eq!(decades([3.0, 250.0].into_iter()), (1.0, 1000.0));
        assert_eq!(decades([10.0, 100.0].into_iter()), (10.0, 100.0));
    }
}
