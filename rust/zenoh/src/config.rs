// SPDX-License-Identifier: Apache-2.0
//! Zenoh's configuration from ours.

use std::{
    ffi::c_char,
    fs,
    hash::{BuildHasher, RandomState},
    os::unix::fs::FileTypeExt,
};

use zenoh::config::EndPoint;

use crate::border::{as_code, fail, str_from, Outcome, EXISTS, INVALID};

const MIB: usize = 1 << 20;
const UNIX_PATH_MAX: usize = 107 - ".lock".len();

/// How long a put waits for room. Express messages take a batch each, so that a
/// burst of them needs more batches than Zenoh's two, and a sending thread that
/// loses the processor for a moment must not cost an action.
const WAIT_BEFORE_DROP_US: u64 = 5000;

/// How much longer a put of many fragments waits in all. Zenoh's 50 ms let go of
/// every observation of two raw frames on a link of 100 Mb/s, which takes 150 ms
/// for one, and half of one is worth nothing. Whoever forwards for others keeps
/// to them.
const WAIT_FOR_FRAGMENTS_US: u64 = 500_000;
const ROUTER_WAIT_FOR_FRAGMENTS_US: u64 = 50_000;

/// Of each link, in buffers of 64 KiB, touched when they are needed: Zenoh's one
/// buffer has every further fragment of a message allocate and clear another.
const RX_BUFFERS_BYTES: usize = 4 * MIB;

/// Received; the wire's own limit, `TD_WIRE_MAX_BYTES`.
const MAX_MESSAGE_BYTES: usize = 64 * MIB;

/// A host that is silent for longer is dead.
const LEASE_MS: u64 = 2500;

/// How long opening waits for the first connection.
pub const FIRST_CONNECTION_MS: u64 = 200;

#[repr(C)]
pub struct CConfig {
    mode: u32,
    listen: *const *const c_char,
    listen_count: usize,
    connect: *const *const c_char,
    connect_count: usize,
    shared_memory: bool,
    shm_pool_bytes: usize,
}

#[derive(Clone, Copy, PartialEq)]
pub enum Mode {
    Peer,
    Client,
    Router,
}

pub struct Config {
    pub mode: Mode,
    pub listen: Vec<String>,
    pub connect: Vec<String>,
    pub shared_memory: bool,
    pub shm_pool_bytes: usize,
    pub retry_ms: u64, // each session has its own, so that a fleet spreads
}

impl Config {
    /// # Safety
    /// `config` is as the header says.
    pub unsafe fn from_c(config: &CConfig) -> Outcome<Self> {
        let mode = match config.mode {
            0 => Mode::Peer,
            1 => Mode::Client,
            2 => Mode::Router,
            other => return fail(INVALID, format!("mode {other} is not one")),
        };
        let checked = Config {
            mode,
            listen: unsafe { endpoints(config.listen, config.listen_count) }?,
            connect: unsafe { endpoints(config.connect, config.connect_count) }?,
            shared_memory: config.shared_memory,
            shm_pool_bytes: or_default(config.shm_pool_bytes, 16 * MIB),
            retry_ms: 200 + RandomState::new().hash_one(0) % 300,
        };
        checked.check_mode()?;
        checked
            .listen
            .iter()
            .try_for_each(|at| check_unix_path(at))?;
        Ok(checked)
    }

    /// A peer with every setting as a robot or a server has it by default.
    pub fn peer(listen: Vec<String>, connect: Vec<String>, shared_memory: bool) -> Self {
        Config {
            mode: Mode::Peer,
            listen,
            connect,
            shared_memory,
            shm_pool_bytes: 16 * MIB,
            retry_ms: 200,
        }
    }

    fn check_mode(&self) -> Outcome {
        if self.mode != Mode::Client {
            return Ok(());
        }
        if !self.listen.is_empty() {
            return fail(INVALID, "a client does not listen");
        }
        if self.connect.is_empty() {
            return fail(INVALID, "a client needs an endpoint to connect to");
        }
        Ok(())
    }

    /// A client is connected by our own loop, one attempt at a time: with a
    /// longer timeout Zenoh would not return from opening.
    pub fn zenoh(&self) -> Outcome<zenoh::Config> {
        let (mode, connect_ms, delay_ms) = match self.mode {
            Mode::Peer => ("peer", -1, FIRST_CONNECTION_MS),
            Mode::Client => ("client", 0, FIRST_CONNECTION_MS),
            Mode::Router => ("router", -1, 0),
        };
        let fragments_us = match self.mode {
            Mode::Router => ROUTER_WAIT_FOR_FRAGMENTS_US,
            _ => WAIT_FOR_FRAGMENTS_US,
        };
        let text = format!(
            r#"{{
                mode: "{mode}",
                listen: {{ endpoints: [{listen}], timeout_ms: 0, exit_on_failure: true }},
                connect: {{
                    endpoints: [{connect}],
                    timeout_ms: {connect_ms},
                    exit_on_failure: false,
                    retry: {{ period_init_ms: {retry_ms}, period_max_ms: 2000, period_increase_factor: 1.5 }},
                }},
                scouting: {{
                    delay: {delay_ms},
                    multicast: {{ enabled: false }},
                    gossip: {{ enabled: false }},
                }},
                transport: {{
                    link: {{
                        tx: {{
                            lease: {LEASE_MS},
                            queue: {{
                                size: {{ interactive_high: 16, data: 8 }},
                                congestion_control: {{ drop: {{
                                    wait_before_drop: {WAIT_BEFORE_DROP_US},
                                    max_wait_before_drop_fragments: {fragments_us},
                                }} }},
                            }},
                        }},
                        rx: {{ buffer_size: {RX_BUFFERS_BYTES}, max_message_size: {MAX_MESSAGE_BYTES} }},
                    }},
                    shared_memory: {{
                        enabled: {shared_memory},
                        transport_optimization: {{ enabled: false }},
                    }},
                }},
            }}"#,
            listen = quoted(&self.listen),
            connect = quoted(&self.connect),
            retry_ms = self.retry_ms,
            shared_memory = self.shared_memory,
        );
        zenoh::Config::from_json5(&text).map_err(as_code(INVALID))
    }
}

fn or_default(value: usize, default: usize) -> usize {
    match value {
        0 => default,
        _ => value,
    }
}

fn quoted(endpoints: &[String]) -> String {
    let quoted: Vec<_> = endpoints.iter().map(|at| format!("\"{at}\"")).collect();
    quoted.join(",")
}

unsafe fn endpoints(list: *const *const c_char, count: usize) -> Outcome<Vec<String>> {
    (0..count)
        .map(|i| unsafe { str_from(*list.add(i)) }.and_then(endpoint))
        .collect()
}

/// What Zenoh would only find out, and hide, while it tries to connect.
pub fn endpoint(text: &str) -> Outcome<String> {
    let not_one = |why: &str| fail(INVALID, format!("endpoint \"{text}\": {why}"));
    if text.contains(|c: char| c.is_control() || c == '"' || c == '\\') {
        return not_one("has a character that no endpoint has");
    }
    let Ok(parsed) = text.parse::<EndPoint>() else {
        return not_one("must read PROTOCOL/ADDRESS, as in tcp/127.0.0.1:7447");
    };
    let address = parsed.address();
    match parsed.protocol().as_str() {
        "tcp" | "tls" | "udp" => {
            let port = address.as_str().rsplit_once(':').map(|(_, port)| port);
            if port.is_none_or(|port| port.parse::<u16>().is_err()) {
                return not_one("the address must end in :PORT");
            }
        }
        "unixsock-stream" => {
            if !(1..=UNIX_PATH_MAX).contains(&address.as_str().len()) {
                return not_one("the path must have 1 to 102 bytes");
            }
        }
        _ => return not_one("the protocol must be tcp, tls, udp or unixsock-stream"),
    }
    Ok(text.to_string())
}

/// Zenoh removes whatever it finds where it wants to bind: let that be a socket.
fn check_unix_path(endpoint: &str) -> Outcome {
    let Some(path) = endpoint.strip_prefix("unixsock-stream/") else {
        return Ok(());
    };
    match fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => {
            fail(EXISTS, format!("{path}: is there and is not a socket"))
        }
        _ => Ok(()),
    }
}
