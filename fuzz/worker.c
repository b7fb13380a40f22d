// SPDX-License-Identifier: Apache-2.0
// What another process may have written where a server reads: a hello, then the
// results of a batch. The buffers are as large as they must be and no larger.
#include "engine/results.h"
#include "engine/worker/ring/ring.h"
#include "engine/worker/ring/spec.h"

#include <stdlib.h>
#include <string.h>

#define COUNT 3

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t take(const uint8_t **data, size_t *size, void *into, size_t most)
{
    size_t part = *size < most ? *size : most;
    if (part > 0) memcpy(into, *data, part);
    *data += part;
    *size -= part;
    return part;
}

static void hear(const td_worker_hello *shared)
{
    static td_worker_hello hello;
    static const td_worker_spec nothing;
    td_worker_spec agreed;
    td_engine_spec *spec = malloc(sizeof *spec);
    td_errinfo info = {""};
    td_engine_worker_layout layout;
    if (!spec) abort();
    if (td_engine_worker_spec_read(shared, &hello, &info) == TD_OK &&
        td_engine_worker_spec_agree(&nothing, &hello.spec, &agreed, &info) ==
            TD_OK &&
        td_engine_worker_layout_make(&agreed, &layout, &info) == TD_OK) {
        td_engine_worker_spec_of(&agreed, spec);
        if (spec->max_batch < 1 || spec->max_batch > TD_ENGINE_MAX_BATCH)
            abort();
    }
    free(spec);
}

// All that is taken can stand in a message.
static void check_item(const td_engine_item *item)
{
    if (item->rows > 3 || item->status >= TD_ERR_COUNT) abort();
    const td_engine_results *results = item->results;
    if (item->status != TD_OK && results->count > 0) abort();
    for (uint32_t i = 0; i < results->count; i++)
        if (results->named[i].tensor.size > 256 ||
            results->named[i].name.size > TD_WIRE_MAX_NAME)
            abort();
}

static void read_results(td_worker_operation operation, const uint8_t *data,
                         size_t size)
{
    static const td_worker_spec spec = {.state_count = 1,
                                        .action_count = 2,
                                        .chunk_rows = 3,
                                        .max_batch = COUNT,
                                        .values_bytes = 256};
    td_engine_worker_layout layout;
    if (td_engine_worker_layout_make(&spec, &layout, NULL) != TD_OK) abort();
    uint8_t *results = calloc(1, layout.result_bytes);
    float *actions = malloc(COUNT * 6 * sizeof *actions);
    if (!results || !actions) abort();
    (void)take(&data, &size, results, layout.result_bytes);

    td_engine_item each[COUNT];
    td_engine_item *items[COUNT];
    td_errinfo infos[COUNT];
    td_engine_results more[COUNT] = {0};
    int64_t service_ns;
    for (size_t i = 0; i < COUNT; i++) {
        each[i] = (td_engine_item){
            .actions = actions + 6 * i, .info = &infos[i], .results = &more[i]};
        items[i] = &each[i];
    }
    const td_engine_worker_reader reader = {&spec, &layout, operation,
                                            (const void *)results};
    if (td_engine_worker_read(&reader, items, COUNT, &service_ns) == TD_OK)
        for (size_t i = 0; i < COUNT; i++)
            check_item(&each[i]);
    for (size_t i = 0; i < COUNT; i++)
        td_engine_results_done(&more[i]);
    free(results);
    free(actions);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    td_worker_hello *shared = calloc(1, sizeof *shared);
    if (!shared) abort();
    if (size > 0 && data[0] == 'h') {
        data++;
        size--;
        (void)take(&data, &size, shared, sizeof *shared);
        hear(shared);
    } else {
        read_results(TD_WORKER_WHOLE, data, size);
        read_results(TD_WORKER_PREFIX, data, size);
    }
    free(shared);
    return 0;
}
