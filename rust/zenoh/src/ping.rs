// SPDX-License-Identifier: Apache-2.0
//! A bare Zenoh ping-pong: the figure that the rest of Tendon is measured
//! against. It has Tendon's settings of Zenoh, so that the two differ in nothing
//! but what is ours, and its bytes are ready: it copies nothing.

use std::{
    ffi::{c_char, c_int},
    sync::mpsc::{self, Receiver},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use zenoh::{
    bytes::ZBytes,
    pubsub::{Publisher, Subscriber},
    qos::{CongestionControl, Priority, Reliability},
    sample::Sample,
    shm::{PosixShmProviderBackend, ShmProvider, ShmProviderBuilder, ZShm},
    Session, Wait,
};

use crate::{
    border::{as_code, entry, fail, free, give, str_from, ErrBuf, Outcome, IO, TIMEOUT},
    config::Config,
    shm::WORTHWHILE_BYTES,
    sweep::sweep_at_exit,
};

const ROUND_LIMIT: Duration = Duration::from_millis(500);
const LOSSES_LIMIT: usize = 10;
const MATCH_LIMIT: Duration = Duration::from_secs(10);
const POOL_BYTES: usize = 64 << 20;

/// `tdr_echo`: dropped in this order.
pub struct Echo {
    _pings: Subscriber<()>,
    _answerer: Option<Answerer>,
    _session: Session,
}

/// The thread of an echo that hands over. It ends with the pings' callback.
struct Answerer(Option<JoinHandle<()>>);

impl Drop for Answerer {
    fn drop(&mut self) {
        let _ = self.0.take().map(JoinHandle::join);
    }
}

/// `tdr_ping`: dropped in this order.
pub struct Ping {
    _pongs: Subscriber<()>,
    pings: Publisher<'static>,
    arrivals: Receiver<Instant>,
    payload: ZBytes,
    _pool: Option<Pool>, // in which it lies
    _session: Session,
}

type Pool = ShmProvider<PosixShmProviderBackend>;

fn open(listen: &[&str], connect: &[&str], shared_memory: bool) -> Outcome<Session> {
    if shared_memory {
        sweep_at_exit();
    }
    let owned = |list: &[&str]| list.iter().map(|at| at.to_string()).collect();
    let config = Config::peer(owned(listen), owned(connect), shared_memory);
    zenoh::open(config.zenoh()?).wait().map_err(as_code(IO))
}

impl Echo {
    fn open(
        endpoint: &str,
        key: &str,
        shared_memory: bool,
        hands_over: bool,
        reply_bytes: usize,
    ) -> Outcome<Self> {
        let session = open(&[endpoint], &[], shared_memory)?;
        let pongs = session
            .declare_publisher(format!("{key}/pong"))
            .congestion_control(CongestionControl::Drop)
            .priority(Priority::InteractiveHigh)
            .express(true)
            .reliability(Reliability::Reliable)
            .wait()
            .map_err(as_code(IO))?;
        let reply = ZBytes::from(vec![0u8; reply_bytes]);
        let answer = move || drop(pongs.put(reply.clone()).wait());
        let pings = session.declare_subscriber(format!("{key}/ping"));
        let (pings, answerer) = match hands_over {
            false => (pings.callback(move |_| answer()).wait(), None),
            true => {
                // The ping goes along: a server frees it after it has answered.
                let (arrived, arrivals) = mpsc::channel::<Sample>();
                let thread = thread::spawn(move || arrivals.iter().for_each(|_| answer()));
                let callback = move |ping| drop(arrived.send(ping));
                (
                    pings.callback(callback).wait(),
                    Some(Answerer(Some(thread))),
                )
            }
        };
        Ok(Echo {
            _pings: pings.map_err(as_code(IO))?,
            _answerer: answerer,
            _session: session,
        })
    }
}

/// Copies them to where both processes see them.
fn share(bytes: &[u8]) -> Outcome<(ZBytes, Pool)> {
    let pool = ShmProviderBuilder::default_backend(POOL_BYTES)
        .wait()
        .map_err(as_code(IO))?;
    let mut buffer = pool.alloc(bytes.len()).wait().map_err(as_code(IO))?;
    buffer.copy_from_slice(bytes);
    Ok((ZShm::from(buffer).into(), pool))
}

impl Ping {
    fn open(endpoint: &str, key: &str, shared_memory: bool, payload: usize) -> Outcome<Self> {
        let session = open(&[], &[endpoint], shared_memory)?;
        let (arrived, arrivals) = mpsc::channel();
        let pongs = session
            .declare_subscriber(format!("{key}/pong"))
            .callback(move |_: Sample| {
                let _ = arrived.send(Instant::now());
            })
            .wait()
            .map_err(as_code(IO))?;
        let pings = session
            .declare_publisher(format!("{key}/ping"))
            .congestion_control(CongestionControl::Drop)
            .priority(Priority::Data)
            .reliability(Reliability::BestEffort)
            .wait()
            .map_err(as_code(IO))?;
        let bytes: Vec<u8> = (0..payload).map(|i| i as u8).collect();
        let (payload, pool) = match shared_memory && payload >= WORTHWHILE_BYTES {
            true => share(&bytes).map(|(payload, pool)| (payload, Some(pool)))?,
            false => (bytes.into(), None),
        };
        let ping = Ping {
            _pongs: pongs,
            pings,
            arrivals,
            payload,
            _pool: pool,
            _session: session,
        };
        ping.wait_for_echo()?;
        Ok(ping)
    }

    fn wait_for_echo(&self) -> Outcome {
        let until = Instant::now() + MATCH_LIMIT;
        while Instant::now() < until {
            let status = self.pings.matching_status().wait().map_err(as_code(IO))?;
            if status.matching() && self.round().is_ok() {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(5));
        }
        fail(TIMEOUT, "no echo answers")
    }

    fn round(&self) -> Outcome<Duration> {
        let start = Instant::now();
        let payload = self.payload.clone();
        self.pings.put(payload).wait().map_err(as_code(IO))?;
        match self.arrivals.recv_timeout(ROUND_LIMIT) {
            Ok(arrival) => Ok(arrival - start),
            Err(_) => fail(TIMEOUT, "a ping was not answered"),
        }
    }

    /// Both ways drop when congested: a lost round is run again.
    fn run(&self, rounds: &mut [i64]) -> Outcome {
        let mut losses = 0;
        for round in rounds {
            *round = loop {
                match self.round() {
                    Ok(took) => break took.as_nanos() as i64,
                    Err(lost) if losses == LOSSES_LIMIT => return Err(lost),
                    Err(_) => losses += 1,
                }
                while self.arrivals.recv_timeout(ROUND_LIMIT).is_ok() {}
            };
        }
        Ok(())
    }
}

#[no_mangle]
unsafe extern "C" fn tdr_echo_open(
    endpoint: *const c_char,
    key: *const c_char,
    shared_memory: bool,
    hands_over: bool,
    reply_bytes: usize,
    ret_echo: *mut *mut Echo,
    err: *mut c_char,
    err_size: usize,
) -> c_int {
    entry(ErrBuf::new(err, err_size), || unsafe {
        let (endpoint, key) = (str_from(endpoint)?, str_from(key)?);
        let echo = Echo::open(endpoint, key, shared_memory, hands_over, reply_bytes)?;
        give(ret_echo, echo);
        Ok(())
    })
}

#[no_mangle]
unsafe extern "C" fn tdr_echo_close(echo: *mut Echo) {
    unsafe { free(echo) };
}

#[no_mangle]
unsafe extern "C" fn tdr_ping_open(
    endpoint: *const c_char,
    key: *const c_char,
    shared_memory: bool,
    payload_bytes: usize,
    ret_ping: *mut *mut Ping,
    err: *mut c_char,
    err_size: usize,
) -> c_int {
    entry(ErrBuf::new(err, err_size), || unsafe {
        let (endpoint, key) = (str_from(endpoint)?, str_from(key)?);
        let ping = Ping::open(endpoint, key, shared_memory, payload_bytes)?;
        give(ret_ping, ping);
        Ok(())
    })
}

#[no_mangle]
unsafe extern "C" fn tdr_ping_run(ping: *const Ping, count: usize, ret_ns: *mut i64) -> c_int {
    entry(ErrBuf::NONE, || unsafe {
        (*ping).run(std::slice::from_raw_parts_mut(ret_ns, count))
    })
}

#[no_mangle]
unsafe extern "C" fn tdr_ping_close(ping: *mut Ping) {
    unsafe { free(ping) };
}
