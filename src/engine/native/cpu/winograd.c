// SPDX-License-Identifier: Apache-2.0
// Convolutions of 3 x 3 with stride 1 by the minimal algorithm (Lavin and Gray,
// 2015): tiles of the picture and the weights go into another space, where a
// tile of 4 x 4 results costs 36 products for each pair of channels instead of
// 144, or one of 2 x 2 costs 16 instead of 36.
//
// Weights grow there, 4 and 1.8 times: the smaller tile is for small pictures,
// where reading them would cost more than computing. They are brought into that
// space when they are first used, once for all graphs.
//
// A task is a block of tiles: it brings them into that space in its scratch
// memory, multiplies (one product for each of the tile's numbers, tiles x
// channels in with channels in x channels out), and brings the results back
// with bias, addition and ReLU. A tile is computed the same way in whichever
// block it is, so that answers do not depend on the batch or the threads.
#include "engine/native/cpu/backend.h"

#define LARGE_PIXELS 1024         // from here on tiles of 4 x 4
#define BLOCK_FLOATS (384u << 10) // tiles of a task before and after
#define STRIP 6
#define APART                                                                  \
    16 // floats between the products of a block: were they a power of
       // two apart, all would want the same lines of the cache

bool td_native_cpu_winograd_can(const td_native_cpu_kernel *kernel,
                                const td_ops_conv *op)
{
    const td_ops_conv_source *source = &op->weight->source;
    return source->kernel == 3 && source->stride == 1 && source->pad == 1 &&
           source->dilation == 1 && !op->pixels &&
           source->in % kernel->panel == 0 && source->out % kernel->panel == 0;
}

static const float to_large[6][3] = {
    {1.0f / 4, 0, 0},
    {-1.0f / 6, -1.0f / 6, -1.0f / 6},
    {-1.0f / 6, 1.0f / 6, -1.0f / 6},
    {1.0f / 24, 1.0f / 12, 1.0f / 6},
    {1.0f / 24, -1.0f / 12, 1.0f / 6},
    {0, 0, 1},
};
static const float to_small[4][3] = {
    {1, 0, 0},
    {0.5f, 0.5f, 0.5f},
    {0.5f, -0.5f, 0.5f},
    {0, 0, 1},
};

typedef struct packing {
    const td_ops_conv_weight *weight;
    const float (*matrix)[3];
    uint32_t side, panel;
    float *to;
} packing;

// One pair of channels: side x side numbers, `step` apart.
static void pack_pair(const packing *self, const float *window, size_t step,
                      float *to)
{
    float half[6][3];
    for (uint32_t y = 0; y < self->side; y++)
        for (uint32_t x = 0; x < 3; x++)
            half[y][x] = self->matrix[y][0] * window[x] +
                         self->matrix[y][1] * window[3 + x] +
                         self->matrix[y][2] * window[6 + x];
    for (uint32_t y = 0; y < self->side; y++)
        for (uint32_t x = 0; x < self->side; x++)
            to[(size_t)(y * self->side + x) * step] =
                self->matrix[x][0] * half[y][0] +
                self->matrix[x][1] * half[y][1] +
                self->matrix[x][2] * half[y][2];
}

// A panel of output channels.
static void pack(void *user, uint32_t task, uint32_t thread)
{
    (void)thread;
    const packing *self = user;
    const td_ops_conv_source *source = &self->weight->source;
    size_t step = (size_t)source->in * source->out;
    for (uint32_t col = 0; col < self->panel; col++) {
        uint32_t out = task * self->panel + col;
        float scale = self->weight->scale ? self->weight->scale[out] : 1.0f;
        float *to = self->to + (size_t)task * self->panel * source->in + col;
        for (uint32_t in = 0; in < source->in; in++, to += self->panel) {
            float window[9];
            size_t from = ((size_t)out * source->in + in) * 9;
            for (uint32_t i = 0; i < 9; i++)
                window[i] =
                    scale * td_native_cpu_number(&source->weight, from + i);
            pack_pair(self, window, step, to);
        }
    }
}

static td_err prepare(td_ops_backend *backend, td_ops_conv_weight *weight,
                      uint32_t tile, const float **ret_packed, td_errinfo *info)
{
    float **slot = &weight->tiles[tile == 6];
    const td_ops_conv_source *source = &weight->source;
    if (!*slot) {
        void *packed = NULL;
        size_t count = (size_t)tile * tile * source->in * source->out;
        TD_TRY(td_native_cpu_backend_alloc(backend, count * sizeof(float),
                                           &packed, info));
        *slot = packed;
        packing work = {
            .weight = weight,
            .matrix = tile == 6 ? to_large : to_small,
            .side = tile,
            .panel = td_native_cpu_backend_step(backend).kernel->panel,
            .to = packed,
        };
        td_native_cpu_pool_run(td_native_cpu_backend_pool(backend),
                               source->out / work.panel, pack, &work);
    }
    *ret_packed = *slot;
    return TD_OK;
}

// Where a tile lies.
typedef struct spot {
    uint32_t member;
    int64_t row, col; // of its first result
} spot;

static spot spot_of(const td_native_cpu_winograd *conv, uint32_t tile)
{
    uint32_t each = conv->across * conv->down, wide = conv->side - 2;
    return (spot){
        .member = tile / each,
        .row = (int64_t)(tile % each / conv->across) * wide,
        .col = (int64_t)(tile % each % conv->across) * wide,
    };
}

static bool inside(const td_ops_conv *op, int64_t row, int64_t col)
{
    return row >= 0 && row < op->height && col >= 0 && col < op->width;
}

static void take_in(const td_native_cpu_step *step, uint32_t tile, size_t size,
                    float *to)
{
    const td_native_cpu_winograd *conv = &step->as.winograd;
    const td_ops_conv *op = &conv->op;
    const float *pixels[36];
    spot at = spot_of(conv, tile);
    for (uint32_t i = 0; i < conv->side * conv->side; i++) {
        int64_t row = at.row - 1 + i / conv->side;
        int64_t col = at.col - 1 + i % conv->side;
        pixels[i] = inside(op, row, col)
                        ? td_native_cpu_row(&op->x, at.member,
                                            (uint32_t)(row * op->width + col))
                        : op->weight->zeros;
    }
    const td_native_cpu_tile shape = {conv->side, op->weight->source.in, size};
    step->kernel->tile_in(&shape, pixels, to);
}

static void give_out(const td_native_cpu_step *step, uint32_t tile, size_t size,
                     const float *from)
{
    const td_native_cpu_winograd *conv = &step->as.winograd;
    const td_ops_conv *op = &conv->op;
    const float *adds[16] = {NULL};
    float *pixels[16] = {NULL};
    uint32_t wide = conv->side - 2;
    spot at = spot_of(conv, tile);
    for (uint32_t i = 0; i < wide * wide; i++) {
        int64_t row = at.row + i / wide, col = at.col + i % wide;
        uint32_t pixel = (uint32_t)(row * op->width + col);
        if (!inside(op, row, col)) continue;
        pixels[i] = td_native_cpu_row(&op->out, at.member, pixel);
        if (op->add.data)
            adds[i] = td_native_cpu_row(&op->add, at.member, pixel);
    }
    const td_native_cpu_tile shape = {conv->side, op->weight->source.out, size};
    step->kernel->tile_out(&shape, from, op->weight->bias,
                           op->add.data ? adds : NULL,
                           op->activation == TD_OPS_RELU, pixels);
}

// One of the side x side products: tiles x in with in x out.
static void multiply(const td_native_cpu_step *step, uint32_t tiles,
                     const float *a, const float *packed, float *c)
{
    const td_ops_conv_source *source = &step->as.winograd.op.weight->source;
    td_native_cpu_product product = {
        .a = a,
        .a_stride = source->in,
        .starts = &(size_t){0},
        .runs = 1,
        .depth = source->in,
        .c_stride = source->out,
        .rows = tiles,
        .cols = step->kernel->panel,
        .fresh = true,
    };
    for (uint32_t at = 0; at < source->out; at += step->kernel->panel) {
        product.panel = packed + (size_t)at * source->in;
        product.c = c + at;
        step->kernel->multiply(&product);
    }
}

static void run_tiles(const td_native_cpu_step *step, uint32_t task,
                      float *scratch)
{
    const td_native_cpu_winograd *conv = &step->as.winograd;
    const td_ops_conv_source *source = &conv->op.weight->source;
    uint32_t first = task * conv->block;
    uint32_t left = conv->op.x.batch * conv->across * conv->down - first;
    uint32_t tiles = left < conv->block ? left : conv->block;
    uint32_t area = conv->side * conv->side;
    size_t before = (size_t)tiles * source->in + APART;
    size_t after = (size_t)tiles * source->out + APART;
    float *sums = scratch + area * before;
    for (uint32_t i = 0; i < tiles; i++)
        take_in(step, first + i, before, scratch + (size_t)i * source->in);
    for (uint32_t i = 0; i < area; i++)
        multiply(step, tiles, scratch + i * before,
                 conv->weight + (size_t)i * source->in * source->out,
                 sums + i * after);
    for (uint32_t i = 0; i < tiles; i++)
        give_out(step, first + i, after, sums + (size_t)i * source->out);
}

// Tiles of a task: what is near, in whole strips, and as much work for every
// thread.
static uint32_t block_of(const td_native_cpu_winograd *conv, uint32_t tiles,
                         uint32_t threads)
{
    const td_ops_conv_source *source = &conv->op.weight->source;
    uint32_t area = conv->side * conv->side;
    uint32_t most = BLOCK_FLOATS / (area * (source->in + source->out));
    uint32_t blocks = td_native_cpu_even(
        td_native_cpu_ceil(tiles, most > STRIP ? most : STRIP), threads);
    return td_native_cpu_ceil(td_native_cpu_ceil(tiles, blocks), STRIP) * STRIP;
}

td_err td_native_cpu_winograd_add(td_ops_backend *backend,
                                  const td_ops_conv *op, td_errinfo *info)
{
    td_ops_conv_weight *weight = op->weight;
    td_native_cpu_step step = td_native_cpu_backend_step(backend);
    td_native_cpu_winograd *conv = &step.as.winograd;
    *conv = (td_native_cpu_winograd){
        .op = *op,
        .side = op->x.rows >= LARGE_PIXELS ? 6 : 4,
    };
    TD_TRY(prepare(backend, weight, conv->side, &conv->weight, info));
    conv->across = td_native_cpu_ceil(op->width, conv->side - 2);
    conv->down = td_native_cpu_ceil(op->height, conv->side - 2);
    uint32_t tiles = op->x.batch * conv->across * conv->down;
    conv->block = block_of(conv, tiles, td_native_cpu_backend_threads(backend));
    step.task = run_tiles;
    step.tasks = td_native_cpu_ceil(tiles, conv->block);
    size_t each =
        (size_t)conv->block * (weight->source.in + weight->source.out) +
        2 * (size_t)APART;
    return td_native_cpu_backend_add(backend, &step,
                                     each * conv->side * conv->side, info);
}
