//! Rows from a NumPy array: `[rows, inputs]`, or one row, of floats or integers in either byte order.
//!
//! C order streams from anywhere. Fortran order keeps columns together, so a block of rows is gathered with
//! one read per column: constant memory too, but it needs a file.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use half::f16;
use npyz::{DType, Endianness, NpyHeader, Order, TypeChar};

use super::{BadRow, Fault, Layout, ReadProgress, RowError};

/// Values that a block of a Fortran-ordered array holds.
const BLOCK: usize = 1 << 20;

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

    /// One value from its bytes.
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
    let header = NpyHeader::from_reader(Cursor::new(start).chain(reader))?;
    // The place of a value in the file must be a number.
    let values = header.shape().iter().try_fold(1u64, |product, &n| product.checked_mul(n));
    let bytes = values.and_then(|n| n.checked_mul(header.dtype().num_bytes().unwrap_or(1).max(1) as u64));
    if bytes.is_none_or(|bytes| bytes > i64::MAX as u64) {
        let fact = format!("no file has room for an array of shape {:?}", header.shape());
        return Err(io::Error::new(io::ErrorKind::InvalidData, fact));
    }
    Ok(header)
}

/// A stream of rows of an array.
pub struct NpyRows {
    data: Data,
    scalar: Scalar,
    rows: u64,
    columns: usize,
    /// Rows read.
    row: u64,
    /// Bytes of the row that is being read.
    bytes: Vec<u8>,
}

enum Data {
    C(Box<dyn Read>),
    Fortran { file: File, start: u64, block: Vec<u8>, block_rows: usize },
}

impl NpyRows {
    /// First bytes of every NumPy file.
    pub(super) const MAGIC: &[u8] = b"\x93NUMPY";

    pub(super) fn new(mut reader: Box<dyn Read>, file: Option<&Path>, layout: &Layout) -> Result<Self> {
        let header = header(&mut reader).context("the NumPy header cannot be read")?;
        let scalar = Scalar::new(&header.dtype())?;
        let (rows, columns) = shape(header.shape(), layout.inputs)?;
        let flat = rows <= 1 || columns == 1 || header.shape().len() == 1;
        let data = if header.order() == Order::C || flat {
            Data::C(reader)
        } else {
            if header.shape().len() > 2 {
                bail!("a Fortran-ordered array of more than two axes: save np.ascontiguousarray(x)");
            }
            let path = file.context("a Fortran-ordered array needs a file: save np.ascontiguousarray(x)")?;
            let mut file = BufReader::new(File::open(path)?);
            self::header(&mut file)?;
            let start = file.stream_position()?;
            let block_rows = (BLOCK / columns).max(1);
            Data::Fortran { file: file.into_inner(), start, block: Vec::new(), block_rows }
        };
        Ok(Self { data, scalar, rows, columns, row: 0, bytes: vec![0; columns * scalar.size] })
    }

    pub(super) fn next_into(&mut self, row: &mut [f32]) -> Result<bool, RowError> {
        if self.row == self.rows {
            return Ok(false);
        }
        self.fetch().map_err(|error| {
            let fact = format!("row {} of {} cannot be read: is the file complete?", self.row + 1, self.rows);
            RowError::End(anyhow::Error::from(error).context(fact))
        })?;
        self.row += 1;
        for (column, (value, bytes)) in
            row.iter_mut().zip(self.bytes.chunks_exact(self.scalar.size)).enumerate()
        {
            let wide = self.scalar.value(bytes);
            *value = wide as f32;
            if !value.is_finite() {
                let fault = Fault::NonFinite(wide.to_string());
                let column = Some(column + 1);
                return Err(RowError::Bad(BadRow { row: self.row, line: None, column, name: None, fault }));
            }
        }
        Ok(true)
    }

    /// Brings the bytes of the next row into `bytes`.
    fn fetch(&mut self) -> std::io::Result<()> {
        let size = self.scalar.size;
        match &mut self.data {
            Data::C(reader) => reader.read_exact(&mut self.bytes),
            Data::Fortran { file, start, block, block_rows } => {
                let within = (self.row % *block_rows as u64) as usize;
                let height = ((self.rows - (self.row - within as u64)) as usize).min(*block_rows);
                if within == 0 {
                    block.resize(height * self.columns * size, 0);
                    for (column, part) in block.chunks_exact_mut(height * size).enumerate() {
                        let first = column as u64 * self.rows + self.row;
                        file.seek(SeekFrom::Start(*start + first * size as u64))?;
                        file.read_exact(part)?;
                    }
                }
                for (column, to) in self.bytes.chunks_exact_mut(size).enumerate() {
                    let at = (column * height + within) * size;
                    to.copy_from_slice(&block[at..at + size]);
                }
                Ok(())
            }
        }
    }

    pub(super) fn progress(&self) -> ReadProgress {
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
