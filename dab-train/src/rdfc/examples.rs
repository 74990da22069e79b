//! Training examples: a table on the device, or images that are read while the network learns.
//!
//! ```text
//! rows of a mini-batch → inputs [batch, inputs] and targets on the device
//! ```
//!
//! Images are decoded and changed by all cores, a few mini-batches ahead of the device. An image that cannot be read
//! does not stop the threads: the fault is kept, and the epoch that met it does not count.

use std::sync::{
    Arc, Mutex,
    mpsc::{Receiver, sync_channel},
};

use anyhow::{Error, Result};
use burn::tensor::{Device, Tensor, TensorData};

use crate::{
    bottleneck::indices,
    data::images::{ImageSet, Normalise},
    network::Wanted,
};

/// Mini-batches that wait for the device.
const AHEAD: usize = 3;

/// Where examples lie.
#[derive(Clone, Debug)]
pub enum Inputs {
    /// On the device, already standardised.
    Table {
        /// `[examples, inputs]`.
        inputs: Tensor<2>,
        /// One target per example.
        wanted: Wanted,
    },
    /// Images of classes, read when they are needed.
    Images(ImageInputs),
}

/// Images of classes.
#[derive(Clone, Debug)]
pub struct ImageInputs {
    /// The images.
    pub set: ImageSet,
    /// Bytes → inputs.
    pub normalise: Normalise,
    /// How many classes.
    pub classes: usize,
    /// Where batches go.
    pub device: Device,
    /// Seed of the changes that training images undergo.
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
    /// Factor L `[inputs, inputs]` of the noise added in step 1, L Lᵀ its covariance.
    pub noise: Option<Tensor<2>>,
}

impl Examples {
    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        match &self.inputs {
            Inputs::Table { inputs, .. } => inputs.dims()[0],
            Inputs::Images(images) => images.set.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Where batches lie.
    #[must_use]
    pub fn device(&self) -> Device {
        match &self.inputs {
            Inputs::Table { inputs, .. } => inputs.device(),
            Inputs::Images(images) => images.device.clone(),
        }
    }

    /// Inputs and targets of the examples `rows`, as they are.
    #[must_use]
    pub fn select(&self, rows: &[usize]) -> (Tensor<2>, Wanted) {
        match &self.inputs {
            Inputs::Table { inputs, wanted } => {
                let rows = indices(rows.iter().copied(), &inputs.device());
                let wanted = match wanted {
                    Wanted::Values(values) => Wanted::Values(values.clone().select(0, rows.clone())),
                    Wanted::Classes(one_hot) => Wanted::Classes(one_hot.clone().select(0, rows.clone())),
                };
                (inputs.clone().select(0, rows), wanted)
            }
            Inputs::Images(images) => self.upload(images, rows, images.read(rows, None)),
        }
    }

    /// Mini-batches one after the other; images changed at random by the streams of `epoch` and read ahead.
    pub fn stream<'a>(
        &'a self,
        batches: &'a [Vec<usize>],
        epoch: usize,
    ) -> Box<dyn Iterator<Item = (Tensor<2>, Wanted)> + 'a> {
        match &self.inputs {
            Inputs::Table { .. } => Box::new(batches.iter().map(|rows| self.select(rows))),
            Inputs::Images(images) => {
                let read = images.ahead(batches.to_vec(), format!("change {epoch}"));
                Box::new(batches.iter().zip(read).map(|(rows, numbers)| self.upload(images, rows, numbers)))
            }
        }
    }

    /// What went wrong in reading since the last call.
    ///
    /// # Errors
    /// The first fault.
    pub fn sound(&self) -> Result<()> {
        let Inputs::Images(images) = &self.inputs else { return Ok(()) };
        images.fault.lock().ok().and_then(|mut fault| fault.take()).map_or(Ok(()), Err)
    }

    fn upload(&self, images: &ImageInputs, rows: &[usize], numbers: Vec<f32>) -> (Tensor<2>, Wanted) {
        let shape = [rows.len(), images.set.cols()];
        let x = Tensor::from_data(TensorData::new(numbers, shape), &images.device);
        let mut one_hot = vec![0.0_f32; rows.len() * images.classes];
        for (row, label) in rows.iter().zip(one_hot.chunks_exact_mut(images.classes.max(1))) {
            if let Some(labels) = &self.labels {
                label[labels[*row] as usize] = 1.0;
            }
        }
        let wanted = Tensor::from_data(TensorData::new(one_hot, [rows.len(), images.classes]), &images.device);
        (x, Wanted::Classes(wanted))
    }
}

impl ImageInputs {
    /// Numbers of the images `rows`; zeros, and a fault, when one cannot be read.
    fn read(&self, rows: &[usize], change: Option<&str>) -> Vec<f32> {
        let change = change.map(|name| (self.seed, name));
        self.set.numbers(rows, &self.normalise, change).unwrap_or_else(|error| {
            if let Ok(mut fault) = self.fault.lock() {
                fault.get_or_insert(error);
            }
            vec![0.0; rows.len() * self.set.cols()]
        })
    }

    /// Reads `batches` in a thread of its own, a few ahead of the receiver, and ends with it.
    fn ahead(&self, batches: Vec<Vec<usize>>, change: String) -> Receiver<Vec<f32>> {
        let (send, receive) = sync_channel(AHEAD);
        let images = self.clone();
        std::thread::spawn(move || {
            for rows in &batches {
                if send.send(images.read(rows, Some(&change))).is_err() {
                    return;
                }
            }
        });
        receive
    }
}
