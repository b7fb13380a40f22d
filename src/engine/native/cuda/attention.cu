// SPDX-License-Identifier: Apache-2.0
// Attention: out = softmax(q kT scale) v, in each head of each member.
//
// Heads of q that share one of k and v are as so many queries of it: a row here
// is one head of one query. A warp works on 16 rows and takes the keys piece by
// piece, keeping a running softmax (the largest so far, the total, the weighted
// sum).
//
//   few rows   the warps of a block, and the blocks of a cluster, have the same
//              rows, and each warp, or a few that have some rows each, takes
//              its share of the pieces; they join at the end, in a fixed order
//   many rows  each warp of a block has rows of its own, and all go through the
//              same pieces, which are copied once
//
// Where rows are many, keys and values of the next piece are copied while one
// is worked on. What is past comes before k and v, and what is beyond a length
// is never read: there are zeros in its place. Products are mma of 16 x 8 x 16
// in bf16 with sums in float. SIZE is the head's, or the next larger one that
// was compiled, with zeros.
#include "engine/native/cuda/attention_piece.cuh"
#include "engine/native/cuda/launch.cuh"

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

// Pieces of a group in shared memory at once: of many warps one waits while
// others work.
__host__ __device__ constexpr int places_of(int warps)
{
    return warps > 4 ? 1 : 2;
}

// All warps that take the same pieces.
template <int WARPS>
__device__ __forceinline__ static void group_sync(int group)
{
    if (WARPS == 1)
        __syncwarp();
    else
        asm volatile("bar.sync %0, %1;\n" ::"r"(group + 1), "n"(WARPS * 32)
                     : "memory");
}

// The same rows, 16 for each of TALL warps, for all groups of warps of a
// cluster; each group takes its share of the pieces. With two PLACES the next
// piece comes while one is worked on.
template <int SIZE, int KEYS, int TALL, int WARPS>
__device__ __forceinline__ static void
take_share(const problem *p, const keys *of, int first, uint32_t memory,
           const uint32_t (&query)[SIZE / 16][4], const sight *sees,
           running<SIZE> *r)
{
    typedef piece<SIZE, KEYS, TALL * 32> here;
    constexpr int places = places_of(WARPS);
    const int group = (int)threadIdx.x / (TALL * 32);
    const int apart = p->cluster * (WARPS / TALL) * KEYS;
    for (int place = 0; first < of->count; first += apart) {
        const uint32_t now = memory + (uint32_t)place * 2 * here::bytes;
        const bool more = first + apart < of->count;
        place = (place + 1) % places;
        if (places == 2) {
            if (more)
                here::copy(of, first + apart,
                           memory + (uint32_t)place * 2 * here::bytes);
            copy_commit();
        }
        copy_wait<places - 1>();
        group_sync<TALL>(group);
        here::take(r, query, now, first, sees, p->op.scale);
        group_sync<TALL>(group);
        if (places == 1) {
            if (more) here::copy(of, first + apart, memory);
            copy_commit();
        }
    }
    copy_wait<0>();
}

// Joins what the groups, and the blocks, have seen.
template <int SIZE, int TALL, int WARPS>
__device__ __forceinline__ static void
finish_few(const problem *p, const partial<SIZE, WARPS / TALL, TALL * 16> *seen,
           int row, bf16 *out)
{
    constexpr int pairs = TALL * 16 * SIZE / 2;
    const int each = pairs / p->cluster;
    const int first = (int)blockIdx.x % p->cluster * each;
    for (int i = (int)threadIdx.x; i < pairs; i += WARPS * 32) {
        const int inner = i / (SIZE / 2), column = i % (SIZE / 2) * 2;
        float2 two = make_float2(0, 0);
        const float2 of = seen->join(inner, column, &two);
        if (p->cluster > 1)
            seen->keep(inner, column, two, of);
        else if (row + inner < p->rows && column < p->op.size)
            *(uint32_t *)(out + place_of(p, &p->op.out, row + inner) + column) =
                pack(two.x / of.y, two.y / of.y);
    }
    if (p->cluster == 1) return;
    cluster_sync();
    for (int i = first + (int)threadIdx.x; i < first + each; i += WARPS * 32) {
        const int inner = i / (SIZE / 2), column = i % (SIZE / 2) * 2;
        if (row + inner < p->rows && column < p->op.size)
            *(uint32_t *)(out + place_of(p, &p->op.out, row + inner) + column) =
                seen->join_all(p->cluster, inner, column);
    }
    cluster_sync(); // until nobody reads this block's
}

template <int SIZE, int KEYS, int TALL, int WARPS>
__global__ void __launch_bounds__(WARPS * 32)
    few_kernel(const __grid_constant__ problem p)
{
    typedef piece<SIZE, KEYS, TALL * 32> here;
    constexpr int groups = WARPS / TALL;
    extern __shared__ uint8_t shared[];
    const int warp = (int)threadIdx.x / 32, group = warp / TALL;
    const int first_row = (int)blockIdx.x / p.cluster * TALL * 16;
    const int row = first_row + warp % TALL * 16;
    const int head = (int)blockIdx.y, batch = (int)blockIdx.z;
    const int64_t column = (int64_t)head * p.share * p.op.size;
    // For each group a piece of keys and one of values.
    const uint32_t memory =
        shared_address(shared) +
        (uint32_t)(group * places_of(WARPS)) * 2 * here::bytes;
    const int first = ((int)blockIdx.x % p.cluster * groups + group) * KEYS;

    wait_for_earlier();
    const keys of = keys_of(&p, head, batch);
    if (first < of.count) here::copy(&of, first, memory);
    copy_commit();
    uint32_t query[SIZE / 16][4];
    load_queries<SIZE>(&p, p.op.q.at + batch * p.op.q.batch + column, row,
                       query);
    running<SIZE> r;
    r.begin();
    sight sees;
    look<SIZE>(&p, &of, row, &sees);
    take_share<SIZE, KEYS, TALL, WARPS>(&p, &of, first, memory, query, &sees,
                                        &r);
    let_next_start();
    __syncthreads();
    const partial<SIZE, groups, TALL * 16> seen = {(float *)shared};
    seen.leave(&r);
    __syncthreads();
    finish_few<SIZE, TALL, WARPS>(
        &p, &seen, first_row, p.op.out.at + batch * p.op.out.batch + column);
}

// Rows of its own for each warp; all take all pieces.
template <int SIZE, int KEYS, int WARPS>
__global__ void __launch_bounds__(WARPS * 32, SIZE <= 64   ? 3
                                              : SIZE <= 80 ? 2
                                                           : 1)
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

template <int SIZE, int KEYS, int TALL, int WARPS>
static cudaError_t run_few(problem *p, td_native_cuda_order order)
{
    constexpr int groups = WARPS / TALL, rows = TALL * 16;
    const int down = (p->rows + rows - 1) / rows;
    const int tiles = down * p->op.kv_heads * p->op.batches;
    const int pieces = (p->op.past + p->op.keys + KEYS - 1) / KEYS;
    p->cluster = 1;
    while (p->cluster < MOST_CLUSTER && tiles * p->cluster * 2 <= 132 &&
           pieces > p->cluster * groups)
        p->cluster *= 2;
    launch how = {};
    how.grid = dim3((unsigned)(down * p->cluster), (unsigned)p->op.kv_heads,
                    (unsigned)p->op.batches);
    how.cluster = (unsigned)p->cluster;
    how.threads = WARPS * 32;
    how.shared_bytes = (size_t)groups * places_of(WARPS) * 2 *
                       piece<SIZE, KEYS, TALL * 32>::bytes;
    if (how.shared_bytes < partial<SIZE, groups, rows>::bytes)
        how.shared_bytes = partial<SIZE, groups, rows>::bytes;
    return start(few_kernel<SIZE, KEYS, TALL, WARPS>, &how, p, order);
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
static bool are_many(const problem *p)
{
    return (p->rows + 63) / 64 * p->op.kv_heads * p->op.batches >= 80;
}

template <int SIZE>
static cudaError_t run_size(problem *p, td_native_cuda_order order)
{
    const int tiles = (p->rows + 15) / 16 * p->op.kv_heads * p->op.batches;
    if (are_many(p)) return run_many<SIZE, 64, 4>(p, order);
    return tiles > 132 / 2 ? run_few<SIZE, 32, 1, 4>(p, order)
                           : run_few<SIZE, 32, 1, 8>(p, order);
}

// Large heads: what is read of keys counts, so rows stand together.
static cudaError_t run_large(problem *p, td_native_cuda_order order)
{
    if (are_many(p)) return run_many<256, 32, 4>(p, order);
    return p->rows * p->op.kv_heads * p->op.batches <= 13 * 32
               ? run_few<256, 32, 2, 8>(p, order)
               : run_few<256, 32, 4, 8>(p, order);
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
    if (attention->size <= 16) return run_size<16>(&p, order);
    if (attention->size <= 32) return run_size<32>(&p, order);
    if (attention->size <= 64) return run_size<64>(&p, order);
    if (attention->size <= 80) return run_size<80>(&p, order);
    if (attention->size <= 128) return run_size<128>(&p, order);
    return run_large(&p, order);
}
