//! Text that the page reads: words of errors, lines of scores.

use core::fmt::{self, Write};

use dab_core::band::half_width;
use dab_core::{Assessment, Verdict};

/// Text in memory that was set aside for it; by default there is no room.
#[derive(Default)]
pub struct Text {
    bytes: &'static mut [u8],
    len: usize,
}

impl Text {
    /// Empty text with that much room.
    pub const fn new(bytes: &'static mut [u8]) -> Self {
        Self { bytes, len: 0 }
    }

    /// All of its memory: the page writes there what it asks about.
    pub const fn memory(&self) -> &[u8] {
        self.bytes
    }

    /// What was written.
    pub fn written(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    /// Replaces the text by what `words` says.
    pub fn say(&mut self, words: impl fmt::Display) {
        self.len = 0;
        // What does not fit is left out: there is room for the longest line.
        let _ = write!(self, "{words}");
    }
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.len + text.len();
        let Some(free) = self.bytes.get_mut(self.len..end) else { return Err(fmt::Error) };
        free.copy_from_slice(text.as_bytes());
        self.len = end;
        Ok(())
    }
}

/// The shortest text that reads back as the same f32, as `dab score` writes it. The number is finite.
pub struct Shortest(pub f32);

impl fmt::Display for Shortest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let x = self.0;
        match x.abs() {
            0.0 => f.write_str("0"),
            1e-5..1e16 => write!(f, "{x}"),
            _ => write!(f, "{x:e}"),
        }
    }
}

/// A line of `dab score`, without its end.
pub struct Line<'a> {
    pub assessment: &'a Assessment,
    pub outputs: &'a [f32],
    /// The widths of their bands, if the model has any.
    pub bands: &'a [f32],
}

impl Line<'_> {
    /// Bytes of a line without outputs, at most: two numbers, a verdict, a code, three commas.
    const FIXED: usize = 128;
    /// Bytes of an output, or of half a band, and its comma, at most.
    const NUMBER: usize = 32;

    /// Bytes of the longest line of a model.
    pub const fn longest(outputs: usize, bands: usize) -> usize {
        Self::FIXED + Self::NUMBER * (outputs + bands)
    }
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { assessment, outputs, bands } = self;
        write!(f, "{},", Shortest(assessment.uncertainty))?;
        if let Some(p) = assessment.p_value {
            Shortest(p).fmt(f)?;
        }
        let verdict = match assessment.verdict {
            None => "",
            Some(Verdict::Familiar) => "familiar",
            Some(Verdict::Ambiguous) => "ambiguous",
            Some(Verdict::Doubtful) => "doubtful",
            Some(Verdict::Unfamiliar) => "unfamiliar",
        };
        write!(f, ",{verdict},{}", assessment.nearest)?;
        let halves = bands.iter().map(|&width| half_width(width, assessment.uncertainty));
        for number in outputs.iter().copied().chain(halves) {
            write!(f, ",{}", Shortest(number))?;
        }
        Ok(())
    }
}
