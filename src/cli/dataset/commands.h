// SPDX-License-Identifier: Apache-2.0
#ifndef TD_CLI_DATASET_COMMANDS_H
#define TD_CLI_DATASET_COMMANDS_H

// What `tendon dataset` can do: a file each, a row each in dataset.c. argv[0]
// is what people type, "dataset info"; each returns the exit code.

int td_cli_dataset_info(int argc, char **argv);
int td_cli_dataset_verify(int argc, char **argv);
int td_cli_dataset_repair(int argc, char **argv);
int td_cli_dataset_export(int argc, char **argv);
int td_cli_dataset_replay(int argc, char **argv);

#endif
