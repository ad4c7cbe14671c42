//! What the drawings have in common.

use std::time::Duration;
use svg::node::element::{Rectangle, Style, Text, Title};
use svg::{Document, Node};

/// The width of a page, in pixels.
pub(crate) const PAGE: f64 = 1400.0;

const STYLE: &str = "\
text{font-family:Helvetica,Arial,sans-serif;font-size:12px;fill:#222}\
.title{font-size:16px;font-weight:bold}.run,.agent{font-weight:bold}.tick{font-size:10px;fill:#666}";

/// An empty page.
pub(crate) fn document(width: f64, height: f64, style: &str) -> Document {
    Document::new()
        .set("viewBox", (0, 0, width, height))
        .set("width", width)
        .set("height", height)
        .add(Style::new(format!("{STYLE}{style}")))
        .add(rect("page", (0.0, 0.0, width, height)).set("fill", "#fff"))
}

pub(crate) fn rect(class: &str, (x, y, width, height): (f64, f64, f64, f64)) -> Rectangle {
    Rectangle::new()
        .set("class", class)
        .set("x", tenths(x))
        .set("y", tenths(y))
        .set("width", tenths(width))
        .set("height", tenths(height))
}

/// What is said of it where the pointer rests on it.
pub(crate) fn titled(rect: Rectangle, text: &str) -> Rectangle {
    rect.add(Title::new(allowed(text)))
}

pub(crate) fn add_text<N: Node>(mut to: N, (x, y): (f64, f64), class: &str, text: &str) -> N {
    let text = Text::new(allowed(text)).set("class", class);
    to.append(text.set("x", tenths(x)).set("y", tenths(y)));
    to
}

/// Names may have characters that XML does not allow, not even escaped: they are replaced.
fn allowed(text: &str) -> String {
    let shown = |c| match c {
        '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'.. => c,
        _ => char::REPLACEMENT_CHARACTER,
    };
    text.chars().map(shown).collect()
}

/// Finer is not to be seen, and makes the file long.
fn tenths(pixels: f64) -> f64 {
    (pixels * 10.0).round() / 10.0
}

/// Nanoseconds, as people read them.
pub(crate) fn time(nanoseconds: u64) -> String {
    let text = format!("{:.2?}", Duration::from_nanos(nanoseconds));
    // `2.50ms` reads as 2.5 ms.
    let unit = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(unit);
    let number = match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.'),
        false => number,
    };
    format!("{number} {unit}")
}
