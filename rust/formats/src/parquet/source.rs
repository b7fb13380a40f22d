// SPDX-License-Identifier: Apache-2.0
//! A file of C's to read from: by position, so that nobody's offset moves.

use std::{
    fs::File,
    io::{self, BufReader, Read},
    mem::ManuallyDrop,
    os::{
        fd::{FromRawFd, RawFd},
        unix::fs::FileExt,
    },
    sync::Arc,
};

use bytes::Bytes;
use parquet::{
    errors::{ParquetError, Result},
    file::reader::{ChunkReader, Length},
};

#[derive(Clone)]
pub struct Source {
    file: Arc<ManuallyDrop<File>>,
    size: u64,
}

impl Source {
    /// # Safety
    /// `fd` is open for as long as the source is used.
    pub unsafe fn new(fd: RawFd) -> io::Result<Self> {
        let file = ManuallyDrop::new(unsafe { File::from_raw_fd(fd) });
        let size = file.metadata()?.len();
        Ok(Source {
            file: Arc::new(file),
            size,
        })
    }

    pub fn size(&self) -> u64 {
        self.size
    }

    /// Takes memory only for what is there.
    pub fn bytes_at(&self, start: u64, length: usize) -> io::Result<Vec<u8>> {
        if start > self.size || length as u64 > self.size - start {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut bytes = vec![0; length];
        self.file.read_exact_at(&mut bytes, start)?;
        Ok(bytes)
    }
}

impl Length for Source {
    fn len(&self) -> u64 {
        self.size
    }
}

pub struct ReadFrom {
    file: Arc<ManuallyDrop<File>>,
    at: u64,
}

impl Read for ReadFrom {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(buffer, self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

impl ChunkReader for Source {
    type T = BufReader<ReadFrom>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        Ok(BufReader::new(ReadFrom {
            file: self.file.clone(),
            at: start,
        }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let bytes = self.bytes_at(start, length);
        bytes.map(Bytes::from).map_err(ParquetError::from)
    }
}
