// SPDX-License-Identifier: Apache-2.0
// Operations that only move numbers or do little with each: rotary positions,
// embeddings, blocks of a map, steps of a denoising. A task is a few rows.
#include "engine/native/cpu/backend.h"

#include <string.h>

#define ROWS 16 // of a task

static uint32_t tasks_of(const td_ops_view *of)
{
    return td_native_cpu_ceil((size_t)of->batch * of->rows, ROWS);
}

// One whole number a row.
static bool counts_rows(const td_ops_view *of, const td_ops_view *rows)
{
    return of->dtype == TD_OPS_U32 && of->cols == 1 &&
           td_native_cpu_same_rows(of, rows);
}

static void turn(float *head, const float *angles, uint32_t half)
{
    const float *cosines = angles, *sines = angles + half;
    for (uint32_t i = 0; i < half; i++) {
        float a = head[i], b = head[half + i];
        head[i] = a * cosines[i] - b * sines[i];
        head[half + i] = b * cosines[i] + a * sines[i];
    }
}

static void turn_row(const td_native_cpu_step *step, uint32_t member,
                     uint32_t row)
{
    const td_ops_rotary *by = &step->as.rotary.rotary;
    const td_ops_view *out = &step->as.rotary.out;
    uint32_t position = td_native_cpu_whole(&by->positions, member, row);
    const float *angles =
        (const float *)by->table.data + position * by->table.row_stride;
    for (uint32_t col = 0; col < by->cols; col += by->size) {
        float *head =
            col < out->cols
                ? td_native_cpu_row(out, member, row) + col
                : td_native_cpu_row(&step->as.rotary.rest, member, row) + col -
                      out->cols;
        turn(head, angles, by->size / 2);
    }
}

static void
run_rotary(const td_native_cpu_step *step, uint32_t task,
           float *scratch) // NOLINT(readability-non-const-parameter)
{
    (void)scratch;
    const td_ops_view *out = &step->as.rotary.out;
    uint32_t rows = out->batch * out->rows, first = task * ROWS;
    for (uint32_t i = first; i < rows && i < first + ROWS; i++)
        turn_row(step, i / out->rows, i % out->rows);
}

td_err td_native_cpu_rotary(td_ops_backend *backend,
                            const td_ops_rotary *rotary, const td_ops_view *out,
                            const td_ops_view *rest, td_errinfo *info)
{
    uint32_t cols = out->cols + (rest->data ? rest->cols : 0);
    if (rotary->size < 2 || rotary->size % 2 != 0 || rotary->cols > cols ||
        rotary->cols % rotary->size != 0 ||
        (rotary->cols > out->cols && out->cols % rotary->size != 0) ||
        rotary->table.cols != rotary->size ||
        !counts_rows(&rotary->positions, out))
        return td_fail(info, TD_ERR_INVALID,
                       "rotary positions of %u columns in heads of %u do not "
                       "fit their views",
                       rotary->cols, rotary->size);
    td_native_cpu_step step = td_native_cpu_backend_step(backend);
    step.task = run_rotary;
    step.tasks = tasks_of(out);
    step.as.rotary.rotary = *rotary;
    step.as.rotary.out = *out;
    step.as.rotary.rest = *rest;
    return td_native_cpu_backend_add(backend, &step, 0, info);
}

static void embed_row(const td_ops_embedding_source *from, uint32_t id,
                      float *to)
{
    for (uint32_t i = 0; i < from->cols; i++)
        to[i] =
            td_native_cpu_number(&from->weight, (size_t)id * from->cols + i) *
            from->scale;
}

static void run_embed(const td_native_cpu_step *step, uint32_t task,
                      float *scratch) // NOLINT(readability-non-const-parameter)
{
    (void)scratch;
    const td_ops_view *ids = &step->as.embed.ids, *out = &step->as.embed.out;
    uint32_t rows = out->batch * out->rows, first = task * ROWS;
    for (uint32_t i = first; i < rows && i < first + ROWS; i++)
        embed_row(&step->as.embed.embedding->source,
                  td_native_cpu_whole(ids, i / out->rows, i % out->rows),
                  td_native_cpu_row(out, i / out->rows, i % out->rows));
}

td_err td_native_cpu_embed(td_ops_backend *backend,
                           const td_ops_embedding *embedding,
                           const td_ops_view *ids, const td_ops_view *out,
                           td_errinfo *info)
{
    if (!counts_rows(ids, out) || out->cols != embedding->source.cols)
        return td_fail(info, TD_ERR_INVALID,
                       "an embedding of %u columns does not fit its views",
                       embedding->source.cols);
    td_native_cpu_step step = td_native_cpu_backend_step(backend);
    step.task = run_embed;
    step.tasks = tasks_of(out);
    step.as.embed.embedding = embedding;
    step.as.embed.ids = *ids;
    step.as.embed.out = *out;
    return td_native_cpu_backend_add(backend, &step, 0, info);
}

static void cut_block(const td_ops_blocks *op, uint32_t member, uint32_t row)
{
    uint32_t across = op->width / op->side, line = op->side * op->x.cols;
    const uint32_t top = row / across * op->side;
    const uint32_t left = row % across * op->side;
    float *to = td_native_cpu_row(&op->out, member, row);
    for (uint32_t y = 0; y < op->side; y++) {
        const float *from =
            td_native_cpu_row(&op->x, member, (top + y) * op->width + left);
        for (uint32_t i = 0; i < line; i++)
            *to++ = from[i] * op->scale + op->shift;
    }
}

static void
run_blocks(const td_native_cpu_step *step, uint32_t task,
           float *scratch) // NOLINT(readability-non-const-parameter)
{
    (void)scratch;
    const td_ops_view *out = &step->as.blocks.out;
    uint32_t rows = out->batch * out->rows, first = task * ROWS;
    for (uint32_t i = first; i < rows && i < first + ROWS; i++)
        cut_block(&step->as.blocks, i / out->rows, i % out->rows);
}

td_err td_native_cpu_blocks(td_ops_backend *backend, const td_ops_blocks *op,
                            td_errinfo *info)
{
    uint32_t area = op->side * op->side;
    if (op->side == 0 || op->height % op->side != 0 ||
        op->width % op->side != 0 || op->x.rows != op->height * op->width ||
        op->x.row_stride != op->x.cols || op->x.batch != op->out.batch ||
        op->out.rows * area != op->x.rows || op->out.cols != area * op->x.cols)
        return td_fail(info, TD_ERR_INVALID,
                       "blocks of %u in %u x %u do not fit their views",
                       op->side, op->height, op->width);
    td_native_cpu_step step = td_native_cpu_backend_step(backend);
    step.task = run_blocks;
    step.tasks = tasks_of(&op->out);
    step.as.blocks = *op;
    return td_native_cpu_backend_add(backend, &step, 0, info);
}

static void step_row(const td_ops_step *op, uint32_t member, uint32_t row)
{
    float *x = td_native_cpu_row(&op->x, member, row);
    const float *v = td_native_cpu_row(&op->v, member, row), *tail = NULL;
    float weight = 0;
    if (op->kept.data && td_native_cpu_whole(&op->kept, member, row) != 0)
        return;
    if (op->tail.data) {
        tail = td_native_cpu_row(&op->tail, member, row);
        weight = *td_native_cpu_row(&op->weight, member, row);
    }
    bool guided = tail && weight != 0;
    for (uint32_t i = 0; i < op->x.cols; i++) {
        float to = v[i];
        if (guided) {
            float off = (tail[i] - (x[i] - op->time * v[i])) * weight;
            to -= op->guidance * off;
        }
        x[i] += op->dt * to;
    }
}

static void run_step(const td_native_cpu_step *step, uint32_t task,
                     float *scratch) // NOLINT(readability-non-const-parameter)
{
    (void)scratch;
    const td_ops_step *op = &step->as.step;
    uint32_t rows = op->x.batch * op->x.rows, first = task * ROWS;
    for (uint32_t i = first; i < rows && i < first + ROWS; i++)
        step_row(op, i / op->x.rows, i % op->x.rows);
}

td_err td_native_cpu_step_add(td_ops_backend *backend, const td_ops_step *op,
                              td_errinfo *info)
{
    bool guided = op->tail.data && op->weight.data;
    if (!td_native_cpu_same_rows(&op->v, &op->x) || op->v.cols != op->x.cols ||
        (op->tail.data && !guided) ||
        (guided && (!td_native_cpu_same_rows(&op->tail, &op->x) ||
                    op->tail.cols != op->x.cols ||
                    !td_native_cpu_same_rows(&op->weight, &op->x) ||
                    op->weight.cols != 1)) ||
        (op->kept.data && !counts_rows(&op->kept, &op->x)))
        return td_fail(info, TD_ERR_INVALID,
                       "a step of %u columns does not fit its views",
                       op->x.cols);
    td_native_cpu_step step = td_native_cpu_backend_step(backend);
    step.task = run_step;
    step.tasks = tasks_of(&op->x);
    step.as.step = *op;
    return td_native_cpu_backend_add(backend, &step, 0, info);
}
