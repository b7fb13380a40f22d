// SPDX-License-Identifier: Apache-2.0
// Convolutions and linear layers as one matrix product: a row of A is what the
// filter sees from one output pixel, a row of B is one filter. A block makes
// TILE_M x TILE_N of the result in steps of 64 along K, with wgmma. One of its
// warps feeds the others: the copy engine gathers the pixels by itself, into a
// ring of STAGES.
//
// The projection of a shortcut is more steps along K, with pixels and filters
// of its own. Bias, addition and ReLU happen as the result leaves the
// registers.
//
// Where the result has too few tiles for all multiprocessors, a cluster of
// SHARE blocks shares one: each takes a part of K, and they add up through each
// other's shared memory in a fixed order, so that equal inputs give equal bits.
// Which tile and which SHARE is chosen when the graph is built, by the result's
// size.
#include "engine/native/cuda/device.cuh"
#include "engine/native/cuda/launch.cuh"

#include <string.h>

#define STEP 64 // values along K in one step
#define STEP_BYTES (STEP * 2)

// A map and its filters, for the copy engine.
typedef struct source {
    CUtensorMap pixels, filters;
    int32_t kernel, step, pad, dilation;
} source;

typedef struct product {
    source x, shortcut;
    const float *bias, *shortcut_bias; // the second may be NULL
    td_native_cuda_rows add, out;
    float *out_float;
    int32_t rows, outs;      // of the result
    int32_t batches, pixels; // of which rows are
    int32_t out_width;
    int32_t steps;         // along K, in all
    int32_t shortcut_from; // the first of them that reads `shortcut`
    bool relu;
} product;

// The ring, in shared memory: what is full, what is empty, and the stages.
template <int TILE_M, int TILE_N, int STAGES> struct ring {
    static constexpr uint32_t a_bytes = TILE_M * STEP_BYTES;
    static constexpr uint32_t bytes = a_bytes + TILE_N * STEP_BYTES;
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

// A block's steps, one after the other.
typedef struct cursor {
    const source *from;
    int x, y, image;           // the filter's corner for the tile's first row
    int channel, tap_x, tap_y; // of A
    int column;                // of B
} cursor;

__device__ static void cursor_begin(cursor *c, const product *p,
                                    const source *from, int row, int step)
{
    int image = row / p->pixels, pixel = row - image * p->pixels;
    int y = pixel / p->out_width, x = pixel - y * p->out_width;
    int taps = from->kernel * from->kernel;
    c->from = from;
    c->image = image;
    c->y = y * from->step - from->pad;
    c->x = x * from->step - from->pad;
    c->channel = step / taps * STEP;
    c->tap_y = step % taps / from->kernel;
    c->tap_x = step % taps % from->kernel;
    c->column = step * STEP;
}

__device__ static void cursor_next(cursor *c)
{
    c->column += STEP;
    if (++c->tap_x < c->from->kernel) return;
    c->tap_x = 0;
    if (++c->tap_y < c->from->kernel) return;
    c->tap_y = 0;
    c->channel += STEP;
}

__device__ static void cursor_at(cursor *c, const product *p, int row, int step)
{
    if (step < p->shortcut_from)
        cursor_begin(c, p, &p->x, row, step);
    else
        cursor_begin(c, p, &p->shortcut, row, step - p->shortcut_from);
}

// The feeding thread: steps [begin, end) into the ring. Weights are nobody's
// output: as many as fit need not wait for the kernel before.
template <int TILE_M, int TILE_N, int STAGES>
__device__ static void feed(ring<TILE_M, TILE_N, STAGES> r, const product *p,
                            int row, int out, int begin, int end)
{
    cursor c;
    int early = min(begin + STAGES, end);
    cursor_at(&c, p, row, begin);
    for (int step = begin, i = 0; step < early; step++, i++) {
        if (step == p->shortcut_from) cursor_at(&c, p, row, step);
        barrier_expect(r.full(i), r.bytes);
        copy_box(r.stage(i) + r.a_bytes, &c.from->filters, c.column, out,
                 r.full(i));
        cursor_next(&c);
    }
    wait_for_earlier();
    cursor_at(&c, p, row, begin);
    for (int step = begin, i = 0, lap = 0; step < end; step++) {
        if (step == p->shortcut_from) cursor_at(&c, p, row, step);
        if (step >= early) {
            barrier_wait(r.empty(i), (uint32_t)(lap - 1) & 1);
            barrier_expect(r.full(i), r.bytes);
            copy_box(r.stage(i) + r.a_bytes, &c.from->filters, c.column, out,
                     r.full(i));
        }
        copy_pixels(r.stage(i), &c.from->pixels, c.channel, c.x, c.y, c.image,
                    c.tap_x * c.from->dilation, c.tap_y * c.from->dilation,
                    r.full(i));
        cursor_next(&c);
        if (++i == STAGES) {
            i = 0;
            lap++;
        }
    }
}

// The warps that multiply.
template <int TILE_M, int TILE_N, int STAGES>
__device__ static inline void eat(ring<TILE_M, TILE_N, STAGES> r, int count,
                                  float (&sum)[TILE_N / 2])
{
    const uint32_t group = threadIdx.x / 128 * 64 * STEP_BYTES;
    int stage = 0, before = STAGES - 1;
    uint32_t parity = 0;
    for (int i = 0; i < count; i++) {
        barrier_wait(r.full(stage), parity);
        uint64_t a = matrix_at(r.stage(stage) + group);
        uint64_t b = matrix_at(r.stage(stage) + r.a_bytes);
        wgmma_begin();
#pragma unroll
        for (int j = 0; j < STEP / 16; j++)
            multiply(sum, a + j * 2, b + j * 2, 1);
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

__device__ __forceinline__ static void add8(float *sum, uint4 other)
{
    const uint32_t pairs[4] = {other.x, other.y, other.z, other.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        sum[2 * i] += low_of(pairs[i]);
        sum[2 * i + 1] += high_of(pairs[i]);
    }
}

__device__ __forceinline__ static void add4(float *sum, float4 other)
{
    sum[0] += other.x;
    sum[1] += other.y;
    sum[2] += other.z;
    sum[3] += other.w;
}

// Eight neighbours of the sums, from all the blocks that share them.
template <int SHARE>
__device__ __forceinline__ static void collect(uint32_t at, float *sum)
{
    float4 low[SHARE], high[SHARE];
#pragma unroll
    for (int i = 0; i < SHARE; i++) {
        low[i] = cluster_load(at, (uint32_t)i);
        high[i] = cluster_load(at + 16, (uint32_t)i);
    }
#pragma unroll
    for (int i = 0; i < SHARE; i++) {
        add4(sum, low[i]);
        add4(sum + 4, high[i]);
    }
}

// What a thread finishes: always the same eight columns, and PASSES rows. All
// that does not come from the product is read before it is needed.
template <int TILE_M, int TILE_N, int SHARE> struct ending {
    static constexpr int threads = TILE_M * 2;
    static constexpr int together = threads / (TILE_N / 8);   // rows
    static constexpr int most = (TILE_M + SHARE - 1) / SHARE; // rows of a block
    static constexpr int passes = (most + together - 1) / together;
    int first, row; // of the tile and of the thread's in it
    int end;        // of the block's rows in it
    int out, out_in_tile;
    float bias[8];
    uint4 add[passes];

    __device__ __forceinline__ void begin(const product *p, int tile_row,
                                          int tile_out, int rank)
    {
        first = tile_row;
        row = TILE_M * rank / SHARE + (int)threadIdx.x / (TILE_N / 8);
        end = TILE_M * (rank + 1) / SHARE;
        out_in_tile = (int)threadIdx.x % (TILE_N / 8) * 8;
        out = tile_out + out_in_tile;
        for (int i = 0; i < 8; i++)
            bias[i] = 0;
        const float4 *from = (const float4 *)(p->bias + out);
        add4(bias, from[0]);
        add4(bias + 4, from[1]);
        if (!p->shortcut_bias) return;
        from = (const float4 *)(p->shortcut_bias + out);
        add4(bias, from[0]);
        add4(bias + 4, from[1]);
    }

    __device__ __forceinline__ bool has(const product *p, int pass) const
    {
        int mine = row + pass * together;
        return mine < end && first + mine < p->rows && out < p->outs;
    }

    // Where a pass is in a matrix like the result.
    __device__ __forceinline__ int64_t place(const product *p,
                                             const td_native_cuda_rows *rows,
                                             int pass) const
    {
        int all = first + row + pass * together;
        if (p->batches == 1) return (int64_t)all * rows->row + out;
        int batch = all / p->pixels;
        return batch * rows->batch +
               (int64_t)(all - batch * p->pixels) * rows->row + out;
    }

    __device__ __forceinline__ void read(const product *p)
    {
#pragma unroll
        for (int i = 0; i < passes; i++) {
            add[i] = make_uint4(0, 0, 0, 0);
            if (p->add.at && has(p, i))
                add[i] = *(const uint4 *)(p->add.at + place(p, &p->add, i));
        }
    }

    __device__ __forceinline__ void write(const product *p, uint32_t sums,
                                          int pitch) const
    {
#pragma unroll
        for (int i = 0; i < passes; i++) {
            if (!has(p, i)) continue;
            float sum[8];
            for (int j = 0; j < 8; j++)
                sum[j] = bias[j];
            int at = (row + i * together) * pitch + out_in_tile;
            collect<SHARE>(sums + (uint32_t)at * 4, sum);
            add8(sum, add[i]);
            if (p->relu)
                for (int j = 0; j < 8; j++)
                    sum[j] = fmaxf(sum[j], 0);
            put(p, place(p, &p->out, i), sum);
        }
    }

    __device__ __forceinline__ void put(const product *p, int64_t at,
                                        const float *sum) const
    {
        if (!p->out_float) {
            *(uint4 *)(p->out.at + at) =
                make_uint4(pack(sum[0], sum[1]), pack(sum[2], sum[3]),
                           pack(sum[4], sum[5]), pack(sum[6], sum[7]));
            return;
        }
        for (int j = 0; j < 8; j++)
            if (out + j < p->outs) p->out_float[at + j] = sum[j];
    }
};

template <int TILE_M, int TILE_N, int STAGES, int SHARE>
__global__ void __launch_bounds__(TILE_M * 2 + 32)
    multiply_kernel(const __grid_constant__ product p)
{
    constexpr int pitch = TILE_N + 8; // of the sums, in floats
    typedef ring<TILE_M, TILE_N, STAGES> here;
    static_assert(TILE_M * pitch * 4 <= STAGES * here::bytes, "sums fit");
    extern __shared__ uint8_t shared[];
    here r;
    r.memory = (shared_address(shared) + 1023) & ~1023u;
    const bool feeds = threadIdx.x / 32 == TILE_M / 16; // the last warp
    const int rank = (int)blockIdx.x % SHARE;
    const int first_row = (int)blockIdx.x / SHARE * TILE_M;
    const int first_out = (int)blockIdx.y * TILE_N;
    const int begin = p.steps * rank / SHARE;
    const int end = p.steps * (rank + 1) / SHARE;

    if (threadIdx.x == TILE_M * 2) {
        prefetch_map(&p.x.pixels);
        prefetch_map(&p.x.filters);
        for (int i = 0; i < STAGES; i++) {
            barrier_init(r.full(i), 1);
            barrier_init(r.empty(i), TILE_M / 16);
        }
        barriers_are_made();
    }
    __syncthreads();

    float sum[TILE_N / 2];
    for (int i = 0; i < TILE_N / 2; i++)
        sum[i] = 0;
    ending<TILE_M, TILE_N, SHARE> last;
    if (feeds) {
        if (threadIdx.x % 32 == 0)
            feed(r, &p, first_row, first_out, begin, end);
        __syncwarp();
    } else {
        last.begin(&p, first_row, first_out, rank);
        wait_for_earlier();
        last.read(&p);
        eat(r, end - begin, sum);
    }
    // Not before: the next kernel's blocks would crowd where there is room.
    let_next_start();
    __syncthreads();

    if (!feeds) {
        float *sums = (float *)(shared + (r.memory - shared_address(shared)));
        const int lane = (int)threadIdx.x % 32;
        const int row = (int)threadIdx.x / 32 * 16 + lane / 4;
#pragma unroll
        for (int i = 0; i < TILE_N / 8; i++) {
            float *to = sums + row * pitch + i * 8 + lane % 4 * 2;
            *(float2 *)to = make_float2(sum[4 * i], sum[4 * i + 1]);
            *(float2 *)(to + 8 * pitch) =
                make_float2(sum[4 * i + 2], sum[4 * i + 3]);
        }
    }
    if (SHARE > 1)
        cluster_sync();
    else
        __syncthreads();
    if (!feeds) last.write(&p, r.memory, pitch);
    if (SHARE > 1) cluster_sync(); // until nobody reads this block's
}

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

static bool map_pixels(const td_native_cuda_map *map, int batches, int tile_m,
                       CUtensorMap *ret_map)
{
    decltype(&cuTensorMapEncodeIm2col) encode;
    if (!find("cuTensorMapEncodeIm2col", &encode)) return false;
    const td_native_cuda_filter *f = &map->filter;
    const cuuint64_t size[4] = {(cuuint64_t)f->ins, (cuuint64_t)map->width,
                                (cuuint64_t)map->height, (cuuint64_t)batches};
    const cuuint64_t line = (cuuint64_t)map->rows.row * 2;
    const cuuint64_t picture = line * size[1] * size[2];
    const cuuint64_t apart[3] = {line, line * size[1],
                                 batches > 1 ? (cuuint64_t)map->rows.batch * 2
                                             : picture};
    const int lower[2] = {-f->pad, -f->pad};
    const int most = f->pad - (f->kernel - 1) * f->dilation;
    const int upper[2] = {most, most};
    const cuuint32_t step[4] = {1, (cuuint32_t)f->step, (cuuint32_t)f->step, 1};
    return encode(ret_map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 4, map->rows.at,
                  size, apart, lower, upper, STEP, (cuuint32_t)tile_m, step,
                  CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                  CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

static bool map_filters(const td_native_cuda_filter *f, int tile_n,
                        CUtensorMap *ret_map)
{
    decltype(&cuTensorMapEncodeTiled) encode;
    if (!find("cuTensorMapEncodeTiled", &encode)) return false;
    const cuuint64_t pitch = (cuuint64_t)f->kernel * f->kernel *
                             (cuuint64_t)td_native_cuda_up(f->ins, STEP);
    const cuuint64_t size[2] = {pitch,
                                (cuuint64_t)td_native_cuda_up(f->outs, 128)};
    const cuuint64_t apart[1] = {pitch * 2};
    const cuuint32_t box[2] = {STEP, (cuuint32_t)tile_n}, step[2] = {1, 1};
    void *weight = (void *)(uintptr_t)f->weight;
    return encode(ret_map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, weight, size,
                  apart, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
                  CU_TENSOR_MAP_SWIZZLE_128B,
                  CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

static bool source_of(const td_native_cuda_map *map, int batches, int tile_m,
                      int tile_n, source *ret_source)
{
    ret_source->kernel = map->filter.kernel;
    ret_source->step = map->filter.step;
    ret_source->pad = map->filter.pad;
    ret_source->dilation = map->filter.dilation;
    return map_pixels(map, batches, tile_m, &ret_source->pixels) &&
           map_filters(&map->filter, tile_n, &ret_source->filters);
}

template <int TILE_M, int TILE_N, int STAGES, int SHARE>
static cudaError_t run_tiles(const td_native_cuda_conv *conv, product *p,
                             td_native_cuda_order order)
{
    if (!source_of(&conv->x, conv->batches, TILE_M, TILE_N, &p->x) ||
        (conv->shortcut.rows.at && !source_of(&conv->shortcut, conv->batches,
                                              TILE_M, TILE_N, &p->shortcut)))
        return cudaErrorInvalidValue;
    launch how = {};
    how.grid = dim3((unsigned)(ceiling(p->rows, TILE_M) * SHARE),
                    (unsigned)ceiling(p->outs, TILE_N));
    how.cluster = SHARE;
    how.threads = TILE_M * 2 + 32;
    how.shared_bytes = ring<TILE_M, TILE_N, STAGES>::size;
    return start(multiply_kernel<TILE_M, TILE_N, STAGES, SHARE>, &how, p,
                 order);
}

// Few tiles, each in 64 x 64: as many blocks share one as there is room for, as
// long as each has eight steps.
static cudaError_t run_few(const td_native_cuda_conv *conv, product *p,
                           int tiles, td_native_cuda_order order)
{
    if (tiles * 6 <= 132 && p->steps / 6 >= 8)
        return run_tiles<64, 64, 6, 6>(conv, p, order);
    if (tiles * 4 <= 160 && p->steps / 4 >= 8)
        return run_tiles<64, 64, 6, 4>(conv, p, order);
    if (tiles * 2 <= 160 && p->steps / 2 >= 8)
        return run_tiles<64, 64, 6, 2>(conv, p, order);
    return run_tiles<64, 64, 6, 1>(conv, p, order);
}

// A long way along K: what is read for a tile counts, so tiles are large, and
// several blocks share one.
static cudaError_t run_long(const td_native_cuda_conv *conv, product *p,
                            int tiles, td_native_cuda_order order)
{
    const int flat = ceiling(p->rows, 64) * ceiling(p->outs, 128);
    if (ceiling(p->rows, 192) * ceiling(p->outs, 128) >= 45)
        return run_tiles<192, 128, 4, 2>(conv, p, order);
    if (flat > 80) return run_tiles<128, 128, 6, 2>(conv, p, order);
    if (flat > 30) return run_tiles<64, 128, 4, 3>(conv, p, order);
    if (flat > 12) return run_tiles<64, 128, 4, 4>(conv, p, order);
    return run_few(conv, p, tiles, order);
}

// Large tiles read less for what they do, small ones are more and sooner done:
// the fastest for the shapes of ACT, in batches of 1, 4 and 16, on an H200.
static cudaError_t run_best(const td_native_cuda_conv *conv, product *p,
                            td_native_cuda_order order)
{
    const int tiles = ceiling(p->rows, 64) * ceiling(p->outs, 64);
    const bool is_wide = p->outs % 128 == 0;
    if (is_wide && ceiling(p->rows, 192) * (p->outs / 128) >= 90)
        return run_tiles<192, 128, 4, 1>(conv, p, order);
    if (is_wide && p->steps >= 32) return run_long(conv, p, tiles, order);
    if (tiles > 400) return run_tiles<128, 64, 4, 1>(conv, p, order);
    if (tiles > 264) return run_tiles<64, 64, 4, 1>(conv, p, order);
    if (tiles > 132 && p->steps >= 16)
        return run_tiles<128, 64, 4, 1>(conv, p, order);
    return run_few(conv, p, tiles, order);
}

cudaError_t td_native_cuda_conv_run(const td_native_cuda_conv *conv,
                                    td_native_cuda_order order)
{
    product p;
    memset(&p, 0, sizeof p);
    const td_native_cuda_filter *filter = &conv->x.filter;
    p.bias = filter->bias;
    p.shortcut_bias =
        conv->shortcut.rows.at ? conv->shortcut.filter.bias : NULL;
    p.add = conv->add;
    p.out = conv->out;
    p.out_float = conv->out_float;
    p.relu = conv->relu;
    p.batches = conv->batches;
    p.pixels = conv->out_height * conv->out_width;
    p.out_width = conv->out_width;
    p.rows = p.batches * p.pixels;
    p.outs = filter->outs;
    p.shortcut_from =
        filter->kernel * filter->kernel * ceiling(filter->ins, STEP);
    p.steps = p.shortcut_from;
    if (conv->shortcut.rows.at)
        p.steps += ceiling(conv->shortcut.filter.ins, STEP);
    return run_best(conv, &p, order);
}
