// SPDX-License-Identifier: Apache-2.0
//! The same for async code, on any executor.

use std::{
    future::{poll_fn, Future},
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, Waker},
    thread,
    time::{Duration, Instant},
};

use crate::{
    reactor::Place, Code, Connection, ConnectionSettings, Element, Error, Model, ModelSettings,
    ObservationBuilder, Reply, Result,
};

/// What a thread leaves for a future.
struct Slot<T> {
    left: Option<T>,
    waker: Option<Waker>,
}

/// Runs what blocks for a moment on a thread of its own.
async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    let slot = Arc::new(Mutex::new(Slot {
        left: None,
        waker: None,
    }));
    let filled = slot.clone();
    let leave = move || {
        let done = work();
        let mut slot = filled.lock().unwrap_or_else(PoisonError::into_inner);
        slot.left = Some(done);
        if let Some(waker) = slot.waker.take() {
            waker.wake();
        }
    };
    thread::Builder::new()
        .name("td-open".into())
        .spawn(leave)
        .map_err(|error| Error::new(Code::Io, error.to_string()))?;
    let take = |context: &mut Context<'_>| {
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        slot.waker = Some(context.waker().clone());
        slot.left.take().map_or(Poll::Pending, Poll::Ready)
    };
    Ok(poll_fn(take).await)
}

/// One network session under one client's name, for async code.
pub struct AsyncConnection(Connection);

impl AsyncConnection {
    /// What is empty comes from the environment.
    pub async fn new(server: &str, client_id: &str, client_type: &str) -> Result<Self> {
        AsyncConnection::open(ConnectionSettings {
            server: server.into(),
            client_id: client_id.into(),
            client_type: client_type.into(),
            ..ConnectionSettings::default()
        })
        .await
    }

    /// Opens the session; there need not be a server yet.
    pub async fn open(settings: ConnectionSettings) -> Result<Self> {
        let opened = off_thread(move || Connection::open(&settings)).await?;
        opened.map(AsyncConnection)
    }

    /// Begins to look for a server of the model, behind this call.
    pub fn model(&self, model_id: &str, settings: &ModelSettings) -> Result<AsyncModel> {
        self.0.model(model_id, settings).map(AsyncModel)
    }

    /// Closes it; the session itself ends with the last of its models.
    pub async fn close(self) -> Result<()> {
        off_thread(move || drop(self)).await
    }
}

/// One model, for async code.
pub struct AsyncModel(Model);

impl AsyncModel {
    /// Begins an observation.
    pub fn observe(&self) -> AsyncObservationBuilder<'_> {
        AsyncObservationBuilder(self.0.observe())
    }

    /// The next end of an observation; None if none came in time.
    pub fn get_result(
        &self,
        timeout: Duration,
    ) -> impl Future<Output = Result<Option<Reply>>> + '_ {
        NextReply {
            model: &self.0,
            until: Instant::now().checked_add(timeout),
            place: Place::default(),
        }
    }

    /// The model itself: its state, its numbers, to stop it.
    pub fn blocking(&self) -> &Model {
        &self.0
    }

    /// Leaves the server. Dropping it does the same, but may block meanwhile.
    pub async fn close(self) -> Result<()> {
        off_thread(move || drop(self)).await
    }
}

struct NextReply<'a> {
    model: &'a Model,
    until: Option<Instant>, // None: beyond all times
    place: Place,
}

impl Future for NextReply<'_> {
    type Output = Result<Option<Reply>>;

    // First the place, then another look, so that nothing slips in between.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let fd = self.model.handle().fd()?;
        let until = self.until;
        self.place.wait(fd, until, context.waker().clone())?;
        let over = until.is_some_and(|until| until <= Instant::now());
        match self.model.get_result(Duration::ZERO)? {
            None if !over => Poll::Pending,
            found => {
                self.place.leave();
                Poll::Ready(Ok(found))
            }
        }
    }
}

/// An observation that is being put together, as [`ObservationBuilder`].
#[must_use = "it is sent by send().await"]
pub struct AsyncObservationBuilder<'a>(ObservationBuilder<'a>);

impl<'a> AsyncObservationBuilder<'a> {
    /// 0 to 1.
    pub fn urgency(self, urgency: f32) -> Self {
        AsyncObservationBuilder(self.0.urgency(urgency))
    }

    /// A tensor by name, in C order; the one called "state" is the state.
    pub fn tensor<T: Element>(self, name: &str, values: &'a [T], shape: &[u32]) -> Self {
        AsyncObservationBuilder(self.0.tensor(name, values, shape))
    }

    /// The same of 32-bit floats.
    pub fn tensor_f32(self, name: &str, values: &'a [f32], shape: &[u32]) -> Self {
        self.tensor(name, values, shape)
    }

    /// Any text by name.
    pub fn metadata(self, name: &str, text: &str) -> Self {
        AsyncObservationBuilder(self.0.metadata(name, text))
    }

    /// Everything else, with the other builder's methods.
    pub fn with(self, more: impl FnOnce(ObservationBuilder<'a>) -> ObservationBuilder<'a>) -> Self {
        AsyncObservationBuilder(more(self.0))
    }

    /// Sends it, or has it wait for a server. Its seq. It waits for nobody but,
    /// for milliseconds, the network.
    pub async fn send(self) -> Result<u64> {
        self.0.send()
    }
}
