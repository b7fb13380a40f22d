// SPDX-License-Identifier: Apache-2.0
// Reads one task of a factory: its pipeline, its components, and what happens
// when a deadline is missed.
//
// Components refer to each other. System 2 is asked every so many actions,
// others at a rate, after an action, or after another component; which of
// `every` and `freq_hz` a component may have follows from how it is asked, and
// the wrong one is refused. fill_rates() resolves what is asked after what:
// each round gets one link further, so that whatever has no rate after as many
// rounds as there are components goes round in a circle.
//
// System 1 is put first in the list, since everybody looks for it first; a task
// without it is refused.
//
// An error names the component and the field at the line where it stands.
#include "config/factory/task.h"

#include <math.h>
#include <string.h>

#define MAX_MS 600000
#define MAX_HZ 1000

static const char *const fallbacks[] = {
    "stop_and_resend",      "stop_and_replan", "use_last_plan",       "stop",
    "return_to_safe_state", "retry_task",      "stop_and_call_human", NULL};
static const char *const invokes[] = {"auto",     "action",    "every",
                                      "periodic", "on_change", NULL};
static const char *const executions[] = {"sync", "async", NULL};
static const char *const misses[] = {"fallback", "count", NULL};
static const char *const roles[] = {"system1", "system2", "safety", "monitor",
                                    NULL};

static td_err check_task(const td_config_location *location,
                         const td_config_node *node, void *value);

static const td_config_field component_rows[] = {
    TD_ROW_TEXT(td_config_factory_component, model, NULL, 1, 256,
                "the model; a profile of the same name says how fast it is"),
    TD_ROW_TEXT(td_config_factory_component, engine, "\"\"", 0, 64,
                "of which engine that profile is; empty: of any"),
    TD_ROW_TEXT(td_config_factory_component, prompt, "\"\"", 0, 8192,
                "the prompt that the model gets"),
    TD_ROW_NUMBER(td_config_factory_component, slo_ms, NULL, 1, MAX_MS,
                  "the deadline of an answer, on the robot's clock"),
    TD_ROW_NUMBER(td_config_factory_component, slo_percentile, "0", 0, 99.999,
                  "how many of a hundred answers must meet it; 0: as the "
                  "task's"),
    TD_ROW_NUMBER(td_config_factory_component, freq_hz, "0", 0, MAX_HZ,
                  "how often it is asked (periodic), or at most (on_change)"),
    TD_ROW_ENUM(td_config_factory_component, invoke, "auto", invokes,
                "when it is asked: for each action, once for every so many "
                "calls of another, so often a second, when the scene changes; "
                "auto: as its name and its other fields say"),
    TD_ROW_INTEGER(td_config_factory_component, every, "0", 0, 1000000,
                   "how many calls of the other component (every)"),
    TD_ROW_TEXT(td_config_factory_component, of, "system1", 1, 64,
                "that other component (every)"),
    TD_ROW_ENUM(td_config_factory_component, fallback, "stop_and_resend",
                fallbacks,
                "what the robot does when an answer is late, or unsafe"),
};
static const td_config_table component_table = {
    component_rows, TD_COUNT_OF(component_rows),
    sizeof(td_config_factory_component), NULL};

static const td_config_field pipeline_rows[] = {
    TD_ROW_NUMBER(td_config_factory_pipeline, action_period_ms, NULL, 1, MAX_MS,
                  "how long an action takes"),
    TD_ROW_NUMBER(td_config_factory_pipeline, system2_to_system1_call_ratio,
                  "0", 0, 1,
                  "calls of system2 for each of system1: 1 is every time, 0.1 "
                  "once in 10; 0: every time, if there is a system2"),
};
static const td_config_table pipeline_table = {
    pipeline_rows, TD_COUNT_OF(pipeline_rows),
    sizeof(td_config_factory_pipeline), NULL};

static const td_config_field retry_rows[] = {
    TD_ROW_INTEGER(td_config_factory_retry, max_task_retries, "3", 0, 1000000,
                   "how often in a row a task that failed is begun again"),
    TD_ROW_ENUM(td_config_factory_retry, on_max_task_retries,
                "stop_and_call_human", fallbacks, "what comes after that"),
};
static const td_config_table retry_table = {
    retry_rows, TD_COUNT_OF(retry_rows), sizeof(td_config_factory_retry), NULL};

static const td_config_field violation_rows[] = {
    TD_ROW_INTEGER(td_config_factory_violation, max_consecutive_safety_replan,
                   "10", 0, 1000000,
                   "warnings of the safety model in a row that are answered "
                   "by its fallback; one more is too many"),
    TD_ROW_INTEGER(td_config_factory_violation, max_consecutive_slo_violation,
                   "3", 0, 1000000,
                   "late answers of one component in a row that are too many; "
                   "fewer are answered by its fallback"),
    TD_ROW_ENUM(td_config_factory_violation, on_max_violation,
                "stop_and_call_human", fallbacks,
                "what comes when either is too many"),
};
static const td_config_table violation_table = {
    violation_rows, TD_COUNT_OF(violation_rows),
    sizeof(td_config_factory_violation), NULL};

static const td_config_field task_rows[] = {
    TD_ROW_STRUCT(td_config_factory_task, pipeline, td_config_factory_pipeline,
                  NULL, pipeline_table, "how its actions follow each other"),
    TD_ROW_STRUCT(td_config_factory_task, task_retry, td_config_factory_retry,
                  "{}", retry_table, "when its monitor says that it failed"),
    TD_ROW_STRUCT(td_config_factory_task, safety_and_slo_violation,
                  td_config_factory_violation, "{}", violation_table,
                  "when it is unsafe, or answers are late"),
    TD_ROW_NUMBER(td_config_factory_task, value, "1", 0.000001, 1000000,
                  "what one action is worth"),
    TD_ROW_NUMBER(td_config_factory_task, min_throughput, "0", 0, 1000000,
                  "actions a second that all its robots together must reach"),
    TD_ROW_NUMBER(td_config_factory_task, slo_percentile, "99", 1, 99.999,
                  "how many of a hundred answers must meet their deadlines"),
    TD_ROW_ENUM(td_config_factory_task, execution, "sync", executions,
                "whether a robot stands still while system1 thinks, or acts "
                "on while it does"),
    TD_ROW_ENUM(td_config_factory_task, on_miss, "fallback", misses,
                "what a late answer leads to; count: nothing but its count, "
                "as in a replay"),
    TD_ROW_MAP(td_config_factory_task, components, component_count,
               td_config_factory_component, NULL, component_table, 1,
               TD_CONFIG_MAX_COMPONENTS,
               "the models it needs: system1, and any of system2, safety, "
               "monitor and others"),
};
const td_config_table td_config_task_table = {task_rows, TD_COUNT_OF(task_rows),
                                              sizeof(td_config_factory_task),
                                              check_task};

// A component of the file: where it stands and what it has become.
typedef struct part {
    const td_config_location *location; // of the task
    const td_config_node *node;
    td_config_factory_component *it;
} part;

static td_err bad(const part *at, const char *field, const char *fmt, ...)
    TD_PRINTF(3, 4);

static td_err bad(const part *at, const char *field, const char *fmt, ...)
{
    char name[192], what[256];
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    (void)snprintf(name, sizeof name, "components.%s.%s", at->it->name, field);
    const td_config_node *node = td_config_node_get(at->node, field);
    return td_config_location_fail(at->location, node ? node : at->node, name,
                                   "%s", what);
}

static td_config_role role_of(const char *name)
{
    size_t i = 0;
    while (roles[i] && strcmp(roles[i], name) != 0)
        i++;
    return (td_config_role)i;
}

static td_config_invoke auto_invoke(const td_config_factory_component *it)
{
    if (it->role == TD_CONFIG_SYSTEM1) return TD_CONFIG_INVOKE_ACTION;
    if (it->every > 0) return TD_CONFIG_INVOKE_EVERY;
    if (it->freq_hz > 0) return TD_CONFIG_INVOKE_PERIODIC;
    if (it->role == TD_CONFIG_SYSTEM2) return TD_CONFIG_INVOKE_EVERY;
    return TD_CONFIG_INVOKE_AUTO;
}

// One of `freq_hz` and `every` belongs to each way to ask; the other must not
// be there.
static td_err check_invoke(const part *at)
{
    const td_config_factory_component *it = at->it;
    bool timed = it->invoke == TD_CONFIG_INVOKE_PERIODIC ||
                 it->invoke == TD_CONFIG_INVOKE_ON_CHANGE;
    bool counted = it->invoke == TD_CONFIG_INVOKE_EVERY;
    if (it->invoke == TD_CONFIG_INVOKE_AUTO)
        return bad(at, "freq_hz",
                   "is missing, how often a second it is asked; or every, "
                   "once for so many calls of system1");
    if ((it->role == TD_CONFIG_SYSTEM1) !=
        (it->invoke == TD_CONFIG_INVOKE_ACTION))
        return bad(at, "invoke",
                   "action is for system1, and system1 for each action");
    if (timed != (it->freq_hz > 0))
        return bad(at, "freq_hz",
                   timed ? "must be above 0 for invoke: %s, got 0"
                         : "is not for invoke: %s, leave it out",
                   invokes[it->invoke]);
    if (!counted && it->every > 0)
        return bad(at, "every", "is for invoke: every, not for %s",
                   invokes[it->invoke]);
    return TD_OK;
}

// System 2 takes the pipeline's ratio for its `every` unless it says its own.
static td_err fill_every(const part *at, const td_config_factory_task *task)
{
    td_config_factory_component *it = at->it;
    double ratio = task->pipeline.system2_to_system1_call_ratio;
    if (it->invoke != TD_CONFIG_INVOKE_EVERY) return TD_OK;
    if (it->role == TD_CONFIG_SYSTEM2 && it->every == 0)
        it->every = ratio > 0 ? llround(1 / ratio) : 1;
    if (it->every == 0)
        return bad(at, "every", "must be above 0 for invoke: every, got 0");
    return TD_OK;
}

static td_err fill_component(const part *at, const td_config_factory_task *task)
{
    td_config_factory_component *it = at->it;
    it->role = role_of(it->name);
    if (it->slo_percentile == 0) it->slo_percentile = task->slo_percentile;
    if (it->slo_percentile < 1)
        return bad(at, "slo_percentile", "must be 0 or 1 to 99.999, got %g",
                   it->slo_percentile);
    if (it->invoke == TD_CONFIG_INVOKE_AUTO) it->invoke = auto_invoke(it);
    TD_TRY(check_invoke(at));
    return fill_every(at, task);
}

static bool has_rate(const td_config_factory_component *it)
{
    return it->per_action > 0 || it->rate_hz > 0;
}

static td_err fill_rate(const part *at, const td_config_factory_task *task)
{
    td_config_factory_component *it = at->it;
    if (it->invoke == TD_CONFIG_INVOKE_ACTION) {
        it->per_action = 1;
    } else if (it->invoke != TD_CONFIG_INVOKE_EVERY) {
        it->rate_hz = it->freq_hz;
    } else {
        const td_config_factory_component *of =
            td_config_factory_find(task, it->of);
        if (!of)
            return bad(at, "of", "the task has no component \"%s\"", it->of);
        it->per_action = of->per_action / (double)it->every;
        it->rate_hz = of->rate_hz / (double)it->every;
    }
    return TD_OK;
}

static const td_config_node *node_of(const td_config_node *task,
                                     const char *name)
{
    return td_config_node_get(td_config_node_get(task, "components"), name);
}

typedef td_err (*step)(const part *at, const td_config_factory_task *task);

static td_err each(const td_config_location *location,
                   const td_config_node *node,
                   const td_config_factory_task *task, step run)
{
    for (size_t i = 0; i < task->component_count; i++) {
        td_config_factory_component *it = &task->components[i];
        const part at = {location, node_of(node, it->name), it};
        TD_TRY(run(&at, task));
    }
    return TD_OK;
}

static td_err check_rate(const part *at, const td_config_factory_task *task)
{
    (void)task;
    return has_rate(at->it)
               ? TD_OK
               : bad(at, "of", "goes round in a circle, end it at system1");
}

// What is asked after another is known once that one is: each round gets one
// link further.
static td_err fill_rates(const td_config_location *location,
                         const td_config_node *node,
                         const td_config_factory_task *task)
{
    for (size_t i = 0; i < task->component_count; i++)
        TD_TRY(each(location, node, task, fill_rate));
    return each(location, node, task, check_rate);
}

static td_err check_ratio(const td_config_location *location,
                          const td_config_node *node,
                          const td_config_factory_task *task)
{
    static const char field[] = "pipeline.system2_to_system1_call_ratio";
    const td_config_node *at = td_config_node_get(
        td_config_node_get(node, "pipeline"), "system2_to_system1_call_ratio");
    double ratio = task->pipeline.system2_to_system1_call_ratio;
    const td_config_factory_component *system2 =
        td_config_factory_find(task, "system2");
    if (ratio == 0) return TD_OK;
    if (!system2)
        return td_config_location_fail(location, at, field,
                                       "the task has no system2, leave it out");
    if (system2->freq_hz > 0 || system2->every > 0)
        return td_config_location_fail(
            location, at, field,
            "system2 says itself when it is asked, leave one "
            "of them out");
    double calls = round(1 / ratio);
    if (fabs(1 / ratio - calls) <= 0.01 * calls) return TD_OK;
    return td_config_location_fail(
        location, at, field,
        "must be 1 / n, such as 0.1 for once in 10 calls, "
        "got %g",
        ratio);
}

// Everybody looks for it first.
static td_err put_system1_first(const td_config_location *location,
                                const td_config_node *node,
                                td_config_factory_task *task)
{
    const td_config_factory_component *system1 =
        td_config_factory_find(task, "system1");
    if (!system1)
        return td_config_location_fail(
            location, td_config_node_get(node, "components"), "components",
            "system1 is missing, the model that acts");
    td_config_factory_component first = *system1;
    memmove(task->components + 1, task->components,
            (size_t)(system1 - task->components) * sizeof first);
    task->components[0] = first;
    return TD_OK;
}

static td_err check_task(const td_config_location *location,
                         const td_config_node *node, void *value)
{
    td_config_factory_task *task = value;
    TD_TRY(put_system1_first(location, node, task));
    TD_TRY(check_ratio(location, node, task));
    TD_TRY(each(location, node, task, fill_component));
    return fill_rates(location, node, task);
}

const char *td_config_fallback_name(td_config_fallback fallback)
{
    return fallbacks[fallback];
}
