// SPDX-License-Identifier: Apache-2.0
//! Publishers. A put takes the cheapest way that its size and the peers allow.

use std::{
    any::Any,
    ffi::{c_char, c_int, c_void},
    mem,
    num::NonZeroUsize,
    ptr,
    sync::Arc,
};

use zenoh::{
    bytes::ZBytes,
    internal::buffers::{ZBuf, ZSliceBuffer},
    pubsub::Publisher,
    qos::{CongestionControl, Priority, Reliability},
    shm::{OwnedShmBuf, ZShm, ZShmMut},
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
            payload.push_zslice(mem::take(&mut small).into());
        }
        let _owner = owner.clone();
        payload.push_zslice(Borrowed { bytes, _owner }.into());
    }
    if !small.is_empty() {
        payload.push_zslice(small.into());
    }
    payload.into()
}

/// `tdr_loan`.
pub enum Loan {
    Open(ZShmMut),
    Shown(ZShm),
    Moving, // from one to the other
}

impl Loan {
    fn start(&self) -> *const u8 {
        match self {
            Loan::Open(buffer) => buffer.as_ptr(),
            Loan::Shown(buffer) => buffer.as_ptr(),
            Loan::Moving => ptr::null(),
        }
    }

    /// Ends with its first `size` bytes; nobody writes to it from now on.
    fn show(&mut self, size: usize) {
        *self = match mem::replace(self, Loan::Moving) {
            Loan::Open(mut buffer) => {
                NonZeroUsize::new(size).and_then(|size| buffer.try_resize(size));
                Loan::Shown(buffer.into())
            }
            other => other,
        };
    }

    fn shown(&self) -> Option<&ZShm> {
        match self {
            Loan::Shown(buffer) => Some(buffer),
            _ => None,
        }
    }
}

/// The part as it lies in one of the loans.
fn lent(part: &[u8], loans: &mut [&mut Loan]) -> Option<ZBytes> {
    if part.len() < WORTHWHILE_BYTES {
        return None;
    }
    let loan = loans
        .iter_mut()
        .find(|loan| loan.start() == part.as_ptr())?;
    loan.show(part.len());
    let shown = loan.shown().filter(|shown| shown.len() == part.len());
    shown.map(|shown| shown.clone().into())
}

/// Parts in their order: the loans as they are, all else copied.
fn compose(parts: &[&[u8]], loans: &mut [&mut Loan]) -> ZBytes {
    let mut payload = ZBytes::writer();
    for part in parts {
        payload.append(lent(part, loans).unwrap_or_else(|| part.to_vec().into()));
    }
    payload.finish()
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
    ret_loan: *mut *mut Loan,
    ret_bytes: *mut *mut c_void,
) -> c_int {
    entry(ErrBuf::NONE, || {
        let mut buffer = unsafe { &*publisher }.lend(size)?;
        unsafe {
            *ret_bytes = buffer.as_mut_ptr().cast();
            give(ret_loan, Loan::Open(buffer));
        }
        Ok(())
    })
}

#[no_mangle]
unsafe extern "C" fn tdr_loan_put(publisher: *const Pub, loan: *mut Loan) -> c_int {
    entry(ErrBuf::NONE, || {
        let Loan::Open(buffer) = *(unsafe { Box::from_raw(loan) }) else {
            return fail(INVALID, "it was shown already");
        };
        let payload = ZBytes::from(buffer);
        let publisher = unsafe { &(*publisher).publisher };
        publisher.put(payload).wait().map_err(as_code(IO))
    })
}

#[no_mangle]
unsafe extern "C" fn tdr_put_loans(
    publisher: *const Pub,
    parts: *const Slice,
    count: usize,
    loans: *const *mut Loan,
    loan_count: usize,
) -> c_int {
    entry(ErrBuf::NONE, || {
        // SAFETY: used until the put returns; the loans are this thread's alone.
        let parts = unsafe { parts_from(parts, count) };
        let mut loans: Vec<&mut Loan> = (0..loan_count)
            .map(|i| unsafe { &mut **loans.add(i) })
            .collect();
        let payload = compose(&parts, &mut loans);
        let publisher = unsafe { &(*publisher).publisher };
        publisher.put(payload).wait().map_err(as_code(IO))
    })
}

#[no_mangle]
unsafe extern "C" fn tdr_loan_free(loan: *mut Loan) {
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
