// SPDX-License-Identifier: Apache-2.0
use std::{fmt, time::Duration};

use crate::{
    ffi::{values_of, ReplyHandle, TensorView},
    Code, Element, Error, Result,
};

/// What a tensor is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum DType {
    F32,
    F64,
    F16,
    BF16,
    U8,
    I8,
    I16,
    I32,
    I64,
    Bool,
}

impl DType {
    pub(crate) fn of(number: i32) -> Self {
        match number {
            0 => DType::F32,
            1 => DType::F64,
            2 => DType::F16,
            3 => DType::BF16,
            4 => DType::U8,
            5 => DType::I8,
            6 => DType::I16,
            7 => DType::I32,
            8 => DType::I64,
            _ => DType::Bool,
        }
    }
}

/// How an observation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Here is what the model says.
    Answered,
    /// The server refused it or failed.
    Error,
    /// A newer one took its place.
    Superseded,
    /// Its server is gone, or it got lost on the way.
    Lost,
    /// Nothing came within its limit.
    Expired,
}

impl Outcome {
    pub(crate) fn of(number: i32) -> Self {
        match number {
            0 => Outcome::Answered,
            1 => Outcome::Error,
            2 => Outcome::Superseded,
            3 => Outcome::Lost,
            _ => Outcome::Expired,
        }
    }
}

/// A tensor of a [`Reply`].
pub struct Tensor<'a>(TensorView<'a>);

impl<'a> Tensor<'a> {
    /// What it is of.
    pub fn dtype(&self) -> DType {
        self.0.dtype
    }

    /// Its sides.
    pub fn shape(&self) -> &'a [u32] {
        self.0.shape
    }

    /// Its bytes, in C order.
    pub fn bytes(&self) -> &'a [u8] {
        self.0.bytes
    }

    /// Its values, in C order, without a copy. `Mismatch` if they are of
    /// another type.
    pub fn values<T: Element>(&self) -> Result<&'a [T]> {
        let of_another = || {
            let text = format!("a tensor is of {:?}, not {:?}", self.0.dtype, T::DTYPE);
            Error::new(Code::Mismatch, text)
        };
        (self.0.dtype == T::DTYPE)
            .then(|| values_of(self.0.bytes))
            .flatten()
            .ok_or_else(of_another)
    }
}

/// How an observation ended, with what the model said.
pub struct Reply(ReplyHandle);

impl Reply {
    pub(crate) fn new(handle: ReplyHandle) -> Self {
        Reply(handle)
    }

    /// Whose end this is.
    pub fn seq(&self) -> u64 {
        self.0.seq()
    }

    /// How it ended.
    pub fn outcome(&self) -> Outcome {
        self.0.outcome()
    }

    /// Fails with what it ended with, unless it was answered.
    pub fn check(&self) -> Result<&Self> {
        match self.outcome() {
            Outcome::Answered => Ok(self),
            _ => Err(self.0.error()),
        }
    }

    /// The actions, rows by channels. Fails as [`Reply::check`]; `Empty` if
    /// there are none.
    pub fn actions(&self) -> Result<Tensor<'_>> {
        let none = || Error::new(Code::Empty, "the answer has no actions");
        self.check()?.0.actions().map(Tensor).ok_or_else(none)
    }

    /// Another result of the model, by its name. Fails as [`Reply::check`];
    /// `NotFound`.
    pub fn tensor(&self, name: &str) -> Result<Tensor<'_>> {
        let none = || Error::new(Code::NotFound, format!("the answer has no result {name}"));
        let found = self.check()?.0.tensors().find(|(own, _)| *own == name);
        found.map(|(_, tensor)| Tensor(tensor)).ok_or_else(none)
    }

    /// The names of the other results.
    pub fn names(&self) -> Vec<&str> {
        self.0.tensors().map(|(name, _)| name).collect()
    }

    /// A plan's or a verdict's text.
    pub fn text(&self) -> &str {
        self.0.text()
    }

    /// A verdict: the motion is not safe.
    pub fn is_unsafe(&self) -> bool {
        self.0.is_unsafe()
    }

    /// Who answered.
    pub fn server(&self) -> &str {
        self.0.server()
    }

    /// The number of the chunk.
    pub fn chunk_id(&self) -> u64 {
        self.0.chunk_id()
    }

    /// How long the model took, in milliseconds.
    pub fn inference_ms(&self) -> f32 {
        self.0.times().0
    }

    /// How long it waited for the model, in milliseconds.
    pub fn queue_ms(&self) -> f32 {
        self.0.times().1
    }

    /// From observing to this.
    pub fn round_trip(&self) -> Duration {
        Duration::from_micros(self.0.times().2.unsigned_abs())
    }

    /// Those that a newer one replaced, since the reply before.
    pub fn superseded(&self) -> &[u64] {
        self.0.superseded()
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Reply")
            .field("seq", &self.seq())
            .field("outcome", &self.outcome())
            .finish_non_exhaustive()
    }
}
