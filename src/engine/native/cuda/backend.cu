// SPDX-License-Identifier: Apache-2.0
// The GPU itself: its memory, its programs, and what the library exports.
#include "engine/native/cuda/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES ((size_t)32 << 20)
#define ALIGN ((size_t)1024)
#define LARGE_BYTES ((size_t)1 << 18) // of a fetch that waits for its use

// bf16 rounds to 8 bits, and tiles of another size add up in another order.
#define TOLERANCE 0.02f

td_err td_native_cuda_side_fail(td_errinfo *info, cudaError_t error,
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

static td_native_cuda_side_held *hold(td_ops_side *side)
{
    td_native_cuda_side_held *held =
        (td_native_cuda_side_held *)calloc(1, sizeof *held);
    if (!held) return NULL;
    held->next = side->held;
    side->held = held;
    return held;
}

static td_err alloc_block(td_ops_side *side, size_t bytes, char **ret_block,
                          td_errinfo *info)
{
    td_native_cuda_side_held *held = hold(side);
    if (!held) return TD_ERR_NOMEM;
    cudaError_t error = cudaMalloc(&held->device, bytes);
    if (error == cudaSuccess) error = cudaMemset(held->device, 0, bytes);
    if (error != cudaSuccess) {
        char doing[80];
        (void)snprintf(doing, sizeof doing, "allocating %zu MiB after %zu",
                       bytes >> 20, side->bytes >> 20);
        return td_native_cuda_side_fail(info, error, doing);
    }
    side->bytes += bytes;
    *ret_block = (char *)held->device;
    return TD_OK;
}

td_err td_native_cuda_side_alloc(td_ops_side *side, size_t bytes,
                                 void **ret_data, td_errinfo *info)
{
    bytes = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    if (bytes > BLOCK_BYTES / 4) {
        char *block = NULL;
        TD_TRY(alloc_block(side, bytes, &block, info));
        *ret_data = block;
        return TD_OK;
    }
    if (bytes > side->block_left) {
        TD_TRY(alloc_block(side, BLOCK_BYTES, &side->block, info));
        side->block_left = BLOCK_BYTES;
    }
    *ret_data = side->block;
    side->block += bytes;
    side->block_left -= bytes;
    return TD_OK;
}

td_err td_native_cuda_side_alloc_io(td_ops_side *side, size_t bytes,
                                    td_ops_io *ret_io, td_errinfo *info)
{
    td_ops_io io = {};
    TD_TRY(td_native_cuda_side_alloc(side, bytes, &io.device, info));
    td_native_cuda_side_held *held = hold(side);
    if (!held) return TD_ERR_NOMEM;
    cudaError_t error = cudaMallocHost(&held->host, bytes);
    if (error != cudaSuccess)
        return td_native_cuda_side_fail(info, error, "allocating host memory");
    memset(held->host, 0, bytes);
    io.host = held->host;
    *ret_io = io;
    return TD_OK;
}

td_err td_native_cuda_side_keep(td_ops_side *side, size_t bytes,
                                void **ret_data, td_errinfo *info)
{
    td_native_cuda_side_held *held = hold(side);
    if (held) held->heap = calloc(1, bytes);
    if (!held || !held->heap)
        return td_fail(info, TD_ERR_NOMEM, "out of memory");
    *ret_data = held->heap;
    return TD_OK;
}

// What comes on one stream comes after what is on the other.
static cudaError_t follow(td_ops_side *side, cudaStream_t after,
                          cudaStream_t before)
{
    cudaError_t error = cudaEventRecord(side->event, before);
    return error == cudaSuccess ? cudaStreamWaitEvent(after, side->event, 0)
                                : error;
}

static void stop_recording(td_ops_side *side)
{
    cudaGraph_t graph = NULL;
    if (!side->is_recording) return;
    side->is_recording = false;
    (void)follow(side, side->stream, side->aside);
    if (cudaStreamEndCapture(side->stream, &graph) == cudaSuccess && graph)
        (void)cudaGraphDestroy(graph);
    (void)cudaGetLastError();
}

static void close_side(td_ops_side *side)
{
    (void)cudaSetDevice(side->device);
    stop_recording(side);
    while (side->programs) {
        td_ops_program *program = side->programs;
        side->programs = program->next;
        (void)cudaGraphExecDestroy(program->exec);
        free(program);
    }
    if (side->event) (void)cudaEventDestroy(side->event);
    if (side->aside) (void)cudaStreamDestroy(side->aside);
    if (side->stream) (void)cudaStreamDestroy(side->stream);
    while (side->held) {
        td_native_cuda_side_held *held = side->held;
        side->held = held->next;
        if (held->device) (void)cudaFree(held->device);
        if (held->host) (void)cudaFreeHost(held->host);
        free(held->heap);
        free(held);
    }
    free(side);
}

static td_err check_device(td_ops_side *side, td_errinfo *info)
{
    int count = 0;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess)
        return td_fail(info, TD_ERR_UNSUPPORTED, "no GPU: %s",
                       cudaGetErrorString(error));
    if (side->device >= count)
        return td_fail(info, TD_ERR_UNSUPPORTED,
                       "no GPU %d: this machine has %d", side->device, count);
    struct cudaDeviceProp of;
    error = cudaGetDeviceProperties(&of, side->device);
    if (error != cudaSuccess)
        return td_native_cuda_side_fail(info, error, "asking for the GPU");
    if (of.major != 9 || of.minor != 0)
        return td_fail(info, TD_ERR_UNSUPPORTED,
                       "GPU %d, %s, has compute capability %d.%d: the native "
                       "engine is made for 9.0 (H100, H200)",
                       side->device, of.name, of.major, of.minor);
    (void)snprintf(side->name, sizeof side->name, "%.95s", of.name);
    return TD_OK;
}

static td_err prepare(td_ops_side *side, td_errinfo *info)
{
    TD_TRY(check_device(side, info));
    cudaError_t error = cudaSetDevice(side->device);
    if (error == cudaSuccess)
        error = cudaStreamCreateWithFlags(&side->stream, cudaStreamNonBlocking);
    if (error == cudaSuccess)
        error = cudaStreamCreateWithFlags(&side->aside, cudaStreamNonBlocking);
    if (error == cudaSuccess)
        error = cudaEventCreateWithFlags(&side->event, cudaEventDisableTiming);
    if (error != cudaSuccess)
        return td_native_cuda_side_fail(info, error, "opening the GPU");
    void *words = NULL;
    TD_TRY(td_native_cuda_side_alloc(
        side, TD_NATIVE_CUDA_SIDE_WORDS * sizeof *side->words, &words, info));
    side->words = (uint32_t *)words;
    return TD_OK;
}

static td_err open_side(const td_ops_config *config, td_ops_side **ret_side,
                        td_errinfo *info)
{
    if (config->precision != TD_OPS_BF16)
        return td_fail(info, TD_ERR_UNSUPPORTED,
                       "the CUDA side computes in bf16 only");
    td_ops_side *side = (td_ops_side *)calloc(1, sizeof *side);
    if (!side) return TD_ERR_NOMEM;
    side->device = (int)config->device;
    td_err err = prepare(side, info);
    if (err == TD_OK)
        *ret_side = side;
    else
        close_side(side);
    return err;
}

static void info_of(const td_ops_side *side, td_ops_info *ret_info)
{
    memset(ret_info, 0, sizeof *ret_info);
    memcpy(ret_info->device, side->name, sizeof ret_info->device);
    ret_info->dtype = TD_OPS_BF16;
    ret_info->tolerance = TOLERANCE;
    ret_info->bytes = side->bytes;
}

static td_err begin(td_ops_side *side, td_errinfo *info)
{
    stop_recording(side); // of a program that failed
    cudaError_t error =
        cudaStreamBeginCapture(side->stream, cudaStreamCaptureModeThreadLocal);
    if (error != cudaSuccess)
        return td_native_cuda_side_fail(info, error, "recording");
    side->is_recording = true;
    side->is_alone = true;
    side->is_split = false;
    side->waiting_count = 0;
    side->words_used = 0;
    error = follow(side, side->aside, side->stream);
    return error == cudaSuccess
               ? TD_OK
               : td_native_cuda_side_fail(info, error, "recording");
}

td_native_cuda_turn td_native_cuda_side_turn(td_ops_side *side)
{
    // What fails here fails the program, when it ends.
    if (side->is_split) (void)follow(side, side->stream, side->aside);
    const td_native_cuda_turn turn = {side->stream,
                                      side->is_split || side->is_alone};
    side->is_split = side->is_alone = false;
    return turn;
}

td_native_cuda_turn td_native_cuda_side_turn_aside(td_ops_side *side)
{
    const td_native_cuda_turn turn = {side->aside, true};
    side->is_split = true;
    return turn;
}

static td_err copy_aside(td_ops_side *side, const td_ops_io *io, size_t at,
                         size_t bytes, td_errinfo *info)
{
    side->is_split = true;
    cudaError_t error =
        cudaMemcpyAsync((char *)io->device + at, (const char *)io->host + at,
                        bytes, cudaMemcpyHostToDevice, side->aside);
    return error == cudaSuccess
               ? TD_OK
               : td_native_cuda_side_fail(info, error, "recording a copy");
}

static td_err fetch(td_ops_side *side, const td_ops_io *io, size_t bytes,
                    td_errinfo *info)
{
    if (bytes < LARGE_BYTES ||
        side->waiting_count == TD_NATIVE_CUDA_SIDE_WAITING)
        return copy_aside(side, io, 0, bytes, info);
    const td_native_cuda_side_fetch waits = {*io, bytes};
    side->waiting[side->waiting_count++] = waits;
    return TD_OK;
}

td_err td_native_cuda_side_fetch_part(td_ops_side *side, const void *data,
                                      size_t bytes, td_errinfo *info)
{
    for (uint32_t i = 0; i < side->waiting_count; i++) {
        const td_native_cuda_side_fetch *from = &side->waiting[i];
        size_t at = (uintptr_t)data - (uintptr_t)from->io.device;
        if (at >= from->bytes) continue;
        if (bytes > from->bytes - at) bytes = from->bytes - at;
        TD_TRY(copy_aside(side, &from->io, at, bytes, info));
    }
    return TD_OK;
}

const void *td_native_cuda_side_waits(const td_ops_side *side, const void *data,
                                      size_t bytes)
{
    for (uint32_t i = 0; i < side->waiting_count; i++) {
        const td_native_cuda_side_fetch *from = &side->waiting[i];
        size_t at = (uintptr_t)data - (uintptr_t)from->io.device;
        if (at < from->bytes && bytes <= from->bytes - at)
            return (const char *)from->io.host + at;
    }
    return NULL;
}

uint32_t *td_native_cuda_side_take_words(td_ops_side *side, size_t count)
{
    if (count > TD_NATIVE_CUDA_SIDE_WORDS - side->words_used) return NULL;
    uint32_t *words = side->words + side->words_used;
    side->words_used += (uint32_t)count;
    return words;
}

td_err td_native_cuda_side_clear(td_ops_side *side, uint32_t *words,
                                 size_t count, td_errinfo *info)
{
    cudaError_t error = follow(side, side->aside, side->stream);
    if (error == cudaSuccess)
        error = cudaMemsetAsync(words, 0, count * sizeof *words, side->aside);
    return error == cudaSuccess
               ? TD_OK
               : td_native_cuda_side_fail(info, error, "recording");
}

static cudaError_t instantiate(td_ops_side *side, cudaGraphExec_t *ret_exec)
{
    cudaGraph_t graph = NULL;
    side->is_recording = false;
    cudaError_t joined = follow(side, side->stream, side->aside);
    cudaError_t error = cudaStreamEndCapture(side->stream, &graph);
    if (error == cudaSuccess) error = joined;
    if (error != cudaSuccess) return error;
    error = cudaGraphInstantiate(ret_exec, graph, 0);
    (void)cudaGraphDestroy(graph);
    if (error == cudaSuccess) error = cudaGraphUpload(*ret_exec, side->stream);
    // Weights may still be on their way, in no stream of ours.
    if (error == cudaSuccess) error = cudaDeviceSynchronize();
    return error;
}

static td_err end(td_ops_side *side, td_ops_program **ret_program,
                  td_errinfo *info)
{
    td_ops_program *program = (td_ops_program *)calloc(1, sizeof *program);
    if (!program) return TD_ERR_NOMEM;
    program->next = side->programs;
    side->programs = program;
    cudaError_t error = instantiate(side, &program->exec);
    if (error != cudaSuccess)
        return td_native_cuda_side_fail(info, error, "making a graph");
    *ret_program = program;
    return TD_OK;
}

static td_err run(td_ops_side *side, td_ops_program *program, td_errinfo *info)
{
    cudaError_t error = cudaGraphLaunch(program->exec, side->stream);
    if (error == cudaSuccess) error = cudaStreamSynchronize(side->stream);
    return error == cudaSuccess
               ? TD_OK
               : td_native_cuda_side_fail(info, error, "running");
}

static const td_ops ops = {
    "cuda",
    open_side,
    close_side,
    info_of,
    td_native_cuda_side_alloc,
    td_native_cuda_side_alloc_io,
    td_native_cuda_weights_linear,
    td_native_cuda_weights_conv,
    td_native_cuda_weights_norm,
    td_native_cuda_weights_upload,
    begin,
    fetch,
    td_native_cuda_record_give,
    td_native_cuda_record_linear,
    td_native_cuda_record_conv,
    td_native_cuda_record_norm,
    td_native_cuda_record_attention,
    end,
    run,
};

extern "C" __attribute__((visibility("default"))) const td_ops *
td_ops_cuda(uint32_t version)
{
    return version == TD_OPS_VERSION ? &ops : NULL;
}
