// SPDX-License-Identifier: Apache-2.0
//! Peers' pools in our address space. Zenoh itself keeps each one mapped, and
//! locked in memory, for as long as a session lives, so that a server would
//! lose a pool's size each time one of its robots restarts. Here a pool goes
//! when a peer has left and nothing in it is in use: at once, or when the last
//! message that was kept from it is freed.

use std::sync::{
    atomic::{fence, AtomicBool, AtomicUsize, Ordering},
    Arc, Mutex, MutexGuard, PoisonError, Weak,
};

use zenoh::shm::{
    ChunkID, PosixShmClient, ProtocolID, SegmentID, ShmClient, ShmClientStorage, ShmSegment,
    WithProtocolID,
};

/// Zenoh's table and ours; each buffer in use adds one.
const IDLE_REFERENCES: usize = 2;

/// All that live, and how many of them have pools that are to go.
static ALL: Mutex<Vec<Weak<Mappings>>> = Mutex::new(Vec::new());
static BEHIND: AtomicUsize = AtomicUsize::new(0);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A message was freed, which may have been the last in a pool that is to go.
pub fn freed() {
    fence(Ordering::SeqCst); // either we see BEHIND, or release() what we freed
    if BEHIND.load(Ordering::Relaxed) == 0 {
        return;
    }
    let all: Vec<_> = lock(&ALL).iter().filter_map(Weak::upgrade).collect();
    all.iter().for_each(|mappings| mappings.release());
}

#[derive(Debug)]
struct Mapping {
    id: SegmentID,
    segment: Mutex<Option<Arc<dyn ShmSegment>>>,
    leaves: AtomicBool, // as soon as it is idle; under the lock of all
}

impl ShmSegment for Mapping {
    fn map(&self, chunk: ChunkID) -> zenoh::Result<*mut u8> {
        let mut segment = lock(&self.segment);
        let mapped = match segment.take() {
            Some(mapped) => mapped,
            None => PosixShmClient.attach(self.id)?,
        };
        segment.insert(mapped).map(chunk)
    }
}

#[derive(Debug, Default)]
struct Known {
    list: Vec<Arc<Mapping>>,
    behind: bool, // counted in BEHIND
}

#[derive(Debug, Default)]
pub struct Mappings {
    known: Mutex<Known>,
}

impl Mappings {
    pub fn new() -> Arc<Self> {
        let made = Arc::new(Self::default());
        let mut all = lock(&ALL);
        all.retain(|other| other.strong_count() > 0);
        all.push(Arc::downgrade(&made));
        made
    }

    pub fn storage(self: &Arc<Self>) -> Arc<ShmClientStorage> {
        Arc::new(
            ShmClientStorage::builder()
                .with_client(self.clone())
                .build(),
        )
    }

    /// A peer has left, and nobody knows which pool was its: each goes when it is
    /// idle. Who wants one again, maps it again.
    pub fn release_idle(&self) {
        let known = lock(&self.known);
        for mapping in &known.list {
            mapping.leaves.store(true, Ordering::Relaxed);
        }
        drop(known);
        self.release();
    }

    /// A reader takes its reference before it takes the lock, so that what is seen
    /// idle under the lock is.
    fn release(&self) {
        let mut known = lock(&self.known);
        known.be_behind(true);
        fence(Ordering::SeqCst);
        let mut any = false;
        for mapping in &known.list {
            if !mapping.leaves.load(Ordering::Relaxed) {
                continue;
            }
            let mut segment = lock(&mapping.segment);
            if Arc::strong_count(mapping) == IDLE_REFERENCES {
                fence(Ordering::Acquire);
                *segment = None;
                mapping.leaves.store(false, Ordering::Relaxed);
            } else {
                any = true;
            }
        }
        known.be_behind(any);
    }
}

impl Known {
    fn be_behind(&mut self, behind: bool) {
        match (self.behind, behind) {
            (false, true) => BEHIND.fetch_add(1, Ordering::Relaxed),
            (true, false) => BEHIND.fetch_sub(1, Ordering::Relaxed),
            _ => return,
        };
        self.behind = behind;
    }
}

impl Drop for Known {
    fn drop(&mut self) {
        self.be_behind(false);
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
            leaves: AtomicBool::new(false),
        });
        lock(&self.known).list.push(mapping.clone());
        Ok(mapping)
    }
}
