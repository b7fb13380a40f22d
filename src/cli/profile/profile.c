// SPDX-License-Identifier: Apache-2.0
// `tendon profile`: measures a model of a manifest and writes its profile.
//
// This file reads the arguments into a plan of what is to be measured, opens
// the engine as `tendon serve` would, finds out what the profile is of
// (profile/identity.h), and hands all of it to profile/run.c. The draft keeps
// what was measured; it becomes the profile when everything is there.
//
// Which sizes: those of --sizes, or the powers of two up to the engine's
// largest batch. An engine that runs continuously has no time of a batch and is
// refused.
#include "cli/cli.h"
#include "cli/policy.h"
#include "cli/profile/identity.h"
#include "cli/profile/run.h"
#include "config/yaml/table.h"
#include "engine/probe.h"
#include "engine/worker/worker.h"
#include "server/load/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SAMPLES 100
#define REQUESTS 200
#define MOST_SAMPLES 10000  // of all sizes
#define MOST_REQUESTS 10000 // at a rate

static const char help[] =
    "usage: tendon profile MANIFEST.yaml [--server ID] [--out FILE] [--model "
    "NAME]\n"
    "                      [--gpu NAME] [--sizes 1,2,4] [--samples N] "
    "[--requests N]\n"
    "                      [--accept-noise] [--log LEVEL]\n"
    "       tendon profile --fields\n"
    "\n"
    "Measures the engine of a manifest's model and writes its profile, from "
    "which\n"
    "`tendon plan` plans: how long a batch of each size takes alone, then ten "
    "rates\n"
    "from 10 to 100 % of the top throughput, beside what the times alone "
    "predict.\n"
    "Nothing else should run on the machine. Ctrl-C stops; the same command "
    "goes on\n"
    "where it was, from FILE.part.\n"
    "\n"
    "  --server ID     which of its models, by server_id (default: its only "
    "one)\n"
    "  --out FILE      the profile (default: MODEL.yaml)\n"
    "  --model NAME    what factories call the model (default: its model_id)\n"
    "  --gpu NAME      what factories call the GPU (default: as the driver "
    "says;\n"
    "                  CPU for an engine that uses none)\n"
    "  --sizes LIST    batch sizes (default: 1, 2, 4 and so on)\n"
    "  --samples N     batches of each size (default: 100)\n"
    "  --requests N    requests at each rate (default: 200)\n"
    "  --accept-noise  take times that vary by more than 10 % while measured\n"
    "  --log LEVEL     debug, info, warn (default) or error\n"
    "  --fields        print a profile's fields as a table (Markdown)\n"
    "\n"
    "examples:\n"
    "  tendon profile examples/manifest.yaml\n"
    "  tendon profile serve.yaml --model nvidia/GR00T-N1.6-3B --out "
    "profiles/gr00t.yaml\n"
    "  tendon profile serve.yaml --sizes 1,8 --samples 50 --requests 100\n";

typedef struct arguments {
    const char *path, *server, *out, *model, *gpu, *sizes, *samples, *requests;
    const char *level;
    bool accept_noise, fields;
} arguments;

static bool wrong(const char *option, const char *rule, const char *input)
{
    (void)fprintf(stderr, "tendon profile: --%s must be %s, got \"%s\"\n",
                  option, rule, input);
    return false;
}

static bool read_whole(const char *text, unsigned long least,
                       unsigned long most, unsigned long *ret_value)
{
    char *end = NULL;
    unsigned long value = strtoul(text, &end, 10);
    if (end == text || *end || value < least || value > most) return false;
    *ret_value = value;
    return true;
}

static bool read_sizes(const char *text, uint32_t most,
                       td_cli_profile_plan *plan)
{
    for (const char *at = text;; at++) {
        char *end = NULL;
        unsigned long size = strtoul(at, &end, 10);
        uint32_t before =
            plan->size_count ? plan->sizes[plan->size_count - 1] : 0;
        if (end == at || size <= before || size > most) return false;
        plan->sizes[plan->size_count++] = (uint32_t)size;
        if (!*end) return true;
        at = end;
        if (*at != ',') return false;
    }
}

static void usual_sizes(uint32_t most, td_cli_profile_plan *plan)
{
    for (uint32_t n = 1; n < most; n *= 2)
        plan->sizes[plan->size_count++] = n;
    plan->sizes[plan->size_count++] = most;
}

// What a file can hold, for the number of sizes.
static bool read_plan(const arguments *args, uint32_t most,
                      td_cli_profile_plan *plan)
{
    unsigned long samples = SAMPLES, requests = REQUESTS;
    char rule[64];
    (void)snprintf(rule, sizeof rule,
                   "growing numbers from 1 to %u, such as 1,2,4", most);
    if (!args->sizes)
        usual_sizes(most, plan);
    else if (!read_sizes(args->sizes, most, plan))
        return wrong("sizes", rule, args->sizes);
    unsigned long most_samples = MOST_SAMPLES / plan->size_count;
    (void)snprintf(rule, sizeof rule, "5 to %lu", most_samples);
    if (args->samples && !read_whole(args->samples, 5, most_samples, &samples))
        return wrong("samples", rule, args->samples);
    (void)snprintf(rule, sizeof rule, "1 to %d", MOST_REQUESTS);
    if (args->requests &&
        !read_whole(args->requests, 1, MOST_REQUESTS, &requests))
        return wrong("requests", rule, args->requests);
    plan->samples = samples;
    plan->requests = requests;
    plan->accept_noise = args->accept_noise;
    return true;
}

static void describe(const td_cli_profile_plan *plan, char ret_text[200])
{
    char day[16] = "";
    time_t now = time(NULL);
    struct tm parts;
    if (gmtime_r(&now, &parts))
        (void)strftime(day, sizeof day, "%Y-%m-%d", &parts);
    (void)snprintf(ret_text, 200,
                   "tendon profile %s, %s: %zu samples of a batch size, %zu "
                   "requests at a rate, which come at random (Poisson)",
                   TD_VERSION, day, plan->samples, plan->requests);
}

static td_err finish(td_cli_profile_draft *draft, td_errinfo *info)
{
    TD_TRY(td_cli_profile_draft_finish(draft, info));
    (void)printf("wrote %s\n", draft->out);
    return TD_OK;
}

static td_err measure(const td_cli_profile_plan *plan, td_engine *engine,
                      const td_config_profile *blank, const char *out,
                      td_errinfo *info)
{
    td_cli_profile_draft draft;
    TD_TRY(td_cli_profile_draft_open(&draft, out, blank, info));
    (void)printf("%s on %s, engine %s: %zu batch sizes\n", blank->model,
                 blank->gpu, blank->engine, plan->size_count);
    if (draft.kept)
        (void)printf("goes on from %s: %zu sizes, %zu rates\n", draft.part,
                     draft.kept->service_count, draft.kept->rate_count);
    td_err err = td_cli_profile_run(plan, engine, &draft, info);
    if (err == TD_ERR_CANCELLED)
        (void)td_fail(info, err,
                      "stopped; the same command goes on where it was");
    if (err == TD_OK) err = finish(&draft, info);
    td_cli_profile_draft_close(&draft);
    return err;
}

// Refuses what has another kind of time than a batch's.
static td_err check_engine(const td_engine *engine, td_errinfo *info)
{
    if (!engine->ops->spec(engine)->continuous) return TD_OK;
    return td_fail(info, TD_ERR_UNSUPPORTED,
                   "the engine is continuous: what joins runs at once, and no "
                   "batch can be measured alone");
}

static td_err open_engine(const td_config_model *model, td_engine **ret_engine,
                          td_errinfo *info)
{
    TD_AUTO(td_engine) *engine = NULL;
    TD_TRY(td_server_engines_open(model, NULL, &engine, info));
    TD_TRY(check_engine(engine, info));
    TD_TRY(td_engine_probe_warm_up(engine, NULL, info));
    *ret_engine = TD_TAKE(engine);
    return TD_OK;
}

static int profile_engine(const arguments *args, const td_config_model *model,
                          const td_cli_profile_identity *identity,
                          td_engine *engine)
{
    td_errinfo info = {.text = ""};
    td_cli_profile_plan plan = {0};
    char source[200], out[128];
    bool worker = model->engine.kind == TD_CONFIG_WORKER;
    if (!read_plan(args, engine->ops->spec(engine)->max_batch, &plan)) return 2;
    describe(&plan, source);
    (void)snprintf(out, sizeof out, "%s.yaml", model->model_id);
    const td_config_profile blank = {
        .model = args->model ? args->model : model->model_id,
        .model_hash = identity->model_hash,
        .engine = engine->ops->name,
        .engine_hash = identity->engine_hash,
        .gpu = identity->gpu.name,
        .gpu_memory_gb = identity->gpu.total_gb,
        .memory_gb = td_cli_profile_identity_memory_gb(
            model, identity, worker ? td_engine_worker_pid(engine) : 0),
        .source = source,
    };
    td_err err =
        measure(&plan, engine, &blank, args->out ? args->out : out, &info);
    return err == TD_OK ? 0 : td_cli_fail("profile", err, &info);
}

static int run(const arguments *args)
{
    td_errinfo info = {.text = ""};
    const td_config_model *model = NULL;
    td_cli_profile_identity identity;
    TD_AUTO(td_config_manifest) *manifest = NULL;
    TD_AUTO(td_engine) *engine = NULL;
    td_err err = td_config_manifest_load(args->path, &manifest, &info);
    if (err == TD_OK)
        err = td_cli_policy_model(manifest, args->server, &model, &info);
    if (err == TD_OK)
        err = td_cli_profile_identity_find(model, args->gpu, &identity, &info);
    if (err == TD_OK) err = open_engine(model, &engine, &info);
    if (err != TD_OK) return td_cli_fail("profile", err, &info);
    return profile_engine(args, model, &identity, engine);
}

int td_cli_profile(int argc, char **argv)
{
    arguments args = {.level = "warn"};
    const td_cli_option options[] = {
        {"server", &args.server, NULL},
        {"out", &args.out, NULL},
        {"model", &args.model, NULL},
        {"gpu", &args.gpu, NULL},
        {"sizes", &args.sizes, NULL},
        {"samples", &args.samples, NULL},
        {"requests", &args.requests, NULL},
        {"log", &args.level, NULL},
        {"accept-noise", NULL, &args.accept_noise},
        {"fields", NULL, &args.fields},
        {0},
    };
    if (td_cli_wants_help(argc, argv)) {
        (void)fputs(help, stdout);
        return 0;
    }
    if (!td_cli_parse(argc, argv, options, &args.path)) return 2;
    if (args.fields) {
        td_config_page_write(&td_config_profile_table, stdout);
        return 0;
    }
    if (!args.path) {
        (void)fprintf(stderr, "tendon profile: which manifest?\n\n%s", help);
        return 2;
    }
    if (!td_cli_start_log("profile", args.level)) return 2;
    td_cli_keep_stop();
    int code = run(&args);
    td_log_stop();
    return code;
}
