// SPDX-License-Identifier: Apache-2.0
//! `tendon/connect.h` made safe: every `unsafe` of the crate is here.

use std::{
    ffi::{c_char, c_int, c_void, CStr, CString},
    os::fd::RawFd,
    ptr::{self, NonNull},
    slice,
};

use crate::{Code, DType, Error, Outcome, Result};

const MAX_RANK: usize = 8;
const TIMEOUT: c_int = 7;

mod c {
    use super::*;

    #[repr(C)]
    pub struct Connection {
        _private: [u8; 0],
    }

    #[repr(C)]
    pub struct Model {
        _private: [u8; 0],
    }

    #[repr(C)]
    pub struct ErrInfo {
        pub text: [c_char; 512],
    }

    #[repr(C)]
    pub struct ConnectionSettings {
        pub size: usize,
        pub server: *const c_char,
        pub cluster: *const c_char,
        pub experiment: *const c_char,
        pub client_id: *const c_char,
        pub client_type: *const c_char,
        pub peer: bool,
        pub no_shared_memory: bool,
        pub every: bool,
    }

    #[repr(C)]
    pub struct ModelSettings {
        pub size: usize,
        pub model_id: *const c_char,
        pub version: *const c_char,
        pub application: *const c_char,
        pub latency_budget_ms: i64,
        pub has_priority: bool,
        pub priority: u32,
        pub limit_ms: i64,
        pub jpeg_quality: u32,
        pub raw_if_shared: bool,
    }

    #[repr(C)]
    #[derive(Clone, Copy)]
    pub struct Tensor {
        pub name: *const c_char,
        pub dtype: c_int,
        pub rank: u32,
        pub shape: [u32; MAX_RANK],
        pub data: *const c_void,
        pub bytes: usize,
        pub has_age: bool,
        pub age_us: i64,
    }

    #[repr(C)]
    pub struct Image {
        pub name: *const c_char,
        pub codec: c_int,
        pub height: u32,
        pub width: u32,
        pub channels: u32,
        pub data: *const c_void,
        pub bytes: usize,
    }

    #[repr(C)]
    pub struct Pair {
        pub name: *const c_char,
        pub text: *const c_char,
    }

    #[repr(C)]
    pub struct Observation {
        pub size: usize,
        pub state: Tensor,
        pub tensors: *const Tensor,
        pub tensor_count: u32,
        pub images: *const Image,
        pub image_count: u32,
        pub metadata: *const Pair,
        pub metadata_count: u32,
        pub task: *const c_char,
        pub urgency: f32,
        pub has_priority: bool,
        pub priority: u32,
        pub has_steps_remaining: bool,
        pub steps_remaining: u32,
        pub must_go: bool,
        pub episode: u64,
        pub cursor: u64,
        pub latency_budget_ms: i64,
        pub limit_ms: i64,
    }

    #[repr(C)]
    pub struct ModelResult {
        pub size: usize,
        pub seq: u64,
        pub outcome: c_int,
        pub error: c_int,
        pub error_text: *const c_char,
        pub kind: c_int,
        pub actions: Tensor,
        pub results: *const Tensor,
        pub result_count: u32,
        pub text: *const c_char,
        pub is_unsafe: bool,
        pub server: *const c_char,
        pub chunk_id: u64,
        pub inference_ms: f32,
        pub queue_ms: f32,
        pub round_trip_us: i64,
        pub superseded: *const u64,
        pub superseded_count: u32,
    }

    #[repr(C)]
    pub struct PollFd {
        pub fd: c_int,
        pub events: i16,
        pub revents: i16,
    }

    extern "C" {
        pub fn td_err_text(err: c_int) -> *const c_char;
        pub fn td_connection_open(
            settings: *const ConnectionSettings,
            ret_connection: *mut *mut Connection,
            info: *mut ErrInfo,
        ) -> c_int;
        pub fn td_connection_close(connection: *mut Connection);
        pub fn td_connection_model(
            connection: *mut Connection,
            settings: *const ModelSettings,
            ret_model: *mut *mut Model,
            info: *mut ErrInfo,
        ) -> c_int;
        pub fn td_model_wait(model: *mut Model, timeout_ms: i64, info: *mut ErrInfo) -> c_int;
        pub fn td_model_state(model: *const Model) -> *const c_char;
        pub fn td_model_observe(
            model: *mut Model,
            observation: *const Observation,
            ret_seq: *mut u64,
            info: *mut ErrInfo,
        ) -> c_int;
        pub fn td_model_get_result(
            model: *mut Model,
            timeout_ms: i64,
            ret_result: *mut *mut ModelResult,
        ) -> c_int;
        pub fn td_model_result_free(result: *mut ModelResult);
        pub fn td_model_fd(model: *mut Model, ret_fd: *mut c_int) -> c_int;
        pub fn td_model_number(
            model: *mut Model,
            name: *const c_char,
            ret_value: *mut f64,
        ) -> c_int;
        pub fn td_model_stop(model: *mut Model);
        pub fn td_model_close(model: *mut Model);

        pub fn poll(fds: *mut PollFd, count: std::ffi::c_ulong, timeout_ms: c_int) -> c_int;
    }
}

fn text_at<'a>(text: *const c_char) -> &'a str {
    // SAFETY: the library's texts end with NUL, are never NULL, and live as
    // long as what they belong to, which callers borrow.
    unsafe { CStr::from_ptr(text) }.to_str().unwrap_or("?")
}

fn blank() -> c::ErrInfo {
    c::ErrInfo { text: [0; 512] }
}

fn failure(err: c_int, info: Option<&c::ErrInfo>) -> Error {
    let detail = info.map_or("", |info| text_at(info.text.as_ptr()));
    let text = match detail {
        // SAFETY: any number has a text.
        "" => text_at(unsafe { c::td_err_text(err) }),
        detail => detail,
    };
    Error::new(Code::of(err), text)
}

fn check(err: c_int, info: Option<&c::ErrInfo>) -> Result<()> {
    match err {
        0 => Ok(()),
        err => Err(failure(err, info)),
    }
}

/// A text for C. One with a NUL inside cannot be given.
pub fn c_text(field: &str, text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| Error::new(Code::Invalid, format!("{field}: holds a NUL")))
}

fn optional(text: &Option<CString>) -> *const c_char {
    text.as_ref().map_or(ptr::null(), |text| text.as_ptr())
}

/// What a tensor may be of.
pub trait Element: Copy + sealed::Sealed {
    /// Its type on the wire.
    const DTYPE: DType;
}

mod sealed {
    /// Numbers whose bytes are all initialised and of which any bits are one.
    pub trait Sealed {}
}

macro_rules! element {
    ($($rust:ty => $dtype:ident),*) => {$(
        impl sealed::Sealed for $rust {}
        impl Element for $rust {
            const DTYPE: DType = DType::$dtype;
        }
    )*};
}
element!(f32 => F32, f64 => F64, u8 => U8, i8 => I8, i16 => I16, i32 => I32, i64 => I64);

/// The same memory as bytes.
pub fn bytes_of<T: Element>(values: &[T]) -> &[u8] {
    // SAFETY: an element is plain bytes, and u8 is aligned anywhere.
    unsafe { slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

/// The same memory as elements; None if it does not lie right for them.
pub fn values_of<T: Element>(bytes: &[u8]) -> Option<&[T]> {
    let first = bytes.as_ptr().cast::<T>();
    let count = bytes.len() / size_of::<T>();
    // SAFETY: aligned, within the bytes, and any bits are an element.
    first.is_aligned().then(|| unsafe { slice::from_raw_parts(first, count) })
}

pub struct ConnectionTexts {
    pub server: Option<CString>,
    pub cluster: Option<CString>,
    pub experiment: Option<CString>,
    pub client_id: Option<CString>,
    pub client_type: Option<CString>,
    pub peer: bool,
    pub shared_memory: bool,
    pub every: bool,
}

pub struct ConnectionHandle(NonNull<c::Connection>);

// SAFETY: connect.h: any function on any thread, several at a time too.
unsafe impl Send for ConnectionHandle {}
unsafe impl Sync for ConnectionHandle {}

impl ConnectionHandle {
    pub fn open(texts: &ConnectionTexts) -> Result<Self> {
        let settings = c::ConnectionSettings {
            size: size_of::<c::ConnectionSettings>(),
            server: optional(&texts.server),
            cluster: optional(&texts.cluster),
            experiment: optional(&texts.experiment),
            client_id: optional(&texts.client_id),
            client_type: optional(&texts.client_type),
            peer: texts.peer,
            no_shared_memory: !texts.shared_memory,
            every: texts.every,
        };
        let mut made = ptr::null_mut();
        let mut info = blank();
        // SAFETY: what the settings point to lives beyond the call.
        let err = unsafe { c::td_connection_open(&settings, &mut made, &mut info) };
        check(err, Some(&info))?;
        Ok(ConnectionHandle(NonNull::new(made).expect("it was opened")))
    }
}

impl Drop for ConnectionHandle {
    fn drop(&mut self) {
        // SAFETY: open, and closed once.
        unsafe { c::td_connection_close(self.0.as_ptr()) }
    }
}

pub struct ModelTexts {
    pub model_id: Option<CString>,
    pub version: Option<CString>,
    pub application: Option<CString>,
    pub latency_budget_ms: i64,
    pub priority: Option<u32>,
    pub limit_ms: i64,
    pub jpeg_quality: u32,
    pub raw_if_shared: bool,
}

/// Closed when nobody can call it any more: calls borrow it.
pub struct ModelHandle(NonNull<c::Model>);

// SAFETY: connect.h: any function on any thread, several at a time too.
unsafe impl Send for ModelHandle {}
unsafe impl Sync for ModelHandle {}

pub struct TensorParts<'a> {
    pub name: CString,
    pub dtype: DType,
    pub shape: Vec<u32>,
    pub bytes: &'a [u8],
}

pub struct ImageParts<'a> {
    pub name: CString,
    pub codec: i32,
    pub shape: [u32; 3],
    pub bytes: &'a [u8],
}

#[derive(Default)]
pub struct ObservationParts<'a> {
    pub state: Option<TensorParts<'a>>,
    pub tensors: Vec<TensorParts<'a>>,
    pub images: Vec<ImageParts<'a>>,
    pub metadata: Vec<(CString, CString)>,
    pub task: Option<CString>,
    pub urgency: f32,
    pub priority: Option<u32>,
    pub steps_remaining: Option<u32>,
    pub must_go: bool,
    pub episode: u64,
    pub cursor: u64,
    pub latency_budget_ms: i64,
    pub limit_ms: i64,
}

// A shape that is too long is refused by the library, by its rank.
fn c_tensor(parts: &TensorParts<'_>) -> c::Tensor {
    let mut shape = [0; MAX_RANK];
    for (side, given) in shape.iter_mut().zip(&parts.shape) {
        *side = *given;
    }
    c::Tensor {
        name: parts.name.as_ptr(),
        dtype: parts.dtype as c_int,
        rank: u32::try_from(parts.shape.len()).unwrap_or(u32::MAX),
        shape,
        data: parts.bytes.as_ptr().cast(),
        bytes: parts.bytes.len(),
        has_age: false,
        age_us: 0,
    }
}

fn no_tensor() -> c::Tensor {
    c::Tensor {
        name: ptr::null(),
        dtype: 0,
        rank: 0,
        shape: [0; MAX_RANK],
        data: ptr::null(),
        bytes: 0,
        has_age: false,
        age_us: 0,
    }
}

fn c_image(parts: &ImageParts<'_>) -> c::Image {
    c::Image {
        name: parts.name.as_ptr(),
        codec: parts.codec,
        height: parts.shape[0],
        width: parts.shape[1],
        channels: parts.shape[2],
        data: parts.bytes.as_ptr().cast(),
        bytes: parts.bytes.len(),
    }
}

fn count<T>(items: &[T]) -> u32 {
    u32::try_from(items.len()).unwrap_or(u32::MAX)
}

impl ModelHandle {
    pub fn open(connection: &ConnectionHandle, texts: &ModelTexts) -> Result<Self> {
        let settings = c::ModelSettings {
            size: size_of::<c::ModelSettings>(),
            model_id: optional(&texts.model_id),
            version: optional(&texts.version),
            application: optional(&texts.application),
            latency_budget_ms: texts.latency_budget_ms,
            has_priority: texts.priority.is_some(),
            priority: texts.priority.unwrap_or(0),
            limit_ms: texts.limit_ms,
            jpeg_quality: texts.jpeg_quality,
            raw_if_shared: texts.raw_if_shared,
        };
        let mut made = ptr::null_mut();
        let mut info = blank();
        // SAFETY: the connection is open, and what the settings point to lives
        // beyond the call.
        let err = unsafe {
            c::td_connection_model(connection.0.as_ptr(), &settings, &mut made, &mut info)
        };
        check(err, Some(&info))?;
        Ok(ModelHandle(NonNull::new(made).expect("it was opened")))
    }

    pub fn wait(&self, timeout_ms: i64) -> Result<()> {
        let mut info = blank();
        // SAFETY: the model is open.
        let err = unsafe { c::td_model_wait(self.0.as_ptr(), timeout_ms, &mut info) };
        check(err, Some(&info))
    }

    pub fn state(&self) -> &'static str {
        // SAFETY: the model is open; its states' names are static.
        text_at(unsafe { c::td_model_state(self.0.as_ptr()) })
    }

    pub fn observe(&self, parts: &ObservationParts<'_>) -> Result<u64> {
        let tensors: Vec<_> = parts.tensors.iter().map(c_tensor).collect();
        let images: Vec<_> = parts.images.iter().map(c_image).collect();
        let metadata: Vec<_> = parts
            .metadata
            .iter()
            .map(|(name, text)| c::Pair {
                name: name.as_ptr(),
                text: text.as_ptr(),
            })
            .collect();
        let observation = c::Observation {
            size: size_of::<c::Observation>(),
            state: parts.state.as_ref().map_or_else(no_tensor, c_tensor),
            tensors: tensors.as_ptr(),
            tensor_count: count(&tensors),
            images: images.as_ptr(),
            image_count: count(&images),
            metadata: metadata.as_ptr(),
            metadata_count: count(&metadata),
            task: optional(&parts.task),
            urgency: parts.urgency,
            has_priority: parts.priority.is_some(),
            priority: parts.priority.unwrap_or(0),
            has_steps_remaining: parts.steps_remaining.is_some(),
            steps_remaining: parts.steps_remaining.unwrap_or(0),
            must_go: parts.must_go,
            episode: parts.episode,
            cursor: parts.cursor,
            latency_budget_ms: parts.latency_budget_ms,
            limit_ms: parts.limit_ms,
        };
        let mut seq = 0;
        let mut info = blank();
        // SAFETY: the model is open, and all that the observation points to
        // lives beyond the call.
        let err =
            unsafe { c::td_model_observe(self.0.as_ptr(), &observation, &mut seq, &mut info) };
        check(err, Some(&info))?;
        Ok(seq)
    }

    /// None: nothing came in time.
    pub fn get_result(&self, timeout_ms: i64) -> Result<Option<ReplyHandle>> {
        let mut made = ptr::null_mut();
        // SAFETY: the model is open.
        let err = unsafe { c::td_model_get_result(self.0.as_ptr(), timeout_ms, &mut made) };
        if err == TIMEOUT {
            return Ok(None);
        }
        check(err, None)?;
        Ok(NonNull::new(made).map(ReplyHandle))
    }

    pub fn fd(&self) -> Result<RawFd> {
        let mut fd = -1;
        // SAFETY: the model is open.
        check(unsafe { c::td_model_fd(self.0.as_ptr(), &mut fd) }, None)?;
        Ok(fd)
    }

    pub fn number(&self, name: &str) -> Result<f64> {
        let name = c_text("name", name)?;
        let mut value = 0.0;
        // SAFETY: the model is open, the name a C text.
        let err = unsafe { c::td_model_number(self.0.as_ptr(), name.as_ptr(), &mut value) };
        check(err, None)?;
        Ok(value)
    }

    pub fn stop(&self) {
        // SAFETY: the model is open.
        unsafe { c::td_model_stop(self.0.as_ptr()) }
    }
}

impl Drop for ModelHandle {
    fn drop(&mut self) {
        // SAFETY: open, no call borrows it any more, and closed once.
        unsafe { c::td_model_close(self.0.as_ptr()) }
    }
}

pub struct ReplyHandle(NonNull<c::ModelResult>);

// SAFETY: it owns its memory, which nobody writes.
unsafe impl Send for ReplyHandle {}
unsafe impl Sync for ReplyHandle {}

/// A tensor of a reply, borrowed from it.
pub struct TensorView<'a> {
    pub dtype: DType,
    pub shape: &'a [u32],
    pub bytes: &'a [u8],
}

fn view(tensor: &c::Tensor) -> TensorView<'_> {
    let bytes = match tensor.bytes {
        0 => &[],
        // SAFETY: so many bytes lie there as long as the result lives, which
        // is borrowed.
        bytes => unsafe { slice::from_raw_parts(tensor.data.cast(), bytes) },
    };
    TensorView {
        dtype: DType::of(tensor.dtype),
        shape: &tensor.shape[..(tensor.rank as usize).min(MAX_RANK)],
        bytes,
    }
}

impl ReplyHandle {
    fn get(&self) -> &c::ModelResult {
        // SAFETY: alive until it is dropped.
        unsafe { self.0.as_ref() }
    }

    fn results(&self) -> &[c::Tensor] {
        let result = self.get();
        match result.result_count {
            0 => &[],
            // SAFETY: so many are there, as long as the result lives.
            count => unsafe { slice::from_raw_parts(result.results, count as usize) },
        }
    }

    pub fn seq(&self) -> u64 {
        self.get().seq
    }

    pub fn outcome(&self) -> Outcome {
        Outcome::of(self.get().outcome)
    }

    pub fn error(&self) -> Error {
        let result = self.get();
        Error::new(Code::of(result.error), text_at(result.error_text))
    }

    pub fn actions(&self) -> Option<TensorView<'_>> {
        let actions = &self.get().actions;
        (actions.rank > 0).then(|| view(actions))
    }

    pub fn tensors(&self) -> impl Iterator<Item = (&str, TensorView<'_>)> {
        self.results().iter().map(|tensor| (text_at(tensor.name), view(tensor)))
    }

    pub fn text(&self) -> &str {
        text_at(self.get().text)
    }

    pub fn is_unsafe(&self) -> bool {
        self.get().is_unsafe
    }

    pub fn server(&self) -> &str {
        text_at(self.get().server)
    }

    pub fn chunk_id(&self) -> u64 {
        self.get().chunk_id
    }

    pub fn times(&self) -> (f32, f32, i64) {
        let result = self.get();
        (result.inference_ms, result.queue_ms, result.round_trip_us)
    }

    pub fn superseded(&self) -> &[u64] {
        let result = self.get();
        match result.superseded_count {
            0 => &[],
            // SAFETY: so many are there, as long as the result lives.
            count => unsafe { slice::from_raw_parts(result.superseded, count as usize) },
        }
    }
}

impl Drop for ReplyHandle {
    fn drop(&mut self) {
        // SAFETY: owned, and freed once.
        unsafe { c::td_model_result_free(self.0.as_ptr()) }
    }
}

/// Waits until one of them can be read, at most so long (negative: no limit).
/// Says which can; all of them, so that nobody waits for ever, if it fails.
pub fn wait_readable(fds: &[RawFd], timeout_ms: i32) -> Vec<bool> {
    const POLLIN: i16 = 1;
    let mut polled: Vec<_> = fds
        .iter()
        .map(|&fd| c::PollFd {
            fd,
            events: POLLIN,
            revents: 0,
        })
        .collect();
    // SAFETY: so many are there, and nobody else has them.
    let ready = unsafe { c::poll(polled.as_mut_ptr(), polled.len() as _, timeout_ms) };
    polled.iter().map(|one| ready < 0 || one.revents != 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_elements_again() {
        let values = [1.0f32, -2.5, 3.25];
        let bytes = bytes_of(&values);
        assert_eq!(bytes.len(), 12);
        assert_eq!(values_of::<f32>(bytes), Some(&values[..]));
    }

    #[test]
    fn unaligned_bytes_are_no_elements() {
        let values = [0.0f64; 2];
        assert_eq!(values_of::<f64>(&bytes_of(&values)[1..]), None);
    }

    #[test]
    fn a_text_with_a_nul_is_refused() {
        assert_eq!(c_text("task", "a\0b").unwrap_err().code(), Code::Invalid);
    }
}
