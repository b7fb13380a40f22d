// SPDX-License-Identifier: Apache-2.0
use std::time::Duration;

use crate::{
    connection::millis,
    ffi::{bytes_of, c_text, ImageParts, ModelHandle, ObservationParts, TensorParts},
    Code, DType, Element, Error, Result,
};

const RAW: i32 = 0;
const JPEG: i32 = 1;
const PNG: i32 = 2;

/// An observation that is being put together. What is wrong with it is told by
/// [`ObservationBuilder::send`].
#[must_use = "it is sent by send()"]
pub struct ObservationBuilder<'a> {
    model: &'a ModelHandle,
    parts: ObservationParts<'a>,
    wrong: Option<Error>,
}

impl<'a> ObservationBuilder<'a> {
    pub(crate) fn new(model: &'a ModelHandle) -> Self {
        ObservationBuilder {
            model,
            parts: ObservationParts::default(),
            wrong: None,
        }
    }

    fn with(mut self, change: impl FnOnce(&mut ObservationParts<'a>) -> Result<()>) -> Self {
        if self.wrong.is_none() {
            self.wrong = change(&mut self.parts).err();
        }
        self
    }

    /// 0 to 1.
    pub fn urgency(mut self, urgency: f32) -> Self {
        self.parts.urgency = urgency;
        self
    }

    /// Instead of the model's; 0 is highest.
    pub fn priority(mut self, priority: u32) -> Self {
        self.parts.priority = Some(priority);
        self
    }

    /// Actions left to play.
    pub fn steps_remaining(mut self, steps: u32) -> Self {
        self.parts.steps_remaining = Some(steps);
        self
    }

    /// Nothing is left to play.
    pub fn must_go(mut self) -> Self {
        self.parts.must_go = true;
        self
    }

    /// A greater one resets the client at the server.
    pub fn episode(mut self, episode: u64) -> Self {
        self.parts.episode = episode;
        self
    }

    /// Actions played so far.
    pub fn cursor(mut self, cursor: u64) -> Self {
        self.parts.cursor = cursor;
        self
    }

    /// Instead of the model's.
    pub fn latency_budget(mut self, budget: Duration) -> Self {
        self.parts.latency_budget_ms = millis(budget);
        self
    }

    /// Instead of the model's: it expires after this.
    pub fn limit(mut self, limit: Duration) -> Self {
        self.parts.limit_ms = millis(limit);
        self
    }

    /// The instruction.
    pub fn task(self, task: &str) -> Self {
        self.with(|parts| {
            parts.task = Some(c_text("task", task)?);
            Ok(())
        })
    }

    /// Any text by name.
    pub fn metadata(self, name: &str, text: &str) -> Self {
        self.with(|parts| {
            let pair = (c_text("metadata", name)?, c_text("metadata", text)?);
            parts.metadata.push(pair);
            Ok(())
        })
    }

    /// A tensor by name, in C order; the one called "state" is the state.
    pub fn tensor<T: Element>(self, name: &str, values: &'a [T], shape: &[u32]) -> Self {
        self.tensor_bytes(name, T::DTYPE, bytes_of(values), shape)
    }

    /// The same of 32-bit floats.
    pub fn tensor_f32(self, name: &str, values: &'a [f32], shape: &[u32]) -> Self {
        self.tensor(name, values, shape)
    }

    /// The same of any type, as bytes.
    pub fn tensor_bytes(self, name: &str, dtype: DType, bytes: &'a [u8], shape: &[u32]) -> Self {
        self.with(|parts| {
            let tensor = TensorParts {
                name: c_text("tensor", name)?,
                dtype,
                shape: shape.to_vec(),
                bytes,
            };
            check_size(name, &tensor)?;
            match name {
                "state" => parts.state = Some(tensor),
                _ => parts.tensors.push(tensor),
            }
            Ok(())
        })
    }

    fn add_image(self, name: &str, codec: i32, shape: [u32; 3], bytes: &'a [u8]) -> Self {
        self.with(|parts| {
            let name = c_text("image", name)?;
            parts.images.push(ImageParts {
                name,
                codec,
                shape,
                bytes,
            });
            Ok(())
        })
    }

    /// A raw picture: height x width x channels bytes.
    pub fn image(self, name: &str, bytes: &'a [u8], shape: [u32; 3]) -> Self {
        self.add_image(name, RAW, shape, bytes)
    }

    /// A picture that is a JPEG.
    pub fn jpeg(self, name: &str, bytes: &'a [u8]) -> Self {
        self.add_image(name, JPEG, [0; 3], bytes)
    }

    /// A picture that is a PNG.
    pub fn png(self, name: &str, bytes: &'a [u8]) -> Self {
        self.add_image(name, PNG, [0; 3], bytes)
    }

    /// Sends it, or has it wait for a server. Its seq.
    pub fn send(self) -> Result<u64> {
        match self.wrong {
            Some(wrong) => Err(wrong),
            None => self.model.observe(&self.parts),
        }
    }
}

// The library takes 0 bytes for "as many as the shape needs".
fn check_size(name: &str, tensor: &TensorParts<'_>) -> Result<()> {
    let cells: u64 = tensor.shape.iter().map(|&side| u64::from(side)).product();
    if tensor.bytes.is_empty() && cells > 0 {
        let text = format!("{name}: has no values");
        return Err(Error::new(Code::Invalid, text));
    }
    Ok(())
}
