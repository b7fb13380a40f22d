// SPDX-License-Identifier: Apache-2.0
#include "plan/memory.h"

#include <stdlib.h>
#include <string.h>

// What the caller has is `plan`.
typedef struct owned {
    td_plan plan;
    td_arena *arena;
} owned;

td_err td_plan_new(td_plan **ret_plan, td_arena **ret_arena)
{
    owned *whole = calloc(1, sizeof *whole);
    if (!whole) return TD_ERR_NOMEM;
    td_err err = td_arena_new(&whole->arena);
    if (err != TD_OK) {
        free(whole);
        return err;
    }
    *ret_plan = &whole->plan;
    *ret_arena = whole->arena;
    return TD_OK;
}

void td_plan_free(td_plan *plan)
{
    owned *whole = (owned *)plan;
    td_arena_free(whole->arena);
    free(whole);
}

static bool copy_text(td_arena *arena, const char **text)
{
    *text = td_arena_copy(arena, *text, strlen(*text));
    return *text;
}

td_err td_plan_memory_copy_names(td_plan *plan, td_arena *arena)
{
    bool fine = true;
    for (size_t i = 0; i < plan->server_count; i++) {
        td_plan_server *server = &plan->servers[i];
        fine = fine && copy_text(arena, &server->id) &&
               copy_text(arena, &server->node) &&
               copy_text(arena, &server->model) &&
               copy_text(arena, &server->engine) &&
               copy_text(arena, &server->gpu_type);
    }
    for (size_t i = 0; i < plan->robot_count; i++)
        fine = fine && copy_text(arena, &plan->robots[i].name) &&
               copy_text(arena, &plan->robots[i].key);
    for (size_t i = 0; i < plan->stream_count; i++)
        fine = fine && copy_text(arena, &plan->streams[i].name);
    for (size_t i = 0; i < plan->class_count; i++)
        fine = fine && copy_text(arena, &plan->classes[i].task);
    return fine ? TD_OK : TD_ERR_NOMEM;
}

static void *duplicate(td_arena *arena, const void *from, size_t count,
                       size_t bytes)
{
    void *to = td_arena_alloc(arena, count + 1, bytes);
    if (to && count) memcpy(to, from, count * bytes);
    return to;
}

td_err td_plan_copy(const td_plan *plan, td_plan **ret_copy,
                    td_arena **ret_arena)
{
    TD_AUTO(td_plan) *copy = NULL;
    td_arena *arena;
    TD_TRY(td_plan_new(&copy, &arena));
    *copy = *plan;
    copy->servers = duplicate(arena, plan->servers, plan->server_count,
                              sizeof *plan->servers);
    copy->robots =
        duplicate(arena, plan->robots, plan->robot_count, sizeof *plan->robots);
    copy->streams = duplicate(arena, plan->streams, plan->stream_count,
                              sizeof *plan->streams);
    copy->classes = duplicate(arena, plan->classes, plan->class_count,
                              sizeof *plan->classes);
    if (!copy->servers || !copy->robots || !copy->streams || !copy->classes)
        return TD_ERR_NOMEM;
    TD_TRY(td_plan_memory_copy_names(copy, arena));
    *ret_arena = arena;
    *ret_copy = TD_TAKE(copy);
    return TD_OK;
}
