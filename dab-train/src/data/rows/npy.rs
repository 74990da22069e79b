//! Rows from a NumPy array: `[rows, inputs]`, or one row, of floats or integers in either byte order.
//!
//! C order streams from anywhere. Fortran order keeps columns together, so a block of rows is gathered with
//! one read per column: constant memory too, but it needs a file. One thread reads blocks; any can turn one into numbers.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use half::f16;
use npyz::{DType, Endianness, NpyHeader, Order, TypeChar};

use super::{BadRow, Blocks, Fault, Layout, Parse, ParsedRows, READ, RawRows, ReadProgress, read_more};

/// Values that a block of a Fortran-ordered array holds.
const BLOCK: usize = 1 << 18;

/// Type of the values in a file, and what they are as numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scalar {
    kind: TypeChar,
    /// Bytes of a value.
    pub size: usize,
    big_endian: bool,
}

impl Scalar {
    pub(crate) fn new(dtype: &DType) -> Result<Self> {
        let unreadable = || {
            anyhow!(
                "values of type {} cannot be read: save real numbers, x.astype(\"float32\")",
                dtype.descr()
            )
        };
        let DType::Plain(ty) = dtype else { return Err(unreadable()) };
        let (kind, size) = (ty.type_char(), ty.num_bytes().unwrap_or(0));
        let known = match kind {
            TypeChar::Float => [2, 4, 8].contains(&size),
            TypeChar::Int | TypeChar::Uint => [1, 2, 4, 8].contains(&size),
            TypeChar::Bool => size == 1,
            _ => false,
        };
        let big_endian = ty.endianness() == Endianness::Big;
        if known { Ok(Self { kind, size, big_endian }) } else { Err(unreadable()) }
    }

    /// Whether it is a byte, as those of images are.
    pub(crate) fn is_byte(self) -> bool {
        (self.kind, self.size) == (TypeChar::Uint, 1)
    }

    /// Whether it is an f32 as processors have it.
    fn is_plain(self) -> bool {
        (self.kind, self.size, self.big_endian) == (TypeChar::Float, 4, false)
    }

    fn raw(self, bytes: &[u8]) -> u64 {
        let mut le = [0; 8];
        le[..self.size].copy_from_slice(bytes);
        if self.big_endian {
            le[..self.size].reverse();
        }
        u64::from_le_bytes(le)
    }

    /// A signed number of fewer than eight bytes: shifting to the top and back extends the sign.
    fn signed(self, raw: u64) -> i64 {
        let unused = 64 - 8 * self.size as u32;
        ((raw << unused) as i64) >> unused
    }

    #[inline]
    pub(crate) fn value(self, bytes: &[u8]) -> f64 {
        let raw = self.raw(bytes);
        match (self.kind, self.size) {
            (TypeChar::Float, 2) => f16::from_bits(raw as u16).into(),
            (TypeChar::Float, 4) => f32::from_bits(raw as u32).into(),
            (TypeChar::Float, _) => f64::from_bits(raw),
            (TypeChar::Int, _) => self.signed(raw) as f64,
            _ => raw as f64,
        }
    }

    /// One value as a whole number, exactly; the value itself if it is none, or too large.
    pub(crate) fn whole(self, bytes: &[u8]) -> Result<i64, f64> {
        let value = self.value(bytes);
        match self.kind {
            TypeChar::Float if value.fract() == 0.0 => Ok(value as i64),
            TypeChar::Float => Err(value),
            TypeChar::Int => Ok(self.signed(self.raw(bytes))),
            _ => i64::try_from(self.raw(bytes)).map_err(|_| value),
        }
    }
}

/// Most bytes of the header of an array: NumPy's own have about 100.
const HEADER: usize = 1 << 16;
/// Most opening brackets of a header: an array of numbers has two, of dates three. The parser tries a value in brackets in several
/// ways, each time with all that lies in it, so its time doubles with every bracket within brackets.
const BRACKETS: usize = 8;

/// The header of an array. It states its own length, which is not believed.
pub(crate) fn header(reader: &mut impl Read) -> io::Result<NpyHeader> {
    let mut start = vec![0; 10];
    reader.read_exact(&mut start)?;
    let length = match start[6] {
        0 | 1 => usize::from(u16::from_le_bytes([start[8], start[9]])),
        _ => {
            let mut more = [0; 2];
            reader.read_exact(&mut more)?;
            start.extend(more);
            u32::from_le_bytes([start[8], start[9], more[0], more[1]]) as usize
        }
    };
    if length > HEADER {
        let fact = format!("the header says that it has {length} bytes, allowed are {HEADER}");
        return Err(io::Error::new(io::ErrorKind::InvalidData, fact));
    }
    let text = start.len();
    start.resize(text + length, 0);
    reader.read_exact(&mut start[text..])?;
    let brackets = start[text..].iter().filter(|byte| b"([{".contains(byte)).count();
    if brackets > BRACKETS {
        let fact = format!(
            "the header opens {brackets} brackets, allowed are {BRACKETS}: it is no array of numbers"
        );
        return Err(io::Error::new(io::ErrorKind::InvalidData, fact));
    }
    let header = NpyHeader::from_reader(Cursor::new(start))?;
    // The place of a value in the file must be a number.
    let values = header.shape().iter().try_fold(1u64, |product, &n| product.checked_mul(n));
    let bytes = values.and_then(|n| n.checked_mul(header.dtype().num_bytes().unwrap_or(1).max(1) as u64));
    if bytes.is_none_or(|bytes| bytes > i64::MAX as u64) {
        let fact = format!("no file has room for an array of shape {:?}", header.shape());
        return Err(io::Error::new(io::ErrorKind::InvalidData, fact));
    }
    Ok(header)
}

/// Rows of an array as bytes, and what they are.
#[derive(Clone, Copy, Debug)]
struct Values {
    scalar: Scalar,
    columns: usize,
    /// Whether a block has one column behind the other.
    by_column: bool,
}

impl Parse for Values {
    fn add(&self, raw: &RawRows, rows: &mut ParsedRows) {
        let (size, columns) = (self.scalar.size, self.columns);
        let height = raw.bytes.len() / (columns * size).max(1);
        rows.count = height;
        let number = |value: &[u8]| self.scalar.value(value) as f32;
        if self.by_column {
            rows.inputs.resize(height * columns, 0.0);
            for (column, values) in raw.bytes.chunks_exact((height * size).max(1)).enumerate() {
                for (row, value) in values.chunks_exact(size).enumerate() {
                    rows.inputs[row * columns + column] = number(value);
                }
            }
        } else if self.scalar.is_plain() {
            let words = raw.bytes.as_chunks().0.iter();
            rows.inputs.extend(words.map(|&word| f32::from_le_bytes(word)));
        } else {
            rows.inputs.extend(raw.bytes.chunks_exact(size).map(number));
        }
        if rows.inputs.iter().all(|value| value.is_finite()) {
            return;
        }
        for (at, row) in rows.inputs.chunks(columns).enumerate() {
            if let Some(column) = row.iter().position(|value| !value.is_finite()) {
                let place = if self.by_column { column * height + at } else { at * columns + column };
                let wide = self.scalar.value(&raw.bytes[place * size..(place + 1) * size]);
                let (row, column) = (at as u64 + 1, Some(column + 1));
                let fault = Fault::NonFinite(wide.to_string());
                rows.bad.push((at, BadRow { row, line: None, column, name: None, fault }));
            }
        }
    }
}

/// A stream of rows of an array.
pub struct NpyRows {
    data: Data,
    values: Values,
    rows: u64,
    row: u64,
}

enum Data {
    /// `rest` was read behind the last block.
    C {
        reader: Box<dyn Read>,
        rest: Vec<u8>,
    },
    Fortran {
        file: File,
        start: u64,
    },
}

impl NpyRows {
    /// First bytes of every NumPy file.
    pub(super) const MAGIC: &[u8] = b"\x93NUMPY";

    pub(super) fn new(mut reader: Box<dyn Read>, file: Option<&Path>, layout: &Layout) -> Result<Self> {
        let header = header(&mut reader).context("the NumPy header cannot be read")?;
        let scalar = Scalar::new(&header.dtype())?;
        let (rows, columns) = shape(header.shape(), layout.inputs)?;
        let flat = rows <= 1 || columns == 1 || header.shape().len() == 1;
        let by_column = header.order() != Order::C && !flat;
        let data = if by_column {
            if header.shape().len() > 2 {
                bail!("a Fortran-ordered array of more than two axes: save np.ascontiguousarray(x)");
            }
            let path = file.context("a Fortran-ordered array needs a file: save np.ascontiguousarray(x)")?;
            let mut file = BufReader::new(File::open(path)?);
            self::header(&mut file)?;
            let start = file.stream_position()?;
            Data::Fortran { file: file.into_inner(), start }
        } else {
            Data::C { reader, rest: Vec::new() }
        };
        Ok(Self { data, values: Values { scalar, columns, by_column }, rows, row: 0 })
    }

    fn fetch(&mut self, bytes: &mut Vec<u8>, least: usize) -> io::Result<()> {
        let Values { scalar: Scalar { size, .. }, columns, .. } = self.values;
        let wide = columns * size;
        let left = self.rows - self.row;
        let height = match &mut self.data {
            Data::C { reader, rest } => {
                let whole = usize::try_from(left).unwrap_or(usize::MAX).saturating_mul(wide);
                std::mem::swap(bytes, rest);
                rest.clear();
                // One row at least; of a live stream, no more than is there.
                while bytes.len() < least.clamp(wide, whole) {
                    let most = READ.min(whole - bytes.len());
                    // Whole rows before the end are given away first.
                    match read_more(reader, bytes, most) {
                        Ok(0) | Err(_) if bytes.len() >= wide => break,
                        Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                        Err(error) => return Err(error),
                        Ok(_) => {}
                    }
                }
                let height = bytes.len() / wide;
                rest.extend_from_slice(&bytes[height * wide..]);
                bytes.truncate(height * wide);
                height
            }
            Data::Fortran { file, start } => {
                let height = (BLOCK / columns).max(1).min(usize::try_from(left).unwrap_or(usize::MAX));
                bytes.resize(height * wide, 0);
                for (column, part) in bytes.chunks_exact_mut(height * size).enumerate() {
                    let first = column as u64 * self.rows + self.row;
                    file.seek(SeekFrom::Start(*start + first * size as u64))?;
                    file.read_exact(part)?;
                }
                height
            }
        };
        self.row += height as u64;
        Ok(())
    }
}

impl Blocks for NpyRows {
    fn parser(&self) -> Arc<dyn Parse> {
        Arc::new(self.values)
    }

    fn cut(&mut self, raw: &mut RawRows, least: usize) -> Result<bool> {
        raw.bytes.clear();
        if self.row == self.rows {
            return Ok(false);
        }
        let (row, rows) = (self.row + 1, self.rows);
        self.fetch(&mut raw.bytes, least)
            .with_context(|| format!("row {row} of {rows} cannot be read: is the file complete?"))?;
        Ok(true)
    }

    fn progress(&self) -> ReadProgress {
        ReadProgress { done: self.row, total: Some(self.rows), bytes: false }
    }
}

/// Rows and columns of an array for a model of that many inputs.
fn shape(shape: &[u64], inputs: usize) -> Result<(u64, usize)> {
    let wide = inputs as u64;
    let found = match *shape {
        [n] if inputs == 1 => Some((n, 1)),
        [n] if n == wide => Some((1, inputs)),
        [rows, ref rest @ ..] if !rest.is_empty() => {
            let columns = rest.iter().try_fold(1u64, |product, &n| product.checked_mul(n));
            columns.filter(|&columns| columns == wide).map(|_| (rows, inputs))
        }
        _ => None,
    };
    found.with_context(|| format!("the array has shape {shape:?}, expected [rows, {inputs}]"))
}
