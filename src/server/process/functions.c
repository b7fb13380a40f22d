// SPDX-License-Identifier: Apache-2.0
#include "server/process/process.h"

#include <string.h>

const td_server_engine_function *
td_server_functions_find(const td_server_extras *extras, const char *model_id)
{
    for (size_t i = 0; i < extras->function_count; i++)
        if (strcmp(extras->functions[i].model_id, model_id) == 0)
            return &extras->functions[i].function;
    return NULL;
}

td_err td_server_functions_check(const td_config_manifest *manifest,
                                 const td_server_extras *extras,
                                 td_errinfo *info)
{
    for (size_t i = 0; i < manifest->model_count; i++) {
        const td_config_model *model = &manifest->models[i];
        if (model->engine.kind != TD_CONFIG_CALLBACK ||
            td_server_functions_find(extras, model->model_id))
            continue;
        return td_fail(
            info, TD_ERR_INVALID,
            "server %s: engine.kind: callback runs a function of the "
            "program that serves it (tendon/server.h), and there is "
            "none for model %s",
            model->server_id, model->model_id);
    }
    return TD_OK;
}
