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

enum way { ALONE, SPLIT, ROWS, COLS };

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
    bool is_flat;     // x is one block of rows
    bool is_early;    // the next kernel may start when all blocks have begun
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

__device__ __forceinline__ static float low_of_4(float4 v, int i)
{
    return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}

__device__ __forceinline__ static void add_floats(float *sum, const float *from)
{
    const float4 low = *(const float4 *)from,
                 high = *(const float4 *)(from + 4);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        sum[i] += low_of_4(low, i);
        sum[i + 4] += low_of_4(high, i);
    }
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
        if (i < share)
#pragma unroll
            for (int j = 0; j < 4; j++) {
                sum[j] += low_of_4(low[i], j);
                sum[j + 4] += low_of_4(high[i], j);
            }
}

template <way WAY>
__device__ __forceinline__ static void collect(int share, uint32_t at,
                                               float *sum)
{
    if constexpr (WAY == SPLIT)
        collect_shared(share, at, sum);
    else
        add_floats(sum, (const float *)__cvta_shared_to_generic(at));
}

// What a thread finishes: always the same two times eight columns, `apart` from
// each other, of several rows.
template <int GROUPS, int TILE_N, way WAY> struct ending {
    static constexpr int pitch = TILE_N + 8; // of the sums, in floats
    static constexpr int chunks = TILE_N / 16;
    static constexpr int together = GROUPS * 128 / chunks; // rows
    static constexpr int passes = GROUPS * 64 / together;
    // What is added is read before the product is there, if it is little.
    static constexpr int kept = passes <= 2 ? passes : 0;
    int tile_row, begin_row, end_row; // of the tile, and of this thread's in it
    int in_tile;                      // the first column's
    int low, high;                    // of the result
    uint4 add[kept + 1][2];

    __device__ __forceinline__ void begin(const product *p, int row, int rank,
                                          const halves *of)
    {
        const int chunk = (int)threadIdx.x % chunks * 8;
        const int share = WAY == SPLIT ? p->share : 1;
        const int part = WAY == SPLIT ? rank : 0;
        tile_row = row;
        begin_row = GROUPS * 64 * part / share + (int)threadIdx.x / chunks;
        end_row = min(GROUPS * 64 * (part + 1) / share, p->all_rows - row);
        in_tile = chunk / p->apart * 2 * p->apart + chunk % p->apart;
        low = of->low + in_tile;
        high = of->high + in_tile;
    }

    __device__ __forceinline__ void split(const product *p, int row, int *batch,
                                          int *inner) const
    {
        *batch = p->op.batches == 1 ? 0 : (tile_row + row) / p->op.rows;
        *inner = tile_row + row - *batch * p->op.rows;
    }

    __device__ __forceinline__ uint4 added(const product *p, int batch,
                                           int inner, int column) const
    {
        const td_native_cuda_rows *rows = &p->op.add;
        if (!rows->at || column >= p->outs) return make_uint4(0, 0, 0, 0);
        return *(const uint4 *)(rows->at + batch * rows->batch +
                                (int64_t)inner * rows->row + column);
    }

    __device__ __forceinline__ void read(const product *p)
    {
#pragma unroll
        for (int i = 0; i < kept; i++) {
            int row = begin_row + i * together, batch, inner;
            if (row >= end_row || !p->op.add.at) continue;
            split(p, row, &batch, &inner);
            add[i][0] = added(p, batch, inner, low);
            add[i][1] = added(p, batch, inner, high);
        }
    }

    __device__ __forceinline__ void write(const product *p, uint32_t sums)
    {
        const int share = WAY == SPLIT ? p->share : 1;
#pragma unroll
        for (int i = 0; i < passes; i++) {
            int row = begin_row + i * together;
            if (row >= end_row) continue;
            float left[8] = {}, right[8] = {};
            uint32_t at = sums + (uint32_t)(row * pitch + in_tile) * 4;
            collect<WAY>(share, at, left);
            collect<WAY>(share, at + (uint32_t)p->apart * 4, right);
            finish(p, i, row, left, right);
        }
    }

    __device__ __forceinline__ void finish(const product *p, int pass, int row,
                                           float *left, float *right)
    {
        const td_native_cuda_linear *op = &p->op;
        int batch, inner;
        split(p, row, &batch, &inner);
        if (low < p->outs) add_floats(left, op->weight.bias + low);
        if (op->second) {
            if (low >= p->outs) return;
            add_floats(right, op->weight.bias + op->second + low);
#pragma unroll
            for (int i = 0; i < 8; i++)
                left[i] = activated(left[i], op->activation) * right[i];
            put(p, batch, inner, low, left);
            return;
        }
        if (high < p->outs) add_floats(right, op->weight.bias + high);
        if (low < op->rotary.cols) turn(op, batch, inner, left, right);
        if (low < p->outs)
            join(p, batch, inner, low,
                 kept ? add[pass % (kept + 1)][0] : added(p, batch, inner, low),
                 left);
        if (high < p->outs)
            join(p, batch, inner, high,
                 kept ? add[pass % (kept + 1)][1]
                      : added(p, batch, inner, high),
                 right);
    }

    __device__ __forceinline__ void turn(const td_native_cuda_linear *op,
                                         int batch, int inner, float *left,
                                         float *right) const
    {
        const float *angles =
            chosen(&op->rotary.table, batch, inner) + low % op->rotary.size;
#pragma unroll
        for (int i = 0; i < 8; i++) {
            float a = left[i], b = right[i];
            float cosine = angles[i], sine = angles[op->rotary.size / 2 + i];
            left[i] = a * cosine - b * sine;
            right[i] = b * cosine + a * sine;
        }
    }

    __device__ __forceinline__ void join(const product *p, int batch, int inner,
                                         int column, uint4 more,
                                         float *sum) const
    {
        const td_native_cuda_linear *op = &p->op;
        if (op->scale != 0)
            for (int i = 0; i < 8; i++)
                sum[i] *= op->scale;
        if (op->gates.at) {
            const float *gate =
                chosen(&op->gates, batch, inner) + 2 * p->outs + column;
            for (int i = 0; i < 8; i++)
                sum[i] *= gate[i];
        }
        if (op->add.at) add_pairs(sum, more);
        if (op->activation != TD_NATIVE_CUDA_PLAIN)
#pragma unroll
            for (int i = 0; i < 8; i++)
                sum[i] = activated(sum[i], op->activation);
        put(p, batch, inner, column, sum);
    }

    __device__ __forceinline__ void put(const product *p, int batch, int inner,
                                        int column, const float *sum) const
    {
        const td_native_cuda_linear *op = &p->op;
        const bool is_rest = column >= op->out_cols;
        const td_native_cuda_rows *rows = is_rest ? &op->rest : &op->out;
        const int64_t at = batch * rows->batch + (int64_t)inner * rows->row +
                           column - (is_rest ? op->out_cols : 0);
        if (op->out_float) {
            for (int i = 0; i < 8; i++)
                if (column + i < p->outs) op->out_float[at + i] = sum[i];
            return;
        }
        *(uint4 *)(rows->at + at) = pack8(sum);
    }
};

#endif
