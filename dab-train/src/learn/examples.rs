//! Training examples: a table on the device, or rows (images, features on disk) that are read while the network learns.
//!
//! ```text
//! rows of a mini-batch → inputs [batch, inputs] and targets on the device
//! ```
//!
//! Rows are decoded and changed by all cores, a few mini-batches ahead of the device. One that cannot be read does not
//! stop the threads: the fault is kept, and the epoch that met it does not count.

use std::sync::{
    Arc, Mutex,
    mpsc::{Receiver, sync_channel},
};

use anyhow::{Error, Result};
use burn::tensor::{Device, Tensor, TensorData};

use super::indexed_rows::IndexedRows;
use crate::model::tensors::indices;

/// Mini-batches that wait for the device.
const AHEAD: usize = 3;

/// Where examples lie.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "a run has one or two of them")]
pub enum Inputs {
    /// On the device, already standardised.
    Table {
        /// `[examples, inputs]`.
        inputs: Tensor<2>,
        /// One target per example: numbers `[examples, targets]`, or one-hot rows `[examples, classes]`.
        wanted: Tensor<2>,
    },
    /// Rows of classes, read when they are needed.
    Streamed(Streamed),
}

/// Rows of classes.
#[derive(Clone, Debug)]
pub struct Streamed {
    /// The rows.
    pub rows: Arc<dyn IndexedRows>,
    /// How many classes.
    pub classes: usize,
    /// Where batches go.
    pub device: Device,
    /// Seed of the changes that rows undergo.
    pub seed: u64,
    /// What went wrong in a reading thread.
    pub fault: Arc<Mutex<Option<Error>>>,
}

/// Training examples.
#[derive(Clone, Debug)]
pub struct Examples {
    /// Inputs and targets.
    pub inputs: Inputs,
    /// Each example's class, when there are classes.
    pub labels: Option<Vec<u32>>,
    /// Factor L `[inputs, sources]` of the noise added in step 1, L Lᵀ its covariance.
    pub noise: Option<Tensor<2>>,
}

impl Examples {
    /// How many.
    pub fn len(&self) -> usize {
        match &self.inputs {
            Inputs::Table { inputs, .. } => inputs.dims()[0],
            Inputs::Streamed(streamed) => streamed.rows.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where batches lie.
    pub fn device(&self) -> Device {
        match &self.inputs {
            Inputs::Table { inputs, .. } => inputs.device(),
            Inputs::Streamed(streamed) => streamed.device.clone(),
        }
    }

    /// Inputs and targets of the examples `rows`, as they are.
    pub fn select(&self, rows: &[usize]) -> (Tensor<2>, Tensor<2>) {
        match &self.inputs {
            Inputs::Table { inputs, wanted } => {
                let rows = indices(rows.iter().copied(), &inputs.device());
                (inputs.clone().select(0, rows.clone()), wanted.clone().select(0, rows))
            }
            Inputs::Streamed(streamed) => self.upload(streamed, rows, streamed.read(rows, None)),
        }
    }

    /// Mini-batches one after the other; streamed rows changed at random by the streams of `epoch` and read ahead. Of each,
    /// only the places in `needed` count, when it is given: other machines have the rest.
    pub fn stream<'a>(
        &'a self,
        batches: &'a [Vec<usize>],
        needed: Option<Vec<Vec<usize>>>,
        epoch: usize,
    ) -> Box<dyn Iterator<Item = (Tensor<2>, Tensor<2>)> + 'a> {
        match &self.inputs {
            Inputs::Table { .. } => Box::new(batches.iter().map(|rows| self.select(rows))),
            Inputs::Streamed(streamed) => {
                let read = streamed.ahead(batches.to_vec(), needed, format!("change {epoch}"));
                Box::new(batches.iter().zip(read).map(|(rows, numbers)| self.upload(streamed, rows, numbers)))
            }
        }
    }

    /// What went wrong in reading since the last call.
    pub fn sound(&self) -> Result<()> {
        let Inputs::Streamed(streamed) = &self.inputs else { return Ok(()) };
        streamed.fault.lock().ok().and_then(|mut fault| fault.take()).map_or(Ok(()), Err)
    }

    fn upload(&self, streamed: &Streamed, rows: &[usize], numbers: Vec<f32>) -> (Tensor<2>, Tensor<2>) {
        let x = TensorData::new(numbers, [rows.len(), streamed.rows.cols()]);
        let labels = self.labels.iter().flat_map(|labels| rows.iter().map(|&row| labels[row]));
        let wanted = one_hot(&labels.collect::<Vec<_>>(), streamed.classes, &streamed.device);
        (Tensor::from_data(x, &streamed.device), wanted)
    }
}

/// Classes as rows with a 1 at their place `[examples, classes]`.
pub fn one_hot(labels: &[u32], classes: usize, device: &Device) -> Tensor<2> {
    let mut rows = vec![0.0_f32; labels.len() * classes];
    labels.iter().enumerate().for_each(|(row, &label)| rows[row * classes + label as usize] = 1.0);
    Tensor::from_data(TensorData::new(rows, [labels.len(), classes]), device)
}

impl Streamed {
    /// Numbers of `rows`; zeros, and a fault, when one cannot be read.
    fn read(&self, rows: &[usize], change: Option<&str>) -> Vec<f32> {
        let change = change.map(|name| (self.seed, name));
        self.rows.numbers(rows, change).unwrap_or_else(|error| {
            if let Ok(mut fault) = self.fault.lock() {
                fault.get_or_insert(error);
            }
            vec![0.0; rows.len() * self.rows.cols()]
        })
    }

    /// The rows at some places of a mini-batch, zeros at the others.
    fn read_some(&self, rows: &[usize], places: &[usize], change: &str) -> Vec<f32> {
        let cols = self.rows.cols();
        let some: Vec<usize> = places.iter().map(|&place| rows[place]).collect();
        let mut numbers = vec![0.0; rows.len() * cols];
        for (row, &place) in self.read(&some, Some(change)).chunks_exact(cols).zip(places) {
            numbers[place * cols..(place + 1) * cols].copy_from_slice(row);
        }
        numbers
    }

    /// Reads `batches` in a thread of its own, a few ahead of the receiver, and ends with it.
    fn ahead(
        &self,
        batches: Vec<Vec<usize>>,
        needed: Option<Vec<Vec<usize>>>,
        change: String,
    ) -> Receiver<Vec<f32>> {
        let (send, receive) = sync_channel(AHEAD);
        let streamed = self.clone();
        std::thread::spawn(move || {
            for (at, rows) in batches.iter().enumerate() {
                let numbers = match &needed {
                    Some(needed) => streamed.read_some(rows, &needed[at], &change),
                    None => streamed.read(rows, Some(&change)),
                };
                if send.send(numbers).is_err() {
                    return;
                }
            }
        });
        receive
    }
}
