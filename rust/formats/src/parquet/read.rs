// SPDX-License-Identifier: Apache-2.0
//! Reading: one column of some rows of one row group at a time.

use std::{
    collections::HashSet,
    ffi::{c_char, c_int, CString},
    sync::{Arc, Mutex, PoisonError},
};

use arrow_array::{
    ffi::{to_ffi, FFI_ArrowArray, FFI_ArrowSchema},
    Array, ArrayRef,
};
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema};
use parquet::{
    arrow::{
        arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder},
        ProjectionMask,
    },
    basic::Compression,
    file::metadata::{
        ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData,
    },
};

use super::{
    failed, footer, io_failed,
    limits::{COLUMNS, FOOTER_BYTES, GROUP_ROWS},
    pages,
    source::Source,
};
use crate::border::{
    as_code, c_string, entry, entry_or, fail, free, give, ErrBuf, Outcome, INVALID, LIMIT,
    UNSUPPORTED,
};

const MAGIC: &[u8] = b"PAR1";

pub struct Table {
    source: Source,
    metadata: ArrowReaderMetadata,
    names: Vec<CString>,
    checked: Mutex<HashSet<(usize, usize)>>, // group and leaf, whose pages are fine
}

impl Table {
    fn open(source: Source) -> Outcome<Self> {
        let parsed = Arc::new(parse_footer(&source)?);
        check_metadata(&parsed, source.size())?;
        let plain = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let plain = ArrowReaderMetadata::try_new(parsed.clone(), plain).map_err(failed)?;
        let schema = Arc::new(Schema::new(with_views(plain.schema().fields())));
        let names = schema.fields().iter().map(|field| c_string(field.name()));
        let names = names.collect();
        let viewed = ArrowReaderOptions::new().with_schema(schema);
        Ok(Table {
            source,
            metadata: ArrowReaderMetadata::try_new(parsed, viewed).map_err(failed)?,
            names,
            checked: Mutex::default(),
        })
    }

    pub fn source(&self) -> &Source {
        &self.source
    }

    pub fn metadata(&self) -> &ParquetMetaData {
        self.metadata.metadata()
    }

    fn check_pages(&self, group: usize, mask: &ProjectionMask) -> Outcome {
        let columns = self.metadata().row_group(group).columns();
        for (leaf, column) in columns.iter().enumerate() {
            if !mask.leaf_included(leaf) || self.is_checked(group, leaf) {
                continue;
            }
            let (start, length) = column.byte_range();
            pages::check(&self.source, start, start + length)?;
            let mut checked = self.checked.lock().unwrap_or_else(PoisonError::into_inner);
            checked.insert((group, leaf));
        }
        Ok(())
    }

    fn is_checked(&self, group: usize, leaf: usize) -> bool {
        let checked = self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        checked.contains(&(group, leaf))
    }

    fn read(&self, group: usize, column: usize, first: usize, rows: usize) -> Outcome<ArrayRef> {
        let groups = self.metadata().row_groups();
        if group >= groups.len() || column >= self.names.len() {
            return fail(INVALID, "no such row group or column");
        }
        let mask = ProjectionMask::roots(self.metadata.parquet_schema(), [column]);
        self.check_pages(group, &mask)?;
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(
            self.source.clone(),
            self.metadata.clone(),
        );
        let mut batches = builder
            .with_row_groups(vec![group])
            .with_projection(mask)
            .with_batch_size(rows)
            .with_offset(first)
            .with_limit(rows)
            .build()
            .map_err(failed)?;
        match batches.next() {
            Some(batch) => {
                let batch = batch.map_err(as_code(INVALID))?;
                if batch.num_rows() != rows {
                    return fail(INVALID, "fewer rows than the file says");
                }
                Ok(batch.column(0).clone())
            }
            None => fail(INVALID, "fewer rows than the file says"),
        }
    }
}

fn parse_footer(source: &Source) -> Outcome<ParquetMetaData> {
    let size = source.size();
    if size < 12 {
        return fail(INVALID, "too short for a Parquet file");
    }
    let tail = source.bytes_at(size - 8, 8).map_err(io_failed)?;
    let (length, magic) = tail.split_at(4);
    if magic != MAGIC {
        return fail(INVALID, "no Parquet file, or one that was cut short");
    }
    let length = length
        .iter()
        .rev()
        .fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    if length > size - 12 {
        return fail(INVALID, "the footer is longer than the file");
    }
    if length > FOOTER_BYTES {
        return fail(
            LIMIT,
            format!("a footer of {length} bytes, at most {FOOTER_BYTES} are read"),
        );
    }
    let bytes = source.bytes_at(size - 8 - length, length as usize);
    let bytes = bytes.map_err(io_failed)?;
    footer::check(&bytes)?;
    ParquetMetaDataReader::decode_metadata(&bytes).map_err(failed)
}

fn check_metadata(metadata: &ParquetMetaData, size: u64) -> Outcome {
    let columns = metadata.file_metadata().schema_descr().num_columns();
    if columns > COLUMNS {
        return fail(
            LIMIT,
            format!("{columns} columns, at most {COLUMNS} are read"),
        );
    }
    let mut rows = 0;
    for group in metadata.row_groups() {
        check_group(group, size)?;
        rows += group.num_rows();
    }
    if rows != metadata.file_metadata().num_rows() {
        return fail(INVALID, "the row groups do not add up to the file's rows");
    }
    Ok(())
}

fn check_group(group: &RowGroupMetaData, size: u64) -> Outcome {
    if group.num_rows() < 0 {
        return fail(INVALID, "a row group with fewer than no rows");
    }
    if group.num_rows() > GROUP_ROWS {
        return fail(
            LIMIT,
            format!(
                "a row group of {} rows, at most {GROUP_ROWS} are read",
                group.num_rows()
            ),
        );
    }
    group
        .columns()
        .iter()
        .try_for_each(|column| check_column(column, size))
}

fn check_column(column: &ColumnChunkMetaData, size: u64) -> Outcome {
    let start = column
        .dictionary_page_offset()
        .unwrap_or(column.data_page_offset());
    let end = start.checked_add(column.compressed_size());
    if start < 0 || column.compressed_size() < 0 || end.is_none_or(|end| end as u64 > size) {
        return fail(INVALID, "a column that lies outside the file");
    }
    if column.file_path().is_some() {
        return fail(UNSUPPORTED, "a column that lies in another file");
    }
    match column.compression() {
        Compression::UNCOMPRESSED | Compression::SNAPPY => Ok(()),
        other => fail(
            UNSUPPORTED,
            format!("compressed with {other}, read is snappy"),
        ),
    }
}

/// Texts and bytes come as views into their pages: a long value that stands there
/// a million times is not copied a million times.
fn with_views(fields: &Fields) -> Fields {
    fields.iter().map(view_of).collect()
}

fn view_of(field: &FieldRef) -> FieldRef {
    let seen = match field.data_type() {
        DataType::Utf8 => DataType::Utf8View,
        DataType::Binary => DataType::BinaryView,
        DataType::List(element) => DataType::List(view_of(element)),
        DataType::Struct(fields) => DataType::Struct(with_views(fields)),
        other => other.clone(),
    };
    Arc::new(Field::clone(field).with_data_type(seen))
}

/// # Safety
/// As the header says.
pub unsafe extern "C" fn open(
    fd: c_int,
    ret_table: *mut *mut Table,
    err: *mut c_char,
    err_size: usize,
) -> c_int {
    entry(ErrBuf::new(err, err_size), || {
        let source = unsafe { Source::new(fd) }.map_err(io_failed)?;
        let table = Table::open(source)?;
        unsafe { give(ret_table, table) };
        Ok(())
    })
}

/// # Safety
/// As the header says.
pub unsafe extern "C" fn close(table: *mut Table) {
    unsafe { free(table) };
}

/// # Safety
/// As the header says.
pub unsafe extern "C" fn groups(table: *const Table) -> usize {
    entry_or(0, || unsafe { &*table }.metadata().num_row_groups())
}

/// # Safety
/// As the header says.
pub unsafe extern "C" fn rows(table: *const Table, group: usize) -> u64 {
    entry_or(0, || {
        let groups = unsafe { &*table }.metadata().row_groups();
        groups.get(group).map_or(0, |group| group.num_rows() as u64)
    })
}

/// # Safety
/// As the header says.
pub unsafe extern "C" fn columns(table: *const Table) -> usize {
    unsafe { &*table }.names.len()
}

/// # Safety
/// As the header says.
pub unsafe extern "C" fn name(table: *const Table, column: usize) -> *const c_char {
    let names = &unsafe { &*table }.names;
    names
        .get(column)
        .map_or(std::ptr::null(), |name| name.as_ptr())
}

/// # Safety
/// As the header says.
pub unsafe extern "C" fn read(
    table: *const Table,
    group: usize,
    column: usize,
    first: usize,
    rows: usize,
    ret_array: *mut FFI_ArrowArray,
    ret_schema: *mut FFI_ArrowSchema,
    err: *mut c_char,
    err_size: usize,
) -> c_int {
    entry(ErrBuf::new(err, err_size), || {
        let array = unsafe { &*table }.read(group, column, first, rows)?;
        let (array, schema) = to_ffi(&array.to_data()).map_err(as_code(INVALID))?;
        unsafe {
            ret_array.write(array);
            ret_schema.write(schema);
        }
        Ok(())
    })
}
