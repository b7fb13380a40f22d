// SPDX-License-Identifier: Apache-2.0
//! What a file may ask for. Far beyond what datasets have, and little enough for a
//! small computer.

pub const FOOTER_BYTES: u64 = 32 << 20;
pub const SCHEMA_ELEMENTS: usize = 32_768;
pub const SCHEMA_DEPTH: usize = 16;
pub const COLUMNS: usize = 4096;
pub const ROW_GROUPS: usize = 1 << 20;
pub const NOTES: usize = 4096;
pub const GROUP_ROWS: i64 = 1 << 24;
/// Of one column in one row group.
pub const VALUES: u64 = 1 << 26;
pub const PAGES: usize = 1 << 20;
pub const PAGE_BYTES: u64 = 256 << 20;
pub const PAGE_HEADER_BYTES: usize = 1 << 16;
