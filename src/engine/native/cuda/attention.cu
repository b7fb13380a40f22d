// SPDX-License-Identifier: Apache-2.0
// Attention: out = softmax(q kT scale) v, in each head of each member.
//
// Heads of q that share one of k and v are as so many queries of it: a row here
// is one head of one query. A warp works on 16 rows and takes the keys piece by
// piece, keeping a running softmax (the largest so far, the total, the weighted
// sum).
//
//   few rows   the warps of a block, and the blocks of a cluster, have the same
//              16 rows and each take their share of the pieces; they join at
//              the end, in a fixed order
//   many rows  each warp of a block has rows of its own, and all go through the
//              same pieces, which are copied once
//
// Keys and values of the next piece are copied while one is worked on. What is
// past comes before k and v, and what is beyond a length is never read: there
// are zeros in its place. Products are mma of 16 x 8 x 16 in bf16 with sums in
// float. SIZE is the head's, or the next larger one that was compiled, with
// zeros.
#include "engine/native/cuda/attention_piece.cuh"
#include "engine/native/cuda/launch.cuh"

#define MOST_CLUSTER 8

typedef struct problem {
    td_native_cuda_attention op;
    int32_t rows;    // of one head of k and v: queries x heads that share it
    int32_t share;   // heads of q to one of k and v
    int32_t cluster; // blocks that have the same rows
} problem;

// What a block reads of k and v.
__device__ __forceinline__ static keys keys_of(const problem *p, int head,
                                               int batch)
{
    const td_native_cuda_attention *a = &p->op;
    const int64_t column = (int64_t)head * a->size;
    keys of;
    of.past = a->past;
    int fresh = a->keys;
    if (a->lengths.at) {
        int length = (int)a->lengths.at[batch * a->lengths.batch];
        if (a->past > 0)
            of.past = min(of.past, length);
        else
            fresh = min(fresh, length);
    }
    of.count = of.past + fresh;
    of.size = a->size;
    of.past_k = a->past_k.at + batch * a->past_k.batch + column;
    of.past_v = a->past_v.at + batch * a->past_v.batch + column;
    of.k = a->k.at + batch * a->k.batch + column;
    of.v = a->v.at + batch * a->v.batch + column;
    of.past_k_row = a->past_k.row;
    of.past_v_row = a->past_v.row;
    of.k_row = a->k.row;
    of.v_row = a->v.row;
    return of;
}

// The keys that a query sees: all in a row.
__device__ __forceinline__ static void
seen_by(const td_native_cuda_attention *a, const keys *of, int query, int *from,
        int *to)
{
    *from = 0;
    *to = of->count;
    if (a->mask == TD_NATIVE_CUDA_SEES_EARLIER) *to = of->past + query + 1;
    if (a->mask == TD_NATIVE_CUDA_FIRST_SEES_SELF && query == 0)
        *to = of->past + 1;
    if (a->mask == TD_NATIVE_CUDA_FIRST_UNSEEN && query > 0) *from = 1;
    *to = min(*to, of->count);
    if (*from >= *to) *from = 0;
}

// Where a row is in a matrix like q.
__device__ __forceinline__ static int64_t
place_of(const problem *p, const td_native_cuda_rows *rows, int row)
{
    return (int64_t)(row / p->share) * rows->row + row % p->share * p->op.size;
}

template <int SIZE>
__device__ __forceinline__ static void look(const problem *p, const keys *of,
                                            int row, sight *ret_sight)
{
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int mine = row + (int)threadIdx.x % 32 / 4 + half * 8;
        mine = min(mine, p->rows - 1);
        seen_by(&p->op, of, mine / p->share, &ret_sight->from[half],
                &ret_sight->to[half]);
    }
}

// Queries of 16 rows, as mma has them.
template <int SIZE>
__device__ static inline void load_queries(const problem *p, const bf16 *q,
                                           int row,
                                           uint32_t (&query)[SIZE / 16][4])
{
    const int lane = (int)threadIdx.x % 32;
    const bf16 *at[2];
    for (int half = 0; half < 2; half++)
        at[half] = q + place_of(p, &p->op.q,
                                min(row + lane / 4 + half * 8, p->rows - 1));
#pragma unroll
    for (int i = 0; i < SIZE / 16; i++)
        for (int j = 0; j < 4; j++) {
            int column = i * 16 + j / 2 * 8 + lane % 4 * 2;
            query[i][j] = 0;
            if (column < p->op.size)
                query[i][j] = *(const uint32_t *)(at[j % 2] + column);
        }
}

// The same 16 rows for all warps of a cluster; each takes its pieces.
template <int SIZE, int KEYS>
__global__ void __launch_bounds__(128)
    few_kernel(const __grid_constant__ problem p)
{
    typedef piece<SIZE, KEYS, 32> here;
    extern __shared__ uint8_t shared[];
    const int rank = (int)blockIdx.x % p.cluster;
    const int row = (int)blockIdx.x / p.cluster * 16;
    const int head = (int)blockIdx.y, batch = (int)blockIdx.z;
    const int warp = rank * 4 + (int)threadIdx.x / 32;
    const int64_t column = (int64_t)head * p.share * p.op.size;
    // For each warp two places, each a piece of keys and one of values.
    const uint32_t memory =
        shared_address(shared) + threadIdx.x / 32 * 4 * here::bytes;

    if (p.cluster == 1) let_next_start();
    wait_for_earlier();
    const keys of = keys_of(&p, head, batch);
    int first = warp * KEYS;
    if (first < of.count) here::copy(&of, first, memory);
    copy_commit();
    uint32_t query[SIZE / 16][4];
    load_queries<SIZE>(&p, p.op.q.at + batch * p.op.q.batch + column, row,
                       query);
    running<SIZE> r;
    r.begin();
    sight sees;
    look<SIZE>(&p, &of, row, &sees);
    for (int place = 0; first < of.count; place ^= 1) {
        uint32_t now = memory + (uint32_t)place * 2 * here::bytes;
        uint32_t then = memory + (uint32_t)(place ^ 1) * 2 * here::bytes;
        int next = first + p.cluster * 4 * KEYS;
        if (next < of.count) here::copy(&of, next, then);
        copy_commit();
        copy_wait<1>();
        __syncwarp();
        here::take(&r, query, now, first, &sees, p.op.scale);
        __syncwarp();
        first = next;
    }
    copy_wait<0>();
    __syncthreads();
    partial<SIZE> mine;
    mine.memory = (float *)shared;
    mine.leave(&r);
    if (p.cluster > 1)
        cluster_sync();
    else
        __syncthreads();
    bf16 *out = p.op.out.at + batch * p.op.out.batch + column;
    const int each = 16 * SIZE / 2 / p.cluster;
    for (int i = (int)threadIdx.x; i < each; i += 128) {
        int at = rank * each + i, inner = at / (SIZE / 2);
        int pair = at % (SIZE / 2) * 2;
        if (row + inner >= p.rows || pair >= p.op.size) continue;
        *(uint32_t *)(out + place_of(&p, &p.op.out, row + inner) + pair) =
            mine.join(p.cluster, inner, pair);
    }
    if (p.cluster > 1) cluster_sync(); // until nobody reads this block's
}

// Rows of its own for each warp; all take all pieces.
template <int SIZE, int KEYS, int WARPS>
__global__ void __launch_bounds__(WARPS * 32)
    many_kernel(const __grid_constant__ problem p)
{
    typedef piece<SIZE, KEYS, WARPS * 32> here;
    extern __shared__ uint8_t shared[];
    const int row = ((int)blockIdx.x * WARPS + (int)threadIdx.x / 32) * 16;
    const int head = (int)blockIdx.y, batch = (int)blockIdx.z;
    const int64_t column = (int64_t)head * p.share * p.op.size;
    const uint32_t memory = shared_address(shared);

    wait_for_earlier();
    const keys of = keys_of(&p, head, batch);
    here::copy(&of, 0, memory);
    copy_commit();
    uint32_t query[SIZE / 16][4];
    load_queries<SIZE>(&p, p.op.q.at + batch * p.op.q.batch + column, row,
                       query);
    running<SIZE> r;
    r.begin();
    sight sees;
    look<SIZE>(&p, &of, row, &sees);
    for (int first = 0, place = 0; first < of.count; first += KEYS) {
        uint32_t now = memory + (uint32_t)place * 2 * here::bytes;
        place ^= 1;
        if (first + KEYS < of.count)
            here::copy(&of, first + KEYS,
                       memory + (uint32_t)place * 2 * here::bytes);
        copy_commit();
        copy_wait<1>();
        __syncthreads();
        here::take(&r, query, now, first, &sees, p.op.scale);
        __syncthreads();
    }
    let_next_start();
    bf16 *out = p.op.out.at + batch * p.op.out.batch + column;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int mine = row + (int)threadIdx.x % 32 / 4 + half * 8;
        float share = 1 / r.whole(half);
        if (mine >= p.rows) continue;
        bf16 *to = out + place_of(&p, &p.op.out, mine);
#pragma unroll
        for (int i = 0; i < SIZE / 8; i++) {
            int pair = i * 8 + (int)threadIdx.x % 4 * 2;
            if (pair < p.op.size)
                *(uint32_t *)(to + pair) = pack(r.sum[i][2 * half] * share,
                                                r.sum[i][2 * half + 1] * share);
        }
    }
}

template <int SIZE, int KEYS>
static cudaError_t run_few(problem *p, td_native_cuda_order order)
{
    const int tiles = (p->rows + 15) / 16 * p->op.kv_heads * p->op.batches;
    const int pieces = (p->op.past + p->op.keys + KEYS - 1) / KEYS;
    const int room = SIZE > 128 ? 132 : 264; // blocks at once
    p->cluster = 1;
    while (p->cluster < MOST_CLUSTER && tiles * p->cluster * 2 <= room &&
           pieces > p->cluster * 4)
        p->cluster *= 2;
    launch how = {};
    how.grid = dim3((unsigned)((p->rows + 15) / 16 * p->cluster),
                    (unsigned)p->op.kv_heads, (unsigned)p->op.batches);
    how.cluster = (unsigned)p->cluster;
    how.threads = 128;
    how.shared_bytes = 4 * 4 * piece<SIZE, KEYS, 32>::bytes;
    if (how.shared_bytes < partial<SIZE>::bytes)
        how.shared_bytes = partial<SIZE>::bytes;
    return start(few_kernel<SIZE, KEYS>, &how, p, order);
}

template <int SIZE, int KEYS, int WARPS>
static cudaError_t run_many(const problem *p, td_native_cuda_order order)
{
    launch how = {};
    how.grid = dim3((unsigned)((p->rows + WARPS * 16 - 1) / (WARPS * 16)),
                    (unsigned)p->op.kv_heads, (unsigned)p->op.batches);
    how.threads = WARPS * 32;
    how.shared_bytes = 4 * piece<SIZE, KEYS, WARPS * 32>::bytes;
    return start(many_kernel<SIZE, KEYS, WARPS>, &how, p, order);
}

// Many: where the warps' own rows are enough for all multiprocessors.
template <int SIZE, int FEW_KEYS, int MANY_KEYS, int WARPS>
static cudaError_t run_size(problem *p, td_native_cuda_order order)
{
    const int blocks = (p->rows + WARPS * 16 - 1) / (WARPS * 16) *
                       p->op.kv_heads * p->op.batches;
    return blocks >= 80 ? run_many<SIZE, MANY_KEYS, WARPS>(p, order)
                        : run_few<SIZE, FEW_KEYS>(p, order);
}

cudaError_t
td_native_cuda_attention_run(const td_native_cuda_attention *attention,
                             td_native_cuda_order order)
{
    problem p = {};
    p.op = *attention;
    p.op.scale *= 1.44269504f; // exp(x) is exp2(x * this)
    p.share = attention->heads / attention->kv_heads;
    p.rows = attention->queries * p.share;
    if (attention->size <= 16) return run_size<16, 32, 64, 8>(&p, order);
    if (attention->size <= 32) return run_size<32, 32, 64, 8>(&p, order);
    if (attention->size <= 64) return run_size<64, 32, 64, 8>(&p, order);
    if (attention->size <= 80) return run_size<80, 32, 64, 8>(&p, order);
    if (attention->size <= 128) return run_size<128, 32, 64, 8>(&p, order);
    return run_size<256, 16, 32, 4>(&p, order);
}
