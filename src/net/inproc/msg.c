// SPDX-License-Identifier: Apache-2.0
#include "net/inproc/msg.h"

#include "base/slice.h"

#include <stdlib.h>
#include <string.h>

#define PIECE TD_INPROC_PIECE_BYTES
#define GAP ((size_t)64) // between pieces

td_err td_inproc_msg_new_blank(const td_net_ops *ops, const char *key,
                               size_t size, td_inproc_msg **ret_msg)
{
    size_t key_bytes = strlen(key) + 1;
    size_t bytes = sizeof(td_inproc_msg) + size + key_bytes;
    size_t align = alignof(td_inproc_msg);

    td_inproc_msg *msg =
        aligned_alloc(align, (bytes + align - 1) & ~(align - 1));
    if (!msg) return TD_ERR_NOMEM;
    msg->base.ops = ops;
    atomic_init(&msg->refs, 1);
    atomic_init(&msg->pieces, NULL);
    msg->size = size;
    msg->key = memcpy(msg->bytes + size, key, key_bytes);
    *ret_msg = msg;
    return TD_OK;
}

td_err td_inproc_msg_new(const td_net_ops *ops, const char *key,
                         const td_slice *parts, size_t count,
                         td_inproc_msg **ret_msg)
{
    td_inproc_msg *msg = NULL;
    TD_TRY(
        td_inproc_msg_new_blank(ops, key, td_slice_total(parts, count), &msg));
    unsigned char *at = msg->bytes;
    for (size_t i = 0; i < count; i++) {
        if (parts[i].size) memcpy(at, parts[i].data, parts[i].size);
        at += parts[i].size;
    }
    *ret_msg = msg;
    return TD_OK;
}

td_inproc_msg *td_inproc_msg_ref(td_inproc_msg *msg)
{
    if (msg) atomic_fetch_add_explicit(&msg->refs, 1, memory_order_relaxed);
    return msg;
}

struct td_inproc_pieces {
    size_t count;
    td_slice at[]; // their bytes behind them
};

static td_err cut_up(const td_inproc_msg *msg, td_inproc_pieces **ret_pieces)
{
    size_t count = msg->size / PIECE + (msg->size % PIECE || !msg->size);
    td_inproc_pieces *pieces =
        malloc(sizeof *pieces + count * (sizeof(td_slice) + PIECE + GAP));
    if (!pieces) return TD_ERR_NOMEM;
    unsigned char *into = (unsigned char *)&pieces->at[count];
    pieces->count = count;
    for (size_t i = 0, done = 0; i < count; i++) {
        size_t left = msg->size - done, size = left < PIECE ? left : PIECE;
        memcpy(into, msg->bytes + done, size);
        memset(into + size, 0xee, GAP);
        pieces->at[i] = (td_slice){into, size};
        into += size + GAP;
        done += size;
    }
    *ret_pieces = pieces;
    return TD_OK;
}

td_err td_inproc_msg_pieces(td_inproc_msg *msg, const td_slice **ret_pieces,
                            size_t *ret_count)
{
    td_inproc_pieces *pieces = atomic_load(&msg->pieces), *made = NULL;
    if (!pieces) {
        TD_TRY(cut_up(msg, &made));
        if (atomic_compare_exchange_strong(&msg->pieces, &pieces, made))
            pieces = made;
        else
            free(made); // another thread was first
    }
    *ret_pieces = pieces->at;
    *ret_count = pieces->count;
    return TD_OK;
}

void td_inproc_msg_unref(td_inproc_msg *msg)
{
    if (!msg || atomic_fetch_sub(&msg->refs, 1) != 1) return;
    free(atomic_load(&msg->pieces));
    free(msg);
}
