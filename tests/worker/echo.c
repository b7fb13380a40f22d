// SPDX-License-Identifier: Apache-2.0
// A worker in C that answers with the state, a little more each row, and, when
// the state's first value or its argument says so, does what no worker should.
// With the argument "halves" it works in two, and gives more than actions.
#include "engine/worker/worker_orders.h"
#include "tendon/worker.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_KEPT 4096

static int64_t service_ns; // what it says it took
static int together;       // does not say which member it is at
static int gives_more;     // than actions

// The prefixes, which are states.
static struct {
    uint64_t number; // 0: free
    float state[TD_WIRE_MAX_CHANNELS];
} kept[MOST_KEPT];
static size_t kept_count;

// The place of a number, or of 0; MOST_KEPT: there is none.
static size_t find(uint64_t number)
{
    size_t i = 0;
    while (i < MOST_KEPT && kept[i].number != number)
        i++;
    return i;
}

static void keep(uint64_t number, const float *state)
{
    size_t i = find(0);
    if (i == MOST_KEPT) abort();
    kept[i].number = number;
    memcpy(kept[i].state, state, sizeof kept[i].state);
    kept_count++;
}

static void drop(void *user, uint64_t number)
{
    (void)user;
    size_t i = find(number);
    if (i == MOST_KEPT) return;
    kept[i].number = 0;
    kept_count--;
}

static void expect(void *user)
{
    (void)user;
    (void)printf("is awake\n");
    (void)fflush(stdout);
}

// As much as there is, and then the end.
static void grow(void)
{
    size_t size = (size_t)16 << 20;
    for (void *more = malloc(size); more; more = malloc(size))
        memset(more, 1, size);
    abort();
}

// The state once more, and a text.
static void answer_more(td_worker *worker, uint32_t member, const float *state)
{
    uint32_t count = td_worker_offered(worker)->spec.state_count;
    const td_worker_value same = {"state", TD_WIRE_F32, 2, {1, count}};
    const td_worker_value text = {"", TD_WORKER_TEXT, 1, {4}};
    float *values = td_worker_answer_value(worker, member, &same);
    char *letters = td_worker_answer_value(worker, member, &text);
    if (!values || !letters) abort();
    memcpy(values, state, count * sizeof(float));
    memcpy(letters, (char[]){'e', 'c', 'h', 'o'}, 4);
}

static void answer_state(td_worker *worker, uint32_t member, const float *state)
{
    const td_worker_spec *spec = &td_worker_offered(worker)->spec;
    float *actions = td_worker_actions(worker, member);
    uint32_t channels = spec->action_count;
    for (uint32_t row = 0; row < spec->chunk_rows; row++)
        for (uint32_t j = 0; j < channels; j++)
            actions[row * channels + j] =
                state[j % spec->state_count] + 0.01f * (float)row;
    td_worker_answer_member(worker, member, TD_OK, spec->chunk_rows, NULL);
}

static void *result_of(td_worker *worker)
{
    return (uint8_t *)td_worker_actions(worker, 0) -
           td_worker_offered(worker)->actions;
}

static void claim_values(td_worker_result *result, uint32_t member)
{
    result->answers[member].value_count = UINT32_MAX;
}

// Over all that is the worker's to write.
static void scribble(td_worker *worker)
{
    size_t size = (size_t)td_worker_offered(worker)->result_bytes;
    uint8_t *result = result_of(worker);
    uint64_t generation = 0;
    memcpy(&generation, result, sizeof generation);
    memset(result, 0xff, size);
    memcpy(result, &generation, sizeof generation);
}

static void misbehave(td_worker *worker, uint32_t member, int how)
{
    switch (how) {
    case DIES:
        (void)raise(SIGKILL);
        break;
    case HANGS:
        for (;;)
            (void)pause();
    case FAILS:
        td_worker_answer_member(worker, member, TD_ERR_INVALID, 0,
                                "this one \xff cannot be\n");
        break;
    case GARBAGE:
        scribble(worker);
        break;
    case NO_ROWS:
        td_worker_answer_member(worker, member, TD_OK, UINT32_MAX, NULL);
        break;
    case NOT_FINITE:
        td_worker_actions(worker, member)[1] = 1.0f / 0.0f;
        break;
    case PRINTS:
        (void)printf("one line\nand another\n");
        (void)fflush(stdout);
        break;
    case LIES:
        service_ns = INT64_MAX;
        break;
    case GROWS:
        grow();
        break;
    case STARVES:
        td_worker_answer_member(worker, member, TD_ERR_NOMEM, 0, NULL);
        break;
    case NO_VALUES:
        claim_values(result_of(worker), member);
        break;
    default:
        break;
    }
}

static void read_state(const td_worker *worker, const td_worker_tensor *state,
                       float ret_values[TD_WIRE_MAX_CHANNELS])
{
    const void *at = td_worker_at(worker, state->offset, state->size);
    if (!at || state->size > TD_WIRE_MAX_CHANNELS * sizeof(float)) abort();
    memcpy(ret_values, at, state->size);
}

// What it takes is how many there are, so that a test sees which were dropped.
static void answer_prefix(td_worker *worker, const td_worker_item *item,
                          uint32_t member)
{
    float values[TD_WIRE_MAX_CHANNELS] = {0};
    read_state(worker, &item->state, values);
    keep(item->prefix, values);
    td_worker_answer_prefix(worker, member, kept_count);
    misbehave(worker, member, (int)values[0]);
    if ((int)values[0] == LOSES) drop(NULL, item->prefix);
}

static void answer_decode(td_worker *worker, const td_worker_item *item,
                          uint32_t member)
{
    size_t i = find(item->prefix);
    if (i == MOST_KEPT) {
        td_worker_answer_member(worker, member, TD_ERR_NOTFOUND, 0, NULL);
        return;
    }
    answer_state(worker, member, kept[i].state);
    if (gives_more) answer_more(worker, member, kept[i].state);
    if ((int)kept[i].state[0] == DIES_DECODING) (void)raise(SIGKILL);
}

static void answer_whole(td_worker *worker, const td_worker_item *item,
                         uint32_t member)
{
    float values[TD_WIRE_MAX_CHANNELS] = {0};
    read_state(worker, &item->state, values);
    answer_state(worker, member, values);
    if (gives_more) answer_more(worker, member, values);
    misbehave(worker, member, (int)values[0]);
}

static void answer(td_worker *worker, const td_worker_batch *batch,
                   uint32_t member)
{
    static void (*const operations[])(td_worker *, const td_worker_item *,
                                      uint32_t) = {
        [TD_WORKER_WHOLE] = answer_whole,
        [TD_WORKER_PREFIX] = answer_prefix,
        [TD_WORKER_DECODE] = answer_decode,
    };
    if (!together) td_worker_beat(worker, member);
    operations[batch->operation](worker, &batch->items[member], member);
}

// What a worker may do wrong before it is ready. Returns whether it goes on.
static int begin(td_worker *worker, const char *how)
{
    td_worker_spec spec = td_worker_offered(worker)->spec;
    td_errinfo info;
    if (strcmp(how, "exits") == 0) {
        (void)fprintf(stderr, "no weights here\n");
        return 0;
    }
    if (strcmp(how, "cannot") == 0) {
        td_worker_fail(worker, "no such device");
        return 0;
    }
    if (strcmp(how, "sleeps") == 0)
        for (;;)
            (void)pause();
    if (strcmp(how, "garbage") == 0) memset(&spec, 0xff, sizeof spec);
    if (strcmp(how, "other") == 0) spec.chunk_rows++;
    if (strcmp(how, "halves") == 0) spec.prefix = spec.expects = 1;
    if (td_worker_describe(worker, &spec, &info) != TD_OK) return 0;
    td_worker_ready(worker, strcmp(how, "lies") == 0 ? INT64_MAX : 0);
    return 1;
}

int main(int argc, char **argv)
{
    td_worker *worker = NULL;
    td_errinfo info = {""};
    const td_worker_batch *batch;
    if (td_worker_open(&worker, &info) != TD_OK) {
        (void)fprintf(stderr, "%s\n", info.text);
        return 2;
    }
    const char *how = argc > 1 ? argv[1] : "";
    if (!begin(worker, how)) {
        td_worker_close(worker);
        return 3;
    }
    together = strcmp(how, "together") == 0;
    gives_more = strcmp(how, "halves") == 0;
    td_worker_on_drop(worker, drop, NULL);
    td_worker_on_expect(worker, expect, NULL);
    while (td_worker_next(worker, &batch) == TD_OK) {
        uint32_t count = batch->count;
        for (uint32_t i = 0; i < count; i++)
            answer(worker, batch, i);
        td_worker_done(worker, service_ns);
    }
    td_worker_close(worker);
    return 0;
}
