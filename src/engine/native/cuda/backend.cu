// SPDX-License-Identifier: Apache-2.0
// The CUDA backend itself: its memory, its graphs, and what the library
// exports.
//
// Memory of the device comes in blocks of 32 MiB, or one for each large piece,
// and is only given back by close(): nothing is allocated while robots wait.
// Host memory of inputs and outputs is pinned.
//
// A graph is captured: begin() lets the stream record, operations (graph.cu)
// launch their kernels into it, end() makes an executable graph of that and
// uploads it. There are two streams: what needs nothing of the frames goes
// `aside`, and an event makes one wait for the other where it must. Copies of
// large inputs wait until something uses them, so that one frame is on its way
// while another is worked on.
//
// A kernel may start while the one before it still runs, and waits inside for
// what that wrote (`order.alone` says that it must not): see kernels.h.
//
// One thread. An error of CUDA's other than NOMEM makes the backend useless;
// the process that has it ends.
#include "engine/native/cuda/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES ((size_t)32 << 20)
#define ALIGN ((size_t)1024)
#define LARGE_BYTES ((size_t)1 << 18) // of a fetch that waits for its use

// bf16 rounds to 8 bits, and tiles of another size add up in another order.
#define TOLERANCE 0.02f

td_err td_native_cuda_backend_fail(td_errinfo *info, cudaError_t error,
                                   const char *doing)
{
    size_t left = 0, all = 0;
    if (error != cudaErrorMemoryAllocation)
        return td_fail(info, TD_ERR_IO, "CUDA, %s: %s", doing,
                       cudaGetErrorString(error));
    (void)cudaGetLastError(); // it is no reason for the next call to fail
    if (cudaMemGetInfo(&left, &all) != cudaSuccess) { // not even to be asked
        (void)cudaGetLastError();
        return td_fail(info, TD_ERR_NOMEM,
                       "CUDA, %s: out of memory, less is free than CUDA takes "
                       "for itself (nvidia-smi says who has it)",
                       doing);
    }
    return td_fail(info, TD_ERR_NOMEM,
                   "CUDA, %s: out of memory, %zu of %zu MiB are free", doing,
                   left >> 20, all >> 20);
}

static td_native_cuda_backend_held *hold(td_ops_backend *backend)
{
    td_native_cuda_backend_held *held =
        (td_native_cuda_backend_held *)calloc(1, sizeof *held);
    if (!held) return NULL;
    held->next = backend->held;
    backend->held = held;
    return held;
}

static td_err alloc_block(td_ops_backend *backend, size_t bytes,
                          char **ret_block, td_errinfo *info)
{
    td_native_cuda_backend_held *held = hold(backend);
    if (!held) return TD_ERR_NOMEM;
    cudaError_t error = cudaMalloc(&held->device, bytes);
    if (error == cudaSuccess) error = cudaMemset(held->device, 0, bytes);
    if (error != cudaSuccess) {
        char doing[80];
        (void)snprintf(doing, sizeof doing, "allocating %zu MiB after %zu",
                       bytes >> 20, backend->bytes >> 20);
        return td_native_cuda_backend_fail(info, error, doing);
    }
    backend->bytes += bytes;
    *ret_block = (char *)held->device;
    return TD_OK;
}

td_err td_native_cuda_backend_alloc(td_ops_backend *backend, size_t bytes,
                                    void **ret_data, td_errinfo *info)
{
    bytes = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    if (bytes > BLOCK_BYTES / 4) {
        char *block = NULL;
        TD_TRY(alloc_block(backend, bytes, &block, info));
        *ret_data = block;
        return TD_OK;
    }
    if (bytes > backend->block_left) {
        TD_TRY(alloc_block(backend, BLOCK_BYTES, &backend->block, info));
        backend->block_left = BLOCK_BYTES;
    }
    *ret_data = backend->block;
    backend->block += bytes;
    backend->block_left -= bytes;
    return TD_OK;
}

td_err td_native_cuda_backend_alloc_io(td_ops_backend *backend, size_t bytes,
                                       td_ops_io *ret_io, td_errinfo *info)
{
    td_ops_io io = {};
    TD_TRY(td_native_cuda_backend_alloc(backend, bytes, &io.device, info));
    td_native_cuda_backend_held *held = hold(backend);
    if (!held) return TD_ERR_NOMEM;
    cudaError_t error = cudaMallocHost(&held->host, bytes);
    if (error != cudaSuccess)
        return td_native_cuda_backend_fail(info, error,
                                           "allocating host memory");
    memset(held->host, 0, bytes);
    io.host = held->host;
    *ret_io = io;
    return TD_OK;
}

td_err td_native_cuda_backend_keep(td_ops_backend *backend, size_t bytes,
                                   void **ret_data, td_errinfo *info)
{
    td_native_cuda_backend_held *held = hold(backend);
    if (held) held->heap = calloc(1, bytes);
    if (!held || !held->heap)
        return td_fail(info, TD_ERR_NOMEM, "out of memory");
    *ret_data = held->heap;
    return TD_OK;
}

// What comes on one stream comes after what is on the other.
static cudaError_t follow(td_ops_backend *backend, cudaStream_t after,
                          cudaStream_t before)
{
    cudaError_t error = cudaEventRecord(backend->event, before);
    return error == cudaSuccess ? cudaStreamWaitEvent(after, backend->event, 0)
                                : error;
}

static void stop_building(td_ops_backend *backend)
{
    cudaGraph_t captured = NULL;
    if (!backend->is_building) return;
    backend->is_building = false;
    (void)follow(backend, backend->stream, backend->aside);
    if (cudaStreamEndCapture(backend->stream, &captured) == cudaSuccess &&
        captured)
        (void)cudaGraphDestroy(captured);
    (void)cudaGetLastError();
}

static void close_backend(td_ops_backend *backend)
{
    (void)cudaSetDevice(backend->device);
    stop_building(backend);
    while (backend->graphs) {
        td_ops_graph *graph = backend->graphs;
        backend->graphs = graph->next;
        (void)cudaGraphExecDestroy(graph->exec);
        free(graph);
    }
    if (backend->event) (void)cudaEventDestroy(backend->event);
    if (backend->aside) (void)cudaStreamDestroy(backend->aside);
    if (backend->stream) (void)cudaStreamDestroy(backend->stream);
    while (backend->held) {
        td_native_cuda_backend_held *held = backend->held;
        backend->held = held->next;
        if (held->device) (void)cudaFree(held->device);
        if (held->host) (void)cudaFreeHost(held->host);
        free(held->heap);
        free(held);
    }
    free(backend);
}

static td_err check_device(td_ops_backend *backend, td_errinfo *info)
{
    int count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess)
        return td_fail(info, TD_ERR_UNSUPPORTED, "no GPU: %s",
                       cudaGetErrorString(error));
    if (backend->device >= count)
        return td_fail(info, TD_ERR_UNSUPPORTED,
                       "no GPU %d: this machine has %d", backend->device,
                       count);
    struct cudaDeviceProp of;
    error = cudaGetDeviceProperties(&of, backend->device);
    if (error != cudaSuccess)
        return td_native_cuda_backend_fail(info, error, "asking for the GPU");
    if (of.major != 9 || of.minor != 0)
        return td_fail(info, TD_ERR_UNSUPPORTED,
                       "GPU %d, %s, has compute capability %d.%d: the native "
                       "engine is made for 9.0 (H100, H200)",
                       backend->device, of.name, of.major, of.minor);
    (void)snprintf(backend->name, sizeof backend->name, "%.95s", of.name);
    return TD_OK;
}

static td_err prepare(td_ops_backend *backend, td_errinfo *info)
{
    TD_TRY(check_device(backend, info));
    cudaError_t error = cudaSetDevice(backend->device);
    if (error == cudaSuccess)
        error =
            cudaStreamCreateWithFlags(&backend->stream, cudaStreamNonBlocking);
    if (error == cudaSuccess)
        error =
            cudaStreamCreateWithFlags(&backend->aside, cudaStreamNonBlocking);
    if (error == cudaSuccess)
        error =
            cudaEventCreateWithFlags(&backend->event, cudaEventDisableTiming);
    if (error != cudaSuccess)
        return td_native_cuda_backend_fail(info, error, "opening the GPU");
    void *words = NULL;
    TD_TRY(td_native_cuda_backend_alloc(
        backend, TD_NATIVE_CUDA_BACKEND_WORDS * sizeof *backend->words, &words,
        info));
    backend->words = (uint32_t *)words;
    return TD_OK;
}

static td_err open_backend(const td_ops_config *config,
                           td_ops_backend **ret_backend, td_errinfo *info)
{
    if (config->precision != TD_OPS_BF16)
        return td_fail(info, TD_ERR_UNSUPPORTED,
                       "the CUDA backend computes in bf16 only");
    td_ops_backend *backend = (td_ops_backend *)calloc(1, sizeof *backend);
    if (!backend) return TD_ERR_NOMEM;
    backend->device = (int)config->device;
    td_err err = prepare(backend, info);
    if (err == TD_OK)
        *ret_backend = backend;
    else
        close_backend(backend);
    return err;
}

static void info_of(const td_ops_backend *backend, td_ops_info *ret_info)
{
    memset(ret_info, 0, sizeof *ret_info);
    memcpy(ret_info->device, backend->name, sizeof ret_info->device);
    ret_info->dtype = TD_OPS_BF16;
    ret_info->tolerance = TOLERANCE;
    ret_info->bytes = backend->bytes;
}

static td_err begin(td_ops_backend *backend, td_errinfo *info)
{
    stop_building(backend); // of a graph that failed
    cudaError_t error = cudaStreamBeginCapture(
        backend->stream, cudaStreamCaptureModeThreadLocal);
    if (error != cudaSuccess)
        return td_native_cuda_backend_fail(info, error, "building a graph");
    backend->is_building = true;
    backend->is_alone = true;
    backend->is_split = false;
    backend->has_floats = false;
    backend->waiting_count = 0;
    backend->words_used = 0;
    error = follow(backend, backend->aside, backend->stream);
    return error == cudaSuccess
               ? TD_OK
               : td_native_cuda_backend_fail(info, error, "building a graph");
}

td_native_cuda_order td_native_cuda_backend_order(td_ops_backend *backend)
{
    // What fails here fails the graph, when it ends.
    if (backend->is_split)
        (void)follow(backend, backend->stream, backend->aside);
    const td_native_cuda_order order = {backend->stream,
                                        backend->is_split || backend->is_alone};
    backend->is_split = backend->is_alone = false;
    return order;
}

td_native_cuda_order td_native_cuda_backend_order_aside(td_ops_backend *backend)
{
    const td_native_cuda_order order = {backend->aside, true};
    backend->is_split = true;
    return order;
}

static td_err copy_aside(td_ops_backend *backend, const td_ops_io *io,
                         size_t at, size_t bytes, td_errinfo *info)
{
    backend->is_split = true;
    cudaError_t error =
        cudaMemcpyAsync((char *)io->device + at, (const char *)io->host + at,
                        bytes, cudaMemcpyHostToDevice, backend->aside);
    return error == cudaSuccess
               ? TD_OK
               : td_native_cuda_backend_fail(info, error, "adding a copy");
}

static td_err fetch(td_ops_backend *backend, const td_ops_io *io, size_t bytes,
                    td_errinfo *info)
{
    if (bytes < LARGE_BYTES ||
        backend->waiting_count == TD_NATIVE_CUDA_BACKEND_WAITING)
        return copy_aside(backend, io, 0, bytes, info);
    const td_native_cuda_backend_fetch waits = {*io, bytes, 0};
    backend->waiting[backend->waiting_count++] = waits;
    return TD_OK;
}

td_err td_native_cuda_backend_fetch_part(td_ops_backend *backend,
                                         const void *data, size_t bytes,
                                         td_errinfo *info)
{
    for (uint32_t i = 0; i < backend->waiting_count; i++) {
        td_native_cuda_backend_fetch *from = &backend->waiting[i];
        size_t at = (uintptr_t)data - (uintptr_t)from->io.device;
        if (at >= from->bytes) continue;
        size_t end = bytes > from->bytes - at ? from->bytes : at + bytes;
        if (at < from->begun) at = from->begun;
        if (at >= end) continue;
        if (at == from->begun) from->begun = end;
        TD_TRY(copy_aside(backend, &from->io, at, end - at, info));
    }
    return TD_OK;
}

const void *td_native_cuda_backend_waits(const td_ops_backend *backend,
                                         const void *data, size_t bytes)
{
    for (uint32_t i = 0; i < backend->waiting_count; i++) {
        const td_native_cuda_backend_fetch *from = &backend->waiting[i];
        size_t at = (uintptr_t)data - (uintptr_t)from->io.device;
        if (at < from->bytes && bytes <= from->bytes - at)
            return (const char *)from->io.host + at;
    }
    return NULL;
}

uint32_t *td_native_cuda_backend_take_words(td_ops_backend *backend,
                                            size_t count)
{
    if (count > TD_NATIVE_CUDA_BACKEND_WORDS - backend->words_used) return NULL;
    uint32_t *words = backend->words + backend->words_used;
    backend->words_used += (uint32_t)count;
    return words;
}

td_err td_native_cuda_backend_clear(td_ops_backend *backend, uint32_t *words,
                                    size_t count, td_errinfo *info)
{
    cudaError_t error = follow(backend, backend->aside, backend->stream);
    if (error == cudaSuccess)
        error =
            cudaMemsetAsync(words, 0, count * sizeof *words, backend->aside);
    return error == cudaSuccess
               ? TD_OK
               : td_native_cuda_backend_fail(info, error, "building a graph");
}

static cudaError_t instantiate(td_ops_backend *backend,
                               cudaGraphExec_t *ret_exec)
{
    cudaGraph_t captured = NULL;
    backend->is_building = false;
    cudaError_t followed = follow(backend, backend->stream, backend->aside);
    cudaError_t error = cudaStreamEndCapture(backend->stream, &captured);
    if (error == cudaSuccess) error = followed;
    if (error != cudaSuccess) return error;
    error = cudaGraphInstantiate(ret_exec, captured, 0);
    (void)cudaGraphDestroy(captured);
    if (error == cudaSuccess)
        error = cudaGraphUpload(*ret_exec, backend->stream);
    // Weights may still be on their way, in no stream of ours.
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    return error;
}

static td_err end(td_ops_backend *backend, td_ops_graph **ret_graph,
                  td_errinfo *info)
{
    td_ops_graph *graph = (td_ops_graph *)calloc(1, sizeof *graph);
    if (!graph) return TD_ERR_NOMEM;
    graph->next = backend->graphs;
    backend->graphs = graph;
    cudaError_t error = instantiate(backend, &graph->exec);
    if (error != cudaSuccess)
        return td_native_cuda_backend_fail(info, error, "making a graph");
    *ret_graph = graph;
    return TD_OK;
}

static td_err run(td_ops_backend *backend, td_ops_graph *graph,
                  td_errinfo *info)
{
    cudaError_t error = cudaGraphLaunch(graph->exec, backend->stream);
    if (error == cudaSuccess) error = cudaStreamSynchronize(backend->stream);
    return error == cudaSuccess
               ? TD_OK
               : td_native_cuda_backend_fail(info, error, "running");
}

static td_err copy(td_ops_backend *backend, void *to, const void *from,
                   size_t bytes, td_errinfo *info)
{
    cudaError_t error = cudaMemcpyAsync(
        to, from, bytes, cudaMemcpyDeviceToDevice, backend->stream);
    return error == cudaSuccess
               ? TD_OK
               : td_native_cuda_backend_fail(info, error, "copying");
}

static const td_ops ops = {
    "cuda",
    open_backend,
    close_backend,
    info_of,
    td_native_cuda_backend_alloc,
    td_native_cuda_backend_alloc_io,
    td_native_cuda_weights_linear,
    td_native_cuda_weights_conv,
    td_native_cuda_weights_norm,
    td_native_cuda_weights_upload,
    begin,
    fetch,
    td_native_cuda_graph_copy_out,
    td_native_cuda_graph_linear,
    td_native_cuda_graph_conv,
    td_native_cuda_graph_norm,
    td_native_cuda_graph_attention,
    end,
    run,
    td_native_cuda_weights_embedding,
    td_native_cuda_graph_embed,
    td_native_cuda_graph_modulate,
    td_native_cuda_graph_blocks,
    td_native_cuda_graph_step,
    copy,
};

extern "C" __attribute__((visibility("default"))) const td_ops *
td_ops_cuda(uint32_t version)
{
    return version == TD_OPS_VERSION ? &ops : NULL;
}
