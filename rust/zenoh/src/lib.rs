// SPDX-License-Identifier: Apache-2.0
//! Zenoh behind `include/tendon_zenoh.h`, which holds the contract of every function here.
//! Pointers from C are trusted to be what that header says.

mod border;
mod config;
mod links;
mod liveliness;
mod mappings;
mod message;
mod ping;
mod publish;
mod query;
mod session;
mod shm;
mod sweep;
