// SPDX-License-Identifier: Apache-2.0
// `tendon plan`: reads a factory and its profiles, and makes, shows and saves a
// plan.
//
// The command has four uses, and run() chooses between them: a new plan (or one
// beside an old plan, with --from), a comparison of planners (--compare), a
// question what would become of the plan with other numbers (--what-if), and
// the pages of its fields and schema. How plans are made and tried out in
// simulation is cli/planning.c; how they are printed is plan/file.
//
// A search may have a limit of time: budget is asked after each point that was
// tried, and when it is used up the best plan so far is taken.
//
// A plan is written beside its file and then renamed, so that the plan that
// runs is never lost for a new one; a device or a pipe is written as it is.
#include "base/clock.h"
#include "cli/cli.h"
#include "cli/planning.h"
#include "config/yaml/table.h"
#include "plan/admit/what_if.h"
#include "plan/file/show.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char help[] =
    "usage: tendon plan FACTORY.yaml [--out PLAN.json] [--picture PLAN.svg]\n"
    "                   [--from OLD.json] [--planner NAME] [--explain]\n"
    "                   [--what-if CHANGE] [--compare NAME,...]\n"
    "                   [--tolerance PART] [--time-ms N]\n"
    "       tendon plan --schema | --example | --fields\n"
    "\n"
    "Works out which model runs on which GPU, which server each robot asks,\n"
    "how often and in which batches, so that the most valuable actions come "
    "out and every\n"
    "deadline holds. A plan is tried out in simulation first; one that misses\n"
    "deadlines there is not written.\n"
    "\n"
    "  --out FILE       the plan for machines (JSON; - is the output)\n"
    "  --picture FILE   GPUs, what runs on each, who uses it (SVG)\n"
    "  --from FILE      the plan that runs now: newcomers are admitted where\n"
    "                   that is nearly as good as a new plan; a new one moves\n"
    "                   as few models and robots as it can\n"
    "  --planner NAME   tendon (default), paper, equal, weighted, dedicated,\n"
    "                   dedicated-robot\n"
    "  --explain        what binds, and what one more GPU or robot would do\n"
    "  --what-if C      robots=48 or gpus=10: what would change;\n"
    "                   unsafe=0.01 or failing=0.01: what would come of it if\n"
    "                   the safety model warned, or the monitor saw a "
    "failure,\n"
    "                   in so many of its answers\n"
    "  --compare NAMES  the same factory planned by others, side by side\n"
    "  --tolerance PART the search ends when less than this is left to gain,\n"
    "                   from 0 to 0.5 (0.001)\n"
    "  --time-ms N      it ends after so long with what it has; plans then\n"
    "                   depend on the machine\n"
    "  --schema         print the JSON Schema of a factory's description\n"
    "  --example        print a description to begin with\n"
    "  --fields         print its fields as a table (Markdown)\n"
    "\n"
    "examples:\n"
    "  tendon plan --example > factory.yaml\n"
    "  tendon plan examples/factory.yaml --explain\n"
    "  tendon plan examples/factory.yaml --what-if robots=48\n"
    "  tendon plan examples/factory.yaml --what-if failing=0.02\n"
    "  tendon plan examples/factory.yaml --from plan.json --out plan.json\n"
    "  tendon plan examples/factory.yaml --compare equal,weighted,dedicated\n";

typedef struct arguments {
    const char *path, *out, *picture, *from, *planner, *what_if, *compare;
    const char *tolerance, *time_ms;
    bool explain, schema, example, fields;
} arguments;

// How long a search may take.
typedef struct budget {
    int64_t most_ns, until_ns;
} budget;

static bool is_over(void *context, uint32_t points)
{
    budget *left = context;
    int64_t now_ns = td_clock_monotonic_ns();
    if (points == 1) left->until_ns = now_ns + left->most_ns;
    return now_ns >= left->until_ns;
}

// Whole or not at all, so that the plan that runs is not lost for a new one. A
// device or a pipe is written as it is.
static td_err save(const td_plan *plan, const char *path,
                   td_err (*write)(const td_plan *plan, FILE *out),
                   td_errinfo *info)
{
    struct stat there;
    char *fresh = NULL;
    if (strcmp(path, "-") == 0) return write(plan, stdout);
    bool plain = stat(path, &there) != 0 || S_ISREG(there.st_mode);
    if (asprintf(&fresh, "%s%s", path, plain ? ".new" : "") < 0)
        return TD_ERR_NOMEM;
    FILE *out = fopen(fresh, "we");
    td_err err = out ? write(plan, out) : TD_ERR_IO;
    if (out && fclose(out) != 0) err = TD_ERR_IO;
    if (err == TD_OK && plain && rename(fresh, path) != 0) err = TD_ERR_IO;
    if (err != TD_OK) (void)td_fail(info, err, "%s: %s", path, strerror(errno));
    if (err != TD_OK && plain && out) (void)unlink(fresh);
    free(fresh);
    return err;
}

static td_err write_picture(const td_plan *plan, FILE *out)
{
    td_plan_picture(plan, out);
    return ferror(out) ? TD_ERR_IO : TD_OK;
}

typedef struct change {
    double robots, gpus;    // whole; 0: as they are
    double unsafe, failing; // as td_sim_factory_options
} change;

// "robots=48", "gpus=10", "unsafe=0.01" or "failing=0.01".
static bool read_change(const char *text, change *ret_change)
{
    const struct {
        const char *name;
        double *value, most;
    } names[] = {{"robots", &ret_change->robots, 100000},
                 {"gpus", &ret_change->gpus, 100000},
                 {"unsafe", &ret_change->unsafe, 1},
                 {"failing", &ret_change->failing, 1}};
    const char *value = strchr(text, '=');
    char *end = NULL;
    if (!value) return false;
    double number = strtod(value + 1, &end);
    if (!(number > 0) || *end) return false;
    for (size_t i = 0; i < TD_COUNT_OF(names); i++) {
        if (strncmp(text, names[i].name, (size_t)(value - text)) != 0 ||
            names[i].name[value - text])
            continue;
        *names[i].value = number;
        return number <= names[i].most &&
               (names[i].most == 1 || number == floor(number));
    }
    return false;
}

// What would become of the newcomers without a new plan.
static td_err print_admission(const td_cli_planning *in,
                              const td_config_factory *changed,
                              const td_plan *before, const td_plan *after,
                              td_errinfo *info)
{
    TD_AUTO(td_plan_admission) *admission = NULL;
    td_cli_newcomers newcomers;
    TD_TRY(td_cli_planning_admit(in, changed, before, &admission, &newcomers,
                                 info));
    const td_plan *kept = td_plan_admission_plan(admission);
    (void)printf("without moving anything: %zu admitted, %.1f weighted actions "
                 "a second (%.0f %% of the new plan)",
                 newcomers.admitted, kept->value_hz,
                 100 * kept->value_hz / after->value_hz);
    if (newcomers.last.reason[0]) (void)printf("; %s", newcomers.last.reason);
    (void)printf("\n");
    return TD_OK;
}

static uint64_t count_stopped(const td_sim_factory_result *result)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < result->class_count; i++)
        sum += result->classes[i].stopped;
    return sum;
}

// The same plan when models have something to say.
static td_err what_if_said(const td_cli_planning *in, const td_plan *plan,
                           const char *text, td_errinfo *info)
{
    td_sim_factory_result result;
    uint64_t restarts = 0;
    TD_TRY(td_cli_planning_simulate(in, in->factory, plan, &result, info));
    for (size_t i = 0; i < result.class_count; i++)
        restarts += result.classes[i].restarts;
    (void)printf("\nwith %s, simulated for %d x %d s: %.1f qualified actions a "
                 "second, %llu tasks begun again, %llu of %zu robots stopped "
                 "for good\n",
                 text, TD_CLI_PLANNING_RUNS, TD_CLI_PLANNING_S,
                 result.qualified_hz, (unsigned long long)restarts,
                 (unsigned long long)count_stopped(&result),
                 TD_CLI_PLANNING_RUNS * plan->robot_count);
    td_sim_factory_result_done(&result);
    return TD_OK;
}

static td_err what_if_planned(const td_cli_planning *in, const change *other,
                              const char *text, const td_plan *before,
                              td_errinfo *info)
{
    TD_AUTO(td_arena) *arena = NULL;
    TD_AUTO(td_plan) *after = NULL;
    td_config_factory *changed;
    td_cli_planning again = *in;
    double qualified_hz = 0;
    TD_TRY(td_arena_new(&arena));
    TD_TRY(td_plan_what_if(in->factory, (uint32_t)other->robots,
                           (uint32_t)other->gpus, arena, &changed, info));
    again.options.previous = before;
    TD_TRY(td_cli_planning_make(&again, changed, &after, &qualified_hz, info));
    (void)printf("\nwith %s:\n\n", text);
    td_plan_show(after, stdout);
    (void)printf("\n%u GPUs load another model, %u streams change their "
                 "server\n",
                 after->reloaded, after->rerouted);
    if (changed->robot_count > in->factory->robot_count && in->options.capped)
        return print_admission(in, changed, before, after, info);
    return TD_OK;
}

static td_err what_if(const td_cli_planning *in, const char *text,
                      const td_plan *plan, td_errinfo *info)
{
    change other = {0};
    td_cli_planning said = *in;
    if (!read_change(text, &other))
        return td_fail(info, TD_ERR_INVALID,
                       "--what-if is robots=N, gpus=N, unsafe=PART or "
                       "failing=PART, not \"%s\"",
                       text);
    if (other.robots > 0 || other.gpus > 0)
        return what_if_planned(in, &other, text, plan, info);
    said.unsafe = other.unsafe;
    said.failing = other.failing;
    return what_if_said(&said, plan, text, info);
}

static void print_row(const char *planner, const td_plan *plan,
                      const td_sim_factory_result *result, bool holds)
{
    uint32_t refused = 0;
    for (size_t i = 0; i < plan->class_count; i++)
        refused += plan->classes[i].refused;
    (void)printf("%-16s  %11.1f  %9.1f  %8.1f  %4u  %7u  %7.1f  %s\n", planner,
                 result->actions_hz, result->qualified_hz, result->value_hz,
                 plan->gpus_used, refused,
                 (double)count_stopped(result) / TD_CLI_PLANNING_RUNS,
                 holds ? "yes" : "no");
}

static td_err compare_one(const td_cli_planning *in, const char *name,
                          td_errinfo *info)
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
    TD_TRY(td_cli_planning_simulate(in, in->factory, plan, &result, info));
    bool holds =
        td_sim_factory_holds(in->factory, plan, &result, &why) == TD_OK;
    print_row(name, plan, &result, holds);
    td_sim_factory_result_done(&result);
    return TD_OK;
}

static td_err compare(const td_cli_planning *in, const char *names,
                      td_errinfo *info)
{
    char name[32];
    (void)printf("\n%-16s  %11s  %9s  %8s  %4s  %7s  %7s  %s\n", "simulated",
                 "actions/s", "qualified", "weighted", "GPUs", "refused",
                 "stopped", "deadlines hold");
    TD_TRY(compare_one(in, td_plan_planner_name(in->options.planner), info));
    while (*names) {
        size_t size = strcspn(names, ",");
        (void)snprintf(name, sizeof name, "%.*s", (int)size, names);
        TD_TRY(compare_one(in, name, info));
        names += size + (names[size] == ',');
    }
    return TD_OK;
}

// A new one, or beside the old one.
static td_err make(const arguments *args, const td_cli_planning *in, bool loud,
                   td_plan **ret_plan, td_errinfo *info)
{
    TD_AUTO(td_plan) *before = NULL;
    double qualified_hz = 0;
    if (args->from) {
        TD_TRY(td_plan_load(args->from, &before, info));
        TD_TRY(td_cli_planning_replan(in, before, loud, ret_plan, &qualified_hz,
                                      info));
    } else {
        TD_TRY(td_cli_planning_make(in, in->factory, ret_plan, &qualified_hz,
                                    info));
    }
    if (!loud) return TD_OK;
    td_plan_show(*ret_plan, stdout);
    (void)printf("\nsimulated for %d x %d s: every robot meets its deadlines, "
                 "%.1f qualified actions a second\n",
                 TD_CLI_PLANNING_RUNS, TD_CLI_PLANNING_S, qualified_hz);
    return TD_OK;
}

static td_err run(const arguments *args, const td_cli_planning *in,
                  td_errinfo *info)
{
    TD_AUTO(td_plan) *plan = NULL;
    bool loud = !args->out || strcmp(args->out, "-") != 0;
    TD_TRY(make(args, in, loud, &plan, info));
    if (args->explain && loud) {
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

static td_err read_number(const char *option, const char *text, double least,
                          double most, double *ret_number, td_errinfo *info)
{
    char *end;
    double number = strtod(text, &end);
    if (end == text || *end || !(number >= least && number <= most))
        return td_fail(info, TD_ERR_INVALID,
                       "--%s is a number from %g to %g, not \"%s\"", option,
                       least, most, text);
    *ret_number = number;
    return TD_OK;
}

static td_err read_options(const arguments *args, budget *left,
                           td_plan_options *ret_options, td_errinfo *info)
{
    td_plan_planner planner = TD_PLAN_TENDON;
    double time_ms = 0;
    if (args->planner && td_plan_planner_find(args->planner, &planner) != TD_OK)
        return td_fail(info, TD_ERR_INVALID,
                       "--planner: there is no planner \"%s\"", args->planner);
    *ret_options = td_plan_options_of(planner);
    if (args->tolerance)
        TD_TRY(read_number("tolerance", args->tolerance, 0, 0.5,
                           &ret_options->tolerance, info));
    if (!args->time_ms) return TD_OK;
    TD_TRY(read_number("time-ms", args->time_ms, 1, 3600000, &time_ms, info));
    left->most_ns = (int64_t)(time_ms * (double)TD_NS_PER_MS);
    ret_options->is_over = is_over;
    ret_options->context = left;
    return TD_OK;
}

static td_err load(const arguments *args, budget *left, td_cli_planning *ret_in,
                   td_errinfo *info)
{
    TD_TRY(read_options(args, left, &ret_in->options, info));
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
    const td_cli_option options[] = {{"out", &args.out, NULL},
                                     {"picture", &args.picture, NULL},
                                     {"from", &args.from, NULL},
                                     {"planner", &args.planner, NULL},
                                     {"what-if", &args.what_if, NULL},
                                     {"compare", &args.compare, NULL},
                                     {"tolerance", &args.tolerance, NULL},
                                     {"time-ms", &args.time_ms, NULL},
                                     {"explain", NULL, &args.explain},
                                     {"schema", NULL, &args.schema},
                                     {"example", NULL, &args.example},
                                     {"fields", NULL, &args.fields},
                                     {0}};
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
    td_cli_planning in = {0};
    budget left = {0};
    td_err err = load(&args, &left, &in, &info);
    if (err == TD_OK) err = run(&args, &in, &info);
    if (in.profiles) td_config_profiles_free(in.profiles);
    if (in.factory) td_config_factory_free(in.factory);
    return err == TD_OK ? 0 : td_cli_fail("plan", err, &info);
}
