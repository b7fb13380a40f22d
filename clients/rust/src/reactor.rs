// SPDX-License-Identifier: Apache-2.0
//! One thread for all futures of the process: it polls the models' descriptors
//! and wakes who waits for them. It starts with the first wait.

use std::{
    io::{Read, Write},
    os::{
        fd::{AsRawFd, RawFd},
        unix::net::UnixStream,
    },
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
    task::Waker,
    thread,
    time::Instant,
};

use crate::{ffi::wait_readable, Code, Error, Result};

struct Waiting {
    id: u64,
    fd: RawFd,
    until: Option<Instant>,
    waker: Waker,
}

#[derive(Default)]
struct Table {
    next_id: u64,
    waiting: Vec<Waiting>,
}

struct Reactor {
    table: Mutex<Table>,
    bell: UnixStream, // what is written here wakes the thread
}

impl Reactor {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // A bell that is full has been rung.
    fn ring(&self) {
        let _ = (&self.bell).write(&[0]);
    }
}

fn reactor() -> Result<&'static Reactor> {
    static REACTOR: OnceLock<std::io::Result<Reactor>> = OnceLock::new();
    let made = REACTOR.get_or_init(|| {
        let (bell, heard) = UnixStream::pair()?;
        bell.set_nonblocking(true)?;
        heard.set_nonblocking(true)?;
        thread::Builder::new().name("td-reactor".into()).spawn(move || run(heard))?;
        let table = Mutex::default();
        Ok(Reactor { table, bell })
    });
    made.as_ref()
        .map_err(|error| Error::new(Code::Io, format!("no thread for futures: {error}")))
}

fn poll_ms(until: Option<Instant>) -> i32 {
    let Some(until) = until else { return -1 };
    let left = until.saturating_duration_since(Instant::now());
    i32::try_from(left.as_micros().div_ceil(1000)).unwrap_or(i32::MAX)
}

/// Takes out, and wakes, those whose descriptor is readable or whose time is
/// over. Each asks again if it still waits.
fn wake(reactor: &Reactor, fds: &[RawFd], readable: &[bool]) {
    let now = Instant::now();
    let is_over = |one: &Waiting| {
        let ready = fds.iter().zip(readable).any(|(&fd, &is)| is && fd == one.fd);
        ready || one.until.is_some_and(|until| until <= now)
    };
    let mut table = reactor.table();
    let (over, rest) = table.waiting.drain(..).partition::<Vec<_>, _>(is_over);
    table.waiting = rest;
    drop(table);
    for one in over {
        one.waker.wake();
    }
}

fn run(mut heard: UnixStream) {
    let Ok(reactor) = reactor() else { return };
    loop {
        let table = reactor.table();
        let mut fds = vec![heard.as_raw_fd()];
        fds.extend(table.waiting.iter().map(|one| one.fd));
        let until = table.waiting.iter().filter_map(|one| one.until).min();
        drop(table);
        let readable = wait_readable(&fds, poll_ms(until));
        while heard.read(&mut [0; 64]).is_ok_and(|count| count > 0) {}
        wake(reactor, &fds[1..], &readable[1..]);
    }
}

/// A future's place in the table; left when it is dropped.
#[derive(Default)]
pub struct Place(Option<u64>);

impl Place {
    /// Has `waker` woken once, when `fd` is readable or after `until`.
    pub fn wait(&mut self, fd: RawFd, until: Option<Instant>, waker: Waker) -> Result<()> {
        let reactor = reactor()?;
        self.leave();
        let mut table = reactor.table();
        table.next_id += 1;
        let id = table.next_id;
        table.waiting.push(Waiting {
            id,
            fd,
            until,
            waker,
        });
        drop(table);
        self.0 = Some(id);
        reactor.ring();
        Ok(())
    }

    /// Waits no more; after this the descriptor may be closed.
    pub fn leave(&mut self) {
        let (Some(id), Ok(reactor)) = (self.0.take(), reactor()) else {
            return;
        };
        reactor.table().waiting.retain(|one| one.id != id);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.leave();
    }
}
