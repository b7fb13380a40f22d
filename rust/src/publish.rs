// SPDX-License-Identifier: Apache-2.0
//! Publishers. A put takes the cheapest way that its size and the peers allow.

use std::{
    any::Any,
    ffi::{c_char, c_int, c_void},
    sync::Arc,
};

use zenoh::{
    bytes::ZBytes,
    internal::buffers::{ZBuf, ZSliceBuffer},
    pubsub::Publisher,
    qos::{CongestionControl, Priority, Reliability},
    shm::ZShmMut,
    Wait,
};

use crate::{
    border::{
        as_code, entry, fail, free, give, join, parts_from, ErrBuf, Hook, Outcome, Slice, FULL,
        INVALID, IO, UNSUPPORTED,
    },
    links::Links,
    session::{key_from, Handle},
    shm::{Pool, WORTHWHILE_BYTES},
};

/// A part below this is cheaper copied than borrowed.
const BORROW_BYTES: usize = 1024;

/// `tdr_pub`.
pub struct Pub {
    publisher: Publisher<'static>,
    links: Arc<Links>,
    pool: Option<Arc<Pool>>,
}

type OnRelease = unsafe extern "C" fn(*mut c_void);

/// Gives C its buffers back when the last who borrows them is done.
#[derive(Debug)]
struct Release(Hook<OnRelease>);

impl Drop for Release {
    fn drop(&mut self) {
        // SAFETY: as the header says; dropped once.
        unsafe { (self.0.call)(self.0.user) };
    }
}

#[derive(Debug)]
struct Borrowed {
    bytes: &'static [u8], // for as long as `_owner` is there
    _owner: Arc<Release>,
}

impl ZSliceBuffer for Borrowed {
    fn as_slice(&self) -> &[u8] {
        self.bytes
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

fn borrow(parts: &[&'static [u8]], owner: Arc<Release>) -> ZBytes {
    let mut payload = ZBuf::empty();
    let mut small = Vec::new();
    for &bytes in parts {
        if bytes.len() < BORROW_BYTES {
            small.extend_from_slice(bytes);
            continue;
        }
        if !small.is_empty() {
            payload.push_zslice(std::mem::take(&mut small).into());
        }
        let _owner = owner.clone();
        payload.push_zslice(Borrowed { bytes, _owner }.into());
    }
    if !small.is_empty() {
        payload.push_zslice(small.into());
    }
    payload.into()
}

impl Pub {
    fn pool_for(&self, size: usize) -> Option<&Pool> {
        let worthwhile = size >= WORTHWHILE_BYTES && self.links.any_shares_memory();
        self.pool.as_deref().filter(|_| worthwhile)
    }

    fn payload(&self, parts: &[&'static [u8]], release: Option<Release>) -> ZBytes {
        let size = parts.iter().map(|part| part.len()).sum();
        let shared = self
            .pool_for(size)
            .and_then(|pool| pool.gather(parts, size));
        match (shared, release) {
            (Some(shared), _) => shared,
            (None, Some(release)) if size >= BORROW_BYTES => borrow(parts, Arc::new(release)),
            (None, _lent) => join(parts.iter().copied(), size).into(),
        }
    }

    fn lend(&self, size: usize) -> Outcome<ZShmMut> {
        let Some(pool) = self.pool_for(size) else {
            return fail(UNSUPPORTED, "it would not travel through shared memory");
        };
        match pool.lend(size) {
            Some(buffer) => Ok(buffer),
            None => fail(FULL, "the pool is full"),
        }
    }
}

#[no_mangle]
unsafe extern "C" fn tdr_publish(
    session: *const Handle,
    key: *const c_char,
    priority: u8,
    reliable: bool,
    express: bool,
    ret_pub: *mut *mut Pub,
    err: *mut c_char,
    err_size: usize,
) -> c_int {
    entry(ErrBuf::new(err, err_size), || {
        let handle = unsafe { &*session };
        let publisher = handle
            .session
            .declare_publisher(unsafe { key_from(key) }?)
            .congestion_control(CongestionControl::Drop)
            .priority(Priority::try_from(priority).map_err(as_code(INVALID))?)
            .express(express)
            .reliability(Reliability::from(reliable))
            .wait()
            .map_err(as_code(IO))?;
        let publisher = Pub {
            publisher,
            links: handle.links.clone(),
            pool: handle.pool.clone(),
        };
        unsafe { give(ret_pub, publisher) };
        Ok(())
    })
}

#[no_mangle]
unsafe extern "C" fn tdr_unpublish(publisher: *mut Pub) {
    unsafe { free(publisher) };
}

#[no_mangle]
unsafe extern "C" fn tdr_put(
    publisher: *const Pub,
    parts: *const Slice,
    count: usize,
    release: Option<OnRelease>,
    user: *mut c_void,
) -> c_int {
    let release = release.map(|call| Release(Hook::new(call, user)));
    entry(ErrBuf::NONE, || -> Outcome {
        // SAFETY: used until the put returns, or borrowed together with
        // `release`, which says when they are used no more.
        let parts = unsafe { parts_from::<'static>(parts, count) };
        let publisher = unsafe { &*publisher };
        let payload = publisher.payload(&parts, release);
        publisher.publisher.put(payload).wait().map_err(as_code(IO))
    })
}

#[no_mangle]
unsafe extern "C" fn tdr_lend(
    publisher: *const Pub,
    size: usize,
    ret_loan: *mut *mut ZShmMut,
    ret_bytes: *mut *mut c_void,
) -> c_int {
    entry(ErrBuf::NONE, || {
        let mut loan = unsafe { &*publisher }.lend(size)?;
        unsafe {
            *ret_bytes = loan.as_mut_ptr().cast();
            give(ret_loan, loan);
        }
        Ok(())
    })
}

#[no_mangle]
unsafe extern "C" fn tdr_loan_put(publisher: *const Pub, loan: *mut ZShmMut) -> c_int {
    entry(ErrBuf::NONE, || {
        let payload = ZBytes::from(*unsafe { Box::from_raw(loan) });
        let publisher = unsafe { &(*publisher).publisher };
        publisher.put(payload).wait().map_err(as_code(IO))
    })
}

#[no_mangle]
unsafe extern "C" fn tdr_loan_free(loan: *mut ZShmMut) {
    unsafe { free(loan) };
}

#[no_mangle]
unsafe extern "C" fn tdr_matched(publisher: *const Pub, ret_matched: *mut bool) -> c_int {
    entry(ErrBuf::NONE, || {
        let publisher = unsafe { &(*publisher).publisher };
        let status = publisher.matching_status().wait().map_err(as_code(IO))?;
        unsafe { *ret_matched = status.matching() };
        Ok(())
    })
}
