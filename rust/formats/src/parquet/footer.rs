// SPDX-License-Identifier: Apache-2.0
//! A footer before it is decoded: the parquet crate follows a schema by recursion
//! and takes memory for as many row groups as are promised.

use super::{
    limits::{NOTES, ROW_GROUPS, SCHEMA_DEPTH, SCHEMA_ELEMENTS},
    thrift::{Thrift, LIST, STRUCT},
};
use crate::border::{fail, Outcome, INVALID, LIMIT};

pub fn check(footer: &[u8]) -> Outcome {
    Thrift::new(footer).fields(|thrift, id, kind| match (id, kind) {
        (2, LIST) => check_schema(thrift),
        (4, LIST) => check_count(thrift, ROW_GROUPS, "row groups"),
        (5, LIST) => check_count(thrift, NOTES, "notes"),
        _ => thrift.skip(kind),
    })
}

fn counted(thrift: &mut Thrift, most: usize, what: &str) -> Outcome<u64> {
    let (count, kind) = thrift.list()?;
    if kind != STRUCT {
        return fail(INVALID, format!("the list of {what} holds something else"));
    }
    if count > most as u64 {
        return fail(LIMIT, format!("{count} {what}, at most {most} are read"));
    }
    Ok(count)
}

fn check_count(thrift: &mut Thrift, most: usize, what: &str) -> Outcome {
    for _ in 0..counted(thrift, most, what)? {
        thrift.skip(STRUCT)?;
    }
    Ok(())
}

/// The tree is written root first, each element with the number of its children.
fn check_schema(thrift: &mut Thrift) -> Outcome {
    let mut open: Vec<i64> = Vec::new();
    for _ in 0..counted(thrift, SCHEMA_ELEMENTS, "schema elements")? {
        let children = element_children(thrift)?;
        while open.last() == Some(&0) {
            open.pop();
        }
        if let Some(left) = open.last_mut() {
            *left -= 1;
        }
        open.push(children);
        if open.len() > SCHEMA_DEPTH {
            return fail(
                LIMIT,
                format!("columns are nested more than {SCHEMA_DEPTH} deep"),
            );
        }
    }
    Ok(())
}

fn element_children(thrift: &mut Thrift) -> Outcome<i64> {
    let mut children = 0;
    thrift.fields(|thrift, id, kind| match (id, kind) {
        (5, 5) => {
            children = thrift.integer()?;
            match children {
                0.. => Ok(()),
                _ => fail(INVALID, "a column with fewer than no parts"),
            }
        }
        _ => thrift.skip(kind),
    })?;
    Ok(children)
}
