// SPDX-License-Identifier: Apache-2.0
#include "lab.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIELDS 8 // of a record, the first says which

static void make_room(lab_bytes *bytes, size_t size)
{
    if (bytes->room - bytes->size >= size) return;
    bytes->room = 2 * (bytes->room + size);
    unsigned char *data = realloc(bytes->data, bytes->room);
    if (!data) abort();
    bytes->data = data;
}

int64_t lab_log_bytes(lab_bytes *bytes, const void *data, size_t size)
{
    make_room(bytes, size);
    memcpy(bytes->data + bytes->size, data, size);
    bytes->size += size;
    return (int64_t)(bytes->size - size);
}

void lab_log_event(lab_log *log, lab_event event, size_t count,
                   const int64_t *values)
{
    int64_t record[FIELDS] = {event};
    memcpy(record + 1, values, count * sizeof *values);
    (void)lab_log_bytes(&log->events, record, sizeof record);
}

static void print_number(const char *name, double value)
{
    printf(", \"%s\": ", name);
    if (isinf(value))
        printf("%sInfinity", value < 0 ? "-" : "");
    else
        printf("%.17g", value);
}

static void print_channels(const td_edge_core_settings *settings)
{
    printf("\"channels\": [");
    for (uint32_t i = 0; i < settings->channels; i++) {
        const td_edge_gate_channel *limits = &settings->limits[i];
        printf("%s{\"kind\": \"%s\"", i ? ", " : "",
               td_wire_channel_kind_name(settings->kinds[i]));
        print_number("min", limits->min);
        print_number("max", limits->max);
        print_number("max_step", limits->max_step);
        print_number("max_accel_step", limits->max_accel_step);
        printf("}");
    }
    printf("]");
}

static void print_names(void)
{
    printf(", \"outcomes\": [");
    for (int i = 0; i < TD_EDGE_OUTCOME_COUNT; i++)
        printf("%s\"%s\"", i ? ", " : "", td_edge_outcome_name(i));
    printf("], \"strays\": [");
    for (int i = 0; i < TD_EDGE_STRAY_COUNT; i++)
        printf("%s\"%s\"", i ? ", " : "", td_edge_stray_name(i));
    printf("], \"reasons\": [");
    for (int i = 0; i < TD_EDGE_FAILSAFE_REASON_COUNT; i++)
        printf("%s\"%s\"", i ? ", " : "", td_edge_failsafe_reason_name(i));
    printf("], \"servers\": [");
    for (uint32_t i = 0; i < LAB_SERVERS; i++)
        printf("%s\"%s\"", i ? ", " : "", lab_server_name(i));
    printf("]");
}

static void print_settings(const td_edge_core_settings *settings)
{
    static const char *const aggregates[] = {
        [TD_EDGE_WEIGHTED_AVERAGE] = "weighted_average",
        [TD_EDGE_LATEST_ONLY] = "latest_only",
        [TD_EDGE_AVERAGE] = "average",
        [TD_EDGE_CONSERVATIVE] = "conservative",
        [TD_EDGE_TEMPORAL] = "temporal",
    };
    printf(", \"aggregate\": \"%s\", \"trim\": \"%s\"",
           aggregates[settings->aggregate],
           settings->trim == TD_EDGE_TRIM_TIME ? "time" : "steps");
    printf(", \"actions_per_chunk\": %u, \"ticks_per_step\": %u",
           settings->actions_per_chunk, settings->substeps);
    printf(", \"period_ns\": %lld, \"max_action_age_ns\": %lld",
           (long long)settings->period_ns,
           (long long)settings->max_action_age_ns);
}

static void write_part(const lab_bytes *bytes)
{
    if (fwrite(bytes->data, 1, bytes->size, stdout) != bytes->size)
        lab_check(TD_ERR_IO, NULL);
}

void lab_log_write(const lab_log *log, const lab_options *options,
                   const td_edge_core_settings *settings)
{
    const lab_bytes *parts[] = {&log->events, &log->messages, &log->wanted,
                                &log->commands};
    printf("{");
    print_channels(settings);
    print_settings(settings);
    print_names();
    printf(", \"seed\": %llu, \"limits\": %s",
           (unsigned long long)options->seed,
           options->limits ? "true" : "false");
    printf(", \"sizes\": [%zu, %zu, %zu, %zu]}\n", parts[0]->size,
           parts[1]->size, parts[2]->size, parts[3]->size);
    for (size_t i = 0; i < TD_COUNT_OF(parts); i++)
        write_part(parts[i]);
}

void lab_log_done(lab_log *log)
{
    free(log->events.data);
    free(log->messages.data);
    free(log->wanted.data);
    free(log->commands.data);
}
