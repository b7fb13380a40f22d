// SPDX-License-Identifier: Apache-2.0
#ifndef TD_CLI_PROFILE_DRAFT_H
#define TD_CLI_PROFILE_DRAFT_H

// A profile in the making. Everything that was measured is in the file OUT.part
// at once, and read back from there, so that whoever ends this loses nothing
// and what is reckoned with is what others will read.

#include "config/factory/profile.h"

typedef struct td_cli_profile_draft {
    const char *out;
    char *part;              // the file's name
    td_config_profile blank; // whose profile it is
    td_config_profile *kept; // NULL: nothing was measured yet
} td_cli_profile_draft;

// Begins, or goes on with what OUT.part has. `blank` has no sizes or rates; its
// texts are borrowed. EXISTS if OUT is there, MISMATCH if the part is of
// another model, engine or GPU.
TD_NODISCARD td_err td_cli_profile_draft_open(td_cli_profile_draft *ret_draft,
                                              const char *out,
                                              const td_config_profile *blank,
                                              td_errinfo *info);
void td_cli_profile_draft_close(td_cli_profile_draft *draft);

// What is kept, or NULL. Borrowed until the next call that adds.
const td_config_profile_service *
td_cli_profile_draft_size(const td_cli_profile_draft *draft, int64_t batch);
const td_config_profile_rate *
td_cli_profile_draft_rate(const td_cli_profile_draft *draft, int64_t batch,
                          double percent);

// Adds what is not kept yet. Blocks on the file. IO.
TD_NODISCARD td_err td_cli_profile_draft_add_size(
    td_cli_profile_draft *draft, const td_config_profile_service *size,
    double noise, td_errinfo *info);
TD_NODISCARD td_err td_cli_profile_draft_add_rate(
    td_cli_profile_draft *draft, const td_config_profile_rate *rate,
    td_errinfo *info);

// Writes OUT; the part goes. IO.
TD_NODISCARD td_err td_cli_profile_draft_finish(td_cli_profile_draft *draft,
                                                td_errinfo *info);

#endif
