// SPDX-License-Identifier: Apache-2.0
//! The pages of a column before they are decoded: the parquet crate takes as much
//! memory for one as its header promises.

use super::{
    io_failed,
    limits::{PAGES, PAGE_BYTES, PAGE_HEADER_BYTES, VALUES},
    source::Source,
    thrift::{Thrift, STRUCT},
};
use crate::border::{fail, Outcome, INVALID, LIMIT};

const USUAL_HEADER_BYTES: usize = 256;

#[derive(Default)]
struct Header {
    size: u64, // of the header itself
    body: i64,
    unpacked: i64,
    values: i64,
}

/// Follows the pages from `start` to `end`, from header to header.
pub fn check(source: &Source, start: u64, end: u64) -> Outcome {
    let mut at = start;
    let mut values = 0u64;
    for _ in 0..PAGES {
        if at == end {
            return Ok(());
        }
        let header = header_at(source, at, end)?;
        at += header.size;
        at += checked(&header, end - at)?;
        values += header.values as u64;
        if values > VALUES {
            return fail(LIMIT, format!("a column of more than {VALUES} values"));
        }
    }
    fail(LIMIT, format!("a column of more than {PAGES} pages"))
}

/// The size of the page's body.
fn checked(header: &Header, left: u64) -> Outcome<u64> {
    if header.body < 0 || header.unpacked < 0 || header.values < 0 {
        return fail(INVALID, "a page with fewer than no bytes or values");
    }
    if header.body as u64 > left {
        return fail(INVALID, "a page reaches beyond its column");
    }
    if header.unpacked as u64 > PAGE_BYTES {
        return fail(
            LIMIT,
            format!(
                "a page of {} bytes, at most {PAGE_BYTES} are read",
                header.unpacked
            ),
        );
    }
    Ok(header.body as u64)
}

fn header_at(source: &Source, at: u64, end: u64) -> Outcome<Header> {
    let left = usize::try_from(end - at).unwrap_or(usize::MAX);
    let usual = source
        .bytes_at(at, left.min(USUAL_HEADER_BYTES))
        .map_err(io_failed)?;
    parse(&usual).or_else(|_| {
        let long = source
            .bytes_at(at, left.min(PAGE_HEADER_BYTES))
            .map_err(io_failed)?;
        parse(&long)
    })
}

fn parse(bytes: &[u8]) -> Outcome<Header> {
    let mut header = Header::default();
    let mut thrift = Thrift::new(bytes);
    thrift.fields(|thrift, id, kind| match (id, kind) {
        (2, 5) => thrift.integer().map(|size| header.unpacked = size),
        (3, 5) => thrift.integer().map(|size| header.body = size),
        // A data page, a dictionary, a data page of the second version: the
        // first field of each is the number of its values.
        (5 | 7 | 8, STRUCT) => thrift.fields(|thrift, id, kind| match (id, kind) {
            (1, 5) => thrift.integer().map(|count| header.values += count),
            _ => thrift.skip(kind),
        }),
        _ => thrift.skip(kind),
    })?;
    header.size = thrift.position() as u64;
    Ok(header)
}
