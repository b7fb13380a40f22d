// SPDX-License-Identifier: Apache-2.0
#include "config/factory/factory.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// What is taken has its promised form.
static void check_task(const td_config_factory_task *task)
{
    if (task->robot_count == 0 || task->component_count == 0) abort();
    for (size_t i = 0; i < task->component_count; i++) {
        const td_config_factory_component *it = &task->components[i];
        if ((it->role == TD_CONFIG_SYSTEM1) != (i == 0)) abort();
        if ((it->per_action > 0) == (it->rate_hz > 0)) abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    TD_AUTO(td_config_factory) *factory = NULL;
    td_errinfo info = {""};
    if (td_config_factory_parse("fuzz.yaml", data, size, &factory, &info) !=
        TD_OK)
        return 0;
    if (factory->server_cluster.node_count == 0) abort();
    for (size_t i = 0; i < factory->task_count; i++)
        check_task(&factory->tasks[i]);
    for (size_t i = 0; i < factory->robot_count; i++)
        if (factory->robots[i].task >= factory->task_count ||
            !factory->robots[i].name[0] || !factory->robots[i].key[0])
            abort();
    return 0;
}
