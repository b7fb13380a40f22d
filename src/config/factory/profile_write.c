// SPDX-License-Identifier: Apache-2.0
#include "config/factory/profile.h"

#define WIDTH 78

// The character at `text`, which is not ASCII, and how many bytes it has;
// U+FFFD and 1 for what is no UTF-8.
static uint32_t decode(const unsigned char *text, size_t *ret_size)
{
    size_t more = 1 + (text[0] >= 0xe0) + (text[0] >= 0xf0);
    uint32_t code = text[0] & (0x3fu >> more);
    *ret_size = 1;
    if (text[0] < 0xc2 || text[0] > 0xf4) return 0xfffd;
    for (size_t i = 1; i <= more; i++) {
        if ((text[i] & 0xc0) != 0x80) return 0xfffd;
        code = code << 6 | (text[i] & 0x3f);
    }
    *ret_size = more + 1;
    return code;
}

// In quotes, and in ASCII: YAML does not take every character as it stands.
static void put_text(FILE *out, const char *name, const char *text)
{
    (void)fprintf(out, "%s: \"", name);
    for (const unsigned char *at = (const unsigned char *)text; *at;) {
        size_t size = 1;
        if (*at >= 0x80)
            (void)fprintf(out, "\\U%08x", decode(at, &size));
        else if (*at < ' ' || *at == 0x7f || *at == '"' || *at == '\\')
            (void)fprintf(out, "\\x%02x", *at);
        else
            (void)fputc(*at, out);
        at += size;
    }
    (void)fprintf(out, "\"\n");
}

static void put_number(FILE *out, const char *name, double value)
{
    (void)fprintf(out, "%s: %.6g\n", name, value);
}

static void put_whole(FILE *out, const char *name, int64_t value)
{
    (void)fprintf(out, "%s: %lld\n", name, (long long)value);
}

static void put_samples(FILE *out, const char *name, const double *ms,
                        size_t count)
{
    int used = fprintf(out, "%s: [", name);
    for (size_t i = 0; i < count; i++) {
        char text[32];
        int size = snprintf(text, sizeof text, "%.6g%s", ms[i],
                            i + 1 < count ? ", " : "");
        if (used + size > WIDTH) used = fprintf(out, "\n      ") - 1;
        used += fprintf(out, "%s", text);
    }
    (void)fprintf(out, "]\n");
}

static void put_service(FILE *out, const td_config_profile *profile)
{
    if (profile->service_count == 0) return;
    (void)fprintf(out, "service:\n");
    for (size_t i = 0; i < profile->service_count; i++) {
        const td_config_profile_service *size = &profile->service[i];
        put_whole(out, "  - batch", size->batch);
        put_samples(out, "    alone_ms", size->alone_ms, size->alone_count);
        if (size->padded_count)
            put_samples(out, "    padded_ms", size->padded_ms,
                        size->padded_count);
    }
}

static void put_language(FILE *out, const td_config_profile_language *language)
{
    if (language->step_count == 0) return;
    (void)fprintf(out, "language:\n");
    put_whole(out, "  prompt_tokens", language->prompt_tokens);
    put_whole(out, "  output_tokens", language->output_tokens);
    put_whole(out, "  kv_bytes_per_token", language->kv_bytes_per_token);
    put_samples(out, "  prefill_ms", language->prefill_ms,
                language->prefill_count);
    (void)fprintf(out, "  step:\n");
    for (size_t i = 0; i < language->step_count; i++) {
        const td_config_profile_step *step = &language->step[i];
        put_whole(out, "    - concurrency", step->concurrency);
        put_samples(out, "      ms", step->ms, step->ms_count);
    }
}

static void put_rates(FILE *out, const td_config_profile *profile)
{
    if (profile->rate_count == 0) return;
    (void)fprintf(out, "rates:\n");
    for (size_t i = 0; i < profile->rate_count; i++) {
        const td_config_profile_rate *rate = &profile->rates[i];
        (void)fprintf(out, "  - {batch: %lld, percent: %.6g, rate_hz: %.6g,\n",
                      (long long)rate->batch, rate->percent, rate->rate_hz);
        (void)fprintf(out,
                      "     predicted_p50_ms: %.6g, predicted_p99_ms: %.6g,\n",
                      rate->predicted_p50_ms, rate->predicted_p99_ms);
        (void)fprintf(out,
                      "     measured_p50_ms: %.6g, measured_p99_ms: %.6g}\n",
                      rate->measured_p50_ms, rate->measured_p99_ms);
    }
}

td_err td_config_profile_write(const td_config_profile *profile, FILE *out)
{
    put_whole(out, "profile", TD_CONFIG_PROFILE_FORMAT);
    put_text(out, "model", profile->model);
    put_text(out, "model_hash", profile->model_hash);
    put_text(out, "engine", profile->engine);
    put_text(out, "engine_hash", profile->engine_hash);
    put_text(out, "gpu", profile->gpu);
    put_number(out, "gpu_memory_gb", profile->gpu_memory_gb);
    put_number(out, "memory_gb", profile->memory_gb);
    (void)fprintf(out, "origin: %s\n",
                  td_config_profile_origins[profile->origin]);
    put_text(out, "source", profile->source);
    put_number(out, "noise", profile->noise);
    put_service(out, profile);
    put_language(out, &profile->language);
    put_rates(out, profile);
    (void)fprintf(out, "complete: %s\n", profile->complete ? "true" : "false");
    return fflush(out) || ferror(out) ? TD_ERR_IO : TD_OK;
}
