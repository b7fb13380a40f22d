// SPDX-License-Identifier: Apache-2.0
#include "cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const td_cli_command commands[] = {
    {"serve", "serve the models of a manifest", td_cli_serve},
    {"robot", "run a robot on a remote policy", td_cli_robot},
    {"router", "run a Zenoh router", td_cli_router},
    {"checkpoint", "what a LeRobot checkpoint wants and gives",
     td_cli_checkpoint},
    {"profile", "measure a model: what `tendon plan` plans from",
     td_cli_profile},
    {"plan", "which model where, and how often each robot asks", td_cli_plan},
    {"dataset", "look at, check and repair what was recorded", td_cli_dataset},
    {"doctor", "what this machine has, lacks, and what to do", td_cli_doctor},
    {"demo", "one server and four robots on this machine", td_cli_demo},
    {"bench", "print every figure beside its limit", td_cli_bench},
    {"native-worker", NULL, td_cli_native_worker}, // for `serve` itself
};

static void print_help(FILE *out)
{
    (void)fprintf(
        out, "Tendon: robots that use policies which do not fit on board.\n"
             "\nusage: tendon COMMAND [ARGUMENTS]\n\n");
    for (size_t i = 0; i < TD_COUNT_OF(commands) && commands[i].summary; i++)
        (void)fprintf(out, "  %-10s %s\n", commands[i].name,
                      commands[i].summary);
    (void)fprintf(out, "\n`tendon COMMAND --help` shows its arguments and "
                       "examples. Start with `tendon demo`.\n");
}

static const td_cli_command *find_command(const char *name)
{
    for (size_t i = 0; i < TD_COUNT_OF(commands); i++)
        if (strcmp(commands[i].name, name) == 0) return &commands[i];
    return NULL;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    td_cli_tune_zenoh();
    if (strcmp(name, "--version") == 0) {
        (void)printf("tendon %s\n", TD_VERSION);
        return 0;
    }
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 ||
        strcmp(name, "help") == 0) {
        print_help(stdout);
        return 0;
    }
    const td_cli_command *command = find_command(name);
    if (command) return command->run(argc - 1, argv + 1);
    if (*name)
        (void)fprintf(stderr, "tendon: there is no command \"%s\"\n\n", name);
    print_help(stderr);
    return 2;
}
