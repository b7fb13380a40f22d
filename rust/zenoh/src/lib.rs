// SPDX-License-Identifier: Apache-2.0
//! Zenoh, tokenizers and Parquet behind `include/tendon_rust.h`, which holds the contract
//! of every function here. Pointers from C are trusted to be what that header says.

mod border;
mod config;
mod links;
mod liveliness;
mod mappings;
mod message;
mod parquet;
mod ping;
mod publish;
mod query;
mod session;
mod shm;
mod sweep;
mod tokenizer;
