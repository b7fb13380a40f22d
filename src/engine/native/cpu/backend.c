// SPDX-License-Identifier: Apache-2.0
// The processor's backend: memory, weights, graphs and their running.
//
// A graph is a list of steps; a step is one operation with its algorithm
// chosen, cut into tasks that the threads of a pool share (pool.c). begin()
// starts the list, each operation (linear.c, attention.c, conv.c) checks its
// shapes and adds a step, end() makes the threads' scratch memory as large as
// the greediest step wants. run() does one step after the other, and can no
// longer fail.
//
// Weights of linears stay where they are, in the mapped file, and are packed in
// passing; those of convolutions are kept in the order in which they are read.
// All memory that is given out lies in a list of blocks, aligned for any
// vector, and is freed by close(), after the pool's threads have ended.
#include "engine/native/cpu/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ALIGN_BYTES 64

#define MAPPED_BYTES (1u << 20) // what is larger takes memory once it is used

typedef struct block {
    struct block *next;
    size_t mapped; // bytes; 0: of the heap
    _Alignas(ALIGN_BYTES) char data[];
} block;

struct td_ops_graph {
    td_ops_graph *next;
    td_native_cpu_step *steps;
    size_t count, room;
};

struct td_ops_backend {
    const td_native_cpu_kernel *kernel;
    td_native_cpu_pool *pool;
    uint32_t threads;
    block *blocks;
    size_t bytes;
    td_ops_graph *graphs;
    td_ops_graph *building; // the first of them, or NULL
    size_t scratch_floats;  // of a thread
    float **scratch;        // [threads]
};

static void free_graphs(td_ops_graph *graph)
{
    while (graph) {
        td_ops_graph *next = graph->next;
        free(graph->steps);
        free(graph);
        graph = next;
    }
}

// Zeros. NULL when there are none.
static block *new_block(size_t bytes)
{
    block *made = NULL;
    if (bytes < MAPPED_BYTES) {
        made = aligned_alloc(ALIGN_BYTES, bytes);
        if (made) memset(made, 0, bytes);
        return made;
    }
    made = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED) return NULL;
    made->mapped = bytes;
    return made;
}

static void free_block(block *of)
{
    if (of->mapped)
        (void)munmap(of, of->mapped);
    else
        free(of);
}

static void close_backend(td_ops_backend *backend)
{
    if (backend->pool) td_native_cpu_pool_free(backend->pool);
    while (backend->blocks) {
        block *next = backend->blocks->next;
        free_block(backend->blocks);
        backend->blocks = next;
    }
    for (uint32_t i = 0; backend->scratch && i < backend->threads; i++)
        free(backend->scratch[i]);
    free(backend->scratch);
    free_graphs(backend->graphs);
    free(backend);
}
TD_AUTO_FREE(td_ops_backend, close_backend)

td_err td_native_cpu_backend_open(const td_native_cpu_kernel *kernel,
                                  const td_ops_config *config,
                                  td_ops_backend **ret_backend,
                                  td_errinfo *info)
{
    if (config->precision != TD_OPS_F32)
        return td_fail(info, TD_ERR_UNSUPPORTED,
                       "the processor computes in float32 only");
    TD_AUTO(td_ops_backend) *backend = calloc(1, sizeof *backend);
    if (!backend) return TD_ERR_NOMEM;
    backend->kernel = kernel;
    backend->threads = config->threads;
    TD_TRY(td_native_cpu_pool_new(config->threads, &backend->pool, info));
    backend->scratch = calloc(config->threads, sizeof *backend->scratch);
    if (!backend->scratch) return TD_ERR_NOMEM;
    *ret_backend = TD_TAKE(backend);
    return TD_OK;
}

static td_err open_backend(const td_ops_config *config,
                           td_ops_backend **ret_backend, td_errinfo *info)
{
    return td_native_cpu_backend_open(td_native_cpu_kernel_best(), config,
                                      ret_backend, info);
}

static void say_info(const td_ops_backend *backend, td_ops_info *ret_info)
{
    *ret_info = (td_ops_info){
        .dtype = TD_OPS_F32,
        .exact_batches = true,
        .apart = true,
        .bytes = backend->bytes,
    };
    (void)snprintf(ret_info->device, sizeof ret_info->device, "%u thread%s, %s",
                   backend->threads, backend->threads == 1 ? "" : "s",
                   backend->kernel->name);
}

// NULL when there is none.
static void *take(td_ops_backend *backend, size_t bytes)
{
    size_t whole =
        (sizeof(block) + bytes + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
    block *made = new_block(whole);
    if (!made) return NULL;
    made->next = backend->blocks;
    backend->blocks = made;
    backend->bytes += whole;
    return made->data;
}

td_err td_native_cpu_backend_alloc(td_ops_backend *backend, size_t bytes,
                                   void **ret_data, td_errinfo *info)
{
    void *data = take(backend, bytes);
    if (!data)
        return td_fail(info, TD_ERR_NOMEM, "no memory for %zu bytes", bytes);
    *ret_data = data;
    return TD_OK;
}

static td_err alloc_io(td_ops_backend *backend, size_t bytes, td_ops_io *ret_io,
                       td_errinfo *info)
{
    void *data = NULL;
    TD_TRY(td_native_cpu_backend_alloc(backend, bytes, &data, info));
    *ret_io = (td_ops_io){.host = data, .device = data};
    return TD_OK;
}

// Numbers of a checkpoint as floats; NULL where there are none.
static td_err copy_source(td_ops_backend *backend, const td_ops_source *from,
                          size_t count, float **ret_floats)
{
    if (!from->data) {
        *ret_floats = NULL;
        return TD_OK;
    }
    float *floats = take(backend, count * sizeof *floats);
    if (!floats) return TD_ERR_NOMEM;
    for (size_t i = 0; i < count; i++)
        floats[i] = td_native_cpu_number(from, i);
    *ret_floats = floats;
    return TD_OK;
}

// The biases of all parts in a row; NULL where no part has one.
static td_err copy_biases(td_ops_backend *backend, td_ops_linear_weight *weight)
{
    bool any = false;
    for (uint32_t i = 0; i <= TD_OPS_MORE_PARTS; i++)
        any = any || weight->parts[i].bias.data;
    if (!any) return TD_OK;
    float *at = take(backend, weight->rows * sizeof *at);
    if (!at) return TD_ERR_NOMEM;
    weight->bias = at;
    for (uint32_t i = 0; i <= TD_OPS_MORE_PARTS; i++) {
        const td_ops_linear_part *part = &weight->parts[i];
        for (uint32_t k = 0; k < part->out; k++, at++)
            *at = part->bias.data ? td_native_cpu_number(&part->bias, k) : 0;
    }
    return TD_OK;
}

static td_err make_linear(td_ops_backend *backend,
                          const td_ops_linear_source *source,
                          td_ops_linear_weight **ret_weight, td_errinfo *info)
{
    if (source->gated && source->more[0].out != source->out)
        return td_fail(info, TD_ERR_INVALID,
                       "a gate of %u columns for a product of %u", source->out,
                       source->more[0].out);
    td_ops_linear_weight *weight = take(backend, sizeof *weight);
    if (!weight) return TD_ERR_NOMEM;
    weight->source = *source;
    weight->stride = source->stride ? source->stride : source->in;
    weight->parts[0] =
        (td_ops_linear_part){source->weight, source->bias, source->out};
    for (uint32_t i = 0; i < TD_OPS_MORE_PARTS; i++)
        weight->parts[1 + i] = source->more[i];
    for (uint32_t i = 0; i <= TD_OPS_MORE_PARTS; i++)
        weight->rows += weight->parts[i].out;
    TD_TRY(copy_biases(backend, weight));
    *ret_weight = weight;
    return TD_OK;
}

static td_err make_embedding(td_ops_backend *backend,
                             const td_ops_embedding_source *source,
                             td_ops_embedding **ret_embedding, td_errinfo *info)
{
    (void)info;
    td_ops_embedding *embedding = take(backend, sizeof *embedding);
    if (!embedding) return TD_ERR_NOMEM;
    embedding->source = *source;
    *ret_embedding = embedding;
    return TD_OK;
}

static td_err make_norm(td_ops_backend *backend,
                        const td_ops_norm_source *source,
                        td_ops_norm **ret_norm, td_errinfo *info)
{
    (void)info;
    td_ops_norm *norm = take(backend, sizeof *norm);
    if (!norm) return TD_ERR_NOMEM;
    norm->cols = source->cols;
    norm->epsilon = source->epsilon;
    norm->base = source->base;
    norm->kind = source->kind;
    TD_TRY(copy_source(backend, &source->weight, source->cols, &norm->weight));
    TD_TRY(copy_source(backend, &source->bias, source->cols, &norm->bias));
    *ret_norm = norm;
    return TD_OK;
}

static td_err make_conv(td_ops_backend *backend,
                        const td_ops_conv_source *source,
                        td_ops_conv_weight **ret_weight, td_errinfo *info)
{
    (void)info;
    const td_ops_source scale = {source->scale, TD_OPS_F32};
    const td_ops_source bias = {source->bias, TD_OPS_F32};
    td_ops_conv_weight *weight = take(backend, sizeof *weight);
    if (!weight) return TD_ERR_NOMEM;
    weight->source = *source;
    TD_TRY(copy_source(backend, &scale, source->out, &weight->scale));
    TD_TRY(copy_source(backend, &bias, source->out, &weight->bias));
    weight->zeros = take(backend, source->in * sizeof(float));
    if (!weight->zeros) return TD_ERR_NOMEM;
    *ret_weight = weight;
    return TD_OK;
}

static td_err upload(td_ops_backend *backend, const td_ops_view *to,
                     const float *from, td_errinfo *info)
{
    (void)backend;
    (void)info;
    uint32_t members = to->batch_stride == 0 ? 1 : to->batch;
    for (uint32_t member = 0; member < members; member++)
        for (uint32_t row = 0; row < to->rows; row++, from += to->cols)
            memcpy(td_native_cpu_row(to, member, row), from,
                   to->cols * sizeof(float));
    return TD_OK;
}

static td_err begin(td_ops_backend *backend, td_errinfo *info)
{
    if (backend->building)
        return td_fail(info, TD_ERR_INVALID, "a graph is being built");
    td_ops_graph *graph = calloc(1, sizeof *graph);
    if (!graph) return TD_ERR_NOMEM;
    graph->next = backend->graphs;
    backend->graphs = backend->building = graph;
    return TD_OK;
}

td_err td_native_cpu_backend_add(td_ops_backend *backend,
                                 const td_native_cpu_step *step,
                                 size_t scratch_floats, td_errinfo *info)
{
    td_ops_graph *graph = backend->building;
    if (!graph) return td_fail(info, TD_ERR_INVALID, "no graph is being built");
    if (graph->count == graph->room) {
        size_t room = graph->room ? 2 * graph->room : 16;
        void *grown = realloc(graph->steps, room * sizeof *graph->steps);
        if (!grown) return TD_ERR_NOMEM;
        graph->steps = grown;
        graph->room = room;
    }
    graph->steps[graph->count++] = *step;
    if (scratch_floats > backend->scratch_floats)
        backend->scratch_floats = scratch_floats;
    return TD_OK;
}

// Of one memory both ends are the same.
static td_err move(td_ops_backend *backend, const td_ops_io *io, size_t bytes,
                   td_errinfo *info)
{
    (void)backend;
    (void)io;
    (void)bytes;
    (void)info;
    return TD_OK;
}

static td_err grow_scratch(td_ops_backend *backend)
{
    size_t bytes = td_native_cpu_ceil(backend->scratch_floats * sizeof(float),
                                      ALIGN_BYTES) *
                   (size_t)ALIGN_BYTES;
    for (uint32_t i = 0; i < backend->threads; i++) {
        free(backend->scratch[i]);
        backend->scratch[i] = aligned_alloc(ALIGN_BYTES, bytes + ALIGN_BYTES);
        if (!backend->scratch[i]) return TD_ERR_NOMEM;
    }
    return TD_OK;
}

static td_err end(td_ops_backend *backend, td_ops_graph **ret_graph,
                  td_errinfo *info)
{
    td_ops_graph *graph = backend->building;
    if (!graph) return td_fail(info, TD_ERR_INVALID, "no graph is being built");
    backend->building = NULL;
    TD_TRY(grow_scratch(backend));
    *ret_graph = graph;
    return TD_OK;
}

typedef struct running {
    const td_ops_backend *backend;
    const td_native_cpu_step *step;
} running;

static void run_task(void *user, uint32_t task, uint32_t thread)
{
    const running *now = user;
    now->step->task(now->step, task, now->backend->scratch[thread]);
}

static td_err run(td_ops_backend *backend, td_ops_graph *graph,
                  td_errinfo *info)
{
    (void)info;
    for (size_t i = 0; i < graph->count; i++) {
        running now = {.backend = backend, .step = &graph->steps[i]};
        td_native_cpu_pool_run(backend->pool, now.step->tasks, run_task, &now);
    }
    return TD_OK;
}

static td_err copy(td_ops_backend *backend, void *to, const void *from,
                   size_t bytes, td_errinfo *info)
{
    (void)backend;
    (void)info;
    memcpy(to, from, bytes);
    return TD_OK;
}

td_native_cpu_step td_native_cpu_backend_step(const td_ops_backend *backend)
{
    return (td_native_cpu_step){.kernel = backend->kernel};
}

td_native_cpu_pool *td_native_cpu_backend_pool(const td_ops_backend *backend)
{
    return backend->pool;
}

uint32_t td_native_cpu_backend_threads(const td_ops_backend *backend)
{
    return backend->threads;
}

const td_ops td_ops_cpu = {
    .name = "cpu",
    .open = open_backend,
    .close = close_backend,
    .info = say_info,
    .alloc = td_native_cpu_backend_alloc,
    .alloc_io = alloc_io,
    .linear_weight = make_linear,
    .conv_weight = make_conv,
    .norm_weight = make_norm,
    .upload = upload,
    .begin = begin,
    .copy_in = move,
    .copy_out = move,
    .linear = td_native_cpu_linear,
    .conv = td_native_cpu_conv,
    .norm = td_native_cpu_norm,
    .attention = td_native_cpu_attention,
    .end = end,
    .run = run,
    .embedding = make_embedding,
    .embed = td_native_cpu_embed,
    .modulate = td_native_cpu_modulate,
    .blocks = td_native_cpu_blocks,
    .step = td_native_cpu_step_add,
    .copy = copy,
};
