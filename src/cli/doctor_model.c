// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor_model.h"

#include "cli/cli.h"
#include "cli/gpu.h"
#include "cli/profile/identity.h"
#include "engine/measure.h"
#include "engine/native/native.h"
#include "engine/probe.h"
#include "engine/worker/worker.h"
#include "server/load/settings.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOOK_MS 1000 // about what the times of one batch size may take
#define LEAST_TIMES 3
#define MOST_TIMES 50
#define SLOWER 1.5 // than its profile says: this is reported

static const char *const kinds[] = {
    [TD_CONFIG_SYNTHETIC] = "synthetic",
    [TD_CONFIG_WORKER] = "worker",
    [TD_CONFIG_CALLBACK] = "callback",
    [TD_CONFIG_NATIVE] = "native",
};

// A text that grows, cut to its room.
typedef struct line {
    char *text;
    size_t used;
} line;

static void add(line *to, const char *fmt, ...) TD_PRINTF(2, 3);

static void add(line *to, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int size = vsnprintf(to->text + to->used, TD_CLI_DOCTOR_TEXT - to->used,
                         fmt, args);
    va_end(args);
    to->used += size > 0 ? (size_t)size : 0;
    if (to->used >= TD_CLI_DOCTOR_TEXT) to->used = TD_CLI_DOCTOR_TEXT - 1;
}

// Three digits, or all of them.
static void add_ms(line *to, double ms)
{
    add(to, ms < 1000 ? "%.3g ms" : "%.0f ms", ms);
}

static bool is_on_gpu(const td_config_model *model)
{
    return model->engine.kind != TD_CONFIG_SYNTHETIC &&
           strncmp(model->device, "cuda", 4) == 0;
}

// What profiles call where it runs.
static void name_gpu(const td_config_model *model, td_cli_gpu *ret_gpu)
{
    *ret_gpu = (td_cli_gpu){.name = "CPU"};
    if (is_on_gpu(model) &&
        td_cli_gpu_query(model->device, ret_gpu, NULL) != TD_OK)
        (void)snprintf(ret_gpu->name, sizeof ret_gpu->name, "unknown GPU");
}

static void add_place(const td_config_model *model, const char *gpu, line *to)
{
    add(to, "%s", kinds[model->engine.kind]);
    if (is_on_gpu(model))
        add(to, " on %s (%s)", gpu, model->device);
    else
        add(to, " on %s", model->device);
    if (model->engine.kind == TD_CONFIG_NATIVE)
        add(to, ", %s", td_engine_native_precision(model->device));
    if (model->engine.kind == TD_CONFIG_WORKER)
        add(to, ", in a precision of its own");
}

static int by_size(const void *a, const void *b)
{
    double one = *(const double *)a, other = *(const double *)b;
    return (one > other) - (one < other);
}

// The median time of a batch of n.
static td_err look(const td_engine_measure *measure, uint32_t n, double *ret_ms,
                   td_errinfo *info)
{
    double ms[MOST_TIMES];
    TD_TRY(td_engine_measure_batches(measure, n, 1, ms, info));
    double wanted = fmin(fmax(LOOK_MS / ms[0], LEAST_TIMES), MOST_TIMES);
    size_t count = (size_t)wanted;
    TD_TRY(td_engine_measure_batches(measure, n, count, ms, info));
    qsort(ms, count, sizeof ms[0], by_size);
    *ret_ms = ms[count / 2];
    return TD_OK;
}

static td_cli_doctor_verdict compare(const td_config_profile *profile,
                                     double ms, line *to)
{
    double expected_ms = td_config_profile_quantile_ms(profile, 1, 0.5);
    add(to, "; expected are ");
    add_ms(to, expected_ms);
    add(to, " (%s)", profile->file);
    if (ms <= SLOWER * expected_ms) return TD_CLI_DOCTOR_FINE;
    add(to, ": it is slower now, does something else run here?");
    return TD_CLI_DOCTOR_WORSE;
}

static td_cli_doctor_verdict expect(const td_config_model *model,
                                    const td_config_profiles *profiles,
                                    const char *gpu, double ms, line *to)
{
    const td_config_profile *profile = NULL;
    td_errinfo why = {.text = ""};
    if (!profiles) return TD_CLI_DOCTOR_FINE;
    if (td_config_profiles_find(profiles, model->model_id, "", gpu, &profile,
                                &why) == TD_OK)
        return compare(profile, ms, to);
    add(to, "; no profile to expect from: %s", why.text);
    return TD_CLI_DOCTOR_WORSE;
}

static td_err measure(td_engine *engine, double *ret_alone_ms,
                      double *ret_full_ms, td_errinfo *info)
{
    TD_AUTO(td_engine_probe) *probe = NULL;
    const td_engine_spec *spec = engine->ops->spec(engine);
    TD_TRY(td_engine_probe_new(spec, &probe));
    const td_engine_measure how = {engine, probe, td_cli_is_stopping};
    double full_ms = 0;
    TD_TRY(td_engine_probe_warm_up(engine, NULL, info));
    TD_TRY(look(&how, 1, ret_alone_ms, info));
    if (spec->max_batch > 1 && !spec->continuous)
        TD_TRY(look(&how, spec->max_batch, &full_ms, info));
    *ret_full_ms = full_ms;
    return TD_OK;
}

static void add_times(double alone_ms, double full_ms, uint32_t most, line *to)
{
    add(to, ": ");
    add_ms(to, alone_ms);
    add(to, " a chunk");
    if (full_ms == 0) return;
    add(to, ", ");
    add_ms(to, full_ms / most);
    add(to, " each of %u at a time", most);
}

// Memory in use where the model is, or would be: of its GPU, else of its
// process, which is this one unless it is a worker.
static double used_gb(const td_config_model *model, const td_engine *engine)
{
    td_cli_gpu gpu;
    if (is_on_gpu(model))
        return td_cli_gpu_query(model->device, &gpu, NULL) == TD_OK
                   ? gpu.used_gb
                   : 0;
    bool worker = model->engine.kind == TD_CONFIG_WORKER;
    if (worker && !engine) return 0;
    return td_cli_profile_resident_gb(worker ? td_engine_worker_pid(engine)
                                             : getpid());
}

static void add_memory(double gb, line *to)
{
    if (gb >= 1)
        add(to, ", %.3g GB of memory", gb);
    else if (gb > 0)
        add(to, ", %.0f MB of memory", ceil(gb * 1e3));
}

static td_cli_doctor_verdict failed(td_err err, const td_errinfo *info,
                                    line *to)
{
    add(to, ": %s", info->text[0] ? info->text : td_err_text(err));
    return TD_CLI_DOCTOR_BROKEN;
}

td_cli_doctor_verdict td_cli_doctor_model(const td_config_model *model,
                                          const td_config_profiles *profiles,
                                          char ret_text[TD_CLI_DOCTOR_TEXT])
{
    line said = {.text = ret_text};
    td_errinfo info = {.text = ""};
    td_cli_gpu gpu;
    double alone_ms = 0, full_ms = 0;
    TD_AUTO(td_engine) *engine = NULL;
    name_gpu(model, &gpu);
    add_place(model, gpu.name, &said);
    if (model->engine.kind == TD_CONFIG_CALLBACK) {
        add(&said, ": a function of another program, not here to be asked");
        return TD_CLI_DOCTOR_WORSE;
    }
    double before_gb = used_gb(model, NULL);
    td_err err = td_server_engines_open(model, NULL, &engine, &info);
    if (err == TD_OK) err = measure(engine, &alone_ms, &full_ms, &info);
    if (err != TD_OK) return failed(err, &info, &said);
    uint32_t most = engine->ops->spec(engine)->max_batch;
    add_times(alone_ms, full_ms, most, &said);
    add_memory(used_gb(model, engine) - before_gb, &said);
    return expect(model, profiles, gpu.name, alone_ms, &said);
}
