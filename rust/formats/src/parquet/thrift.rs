// SPDX-License-Identifier: Apache-2.0
//! As much of Thrift's compact protocol as it takes to look through a footer and
//! the header of a page.

use crate::border::{fail, Outcome, INVALID};

pub const LIST: u8 = 9;
pub const STRUCT: u8 = 12;

/// Deeper than anything in Parquet's own structures.
const DEPTH: u32 = 32;

pub struct Thrift<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Thrift<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Thrift { bytes, at: 0 }
    }

    /// Bytes read so far.
    pub fn position(&self) -> usize {
        self.at
    }

    fn byte(&mut self) -> Outcome<u8> {
        let Some(byte) = self.bytes.get(self.at) else {
            return fail(INVALID, "the metadata ends in the middle of a value");
        };
        self.at += 1;
        Ok(*byte)
    }

    fn advance(&mut self, count: u64) -> Outcome {
        if count > (self.bytes.len() - self.at) as u64 {
            return fail(INVALID, "the metadata ends in the middle of a value");
        }
        self.at += count as usize;
        Ok(())
    }

    fn varint(&mut self) -> Outcome<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        fail(INVALID, "a number in the metadata is too long")
    }

    pub fn integer(&mut self) -> Outcome<i64> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// How many elements follow, and of what kind.
    pub fn list(&mut self) -> Outcome<(u64, u8)> {
        let head = self.byte()?;
        let count = match head >> 4 {
            15 => self.varint()?,
            few => u64::from(few),
        };
        Ok((count, head & 0x0f))
    }

    /// Each field of a structure: its number and kind. `on_field` reads or skips it.
    pub fn fields(&mut self, mut on_field: impl FnMut(&mut Self, i64, u8) -> Outcome) -> Outcome {
        let mut id = 0i64;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Ok(());
            }
            id = match head >> 4 {
                0 => self.integer()?,
                delta => id + i64::from(delta),
            };
            on_field(self, id, head & 0x0f)?;
        }
    }

    pub fn skip(&mut self, kind: u8) -> Outcome {
        self.skip_within(kind, DEPTH)
    }

    fn skip_within(&mut self, kind: u8, depth: u32) -> Outcome {
        let Some(depth) = depth.checked_sub(1) else {
            return fail(INVALID, "the metadata is nested too deeply");
        };
        match kind {
            1 | 2 => Ok(()),
            3 => self.advance(1),
            4..=6 => self.varint().map(drop),
            7 => self.advance(8),
            8 => self.varint().and_then(|size| self.advance(size)),
            LIST | 10 => self.skip_list(depth),
            11 => self.skip_map(depth),
            STRUCT => self.fields(|thrift, _, kind| thrift.skip_within(kind, depth)),
            _ => fail(INVALID, format!("the metadata has a value of kind {kind}")),
        }
    }

    fn skip_list(&mut self, depth: u32) -> Outcome {
        let (count, kind) = self.list()?;
        for _ in 0..count {
            self.skip_element(kind, depth)?;
        }
        Ok(())
    }

    fn skip_map(&mut self, depth: u32) -> Outcome {
        let count = self.varint()?;
        if count == 0 {
            return Ok(());
        }
        let kinds = self.byte()?;
        for _ in 0..count {
            self.skip_element(kinds >> 4, depth)?;
            self.skip_element(kinds & 0x0f, depth)?;
        }
        Ok(())
    }

    /// In lists a truth value takes a byte, so that every element takes one.
    fn skip_element(&mut self, kind: u8, depth: u32) -> Outcome {
        match kind {
            1 | 2 => self.advance(1),
            _ => self.skip_within(kind, depth),
        }
    }
}
