// SPDX-License-Identifier: Apache-2.0
//! Against a real server, which `tests/test_sdk.py` starts: a model of six
//! joints and no cameras, named by the `TENDON_*` variables. Without them there
//! is nothing to test.

use std::{
    env,
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
    time::Duration,
};

use tendon::{
    AsyncConnection, Code, Connection, ConnectionSettings, Model, ModelSettings, Outcome, Result,
};

const PATIENCE: Duration = Duration::from_secs(30);
const STATE: [f32; 6] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6];

fn is_served() -> bool {
    env::var("TENDON_SERVER").is_ok()
}

fn open(client_id: &str) -> Result<Model> {
    let connection = Connection::new("", client_id, "test")?;
    let model = connection.model("", &ModelSettings::default())?;
    model.wait(PATIENCE)?;
    Ok(model) // which keeps the connection
}

#[test]
fn answers_are_their_observations() -> Result<()> {
    if !is_served() {
        return Ok(());
    }
    let model = open("rust-answers")?;
    assert_eq!(model.state(), "ATTACHED");
    for _ in 0..10 {
        let seq = model
            .observe()
            .urgency(0.8)
            .tensor_f32("state", &STATE, &[6])
            .metadata("why", "a test")
            .send()?;
        let reply = model.get_result(PATIENCE)?.expect("an answer");
        assert_eq!(reply.seq(), seq);
        assert_eq!(reply.outcome(), Outcome::Answered);
        let actions = reply.actions()?;
        assert_eq!(actions.shape(), [20, 6]);
        assert_eq!(actions.values::<f32>()?.len(), 120);
        assert_eq!(actions.values::<f64>().unwrap_err().code(), Code::Mismatch);
    }
    assert_eq!(model.number("answered")?, 10.0);
    Ok(())
}

#[test]
fn what_does_not_fit_is_an_error_with_its_text() -> Result<()> {
    if !is_served() {
        return Ok(());
    }
    let model = open("rust-errors")?;
    model.observe().tensor("state", &STATE[..2], &[2]).send()?;
    let reply = model.get_result(PATIENCE)?.expect("an error");
    assert_eq!(reply.outcome(), Outcome::Error);
    let error = reply.actions().err().expect("an error");
    assert_eq!(error.code(), Code::Mismatch);
    assert!(error.text().contains("the model wants 6"), "{error}");
    Ok(())
}

#[test]
fn what_is_wrong_with_an_observation_is_returned_at_once() -> Result<()> {
    if !is_served() {
        return Ok(());
    }
    let model = open("rust-wrong")?;
    let nameless = model.observe().metadata("a\0b", "c").send();
    assert_eq!(nameless.unwrap_err().code(), Code::Invalid);
    let long = model.observe().tensor("t", &STATE, &[1; 9]).send();
    assert_eq!(long.unwrap_err().code(), Code::Invalid);
    let cut = model.observe().tensor("t", &STATE, &[7]).send();
    assert_eq!(cut.unwrap_err().code(), Code::Format);
    assert!(model.get_result(Duration::ZERO)?.is_none());
    Ok(())
}

#[test]
fn stopping_ends_what_waits() -> Result<()> {
    if !is_served() {
        return Ok(());
    }
    let model = open("rust-stops")?;
    thread::scope(|scope| {
        let waits = scope.spawn(|| model.get_result(PATIENCE));
        model.stop();
        let ended = waits.join().expect("no panic");
        assert_eq!(ended.unwrap_err().code(), Code::Closed);
    });
    Ok(())
}

#[test]
fn what_is_missing_is_named() {
    let settings = ConnectionSettings {
        client_id: "not/an/id".into(),
        ..ConnectionSettings::default()
    };
    let error = Connection::open(&settings).err().expect("an error");
    assert_eq!(error.code(), Code::Invalid);
}

/// The smallest executor: a thread that parks.
struct Parked(Thread);

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let waker = Waker::from(Arc::new(Parked(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}

#[test]
fn futures_run_on_any_executor() -> Result<()> {
    if !is_served() {
        return Ok(());
    }
    block_on(async {
        let connection = AsyncConnection::new("", "rust-async", "test").await?;
        let model = connection.model("", &ModelSettings::default())?;
        for _ in 0..10 {
            let builder = model.observe().urgency(0.5);
            let seq = builder.tensor_f32("state", &STATE, &[6]).send().await?;
            let reply = model.get_result(PATIENCE).await?.expect("an answer");
            assert_eq!(reply.seq(), seq);
            assert_eq!(reply.actions()?.shape(), [20, 6]);
        }
        let none = model.get_result(Duration::from_millis(5)).await?;
        assert!(none.is_none());
        model.close().await?;
        connection.close().await
    })
}
