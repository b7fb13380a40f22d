// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// Every index of a plan that is taken is one of its own.
static void check_indices(const td_plan *plan)
{
    size_t streams = 0;
    for (size_t i = 0; i < plan->robot_count; i++) {
        const td_plan_robot *robot = &plan->robots[i];
        if (robot->task >= plan->class_count || robot->first_stream != streams)
            abort();
        streams += robot->stream_count;
    }
    if (streams != plan->stream_count) abort();
    for (size_t i = 0; i < streams; i++) {
        const td_plan_stream *stream = &plan->streams[i];
        if (stream->robot >= plan->robot_count ||
            stream->server >= plan->server_count ||
            plan->servers[stream->server].standby ||
            (stream->standby != TD_PLAN_NONE &&
             stream->standby >= plan->server_count))
            abort();
    }
}

static char *text_of(const td_plan *plan, size_t *ret_size)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, ret_size);
    if (!out || td_plan_write(plan, out) != TD_OK) abort();
    (void)fclose(out);
    return text;
}

// What was written is read again, and written the same.
static void check_written(const td_plan *plan)
{
    TD_AUTO(td_plan) *again = NULL;
    td_errinfo info = {""};
    size_t size = 0;
    size_t size_again = 0;
    char *text = text_of(plan, &size);
    if (td_plan_parse("again.json", text, size, &again, &info) != TD_OK)
        abort();
    char *text_again = text_of(again, &size_again);
    if (size != size_again || memcmp(text, text_again, size) != 0) abort();
    free(text);
    free(text_again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    TD_AUTO(td_plan) *plan = NULL;
    td_errinfo info = {""};
    if (td_plan_parse("fuzz.json", data, size, &plan, &info) != TD_OK) return 0;
    check_indices(plan);
    check_written(plan);
    return 0;
}
