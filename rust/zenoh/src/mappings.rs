// SPDX-License-Identifier: Apache-2.0
//! Peers' pools in our address space. Zenoh itself keeps each one mapped, and
//! locked in memory, for as long as a session lives, so that a server would
//! lose a pool's size each time one of its robots restarts. Here a pool goes
//! when a peer has left and nothing in it is in use.

use std::sync::{
    atomic::{fence, Ordering},
    Arc, Mutex, PoisonError,
};

use zenoh::shm::{
    ChunkID, PosixShmClient, ProtocolID, SegmentID, ShmClient, ShmClientStorage, ShmSegment,
    WithProtocolID,
};

/// Zenoh's table and ours; each buffer in use adds one.
const IDLE_REFERENCES: usize = 2;

#[derive(Debug)]
struct Mapping {
    id: SegmentID,
    segment: Mutex<Option<Arc<dyn ShmSegment>>>,
}

impl ShmSegment for Mapping {
    fn map(&self, chunk: ChunkID) -> zenoh::Result<*mut u8> {
        let mut segment = self.segment.lock().unwrap_or_else(PoisonError::into_inner);
        let mapped = match segment.take() {
            Some(mapped) => mapped,
            None => PosixShmClient.attach(self.id)?,
        };
        segment.insert(mapped).map(chunk)
    }
}

#[derive(Debug, Default)]
pub struct Mappings {
    known: Mutex<Vec<Arc<Mapping>>>,
}

impl Mappings {
    pub fn storage(self: &Arc<Self>) -> Arc<ShmClientStorage> {
        Arc::new(
            ShmClientStorage::builder()
                .with_client(self.clone())
                .build(),
        )
    }

    /// Who wants one of them again, maps it again: a reader takes its reference
    /// before it takes the lock, so that what is seen idle under the lock is.
    pub fn release_idle(&self) {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for mapping in known.iter() {
            let mut segment = mapping
                .segment
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            if Arc::strong_count(mapping) == IDLE_REFERENCES {
                fence(Ordering::Acquire);
                *segment = None;
            }
        }
    }
}

impl WithProtocolID for Mappings {
    fn id(&self) -> ProtocolID {
        PosixShmClient.id()
    }
}

impl ShmClient for Mappings {
    fn attach(&self, id: SegmentID) -> zenoh::Result<Arc<dyn ShmSegment>> {
        let mapping = Arc::new(Mapping {
            id,
            segment: Mutex::new(Some(PosixShmClient.attach(id)?)),
        });
        self.known
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(mapping.clone());
        Ok(mapping)
    }
}
