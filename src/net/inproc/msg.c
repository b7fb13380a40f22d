// SPDX-License-Identifier: Apache-2.0
#include "net/inproc/msg.h"

#include <stdlib.h>
#include <string.h>

static size_t total(const td_slice *parts, size_t count)
{
    size_t size = 0;
    for (size_t i = 0; i < count; i++)
        size += parts[i].size;
    return size;
}

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
    TD_TRY(td_inproc_msg_new_blank(ops, key, total(parts, count), &msg));
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

void td_inproc_msg_unref(td_inproc_msg *msg)
{
    if (msg && atomic_fetch_sub(&msg->refs, 1) == 1) free(msg);
}
