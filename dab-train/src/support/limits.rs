//! How much memory a file can ask for.
//!
//! A regular file is read into as many bytes as it has. What has no end (a pipe, a device) is read up to [`ENDLESS`]. A
//! compressed file grows by at most 1032, the largest factor of deflate, because one layer is unpacked and no more. A
//! size that a header states is believed only as far as bytes are there.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Most bytes of something that is no regular file, 256 MB.
pub const ENDLESS: u64 = 1 << 28;
/// Most bytes of a line of text, 64 MB: a million numbers of 64 digits.
pub const LINE: u64 = 1 << 26;

pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let mut bytes = Vec::with_capacity(usize::try_from(file.metadata()?.len()).unwrap_or(0));
    endless_unless(path, file).read_to_end(&mut bytes)?;
    Ok(bytes)
}

pub fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path)?)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not text: a byte of it is no UTF-8"))
}

/// A stream that may not end, unless `path` is a regular file: reading more than [`ENDLESS`] bytes of it is an error.
pub fn endless_unless<R: Read>(path: &Path, stream: R) -> Bounded<R> {
    let most = if path.is_file() { u64::MAX } else { ENDLESS };
    Bounded { stream, most, left: most, line: false }
}

/// Text of any length, in which a line longer than [`LINE`] bytes is an error.
pub fn lines<R: Read>(stream: R) -> Bounded<R> {
    Bounded { stream, most: LINE, left: LINE, line: true }
}

/// A stream with a bound on all of it, or on each line.
#[derive(Debug)]
pub struct Bounded<R> {
    stream: R,
    most: u64,
    left: u64,
    line: bool,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let found = self.stream.read(buffer)?;
        let bytes = buffer.get(..found).unwrap_or_default();
        // The bytes behind the last end of a line count for the next one.
        let end = if self.line { bytes.iter().rposition(|&byte| byte == b'\n') } else { None };
        let counted = match end {
            Some(end) => {
                self.left = self.most;
                found - end - 1
            }
            None => found,
        };
        self.left = self.left.checked_sub(counted as u64).ok_or_else(|| {
            let (what, most) = (if self.line { "a line" } else { "it" }, self.most);
            let advice =
                if self.line { "is it text?" } else { "save it to a file first, this one has no end" };
            let fact = format!("{what} has more than {most} bytes: {advice}");
            io::Error::new(io::ErrorKind::FileTooLarge, fact)
        })?;
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_is_refused_and_a_file_is_read_whole() {
        let error = read(Path::new("/dev/zero")).unwrap_err().to_string();
        assert_eq!(error, "it has more than 268435456 bytes: save it to a file first, this one has no end");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "a\u{e9}").unwrap();
        assert_eq!(read(&path).unwrap(), "a\u{e9}".as_bytes());
        assert_eq!(read_text(&path).unwrap(), "a\u{e9}");
        std::fs::write(&path, [0xff]).unwrap();
        assert_eq!(read_text(&path).unwrap_err().to_string(), "it is not text: a byte of it is no UTF-8");
    }

    #[test]
    fn lines_are_bounded_and_not_their_number() {
        let line = [&[b'1'; 1 << 20][..], b"\n"].concat();
        let many = line.repeat(80);
        assert_eq!(io::copy(&mut lines(&*many), &mut io::sink()).unwrap(), many.len() as u64);
        let error = io::copy(&mut lines(io::repeat(b'1')), &mut io::sink()).unwrap_err().to_string();
        assert_eq!(error, "a line has more than 67108864 bytes: is it text?");
    }
}
