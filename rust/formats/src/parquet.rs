// SPDX-License-Identifier: Apache-2.0
//! Parquet files: columns cross the border as Arrow's C data interface has them.
//!
//! A file is held against limits before the parquet crate believes it: its footer
//! when it is opened, the pages of a column when they are first read.

mod footer;
mod limits;
mod ops;
mod pages;
mod read;
mod source;
mod thrift;
mod write;

use std::io;

use parquet::errors::ParquetError;

use crate::border::{Fail, FULL, INVALID, IO};

/// What the parquet crate said, under the code of whose fault it is: a disk's or
/// the file's.
fn failed(error: ParquetError) -> Fail {
    let code = match &error {
        ParquetError::External(cause) => cause
            .downcast_ref::<io::Error>()
            .and_then(io::Error::raw_os_error)
            .map_or(INVALID, code_of),
        _ => INVALID,
    };
    Fail {
        code,
        text: error.to_string(),
    }
}

fn io_failed(error: io::Error) -> Fail {
    Fail {
        code: error.raw_os_error().map_or(INVALID, code_of),
        text: error.to_string(),
    }
}

fn code_of(os_error: i32) -> i32 {
    match os_error {
        libc::ENOSPC | libc::EDQUOT | libc::EFBIG => FULL,
        _ => IO,
    }
}
