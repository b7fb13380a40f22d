// SPDX-License-Identifier: Apache-2.0
// A worker in C that answers with the state, a little more each row, and, when
// the state's first value or its argument says so, does what no worker should.
#include "tendon/worker.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DIES = 1001, HANGS, FAILS, GARBAGE, NO_ROWS, NOT_FINITE, PRINTS, LIES };

static int64_t service_ns; // what it says it took
static int together;       // does not say which member it is at

static void answer_state(td_worker *worker, uint32_t member, const float *state)
{
    const td_worker_spec *spec = &td_worker_wanted(worker)->spec;
    float *actions = td_worker_actions(worker, member);
    uint32_t channels = spec->action_count;
    for (uint32_t row = 0; row < spec->chunk_rows; row++)
        for (uint32_t j = 0; j < channels; j++)
            actions[row * channels + j] =
                state[j % spec->state_count] + 0.01f * (float)row;
    td_worker_answer_member(worker, member, TD_OK, spec->chunk_rows, NULL);
}

// Over all that is the worker's to write.
static void scribble(td_worker *worker)
{
    size_t size = (size_t)td_worker_wanted(worker)->result_bytes;
    uint8_t *result = (uint8_t *)td_worker_actions(worker, 0) -
                      td_worker_wanted(worker)->actions;
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
    default:
        break;
    }
}

static void answer(td_worker *worker, const td_worker_batch *batch,
                   uint32_t member)
{
    const td_worker_tensor *state = &batch->items[member].state;
    const void *at = td_worker_at(worker, state->offset, state->size);
    float values[TD_WIRE_MAX_CHANNELS];
    if (!at || state->size > sizeof values) abort();
    memcpy(values, at, state->size);
    if (!together) td_worker_beat(worker, member);
    answer_state(worker, member, values);
    misbehave(worker, member, (int)values[0]);
}

// What a worker may do wrong before it is ready. Returns whether it goes on.
static int begin(td_worker *worker, const char *how)
{
    td_worker_spec spec = td_worker_wanted(worker)->spec;
    td_errinfo info;
    if (strcmp(how, "exits") == 0) {
        (void)fprintf(stderr, "no weights here\n");
        return 0;
    }
    if (strcmp(how, "cannot") == 0) {
        td_worker_cannot(worker, "no such device");
        return 0;
    }
    if (strcmp(how, "sleeps") == 0)
        for (;;)
            (void)pause();
    if (strcmp(how, "garbage") == 0) memset(&spec, 0xff, sizeof spec);
    if (strcmp(how, "other") == 0) spec.chunk_rows++;
    if (td_worker_say(worker, &spec, &info) != TD_OK) return 0;
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
    while (td_worker_next(worker, &batch) == TD_OK) {
        uint32_t count = batch->count;
        for (uint32_t i = 0; i < count; i++)
            answer(worker, batch, i);
        td_worker_done(worker, service_ns);
    }
    td_worker_close(worker);
    return 0;
}
