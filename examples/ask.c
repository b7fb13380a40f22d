// SPDX-License-Identifier: Apache-2.0
// Asks a model some times, with the state that is given, and says what came.
// cc ask.c $(pkg-config --cflags --libs tendon) && ./a.out 3 0 0.1 0.2 0 0 0
// The server it asks, and under which name, is in the environment:
// TENDON_SERVER, TENDON_CLUSTER, TENDON_EXPERIMENT, TENDON_CLIENT_ID,
// TENDON_MODEL, TENDON_VERSION, TENDON_APPLICATION.
#include <stdio.h>
#include <stdlib.h>
#include <tendon/connect.h>

static void show(const td_model_result *result)
{
    printf("%llu %s", (unsigned long long)result->seq,
           td_model_outcome_name(result->outcome));
    if (result->outcome == TD_MODEL_ANSWERED)
        printf(": %u actions from %s in %.3f ms", result->actions.shape[0],
               result->server, (double)result->round_trip_us / 1000);
    else
        printf(": %s: %s", td_err_name(result->error), result->error_text);
    for (uint32_t i = 0; i < result->result_count; i++)
        printf(", %s of %zu bytes", result->results[i].name,
               result->results[i].bytes);
    for (uint32_t i = 0; i < result->superseded_count; i++)
        printf(", instead of %llu", (unsigned long long)result->superseded[i]);
    puts("");
    (void)fflush(stdout);
}

static td_err ask(td_model *model, const td_model_observation *seen, int times,
                  td_errinfo *info)
{
    td_err err = TD_OK;
    for (int i = 0; i < times && err == TD_OK; i++) {
        td_model_result *result = NULL;
        uint64_t seq;
        err = td_model_observe(model, seen, &seq, info);
        if (err == TD_OK) err = td_model_get_result(model, -1, &result);
        if (!result) continue;
        show(result);
        td_model_result_free(result);
    }
    return err;
}

int main(int argc, char **argv)
{
    td_connection_settings to = {.size = sizeof to};
    td_model_settings what = {.size = sizeof what};
    td_model_observation seen = {.size = sizeof seen, .urgency = 0.8f};
    td_connection *connection = NULL;
    td_model *model = NULL;
    td_errinfo info = {""};
    float state[256];
    int times = argc > 1 ? atoi(argv[1]) : 1;
    for (int i = 2; i < argc && i < 258; i++)
        state[seen.state.shape[0]++] = strtof(argv[i], NULL);
    seen.state.rank = 1, seen.state.data = state;
    td_err err = td_connection_open(&to, &connection, &info);
    if (!err) err = td_connection_model(connection, &what, &model, &info);
    if (!err) err = ask(model, &seen, times, &info);
    if (err != TD_OK) fprintf(stderr, "ask: %s\n", info.text);
    if (model) td_model_close(model);
    if (connection) td_connection_close(connection);
    return err != TD_OK;
}
