// SPDX-License-Identifier: Apache-2.0
//! The border to C, with what Zenoh adds to it: callbacks, and the parts of messages.

use std::{cell::Cell, ffi::c_void};

pub use tendon_border::*;

thread_local! {
    static CALLBACKS: Cell<u32> = const { Cell::new(0) };
}

/// Runs a callback into C from a thread of Zenoh's, marked as such.
pub fn callback(body: impl FnOnce()) {
    CALLBACKS.set(CALLBACKS.get() + 1);
    entry_or((), body);
    CALLBACKS.set(CALLBACKS.get() - 1);
}

/// Refuses what would wait for the callback that it runs in.
pub fn outside_callback() -> Outcome {
    match CALLBACKS.get() {
        0 => Ok(()),
        _ => fail(BUSY, "not inside a callback: it would wait for itself"),
    }
}

/// A function of C's with its `user`, which C promises to be good on any thread.
#[derive(Clone, Copy, Debug)]
pub struct Hook<F> {
    pub call: F,
    pub user: *mut c_void,
}

impl<F> Hook<F> {
    pub fn new(call: F, user: *mut c_void) -> Self {
        Hook { call, user }
    }
}

// SAFETY: the header says on which threads hooks run, and C keeps to it.
unsafe impl<F> Send for Hook<F> {}
unsafe impl<F> Sync for Hook<F> {}

/// # Safety
/// As `Slice::bytes`, for each of the parts.
pub unsafe fn parts_from<'a>(parts: *const Slice, count: usize) -> Vec<&'a [u8]> {
    (0..count)
        .map(|i| unsafe { (*parts.add(i)).bytes() })
        .collect()
}

/// glibc copies more than this with `rep movsb`, which some processors take ten
/// times as long for where the two places lie badly to each other.
const COPY_BYTES: usize = 4096;

pub fn join<'a>(parts: impl Iterator<Item = &'a [u8]>, size: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size);
    for piece in parts.flat_map(|part| part.chunks(COPY_BYTES)) {
        bytes.extend_from_slice(piece);
    }
    bytes
}

#[no_mangle]
pub extern "C" fn tdr_panics() -> u64 {
    panics()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{env, process, sync::mpsc, thread, time::Duration};
    use zenoh::{sample::Sample, Config, Session, Wait};

    fn open(role: &str) -> Session {
        let socket = env::temp_dir().join(format!("td-border-{}", process::id()));
        let endpoint = format!("[\"unixsock-stream/{}\"]", socket.display());
        let mut config = Config::default();
        for (key, value) in [
            ("listen/endpoints", "[]"),
            ("scouting/multicast/enabled", "false"),
            (&format!("{role}/endpoints"), &endpoint),
        ] {
            config.insert_json5(key, value).unwrap();
        }
        zenoh::open(config).wait().unwrap()
    }

    #[test]
    fn a_panic_in_a_callback_is_counted_and_the_session_goes_on() {
        let (far, near) = (open("listen"), open("connect"));
        let (heard, hears) = mpsc::channel();
        let subscriber = far
            .declare_subscriber("border")
            .callback(move |sample: Sample| {
                callback(|| match sample.payload().len() {
                    0 => panic!("nothing to hear"),
                    size => heard.send((size, thread::current().id())).unwrap(),
                });
                assert!(outside_callback().is_ok(), "the mark has stayed");
            })
            .wait()
            .unwrap();
        let publisher = near.declare_publisher("border").wait().unwrap();
        while !publisher.matching_status().wait().unwrap().matching() {
            thread::yield_now();
        }

        let before = tdr_panics();
        for size in [1, 0, 0, 2] {
            publisher.put(vec![7; size]).wait().unwrap();
        }
        for expected in [1, 2] {
            let (size, of) = hears.recv_timeout(Duration::from_secs(60)).unwrap();
            assert_eq!(size, expected);
            assert_ne!(of, thread::current().id());
        }
        assert_eq!(tdr_panics(), before + 2);
        subscriber.undeclare().wait().unwrap();
    }
}
