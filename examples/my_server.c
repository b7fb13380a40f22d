// SPDX-License-Identifier: Apache-2.0
// Your own model behind a server: put it into this function.
// cc my_server.c $(pkg-config --cflags --libs tendon) && ./a.out my_server.yaml
#include <signal.h>
#include <stdio.h>
#include <tendon/server.h>

static td_server *server;

// A batch of observations; each gets rows of actions: hold where you are.
static td_err infer(void *model, td_infer_request *const *requests,
                    uint32_t count, td_errinfo *info)
{
    (void)model;
    for (uint32_t i = 0; i < count; i++) {
        td_infer_request *one = requests[i];
        if (one->state_count < one->action_count)
            return td_fail(info, TD_ERR_MISMATCH, "more actions than states");
        for (uint32_t j = 0; j < one->chunk_rows * one->action_count; j++)
            one->actions[j] = one->state[j % one->action_count];
    }
    return TD_OK;
}

// Who goes first: whoever runs dry next.
static double score(void *model, const td_score_request *request)
{
    (void)model;
    return -request->slack_ms;
}

static void on_event(void *model, const td_server_event *event)
{
    (void)model;
    fprintf(stderr, "%s: %s %s\n", event->kind, event->client, event->text);
}

static void on_signal(int number)
{
    if (number == SIGINT) td_server_stop(server);
}

int main(int argc, char **argv)
{
    td_errinfo info = {""};
    td_err err = td_server_open(argv[argc - 1], &server, &info);
    if (err == TD_OK)
        err = td_server_use_model(server, "my-policy", infer, NULL, &info);
    if (err == TD_OK)
        err = td_server_use_scheduling(server, NULL, score, NULL, &info);
    if (err == TD_OK) err = td_server_on_event(server, on_event, NULL);
    if (err == TD_OK && signal(SIGINT, on_signal) != SIG_ERR)
        err = td_server_start(server, &info);
    if (err == TD_OK && td_server_wait(server, -1))
        err = td_server_drain(server, 5000, &info);
    if (err != TD_OK) fprintf(stderr, "my_server: %s\n", info.text);
    if (server) td_server_close(server);
    return err != TD_OK;
}
