// SPDX-License-Identifier: Apache-2.0
//! Writing: one row group for each batch of rows, and row groups of other files
//! byte for byte.

use std::{
    collections::HashMap,
    ffi::{c_char, c_int},
    fs::File,
    io::{self, Write},
    mem::ManuallyDrop,
    os::fd::FromRawFd,
    sync::Arc,
};

use arrow_array::{
    ffi::{from_ffi_and_data_type, FFI_ArrowArray, FFI_ArrowSchema},
    RecordBatch, StructArray,
};
use arrow_schema::{DataType, Schema, SchemaRef};
use parquet::{
    arrow::{
        arrow_writer::{compute_leaves, ArrowRowGroupWriterFactory, ArrowWriterOptions},
        ArrowWriter,
    },
    basic::Compression,
    column::writer::ColumnCloseResult,
    errors::Result,
    file::{
        metadata::{ColumnChunkMetaData, KeyValue, RowGroupMetaData},
        properties::{EnabledStatistics, WriterProperties},
        writer::SerializedFileWriter,
    },
};

use super::{failed, pages, read::Table};
use crate::border::{
    as_code, entry, fail, free, give, str_from, ErrBuf, Outcome, INVALID, MISMATCH,
};

/// A file of C's to write into. It is C's to sync and to close.
struct Sink(ManuallyDrop<File>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub struct Writer {
    file: SerializedFileWriter<Sink>,
    columns: ArrowRowGroupWriterFactory,
    schema: SchemaRef,
}

/// As `tdr_note`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Note {
    key: *const c_char,
    value: *const c_char,
}

impl Writer {
    fn open(sink: Sink, schema: SchemaRef) -> Result<Self> {
        let notes = schema.metadata().iter();
        let notes = notes.map(|(key, value)| KeyValue::new(key.clone(), value.clone()));
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_statistics_enabled(EnabledStatistics::Chunk)
            .set_offset_index_disabled(true)
            .set_key_value_metadata(Some(notes.collect()))
            .build();
        let options = ArrowWriterOptions::new()
            .with_properties(properties)
            .with_schema_root("schema".to_string());
        let writer = ArrowWriter::try_new_with_options(sink, schema.clone(), options)?;
        let (file, columns) = writer.into_serialized_writer()?;
        Ok(Writer {
            file,
            columns,
            schema,
        })
    }

    fn append(&mut self, batch: &RecordBatch) -> Result<()> {
        let index = self.file.flushed_row_groups().len();
        let mut writers = self.columns.create_column_writers(index)?;
        let mut next = writers.iter_mut();
        for (field, array) in self.schema.fields().iter().zip(batch.columns()) {
            for (leaf, writer) in compute_leaves(field, array)?.iter().zip(&mut next) {
                writer.write(leaf)?;
            }
        }
        let mut group = self.file.next_row_group()?;
        for writer in writers {
            writer.close()?.append_to_row_group(&mut group)?;
        }
        group.close().map(drop)
    }

    fn copy(&mut self, table: &Table) -> Outcome {
        let from = table.metadata().file_metadata().schema_descr();
        if self.file.schema_descr().root_schema().get_fields() != from.root_schema().get_fields() {
            return fail(MISMATCH, "the two files have different columns");
        }
        for group in table.metadata().row_groups() {
            for column in group.columns() {
                let (start, length) = column.byte_range();
                pages::check(table.source(), start, start + length)?;
            }
            self.copy_group(table, group).map_err(failed)?;
        }
        Ok(())
    }

    fn copy_group(&mut self, table: &Table, from: &RowGroupMetaData) -> Result<()> {
        let rows = from.num_rows() as u64;
        let mut group = self.file.next_row_group()?;
        for column in from.columns() {
            group.append_column(table.source(), as_written(column, rows))?;
        }
        group.close().map(drop)
    }
}

fn as_written(column: &ColumnChunkMetaData, rows: u64) -> ColumnCloseResult {
    ColumnCloseResult {
        bytes_written: column.compressed_size() as u64,
        rows_written: rows,
        metadata: column.clone(),
        bloom_filter: None,
        column_index: None,
        offset_index: None,
    }
}

/// # Safety
/// The notes are as the header says.
unsafe fn notes_from(notes: *const Note, count: usize) -> Outcome<HashMap<String, String>> {
    let mut read = HashMap::with_capacity(count);
    for i in 0..count {
        let note = unsafe { *notes.add(i) };
        let key = unsafe { str_from(note.key) }?;
        read.insert(
            key.to_string(),
            unsafe { str_from(note.value) }?.to_string(),
        );
    }
    Ok(read)
}

/// # Safety
/// As the header says.
pub unsafe extern "C" fn create(
    fd: c_int,
    schema: *mut FFI_ArrowSchema,
    notes: *const Note,
    note_count: usize,
    ret_writer: *mut *mut Writer,
    err: *mut c_char,
    err_size: usize,
) -> c_int {
    entry(ErrBuf::new(err, err_size), || {
        let schema = unsafe { FFI_ArrowSchema::from_raw(schema) };
        let schema = Schema::try_from(&schema).map_err(as_code(INVALID))?;
        let notes = unsafe { notes_from(notes, note_count) }?;
        let schema = Arc::new(schema.with_metadata(notes));
        let sink = Sink(ManuallyDrop::new(unsafe { File::from_raw_fd(fd) }));
        let writer = Writer::open(sink, schema).map_err(failed)?;
        unsafe { give(ret_writer, writer) };
        Ok(())
    })
}

/// # Safety
/// As the header says.
pub unsafe extern "C" fn append(
    writer: *mut Writer,
    array: *mut FFI_ArrowArray,
    err: *mut c_char,
    err_size: usize,
) -> c_int {
    entry(ErrBuf::new(err, err_size), || {
        let writer = unsafe { &mut *writer };
        let kind = DataType::Struct(writer.schema.fields().clone());
        let array = unsafe { FFI_ArrowArray::from_raw(array) };
        let data = unsafe { from_ffi_and_data_type(array, kind) }.map_err(as_code(INVALID))?;
        let batch = RecordBatch::from(StructArray::from(data));
        writer.append(&batch).map_err(failed)
    })
}

/// # Safety
/// As the header says.
pub unsafe extern "C" fn copy(
    writer: *mut Writer,
    table: *const Table,
    err: *mut c_char,
    err_size: usize,
) -> c_int {
    entry(ErrBuf::new(err, err_size), || {
        unsafe { &mut *writer }.copy(unsafe { &*table })
    })
}

/// # Safety
/// As the header says.
pub unsafe extern "C" fn finish(writer: *mut Writer, err: *mut c_char, err_size: usize) -> c_int {
    entry(ErrBuf::new(err, err_size), || {
        let written = unsafe { &mut *writer }.file.finish();
        written.map(drop).map_err(failed)
    })
}

/// # Safety
/// As the header says.
pub unsafe extern "C" fn abandon(writer: *mut Writer) {
    unsafe { free(writer) };
}
