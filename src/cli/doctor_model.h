// SPDX-License-Identifier: Apache-2.0
#ifndef TD_CLI_DOCTOR_MODEL_H
#define TD_CLI_DOCTOR_MODEL_H

// What `tendon doctor` says of a model of a manifest: where it runs, in which
// precision, and how long a chunk takes.

#include "config/factory/profile.h"
#include "config/manifest/model.h"

#define TD_CLI_DOCTOR_TEXT 640

typedef enum td_cli_doctor_verdict {
    TD_CLI_DOCTOR_FINE,
    TD_CLI_DOCTOR_WORSE,
    TD_CLI_DOCTOR_BROKEN,
} td_cli_doctor_verdict;

// Loads this model as `tendon serve` would, asks it for a second
// or two, and closes it. `profiles` is NULL, or says what to expect of it.
// Blocks.
td_cli_doctor_verdict td_cli_doctor_model(const td_config_model *model,
                                          const td_config_profiles *profiles,
                                          char ret_text[TD_CLI_DOCTOR_TEXT]);

#endif
