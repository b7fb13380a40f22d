// SPDX-License-Identifier: Apache-2.0
//! Leaves no shared memory behind. Zenoh removes a segment when nobody holds it
//! any more, but threads of its own may still hold some when the process exits.

use std::{
    collections::HashMap,
    fs,
    os::unix::fs::MetadataExt,
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
};

use zenoh::shm::cleanup_orphaned_shm_segments;

use crate::border::entry_or;

static SHARED: AtomicBool = AtomicBool::new(false);

/// This process has shared memory, and sweeps before it is gone.
pub fn sweep_at_exit() {
    SHARED.store(true, Ordering::Relaxed);
}

// The lowest number is the last to run: after Zenoh's own.
#[used]
#[link_section = ".fini_array.00101"]
static AT_EXIT: extern "C" fn() = at_exit;

extern "C" fn at_exit() {
    if SHARED.load(Ordering::Relaxed) {
        entry_or((), remove_own);
    }
}

fn segments() -> impl Iterator<Item = PathBuf> {
    let files = fs::read_dir("/dev/shm").into_iter().flatten();
    files
        .filter_map(|file| Some(file.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ext| ext == "zenoh"))
}

/// Removes what this process holds and no other does.
fn remove_own() {
    let held_alone = held_alone(&fs::read_to_string("/proc/locks").unwrap_or_default());
    for path in segments() {
        let inode = fs::metadata(&path).map(|file| file.ino());
        if inode.is_ok_and(|inode| held_alone.get(&inode) == Some(&true)) {
            let _ = fs::remove_file(path);
        }
    }
}

/// Inodes that are locked, and whether by us alone. A line of /proc/locks reads
/// `1: FLOCK ADVISORY READ 4711 00:1b:269 0 EOF`.
fn held_alone(locks: &str) -> HashMap<u64, bool> {
    let own = std::process::id().to_string();
    let mut alone = HashMap::new();
    for line in locks.lines() {
        let fields: Vec<_> = line.split_whitespace().collect();
        let (Some(pid), Some(file)) = (fields.get(4), fields.get(5)) else {
            continue;
        };
        if let Some(Ok(inode)) = file.rsplit(':').next().map(str::parse) {
            *alone.entry(inode).or_insert(true) &= *pid == own;
        }
    }
    alone
}

#[no_mangle]
extern "C" fn tdr_shm_sweep() {
    entry_or((), cleanup_orphaned_shm_segments);
}
