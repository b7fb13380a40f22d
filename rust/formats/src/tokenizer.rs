// SPDX-License-Identifier: Apache-2.0
//! Hugging Face's tokenizers: a text to the ids of its tokens.

use std::ffi::{c_char, c_int};

use tokenizers::{Tokenizer, TruncationParams};

use crate::{
    border::{as_code, entry, fail, free, give, str_from, ErrBuf, Slice, INTERNAL, INVALID},
    table_for,
};

/// As `tdr_tokenizer_ops`.
#[repr(C)]
pub struct TokenizerOps {
    open: unsafe extern "C" fn(
        *const c_char,
        usize,
        *mut *mut Tokenizer,
        *mut c_char,
        usize,
    ) -> c_int,
    close: unsafe extern "C" fn(*mut Tokenizer),
    encode: unsafe extern "C" fn(
        *const Tokenizer,
        Slice,
        usize,
        *mut u32,
        *mut usize,
        *mut c_char,
        usize,
    ) -> c_int,
}

static OPS: TokenizerOps = TokenizerOps {
    open,
    close,
    encode,
};

#[no_mangle]
pub extern "C" fn tdr_tokenizer_library(version: u32, ops_bytes: usize) -> *const TokenizerOps {
    table_for(&OPS, version, ops_bytes)
}

/// # Safety
/// As the header says.
unsafe extern "C" fn open(
    path: *const c_char,
    most_ids: usize,
    ret_tokenizer: *mut *mut Tokenizer,
    err: *mut c_char,
    err_size: usize,
) -> c_int {
    entry(ErrBuf::new(err, err_size), || {
        let path = unsafe { str_from(path) }?;
        let mut tokenizer = Tokenizer::from_file(path).map_err(as_code(INVALID))?;
        tokenizer.with_padding(None);
        tokenizer
            .with_truncation(Some(TruncationParams {
                max_length: most_ids,
                ..Default::default()
            }))
            .map_err(as_code(INVALID))?;
        unsafe { give(ret_tokenizer, tokenizer) };
        Ok(())
    })
}

/// # Safety
/// As the header says.
unsafe extern "C" fn close(tokenizer: *mut Tokenizer) {
    unsafe { free(tokenizer) };
}

/// # Safety
/// As the header says.
unsafe extern "C" fn encode(
    tokenizer: *const Tokenizer,
    text: Slice,
    most_ids: usize,
    ret_ids: *mut u32,
    ret_count: *mut usize,
    err: *mut c_char,
    err_size: usize,
) -> c_int {
    entry(ErrBuf::new(err, err_size), || {
        let text = std::str::from_utf8(unsafe { text.bytes() }).map_err(as_code(INVALID))?;
        let encoding = unsafe { &*tokenizer }
            .encode_fast(text, true)
            .map_err(as_code(INTERNAL))?;
        let ids = encoding.get_ids();
        if ids.len() > most_ids {
            return fail(INTERNAL, "more ids than there is room for");
        }
        unsafe {
            std::ptr::copy_nonoverlapping(ids.as_ptr(), ret_ids, ids.len());
            *ret_count = ids.len();
        }
        Ok(())
    })
}
