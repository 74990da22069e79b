//! Numbers and bars as people read them, and as machines do.

use dab_core::{Model, Task};
use serde_json::Value;

pub use crate::support::text::{grouped, plural, printable};

/// Columns of the longest bar.
pub const BAR: usize = 24;

/// The shortest text that reads back as the same f32; also a JSON number. `x` is finite.
pub fn shortest(x: f32, into: &mut Vec<u8>) {
    use std::io::Write;
    // Most of the lines of `dab score` are numbers: what `write!` gives, faster. A whole number has no fraction.
    if (1e-5..1e16).contains(&x.abs()) && !may_be_halfway(x) {
        let mut buffer = zmij::Buffer::new();
        let text = buffer.format_finite(x);
        if !text.contains('e') {
            into.extend_from_slice(text.strip_suffix(".0").unwrap_or(text).as_bytes());
            return;
        }
    }
    // Writing to memory cannot fail.
    let _ = match x.abs() {
        0.0 => write!(into, "0"),
        1e-5..1e16 => write!(into, "{x}"),
        _ => write!(into, "{x:e}"),
    };
}

/// Whether two shortest texts may be equally near to x, of which `write!` takes the larger. Then x has one decimal more than they
/// have, ten digits at most: at most 9 decimals, or 14 if it is less than 1, and as many bits behind the point.
fn may_be_halfway(x: f32) -> bool {
    let bits = if x.abs() < 1.0 { 14 } else { 9 };
    (x * (1 << bits) as f32).fract() == 0.0
}

pub fn whole(n: usize, into: &mut Vec<u8>) {
    let start = into.len();
    let mut rest = n;
    while rest > 0 || into.len() == start {
        into.push(b'0' + (rest % 10) as u8);
        rest /= 10;
    }
    into[start..].reverse();
}

/// A JSON number with the shortest digits of an f32; null for a non-finite one.
pub fn number(x: f32) -> Value {
    // The shortest digits of x, read as f64, have the same shortest digits.
    x.to_string().parse::<f64>().map_or(Value::Null, Value::from)
}

/// Four significant digits.
pub fn rounded(x: f32) -> String {
    match x.abs() {
        0.0 => "0".into(),
        size @ 1e-3..1e6 => {
            let decimals = (3.0 - size.log10().floor()).max(0.0) as usize;
            format!("{x:.decimals$}")
        }
        _ => format!("{x:.3e}"),
    }
}

/// A bar of `share` (0 to 1) of the longest one; something is always visible of a positive share.
pub fn bar(share: f32) -> String {
    let eighths = (share.clamp(0.0, 1.0) * (BAR * 8) as f32).ceil() as usize;
    let mut text = "█".repeat(eighths / 8);
    if let Some(part) = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"].get(eighths % 8) {
        text.push_str(part);
    }
    text
}

pub const fn task(task: Option<Task>) -> &'static str {
    match task {
        Some(Task::Regression) => "regression",
        Some(Task::Classification) => "classification",
        None => "none",
    }
}

/// The flow of a model in one line.
pub fn flow(model: &Model<'_>) -> String {
    let shape = model.shape();
    let mut text = plural(shape.inputs as u64, "input");
    if shape.layers > 0 {
        let layers = plural(shape.layers as u64, "layer");
        text.push_str(&format!(" → {layers} → {}", plural(shape.features as u64, "feature")));
    }
    let dimensions = if shape.dim == 1 { "dimension" } else { "dimensions" };
    let (kind, codes) = (shape.covariance.name(), plural(shape.codes as u64, "code"));
    text.push_str(&format!(" → {} {kind} {dimensions} → {codes}", shape.dim));
    if shape.task.is_some() {
        let outputs = plural(shape.outputs as u64, "output");
        text.push_str(&format!("; decoder: {outputs} ({})", task(shape.task)));
    }
    text
}

/// What a model costs in one line.
pub fn cost(model: &Model<'_>, bytes: usize) -> String {
    format!(
        "{} bytes of flash, {} bytes of scratch, {} multiply-adds per call",
        grouped(bytes as u64),
        grouped(4 * model.scratch_len() as u64),
        grouped(model.multiply_adds())
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortest_texts_read_back() {
        for x in [0.0, -0.0, 1.0, 0.1, -2.5e-6, 1e-5, 1.234e16, f32::MAX, f32::MIN_POSITIVE, 16_777_216.0] {
            let mut text = Vec::new();
            shortest(x, &mut text);
            let text = String::from_utf8(text).unwrap();
            assert_eq!(text.parse::<f32>().unwrap(), x, "{text}");
            assert!(text.len() <= 20, "{text}");
            assert!(serde_json::from_str::<Value>(&text).unwrap().is_number(), "{text}");
        }
        assert_eq!(number(0.1).to_string(), "0.1");
    }

    #[test]
    fn shortest_texts_are_those_of_the_standard_library() {
        // Every 1009th number: of all exponents, and of all endings.
        for x in (0..f32::INFINITY.to_bits()).step_by(1009).map(f32::from_bits) {
            let x = if x.to_bits() % 2 == 0 { x } else { -x };
            let expected = match x.abs() {
                0.0 => "0".to_owned(),
                1e-5..1e16 => x.to_string(),
                _ => format!("{x:e}"),
            };
            let mut text = Vec::new();
            shortest(x, &mut text);
            assert_eq!(text, expected.as_bytes(), "{expected}");
        }
    }

    #[test]
    fn numbers_for_people() {
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(grouped(12), "12");
        assert_eq!(rounded(12.3456), "12.35");
        assert_eq!(rounded(0.0123), "0.01230");
        assert_eq!(rounded(f32::MAX), "3.403e38");
        assert_eq!(bar(0.0), "");
        assert_eq!(bar(1.0).chars().count(), BAR);
        assert_eq!(bar(1e-6), "▏");
    }
}
