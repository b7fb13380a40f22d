// SPDX-License-Identifier: Apache-2.0
// The bytes that make.py wrote are decoded and compared field by field; the
// same message is encoded and compared byte by byte.
#include "wire/golden.h"
#include "wire/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MAX_BYTES 4096 // of a golden file

static td_wire_encoder *encoder;
static td_wire_decoder *decoder;

static int set_up(void **state)
{
    (void)state;
    return td_wire_encoder_new(&encoder) != TD_OK ||
           td_wire_decoder_new(&decoder) != TD_OK;
}

static int tear_down(void **state)
{
    (void)state;
    td_wire_encoder_free(encoder);
    td_wire_decoder_free(decoder);
    return 0;
}

// Owned by the caller, and exactly as long as the file.
static void *read_file(const char *name, size_t *ret_size)
{
    char path[512];
    snprintf(path, sizeof path, "%s/tests/golden/%s.msgpack", TD_SOURCE_DIR,
             name);
    FILE *in = fopen(path, "rb");
    if (!in) {
        fail_msg("%s: cannot be read", path);
        return NULL;
    }
    char buffer[MAX_BYTES];
    *ret_size = fread(buffer, 1, sizeof buffer, in);
    fclose(in);
    assert_in_range(*ret_size, 1, sizeof buffer - 1);
    void *data = malloc(*ret_size);
    assert_non_null(data);
    return memcpy(data, buffer, *ret_size);
}

static void same_text(td_wire_text got, td_wire_text want)
{
    assert_int_equal(got.size, want.size);
    if (want.size) assert_memory_equal(got.data, want.data, want.size);
}

#define SAME(member) assert_true(got->member == want->member)
#define SAME_TEXT(member) same_text(got->member, want->member)

static void same_tensor(const td_wire_tensor *got, const td_wire_tensor *want)
{
    SAME(dtype);
    SAME(rank);
    SAME(size);
    SAME(has_age);
    SAME(age_us);
    assert_memory_equal(got->shape, want->shape, sizeof got->shape);
    if (want->size) assert_memory_equal(got->data, want->data, want->size);
}

static void same_tensors(const td_wire_named *got, const td_wire_named *want,
                         uint32_t count)
{
    for (uint32_t i = 0; i < count; i++, got++, want++) {
        SAME_TEXT(name);
        same_tensor(&got->tensor, &want->tensor);
    }
}

static void same_ident(const td_wire_ident *got, const td_wire_ident *want)
{
    SAME(boot);
    SAME(route);
    SAME(episode);
    SAME(seq);
}

static void same_image(const td_wire_image *got, const td_wire_image *want)
{
    SAME_TEXT(name);
    SAME(codec);
    SAME(size);
    assert_memory_equal(got->shape, want->shape, sizeof got->shape);
    assert_memory_equal(got->data, want->data, want->size);
}

static void same_obs(const td_wire_obs *got, const td_wire_obs *want)
{
    same_ident(&got->ident, &want->ident);
    SAME_TEXT(client);
    same_tensor(&got->state, &want->state);
    SAME(image_count);
    for (uint32_t i = 0; i < want->image_count; i++)
        same_image(&got->images[i], &want->images[i]);
    SAME_TEXT(task);
    SAME(cursor);
    SAME(urgency);
    SAME(priority);
    SAME(has_steps_remaining);
    SAME(steps_remaining);
    SAME(must_go);
    SAME(has_budget);
    SAME(budget_us);
    SAME(has_again);
    SAME(again);
    SAME(anew);
    SAME(has_rtc);
    SAME(rtc_base_chunk);
    SAME(rtc_delay_steps);
    same_tensor(&got->rtc_prefix, &want->rtc_prefix);
    SAME(tensor_count);
    same_tensors(got->tensors, want->tensors, want->tensor_count);
    SAME(metadata_count);
    for (uint32_t i = 0; i < want->metadata_count; i++) {
        SAME_TEXT(metadata[i].name);
        SAME_TEXT(metadata[i].text);
    }
}

static void same_action(const td_wire_action *got, const td_wire_action *want)
{
    same_ident(&got->ident, &want->ident);
    SAME(kind);
    SAME(inference_time_ms);
    SAME(queue_time_ms);
    same_tensor(&got->actions, &want->actions);
    SAME_TEXT(text);
    SAME(unsafe);
    SAME_TEXT(server);
    SAME(chunk_id);
    SAME(has_continues);
    SAME(continues);
    SAME(superseded_count);
    for (uint32_t i = 0; i < want->superseded_count; i++)
        SAME(superseded[i]);
    SAME(result_count);
    same_tensors(got->results, want->results, want->result_count);
    SAME_TEXT(error_code);
    SAME_TEXT(error_text);
}

static void same_channels(const td_wire_channel *got,
                          const td_wire_channel *want, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++, got++, want++) {
        SAME_TEXT(name);
        SAME(kind);
    }
}

static void same_feature(const td_wire_feature *got,
                         const td_wire_feature *want)
{
    SAME_TEXT(name);
    SAME(dtype);
    SAME(rank);
    assert_memory_equal(got->shape, want->shape, sizeof got->shape);
}

static void same_status(const td_wire_status *got, const td_wire_status *want)
{
    SAME_TEXT(model_id);
    SAME_TEXT(model_version);
    SAME_TEXT(server);
    SAME(server_boot);
    SAME(state);
    SAME(camera_count);
    for (uint32_t i = 0; i < want->camera_count; i++) {
        SAME_TEXT(cameras[i].name);
        SAME(cameras[i].height);
        SAME(cameras[i].width);
    }
    SAME(action_dim);
    SAME(max_actions_per_chunk);
    SAME(feature_count);
    for (uint32_t i = 0; i < want->feature_count; i++)
        same_feature(&got->features[i], &want->features[i]);
    SAME(action_count);
    same_channels(got->actions, want->actions, want->action_count);
    SAME(state_count);
    same_channels(got->states, want->states, want->state_count);
    SAME(step_period_us);
    SAME(rtc);
    SAME(capacity);
    SAME(clients);
    SAME(load);
    SAME(has_attach);
    SAME(attached);
    SAME_TEXT(attach_reason);
}

static void same_attach(const td_wire_attach *got, const td_wire_attach *want)
{
    SAME_TEXT(client);
    SAME_TEXT(server);
    SAME(server_boot);
    SAME(boot);
    SAME(route);
    SAME(leave);
}

static void same_reset(const td_wire_reset *got, const td_wire_reset *want)
{
    SAME_TEXT(client);
    SAME(boot);
    SAME(route);
    SAME(episode);
    SAME_TEXT(reason);
}

static void same_component(const td_wire_component *got,
                           const td_wire_component *want)
{
    SAME_TEXT(name);
    SAME_TEXT(server);
    SAME_TEXT(standby);
    SAME_TEXT(model_id);
    SAME_TEXT(model_version);
    SAME_TEXT(application);
    SAME(route);
    SAME(rate_hz);
    SAME(phase_us);
    SAME(deadline_us);
}

static void same_grant(const td_wire_grant *got, const td_wire_grant *want)
{
    SAME_TEXT(client);
    SAME(generation);
    SAME(component_count);
    for (uint32_t i = 0; i < want->component_count; i++)
        same_component(&got->components[i], &want->components[i]);
}

static void same_quantiles(const td_wire_quantiles *got,
                           const td_wire_quantiles *want)
{
    SAME_TEXT(name);
    SAME(count);
    SAME(min);
    SAME(max);
    SAME(mean);
    SAME(p50);
    SAME(p95);
    SAME(p99);
    SAME(p999);
}

static void same_metrics(const td_wire_metrics *got,
                         const td_wire_metrics *want)
{
    SAME_TEXT(source);
    SAME(boot);
    SAME(uptime_us);
    SAME_TEXT(state);
    SAME(counter_count);
    for (uint32_t i = 0; i < want->counter_count; i++) {
        SAME_TEXT(counters[i].name);
        SAME(counters[i].value);
    }
    SAME(gauge_count);
    for (uint32_t i = 0; i < want->gauge_count; i++) {
        SAME_TEXT(gauges[i].name);
        SAME(gauges[i].value);
    }
    SAME(quantiles_count);
    for (uint32_t i = 0; i < want->quantiles_count; i++)
        same_quantiles(&got->quantiles[i], &want->quantiles[i]);
}

static void encoded_is(const void *want, size_t size)
{
    assert_int_equal(td_wire_encoder_size(encoder), size);
    char joined[MAX_BYTES];
    td_wire_encoder_join(encoder, joined);
    assert_memory_equal(joined, want, size);
}

#define GOLDEN(kind, case)                                                     \
    static void kind##_##case (void **state){                                  \
        (void)state; size_t size = 0;                                          \
        void *data = read_file(#kind "_" #case, &size); td_wire_##kind got;    \
        td_errinfo info = {0};                                                 \
        if (td_wire_##kind##_decode(decoder, data, size, &got, &info))         \
            fail_msg("%s", info.text);                                         \
        same_##kind(&got, &td_wire_golden_##kind##_##case);                    \
        if (td_wire_##kind##_encode(encoder, &td_wire_golden_##kind##_##case,  \
                                    &info)) fail_msg("%s", info.text);         \
        encoded_is(data, size); free(data);}

#define GOLDENS(X)                                                             \
    X(obs, full)                                                               \
    X(obs, least)                                                              \
    X(action, full)                                                            \
    X(action, verdict)                                                         \
    X(action, error)                                                           \
    X(action, least)                                                           \
    X(status, full)                                                            \
    X(status, least)                                                           \
    X(attach, full)                                                            \
    X(attach, least)                                                           \
    X(reset, full)                                                             \
    X(reset, least)                                                            \
    X(grant, full)                                                             \
    X(grant, least)                                                            \
    X(metrics, full)                                                           \
    X(metrics, least)
GOLDENS(GOLDEN)

int main(void)
{
#define GOLDEN_TEST(kind, case) cmocka_unit_test(kind##_##case),
    const struct CMUnitTest tests[] = {GOLDENS(GOLDEN_TEST)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
