// SPDX-License-Identifier: Apache-2.0
#include "net/inproc/keyexpr.h"

#include <string.h>

static size_t chunk_size(const char *at)
{
    return strcspn(at, "/");
}

static const char *after_chunk(const char *at)
{
    at += chunk_size(at);
    return *at ? at + 1 : at;
}

static bool chunk_is(const char *at, const char *text)
{
    size_t size = chunk_size(at);
    return size == strlen(text) && memcmp(at, text, size) == 0;
}

static bool is_wild(const char *at)
{
    return chunk_is(at, "*") || chunk_is(at, "**");
}

static td_err check_chunk(const char *keyexpr, const char *at, td_errinfo *info)
{
    size_t size = chunk_size(at);
    if (size == 0)
        return td_fail(info, TD_ERR_INVALID, "key '%s': empty chunk", keyexpr);
    if (is_wild(at)) return TD_OK;
    size_t plain = strcspn(at, "*$#?");
    if (plain < size)
        return td_fail(info, TD_ERR_INVALID,
                       "key '%s': '%c' may not be part of a chunk", keyexpr,
                       at[plain]);
    return TD_OK;
}

td_err td_inproc_keyexpr_check(const char *keyexpr, td_errinfo *info)
{
    const char *at = keyexpr;
    for (;;) {
        TD_TRY(check_chunk(keyexpr, at, info));
        const char *slash = strchr(at, '/');
        if (!slash) return TD_OK;
        if (chunk_is(at, "**") && is_wild(slash + 1))
            return td_fail(info, TD_ERR_INVALID,
                           "key '%s': nothing wild may follow '**'", keyexpr);
        at = slash + 1;
    }
}

td_err td_inproc_keyexpr_check_key(const char *key, td_errinfo *info)
{
    if (strchr(key, '*'))
        return td_fail(info, TD_ERR_INVALID,
                       "key '%s': wildcards do not name one key", key);
    return td_inproc_keyexpr_check(key, info);
}

static bool chunks_match(const char *a, const char *b)
{
    if (chunk_is(a, "*")) return *b != '@';
    if (chunk_is(b, "*")) return *a != '@';
    size_t size = chunk_size(a);
    return size == chunk_size(b) && memcmp(a, b, size) == 0;
}

// `wide` begins with `**`, which stands for no chunk, or for one of `other` and
// perhaps more.
static bool wide_intersects(const char *wide, const char *other)
{
    if (td_inproc_keyexpr_intersects(after_chunk(wide), other)) return true;
    return *other && *other != '@' &&
           td_inproc_keyexpr_intersects(wide, after_chunk(other));
}

bool td_inproc_keyexpr_intersects(const char *a, const char *b)
{
    if (chunk_is(a, "**")) return wide_intersects(a, b);
    if (chunk_is(b, "**")) return wide_intersects(b, a);
    if (!*a || !*b) return *a == *b;
    return chunks_match(a, b) &&
           td_inproc_keyexpr_intersects(after_chunk(a), after_chunk(b));
}
