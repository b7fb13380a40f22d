// SPDX-License-Identifier: Apache-2.0
// The worker's end of tendon/worker.h, in C: what a program calls that the
// server started as a worker. tests/worker and engine/native/child.c use it;
// the Python worker (python/tendon/worker) speaks the same memory by itself.
//
// td_worker_open() maps the two pages of the handshake. td_worker_describe()
// writes what the model is and waits for the ring, which is checked before it
// is used: the server is trusted no more than it trusts us. Then
// td_worker_next() waits for the bell and finds the oldest batch that was not
// answered; members are answered in place, and td_worker_done() shows the
// result and rings back.
//
// Before it hands a batch out it drops all prefixes that the server
// dropped before that batch was set. It maps no segments of frames, so that the
// server copies them into the ring. One thread. It ends when the server says
// so, or when the bell's other end is gone.
#include "base/err.h"
#include "engine/worker/ring/ring.h"
#include "tendon/worker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct td_worker {
    int ring_fd, bell_fd, answer_fd;
    const td_worker_offer *offer;
    td_worker_hello *hello;
    td_worker_offer ring;    // the offer as it was checked
    const uint8_t *requests; // NULL until there is a ring
    uint8_t *results;
    uint64_t last; // generation
    size_t slot;   // of the present batch
    uint32_t count;
    td_worker_drop drop; // NULL: nobody cares
    void *drop_user;
    uint64_t dropped; // so far
    td_worker_expect expect;
    void *expect_user;
    uint64_t expected; // as it was last seen
};

void td_worker_close(td_worker *worker)
{
    if (worker->requests)
        (void)munmap((void *)(uintptr_t)worker->requests,
                     TD_WORKER_SLOTS * worker->ring.request_bytes);
    if (worker->results)
        (void)munmap(worker->results,
                     TD_WORKER_SLOTS * worker->ring.result_bytes);
    if (worker->offer)
        (void)munmap((void *)(uintptr_t)worker->offer, TD_WORKER_PAGE);
    if (worker->hello) (void)munmap(worker->hello, TD_WORKER_PAGE);
    free(worker);
}
TD_AUTO_FREE(td_worker, td_worker_close)

// NULL when it cannot.
static void *map(const td_worker *worker, uint64_t at, uint64_t size,
                 int access)
{
    void *memory =
        mmap(NULL, size, access, MAP_SHARED, worker->ring_fd, (off_t)at);
    return memory == MAP_FAILED ? NULL : memory;
}

static td_err fail_map(td_errinfo *info)
{
    return td_fail(info, TD_ERR_IO, "mmap: %s", strerror(errno));
}

static td_err attach(td_worker *worker, td_errinfo *info)
{
    worker->offer = map(worker, 0, TD_WORKER_PAGE, PROT_READ);
    worker->hello =
        map(worker, TD_WORKER_PAGE, TD_WORKER_PAGE, PROT_READ | PROT_WRITE);
    if (!worker->offer || !worker->hello) return fail_map(info);
    worker->ring = *worker->offer;
    if (worker->ring.magic != TD_WORKER_MAGIC ||
        worker->ring.version != TD_WORKER_VERSION)
        return td_fail(info, TD_ERR_VERSION,
                       "the server speaks version %u, this worker %u",
                       worker->ring.version, TD_WORKER_VERSION);
    worker->hello->magic = TD_WORKER_MAGIC;
    worker->hello->version = TD_WORKER_VERSION;
    return TD_OK;
}

td_err td_worker_open(td_worker **ret_worker, td_errinfo *info)
{
    TD_AUTO(td_worker) *worker = calloc(1, sizeof *worker);
    if (!worker) return TD_ERR_NOMEM;
    const char *numbers = getenv(TD_WORKER_ENV);
    char end;
    if (!numbers || sscanf(numbers, "%d,%d,%d%c", &worker->ring_fd,
                           &worker->bell_fd, &worker->answer_fd, &end) != 3)
        return td_fail(info, TD_ERR_NOTFOUND,
                       TD_WORKER_ENV " names nothing: a worker is started by "
                                     "`tendon serve`");
    TD_TRY(attach(worker, info));
    *ret_worker = TD_TAKE(worker);
    return TD_OK;
}

const td_worker_offer *td_worker_offered(const td_worker *worker)
{
    return &worker->ring;
}

static void say_phase(td_worker *worker, td_worker_hello_phase phase)
{
    const uint64_t one = 1;
    __atomic_store_n(&worker->hello->phase, (uint32_t)phase, __ATOMIC_RELEASE);
    (void)!write(worker->answer_fd, &one, sizeof one);
}

static uint32_t offer_phase(const td_worker *worker)
{
    return __atomic_load_n(&worker->offer->phase, __ATOMIC_ACQUIRE);
}

// False when nobody will ever ring again.
static bool wait_for_bell(const td_worker *worker)
{
    uint64_t rings;
    ssize_t got = read(worker->bell_fd, &rings, sizeof rings);
    return got == sizeof rings || errno == EINTR;
}

static bool is_inside(uint64_t at, uint64_t each, uint64_t least, uint64_t size)
{
    return at % TD_WORKER_PAGE == 0 && at >= 2 * (uint64_t)TD_WORKER_PAGE &&
           at <= size && each >= least && each <= size &&
           each * TD_WORKER_SLOTS <= size - at;
}

// Whether there is a place for each member of a batch in a slot's results.
static bool has_places(const td_worker_offer *ring, uint64_t at, uint64_t each)
{
    return at >= sizeof(td_worker_result) && at <= ring->result_bytes &&
           at % TD_ENGINE_WORKER_ALIGN == 0 &&
           each % TD_ENGINE_WORKER_ALIGN == 0 && each <= ring->result_bytes &&
           each * ring->spec.max_batch <= ring->result_bytes - at;
}

static td_err check_ring(const td_worker *worker, td_errinfo *info)
{
    const td_worker_offer *ring = &worker->ring;
    const td_worker_spec *spec = &ring->spec;
    struct stat file;
    if (fstat(worker->ring_fd, &file) != 0)
        return td_fail(info, TD_ERR_IO, "fstat: %s", strerror(errno));
    uint64_t size = (uint64_t)file.st_size;
    uint64_t cells = (uint64_t)spec->chunk_rows * spec->action_count;
    if (is_inside(ring->requests, ring->request_bytes, sizeof(td_worker_batch),
                  size) &&
        is_inside(ring->results, ring->result_bytes, sizeof(td_worker_result),
                  size) &&
        spec->max_batch <= TD_WORKER_MAX_BATCH &&
        has_places(ring, ring->actions, ring->actions_bytes) &&
        cells * sizeof(float) <= ring->actions_bytes &&
        has_places(ring, ring->values, ring->values_bytes))
        return TD_OK;
    return td_fail(info, TD_ERR_FORMAT, "the server's ring is out of bounds");
}

void td_worker_want_environment(td_worker *worker, uint32_t count)
{
    worker->hello->environment_count = count;
}

td_err td_worker_describe(td_worker *worker, const td_worker_spec *spec,
                          td_errinfo *info)
{
    if (spec) worker->hello->spec = *spec;
    say_phase(worker, TD_WORKER_DESCRIBED);
    while (offer_phase(worker) == TD_WORKER_LOAD)
        if (!wait_for_bell(worker)) break;
    if (offer_phase(worker) != TD_WORKER_RING)
        return td_fail(info, TD_ERR_CLOSED, "the server does not want this");
    worker->ring = *worker->offer;
    TD_TRY(check_ring(worker, info));
    worker->requests =
        map(worker, worker->ring.requests,
            TD_WORKER_SLOTS * worker->ring.request_bytes, PROT_READ);
    worker->results = map(worker, worker->ring.results,
                          TD_WORKER_SLOTS * worker->ring.result_bytes,
                          PROT_READ | PROT_WRITE);
    return worker->requests && worker->results ? TD_OK : fail_map(info);
}

void td_worker_ready(td_worker *worker, int64_t warm_ns)
{
    worker->hello->warm_ns = warm_ns;
    say_phase(worker, TD_WORKER_READY);
}

void td_worker_fail(td_worker *worker, const char *why)
{
    (void)snprintf(worker->hello->error, sizeof worker->hello->error, "%s",
                   why);
    say_phase(worker, TD_WORKER_FAILED);
}

static const td_worker_batch *batch_of(const td_worker *worker, size_t slot)
{
    return (const void *)(worker->requests + slot * worker->ring.request_bytes);
}

static td_worker_result *result_of(const td_worker *worker)
{
    return (void *)(worker->results + worker->slot * worker->ring.result_bytes);
}

// The oldest that is newer than the last one; 0: none.
static uint64_t find_next(const td_worker *worker, size_t *ret_slot)
{
    uint64_t found = 0;
    for (size_t i = 0; i < TD_WORKER_SLOTS; i++) {
        uint64_t generation =
            __atomic_load_n(&batch_of(worker, i)->generation, __ATOMIC_ACQUIRE);
        if (generation <= worker->last || (found && generation > found))
            continue;
        found = generation;
        *ret_slot = i;
    }
    return found;
}

static void begin(td_worker *worker)
{
    td_worker_result *result = result_of(worker);
    result->count = worker->count;
    for (uint32_t i = 0; i < worker->count; i++) {
        result->answers[i].value_count = 0;
        td_worker_answer_member(worker, i, TD_ERR_INTERNAL, 0,
                                "the worker forgot this one");
    }
    __atomic_store_n(&worker->hello->running, worker->last, __ATOMIC_RELEASE);
    td_worker_beat(worker, TD_WORKER_ALL);
}

void td_worker_on_drop(td_worker *worker, td_worker_drop drop, void *user)
{
    worker->drop = drop;
    worker->drop_user = user;
}

// More than there are places for cannot be.
static void let_go(td_worker *worker)
{
    uint64_t dropped =
        __atomic_load_n(&worker->offer->dropped, __ATOMIC_ACQUIRE);
    if (dropped - worker->dropped > TD_WORKER_DROPS) return;
    while (worker->dropped != dropped) {
        uint64_t prefix =
            worker->offer->drops[worker->dropped++ % TD_WORKER_DROPS];
        if (worker->drop) worker->drop(worker->drop_user, prefix);
    }
    __atomic_store_n(&worker->hello->dropped, dropped, __ATOMIC_RELEASE);
}

void td_worker_on_expect(td_worker *worker, td_worker_expect expect, void *user)
{
    worker->expect = expect;
    worker->expect_user = user;
}

// What has come by now is expected no more.
static void look_ahead(td_worker *worker, bool has_come)
{
    uint64_t expected =
        __atomic_load_n(&worker->offer->expected, __ATOMIC_RELAXED);
    if (!has_come && expected != worker->expected && worker->expect)
        worker->expect(worker->expect_user);
    worker->expected = expected;
}

td_err td_worker_next(td_worker *worker, const td_worker_batch **ret_batch)
{
    uint64_t found;
    for (;;) {
        found = find_next(worker, &worker->slot);
        let_go(worker); // then: all that was dropped before the batch was set
        look_ahead(worker, found != 0);
        if (found) break;
        if (offer_phase(worker) == TD_WORKER_STOP || !wait_for_bell(worker))
            return TD_ERR_CLOSED;
    }
    const td_worker_batch *batch = batch_of(worker, worker->slot);
    worker->last = found;
    worker->count = batch->count;
    if (worker->count == 0 || worker->count > worker->ring.spec.max_batch ||
        batch->operation > TD_WORKER_DECODE)
        return TD_ERR_FORMAT;
    begin(worker);
    *ret_batch = batch;
    return TD_OK;
}

const void *td_worker_at(const td_worker *worker, uint64_t offset,
                         uint64_t size)
{
    uint64_t room = worker->ring.request_bytes;
    if (offset > room || size > room - offset) return NULL;
    return (const uint8_t *)batch_of(worker, worker->slot) + offset;
}

void td_worker_beat(td_worker *worker, uint32_t member)
{
    __atomic_store_n(&worker->hello->member, member, __ATOMIC_RELAXED);
    __atomic_fetch_add(&worker->hello->beat, 1, __ATOMIC_RELEASE);
}

float *td_worker_actions(td_worker *worker, uint32_t member)
{
    void *actions = (uint8_t *)result_of(worker) + worker->ring.actions +
                    member * worker->ring.actions_bytes;
    return actions;
}

void td_worker_answer_member(td_worker *worker, uint32_t member, td_err status,
                             uint32_t rows, const char *why)
{
    td_worker_answer *answer = &result_of(worker)->answers[member];
    answer->status = status;
    answer->rows = rows;
    (void)snprintf(answer->error, sizeof answer->error, "%s", why ? why : "");
}

void td_worker_answer_prefix(td_worker *worker, uint32_t member,
                             uint64_t prefix_bytes)
{
    result_of(worker)->answers[member].prefix_bytes = prefix_bytes;
    td_worker_answer_member(worker, member, TD_OK, 0, NULL);
}

// Where a member's next value goes.
static uint64_t values_end(const td_worker_answer *answer)
{
    uint64_t at = 0;
    td_wire_tensor tensor;
    for (uint32_t i = 0; i < answer->value_count; i++)
        if (td_engine_worker_read_shape(&answer->values[i], &tensor))
            at +=
                td_engine_worker_round_up(tensor.size, TD_ENGINE_WORKER_ALIGN);
    return at;
}

void *td_worker_answer_value(td_worker *worker, uint32_t member,
                             const td_worker_value *value)
{
    td_worker_result *result = result_of(worker);
    td_worker_answer *answer = &result->answers[member];
    uint64_t at = values_end(answer);
    td_wire_tensor tensor;
    if (answer->value_count == TD_WIRE_MAX_TENSORS ||
        !td_engine_worker_read_shape(value, &tensor) ||
        tensor.size > worker->ring.values_bytes - at)
        return NULL;
    answer->values[answer->value_count++] = *value;
    return (uint8_t *)result + worker->ring.values +
           member * worker->ring.values_bytes + at;
}

void td_worker_done(td_worker *worker, int64_t service_ns)
{
    const uint64_t one = 1;
    td_worker_result *result = result_of(worker);
    result->service_ns = service_ns;
    __atomic_store_n(&result->generation, worker->last, __ATOMIC_RELEASE);
    __atomic_store_n(&worker->hello->running, 0, __ATOMIC_RELEASE);
    (void)!write(worker->answer_fd, &one, sizeof one);
}
