// SPDX-License-Identifier: Apache-2.0
// The instructions of Hopper that CUDA C has no word for, one function each.
//
// Copies: cp.async (16 bytes from global into shared memory, in groups that can
// be waited for) and the copy engine (a box of a tensor, which arrives at a
// barrier). Barriers in shared memory count arrivals and bytes, phase by phase;
// of a cluster, each block sees the others' shared memory.
//
// Products: wgmma, four warps together, 64 rows at a time, from shared memory
// in the layout that swizzles 128 bytes; results stay in registers until
// wgmma_wait.
//
// Dependent launches: a kernel lets the next one start, and the next waits for
// what this one wrote.
#ifndef TD_ENGINE_NATIVE_CUDA_DEVICE_CUH
#define TD_ENGINE_NATIVE_CUDA_DEVICE_CUH

#include "engine/native/cuda/kernels.h"

#include <cuda.h>

typedef __nv_bfloat16 bf16;

__device__ static inline uint32_t shared_address(const void *memory)
{
    return (uint32_t)__cvta_generic_to_shared(memory);
}

// 16 bytes from global into shared memory; the last 16 - `bytes` are zeros.
__device__ static inline void copy16(uint32_t to, const void *from,
                                     uint32_t bytes)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(to),
                 "l"(from), "r"(bytes));
}

__device__ static inline void copy_commit(void)
{
    asm volatile("cp.async.commit_group;\n" ::: "memory");
}

// Until at most PENDING of the committed groups are under way.
template <int PENDING> __device__ static inline void copy_wait(void)
{
    asm volatile("cp.async.wait_group %0;\n" ::"n"(PENDING) : "memory");
}

// A barrier in shared memory that counts arrivals and bytes, phase by phase.
__device__ static inline void barrier_init(uint32_t barrier, uint32_t arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(barrier),
                 "r"(arrivals)
                 : "memory");
}

// The barriers are there for the copies.
__device__ static inline void barriers_are_made(void)
{
    asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory");
}

__device__ static inline void barrier_arrive(uint32_t barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];\n" ::"r"(barrier)
                 : "memory");
}

// Arrives, and has the phase wait for so many bytes.
__device__ static inline void barrier_expect(uint32_t barrier, uint32_t bytes)
{
    asm volatile(
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(
            barrier),
        "r"(bytes)
        : "memory");
}

// Until the phase of this parity is over.
__device__ static inline void barrier_wait(uint32_t barrier, uint32_t parity)
{
    asm volatile("{\n.reg .pred over;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 over, [%0], %1;\n"
                 "@!over bra again;\n}\n" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
}

// A box of a matrix into shared memory; `barrier` counts its bytes.
__device__ static inline void copy_box(uint32_t to, const CUtensorMap *map,
                                       int column, int row, uint32_t barrier)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::"
                 "complete_tx::bytes [%0], [%1, {%2, %3}], [%4];\n" ::"r"(to),
                 "l"(map), "r"(column), "r"(row), "r"(barrier)
                 : "memory");
}

// Channels of pixels into shared memory, from a filter's corner at (x, y) on,
// moved by a tap; `barrier` counts the bytes.
__device__ static inline void copy_pixels(uint32_t to, const CUtensorMap *map,
                                          int channel, int x, int y, int image,
                                          int tap_x, int tap_y,
                                          uint32_t barrier)
{
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col."
                 "mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], "
                 "[%6], {%7, %8};\n" ::"r"(to),
                 "l"(map), "r"(channel), "r"(x), "r"(y), "r"(image),
                 "r"(barrier), "h"((uint16_t)tap_x), "h"((uint16_t)tap_y)
                 : "memory");
}

__device__ static inline void prefetch_map(const CUtensorMap *map)
{
    asm volatile("prefetch.tensormap [%0];\n" ::"l"(map) : "memory");
}

// The kernel after this one may start; it waits in wait_for_earlier().
__device__ static inline void let_next_start(void)
{
    asm volatile("griddepcontrol.launch_dependents;\n" ::: "memory");
}

// Until what the kernels before this one wrote can be read.
__device__ static inline void wait_for_earlier(void)
{
    asm volatile("griddepcontrol.wait;\n" ::: "memory");
}

// A word by which blocks of kernels that run together say that something is
// written.
__device__ static inline void say(uint32_t *word)
{
    asm volatile("st.release.gpu.global.u32 [%0], 1;\n" ::"l"(word) : "memory");
}

__device__ static inline void wait_until_said(const uint32_t *word)
{
    uint32_t said;
    do
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];\n"
                     : "=r"(said)
                     : "l"(word)
                     : "memory");
    while (!said);
}

__device__ static inline void cluster_sync(void)
{
    asm volatile("barrier.cluster.arrive.release.aligned;\n"
                 "barrier.cluster.wait.acquire.aligned;\n" ::
                     : "memory");
}

// Four floats of the shared memory of block `rank` of this cluster.
__device__ static inline float4 cluster_load(uint32_t address, uint32_t rank)
{
    float4 value;
    asm volatile("{\n.reg .b32 there;\n"
                 "mapa.shared::cluster.u32 there, %4, %5;\n"
                 "ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [there];\n}\n"
                 : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
                 : "r"(address), "r"(rank)
                 : "memory");
    return value;
}

// A matrix for wgmma: rows of 64 values (128 bytes), K along the row, the
// sixteenths of a row exchanged by swizzled().
__device__ static inline uint64_t matrix_at(uint32_t address)
{
    return (uint64_t)((address & 0x3ffff) >> 4) | UINT64_C(1) << 16 |
           UINT64_C(64) << 32 | UINT64_C(1) << 62;
}

// Where 16 bytes number `chunk` of row `row` stand in such a matrix.
__device__ static inline uint32_t swizzled(int row, int chunk)
{
    return (uint32_t)(row * 128 + ((chunk ^ (row & 7)) << 4));
}

__device__ static inline void wgmma_begin(void)
{
    asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory");
}

__device__ static inline void wgmma_commit(void)
{
    asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory");
}

template <int PENDING> __device__ static inline void wgmma_wait(void)
{
    asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(PENDING)
                 : "memory");
}

// What this thread wrote to shared memory is there for wgmma.
__device__ static inline void shared_for_wgmma(void)
{
    asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory");
}

#define TD_4(d, i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define TD_16(d, i) TD_4(d, i), TD_4(d, i + 4), TD_4(d, i + 8), TD_4(d, i + 12)

// sum (64 x 64) = a (64 x 16) times b (64 x 16) transposed, plus sum if `keep`.
__device__ static inline void multiply(float (&sum)[32], uint64_t a, uint64_t b,
                                       int keep)
{
    asm volatile(
        "{\n.reg .pred keep;\nsetp.ne.b32 keep, %34, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, "
        "%15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, "
        "%28, %29, %30, %31}, %32, %33, keep, 1, 1, 0, 0;\n}\n"
        : TD_16(sum, 0), TD_16(sum, 16)
        : "l"(a), "l"(b), "r"(keep));
}

// The same with a in registers, as mma has it.
__device__ static inline void multiply(float (&sum)[32], const uint32_t (&a)[4],
                                       uint64_t b, int keep)
{
    asm volatile(
        "{\n.reg .pred keep;\nsetp.ne.b32 keep, %37, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, "
        "%15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, "
        "%28, %29, %30, %31}, {%32, %33, %34, %35}, %36, keep, 1, 1, 0;\n}\n"
        : TD_16(sum, 0), TD_16(sum, 16)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(keep));
}

// The same with b (128 x 16).
__device__ static inline void multiply(float (&sum)[64], uint64_t a, uint64_t b,
                                       int keep)
{
    asm volatile(
        "{\n.reg .pred keep;\nsetp.ne.b32 keep, %66, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, "
        "%15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, "
        "%28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, "
        "%41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, "
        "%54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, %64, %65, keep, "
        "1, 1, 0, 0;\n}\n"
        : TD_16(sum, 0), TD_16(sum, 16), TD_16(sum, 32), TD_16(sum, 48)
        : "l"(a), "l"(b), "r"(keep));
}

#undef TD_16
#undef TD_4

__device__ static inline uint32_t pack(float low, float high)
{
    __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
    return *(const uint32_t *)&both;
}

__device__ static inline float low_of(uint32_t both)
{
    return __uint_as_float(both << 16);
}

__device__ static inline float high_of(uint32_t both)
{
    return __uint_as_float(both & 0xffff0000u);
}

#endif
