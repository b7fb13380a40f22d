// SPDX-License-Identifier: Apache-2.0
// `tendon-bench`, a program of its own so that what users run is without it.
// They type `tendon bench`, which starts it.
#include "bench/bench.h"

#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    const char *summary;
    bool alone; // not one of `all`
    bool draws; // with --plot
    td_err (*run)(const td_bench_options *options, td_errinfo *info);
} benches[] = {
    {"rt", "round trip robot, server, robot beside a bare Zenoh ping", false,
     false, td_bench_rt},
    {"tick", "lateness of the control tick beside a bare timer", false, false,
     td_bench_tick},
    {"wire", "encoding and decoding beside a memcpy", false, false,
     td_bench_wire},
    {"sim", "how much faster than real time the simulation runs", false, false,
     td_bench_sim},
    {"async", "what asking early is worth to a robot, in virtual time", false,
     true, td_bench_async},
    {"worker", "a model in a process of its own, beyond the model itself",
     false, false, td_bench_worker},
    {"engine", "our own engine for ACT beside LeRobot's torch", false, false,
     td_bench_engine},
    {"sched", "one decision of each strategy beside Inferential's schedulers",
     false, false, td_bench_sched},
    {"serve", "many clients of one server: throughput, fairness, its cost",
     false, false, td_bench_serve},
    {"peers", "our server beside Inferential's, each with its own clients",
     false, false, td_bench_peers},
    {"python", "our Python SDK beside LeRobot's client and Inferential's",
     false, false, td_bench_python},
    {"record", "recording two cameras: its cost, and what the tick notices",
     false, false, td_bench_record},
    {"rosa", "a planned factory: every figure of the Rosa paper beside ours",
     false, true, td_bench_rosa},
    {"factory", "the paper's factories with our own plans beside its figures",
     false, false, td_bench_factory},
    {"plan", "how long planning a factory takes, its packing beside OR-Tools",
     false, false, td_bench_plan},
    {"net", "a robot over slow, lossy and distant networks (needs root)", true,
     false, td_bench_net},
    {"soak", "many robots for minutes: flat memory, nothing unaccounted for",
     true, false, td_bench_soak},
};

// The other process of a benchmark.
static const td_cli_command helpers[] = {
    {"echo", NULL, td_bench_echo},     {"ping", NULL, td_bench_ping},
    {"flood", NULL, td_bench_flood},   {"relay", NULL, td_bench_relay},
    {"policy", NULL, td_bench_policy},
};

static void print_help(FILE *out)
{
    (void)fprintf(out,
                  "usage: tendon bench NAME [--json] [--quick] [--plot DIR]\n"
                  "\n"
                  "Prints figures beside their limits. Two sides that are "
                  "compared take turns in\nblocks; a value is the median of "
                  "the blocks and a ratio the median of the pairs.\n"
                  "\n");
    for (size_t i = 0; i < TD_COUNT_OF(benches); i++)
        (void)fprintf(out, "  %-7s %s\n", benches[i].name, benches[i].summary);
    (void)fprintf(out, "  %-7s %s\n", "all", "all but net and soak");
    (void)fprintf(
        out,
        "\n"
        "  --json       one object a line\n"
        "  --quick      few and short blocks: to try it, not to quote\n"
        "  --only WORD  tick, rt, python, engine, record: only the cases (rt: "
        "sizes)\n"
        "               with this in their name\n"
        "  --plot DIR   async, rosa: also draw what it saw (SVG)\n"
        "  --minutes N  soak: how long (default 10)\n"
        "  --robots N   soak: how many (default 32)\n"
        "  --fps N      soak: observations of a robot a second (default "
        "30)\n"
        "  --kill-s N   soak: the model has a process of its own, and it "
        "is killed\n               every N seconds\n"
        "\n"
        "examples:\n"
        "  tendon bench wire\n"
        "  tendon bench rt --json > rt.jsonl\n"
        "  tendon bench async --plot plots\n"
        "  tendon bench soak --minutes 2 --robots 8\n");
}

static bool read_number(const char *option, const char *text, int64_t least,
                        int64_t most, int64_t *ret_number)
{
    char *end;
    if (!text) return true;
    long long number = strtoll(text, &end, 10);
    if (*text && !*end && number >= least && number <= most) {
        *ret_number = number;
        return true;
    }
    (void)fprintf(stderr,
                  "tendon bench: --%s must be %lld to %lld, got \"%s\"\n",
                  option, (long long)least, (long long)most, text);
    return false;
}

static bool may_plot(const char *name)
{
    bool draws = strcmp(name, "all") == 0;
    for (size_t i = 0; i < TD_COUNT_OF(benches); i++)
        draws |= benches[i].draws && strcmp(benches[i].name, name) == 0;
    if (!draws)
        (void)fprintf(stderr, "tendon bench: %s draws nothing for --plot\n",
                      name);
    return draws;
}

static bool may_choose(const char *name)
{
    bool chooses = strcmp(name, "tick") == 0 || strcmp(name, "rt") == 0 ||
                   strcmp(name, "python") == 0 || strcmp(name, "engine") == 0 ||
                   strcmp(name, "record") == 0;
    if (!chooses)
        (void)fprintf(stderr,
                      "tendon bench: --only is for tick, rt, python, engine "
                      "and record, not for %s\n",
                      name);
    return chooses;
}

static td_err run_named(const char *name, const td_bench_options *options,
                        td_errinfo *info)
{
    bool all = strcmp(name, "all") == 0;
    bool found = all;
    td_err first = TD_OK;
    for (size_t i = 0; i < TD_COUNT_OF(benches); i++) {
        bool named = strcmp(benches[i].name, name) == 0;
        found = found || named;
        if (first != TD_OK || !(named || (all && !benches[i].alone))) continue;
        first = benches[i].run(options, info);
    }
    if (found) return first;
    return td_fail(info, TD_ERR_NOTFOUND,
                   "there is no \"%s\"; try `tendon bench --help`", name);
}

static int run(const char *name, const td_bench_options *options)
{
    td_errinfo info = {.text = ""};
    if (!td_cli_start_log("bench", "error")) return 2;
    td_cli_on_stop(td_bench_stop, NULL);
    td_err err = run_named(name, options, &info);
    td_bench_folder_remove();
    if (err == TD_ERR_CANCELLED) info.text[0] = 0;
    if (err != TD_OK) {
        int code = td_cli_fail("bench", err, &info);
        return err == TD_ERR_NOTFOUND ? 2 : code;
    }
    td_log_stop();
    uint64_t rows, missed;
    td_bench_tally(&rows, &missed);
    if (!options->json)
        (void)printf("%llu figures, %llu missed\n", (unsigned long long)rows,
                     (unsigned long long)missed);
    return 0;
}

static int run_bench(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < TD_COUNT_OF(helpers); i++)
        if (strcmp(argv[1], helpers[i].name) == 0)
            return helpers[i].run(argc - 1, argv + 1);
    const char *name = NULL;
    const char *minutes = NULL;
    const char *robots = NULL;
    const char *kill_s = NULL;
    const char *fps = NULL;
    td_bench_options options = {.minutes = 10, .robots = 32, .fps = 30};
    const td_cli_option table[] = {{"json", NULL, &options.json},
                                   {"quick", NULL, &options.quick},
                                   {"kill-s", &kill_s, NULL},
                                   {"minutes", &minutes, NULL},
                                   {"robots", &robots, NULL},
                                   {"only", &options.only, NULL},
                                   {"plot", &options.plot, NULL},
                                   {"fps", &fps, NULL},
                                   {0}};
    if (td_cli_wants_help(argc, argv)) {
        print_help(stdout);
        return 0;
    }
    if (!td_cli_parse(argc, argv, table, &name) ||
        !read_number("minutes", minutes, 1, 24 * 60, &options.minutes) ||
        !read_number("robots", robots, 1, 256, &options.robots) ||
        !read_number("fps", fps, 1, 1000, &options.fps) ||
        !read_number("kill-s", kill_s, 1, 3600, &options.kill_s))
        return 2;
    if (!name) {
        print_help(stderr);
        return 2;
    }
    if (options.plot && !may_plot(name)) return 2;
    if (options.only && !may_choose(name)) return 2;
    return run(name, &options);
}

int main(int argc, char **argv)
{
    static char name[] = "bench"; // as users type it: `tendon bench`
    if (argc > 0) argv[0] = name;
    td_cli_tune_zenoh();
    return run_bench(argc, argv);
}
