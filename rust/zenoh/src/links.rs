// SPDX-License-Identifier: Apache-2.0
//! Who is connected. Zenoh reports transports (with shared memory or not) and
//! their links (with addresses); we report a peer once both are known.

use std::{
    collections::HashMap,
    ffi::{c_char, c_int, c_void, CString},
    sync::{
        atomic::{AtomicUsize, Ordering},
        Arc, Mutex, MutexGuard, PoisonError,
    },
};

use zenoh::{
    sample::SampleKind,
    session::{LinkEvent, TransportEvent, ZenohId},
    Session, Wait,
};

use crate::{
    border::{as_code, c_string, callback, ErrBuf, Hook, Outcome, IO},
    mappings::Mappings,
    session::{declare, Decl, Handle},
};

#[repr(C)]
pub struct CLink {
    peer: *const c_char,
    address: *const c_char,
    up: bool,
    shared_memory: bool,
}

type OnLink = unsafe extern "C" fn(*mut c_void, *const CLink);

struct Peer {
    name: CString,
    shared_memory: bool,
    address: Option<CString>, // known while it is up
}

impl Peer {
    fn notify(&self, hook: Hook<OnLink>, up: bool) {
        let Some(address) = &self.address else { return };
        let link = CLink {
            peer: self.name.as_ptr(),
            address: address.as_ptr(),
            up,
            shared_memory: self.shared_memory,
        };
        // SAFETY: as the header says.
        callback(|| unsafe { (hook.call)(hook.user, &link) });
    }
}

#[derive(Default)]
struct State {
    peers: HashMap<ZenohId, Peer>,
    watchers: HashMap<usize, Hook<OnLink>>,
    next_watcher: usize,
}

pub struct Links {
    // Held while watchers are called, so that each hears of changes in order
    // and of none after it has left.
    state: Mutex<State>,
    sharing: AtomicUsize, // peers that are up and share memory
    mappings: Arc<Mappings>,
}

impl Links {
    /// Follows a session from before it connects.
    pub fn follow(session: &Session, mappings: Arc<Mappings>) -> Outcome<Arc<Self>> {
        let links = Arc::new(Links {
            state: Mutex::default(),
            sharing: AtomicUsize::new(0),
            mappings,
        });
        let info = session.info();
        let on_transport = links.clone();
        info.transport_events_listener()
            .callback(move |event| on_transport.transport(&event))
            .background()
            .wait()
            .map_err(as_code(IO))?;
        let on_link = links.clone();
        info.link_events_listener()
            .callback(move |event| on_link.link(&event))
            .background()
            .wait()
            .map_err(as_code(IO))?;
        Ok(links)
    }

    pub fn any_shares_memory(&self) -> bool {
        self.sharing.load(Ordering::Relaxed) > 0
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn transport(&self, event: &TransportEvent) {
        let id = *event.transport().zid();
        let mut state = self.lock();
        match event.kind() {
            SampleKind::Put => {
                let peer = Peer {
                    name: c_string(&id.to_string()),
                    shared_memory: event.transport().is_shm(),
                    address: None,
                };
                state.peers.insert(id, peer);
            }
            SampleKind::Delete => {
                let Some(peer) = state.peers.remove(&id) else {
                    return;
                };
                if peer.address.is_some() && peer.shared_memory {
                    self.sharing.fetch_sub(1, Ordering::Relaxed);
                }
                self.mappings.release_idle();
                state
                    .watchers
                    .values()
                    .for_each(|hook| peer.notify(*hook, false));
            }
        }
    }

    fn link(&self, event: &LinkEvent) {
        if event.kind() != SampleKind::Put {
            return; // the transport's own end follows
        }
        let mut state = self.lock();
        let State {
            peers, watchers, ..
        } = &mut *state;
        let Some(peer) = peers.get_mut(event.link().zid()) else {
            return;
        };
        if peer.address.is_some() {
            return;
        }
        let link = event.link();
        peer.address = Some(c_string(&format!("{} -> {}", link.src(), link.dst())));
        if peer.shared_memory {
            self.sharing.fetch_add(1, Ordering::Relaxed);
        }
        watchers.values().for_each(|hook| peer.notify(*hook, true));
    }

    fn watch(&self, hook: Hook<OnLink>) -> usize {
        let mut state = self.lock();
        state
            .peers
            .values()
            .for_each(|peer| peer.notify(hook, true));
        let id = state.next_watcher;
        state.next_watcher += 1;
        state.watchers.insert(id, hook);
        id
    }

    pub fn unwatch(&self, id: usize) {
        self.lock().watchers.remove(&id);
    }
}

#[no_mangle]
unsafe extern "C" fn tdr_links(
    session: *const Handle,
    on_link: OnLink,
    user: *mut c_void,
    ret_decl: *mut *mut Decl,
    err: *mut c_char,
    err_size: usize,
) -> c_int {
    let err = ErrBuf::new(err, err_size);
    unsafe {
        declare(session, ret_decl, err, |handle| {
            let id = handle.links.watch(Hook::new(on_link, user));
            Ok(Decl::Links(handle.links.clone(), id))
        })
    }
}
