//! Python pickles, as far as data files need them: numbers, strings, lists, dictionaries and NumPy's arrays of bytes.
//!
//! ```text
//! bytes → a stack machine → Value
//! ```
//!
//! Nothing is ever executed: a class or a function stays a name, and a call stays a pair of name and arguments. The memo
//! holds values as they were when they were stored, so a list that grows later is not shared; data files do not do that.

use std::{borrow::Cow, rc::Rc};

use anyhow::{Context, Result, bail, ensure};

/// A Python object.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    /// None, and whatever has no meaning here.
    Nothing,
    /// A whole number or a truth value.
    Int(i64),
    /// Bytes or text.
    Bytes(Rc<[u8]>),
    /// A list or a tuple.
    List(Vec<Value>),
    /// Keys and values.
    Dict(Vec<(Value, Value)>),
    /// A call and, once it is there, the state that the object was given.
    Object(Vec<Value>),
}

impl Value {
    /// The entry `key` of a dictionary.
    pub(super) fn get(&self, key: &str) -> Result<&Self> {
        let Self::Dict(entries) = self else { bail!("the pickle holds no dictionary") };
        let found = entries.iter().find(|(k, _)| matches!(k, Self::Bytes(b) if **b == *key.as_bytes()));
        found.map(|(_, value)| value).with_context(|| format!("the pickle has no `{key}`"))
    }

    /// A NumPy array of bytes, rows first: as it describes itself up to protocol 4, or from protocol 5 on.
    pub(super) fn bytes(&self) -> Result<Cow<'_, [u8]>> {
        let Self::Object(parts) = self else { bail!("it is no array") };
        let (shape, bytes, columns_first) = match parts.as_slice() {
            [_, Self::List(state)] => match state.as_slice() {
                [_, Self::List(shape), _, Self::Int(fortran), Self::Bytes(bytes)] => {
                    (shape, bytes, *fortran == 1)
                }
                [Self::Bytes(bytes), _, Self::List(shape), Self::Bytes(order)] => {
                    (shape, bytes, **order == *b"F")
                }
                _ => bail!("it is no array of bytes"),
            },
            _ => bail!("it is no array of bytes"),
        };
        let [Self::Int(rows), Self::Int(cols)] = shape[..] else { bail!("it has no rows and columns") };
        let (rows, cols) = (usize::try_from(rows)?, usize::try_from(cols)?);
        ensure!(rows.checked_mul(cols) == Some(bytes.len()), "{rows} × {cols} are not {} bytes", bytes.len());
        if !columns_first {
            return Ok(Cow::Borrowed(bytes));
        }
        Ok(Cow::Owned((0..bytes.len()).map(|at| bytes[at % cols * rows + at / cols]).collect()))
    }

    /// A list of whole numbers from 0 to 65535.
    pub(super) fn labels(&self) -> Result<Vec<u32>> {
        let Self::List(items) = self else { bail!("labels are no list") };
        let number = |item: &Self| match item {
            Self::Int(label @ 0..=0xFFFF) => Ok(*label as u32),
            other => bail!("a label is {other:?}"),
        };
        items.iter().map(number).collect()
    }
}

/// The machine's state.
struct Machine<'a> {
    bytes: &'a [u8],
    stack: Vec<Value>,
    marks: Vec<usize>,
    memo: Vec<Value>,
}

/// Reads one pickle.
pub(super) fn read(bytes: &[u8]) -> Result<Value> {
    let mut machine = Machine { bytes, stack: Vec::new(), marks: Vec::new(), memo: Vec::new() };
    loop {
        let code = machine.take(1)?[0];
        if code == b'.' {
            return machine.pop();
        }
        machine.step(code)?;
    }
}

impl<'a> Machine<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(count).context("the pickle ends too early")?;
        self.bytes = rest;
        Ok(taken)
    }

    /// A little-endian number of up to eight bytes.
    fn number(&mut self, bytes: usize) -> Result<usize> {
        let taken = self.take(bytes)?;
        Ok(taken.iter().rev().fold(0_u64, |sum, &byte| sum << 8 | u64::from(byte)) as usize)
    }

    fn line(&mut self) -> Result<&'a [u8]> {
        let end = self.bytes.iter().position(|&byte| byte == b'\n').context("the pickle ends too early")?;
        let line = self.take(end)?;
        self.take(1)?;
        Ok(line)
    }

    fn pop(&mut self) -> Result<Value> {
        self.stack.pop().context("the pickle takes from an empty stack")
    }

    fn last(&mut self) -> Result<&mut Value> {
        self.stack.last_mut().context("the pickle takes from an empty stack")
    }

    fn since_mark(&mut self) -> Result<Vec<Value>> {
        let mark = self.marks.pop().context("the pickle lacks a mark")?;
        ensure!(mark <= self.stack.len(), "the pickle lacks a mark");
        Ok(self.stack.split_off(mark))
    }

    fn last_n(&mut self, count: usize) -> Result<Vec<Value>> {
        let at = self.stack.len().checked_sub(count).context("the pickle takes from an empty stack")?;
        Ok(self.stack.split_off(at))
    }

    fn string(&mut self, length: usize) -> Result<()> {
        let bytes = self.take(length)?;
        self.stack.push(Value::Bytes(bytes.into()));
        Ok(())
    }

    fn put(&mut self, index: usize) -> Result<()> {
        ensure!(index < 1 << 20, "the pickle's memo is too large");
        if self.memo.len() <= index {
            self.memo.resize(index + 1, Value::Nothing);
        }
        self.memo[index] = self.last()?.clone();
        Ok(())
    }

    fn get(&mut self, index: usize) -> Result<()> {
        let value = self.memo.get(index).cloned().context("the pickle's memo has no such entry")?;
        self.stack.push(value);
        Ok(())
    }

    fn append(&mut self, items: Vec<Value>) -> Result<()> {
        match self.last()? {
            Value::List(list) => list.extend(items),
            _ => bail!("the pickle appends to something that is no list"),
        }
        Ok(())
    }

    fn set(&mut self, items: Vec<Value>) -> Result<()> {
        let Value::Dict(entries) = self.last()? else {
            bail!("the pickle sets an item of something that is no dictionary")
        };
        let mut items = items.into_iter();
        while let (Some(key), Some(value)) = (items.next(), items.next()) {
            entries.push((key, value));
        }
        Ok(())
    }

    fn step(&mut self, code: u8) -> Result<()> {
        match code {
            0x80 => drop(self.take(1)?),
            0x95 => drop(self.take(8)?),
            b'(' => self.marks.push(self.stack.len()),
            b'0' => drop(self.pop()?),
            b'N' => self.stack.push(Value::Nothing),
            0x88 => self.stack.push(Value::Int(1)),
            0x89 => self.stack.push(Value::Int(0)),
            b'K' => self.integer(1)?,
            b'M' => self.integer(2)?,
            b'J' => {
                let number = self.number(4)? as u32 as i32;
                self.stack.push(Value::Int(number.into()));
            }
            0x8a => {
                let count = self.number(1)?;
                ensure!(count < 8, "the pickle holds a number of {count} bytes");
                self.integer(count)?;
            }
            b'U' | 0x8c | b'C' => {
                let length = self.number(1)?;
                self.string(length)?;
            }
            b'T' | b'X' | b'B' => {
                let length = self.number(4)?;
                self.string(length)?;
            }
            0x8e | 0x96 => {
                let length = self.number(8)?;
                self.string(length)?;
            }
            b'}' => self.stack.push(Value::Dict(Vec::new())),
            b']' | b')' => self.stack.push(Value::List(Vec::new())),
            b'a' => {
                let item = self.pop()?;
                self.append(vec![item])?;
            }
            b'e' => {
                let items = self.since_mark()?;
                self.append(items)?;
            }
            b's' => {
                let items = self.last_n(2)?;
                self.set(items)?;
            }
            b'u' => {
                let items = self.since_mark()?;
                self.set(items)?;
            }
            b't' | b'l' => {
                let items = self.since_mark()?;
                self.stack.push(Value::List(items));
            }
            0x85..=0x87 => {
                let items = self.last_n(usize::from(code - 0x84))?;
                self.stack.push(Value::List(items));
            }
            b'c' => {
                let name = [self.line()?, b".", self.line()?].concat();
                self.stack.push(Value::Bytes(name.into()));
            }
            b'R' => {
                let parts = self.last_n(2)?;
                self.stack.push(latin1(&parts)?.unwrap_or(Value::Object(parts)));
            }
            0x93 | 0x81 | b'b' => {
                let parts = self.last_n(2)?;
                self.stack.push(Value::Object(parts));
            }
            b'q' => {
                let index = self.number(1)?;
                self.put(index)?;
            }
            b'r' => {
                let index = self.number(4)?;
                self.put(index)?;
            }
            0x94 => self.put(self.memo.len())?,
            b'h' => {
                let index = self.number(1)?;
                self.get(index)?;
            }
            b'j' => {
                let index = self.number(4)?;
                self.get(index)?;
            }
            _ => bail!("the pickle uses operation {code:#04x}, which data files do not need"),
        }
        Ok(())
    }

    fn integer(&mut self, bytes: usize) -> Result<()> {
        let number = self.number(bytes)?;
        self.stack.push(Value::Int(number as i64));
        Ok(())
    }
}

/// Python 3 writes bytes for protocol 2 as the call `_codecs.encode(text, "latin1")`: the bytes, if this is that call.
fn latin1(call: &[Value]) -> Result<Option<Value>> {
    let [Value::Bytes(name), Value::List(arguments)] = call else { return Ok(None) };
    let (b"_codecs.encode", [Value::Bytes(text), Value::Bytes(_)]) = (&**name, arguments.as_slice()) else {
        return Ok(None);
    };
    let text = std::str::from_utf8(text).context("the pickle's text is no UTF-8")?;
    let bytes: Result<Vec<u8>, _> = text.chars().map(u8::try_from).collect();
    Ok(Some(Value::Bytes(bytes.context("the pickle's bytes are no latin1")?.into())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `pickle.dumps({'labels': [3, 300], 'data': numpy.arange(6, dtype='u1').reshape(2, 3)}, 2)`, shortened.
    const SMALL: &[u8] = b"\x80\x02}q\x00(U\x06labelsq\x01]q\x02(K\x03M\x2c\x01eU\x04dataq\x03cnumpy.core.multiarray\n_reconstruct\nq\x04cnumpy\nndarray\nq\x05K\x00\x85q\x06U\x01bq\x07\x87q\x08Rq\x09(K\x01K\x02K\x03\x86q\x0acnumpy\ndtype\nq\x0bU\x02u1q\x0cK\x00K\x01\x87q\x0dRq\x0e(K\x03U\x01|q\x0fNNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tq\x10b\x89U\x06\x00\x01\x02\x03\x04\x05q\x11tq\x12bu.";

    #[test]
    fn an_array_and_labels_are_read() {
        let value = read(SMALL).unwrap();
        assert_eq!(value.get("labels").unwrap().labels().unwrap(), [3, 300]);
        assert!(value.get("names").unwrap_err().to_string().contains("no `names`"));
        assert_eq!(*value.get("data").unwrap().bytes().unwrap(), [0, 1, 2, 3, 4, 5]);
        assert!(value.get("labels").unwrap().bytes().is_err());
    }

    #[test]
    fn every_prefix_and_every_flipped_byte_is_an_answer() {
        for end in 0..SMALL.len() {
            assert!(read(&SMALL[..end]).is_err());
        }
        for at in 0..SMALL.len() {
            for flip in [1, 0x80, 0xFF] {
                let mut bytes = SMALL.to_vec();
                bytes[at] ^= flip;
                let _ = read(&bytes).and_then(|value| Ok(value.get("data")?.bytes()?.len()));
            }
        }
    }
}
