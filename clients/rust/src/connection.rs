// SPDX-License-Identifier: Apache-2.0
use std::{ffi::CString, time::Duration};

use crate::{
    ffi::{c_text, ConnectionHandle, ConnectionTexts, ModelHandle, ModelTexts},
    ObservationBuilder, Reply, Result,
};

/// How to connect. What is empty comes from the environment: `TENDON_SERVER`,
/// `TENDON_CLUSTER`, `TENDON_EXPERIMENT`, `TENDON_CLIENT_ID`,
/// `TENDON_CLIENT_TYPE`.
#[derive(Clone, Debug)]
pub struct ConnectionSettings {
    /// "tcp/host:7447": a server or a router.
    pub server: String,
    /// The cluster.
    pub cluster: String,
    /// The experiment.
    pub experiment: String,
    /// One program at a time has it.
    pub client_id: String,
    /// Sent as metadata.
    pub client_type: String,
    /// A peer of the network, not a client of the server.
    pub peer: bool,
    /// With a server on this machine.
    pub shared_memory: bool,
    /// Each observation is answered, or told why not: they queue, and none
    /// takes the place of another.
    pub every: bool,
}

impl Default for ConnectionSettings {
    fn default() -> Self {
        ConnectionSettings {
            server: String::new(),
            cluster: String::new(),
            experiment: String::new(),
            client_id: String::new(),
            client_type: String::new(),
            peer: false,
            shared_memory: true,
            every: false,
        }
    }
}

/// How a model is asked. What is empty comes from the environment:
/// `TENDON_VERSION`, `TENDON_APPLICATION`.
#[derive(Clone, Debug, Default)]
pub struct ModelSettings {
    /// Of the model.
    pub version: String,
    /// What it does.
    pub application: String,
    /// An answer is wanted within.
    pub latency_budget: Option<Duration>,
    /// 0 is highest.
    pub priority: Option<u32>,
    /// An observation expires after; five seconds.
    pub limit: Option<Duration>,
    /// Raw pictures are sent as JPEG of this quality; 0: raw.
    pub jpeg_quality: u32,
    /// But stay raw where the server shares our memory.
    pub raw_if_shared: bool,
}

fn given(field: &str, text: &str) -> Result<Option<CString>> {
    match text {
        "" => Ok(None),
        text => c_text(field, text).map(Some),
    }
}

/// In the library's unit; never 0, which would mean "not given".
pub(crate) fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX).max(1)
}

fn timeout_ms(timeout: Duration) -> i64 {
    i64::try_from(timeout.as_millis()).unwrap_or(-1)
}

/// One network session under one client's name. It lives as long as its models.
pub struct Connection(ConnectionHandle);

impl Connection {
    /// What is empty comes from the environment.
    pub fn new(server: &str, client_id: &str, client_type: &str) -> Result<Self> {
        Connection::open(&ConnectionSettings {
            server: server.into(),
            client_id: client_id.into(),
            client_type: client_type.into(),
            ..ConnectionSettings::default()
        })
    }

    /// Opens the session; there need not be a server yet. Blocks for a moment.
    pub fn open(settings: &ConnectionSettings) -> Result<Self> {
        let texts = ConnectionTexts {
            server: given("server", &settings.server)?,
            cluster: given("cluster", &settings.cluster)?,
            experiment: given("experiment", &settings.experiment)?,
            client_id: given("client_id", &settings.client_id)?,
            client_type: given("client_type", &settings.client_type)?,
            peer: settings.peer,
            shared_memory: settings.shared_memory,
            every: settings.every,
        };
        ConnectionHandle::open(&texts).map(Connection)
    }

    /// Begins to look for a server of the model, behind this call.
    pub fn model(&self, model_id: &str, settings: &ModelSettings) -> Result<Model> {
        let texts = ModelTexts {
            model_id: given("model_id", model_id)?,
            version: given("version", &settings.version)?,
            application: given("application", &settings.application)?,
            latency_budget_ms: settings.latency_budget.map_or(0, millis),
            priority: settings.priority,
            limit_ms: settings.limit.map_or(0, millis),
            jpeg_quality: settings.jpeg_quality,
            raw_if_shared: settings.raw_if_shared,
        };
        ModelHandle::open(&self.0, &texts).map(Model)
    }
}

/// One model, asked by calls that block.
pub struct Model(ModelHandle);

impl Model {
    pub(crate) fn handle(&self) -> &ModelHandle {
        &self.0
    }

    /// Begins an observation.
    pub fn observe(&self) -> ObservationBuilder<'_> {
        ObservationBuilder::new(&self.0)
    }

    /// The next end of an observation; None if none came in time. `Closed`
    /// after [`Model::stop`].
    pub fn get_result(&self, timeout: Duration) -> Result<Option<Reply>> {
        let found = self.0.get_result(timeout_ms(timeout))?;
        Ok(found.map(Reply::new))
    }

    /// Waits for a server. Fails with the reason when there is none.
    pub fn wait(&self, timeout: Duration) -> Result<()> {
        self.0.wait(timeout_ms(timeout))
    }

    /// "CONNECTING", "ATTACHED", "RECONNECTING", "STOPPED".
    pub fn state(&self) -> &'static str {
        self.0.state()
    }

    /// One of its numbers: "answered", "round_trip_ms/p50". `NotFound`.
    pub fn number(&self, name: &str) -> Result<f64> {
        self.0.number(name)
    }

    /// What is open ends as lost, and calls that wait return.
    pub fn stop(&self) {
        self.0.stop();
    }
}
