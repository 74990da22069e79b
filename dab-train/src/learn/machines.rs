//! Several machines that share a run: each learns the same model, from its part of every mini-batch.
//!
//! ```text
//! machine 0 listens, the others connect to it
//! exchange: every machine sends its blob to 0 → 0 puts them together in the machines' order → everybody gets the same
//! message:  length u64, bytes; numbers are little-endian
//! ```
//!
//! burn's own collectives reduce over the GPUs of one process, so what crosses machines is ours: two kinds of messages over
//! TCP, gradients (added) and encodings (listed). Every process keeps the whole model and takes the same step, so the
//! sums of E11 and E12 need no exchange of their own.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    str::FromStr,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use anyhow::{Context, Error, Result, bail, ensure};
use burn::tensor::{Device, Tensor, TensorData};
use sha2::{Digest, Sha256};

use crate::support::digest;

/// How a machine introduces itself.
const MAGIC: u64 = u64::from_le_bytes(*b"dabtrain");
/// The longest message: no mini-batch or epoch of ours comes near.
const LONGEST: u64 = 1 << 36;
/// How long one may take to introduce itself.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two attempts to reach machine 0, and how many there are: it may start later than the others.
const PAUSE: Duration = Duration::from_millis(500);
const ATTEMPTS: usize = 240;

/// Which machine of how many, as in `1/4`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Counted from 0.
    pub index: usize,
    /// How many there are.
    pub count: usize,
}

impl FromStr for Place {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let parsed = text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
        match parsed {
            Some((index, count)) if index < count && count > 1 => Ok(Self { index, count }),
            _ => bail!("`{text}` is no machine: expected I/N, as in 0/2 and 1/2"),
        }
    }
}

/// This machine, and its links to the others.
#[derive(Debug)]
pub struct Machines {
    /// Which of how many.
    pub place: Place,
    /// Of machine 0: to each of the others, in order. Of another: to machine 0.
    links: Mutex<Vec<TcpStream>>,
    /// What went wrong in an exchange.
    fault: Mutex<Option<Error>>,
}

/// Rows and columns of numbers on their way, or none.
type Matrix = Option<([usize; 2], Vec<f32>)>;

impl Machines {
    /// Waits for the others at `address` (machine 0), or connects to machine 0 there.
    ///
    /// # Errors
    /// When the address cannot be used, nobody answers, or two processes are the same machine.
    pub fn join(place: Place, address: &str) -> Result<Self> {
        let links = if place.index == 0 { listen(place, address) } else { connect(place, address) };
        let links = links.with_context(|| format!("machines do not meet at {address}"))?;
        Ok(Self { place, links: Mutex::new(links), fault: Mutex::new(None) })
    }

    /// Refuses machines that do not say the same.
    ///
    /// # Errors
    /// Which one says something else, or is gone.
    pub fn agree(&self, what: &str) -> Result<()> {
        let odd = |said: &[Vec<u8>]| said.iter().position(|one| *one != said[0]);
        let compare =
            |said: Vec<Vec<u8>>| Ok(odd(&said).map_or_else(String::new, |i| i.to_string()).into_bytes());
        let other = self.exchange(digest::hex(Sha256::new_with_prefix(what)).into_bytes(), compare)?;
        let other = String::from_utf8_lossy(&other);
        ensure!(other.is_empty(), "machine {other} runs another experiment or seed than machine 0");
        Ok(())
    }

    /// Machine 0's bytes, everywhere.
    ///
    /// # Errors
    /// When a machine is gone.
    pub fn tell(&self, own: Vec<u8>) -> Result<Vec<u8>> {
        self.exchange(own, |mut said| Ok(said.swap_remove(0)))
    }

    /// Adds tensors up, machine by machine; what one of them does not have is left out. After a fault, and with one, they stay
    /// as they are: [`Machines::sound`] tells.
    pub fn add(&self, own: Vec<Option<Tensor<2>>>, device: &Device) -> Vec<Option<Tensor<2>>> {
        let sum = |said: Vec<Vec<u8>>| {
            let lists = said.iter().map(|bytes| matrices(bytes)).collect::<Result<Vec<_>>>()?;
            lists
                .into_iter()
                .filter(|list| !list.is_empty())
                .reduce(plus)
                .map(|sum| bytes(&sum))
                .context("no gradients")
        };
        let sent = bytes(&own.iter().map(|tensor| tensor.as_ref().map(numbers)).collect::<Vec<_>>());
        let answer = self.exchange(sent, sum).and_then(|bytes| matrices(&bytes));
        self.or_fault(answer)
            .map_or(own, |sum| sum.into_iter().map(|matrix| tensor(matrix, device)).collect())
    }

    /// All machines' tensors, list by list in the machines' order; without the others' after a fault.
    pub fn list(&self, own: Vec<Tensor<2>>, device: &Device) -> Vec<Vec<Tensor<2>>> {
        let join = |said: Vec<Vec<u8>>| {
            let framed =
                said.into_iter().flat_map(|one| [(one.len() as u64).to_le_bytes().to_vec(), one].concat());
            Ok(framed.collect())
        };
        let sent = bytes(&own.iter().map(|tensor| Some(numbers(tensor))).collect::<Vec<_>>());
        let answer = self.exchange(sent, join).and_then(|bytes| {
            let mut rest = bytes.as_slice();
            let mut lists = Vec::new();
            while !rest.is_empty() {
                let length = word(&mut rest)? as usize;
                lists.push(matrices(take(&mut rest, length)?)?);
            }
            Ok(lists)
        });
        let tensors =
            |list: Vec<Matrix>| list.into_iter().filter_map(|matrix| tensor(matrix, device)).collect();
        self.or_fault(answer).map_or(vec![own], |lists| lists.into_iter().map(tensors).collect())
    }

    /// What went wrong in an exchange since the last call.
    ///
    /// # Errors
    /// The first fault.
    pub fn sound(&self) -> Result<()> {
        lock(&self.fault).take().map_or(Ok(()), Err)
    }

    fn or_fault<T>(&self, answer: Result<T>) -> Option<T> {
        answer.map_err(|error| _ = lock(&self.fault).get_or_insert(error)).ok()
    }

    /// Gives `combine` every machine's bytes on machine 0, and its answer to all.
    fn exchange(
        &self,
        own: Vec<u8>,
        combine: impl FnOnce(Vec<Vec<u8>>) -> Result<Vec<u8>>,
    ) -> Result<Vec<u8>> {
        let mut links = lock(&self.links);
        ensure!(!links.is_empty(), "the machines have parted");
        let answer = exchange(self.place, &mut links, own, combine);
        if answer.is_err() {
            // The others see closed links: nobody waits for what will not come.
            links.clear();
        }
        answer
    }
}

fn exchange(
    place: Place,
    links: &mut [TcpStream],
    own: Vec<u8>,
    combine: impl FnOnce(Vec<Vec<u8>>) -> Result<Vec<u8>>,
) -> Result<Vec<u8>> {
    let away = |index: usize| format!("machine {index} of {} went away", place.count);
    if place.index > 0 {
        send(&mut links[0], &own).with_context(|| away(0))?;
        return receive(&mut links[0]).with_context(|| away(0));
    }
    let mut all = vec![own];
    for (index, link) in links.iter_mut().enumerate() {
        all.push(receive(link).with_context(|| away(index + 1))?);
    }
    let answer = combine(all)?;
    for (index, link) in links.iter_mut().enumerate() {
        send(link, &answer).with_context(|| away(index + 1))?;
    }
    Ok(answer)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Machine 0: a link to each of the others.
fn listen(place: Place, address: &str) -> Result<Vec<TcpStream>> {
    let listener = TcpListener::bind(address)?;
    let mut links: Vec<Option<TcpStream>> = (1..place.count).map(|_| None).collect();
    while links.iter().any(Option::is_none) {
        let (mut link, from) = listener.accept()?;
        // Whoever is no machine of ours is sent away.
        let Ok([MAGIC, index, count]) = hello(&mut link) else { continue };
        ensure!(count == place.count as u64, "{from} counts {count} machines, this one {}", place.count);
        let free =
            (index as usize).checked_sub(1).and_then(|at| links.get_mut(at)).filter(|link| link.is_none());
        *free.with_context(|| format!("{from} is machine {index}, which is taken"))? = Some(link);
    }
    Ok(links.into_iter().flatten().collect())
}

/// What a machine says first.
fn hello(link: &mut TcpStream) -> Result<[u64; 3]> {
    link.set_nodelay(true)?;
    link.set_read_timeout(Some(PATIENCE))?;
    let mut words = [[0; 8]; 3];
    link.read_exact(words.as_flattened_mut())?;
    link.set_read_timeout(None)?;
    Ok(words.map(u64::from_le_bytes))
}

/// Another machine: its link to machine 0.
fn connect(place: Place, address: &str) -> Result<Vec<TcpStream>> {
    let mut attempt = 0;
    let mut link = loop {
        match TcpStream::connect(address) {
            Ok(link) => break link,
            Err(error) if attempt == ATTEMPTS => return Err(error.into()),
            Err(_) => attempt += 1,
        }
        std::thread::sleep(PAUSE);
    };
    link.set_nodelay(true)?;
    let hello = [MAGIC, place.index as u64, place.count as u64];
    link.write_all(&hello.map(u64::to_le_bytes).concat())?;
    Ok(vec![link])
}

fn send(link: &mut TcpStream, bytes: &[u8]) -> Result<()> {
    link.write_all(&(bytes.len() as u64).to_le_bytes())?;
    Ok(link.write_all(bytes)?)
}

fn receive(link: &mut TcpStream) -> Result<Vec<u8>> {
    let mut length = [0; 8];
    link.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    ensure!(length <= LONGEST, "a message of {length} bytes");
    let mut bytes = Vec::new();
    // Memory grows with what arrives, not with what is promised.
    link.take(length).read_to_end(&mut bytes)?;
    ensure!(bytes.len() as u64 == length, "a message ends after {} of {length} bytes", bytes.len());
    Ok(bytes)
}

fn numbers(tensor: &Tensor<2>) -> ([usize; 2], Vec<f32>) {
    (tensor.dims(), tensor.to_data().iter::<f32>().collect())
}

fn tensor(matrix: Matrix, device: &Device) -> Option<Tensor<2>> {
    matrix.map(|(shape, values)| Tensor::from_data(TensorData::new(values, shape), device))
}

/// a + b, number by number.
fn plus(a: Vec<Matrix>, b: Vec<Matrix>) -> Vec<Matrix> {
    let add = |(a, b): (Matrix, Matrix)| match (a, b) {
        (Some((shape, mut a)), Some((_, b))) => {
            a.iter_mut().zip(b).for_each(|(a, b)| *a += b);
            Some((shape, a))
        }
        (a, b) => a.or(b),
    };
    a.into_iter().zip(b).map(add).collect()
}

/// Rows (0 for none) and columns as u64, then the numbers.
fn bytes(list: &[Matrix]) -> Vec<u8> {
    let mut out = Vec::new();
    for matrix in list {
        let (shape, values) = matrix.as_ref().map_or(([0; 2], [].as_slice()), |(s, v)| (*s, v.as_slice()));
        shape.iter().for_each(|&side| out.extend((side as u64).to_le_bytes()));
        out.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    }
    out
}

fn matrices(mut bytes: &[u8]) -> Result<Vec<Matrix>> {
    let mut list = Vec::new();
    while !bytes.is_empty() {
        let shape = [word(&mut bytes)? as usize, word(&mut bytes)? as usize];
        let length = shape[0].checked_mul(shape[1]).and_then(|n| n.checked_mul(size_of::<f32>()));
        let values = take(&mut bytes, length.context("a message is damaged")?)?.as_chunks().0;
        let values = values.iter().map(|&word| f32::from_le_bytes(word)).collect();
        list.push((shape[0] > 0).then_some((shape, values)));
    }
    Ok(list)
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Result<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(count).context("a message ends too early")?;
    *bytes = rest;
    Ok(taken)
}

fn word(bytes: &mut &[u8]) -> Result<u64> {
    Ok(u64::from_le_bytes(take(bytes, size_of::<u64>())?.try_into()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What each of three machines gives, in threads of this process.
    fn three<T: Send>(f: impl Fn(&Machines) -> T + Sync) -> Vec<T> {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let run = |index| {
            let place = Place { index, count: 3 };
            f(&Machines::join(place, &format!("127.0.0.1:{port}")).unwrap())
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..3).map(|index| scope.spawn(move || run(index))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    }

    fn row(values: Vec<f32>) -> Tensor<2> {
        let cols = values.len();
        Tensor::from_data(TensorData::new(values, [1, cols]), &Device::flex())
    }

    #[test]
    fn tensors_are_added_and_listed_in_the_machines_order() {
        let found = three(|machines| {
            machines.agree("the same").unwrap();
            let index = machines.place.index;
            assert_eq!(machines.tell(vec![index as u8]).unwrap(), [0]);
            // Machine 1 has nothing to add to the second.
            let second = (index != 1).then(|| row(vec![index as f32]));
            let sum =
                machines.add(vec![Some(row(vec![1.0, 10.0 * index as f32])), second, None], &Device::flex());
            let sum: Vec<_> = sum.iter().map(|t| t.as_ref().map(|t| numbers(t).1)).collect();
            let own = (0..index).map(|i| row(vec![index as f32; i + 1])).collect();
            let lists = machines.list(own, &Device::flex());
            machines.sound().unwrap();
            (
                sum,
                lists.iter().map(|list| list.iter().map(|t| numbers(t).1).collect()).collect::<Vec<Vec<_>>>(),
            )
        });
        for (sum, lists) in found {
            assert_eq!(sum, [Some(vec![3.0, 30.0]), Some(vec![2.0]), None]);
            assert_eq!(lists, [vec![], vec![vec![1.0]], vec![vec![2.0], vec![2.0; 2]]]);
        }
    }

    #[test]
    fn another_experiment_and_a_lost_machine_are_told() {
        let said =
            three(|machines| machines.agree(if machines.place.index == 2 { "b" } else { "a" }).unwrap_err());
        assert!(said.iter().all(|error| error.to_string().contains("machine 2 runs another")), "{said:?}");
        let said = three(|machines| {
            if machines.place.index == 1 {
                return None;
            }
            machines.add(vec![Some(row(vec![1.0]))], &Device::flex());
            Some(format!("{:#}", machines.sound().unwrap_err()))
        });
        assert!(said[0].as_ref().unwrap().contains("machine 1 of 3 went away"), "{said:?}");
        assert!(said[2].as_ref().unwrap().contains("machine 0 of 3 went away"), "{said:?}");
    }

    #[test]
    fn damaged_messages_and_places_are_refused() {
        let whole = bytes(&[Some(([1, 2], vec![1.0, 2.0])), None]);
        assert_eq!(matrices(&whole).unwrap().len(), 2);
        for end in (1..whole.len()).filter(|end| ![24].contains(end)) {
            assert!(matrices(&whole[..end]).is_err(), "{end}");
        }
        for bad in ["2/2", "0/1", "1", "a/b", ""] {
            assert!(bad.parse::<Place>().is_err(), "{bad}");
        }
        assert_eq!("1/2".parse::<Place>().unwrap(), Place { index: 1, count: 2 });
    }
}
