// SPDX-License-Identifier: Apache-2.0
#ifndef TD_ENGINE_WORKER_RING_RING_H
#define TD_ENGINE_WORKER_RING_RING_H

// The server's end of the memory in tendon/worker.h: where everything goes,
// writing a batch and reading its answers. Pure: memory in, memory out.
//
// The other process may write anything into its half at any time. Everything
// is copied first and checked in the copy, and nothing that it wrote says where
// to read.

#include "base/err.h"
#include "engine/picture.h"
#include "tendon/engine.h"
#include "tendon/worker.h"

// Room for what has no fixed size (tensors, texts), for each member of a batch.
// Memory that is never written costs nothing.
#define TD_ENGINE_WORKER_EXTRA_BYTES (4u << 20)

#define TD_ENGINE_WORKER_ALIGN 64

static inline uint64_t td_engine_worker_round_up(uint64_t bytes, uint64_t to)
{
    return (bytes + to - 1) / to * to;
}

// Offsets in a slot's requests and results, and in the file.
typedef struct td_engine_worker_layout {
    uint64_t states, state_bytes; // member 0's, and from one to the next
    uint64_t images[TD_WIRE_MAX_IMAGES], image_bytes[TD_WIRE_MAX_IMAGES];
    uint64_t extra; // until the end of the requests
    uint64_t request_bytes;
    uint64_t actions, actions_bytes; // member 0's, and from one to the next
    uint64_t values, values_bytes;
    uint64_t result_bytes;
    uint64_t requests, results, file_bytes;
} td_engine_worker_layout;

// LIMIT when such batches would take more than 64 GiB.
TD_NODISCARD td_err td_engine_worker_layout_make(
    const td_worker_spec *spec, td_engine_worker_layout *ret_layout,
    td_errinfo *info);

// Writes one batch, a member at a time.
typedef struct td_engine_worker_writer {
    const td_worker_spec *spec;
    const td_engine_worker_layout *layout;
    td_engine_picture_reader *pictures;
    td_worker_operation operation; // of the batch
    uint8_t *slot;                 // its requests
    uint64_t used;                 // up to here
    uint32_t count;
    // Of the next member's images, in its order, where they lie in a segment;
    // 0: they are to be written.
    uint64_t places[TD_WIRE_MAX_IMAGES];
} td_engine_worker_writer;

// `requests` is the slot's part of the file. Borrows everything.
void td_engine_worker_write_begin(td_engine_worker_writer *writer,
                                  td_worker_operation operation,
                                  uint8_t *requests);

// Adds a member: pictures are decoded or copied straight to their place. To be
// decoded it needs no observation. `prefix` is its prefix's number, where it
// has one. When it fails nothing was added. MISMATCH, FORMAT, LIMIT,
// UNSUPPORTED with the field in `info`.
TD_NODISCARD td_err td_engine_worker_write_member(
    td_engine_worker_writer *writer, const td_engine_item *item,
    uint64_t prefix, td_errinfo *info);

// Shows the batch to the other process.
void td_engine_worker_write_end(const td_engine_worker_writer *writer,
                                uint64_t generation);

// Whether the answers to this batch are there.
bool td_engine_worker_read_ready(const td_worker_result *shared,
                                 uint64_t generation);

// What a value is and how many bytes it has. False when it cannot be.
bool td_engine_worker_read_shape(const td_worker_value *value,
                                 td_wire_tensor *ret_tensor);

// Reads the answers to one batch.
typedef struct td_engine_worker_reader {
    const td_worker_spec *spec;
    const td_engine_worker_layout *layout;
    td_worker_operation operation;  // of the batch
    const td_worker_result *shared; // the slot's results
} td_engine_worker_reader;

// Takes the answers of `count` members: status, rows, actions, results, or the
// bytes of a prefix; of those that failed, why. FORMAT when the header cannot
// be: then no item is touched.
TD_NODISCARD td_err td_engine_worker_read(const td_engine_worker_reader *reader,
                                          td_engine_item *const *items,
                                          uint32_t count,
                                          int64_t *ret_service_ns);

#endif
