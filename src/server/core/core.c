// SPDX-License-Identifier: Apache-2.0
#include "server/core/internal.h"

#include <stdlib.h>

const td_server_allowance td_server_allowance_defaults = {
    .budget_ns = 50000000,
    .most_urgency = 1,
};

const char *td_server_outcome_name(td_server_outcome outcome)
{
    static const char *const names[] = {
#define TD_SERVER_OUTCOME_NAME(name, text) text,
        TD_SERVER_OUTCOMES(TD_SERVER_OUTCOME_NAME)
#undef TD_SERVER_OUTCOME_NAME
    };
    return names[outcome];
}

td_err td_server_core_new(const td_server_settings *settings,
                          const td_server_core_model *model,
                          td_server_core **ret_core)
{
    TD_AUTO(td_server_core) *core = calloc(1, sizeof *core);
    if (!core) return TD_ERR_NOMEM;
    core->settings = *settings;
    core->model = *model;
    core->spec = model->spec;
    core->sched = td_server_dispatch_sched(model->dispatch);
    TD_TRY(td_sched_cadence_new(&model->cadence, settings->capacity,
                                &core->cadence));
    if (model->prefix_bytes > 0)
        TD_TRY(td_sched_prefixes_new(settings->capacity, model->prefix_bytes,
                                     model->prefix_age_ns, &core->prefixes));
    core->clients = calloc(settings->capacity, sizeof *core->clients);
    if (!core->clients) return TD_ERR_NOMEM;
    *ret_core = TD_TAKE(core);
    return TD_OK;
}

void td_server_core_free(td_server_core *core)
{
    if (core->cadence) td_sched_cadence_free(core->cadence);
    if (core->prefixes) td_sched_prefixes_free(core->prefixes);
    free(core->clients);
    free(core);
}

td_err td_server_core_pace(td_server_core *core,
                           const td_sched_cadence_settings *cadence)
{
    return td_sched_cadence_use(core->cadence, cadence);
}

void td_server_core_set_state(td_server_core *core, td_wire_server_state state)
{
    core->state = state;
}

td_wire_server_state td_server_core_state(const td_server_core *core)
{
    return core->state;
}

uint64_t td_server_core_depth(const td_server_core *core)
{
    return core->counts.outcomes[TD_SERVER_WAITING];
}

uint32_t td_server_core_clients(const td_server_core *core)
{
    return core->client_count;
}

void td_server_core_counts(const td_server_core *core,
                           td_server_counts *ret_counts)
{
    *ret_counts = core->counts;
    if (core->prefixes)
        td_sched_prefixes_count(core->prefixes, &ret_counts->prefixes);
}
