// SPDX-License-Identifier: Apache-2.0
//! The border to C that every crate here stands behind: codes, texts, strings and
//! panics, as `include/tendon_border.h` says.

use std::{
    any::Any,
    cell::Cell,
    env,
    ffi::{c_char, c_int, CStr, CString},
    panic::{self, catch_unwind, AssertUnwindSafe},
    sync::{
        atomic::{AtomicU64, Ordering},
        Once,
    },
    thread,
};

pub const INVALID: c_int = -1;
pub const EXISTS: c_int = -2;
pub const BUSY: c_int = -3;
pub const IO: c_int = -4;
pub const TIMEOUT: c_int = -5;
pub const INTERNAL: c_int = -6;
pub const UNSUPPORTED: c_int = -7;
pub const FULL: c_int = -8;
pub const LIMIT: c_int = -9;
pub const MISMATCH: c_int = -10;

/// A failure as C will see it.
#[derive(Debug)]
pub struct Fail {
    pub code: c_int,
    pub text: String,
}

pub type Outcome<T = ()> = Result<T, Fail>;

pub fn fail<T>(code: c_int, text: impl ToString) -> Outcome<T> {
    Err(Fail {
        code,
        text: text.to_string(),
    })
}

/// Any error of Zenoh's, under `code`.
pub fn as_code<E: ToString>(code: c_int) -> impl FnOnce(E) -> Fail {
    move |error| Fail {
        code,
        text: without_places(error.to_string()),
    }
}

/// Zenoh ends its texts with " at /path/to/file.rs:62.", which helps nobody.
fn without_places(mut text: String) -> String {
    while let Some(start) = text.find(" at /") {
        let Some(end) = text[start..].find(".rs:").map(|at| start + at + 4) else {
            break;
        };
        let line = text[end..].find(|c: char| !c.is_ascii_digit());
        let end = line.map_or(text.len(), |digits| end + digits);
        text.replace_range(start..end, "");
    }
    text
}

/// Where C wants the text of a failure.
pub struct ErrBuf {
    text: *mut c_char,
    size: usize,
}

impl ErrBuf {
    pub const NONE: ErrBuf = ErrBuf {
        text: std::ptr::null_mut(),
        size: 0,
    };

    pub fn new(text: *mut c_char, size: usize) -> Self {
        ErrBuf { text, size }
    }

    fn is_there(&self) -> bool {
        !self.text.is_null() && self.size > 0
    }

    fn write(&self, message: &str) {
        if !self.is_there() {
            return;
        }
        let mut end = message.len().min(self.size - 1);
        while !message.is_char_boundary(end) {
            end -= 1;
        }
        // SAFETY: C gave us `size` bytes at `text`, and end < size.
        unsafe {
            std::ptr::copy_nonoverlapping(message.as_ptr(), self.text.cast(), end);
            *self.text.add(end) = 0;
        }
    }
}

static PANICS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static REPORTED: Cell<bool> = const { Cell::new(false) }; // C gets the text of a panic
}

/// Rust says every panic on stderr; one whose text C gets is for C alone to say.
fn say_panics_once() {
    static HOOKED: Once = Once::new();
    HOOKED.call_once(|| {
        let say = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !REPORTED.get() || env::var_os("RUST_BACKTRACE").is_some() {
                say(info);
            }
        }));
    });
}

fn catch<T>(reported: bool, body: impl FnOnce() -> T) -> thread::Result<T> {
    say_panics_once();
    let before = REPORTED.replace(reported);
    let outcome = catch_unwind(AssertUnwindSafe(body));
    REPORTED.set(before);
    outcome
}

fn caught(panic: &(dyn Any + Send)) -> String {
    PANICS.fetch_add(1, Ordering::Relaxed);
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panic in Rust: {}", text.unwrap_or("no text"))
}

/// Runs what C called, and lets no panic out.
pub fn entry(err: ErrBuf, body: impl FnOnce() -> Outcome) -> c_int {
    let outcome =
        catch(err.is_there(), body).unwrap_or_else(|panic| fail(INTERNAL, caught(panic.as_ref())));
    match outcome {
        Ok(()) => 0,
        Err(failed) => {
            err.write(&failed.text);
            failed.code
        }
    }
}

/// As `entry`, for what answers with a value: `otherwise` after a panic.
pub fn entry_or<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    catch(false, body).unwrap_or_else(|panic| {
        caught(panic.as_ref());
        otherwise
    })
}

/// Frees what C gave back.
///
/// # Safety
/// `handle` came from `give` and is used no more.
pub unsafe fn free<T>(handle: *mut T) {
    entry_or((), || drop(unsafe { Box::from_raw(handle) }));
}

/// Hands ownership to C.
///
/// # Safety
/// `slot` is C's output.
pub unsafe fn give<T>(slot: *mut *mut T, value: T) {
    unsafe { *slot = Box::into_raw(Box::new(value)) };
}

/// # Safety
/// `text` is NUL-terminated and outlives the result.
pub unsafe fn str_from<'a>(text: *const c_char) -> Outcome<&'a str> {
    unsafe { CStr::from_ptr(text) }
        .to_str()
        .map_err(as_code(INVALID))
}

pub fn c_string(text: &str) -> CString {
    CString::new(text.replace('\0', "?")).unwrap_or_default()
}

/// Bytes of C's, as `td_slice`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Slice {
    data: *const u8,
    size: usize,
}

impl Slice {
    pub fn of(bytes: &[u8]) -> Self {
        Slice {
            data: bytes.as_ptr(),
            size: bytes.len(),
        }
    }

    /// # Safety
    /// The bytes are there for as long as the result is used.
    pub unsafe fn bytes<'a>(self) -> &'a [u8] {
        match self.size {
            0 => &[],
            size => unsafe { std::slice::from_raw_parts(self.data, size) },
        }
    }
}

/// Panics caught at this border, ever, in this copy of it.
pub fn panics() -> u64 {
    PANICS.load(Ordering::Relaxed)
}
