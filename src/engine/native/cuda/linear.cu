// SPDX-License-Identifier: Apache-2.0
// Linear layers of tokens: out = x W^T and what is done with it, one product
// with wgmma.
//
// A block makes a tile of the result in steps of 64 along K. One of its warps
// has the copy engine fill a ring of STAGES; the others multiply. Weights are
// nobody's output, so that those of the first stages are on their way before
// the kernel waits for the one before it.
//
// The rows of a tile's weight come in two halves, which need not be neighbours:
// of a gated weight they are the same columns of its two parts, of heads that
// are turned and larger than a tile the two numbers that a turn mixes. So
// whatever is to be joined stands in one tile, `apart` columns from each other,
// and is joined as it leaves (linear_ending.cuh).
//
// How large tiles are is chosen by what each size was measured to take, when
// the graph is built. Few tiles are shared: a cluster of blocks has one, each
// takes a part of K, and they add up through each other's shared memory in a
// fixed order.
//
// Blocks that share what they read (multicast) were tried and gave nothing: the
// largest tiles keep the matrix units busy as it is.
#include "engine/native/cuda/linear_ending.cuh"

#include <string.h>

// The ring, in shared memory: the stages, and for each what is full and empty.
template <int TILE_M, int TILE_N, int STAGES> struct ring {
    static constexpr uint32_t a_bytes = TILE_M * STEP_BYTES;
    static constexpr uint32_t half_bytes = TILE_N / 2 * STEP_BYTES;
    static constexpr uint32_t bytes = a_bytes + 2 * half_bytes;
    static constexpr uint32_t size = STAGES * (bytes + 16) + 1024;
    uint32_t memory;

    __device__ __forceinline__ uint32_t stage(int i) const
    {
        return memory + (uint32_t)i * bytes;
    }
    __device__ __forceinline__ uint32_t full(int i) const
    {
        return memory + STAGES * bytes + (uint32_t)i * 16;
    }
    __device__ __forceinline__ uint32_t empty(int i) const
    {
        return full(i) + 8;
    }
};

// Where a block works.
typedef struct tile {
    int rank;       // in its cluster
    int row;        // the first of the result
    int begin, end; // of its steps
    halves of;
} tile;

template <int TILE_M, int TILE_N, int STAGES>
__device__ __forceinline__ static void
load_weight(ring<TILE_M, TILE_N, STAGES> r, const product *p, const tile *t,
            int i, int step)
{
    const uint32_t to = r.stage(i) + r.a_bytes, full = r.full(i);
    barrier_expect(full, r.bytes);
    copy_box(to, &p->weight, step * STEP, t->of.first, full);
    copy_box(to + r.half_bytes, &p->weight, step * STEP, t->of.second, full);
}

template <int TILE_M, int TILE_N, int STAGES>
__device__ __forceinline__ static void load_rows(ring<TILE_M, TILE_N, STAGES> r,
                                                 const product *p,
                                                 const tile *t, int i, int step)
{
    const int column = step * STEP;
    if (p->is_flat)
        copy_box(r.stage(i), &p->x, column, t->row, r.full(i));
    else
        copy_pixels(r.stage(i), &p->x, column, t->row % p->op.rows, 0,
                    t->row / p->op.rows, 0, 0, r.full(i));
}

// The feeding thread.
template <int TILE_M, int TILE_N, int STAGES>
__device__ static void feed(ring<TILE_M, TILE_N, STAGES> r, const product *p,
                            const tile *t)
{
    const int early = min(t->begin + STAGES, t->end);
    for (int step = t->begin, i = 0; step < early; step++, i++)
        load_weight(r, p, t, i, step);
    wait_for_earlier();
    for (int step = t->begin, i = 0, lap = 0; step < t->end; step++) {
        if (step >= early) {
            barrier_wait(r.empty(i), (uint32_t)(lap - 1) & 1);
            load_weight(r, p, t, i, step);
        }
        load_rows(r, p, t, i, step);
        if (++i == STAGES) {
            i = 0;
            lap++;
        }
    }
}

// The warps that multiply.
template <int TILE_M, int TILE_N, int STAGES>
__device__ static inline void eat(ring<TILE_M, TILE_N, STAGES> r, int count,
                                  float (&sum)[columns_of(TILE_N) / 2])
{
    const uint32_t group = threadIdx.x / 128;
    const uint32_t rows = group % (TILE_M / 64) * 64 * STEP_BYTES;
    const uint32_t columns = r.a_bytes + group / (TILE_M / 64) * r.half_bytes;
    int stage = 0, before = STAGES - 1;
    uint32_t parity = 0;
    for (int i = 0; i < count; i++) {
        barrier_wait(r.full(stage), parity);
        uint64_t a = matrix_at(r.stage(stage) + rows);
        uint64_t b = matrix_at(r.stage(stage) + columns);
        wgmma_begin();
#pragma unroll
        for (int j = 0; j < STEP / 16; j++)
            multiply(sum, a + j * 2, b + j * 2, i > 0 || j > 0);
        wgmma_commit();
        wgmma_wait<1>();
        if (i > 0 && threadIdx.x % 32 == 0) barrier_arrive(r.empty(before));
        before = stage;
        if (++stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }
    wgmma_wait<0>();
}

template <int TILE_N>
__device__ __forceinline__ static tile tile_of(const product *p, int tile_m)
{
    const int x = (int)blockIdx.x;
    tile t;
    t.rank = x % p->share;
    t.row = x / p->share * tile_m;
    t.of = halves_of<TILE_N>(p, (int)blockIdx.y);
    t.begin = p->steps * t.rank / p->share;
    t.end = p->steps * (t.rank + 1) / p->share;
    return t;
}

// From the registers of wgmma to rows in shared memory.
template <int TILE_M, int TILE_N>
__device__ __forceinline__ static void
spread(const float (&sum)[columns_of(TILE_N) / 2], float *sums)
{
    constexpr int pitch = TILE_N + 8;
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    const int row = warp % (TILE_M / 16) * 16 + lane / 4;
    const int column = warp / (TILE_M / 16) * columns_of(TILE_N);
#pragma unroll
    for (int i = 0; i < columns_of(TILE_N) / 8; i++) {
        float *to = sums + row * pitch + column + i * 8 + lane % 4 * 2;
        *(float2 *)to = make_float2(sum[4 * i], sum[4 * i + 1]);
        *(float2 *)(to + 8 * pitch) =
            make_float2(sum[4 * i + 2], sum[4 * i + 3]);
    }
}

template <int TILE_M, int TILE_N, int STAGES, bool IS_SHARED>
__global__ void __launch_bounds__(groups_of(TILE_M, TILE_N) * 128 + 32,
                                  TILE_M *TILE_N > 128 * 128 ? 1 : 2)
    linear_kernel(const __grid_constant__ product p)
{
    constexpr int warps = groups_of(TILE_M, TILE_N) * 4; // that multiply
    typedef ring<TILE_M, TILE_N, STAGES> here;
    static_assert(TILE_M * (TILE_N + 8) * 4 <= STAGES * here::bytes,
                  "sums fit");
    extern __shared__ uint8_t shared[];
    here r;
    r.memory = (shared_address(shared) + 1023) & ~1023u;
    const bool feeds = threadIdx.x / 32 == warps; // the last warp
    const tile t = tile_of<TILE_N>(&p, TILE_M);

    if (threadIdx.x == warps * 32) {
        prefetch_map(&p.x);
        prefetch_map(&p.weight);
        for (int i = 0; i < STAGES; i++) {
            barrier_init(r.full(i), 1);
            barrier_init(r.empty(i), warps);
        }
        barriers_are_made();
    }
    __syncthreads();

    float sum[columns_of(TILE_N) / 2];
    ending<TILE_M, TILE_N, IS_SHARED> last;
    if (feeds) {
        if (threadIdx.x % 32 == 0) feed(r, &p, &t);
        __syncwarp();
    } else {
        if (TILE_N <= 64) last.begin(&p, t.row, t.rank, &t.of);
        wait_for_earlier();
        if (TILE_N <= 64) last.read(&p, last.row);
        eat<TILE_M, TILE_N, STAGES>(r, t.end - t.begin, sum);
    }
    let_next_start();
    __syncthreads();
    if (!feeds) {
        spread<TILE_M, TILE_N>(
            sum, (float *)(shared + (r.memory - shared_address(shared))));
        if (TILE_N > 64) last.begin(&p, t.row, t.rank, &t.of);
        if (TILE_N > 64) last.read(&p, last.row);
    }
    if (IS_SHARED)
        cluster_sync();
    else
        __syncthreads();
    if (!feeds) last.write(&p, r.memory);
    if (IS_SHARED) cluster_sync(); // until nobody needs this block's memory
}

#define MULTIPROCESSORS 132
#define SHARED_BLOCKS 104 // of clusters, at most

static int ceiling(int a, int b)
{
    return (a + b - 1) / b;
}

// The driver's functions, which the runtime finds.
template <typename T> static bool find(const char *name, T *ret_function)
{
    cudaDriverEntryPointQueryResult found;
    void *function;
    if (cudaGetDriverEntryPointByVersion(
            name, &function, 12000, cudaEnableDefault, &found) != cudaSuccess ||
        found != cudaDriverEntryPointSuccess)
        return false;
    *ret_function = (T)function;
    return true;
}

// A matrix of rows that are `pitch` apart, and how much of it is a box.
static bool map_matrix(const void *at, int width, int rows, int64_t pitch,
                       int box_rows, CUtensorMap *ret_map)
{
    decltype(&cuTensorMapEncodeTiled) encode;
    if (!find("cuTensorMapEncodeTiled", &encode)) return false;
    const cuuint64_t size[2] = {(cuuint64_t)width, (cuuint64_t)rows};
    const cuuint64_t apart[1] = {(cuuint64_t)pitch * 2};
    const cuuint32_t box[2] = {STEP, (cuuint32_t)box_rows}, step[2] = {1, 1};
    return encode(ret_map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2,
                  (void *)(uintptr_t)at, size, apart, box, step,
                  CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                  CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

// Rows of batches that are apart, one after the other: pixels of pictures of
// one line.
static bool map_apart(const td_native_cuda_linear *op, int box_rows,
                      CUtensorMap *ret_map)
{
    decltype(&cuTensorMapEncodeIm2col) encode;
    if (!find("cuTensorMapEncodeIm2col", &encode)) return false;
    const cuuint64_t size[4] = {(cuuint64_t)op->weight.ins,
                                (cuuint64_t)op->rows, 1,
                                (cuuint64_t)op->batches};
    const cuuint64_t line = (cuuint64_t)op->x.row * 2;
    const cuuint64_t apart[3] = {line, line * size[1],
                                 (cuuint64_t)op->x.batch * 2};
    const int none[2] = {0, 0};
    const cuuint32_t step[4] = {1, 1, 1, 1};
    return encode(ret_map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 4, op->x.at, size,
                  apart, none, none, STEP, (cuuint32_t)box_rows, step,
                  CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                  CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

template <int TILE_M, int TILE_N, int STAGES, bool IS_SHARED>
static cudaError_t run_tiles(product *p, int share, td_native_cuda_order order)
{
    const td_native_cuda_linear *op = &p->op;
    const td_native_cuda_filter *weight = &op->weight;
    p->share = share;
    lay_out<TILE_N>(p);
    if (!map_matrix(weight->weight, td_native_cuda_up(weight->ins, STEP),
                    weight->outs, td_native_cuda_up(weight->ins, STEP),
                    TILE_N / 2, &p->weight) ||
        !(p->is_flat ? map_matrix(op->x.at, weight->ins, p->all_rows, op->x.row,
                                  TILE_M, &p->x)
                     : map_apart(op, TILE_M, &p->x)))
        return cudaErrorInvalidValue;
    int down = ceiling(p->all_rows, TILE_M), across = ceiling(p->tiled, TILE_N);
    launch how = {};
    how.grid = dim3((unsigned)(down * share), (unsigned)across);
    how.cluster = (unsigned)share;
    how.threads = groups_of(TILE_M, TILE_N) * 128 + 32;
    how.shared_bytes = ring<TILE_M, TILE_N, STAGES>::size;
    return start(linear_kernel<TILE_M, TILE_N, STAGES, IS_SHARED>, &how, p,
                 order);
}

// A tile, how many blocks of it run at once on a multiprocessor, and how long
// they take (microseconds on an H200): each, each step alone, and each step
// where all are full.
typedef struct shape {
    int rows, columns, at_once;
    float fixed, step, step_full;
    cudaError_t (*run)(product *p, int share, td_native_cuda_order order);
} shape;

static const shape shapes[] = {
    {64, 64, 2, 1.6f, 0.25f, 0.33f, run_tiles<64, 64, 6, false>},
    {64, 128, 2, 3.5f, 0.25f, 0.48f, run_tiles<64, 128, 4, false>},
    {128, 128, 1, 4.0f, 0.30f, 0.36f, run_tiles<128, 128, 6, false>},
    {192, 128, 1, 5.6f, 0.44f, 0.50f, run_tiles<192, 128, 4, false>},
    {128, 256, 1, 6.5f, 0.58f, 0.68f, run_tiles<128, 256, 4, false>},
};

static float time_of(const product *p, const shape *of)
{
    const int tiles =
        ceiling(p->all_rows, of->rows) * ceiling(p->tiled, of->columns);
    const float step =
        tiles > MULTIPROCESSORS || of->at_once == 1 && tiles > 100
            ? of->step_full
            : of->step;
    return (float)ceiling(tiles, MULTIPROCESSORS * of->at_once) *
           (of->fixed + step * (float)p->steps);
}

// Few tiles: several blocks share one, where that is sooner.
static int share_of(const product *p, float *time)
{
    const int tiles = ceiling(p->all_rows, 64) * ceiling(p->tiled, 64);
    int best = 1;
    for (int share = 2; share <= MOST_SHARE; share++) {
        const int steps = p->steps / share;
        if (steps < 2 || tiles * share > SHARED_BLOCKS) break;
        const float shared = 3.0f + 0.15f * (float)share + 0.2f * (float)steps;
        if (shared >= *time) continue;
        *time = shared;
        best = share;
    }
    return best;
}

static cudaError_t run_best(product *p, td_native_cuda_order order)
{
    const shape *best = &shapes[0];
    float least = time_of(p, best);
    for (const shape &of : shapes)
        if (time_of(p, &of) < least) {
            best = &of;
            least = time_of(p, &of);
        }
    const int share = share_of(p, &least);
    return share > 1 ? run_tiles<64, 64, 6, true>(p, share, order)
                     : best->run(p, 1, order);
}

// One block of rows, where batches are no further apart than rows.
static bool is_flat(const td_native_cuda_linear *op)
{
    return op->batches == 1 || op->x.batch == (int64_t)op->rows * op->x.row;
}

bool td_native_cuda_linear_turns(const td_native_cuda_rotary *rotary)
{
    const int size = rotary->size;
    return size == 16 || size == 32 || size == 64 || size == 128 ||
           size % 256 == 0;
}

cudaError_t td_native_cuda_linear_run(const td_native_cuda_linear *linear,
                                      td_native_cuda_order order)
{
    product p;
    memset(&p, 0, sizeof p);
    p.op = *linear;
    p.all_rows = linear->batches * linear->rows;
    p.outs = linear->second ? linear->second : linear->weight.outs;
    p.tiled = linear->weight.outs;
    p.steps = ceiling(linear->weight.ins, STEP);
    p.is_scaled = linear->scale != 0 || linear->gates.at;
    p.is_flat = is_flat(linear);
    if (linear->activation == TD_NATIVE_CUDA_SILU) p.curve[0] = 1;
    if (linear->activation == TD_NATIVE_CUDA_GELU_TANH) {
        p.curve[0] = 1.59576912f; // 2 sqrt(2 / pi)
        p.curve[1] = 0.0713548163f;
    }
    return run_best(&p, order);
}
