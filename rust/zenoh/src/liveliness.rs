// SPDX-License-Identifier: Apache-2.0
//! Liveliness: tokens, and those who watch them.

use std::ffi::{c_char, c_int, c_void};

use zenoh::{
    sample::{Sample, SampleKind},
    Wait,
};

use crate::{
    border::{as_code, callback, ErrBuf, Hook, IO},
    message::with_c_key,
    session::{declare, key_from, keyexpr_from, Decl, Handle},
};

type OnAlive = unsafe extern "C" fn(*mut c_void, *const c_char, bool);

fn notify(hook: Hook<OnAlive>, sample: &Sample) {
    let alive = sample.kind() == SampleKind::Put;
    callback(|| {
        // SAFETY: as the header says.
        with_c_key(sample.key_expr(), |key| unsafe {
            (hook.call)(hook.user, key, alive)
        })
    });
}

#[no_mangle]
unsafe extern "C" fn tdr_token(
    session: *const Handle,
    key: *const c_char,
    ret_decl: *mut *mut Decl,
    err: *mut c_char,
    err_size: usize,
) -> c_int {
    let err = ErrBuf::new(err, err_size);
    unsafe {
        declare(session, ret_decl, err, |handle| {
            let liveliness = handle.session.liveliness();
            let token = liveliness.declare_token(key_from(key)?).wait();
            token.map(Decl::Token).map_err(as_code(IO))
        })
    }
}

#[no_mangle]
unsafe extern "C" fn tdr_watch(
    session: *const Handle,
    keyexpr: *const c_char,
    on_alive: OnAlive,
    user: *mut c_void,
    ret_decl: *mut *mut Decl,
    err: *mut c_char,
    err_size: usize,
) -> c_int {
    let err = ErrBuf::new(err, err_size);
    let hook = Hook::new(on_alive, user);
    unsafe {
        declare(session, ret_decl, err, |handle| {
            let liveliness = handle.session.liveliness();
            let subscriber = liveliness
                .declare_subscriber(keyexpr_from(keyexpr)?)
                .history(true)
                .callback(move |sample: Sample| notify(hook, &sample))
                .wait();
            subscriber.map(Decl::Subscriber).map_err(as_code(IO))
        })
    }
}
