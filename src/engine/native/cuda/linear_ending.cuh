// SPDX-License-Identifier: Apache-2.0
// What a linear does with its sums as they leave: bias, gates, turns, what is
// added, activations; and which columns stand in a tile.
#ifndef TD_ENGINE_NATIVE_CUDA_LINEAR_ENDING_CUH
#define TD_ENGINE_NATIVE_CUDA_LINEAR_ENDING_CUH

#include "engine/native/cuda/launch.cuh"
#include "engine/native/cuda/row.cuh"

#define STEP 64 // values along K in one step
#define STEP_BYTES (STEP * 2)
#define MOST_SHARE 8

// Groups of four warps that multiply, each with 64 rows of a tile and so many
// columns.
__host__ __device__ constexpr int columns_of(int tile_n)
{
    return tile_n > 128 ? tile_n / 2 : tile_n;
}

__host__ __device__ constexpr int groups_of(int tile_m, int tile_n)
{
    return tile_m / 64 * (tile_n / columns_of(tile_n));
}

typedef struct product {
    CUtensorMap x, weight;
    td_native_cuda_linear op;
    int32_t all_rows; // of all batches
    int32_t outs;     // columns of the result
    int32_t tiled;    // rows of the weight
    int32_t steps;    // along K
    int32_t share;    // blocks to a tile
    int32_t apart;    // columns in a tile, of what is joined
    int32_t wide;     // columns that are turned in heads larger than a tile
    float curve[2];   // of the activation
    bool is_scaled;   // by a number or by gates
    bool is_flat;     // x is one block of rows
} product;

// The rows of the weight in the halves of a tile, and which columns of the
// result its first column and that one's partner are.
typedef struct halves {
    int first, second;
    int low, high;
} halves;

template <int TILE_N>
__device__ __forceinline__ static halves halves_of(const product *p, int tile)
{
    halves of;
    of.first = of.low = tile * TILE_N;
    of.second = of.first + TILE_N / 2;
    of.high = of.low + p->apart;
    if (p->op.second) {
        of.first = of.low = tile * (TILE_N / 2);
        of.second = of.first + p->op.second;
    } else if (of.first < p->wide) {
        const int size = p->op.rotary.size, head = of.first / size * size;
        of.first = of.low = head + (of.first - head) / 2;
        of.second = of.high = of.first + size / 2;
    }
    return of;
}

// How tiles of this width are laid out.
template <int TILE_N> static void lay_out(product *p)
{
    const td_native_cuda_rotary *rotary = &p->op.rotary;
    p->apart = TILE_N / 2;
    p->wide = 0;
    if (!rotary->table.at || p->op.second) return;
    if (rotary->size <= TILE_N)
        p->apart = rotary->size / 2;
    else
        p->wide = rotary->cols;
}

__device__ __forceinline__ static void add_4(float *sum, float4 more)
{
    sum[0] += more.x;
    sum[1] += more.y;
    sum[2] += more.z;
    sum[3] += more.w;
}

__device__ __forceinline__ static void add_floats(float *sum, const float *from)
{
    add_4(sum, *(const float4 *)from);
    add_4(sum + 4, *(const float4 *)(from + 4));
}

__device__ __forceinline__ static void add_pairs(float *sum, uint4 other)
{
    const uint32_t pairs[4] = {other.x, other.y, other.z, other.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        sum[2 * i] += low_of(pairs[i]);
        sum[2 * i + 1] += high_of(pairs[i]);
    }
}

// Eight neighbours of the sums, from all the blocks that share them.
__device__ __forceinline__ static void collect_shared(int share, uint32_t at,
                                                      float *sum)
{
    float4 low[MOST_SHARE], high[MOST_SHARE];
#pragma unroll
    for (int i = 0; i < MOST_SHARE; i++)
        if (i < share) {
            low[i] = cluster_load(at, (uint32_t)i);
            high[i] = cluster_load(at + 16, (uint32_t)i);
        }
#pragma unroll
    for (int i = 0; i < MOST_SHARE; i++)
        if (i < share) {
            add_4(sum, low[i]);
            add_4(sum + 4, high[i]);
        }
}

template <bool IS_SHARED>
__device__ __forceinline__ static void collect(int share, uint32_t at,
                                               float *sum)
{
    if constexpr (IS_SHARED)
        collect_shared(share, at, sum);
    else
        add_floats(sum, (const float *)__cvta_shared_to_generic(at));
}

// SiLU, and GELU with tanh: (1 + tanh y) / 2 is 1 / (1 + exp(-2 y)).
__device__ __forceinline__ static void bend(const product *p, float *x)
{
#pragma unroll
    for (int i = 0; i < 8; i++)
        x[i] = __fdividef(
            x[i],
            1 + __expf(-x[i] * (p->curve[0] + p->curve[1] * x[i] * x[i])));
}

// What a thread finishes: always the same two times eight columns, `apart` from
// each other, of several rows. What is written once for all rows stays short:
// instructions that a block has not met yet cost it more than those that it
// repeats.
template <int TILE_M, int TILE_N, bool IS_SHARED> struct ending {
    static constexpr int pitch = TILE_N + 8; // of the sums, in floats
    static constexpr int chunks = TILE_N / 16;
    static constexpr int together =
        groups_of(TILE_M, TILE_N) * 128 / chunks; // rows
    int tile_row, row, end_row; // of the tile, and of this thread's in it
    int in_tile;                // the first column's
    int low, high;              // of the result
    float bias[2][8];
    uint4 add[2]; // of the first row

    __device__ __forceinline__ void begin(const product *p, int first, int rank,
                                          const halves *of)
    {
        const int chunk = (int)threadIdx.x % chunks * 8;
        const int share = IS_SHARED ? p->share : 1;
        const int part = IS_SHARED ? rank : 0;
        tile_row = first;
        row = TILE_M * part / share + (int)threadIdx.x / chunks;
        end_row = min(TILE_M * (part + 1) / share, p->all_rows - first);
        in_tile = chunk / p->apart * 2 * p->apart + chunk % p->apart;
        low = of->low + in_tile;
        high = of->high + in_tile;
#pragma unroll
        for (int i = 0; i < 8; i++)
            bias[0][i] = bias[1][i] = 0;
        const int second = p->op.second ? p->op.second + low : high;
        if (low < p->outs) add_floats(bias[0], p->op.weight.bias + low);
        if (second < p->tiled) add_floats(bias[1], p->op.weight.bias + second);
    }

    __device__ __forceinline__ void place(const product *p, int of, int *batch,
                                          int *inner) const
    {
        *batch = p->op.batches == 1 ? 0 : (tile_row + of) / p->op.rows;
        *inner = tile_row + of - *batch * p->op.rows;
    }

    // What is added to a row is on its way before it is needed.
    __device__ __forceinline__ void read(const product *p, int of)
    {
        const td_native_cuda_rows *rows = &p->op.add;
        int batch, inner;
        add[0] = add[1] = make_uint4(0, 0, 0, 0);
        if (!rows->at || of >= end_row) return;
        place(p, of, &batch, &inner);
        const bf16 *from =
            rows->at + batch * rows->batch + (int64_t)inner * rows->row;
        if (low < p->outs) add[0] = *(const uint4 *)(from + low);
        if (high < p->outs) add[1] = *(const uint4 *)(from + high);
    }

    __device__ __forceinline__ void write(const product *p, uint32_t sums)
    {
        const int share = IS_SHARED ? p->share : 1;
#pragma unroll 1
        for (; row < end_row; row += together) {
            float left[8], right[8];
#pragma unroll
            for (int i = 0; i < 8; i++) {
                left[i] = bias[0][i];
                right[i] = bias[1][i];
            }
            const uint32_t at = sums + (uint32_t)(row * pitch + in_tile) * 4;
            collect<IS_SHARED>(share, at, left);
            collect<IS_SHARED>(share, at + (uint32_t)p->apart * 4, right);
            const uint4 more[2] = {add[0], add[1]};
            read(p, row + together);
            finish(p, left, right, more);
        }
    }

    __device__ __forceinline__ void finish(const product *p, float *left,
                                           float *right, const uint4 *more)
    {
        const td_native_cuda_linear *op = &p->op;
        int batch, inner;
        place(p, row, &batch, &inner);
        if (low < op->rotary.cols) turn(op, batch, inner, left, right);
        if (p->is_scaled) scale(p, batch, inner, left, right);
        if (op->add.at) {
            add_pairs(left, more[0]);
            add_pairs(right, more[1]);
        }
        if (op->activation == TD_NATIVE_CUDA_RELU) {
#pragma unroll
            for (int i = 0; i < 8; i++) {
                left[i] = fmaxf(left[i], 0);
                right[i] = op->second ? right[i] : fmaxf(right[i], 0);
            }
        } else if (op->activation) {
            bend(p, left);
            if (!op->second) bend(p, right);
        }
        if (op->second) {
#pragma unroll
            for (int i = 0; i < 8; i++)
                left[i] *= right[i];
        } else {
            put(p, batch, inner, high, right);
        }
        put(p, batch, inner, low, left);
    }

    __device__ __forceinline__ void turn(const td_native_cuda_linear *op,
                                         int batch, int inner, float *left,
                                         float *right) const
    {
        const float *angles =
            chosen(&op->rotary.table, batch, inner) + low % op->rotary.size;
#pragma unroll
        for (int i = 0; i < 8; i += 4) {
            const float4 cosines = *(const float4 *)(angles + i);
            const float4 sines =
                *(const float4 *)(angles + op->rotary.size / 2 + i);
            const float by[2][4] = {
                {cosines.x, cosines.y, cosines.z, cosines.w},
                {sines.x, sines.y, sines.z, sines.w}};
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const float a = left[i + j], b = right[i + j];
                left[i + j] = a * by[0][j] - b * by[1][j];
                right[i + j] = b * by[0][j] + a * by[1][j];
            }
        }
    }

    __device__ __forceinline__ void scale(const product *p, int batch,
                                          int inner, float *left,
                                          float *right) const
    {
        const td_native_cuda_linear *op = &p->op;
        const float by = op->scale != 0 ? op->scale : 1;
        const float *gates =
            op->gates.at ? chosen(&op->gates, batch, inner) + 2 * p->outs
                         : NULL;
#pragma unroll
        for (int i = 0; i < 8; i++) {
            left[i] *= by * (gates && low < p->outs ? gates[low + i] : 1);
            right[i] *= by * (gates && high < p->outs ? gates[high + i] : 1);
        }
    }

    __device__ __forceinline__ void put(const product *p, int batch, int inner,
                                        int column, const float *sum) const
    {
        const td_native_cuda_linear *op = &p->op;
        const bool is_rest = column >= op->out_cols;
        const td_native_cuda_rows *rows = is_rest ? &op->rest : &op->out;
        const int64_t at = batch * rows->batch + (int64_t)inner * rows->row +
                           column - (is_rest ? op->out_cols : 0);
        if (column >= p->outs) return;
        if (op->out_float) {
#pragma unroll
            for (int i = 0; i < 8; i++)
                if (column + i < p->outs) op->out_float[at + i] = sum[i];
            return;
        }
        *(uint4 *)(rows->at + at) = pack8(sum);
    }
};

#endif
