// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.h"

#include "base/json.h"

static const char *server_id(const td_plan *plan, uint32_t index)
{
    return index == TD_PLAN_NONE ? NULL : plan->servers[index].id;
}

static void write_server(td_json *json, const td_plan_server *server)
{
    td_json_object(json, NULL);
    td_json_text(json, "id", server->id);
    td_json_text(json, "node", server->node);
    td_json_whole(json, "gpu", server->gpu);
    td_json_text(json, "gpu_type", server->gpu_type);
    td_json_text(json, "model", server->model);
    td_json_text(json, "engine", server->engine);
    td_json_bool(json, "standby", server->standby);
    td_json_whole(json, "batch_most", server->batch_most);
    td_json_text(json, "batch_wait", td_config_waits[server->wait]);
    td_json_number(json, "rate_hz", server->rate_hz);
    td_json_number(json, "capacity_hz", server->capacity_hz);
    td_json_number(json, "memory_gb", server->memory_gb);
    td_json_end_object(json);
}

static void write_class(td_json *json, const td_plan_class *class)
{
    td_json_object(json, NULL);
    td_json_text(json, "task", class->task);
    td_json_whole(json, "robots", class->robots);
    td_json_whole(json, "refused", class->refused);
    td_json_number(json, "rate_hz", class->rate_hz);
    td_json_number(json, "loop_hz", class->loop_hz);
    td_json_number(json, "value", class->value);
    td_json_text(json, "bound_by", td_plan_bind_text(class->binds));
    td_json_end_object(json);
}

static void write_stream(td_json *json, const td_plan *plan,
                         const td_plan_stream *stream)
{
    td_json_object(json, NULL);
    td_json_text(json, "component", stream->name);
    td_json_text(json, "server", server_id(plan, stream->server));
    td_json_text(json, "standby", server_id(plan, stream->standby));
    td_json_number(json, "rate_hz", stream->rate_hz);
    td_json_whole(json, "every", stream->every);
    td_json_number(json, "phase", stream->phase);
    td_json_number(json, "deadline_ms", stream->deadline_ms);
    td_json_number(json, "mean_ms", stream->mean_ms);
    td_json_number(json, "tail_ms", stream->tail_ms);
    td_json_end_object(json);
}

static void write_robot(td_json *json, const td_plan *plan,
                        const td_plan_robot *robot)
{
    td_json_object(json, NULL);
    td_json_text(json, "name", robot->name);
    td_json_text(json, "key", robot->key);
    td_json_text(json, "task", plan->classes[robot->task].task);
    td_json_array(json, "streams");
    for (uint32_t i = 0; i < robot->stream_count; i++)
        write_stream(json, plan, &plan->streams[robot->first_stream + i]);
    td_json_end_array(json);
    td_json_end_object(json);
}

td_err td_plan_write(const td_plan *plan, FILE *out)
{
    td_json json;
    td_json_init(&json, out);
    td_json_object(&json, NULL);
    td_json_whole(&json, "plan", 1);
    td_json_text(&json, "planner", td_plan_planner_name(plan->planner));
    td_json_number(&json, "actions_hz", plan->actions_hz);
    td_json_number(&json, "value_hz", plan->value_hz);
    td_json_whole(&json, "gpus", plan->gpus);
    td_json_whole(&json, "gpus_used", plan->gpus_used);
    td_json_whole(&json, "gpus_standby", plan->gpus_standby);
    td_json_array(&json, "servers");
    for (size_t i = 0; i < plan->server_count; i++)
        write_server(&json, &plan->servers[i]);
    td_json_end_array(&json);
    td_json_array(&json, "classes");
    for (size_t i = 0; i < plan->class_count; i++)
        write_class(&json, &plan->classes[i]);
    td_json_end_array(&json);
    td_json_array(&json, "robots");
    for (size_t i = 0; i < plan->robot_count; i++)
        write_robot(&json, plan, &plan->robots[i]);
    td_json_end_array(&json);
    td_json_end_object(&json);
    (void)fputc('\n', out);
    return fflush(out) == 0 && !ferror(out) ? TD_OK : TD_ERR_IO;
}
