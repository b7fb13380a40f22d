// SPDX-License-Identifier: Apache-2.0
//! Queries: asking, and answering from any thread.

use std::{
    ffi::{c_char, c_int, c_void, CString},
    sync::{
        atomic::{AtomicU8, Ordering},
        Arc,
    },
    time::Duration,
};

use zenoh::{
    qos::CongestionControl,
    query::{ConsolidationMode, Query, QueryTarget, Reply},
    Wait,
};

use crate::{
    border::{
        as_code, c_string, callback, entry, free, join, parts_from, ErrBuf, Hook, Slice, INVALID,
        IO,
    },
    message::{deliver, OnSample},
    session::{declare, key_from, keyexpr_from, Decl, Handle},
};

type OnDone = unsafe extern "C" fn(*mut c_void);
type OnRequest = unsafe extern "C" fn(*mut c_void, *mut Request);

const STARTING: u8 = 0;
const STARTED: u8 = 1;
const OVER: u8 = 2;

/// Where a query's replies go. Zenoh drops it after the last of them, perhaps
/// while the query is still being started: then the starter tells C.
struct Asker {
    on_reply: Hook<OnSample>,
    on_done: Hook<OnDone>,
    state: Arc<AtomicU8>,
}

impl Asker {
    fn reply(&self, reply: &Reply) {
        match reply.result() {
            Ok(sample) => deliver(self.on_reply, sample.key_expr(), sample.payload(), false),
            Err(_) if is_timeout(reply) => {}
            Err(error) => deliver(self.on_reply, "", error.payload(), true),
        }
    }
}

/// Zenoh makes up an error reply when time is up, here or at a router.
fn is_timeout(reply: &Reply) -> bool {
    let made_up = reply.replier_id().is_none_or(|id| id.eid() == 0);
    made_up && matches!(reply.result(), Err(e) if *e.payload().to_bytes() == *b"Timeout")
}

impl Drop for Asker {
    fn drop(&mut self) {
        if self.state.swap(OVER, Ordering::AcqRel) == STARTED {
            done(self.on_done);
        }
    }
}

fn done(hook: Hook<OnDone>) {
    // SAFETY: as the header says.
    callback(|| unsafe { (hook.call)(hook.user) });
}

#[no_mangle]
unsafe extern "C" fn tdr_query(
    session: *const Handle,
    keyexpr: *const c_char,
    payload: Slice,
    timeout_ns: i64,
    on_reply: OnSample,
    on_done: OnDone,
    user: *mut c_void,
    err: *mut c_char,
    err_size: usize,
) -> c_int {
    entry(ErrBuf::new(err, err_size), || {
        let timeout_ns = u64::try_from(timeout_ns).map_err(as_code(INVALID))?;
        let state = Arc::new(AtomicU8::new(STARTING));
        let on_done = Hook::new(on_done, user);
        let asker = Asker {
            on_reply: Hook::new(on_reply, user),
            on_done,
            state: state.clone(),
        };
        unsafe { &(*session).session }
            .get(unsafe { keyexpr_from(keyexpr) }?)
            .payload(unsafe { payload.bytes() })
            .timeout(Duration::from_nanos(timeout_ns))
            .target(QueryTarget::All)
            .consolidation(ConsolidationMode::None)
            .congestion_control(CongestionControl::Drop)
            .callback(move |reply| asker.reply(&reply))
            .wait()
            .map_err(as_code(IO))?;
        if state.swap(STARTED, Ordering::AcqRel) == OVER {
            done(on_done);
        }
        Ok(())
    })
}

/// `tdr_request`.
pub struct Request {
    query: Query,
    key: CString,
    payload: Vec<u8>,
}

fn ask(hook: Hook<OnRequest>, query: Query) {
    callback(|| {
        let request = Request {
            key: c_string(query.key_expr()),
            payload: query.payload().map_or(Vec::new(), |p| p.to_bytes().into()),
            query,
        };
        // SAFETY: as the header says; C owns the request.
        unsafe { (hook.call)(hook.user, Box::into_raw(Box::new(request))) };
    });
}

#[no_mangle]
unsafe extern "C" fn tdr_serve(
    session: *const Handle,
    keyexpr: *const c_char,
    on_request: OnRequest,
    user: *mut c_void,
    ret_decl: *mut *mut Decl,
    err: *mut c_char,
    err_size: usize,
) -> c_int {
    let err = ErrBuf::new(err, err_size);
    let hook = Hook::new(on_request, user);
    unsafe {
        declare(session, ret_decl, err, |handle| {
            let queryable = handle
                .session
                .declare_queryable(keyexpr_from(keyexpr)?)
                .callback(move |query: Query| ask(hook, query))
                .wait();
            queryable.map(Decl::Queryable).map_err(as_code(IO))
        })
    }
}

#[no_mangle]
unsafe extern "C" fn tdr_request_payload(request: *const Request) -> Slice {
    Slice::of(unsafe { &(*request).payload })
}

#[no_mangle]
unsafe extern "C" fn tdr_request_key(request: *const Request) -> *const c_char {
    unsafe { (*request).key.as_ptr() }
}

#[no_mangle]
unsafe extern "C" fn tdr_reply(
    request: *const Request,
    key: *const c_char,
    parts: *const Slice,
    count: usize,
) -> c_int {
    entry(ErrBuf::NONE, || {
        let key = unsafe { key_from(key) }?;
        let parts = unsafe { parts_from(parts, count) };
        let size = parts.iter().map(|part| part.len()).sum();
        let query = unsafe { &(*request).query };
        query
            .reply(key, join(parts.iter().copied(), size))
            .wait()
            .map_err(as_code(INVALID))
    })
}

#[no_mangle]
unsafe extern "C" fn tdr_request_free(request: *mut Request) {
    unsafe { free(request) };
}
