// SPDX-License-Identifier: Apache-2.0
//! The table of functions that C is given.

use std::ffi::{c_char, c_int};

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema};

use super::{
    read::{self, Table},
    write::{self, Note, Writer},
};
use crate::{border::panics, table_for};

/// As `tdr_parquet_ops`.
#[repr(C)]
pub struct ParquetOps {
    open: unsafe extern "C" fn(c_int, *mut *mut Table, *mut c_char, usize) -> c_int,
    close: unsafe extern "C" fn(*mut Table),
    groups: unsafe extern "C" fn(*const Table) -> usize,
    rows: unsafe extern "C" fn(*const Table, usize) -> u64,
    columns: unsafe extern "C" fn(*const Table) -> usize,
    name: unsafe extern "C" fn(*const Table, usize) -> *const c_char,
    read: unsafe extern "C" fn(
        *const Table,
        usize,
        usize,
        usize,
        usize,
        *mut FFI_ArrowArray,
        *mut FFI_ArrowSchema,
        *mut c_char,
        usize,
    ) -> c_int,
    create: unsafe extern "C" fn(
        c_int,
        *mut FFI_ArrowSchema,
        *const Note,
        usize,
        *mut *mut Writer,
        *mut c_char,
        usize,
    ) -> c_int,
    append: unsafe extern "C" fn(*mut Writer, *mut FFI_ArrowArray, *mut c_char, usize) -> c_int,
    copy: unsafe extern "C" fn(*mut Writer, *const Table, *mut c_char, usize) -> c_int,
    finish: unsafe extern "C" fn(*mut Writer, *mut c_char, usize) -> c_int,
    abandon: unsafe extern "C" fn(*mut Writer),
    panics: extern "C" fn() -> u64,
}

static OPS: ParquetOps = ParquetOps {
    open: read::open,
    close: read::close,
    groups: read::groups,
    rows: read::rows,
    columns: read::columns,
    name: read::name,
    read: read::read,
    create: write::create,
    append: write::append,
    copy: write::copy,
    finish: write::finish,
    abandon: write::abandon,
    panics: caught_panics,
};

extern "C" fn caught_panics() -> u64 {
    panics()
}

#[no_mangle]
pub extern "C" fn tdr_parquet_library(version: u32, ops_bytes: usize) -> *const ParquetOps {
    table_for(&OPS, version, ops_bytes)
}
