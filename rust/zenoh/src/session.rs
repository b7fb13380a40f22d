// SPDX-License-Identifier: Apache-2.0
//! Sessions, and the end of what is declared on them.

use std::{
    ffi::{c_char, c_int, CString},
    sync::{mpsc, Arc, OnceLock},
    time::Duration,
};

use tokio::task::JoinHandle;
use zenoh::{
    internal::runtime::{Runtime, RuntimeBuilder, ZRuntime},
    key_expr::KeyExpr,
    liveliness::LivelinessToken,
    pubsub::Subscriber,
    query::Queryable,
    Session, Wait,
};

use crate::{
    border::{
        as_code, c_string, entry, entry_or, give, outside_callback, str_from, ErrBuf, Fail,
        Outcome, EXISTS, INVALID, IO,
    },
    config::{CConfig, Config, Mode, FIRST_CONNECTION_MS},
    links::Links,
    mappings::Mappings,
    shm::Pool,
};

/// `tdr_session`.
pub struct Handle {
    pub session: Session,
    pub links: Arc<Links>,
    pub pool: Option<Arc<Pool>>,
    refusal: Option<CString>,
    id: CString,
    runtime: Runtime,
    connector: Option<JoinHandle<()>>,
}

/// `tdr_decl`.
pub enum Decl {
    Subscriber(Subscriber<()>),
    Queryable(Queryable<()>),
    Token(LivelinessToken),
    Links(Arc<Links>, usize),
}

impl Handle {
    fn open(mut config: Config) -> Outcome<Self> {
        let pool = match config.shared_memory {
            true => Pool::new(config.shm_pool_bytes).map(Some),
            false => Ok(None),
        };
        config.shared_memory = matches!(pool, Ok(Some(_)));
        let mappings = Mappings::new();
        let builder = RuntimeBuilder::new(config.zenoh()?).shm_clients(Some(mappings.storage()));
        let runtime = ZRuntime::Application
            .block_in_place(builder.build())
            .map_err(as_code(IO))?;
        let session = zenoh::session::init(runtime.clone().into())
            .wait()
            .map_err(as_code(IO))?;
        let mut handle = Handle {
            links: Links::follow(&session, mappings)?,
            id: c_string(&session.zid().to_string()),
            refusal: pool.as_ref().err().map(|why| c_string(why)),
            pool: pool.unwrap_or(None).map(Arc::new),
            session,
            runtime,
            connector: None,
        };
        handle.start(&config)?;
        Ok(handle)
    }

    fn start(&mut self, config: &Config) -> Outcome {
        if config.mode == Mode::Client {
            self.connect_in_background(config.retry_ms);
            return Ok(());
        }
        ZRuntime::Application
            .block_in_place(self.runtime.start())
            .map_err(start_failure)
    }

    /// Tries until connected. Once a client has been, Zenoh itself reconnects.
    fn connect_in_background(&mut self, retry_ms: u64) {
        let mut runtime = self.runtime.clone();
        let (tried, first_try) = mpsc::channel();
        self.connector = Some(ZRuntime::Net.spawn(async move {
            while runtime.start().await.is_err() {
                let _ = tried.send(());
                tokio::time::sleep(Duration::from_millis(retry_ms)).await;
            }
        }));
        let _ = first_try.recv_timeout(Duration::from_millis(FIRST_CONNECTION_MS));
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if let Some(connector) = self.connector.take() {
            connector.abort();
        }
        let _ = self.session.close().wait_callbacks().wait();
        let _ = self.runtime.close().wait();
    }
}

fn start_failure(error: zenoh::Error) -> Fail {
    let Fail { text, .. } = as_code(IO)(error);
    let in_use = [
        "Address already in use",
        "os error 98",
        "Unable to acquire lock",
    ];
    let code = match in_use.iter().any(|sign| text.contains(sign)) {
        true => EXISTS,
        false => IO,
    };
    Fail { code, text }
}

/// Zenoh shows its counters only as Prometheus text.
fn congestion_drops(runtime: &Runtime) -> u64 {
    let mut text = String::new();
    let (per_transport, per_link, disconnected, per_key) = (false, false, true, false);
    let _ =
        runtime
            .stats()
            .encode_metrics(&mut text, per_transport, per_link, disconnected, per_key);
    text.lines()
        .filter(|line| line.starts_with("zenoh_tx_network_message_dropped_payload_bytes_count"))
        .filter(|line| line.contains("reason=\"congestion\""))
        .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
        .sum()
}

/// # Safety
/// `text` is a string of C's.
pub unsafe fn keyexpr_from(text: *const c_char) -> Outcome<KeyExpr<'static>> {
    let text = unsafe { str_from(text) }?;
    KeyExpr::try_from(text.to_string()).map_err(as_code(INVALID))
}

/// A key without wildcards.
///
/// # Safety
/// As `keyexpr_from`.
pub unsafe fn key_from(text: *const c_char) -> Outcome<KeyExpr<'static>> {
    let key = unsafe { keyexpr_from(text) }?;
    match key.is_wild() {
        false => Ok(key),
        true => Err(Fail {
            code: INVALID,
            text: format!("{key}: wildcards are for those who listen"),
        }),
    }
}

/// Hands C what `body` declares on the session.
///
/// # Safety
/// `session` is open, and `ret_decl` is C's output.
pub unsafe fn declare(
    session: *const Handle,
    ret_decl: *mut *mut Decl,
    err: ErrBuf,
    body: impl FnOnce(&Handle) -> Outcome<Decl>,
) -> c_int {
    entry(err, || unsafe {
        give(ret_decl, body(&*session)?);
        Ok(())
    })
}

#[no_mangle]
extern "C" fn tdr_zenoh_version() -> *const c_char {
    static VERSION: OnceLock<CString> = OnceLock::new();
    let version = || {
        let release = zenoh::GIT_VERSION.trim_start_matches('v');
        c_string(release.split('-').next().unwrap_or(release))
    };
    VERSION.get_or_init(version).as_ptr()
}

#[no_mangle]
unsafe extern "C" fn tdr_open(
    config: *const CConfig,
    ret_session: *mut *mut Handle,
    err: *mut c_char,
    err_size: usize,
) -> c_int {
    entry(ErrBuf::new(err, err_size), || {
        outside_callback()?;
        let config = unsafe { Config::from_c(&*config) }?;
        let handle = Handle::open(config)?;
        unsafe { give(ret_session, handle) };
        Ok(())
    })
}

#[no_mangle]
unsafe extern "C" fn tdr_close(session: *mut Handle) -> c_int {
    entry(ErrBuf::NONE, || {
        outside_callback()?;
        drop(unsafe { Box::from_raw(session) });
        Ok(())
    })
}

#[no_mangle]
unsafe extern "C" fn tdr_id(session: *const Handle) -> *const c_char {
    unsafe { (*session).id.as_ptr() }
}

#[no_mangle]
unsafe extern "C" fn tdr_shm_refusal(session: *const Handle) -> *const c_char {
    let refusal = unsafe { (*session).refusal.as_ref() };
    refusal.map_or(std::ptr::null(), |why| why.as_ptr())
}

#[no_mangle]
unsafe extern "C" fn tdr_shm_misses(session: *const Handle) -> u64 {
    unsafe { (*session).pool.as_ref() }.map_or(0, |pool| pool.misses())
}

#[no_mangle]
unsafe extern "C" fn tdr_drops(session: *const Handle) -> u64 {
    entry_or(0, || congestion_drops(unsafe { &(*session).runtime }))
}

#[no_mangle]
unsafe extern "C" fn tdr_undeclare(decl: *mut Decl) -> c_int {
    entry(ErrBuf::NONE, || {
        outside_callback()?;
        match *unsafe { Box::from_raw(decl) } {
            Decl::Subscriber(decl) => decl.undeclare().wait_callbacks().wait(),
            Decl::Queryable(decl) => decl.undeclare().wait_callbacks().wait(),
            Decl::Token(decl) => decl.undeclare().wait(),
            Decl::Links(links, id) => {
                links.unwatch(id);
                Ok(())
            }
        }
        .map_err(as_code(IO))
    })
}
