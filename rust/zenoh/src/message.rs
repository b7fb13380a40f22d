// SPDX-License-Identifier: Apache-2.0
//! Samples as callbacks see them, messages kept beyond, and subscribers.

use std::ffi::{c_char, c_int, c_void};

use zenoh::{
    bytes::ZBytes,
    sample::{Sample, SampleKind},
    Wait,
};

use crate::{
    border::{as_code, callback, entry, entry_or, free, give, join, ErrBuf, Hook, Slice, IO},
    mappings,
    session::{declare, keyexpr_from, Decl, Handle},
};

/// A kept sample of less is copied: it would pin a receive buffer of 64 KiB.
const COPY_BELOW_BYTES: usize = 4096;

#[repr(C)]
pub struct CSample {
    key: *const c_char,
    head: Slice,
    size: usize,
    is_error: bool,
    payload: *const ZBytes,
}

pub type OnSample = unsafe extern "C" fn(*mut c_void, *const CSample);

/// Shows one sample to C.
pub fn deliver(hook: Hook<OnSample>, key: &str, payload: &ZBytes, is_error: bool) {
    callback(|| {
        with_c_key(key, |key| {
            let sample = CSample {
                key,
                head: Slice::of(payload.slices().next().unwrap_or(&[])),
                size: payload.len(),
                is_error,
                payload,
            };
            // SAFETY: as the header says.
            unsafe { (hook.call)(hook.user, &sample) };
        })
    });
}

/// Keys have no NUL of their own, and nearly all fit on the stack.
pub fn with_c_key(key: &str, body: impl FnOnce(*const c_char)) {
    let mut short = [0u8; 256];
    if key.len() < short.len() {
        short[..key.len()].copy_from_slice(key.as_bytes());
        return body(short.as_ptr().cast());
    }
    let mut long = key.as_bytes().to_vec();
    long.push(0);
    body(long.as_ptr().cast());
}

/// `tdr_msg`.
pub struct Message {
    payload: Payload,
    pieces: Vec<Slice>, // of the payload, once they were asked for
}

enum Payload {
    Received(ZBytes),
    Joined(Vec<u8>),
}

impl Payload {
    fn joined(received: &ZBytes) -> Self {
        Payload::Joined(join(received.slices(), received.len()))
    }
}

impl Message {
    fn keep(payload: &ZBytes) -> Self {
        let payload = match payload.len() < COPY_BELOW_BYTES {
            true => Payload::joined(payload),
            false => Payload::Received(payload.clone()),
        };
        let pieces = Vec::new();
        Message { payload, pieces }
    }

    fn bytes(&mut self) -> &[u8] {
        if let Payload::Received(payload) = &self.payload {
            if payload.slices().nth(1).is_some() {
                self.payload = Payload::joined(payload);
                self.pieces.clear();
            }
        }
        match &self.payload {
            Payload::Received(payload) => payload.slices().next().unwrap_or(&[]),
            Payload::Joined(bytes) => bytes,
        }
    }

    fn pieces(&mut self) -> &[Slice] {
        if self.pieces.is_empty() {
            self.pieces = match &self.payload {
                Payload::Received(payload) => payload.slices().map(Slice::of).collect(),
                Payload::Joined(bytes) => vec![Slice::of(bytes)],
            };
        }
        &self.pieces
    }
}

#[no_mangle]
unsafe extern "C" fn tdr_keep(sample: *const CSample, ret_msg: *mut *mut Message) -> c_int {
    entry(ErrBuf::NONE, || {
        unsafe { give(ret_msg, Message::keep(&*(*sample).payload)) };
        Ok(())
    })
}

#[no_mangle]
unsafe extern "C" fn tdr_msg_bytes(msg: *mut Message, ret_bytes: *mut Slice) -> c_int {
    entry(ErrBuf::NONE, || {
        unsafe { *ret_bytes = Slice::of((*msg).bytes()) };
        Ok(())
    })
}

#[no_mangle]
unsafe extern "C" fn tdr_msg_pieces(
    msg: *mut Message,
    ret_pieces: *mut *const Slice,
    ret_count: *mut usize,
) -> c_int {
    entry(ErrBuf::NONE, || {
        let pieces = unsafe { (*msg).pieces() };
        unsafe {
            *ret_pieces = pieces.as_ptr();
            *ret_count = pieces.len();
        }
        Ok(())
    })
}

#[no_mangle]
unsafe extern "C" fn tdr_msg_free(msg: *mut Message) {
    unsafe { free(msg) };
    entry_or((), mappings::freed);
}

#[no_mangle]
unsafe extern "C" fn tdr_subscribe(
    session: *const Handle,
    keyexpr: *const c_char,
    on_sample: OnSample,
    user: *mut c_void,
    ret_decl: *mut *mut Decl,
    err: *mut c_char,
    err_size: usize,
) -> c_int {
    let err = ErrBuf::new(err, err_size);
    let hook = Hook::new(on_sample, user);
    unsafe {
        declare(session, ret_decl, err, |handle| {
            let subscriber = handle
                .session
                .declare_subscriber(keyexpr_from(keyexpr)?)
                .callback(move |sample: Sample| {
                    if sample.kind() == SampleKind::Put {
                        deliver(hook, sample.key_expr(), sample.payload(), false);
                    }
                })
                .wait();
            subscriber.map(Decl::Subscriber).map_err(as_code(IO))
        })
    }
}
