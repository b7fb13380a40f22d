// SPDX-License-Identifier: Apache-2.0
// Integer programs, solved by CBC.
//
// The library is loaded by the first program that comes (pthread_once) and
// never unloaded; whoever plans no such factory needs none of it. If it is
// missing, or lacks a function, td_plan_integer_can() is false and nothing else
// happens.
//
// CBC keeps state of its own and answers wrongly when two threads solve at
// once. `one_at_a_time` is held from making a model to deleting it, so other
// threads wait for as long as a solve takes. Nothing else is guarded: each call
// has a model of its own, and the table of functions does not change once it is
// loaded.
#include "plan/pack/integer.h"

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

// What is used of Cbc_C_Interface.h.
typedef struct library {
    void *handle;
    void *(*new_model)(void);
    void (*delete_model)(void *model);
    void (*load)(void *model, int columns, int rows, const int *start,
                 const int *row, const double *factor, const double *least,
                 const double *most, const double *cost, const double *low,
                 const double *high);
    void (*set_integer)(void *model, int column);
    void (*set_parameter)(void *model, const char *name, const char *value);
    void (*set_log_level)(void *model, int level);
    int (*solve)(void *model);
    int (*is_optimal)(void *model);
    int (*is_infeasible)(void *model);
    double (*cost)(void *model);
    const double *(*solution)(void *model);
} library;

static library cbc; // written once
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

static void load_library(void)
{
    static const struct {
        const char *name;
        void **function;
    } functions[] = {
        {"Cbc_newModel", (void **)&cbc.new_model},
        {"Cbc_deleteModel", (void **)&cbc.delete_model},
        {"Cbc_loadProblem", (void **)&cbc.load},
        {"Cbc_setInteger", (void **)&cbc.set_integer},
        {"Cbc_setParameter", (void **)&cbc.set_parameter},
        {"Cbc_setLogLevel", (void **)&cbc.set_log_level},
        {"Cbc_solve", (void **)&cbc.solve},
        {"Cbc_isProvenOptimal", (void **)&cbc.is_optimal},
        {"Cbc_isProvenInfeasible", (void **)&cbc.is_infeasible},
        {"Cbc_getObjValue", (void **)&cbc.cost},
        {"Cbc_getColSolution", (void **)&cbc.solution},
    };
    void *handle = dlopen("libCbcSolver.so.3", RTLD_NOW | RTLD_LOCAL);
    if (!handle) return;
    for (size_t i = 0; i < TD_COUNT_OF(functions); i++) {
        *functions[i].function = dlsym(handle, functions[i].name);
        if (*functions[i].function) continue;
        (void)dlclose(handle);
        return;
    }
    cbc.handle = handle;
}

bool td_plan_integer_can(void)
{
    return pthread_once(&once, load_library) == 0 && cbc.handle;
}

static td_err read_answer(void *model, const td_plan_integer *program,
                          double *ret_counts, double *ret_cost)
{
    if (cbc.is_infeasible(model)) return TD_ERR_EMPTY;
    if (!cbc.is_optimal(model)) return TD_ERR_INTERNAL;
    const double *counts = cbc.solution(model);
    for (int i = 0; i < program->columns; i++)
        ret_counts[i] = round(counts[i]);
    *ret_cost = cbc.cost(model);
    return TD_OK;
}

td_err td_plan_integer_solve(const td_plan_integer *program, double *ret_counts,
                             double *ret_cost)
{
    td_err err = TD_ERR_NOMEM;
    if (!td_plan_integer_can()) return TD_ERR_UNSUPPORTED;
    double *least = calloc((size_t)program->columns + 1, sizeof *least);
    if (!least) return TD_ERR_NOMEM;
    (void)pthread_mutex_lock(&one_at_a_time);
    void *model = cbc.new_model();
    if (model) {
        cbc.set_log_level(model, 0);
        cbc.set_parameter(model, "log", "0");
        cbc.load(model, program->columns, program->rows, program->start,
                 program->row, program->factor, least, program->most,
                 program->cost, program->low, program->high);
        for (int i = 0; i < program->columns; i++)
            cbc.set_integer(model, i);
        (void)cbc.solve(model);
        err = read_answer(model, program, ret_counts, ret_cost);
        cbc.delete_model(model);
    }
    (void)pthread_mutex_unlock(&one_at_a_time);
    free(least);
    return err;
}
