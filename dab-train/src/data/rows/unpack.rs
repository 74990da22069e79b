//! What every reader does first: takes gzip and a byte-order mark off, and tells NumPy arrays from text.
//!
//! The first bytes decide, not the file's name, so a pipe is read like a file.

use std::io::{self, Cursor, Read};

use flate2::read::MultiGzDecoder;

use super::{PARQUET, npy::NpyRows};

/// First bytes of every gzip file.
const GZIP: &[u8] = b"\x1f\x8b";
/// What some programs, Excel among them, write before UTF-8 text. It is no part of the first column's name.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Bytes as a reader wants them.
pub(crate) struct Unpacked {
    pub reader: Box<dyn Read>,
    pub npy: bool,
    /// Whether they are a Parquet file, which cannot be read as a stream.
    pub parquet: bool,
    /// Whether they were compressed: then they are not those of the file.
    pub compressed: bool,
}

pub(crate) fn unpack(reader: Box<dyn Read>) -> io::Result<Unpacked> {
    look(reader, true)
}

/// Looks at the first bytes, and unpacks one layer: a file that was compressed again and again may have no end.
fn look(mut reader: Box<dyn Read>, outermost: bool) -> io::Result<Unpacked> {
    let mut start = Vec::new();
    // A live stream may have no second byte yet. No text begins with the first byte of these marks, but for that of Parquet: a
    // row of names may begin with a P, and the row of numbers behind it makes it long enough.
    reader.by_ref().take(1).read_to_end(&mut start)?;
    let mark = [NpyRows::MAGIC, GZIP, BYTE_ORDER_MARK, PARQUET]
        .into_iter()
        .find(|mark| start.first() == mark.first());
    if let Some(mark) = mark {
        reader.by_ref().take(mark.len() as u64 - 1).read_to_end(&mut start)?;
    }
    if start == GZIP && !outermost {
        let fact = "it was compressed twice: gunzip it once";
        return Err(io::Error::new(io::ErrorKind::InvalidData, fact));
    }
    if start == GZIP {
        let inside = MultiGzDecoder::new(Cursor::new(start).chain(reader));
        return Ok(Unpacked { compressed: true, ..look(Box::new(inside), false)? });
    }
    let (npy, parquet) = (start == NpyRows::MAGIC, start == PARQUET);
    if start == BYTE_ORDER_MARK {
        start.clear();
    }
    Ok(Unpacked { reader: Box::new(Cursor::new(start).chain(reader)), npy, parquet, compressed: false })
}
