// SPDX-License-Identifier: Apache-2.0
//! Parquet and tokenizers behind `include/tendon_formats.h`, which holds the contract of
//! every function here. Pointers from C are trusted to be what that header says.

mod parquet;
mod tokenizer;

use tendon_border as border;

/// What crosses, as the header counts it.
const VERSION: u32 = 1;

/// A table for C, if it is the one that C was compiled with.
fn table_for<T>(table: &'static T, version: u32, ops_bytes: usize) -> *const T {
    if version == VERSION && ops_bytes == size_of::<T>() {
        table
    } else {
        std::ptr::null()
    }
}
