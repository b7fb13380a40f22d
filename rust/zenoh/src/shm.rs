// SPDX-License-Identifier: Apache-2.0
//! The pool through which large messages reach peers on this machine.

use std::sync::atomic::{AtomicU64, Ordering};

use zenoh::{
    bytes::ZBytes,
    shm::{PosixShmProviderBackend, ShmProvider, ShmProviderBuilder, ZShmMut},
    Wait,
};

use crate::sweep::sweep_at_exit;

/// Smaller messages are faster through the socket.
pub const WORTHWHILE_BYTES: usize = 4096;

/// What peers' pools may take when we read them: Zenoh locks each pool that it
/// maps, and silently loses every message from one that it cannot lock.
const PEERS_BYTES: usize = 1 << 30;

pub struct Pool {
    provider: ShmProvider<PosixShmProviderBackend>,
    misses: AtomicU64,
}

impl Pool {
    /// Or why there is none.
    pub fn new(bytes: usize) -> Result<Self, String> {
        if !may_lock(bytes.saturating_add(PEERS_BYTES)) {
            return Err(
                "this process may not lock enough memory; raise the limit with `ulimit -l unlimited`"
                    .into(),
            );
        }
        sweep_at_exit();
        let provider = ShmProviderBuilder::default_backend(bytes)
            .wait()
            .map_err(|error| format!("no pool of {bytes} bytes in /dev/shm: {error}"))?;
        Ok(Pool {
            provider,
            misses: AtomicU64::new(0),
        })
    }

    /// A buffer of the pool. None when full.
    pub fn lend(&self, size: usize) -> Option<ZShmMut> {
        // Collecting first, not when full, hands out memory that is still warm.
        self.provider.garbage_collect();
        self.provider.alloc(size).wait().ok()
    }

    /// Joins the parts in one buffer of the pool. None, and counted, when full.
    pub fn gather(&self, parts: &[&[u8]], size: usize) -> Option<ZBytes> {
        let Some(mut buffer) = self.lend(size) else {
            self.misses.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        let mut rest: &mut [u8] = &mut buffer;
        for part in parts {
            let (here, after) = rest.split_at_mut(part.len());
            here.copy_from_slice(part);
            rest = after;
        }
        Some(buffer.into())
    }

    pub fn misses(&self) -> u64 {
        self.misses.load(Ordering::Relaxed)
    }
}

/// Asks the kernel with memory that is mapped and never touched.
fn may_lock(bytes: usize) -> bool {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a mapping of our own, gone before the function returns.
    unsafe {
        let at = libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ, flags, -1, 0);
        if at == libc::MAP_FAILED {
            return false;
        }
        let locked = libc::mlock2(at, bytes, libc::MLOCK_ONFAULT as libc::c_uint) == 0;
        libc::munmap(at, bytes);
        locked
    }
}
