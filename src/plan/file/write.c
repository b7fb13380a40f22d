// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.h"

#include "base/json/json.h"
#include "plan/file/file.h"

static void write_field(td_json *json, const td_plan_file_field *field,
                        const void *from)
{
    const void *at = (const char *)from + field->offset;
    const uint32_t *whole = at;
    switch (field->kind) {
    case TD_PLAN_FILE_TEXT:
        td_json_text(json, field->name, *(const char *const *)at);
        break;
    case TD_PLAN_FILE_BOOL:
        td_json_bool(json, field->name, *(const bool *)at);
        break;
    case TD_PLAN_FILE_WHOLE:
        td_json_whole(json, field->name, *whole);
        break;
    case TD_PLAN_FILE_INDEX:
        if (*whole == TD_PLAN_NONE)
            td_json_text(json, field->name, NULL);
        else
            td_json_whole(json, field->name, *whole);
        break;
    case TD_PLAN_FILE_NUMBER:
    case TD_PLAN_FILE_ADDED:
        td_json_number(json, field->name, *(const double *)at);
        break;
    case TD_PLAN_FILE_CHOICE:
        td_json_text(json, field->name, field->choices[*(const unsigned *)at]);
        break;
    }
}

static void write_fields(td_json *json, const td_plan_file_field *fields,
                         const void *from)
{
    for (; fields->name; fields++)
        write_field(json, fields, from);
}

static const char *server_id(const td_plan *plan, uint32_t index)
{
    return index == TD_PLAN_NONE ? NULL : plan->servers[index].id;
}

static void write_robot(td_json *json, const td_plan *plan,
                        const td_plan_robot *robot)
{
    td_json_object(json, NULL);
    write_fields(json, td_plan_file_robot, robot);
    td_json_text(json, "task", plan->classes[robot->task].task);
    td_json_array(json, "streams");
    for (uint32_t i = 0; i < robot->stream_count; i++) {
        const td_plan_stream *stream = &plan->streams[robot->first_stream + i];
        td_json_object(json, NULL);
        td_json_text(json, "server", server_id(plan, stream->server));
        td_json_text(json, "standby", server_id(plan, stream->standby));
        write_fields(json, td_plan_file_stream, stream);
        td_json_end_object(json);
    }
    td_json_end_array(json);
    td_json_end_object(json);
}

static void write_list(td_json *json, const char *name,
                       const td_plan_file_field *fields, const void *from,
                       size_t count, size_t bytes)
{
    td_json_array(json, name);
    for (size_t i = 0; i < count; i++) {
        td_json_object(json, NULL);
        write_fields(json, fields, (const char *)from + i * bytes);
        td_json_end_object(json);
    }
    td_json_end_array(json);
}

td_err td_plan_write(const td_plan *plan, FILE *out)
{
    td_json json;
    td_json_init(&json, out);
    td_json_object(&json, NULL);
    td_json_whole(&json, "plan", TD_PLAN_FILE_VERSION);
    write_fields(&json, td_plan_file_plan, plan);
    write_list(&json, "servers", td_plan_file_server, plan->servers,
               plan->server_count, sizeof *plan->servers);
    write_list(&json, "classes", td_plan_file_class, plan->classes,
               plan->class_count, sizeof *plan->classes);
    td_json_array(&json, "robots");
    for (size_t i = 0; i < plan->robot_count; i++)
        write_robot(&json, plan, &plan->robots[i]);
    td_json_end_array(&json);
    td_json_end_object(&json);
    (void)fputc('\n', out);
    return fflush(out) == 0 && !ferror(out) ? TD_OK : TD_ERR_IO;
}
