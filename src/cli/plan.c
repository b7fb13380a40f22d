// SPDX-License-Identifier: Apache-2.0
#include "cli/cli.h"
#include "config/page.h"
#include "config/schema.h"
#include "plan/admit.h"
#include "plan/change.h"
#include "plan/show.h"
#include "sim/factory.h"

#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define VERIFY_RUNS 3
#define VERIFY_S 60
#define MOST_TRIES 4
#define LESS_EACH 0.1 // of the deadlines, for another try

static const char help[] =
    "usage: tendon plan FACTORY.yaml [--out PLAN.json] [--picture PLAN.svg]\n"
    "                   [--planner NAME] [--explain] [--what-if CHANGE]\n"
    "                   [--compare NAME,...]\n"
    "       tendon plan --schema | --example | --fields\n"
    "\n"
    "Works out which model runs on which GPU, who asks whom, how often and in\n"
    "which batches, so that the most valuable actions come out and every\n"
    "deadline holds. A plan is tried out in simulation first; one that misses\n"
    "deadlines there is not written.\n"
    "\n"
    "  --out FILE       the plan for machines (JSON; - is the output)\n"
    "  --picture FILE   GPUs, what runs on each, who uses it (SVG)\n"
    "  --planner NAME   tendon (default), paper, equal, weighted, dedicated,\n"
    "                   dedicated-robot\n"
    "  --explain        what binds, and what one more GPU or robot would do\n"
    "  --what-if C      robots=48 or gpus=10: what would change\n"
    "  --compare NAMES  the same factory planned by others, side by side\n"
    "  --schema         print the JSON Schema of a factory's description\n"
    "  --example        print a description to begin with\n"
    "  --fields         print its fields as a table (Markdown)\n"
    "\n"
    "examples:\n"
    "  tendon plan --example > factory.yaml\n"
    "  tendon plan examples/factory.yaml --explain\n"
    "  tendon plan examples/factory.yaml --what-if robots=48\n"
    "  tendon plan examples/factory.yaml --compare equal,weighted,dedicated\n";

typedef struct arguments {
    const char *path, *out, *picture, *planner, *what_if, *compare;
    bool explain, schema, example, fields;
} arguments;

typedef struct inputs {
    td_config_factory *factory;
    td_config_profiles *profiles;
    td_plan_options options;
} inputs;

static td_err simulate(const td_config_factory *factory,
                       const td_config_profiles *profiles, const td_plan *plan,
                       td_sim_factory_result *ret_result, td_errinfo *info)
{
    td_sim_factory_options options = td_sim_factory_defaults;
    options.runs = VERIFY_RUNS;
    options.duration_ns = options.warmup_ns + VERIFY_S * TD_NS_PER_S;
    return td_sim_factory_run(factory, profiles, plan, &options, ret_result,
                              info);
}

// Plans, and plans more carefully while the simulation finds a robot that
// misses its deadlines.
static td_err make_verified(const inputs *in, const td_config_factory *factory,
                            td_plan **ret_plan, double *ret_qualified_hz,
                            td_errinfo *info)
{
    td_plan_options options = in->options;
    for (int tries = 1;; tries++) {
        TD_AUTO(td_plan) *plan = NULL;
        td_sim_factory_result result;
        TD_TRY(td_plan_make(factory, in->profiles, &options, &plan, info));
        TD_TRY(simulate(factory, in->profiles, plan, &result, info));
        td_err err = td_sim_factory_holds(factory, plan, &result, info);
        double qualified_hz = result.qualified_hz;
        td_sim_factory_result_done(&result);
        if (err == TD_OK) {
            *ret_qualified_hz = qualified_hz;
            *ret_plan = TD_TAKE(plan);
            return TD_OK;
        }
        if (tries == MOST_TRIES || !options.capped) return err;
        options.slack += LESS_EACH;
        options.margin = 0;
    }
}

static td_err save(const td_plan *plan, const char *path,
                   td_err (*write)(const td_plan *plan, FILE *out),
                   td_errinfo *info)
{
    if (strcmp(path, "-") == 0) return write(plan, stdout);
    FILE *out = fopen(path, "w");
    td_err err = out ? write(plan, out) : TD_ERR_IO;
    if (out && fclose(out) != 0) err = TD_ERR_IO;
    if (err != TD_OK) (void)td_fail(info, err, "%s: %s", path, strerror(errno));
    return err;
}

static td_err write_picture(const td_plan *plan, FILE *out)
{
    td_plan_picture(plan, out);
    return ferror(out) ? TD_ERR_IO : TD_OK;
}

// "robots=48" or "gpus=10".
static bool read_change(const char *text, uint32_t *ret_robots,
                        uint32_t *ret_gpus)
{
    const char *value = strchr(text, '=');
    char *end = NULL;
    unsigned long number = value ? strtoul(value + 1, &end, 10) : 0;
    if (number == 0 || number > 100000 || *end) return false;
    if (strncmp(text, "robots=", 7) == 0)
        *ret_robots = (uint32_t)number;
    else if (strncmp(text, "gpus=", 5) == 0)
        *ret_gpus = (uint32_t)number;
    else
        return false;
    return true;
}

static bool is_in(const td_plan *plan, const char *name)
{
    for (size_t i = 0; i < plan->robot_count; i++)
        if (strcmp(plan->robots[i].name, name) == 0) return true;
    return false;
}

// The newcomers one by one, with every model staying where it is.
static td_err admit_all(const inputs *in, const td_config_factory *changed,
                        const td_plan *before, const td_plan *after,
                        td_errinfo *info)
{
    TD_AUTO(td_plan_desk) *desk = NULL;
    td_plan_admission admission = {.verdict = TD_PLAN_ADMITTED};
    size_t admitted = 0;
    TD_TRY(td_plan_desk_new(in->factory, in->profiles, before, &desk, info));
    for (size_t i = 0; i < changed->robot_count; i++) {
        const td_config_factory_robot *robot = &changed->robots[i];
        if (is_in(before, robot->name)) continue;
        TD_TRY(td_plan_admit(desk, robot->name, robot->key,
                             (uint32_t)robot->task, 0, &admission));
        if (admission.verdict == TD_PLAN_REPLAN) break;
        admitted++;
    }
    const td_plan *kept = td_plan_desk_plan(desk);
    (void)printf("without moving anything: %zu admitted, %.1f weighted actions "
                 "a second (%.0f %% of the new plan)",
                 admitted, kept->value_hz,
                 100 * kept->value_hz / after->value_hz);
    if (admission.reason[0]) (void)printf("; %s", admission.reason);
    (void)printf("\n");
    return TD_OK;
}

static td_err what_if(const inputs *in, const char *change,
                      const td_plan *before, td_errinfo *info)
{
    TD_AUTO(td_config_arena) *arena = NULL;
    TD_AUTO(td_plan) *after = NULL;
    td_config_factory *changed;
    inputs other = *in;
    uint32_t robots = 0;
    uint32_t gpus = 0;
    double qualified_hz;
    if (!read_change(change, &robots, &gpus))
        return td_fail(info, TD_ERR_INVALID,
                       "--what-if is robots=N or gpus=N, not \"%s\"", change);
    TD_TRY(td_config_arena_new(&arena));
    TD_TRY(td_plan_change(in->factory, robots, gpus, arena, &changed, info));
    other.options.previous = before;
    TD_TRY(make_verified(&other, changed, &after, &qualified_hz, info));
    (void)printf("\nwith %s:\n\n", change);
    td_plan_show(after, stdout);
    (void)printf("\n%u GPUs load another model, %u streams change their "
                 "server\n",
                 after->reloaded, after->rerouted);
    if (changed->robot_count > in->factory->robot_count && in->options.capped)
        return admit_all(in, changed, before, after, info);
    return TD_OK;
}

static void print_row(const char *planner, const td_plan *plan,
                      const td_sim_factory_result *result, bool holds)
{
    uint32_t refused = 0;
    for (size_t i = 0; i < plan->class_count; i++)
        refused += plan->classes[i].refused;
    (void)printf("%-16s  %11.1f  %9.1f  %8.1f  %4u  %7u  %s\n", planner,
                 result->actions_hz, result->qualified_hz, result->value_hz,
                 plan->gpus_used, refused, holds ? "yes" : "no");
}

static td_err compare_one(const inputs *in, const char *name, td_errinfo *info)
{
    TD_AUTO(td_plan) *plan = NULL;
    td_sim_factory_result result;
    td_plan_planner planner;
    td_errinfo why = {.text = ""};
    if (td_plan_planner_find(name, &planner) != TD_OK)
        return td_fail(info, TD_ERR_INVALID,
                       "--compare: there is no planner \"%s\"", name);
    td_plan_options options = td_plan_options_of(planner);
    td_err err = td_plan_make(in->factory, in->profiles, &options, &plan, &why);
    if (err != TD_OK) {
        (void)printf("%-16s  not possible: %s\n", name, why.text);
        return TD_OK;
    }
    TD_TRY(simulate(in->factory, in->profiles, plan, &result, info));
    bool holds =
        td_sim_factory_holds(in->factory, plan, &result, &why) == TD_OK;
    print_row(name, plan, &result, holds);
    td_sim_factory_result_done(&result);
    return TD_OK;
}

static td_err compare(const inputs *in, const char *names, td_errinfo *info)
{
    char name[32];
    (void)printf("\n%-16s  %11s  %9s  %8s  %4s  %7s  %s\n", "simulated",
                 "actions/s", "qualified", "weighted", "GPUs", "refused",
                 "deadlines hold");
    TD_TRY(compare_one(in, td_plan_planner_name(in->options.planner), info));
    while (*names) {
        size_t size = strcspn(names, ",");
        (void)snprintf(name, sizeof name, "%.*s", (int)size, names);
        TD_TRY(compare_one(in, name, info));
        names += size + (names[size] == ',');
    }
    return TD_OK;
}

static td_err run(const arguments *args, const inputs *in, td_errinfo *info)
{
    TD_AUTO(td_plan) *plan = NULL;
    double qualified_hz;
    bool quiet = args->out && strcmp(args->out, "-") == 0;
    TD_TRY(make_verified(in, in->factory, &plan, &qualified_hz, info));
    if (!quiet) {
        td_plan_show(plan, stdout);
        (void)printf("\nsimulated for %d x %d s: every robot meets its "
                     "deadlines, %.1f qualified actions a second\n",
                     VERIFY_RUNS, VERIFY_S, qualified_hz);
    }
    if (args->explain && !quiet) {
        (void)printf("\n");
        TD_TRY(td_plan_explain(in->factory, in->profiles, &in->options, plan,
                               stdout));
    }
    if (args->out) TD_TRY(save(plan, args->out, td_plan_write, info));
    if (args->picture) TD_TRY(save(plan, args->picture, write_picture, info));
    if (args->what_if) TD_TRY(what_if(in, args->what_if, plan, info));
    if (args->compare) TD_TRY(compare(in, args->compare, info));
    return TD_OK;
}

static td_err load(const arguments *args, inputs *ret_in, td_errinfo *info)
{
    td_plan_planner planner = TD_PLAN_TENDON;
    if (args->planner && td_plan_planner_find(args->planner, &planner) != TD_OK)
        return td_fail(info, TD_ERR_INVALID,
                       "--planner: there is no planner \"%s\"", args->planner);
    ret_in->options = td_plan_options_of(planner);
    TD_TRY(td_config_factory_load(args->path, &ret_in->factory, info));
    return td_config_profiles_load(ret_in->factory->profiles, &ret_in->profiles,
                                   info);
}

static bool print_page(const arguments *args)
{
    if (args->schema)
        td_config_schema_write(&td_config_factory_table,
                               "A factory, as tendon plan reads it", stdout);
    if (args->example) (void)fputs(td_config_factory_example, stdout);
    if (args->fields) td_config_page_write(&td_config_factory_table, stdout);
    return args->schema || args->example || args->fields;
}

int td_cli_plan(int argc, char **argv)
{
    arguments args = {0};
    td_errinfo info = {.text = ""};
    const td_cli_option options[] = {
        {"out", &args.out, NULL},         {"picture", &args.picture, NULL},
        {"planner", &args.planner, NULL}, {"what-if", &args.what_if, NULL},
        {"compare", &args.compare, NULL}, {"explain", NULL, &args.explain},
        {"schema", NULL, &args.schema},   {"example", NULL, &args.example},
        {"fields", NULL, &args.fields},   {0}};
    if (td_cli_wants_help(argc, argv)) {
        (void)printf("%s", help);
        return 0;
    }
    if (!td_cli_parse(argc, argv, options, &args.path)) return 2;
    if (print_page(&args)) return 0;
    if (!args.path) {
        (void)fprintf(stderr, "tendon plan: which file?\n\n%s", help);
        return 2;
    }
    inputs in = {0};
    td_err err = load(&args, &in, &info);
    if (err == TD_OK) err = run(&args, &in, &info);
    if (in.profiles) td_config_profiles_free(in.profiles);
    if (in.factory) td_config_factory_free(in.factory);
    return err == TD_OK ? 0 : td_cli_fail("plan", err, &info);
}
