// SPDX-License-Identifier: Apache-2.0
//! Ask models that run on Tendon servers.
//!
//! ```no_run
//! use std::time::Duration;
//! use tendon::{Connection, ModelSettings};
//!
//! # fn main() -> Result<(), tendon::Error> {
//! let connection = Connection::new("tcp/localhost:7447", "planner-1", "")?;
//! let model = connection.model("pi0", &ModelSettings::default())?;
//! let state = [0.0f32; 6];
//! model.observe().urgency(0.8).tensor_f32("state", &state, &[6]).send()?;
//! if let Some(result) = model.get_result(Duration::from_secs(5))? {
//!     println!("{} actions", result.actions()?.shape()[0]);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! An observation has a number and ends exactly once: answered, with an error,
//! superseded by a newer one, lost or expired. [`Model`] blocks;
//! [`AsyncModel`]'s futures run on any executor. The promises are those of
//! `tendon/connect.h`.

#![warn(missing_docs)]

mod aio;
mod connection;
mod error;
#[allow(unsafe_code)]
mod ffi;
mod observation;
mod reactor;
mod result;

pub use aio::{AsyncConnection, AsyncModel, AsyncObservationBuilder};
pub use connection::{Connection, ConnectionSettings, Model, ModelSettings};
pub use error::{Code, Error};
pub use ffi::Element;
pub use observation::ObservationBuilder;
pub use result::{DType, Outcome, Reply, Tensor};

/// What may fail.
pub type Result<T> = std::result::Result<T, Error>;
