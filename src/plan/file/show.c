// SPDX-License-Identifier: Apache-2.0
#include "plan/file/show.h"

#include "plan/admit/what_if.h"

#include <math.h>
#include <string.h>

static int longest(int most, const char *text)
{
    int size = (int)strlen(text);
    return size > most ? size : most;
}

uint32_t td_plan_users(const td_plan *plan, uint32_t server, uint32_t task)
{
    uint32_t count = 0;
    uint32_t last = TD_PLAN_NONE;
    for (size_t i = 0; i < plan->stream_count; i++) {
        const td_plan_stream *stream = &plan->streams[i];
        if (stream->server != server || stream->robot == last ||
            plan->robots[stream->robot].task != task)
            continue;
        last = stream->robot;
        count++;
    }
    return count;
}

static const char *bound_name(const td_plan *plan, uint32_t task)
{
    for (size_t i = 0; i < plan->stream_count; i++)
        if (plan->robots[plan->streams[i].robot].task == task &&
            plan->streams[i].component == plan->classes[task].bound)
            return plan->streams[i].name;
    return NULL;
}

static void show_rate(double rate_hz, FILE *out)
{
    if (rate_hz > 0)
        (void)fprintf(out, "  %9.3f", rate_hz);
    else
        (void)fprintf(out, "  %9s", "-");
}

static void show_class(const td_plan *plan, uint32_t index, int width,
                       FILE *out)
{
    const td_plan_class *class = &plan->classes[index];
    const char *component = bound_name(plan, index);
    (void)fprintf(out, "%-*s  %6u", width, class->task, class->robots);
    show_rate(class->rate_hz, out);
    show_rate(class->rate_hz * class->robots, out);
    show_rate(class->loop_hz, out);
    (void)fprintf(out, "  %s", td_plan_bind_text(class->binds));
    if (component) (void)fprintf(out, " (%s)", component);
    if (class->refused)
        (void)fprintf(out, "; %u robots are refused for want of GPUs",
                      class->refused);
    (void)fputc('\n', out);
}

static void show_classes(const td_plan *plan, FILE *out)
{
    int width = 4;
    for (size_t i = 0; i < plan->class_count; i++)
        width = longest(width, plan->classes[i].task);
    (void)fprintf(out, "%-*s  %6s  %9s  %9s  %9s  %s\n", width, "task",
                  "robots", "actions/s", "of all", "loop", "bound by");
    for (uint32_t i = 0; i < plan->class_count; i++)
        show_class(plan, i, width, out);
}

static void show_users(const td_plan *plan, uint32_t server, FILE *out)
{
    const char *before = "  ";
    for (uint32_t i = 0; i < plan->class_count; i++) {
        uint32_t users = td_plan_users(plan, server, i);
        if (users == 0) continue;
        (void)fprintf(out, "%s%u %s", before, users, plan->classes[i].task);
        before = ", ";
    }
}

// How long a batch that is not full waits.
static void show_wait(const td_plan_server *server, FILE *out)
{
    if (server->wait == TD_CONFIG_WAIT_FIXED)
        (void)fprintf(out, "  %3.0f ms", server->wait_ms);
    else
        (void)fprintf(out, "  %6s",
                      server->wait == TD_CONFIG_WAIT_FULL ? "full" : "-");
}

static void show_server(const td_plan *plan, uint32_t index, int id_width,
                        int model_width, FILE *out)
{
    const td_plan_server *server = &plan->servers[index];
    (void)fprintf(out, "%-*s  %-*s", id_width, server->id, model_width,
                  server->model);
    if (server->standby) {
        (void)fprintf(out, "  standby\n");
        return;
    }
    (void)fprintf(out, "  %5u", server->batch_most);
    show_wait(server, out);
    show_rate(server->rate_hz, out);
    show_rate(server->capacity_hz, out);
    if (server->rate_hz > 0 && server->capacity_hz > 0)
        (void)fprintf(out, "  %4.0f %%",
                      100 * (1 - server->rate_hz / server->capacity_hz));
    else
        (void)fprintf(out, "  %6s", "-");
    show_users(plan, index, out);
    (void)fputc('\n', out);
}

static void show_servers(const td_plan *plan, FILE *out)
{
    int id_width = 3;
    int model_width = 5;
    for (size_t i = 0; i < plan->server_count; i++) {
        id_width = longest(id_width, plan->servers[i].id);
        model_width = longest(model_width, plan->servers[i].model);
    }
    (void)fprintf(out, "%-*s  %-*s  %5s  %6s  %9s  %9s  %6s  %s\n", id_width,
                  "GPU", model_width, "model", "batch", "waits", "asked/s",
                  "can/s", "left", "robots");
    for (uint32_t i = 0; i < plan->server_count; i++)
        show_server(plan, i, id_width, model_width, out);
}

void td_plan_show(const td_plan *plan, FILE *out)
{
    (void)fprintf(out, "%s: %zu robots on %u of %u GPUs",
                  td_plan_planner_name(plan->planner), plan->robot_count,
                  plan->gpus_used, plan->gpus);
    if (plan->gpus_standby)
        (void)fprintf(out, ", %u in reserve", plan->gpus_standby);
    if (plan->actions_hz > 0)
        (void)fprintf(out, ": %.1f actions a second", plan->actions_hz);
    if (fabs(plan->value_hz - plan->actions_hz) > 1e-9 * plan->actions_hz)
        (void)fprintf(out, ", %.1f weighted", plan->value_hz);
    (void)fputs("\n\n", out);
    show_classes(plan, out);
    (void)fputc('\n', out);
    show_servers(plan, out);
}

// The same factory with another number of robots or GPUs.
static td_err explain_change(const td_config_factory *factory,
                             const td_config_profiles *profiles,
                             const td_plan_options *options,
                             const td_plan *plan, uint32_t robots,
                             uint32_t gpus, const char *what, FILE *out)
{
    TD_AUTO(td_arena) *arena = NULL;
    TD_AUTO(td_plan) *other = NULL;
    td_config_factory *changed;
    td_errinfo info = {.text = ""};
    TD_TRY(td_arena_new(&arena));
    td_err err = td_plan_what_if(factory, robots, gpus, arena, &changed, &info);
    if (err == TD_OK)
        err = td_plan_make(changed, profiles, options, &other, &info);
    if (err == TD_ERR_NOMEM) return err;
    if (err != TD_OK)
        (void)fprintf(out, "%s: not possible: %s\n", what, info.text);
    else
        (void)fprintf(out, "%s: %.1f weighted actions a second, %+.1f %%\n",
                      what, other->value_hz,
                      100 * (other->value_hz / plan->value_hz - 1));
    return TD_OK;
}

static void explain_class(const td_plan *plan, uint32_t index, FILE *out)
{
    const td_plan_class *class = &plan->classes[index];
    const char *component = bound_name(plan, index);
    (void)fprintf(out, "%s: bound by %s", class->task,
                  td_plan_bind_text(class->binds));
    if (component) (void)fprintf(out, ", first of all for %s", component);
    (void)fprintf(out,
                  "; at %.3f actions a second of each robot it no longer "
                  "holds\n",
                  class->most_hz);
}

td_err td_plan_explain(const td_config_factory *factory,
                       const td_config_profiles *profiles,
                       const td_plan_options *options, const td_plan *plan,
                       FILE *out)
{
    uint32_t robots = (uint32_t)factory->robot_count;
    uint32_t gpus = (uint32_t)factory->server_cluster.num_servers;
    for (uint32_t i = 0; i < plan->class_count; i++)
        explain_class(plan, i, out);
    if (!options->capped) return TD_OK;
    TD_TRY(explain_change(factory, profiles, options, plan, 0, gpus + 1,
                          "one GPU more", out));
    if (gpus > 1)
        TD_TRY(explain_change(factory, profiles, options, plan, 0, gpus - 1,
                              "one GPU less", out));
    return explain_change(factory, profiles, options, plan, robots + 1, 0,
                          "one robot more", out);
}
