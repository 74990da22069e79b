//! Several processes that share a run, each on its own machine or GPU: each learns the same model, from its part of every
//! mini-batch.
//!
//! ```text
//! add: one flat list of numbers, in buckets
//!      all-to-all: process r gets part r of everybody's bucket → adds them up in the processes' order → all-gather
//! ```
//!
//! Every process keeps the whole model and takes the same step. A sum has the order of the processes, whoever adds it, so a
//! run gives the same bytes as one process with as many replicas; a library's own all-reduce would choose an order. The
//! sums of E11 and E12 need no exchange: encodings are listed, and everybody adds them up alike.
//!
//! What carries the bytes is a [`Wire`]: MPI (`mpi.rs`), or threads in the tests. A wire has no errors: MPI ends the whole job.

use std::{
    fmt::Debug,
    sync::atomic::{AtomicU64, Ordering},
};

use anyhow::{Result, ensure};
use burn::tensor::{Device, Tensor, TensorData};
use sha2::{Digest, Sha256};

use crate::support::digest;

/// Numbers that are exchanged at once: 25 MB, large enough for the network and small beside a model. MPI counts in 31 bits.
const BUCKET: usize = 25_000_000 / size_of::<f32>();
/// Bytes of one broadcast, for the same reason.
const PIECE: usize = 1 << 28;

/// Which process of how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Counted from 0.
    pub index: usize,
    /// How many there are.
    pub count: usize,
}

/// How bytes get from one process to another. All processes call the same functions in the same order.
pub trait Wire: Send + Sync + Debug {
    /// This process.
    fn place(&self) -> Place;
    /// Part r of `sent` goes to process r, whose own part for this process comes back at r.
    fn all_to_all(&self, sent: &[f32], received: &mut [f32]);
    /// Everybody's numbers, one process after the other.
    fn all_gather(&self, own: &[f32], all: &mut [f32]);
    /// The bytes of process `from`, everywhere.
    fn broadcast(&self, from: usize, bytes: &mut [u8]);
}

/// This process, and its wire to the others.
#[derive(Debug)]
pub struct Machines {
    /// Which of how many.
    pub place: Place,
    wire: Box<dyn Wire>,
    /// Bytes that this process gave to others.
    sent: AtomicU64,
}

/// Rows and columns of each tensor; none for one that is absent.
type Shapes = Vec<Option<[usize; 2]>>;

impl Machines {
    /// Shares a run over `wire`.
    pub fn new(wire: Box<dyn Wire>) -> Self {
        Self { place: wire.place(), wire, sent: AtomicU64::new(0) }
    }

    /// Bytes that this process has given to others so far, for each of them.
    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Counts what every other process got from this one.
    fn count(&self, bytes: usize) {
        self.sent.fetch_add((bytes * (self.place.count - 1)) as u64, Ordering::Relaxed);
    }

    /// Refuses processes that do not say the same.
    ///
    /// # Errors
    /// Which one says something else.
    pub fn agree(&self, what: &str) -> Result<()> {
        let said = self.all(&digest::hex(Sha256::new_with_prefix(what)).into_bytes());
        let other = said.iter().position(|one| *one != said[0]);
        ensure!(
            other.is_none(),
            "process {} has another experiment, seed, data or version of dab than process 0",
            other.unwrap_or(0)
        );
        Ok(())
    }

    /// Process 0's bytes, everywhere.
    pub fn tell(&self, own: &[u8]) -> Vec<u8> {
        self.told(0, own)
    }

    /// Adds tensors up, process by process. One that had no rows gives an empty list, and is left out.
    ///
    /// # Panics
    /// When processes have tensors of different shapes, which [`Machines::agree`] rules out.
    pub fn add(&self, own: Vec<Option<Tensor<2>>>, device: &Device) -> Vec<Option<Tensor<2>>> {
        let shapes: Shapes = own.iter().map(|tensor| tensor.as_ref().map(Tensor::dims)).collect();
        let all: Vec<Shapes> = self.all(&to_bytes(&shapes)).iter().map(|bytes| from_bytes(bytes)).collect();
        let present: Vec<usize> = (0..all.len()).filter(|&index| !all[index].is_empty()).collect();
        let Some(first) = present.first() else { return Vec::new() };
        let shapes = &all[*first];
        assert!(present.iter().all(|&index| all[index] == *shapes), "all processes learn the same network");
        let length = shapes.iter().flatten().map(|[rows, cols]| rows * cols).sum();
        let mut flat = Vec::with_capacity(length);
        own.into_iter().flatten().for_each(|tensor| flat.extend(tensor.into_data().iter::<f32>()));
        flat.resize(length, 0.0);
        flat.chunks_mut(BUCKET).for_each(|bucket| self.add_bucket(bucket, &present));
        let mut rest = flat.as_slice();
        let tensor = |shape: &Option<[usize; 2]>| {
            let [rows, cols] = (*shape)?;
            let (values, after) = rest.split_at(rows * cols);
            rest = after;
            Some(Tensor::from_data(TensorData::new(values.to_vec(), [rows, cols]), device))
        };
        shapes.iter().map(tensor).collect()
    }

    /// The sum of everybody's bucket, over the processes in `present`.
    fn add_bucket(&self, bucket: &mut [f32], present: &[usize]) {
        let part = bucket.len().div_ceil(self.place.count);
        let mut sent = bucket.to_vec();
        sent.resize(part * self.place.count, 0.0);
        let mut received = vec![0.0; sent.len()];
        self.wire.all_to_all(&sent, &mut received);
        let of = |index: usize| &received[index * part..(index + 1) * part];
        let mut sum = of(present[0]).to_vec();
        for &index in &present[1..] {
            sum.iter_mut().zip(of(index)).for_each(|(sum, value)| *sum += value);
        }
        self.wire.all_gather(&sum, &mut sent);
        // A part to everybody, and the sum of one's own part to everybody.
        self.count(2 * size_of_val(&*sum));
        bucket.copy_from_slice(&sent[..bucket.len()]);
    }

    /// Everybody's tensors, list by list in the processes' order.
    pub fn list(&self, own: &[Tensor<2>], device: &Device) -> Vec<Vec<Tensor<2>>> {
        let shapes: Shapes = own.iter().map(|tensor| Some(tensor.dims())).collect();
        let mut bytes = to_bytes(&shapes);
        bytes.splice(..0, (bytes.len() as u64).to_le_bytes());
        for tensor in own {
            bytes.extend(tensor.to_data().iter::<f32>().flat_map(f32::to_le_bytes));
        }
        let read = |bytes: Vec<u8>| {
            let (length, rest) = bytes.split_at(size_of::<u64>());
            let length = u64::from_le_bytes(length.try_into().expect("eight bytes")) as usize;
            let (shapes, numbers) = rest.split_at(length);
            let mut numbers = numbers.as_chunks().0.iter().map(|&word| f32::from_le_bytes(word));
            let shapes = from_bytes(shapes).into_iter().flatten();
            let tensor = |[rows, cols]: [usize; 2]| {
                let values: Vec<f32> = numbers.by_ref().take(rows * cols).collect();
                Tensor::from_data(TensorData::new(values, [rows, cols]), device)
            };
            shapes.map(tensor).collect()
        };
        self.all(&bytes).into_iter().map(read).collect()
    }

    /// Everybody's bytes, in the processes' order.
    fn all(&self, own: &[u8]) -> Vec<Vec<u8>> {
        (0..self.place.count).map(|index| self.told(index, own)).collect()
    }

    /// The bytes of process `from`; `own` are this one's.
    fn told(&self, from: usize, own: &[u8]) -> Vec<u8> {
        let mut length = (own.len() as u64).to_le_bytes();
        self.wire.broadcast(from, &mut length);
        let length = u64::from_le_bytes(length) as usize;
        let mut bytes = vec![0; length];
        if from == self.place.index {
            bytes = own.to_vec();
            self.count(size_of::<u64>() + length);
        }
        bytes.chunks_mut(PIECE).for_each(|piece| self.wire.broadcast(from, piece));
        bytes
    }
}

/// Two words a tensor; rows of 0 for one that is absent.
fn to_bytes(shapes: &Shapes) -> Vec<u8> {
    let words = shapes.iter().flat_map(|shape| shape.unwrap_or([0; 2]));
    words.flat_map(|side| (side as u64).to_le_bytes()).collect()
}

fn from_bytes(bytes: &[u8]) -> Shapes {
    let words: Vec<usize> =
        bytes.as_chunks().0.iter().map(|&word| u64::from_le_bytes(word) as usize).collect();
    words.as_chunks::<2>().0.iter().map(|&shape| (shape[0] > 0).then_some(shape)).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::{Arc, Barrier, Mutex};

    use super::*;

    /// Threads of one process.
    #[derive(Debug)]
    struct Threads {
        place: Place,
        barrier: Arc<Barrier>,
        said: Arc<Mutex<Vec<Vec<u8>>>>,
    }

    impl Threads {
        /// What everybody says.
        fn all(&self, own: &[u8]) -> Vec<Vec<u8>> {
            own.clone_into(&mut self.said.lock().unwrap()[self.place.index]);
            self.barrier.wait();
            let all = self.said.lock().unwrap().clone();
            self.barrier.wait();
            all
        }

        fn numbers(&self, own: &[f32]) -> Vec<Vec<f32>> {
            let bytes: Vec<u8> = own.iter().flat_map(|value| value.to_le_bytes()).collect();
            let read =
                |bytes: Vec<u8>| bytes.as_chunks().0.iter().map(|&word| f32::from_le_bytes(word)).collect();
            self.all(&bytes).into_iter().map(read).collect()
        }
    }

    impl Wire for Threads {
        fn place(&self) -> Place {
            self.place
        }

        fn all_to_all(&self, sent: &[f32], received: &mut [f32]) {
            let part = sent.len() / self.place.count;
            let all = self.numbers(sent);
            let parts =
                all.iter().flat_map(|one| &one[self.place.index * part..(self.place.index + 1) * part]);
            received.iter_mut().zip(parts).for_each(|(to, from)| *to = *from);
        }

        fn all_gather(&self, own: &[f32], all: &mut [f32]) {
            all.copy_from_slice(&self.numbers(own).concat());
        }

        fn broadcast(&self, from: usize, bytes: &mut [u8]) {
            bytes.copy_from_slice(&self.all(bytes)[from]);
        }
    }

    /// What each of three processes gives, in threads of this one.
    pub fn three<T: Send>(f: impl Fn(&Machines) -> T + Sync) -> Vec<T> {
        let (barrier, said) = (Arc::new(Barrier::new(3)), Arc::new(Mutex::new(vec![Vec::new(); 3])));
        let run = |index| {
            let place = Place { index, count: 3 };
            let wire = Threads { place, barrier: Arc::clone(&barrier), said: Arc::clone(&said) };
            f(&Machines::new(Box::new(wire)))
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

    fn numbers(tensor: &Tensor<2>) -> Vec<f32> {
        tensor.to_data().iter::<f32>().collect()
    }

    #[test]
    fn tensors_are_added_and_listed_in_the_order_of_the_processes() {
        let found = three(|machines| {
            machines.agree("the same").unwrap();
            let index = machines.place.index;
            assert_eq!(machines.tell(&vec![index as u8; index + 1]), [0]);
            // In this order the sum is 1; any other loses it beside the large number.
            let order = [1e8, -1e8, 1.0][index];
            let own = vec![Some(row(vec![order, 10.0 * index as f32])), None, Some(row(vec![1.0; 5]))];
            let sum = machines.add(own, &Device::flex());
            let sum: Vec<_> = sum.iter().map(|tensor| tensor.as_ref().map(numbers)).collect();
            let own: Vec<_> = (0..index).map(|i| row(vec![index as f32; i + 1])).collect();
            let lists = machines.list(&own, &Device::flex());
            (sum, lists.iter().map(|list| list.iter().map(numbers).collect()).collect::<Vec<Vec<_>>>())
        });
        for (sum, lists) in found {
            assert_eq!(sum, [Some(vec![1.0, 30.0]), None, Some(vec![3.0; 5])]);
            assert_eq!(lists, [vec![], vec![vec![1.0]], vec![vec![2.0], vec![2.0; 2]]]);
        }
    }

    #[test]
    fn a_process_without_rows_is_left_out_of_the_sum() {
        let found = three(|machines| {
            // −0 + 0 would be +0: a process without rows must not even add zero.
            let own = if machines.place.index == 1 { Vec::new() } else { vec![Some(row(vec![-0.0]))] };
            numbers(machines.add(own, &Device::flex())[0].as_ref().unwrap())[0].to_bits()
        });
        assert_eq!(found, [(-0.0_f32).to_bits(); 3]);
        let found = three(|machines| machines.add(Vec::new(), &Device::flex()).len());
        assert_eq!(found, [0; 3]);
    }

    #[test]
    fn bytes_are_counted_that_went_to_others() {
        let found = three(|machines| {
            let before = machines.sent();
            let _ = machines.add(vec![Some(row(vec![1.0; 9]))], &Device::flex());
            machines.sent() - before
        });
        // To each of two: three numbers and later their sum; the length and the shape of one tensor, two words.
        assert_eq!(found, [2 * (2 * 3 * 4 + 8 + 16); 3]);
    }

    #[test]
    fn another_experiment_is_told_everywhere() {
        let said =
            three(|machines| machines.agree(if machines.place.index == 2 { "b" } else { "a" }).unwrap_err());
        assert!(said.iter().all(|error| error.to_string().contains("process 2 has another")), "{said:?}");
    }
}
