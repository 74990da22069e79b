//! Steps of the optimisers on the processor, in f32: one pass over a parameter in place of a dozen.
//!
//! Every number goes through the operations of `learn/optimiser.rs` in their order, so the bits are the same.

use burn::backend::{Backend, Dispatch, Flex, backend_extension, tensor::FloatTensor};
use burn::tensor::Tensor;
use dab_core::isa::{Isa, Kernel};
use rayon::prelude::*;

use super::Host;
use crate::support::simd::Widest;

/// Numbers that one thread moves at a time.
const SHARE: usize = 1 << 16;

/// How Adam moves a parameter w by its gradient g.
#[derive(Clone, Copy, Debug)]
pub struct Adam {
    /// η.
    pub rate: f32,
    /// β of both moments, and 1 − β.
    pub keep: [f32; 2],
    pub take: [f32; 2],
    /// 1 − βᵗ of both.
    pub correction: [f32; 2],
    pub epsilon: f32,
    /// w is multiplied by this first (AdamW), and this times w is added to g (Adam).
    pub shrink: f32,
    pub decay: f32,
}

/// How SGD with Nesterov momentum moves a parameter.
#[derive(Clone, Copy, Debug)]
pub struct Nesterov {
    /// η and ρ.
    pub rate: f32,
    pub momentum: f32,
    /// This times w is added to g.
    pub decay: f32,
}

/// One step; the moments are zeros at first. Returns w and both moments.
pub fn adam(value: Tensor<2>, gradient: Tensor<2>, moments: [Tensor<2>; 2], by: Adam) -> [Tensor<2>; 3] {
    let [value, gradient] = [value, gradient].map(Tensor::into_dispatch);
    let [first, second] = moments.map(Tensor::into_dispatch);
    let (value, first, second) = <Dispatch as Update>::adam_step(value, gradient, first, second, by);
    [value, first, second].map(Tensor::from_dispatch)
}

/// One step; the velocity is zeros at first. Returns w and the velocity.
pub fn nesterov(value: Tensor<2>, gradient: Tensor<2>, velocity: Tensor<2>, by: Nesterov) -> [Tensor<2>; 2] {
    let [value, gradient, velocity] = [value, gradient, velocity].map(Tensor::into_dispatch);
    let (value, velocity) = <Dispatch as Update>::nesterov_step(value, gradient, velocity, by);
    [value, velocity].map(Tensor::from_dispatch)
}

/// The steps as operations of a backend.
#[backend_extension(Flex)]
pub trait Update: Backend {
    /// [`adam`].
    fn adam_step(
        value: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        first: FloatTensor<Self>,
        second: FloatTensor<Self>,
        by: Adam,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);
    /// [`nesterov`].
    fn nesterov_step(
        value: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        velocity: FloatTensor<Self>,
        by: Nesterov,
    ) -> (FloatTensor<Self>, FloatTensor<Self>);
}

/// One number of a parameter, its gradient and its memory: what becomes of the number and of the memory.
trait Step: Copy + Send + Sync {
    fn step(self, value: f32, gradient: f32, memory: [f32; 2]) -> (f32, [f32; 2]);
}

impl Step for Adam {
    #[inline(always)]
    fn step(self, value: f32, gradient: f32, [first, second]: [f32; 2]) -> (f32, [f32; 2]) {
        let gradient = gradient + value * self.decay;
        let first = first * self.keep[0] + gradient * self.take[0];
        let second = second * self.keep[1] + (gradient * gradient) * self.take[1];
        let scale = (second / self.correction[1]).sqrt() + self.epsilon;
        let step = first / self.correction[0] / scale;
        (value * self.shrink - step * self.rate, [first, second])
    }
}

impl Step for Nesterov {
    #[inline(always)]
    fn step(self, value: f32, gradient: f32, [velocity, _]: [f32; 2]) -> (f32, [f32; 2]) {
        let gradient = gradient + value * self.decay;
        let velocity = velocity * self.momentum + gradient;
        let step = gradient + velocity * self.momentum;
        (value - step * self.rate, [velocity, 0.0])
    }
}

/// A loop over some numbers: `value` becomes the new one, memories of one or two kinds change.
struct Loop<'a, S> {
    value: &'a mut [f32],
    gradient: &'a [f32],
    first: &'a mut [f32],
    second: Option<&'a mut [f32]>,
    by: S,
}

impl<S: Step> Kernel for Loop<'_, S> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Self { value, gradient, first, second, by } = self;
        let each = value.iter_mut().zip(gradient).zip(first);
        match second {
            Some(second) => each.zip(second).for_each(|(((value, &gradient), first), second)| {
                (*value, [*first, *second]) = by.step(*value, gradient, [*first, *second]);
            }),
            None => each.for_each(|((value, &gradient), first)| {
                (*value, [*first, _]) = by.step(*value, gradient, [*first, 0.0]);
            }),
        }
    }
}

/// In one piece, and alone if nobody else has it, so that writing copies nothing.
fn whole(tensor: Host) -> Host {
    let found = tensor.to_contiguous();
    drop(tensor);
    found
}

impl Update for Flex {
    fn adam_step(value: Host, gradient: Host, first: Host, second: Host, by: Adam) -> (Host, Host, Host) {
        let [mut value, gradient, mut first, mut second] = [value, gradient, first, second].map(whole);
        let isa = Widest::detect();
        let memory = first.storage_mut::<f32>().par_chunks_mut(SHARE);
        let memory = memory.zip(second.storage_mut::<f32>().par_chunks_mut(SHARE));
        let each = value.storage_mut::<f32>().par_chunks_mut(SHARE);
        let each = each.zip(gradient.storage::<f32>().par_chunks(SHARE)).zip(memory);
        each.for_each(|((value, gradient), (first, second))| {
            isa.run(Loop { value, gradient, first, second: Some(second), by });
        });
        (value, first, second)
    }

    fn nesterov_step(value: Host, gradient: Host, velocity: Host, by: Nesterov) -> (Host, Host) {
        let [mut value, gradient, mut velocity] = [value, gradient, velocity].map(whole);
        let isa = Widest::detect();
        let each = value.storage_mut::<f32>().par_chunks_mut(SHARE);
        let each = each.zip(gradient.storage::<f32>().par_chunks(SHARE));
        each.zip(velocity.storage_mut::<f32>().par_chunks_mut(SHARE)).for_each(
            |((value, gradient), first)| {
                isa.run(Loop { value, gradient, first, second: None, by });
            },
        );
        (value, velocity)
    }
}
