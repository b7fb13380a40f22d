// SPDX-License-Identifier: Apache-2.0
#include "cli/cli.h"
#include "cli/dataset/commands.h"

#include <string.h>

static const td_cli_command parts[] = {
    {"info", "what a dataset holds", td_cli_dataset_info},
    {"verify", "hold it to everything that the format promises",
     td_cli_dataset_verify},
    {"repair", "save what a recorder left unfinished", td_cli_dataset_repair},
    {"export", "write it as CSV and JPEG, for people", td_cli_dataset_export},
    {"replay", "show it to a policy, and compare what that would have done",
     td_cli_dataset_replay},
};

static void print_help(FILE *out)
{
    (void)fprintf(out,
                  "usage: tendon dataset PART DIR [ARGUMENTS]\n"
                  "\n"
                  "Works on a folder with a LeRobotDataset v3.0, recorded by "
                  "Tendon or by LeRobot.\n"
                  "\n");
    for (size_t i = 0; i < TD_COUNT_OF(parts); i++)
        (void)fprintf(out, "  %-8s %s\n", parts[i].name, parts[i].summary);
    (void)fprintf(out, "\n`tendon dataset PART --help` shows its arguments and "
                       "examples.\n");
}

static int run_part(const td_cli_command *part, int argc, char **argv)
{
    static char typed[32];
    (void)snprintf(typed, sizeof typed, "dataset %s", part->name);
    argv[1] = typed;
    return part->run(argc - 1, argv + 1);
}

int td_cli_dataset(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    for (size_t i = 0; i < TD_COUNT_OF(parts); i++)
        if (strcmp(parts[i].name, name) == 0)
            return run_part(&parts[i], argc, argv);
    if (td_cli_wants_help(argc, argv)) {
        print_help(stdout);
        return 0;
    }
    if (*name)
        (void)fprintf(stderr, "tendon dataset: there is no \"%s\"\n\n", name);
    print_help(stderr);
    return 2;
}
