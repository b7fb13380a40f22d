// SPDX-License-Identifier: Apache-2.0
#include "sched/prefixes.h"

#include "sched/strategy/heap.h"

#include <assert.h>
#include <stdlib.h>

typedef struct kept {
    void *handle; // NULL: none
    uint64_t bytes;
    td_sched_prefix_ident ident;
} kept;

typedef struct member {
    kept now;
    kept leaving; // in use when it ended; freed when released
    bool in_use;  // `leaving` if there is one, else `now`
} member;

struct td_sched_prefixes {
    uint32_t capacity;
    uint64_t most_bytes;
    int64_t age_ns;
    td_sched_heap idle; // members by the time of last use; not those in use
    td_sched_prefixes_counts counts;
    member members[];
};

const char *td_sched_prefixes_end_name(td_sched_prefix_end end)
{
    static const char *const names[] = {
#define TD_SCHED_PREFIX_END_NAME(name, text) text,
        TD_SCHED_PREFIX_ENDS(TD_SCHED_PREFIX_END_NAME)
#undef TD_SCHED_PREFIX_END_NAME
    };
    return names[end];
}

td_err td_sched_prefixes_new(uint32_t capacity, uint64_t most_bytes,
                             int64_t age_ns, td_sched_prefixes **ret_prefixes)
{
    if (capacity == 0 || most_bytes == 0 || age_ns <= 0) return TD_ERR_INVALID;
    TD_AUTO(td_sched_prefixes) *prefixes =
        calloc(1, sizeof *prefixes + capacity * sizeof prefixes->members[0]);
    if (!prefixes) return TD_ERR_NOMEM;
    prefixes->capacity = capacity;
    prefixes->most_bytes = most_bytes;
    prefixes->age_ns = age_ns;
    TD_TRY(td_sched_heap_init(&prefixes->idle, capacity));
    *ret_prefixes = TD_TAKE(prefixes);
    return TD_OK;
}

void td_sched_prefixes_free(td_sched_prefixes *prefixes)
{
    td_sched_heap_done(&prefixes->idle);
    free(prefixes);
}

static member *member_of(td_sched_prefixes *prefixes, uint32_t number)
{
    assert(number < prefixes->capacity);
    return &prefixes->members[number];
}

// Out of the book; its bytes count until it can be freed.
static void *end(td_sched_prefixes *prefixes, uint32_t number,
                 td_sched_prefix_end why)
{
    member *m = member_of(prefixes, number);
    kept ended = m->now;
    if (!ended.handle) return NULL;
    m->now = (kept){0};
    td_sched_heap_take(&prefixes->idle, number);
    prefixes->counts.ends[why]++;
    prefixes->counts.present--;
    if (m->in_use && !m->leaving.handle) {
        m->leaving = ended;
        return NULL;
    }
    prefixes->counts.bytes -= ended.bytes;
    return ended.handle;
}

void *td_sched_prefixes_evict(td_sched_prefixes *prefixes, int64_t now_ns,
                              uint64_t bytes)
{
    if (prefixes->idle.count == 0) return NULL;
    uint32_t oldest = td_sched_heap_first(&prefixes->idle);
    int64_t unused_ns = now_ns - td_sched_heap_key(&prefixes->idle);
    if (unused_ns >= prefixes->age_ns)
        return end(prefixes, oldest, TD_SCHED_PREFIX_AGED);
    if (bytes > prefixes->most_bytes ||
        prefixes->counts.bytes <= prefixes->most_bytes - bytes)
        return NULL; // it can never fit, or it fits
    return end(prefixes, oldest, TD_SCHED_PREFIX_EVICTED);
}

// What the member's own older one gives back when it is replaced.
static uint64_t own_bytes(const member *m)
{
    return m->in_use && !m->leaving.handle ? 0 : m->now.bytes;
}

td_err td_sched_prefixes_keep(td_sched_prefixes *prefixes, uint32_t number,
                              int64_t now_ns,
                              const td_sched_prefix_ident *ident, void *handle,
                              uint64_t bytes, void **ret_replaced)
{
    assert(handle);
    member *m = member_of(prefixes, number);
    uint64_t others = prefixes->counts.bytes - own_bytes(m);
    if (bytes > prefixes->most_bytes || others > prefixes->most_bytes - bytes) {
        prefixes->counts.refused++;
        return TD_ERR_LIMIT;
    }
    *ret_replaced = end(prefixes, number, TD_SCHED_PREFIX_REPLACED);
    m->now = (kept){handle, bytes, *ident};
    td_sched_heap_put(&prefixes->idle, number, now_ns);
    prefixes->counts.kept++;
    prefixes->counts.present++;
    prefixes->counts.bytes += bytes;
    return TD_OK;
}

static bool same(const td_sched_prefix_ident *a, const td_sched_prefix_ident *b)
{
    return a->version == b->version && a->boot == b->boot &&
           a->episode == b->episode && a->seq == b->seq;
}

void *td_sched_prefixes_use(td_sched_prefixes *prefixes, uint32_t number,
                            const td_sched_prefix_ident *ident)
{
    member *m = member_of(prefixes, number);
    if (!m->now.handle || m->in_use || !same(&m->now.ident, ident)) {
        prefixes->counts.misses++;
        return NULL;
    }
    prefixes->counts.hits++;
    m->in_use = true;
    td_sched_heap_take(&prefixes->idle, number);
    return m->now.handle;
}

void *td_sched_prefixes_release(td_sched_prefixes *prefixes, uint32_t number,
                                int64_t now_ns)
{
    member *m = member_of(prefixes, number);
    assert(m->in_use);
    m->in_use = false;
    if (!m->leaving.handle) {
        td_sched_heap_put(&prefixes->idle, number, now_ns);
        return NULL;
    }
    kept gone = m->leaving;
    m->leaving = (kept){0};
    prefixes->counts.bytes -= gone.bytes;
    return gone.handle;
}

void *td_sched_prefixes_reset(td_sched_prefixes *prefixes, uint32_t number)
{
    return end(prefixes, number, TD_SCHED_PREFIX_RESET);
}

void td_sched_prefixes_count(const td_sched_prefixes *prefixes,
                             td_sched_prefixes_counts *ret_counts)
{
    *ret_counts = prefixes->counts;
}
