// SPDX-License-Identifier: Apache-2.0
// Convolutions: the choice of an algorithm, and the one that does any of them.
//
// td_native_cpu_conv() adds one step to the graph, or two where there is a
// shortcut, which goes into the output first and is added from there. Windows
// of 3 x 3 with stride 1 go to winograd.c; all others are done here, directly.
//
// Directly: a task is a band of rows of the output. It copies the rows of the
// picture that the band looks at, with a border of zeros; then a window is
// `runs` pieces of that copy, and the windows of a row are rows of a product
// that overlap, which the kernel multiplies without copying them. With pooling
// the band is computed in scratch memory, with the rows of its neighbours that
// it needs, and only the largest leave it.
//
// Bands are small enough for the cache and even among the threads; what a pixel
// is does not depend on them, so that any number of threads gives the same
// bits. Weights are packed when they are first used, once for all graphs.
#include "engine/native/cpu/backend.h"

#include <string.h>

#define BAND_PIXELS 96 // at least, so that weights are read seldom
#define POOL_BAND 4    // rows after pooling
#define NEAR_FLOATS (32u << 10)

// What of the picture a task computes: rows [row, row + rows) of the output.
typedef struct band {
    uint32_t member;
    int32_t row;
    uint32_t rows;
    float *picture; // [height][width + 2 pad][in]
    float *sums;    // the first row
} band;

static uint32_t picture_width(const td_native_cpu_direct *conv)
{
    return conv->op.width + 2 * conv->op.weight->source.pad;
}

static uint32_t picture_height(const td_native_cpu_direct *conv, uint32_t rows)
{
    const td_ops_conv_source *source = &conv->op.weight->source;
    return (rows - 1) * source->stride +
           (source->kernel - 1) * source->dilation + 1;
}

static void copy_pixels(const td_native_cpu_direct *conv, uint32_t member,
                        uint32_t row, float *to)
{
    const td_ops_view *x = &conv->op.x;
    size_t first = (size_t)row * conv->op.width;
    if (!conv->op.pixels) {
        memcpy(to, td_native_cpu_row(x, member, (uint32_t)first),
               (size_t)conv->op.width * x->cols * sizeof *to);
        return;
    }
    const uint8_t *from = (const uint8_t *)x->data + member * x->batch_stride +
                          first * x->row_stride;
    const float *scale = conv->pixels.scale, *shift = conv->pixels.shift;
    for (size_t i = 0; i < conv->op.width; i++)
        for (size_t c = 0; c < 3; c++)
            to[3 * i + c] = (float)from[3 * i + c] * scale[c] + shift[c];
}

// The rows that the band looks at, zeros where there is no picture.
static void copy_picture(const td_native_cpu_direct *conv, const band *of)
{
    const td_ops_conv_source *source = &conv->op.weight->source;
    size_t wide = (size_t)picture_width(conv) * source->in;
    size_t edge = (size_t)source->pad * source->in;
    int64_t first = (int64_t)of->row * source->stride - source->pad;
    uint32_t height = picture_height(conv, of->rows);
    for (uint32_t i = 0; i < height; i++) {
        float *to = of->picture + i * wide;
        int64_t row = first + i;
        if (row < 0 || row >= conv->op.height) {
            memset(to, 0, wide * sizeof *to);
            continue;
        }
        memset(to, 0, edge * sizeof *to);
        copy_pixels(conv, of->member, (uint32_t)row, to + edge);
        memset(to + wide - edge, 0, edge * sizeof *to);
    }
}

// Rows [row, row + rows) of the band's.
typedef struct part {
    uint32_t row, rows;
} part;

static float *sums_of(const td_native_cpu_direct *conv, const band *of,
                      uint32_t row)
{
    return of->sums +
           (size_t)row * conv->out_width * conv->op.weight->source.out;
}

static void fill(const td_native_cpu_direct *conv, const band *of, part rows)
{
    const td_ops_conv_weight *weight = conv->op.weight;
    const td_ops_view *add = &conv->op.add;
    uint32_t channels = weight->source.out;
    uint32_t first = ((uint32_t)of->row + rows.row) * conv->out_width;
    uint32_t pixels = rows.rows * conv->out_width;
    float *to = sums_of(conv, of, rows.row);
    for (uint32_t i = 0; i < pixels; i++, to += channels) {
        if (!add->data) {
            memcpy(to, weight->bias, channels * sizeof *to);
            continue;
        }
        const float *from = td_native_cpu_row(add, of->member, first + i);
        for (uint32_t c = 0; c < channels; c++)
            to[c] = from[c] + weight->bias[c];
    }
}

static void multiply(const td_native_cpu_step *step, const band *of, part rows)
{
    const td_native_cpu_direct *conv = &step->as.direct;
    const td_ops_conv_source *source = &conv->op.weight->source;
    uint32_t panel = step->kernel->panel;
    size_t depth = (size_t)conv->runs * conv->depth;
    size_t line = (size_t)picture_width(conv) * source->in * source->stride;
    for (uint32_t at = 0; at < source->out; at += panel) {
        uint32_t left = source->out - at;
        td_native_cpu_product product = {
            .a_stride = (size_t)source->stride * source->in,
            .starts = conv->starts,
            .runs = conv->runs,
            .depth = conv->depth,
            .panel = conv->op.weight->direct + at * depth,
            .c_stride = source->out,
            .rows = conv->out_width,
            .cols = left < panel ? left : panel,
        };
        for (uint32_t i = rows.row; i < rows.row + rows.rows; i++) {
            product.a = of->picture + i * line;
            product.c = sums_of(conv, of, i) + at;
            step->kernel->multiply(&product);
        }
    }
}

static void activate(const td_native_cpu_direct *conv, const band *of,
                     part rows)
{
    size_t count =
        (size_t)rows.rows * conv->out_width * conv->op.weight->source.out;
    float *sums = sums_of(conv, of, rows.row);
    if (conv->op.activation != TD_OPS_RELU) return;
    for (size_t i = 0; i < count; i++)
        sums[i] = sums[i] > 0 ? sums[i] : 0;
}

// All weights for a row where they are near, else all rows for a panel of them.
static void compute(const td_native_cpu_step *step, const band *of)
{
    const td_native_cpu_direct *conv = &step->as.direct;
    size_t weights =
        (size_t)conv->runs * conv->depth * conv->op.weight->source.out;
    uint32_t each = weights <= NEAR_FLOATS ? 1 : of->rows;
    copy_picture(conv, of);
    for (uint32_t row = 0; row < of->rows; row += each) {
        uint32_t left = of->rows - row;
        const part rows = {row, left < each ? left : each};
        fill(conv, of, rows);
        multiply(step, of, rows);
        activate(conv, of, rows);
    }
}

// The largest of 3 x 3 around pixel (2 row, 2 col) of the band's sums.
static void pool_pixel(const td_native_cpu_direct *conv, const band *of,
                       int64_t row, int64_t col, float *to)
{
    uint32_t channels = conv->op.weight->source.out;
    bool first = true;
    for (int64_t y = 2 * row - 1; y <= 2 * row + 1; y++) {
        if (y < 0 || y >= conv->out_height) continue;
        for (int64_t x = 2 * col - 1; x <= 2 * col + 1; x++) {
            if (x < 0 || x >= conv->out_width) continue;
            const float *from =
                of->sums +
                (size_t)((y - of->row) * conv->out_width + x) * channels;
            for (uint32_t c = 0; c < channels; c++)
                to[c] = first || from[c] > to[c] ? from[c] : to[c];
            first = false;
        }
    }
}

static void run_pooled(const td_native_cpu_step *step, uint32_t task,
                       float *scratch)
{
    const td_native_cpu_direct *conv = &step->as.direct;
    uint32_t height = td_ops_conv_size(conv->out_height, 3, 2, 1, 1);
    uint32_t width = td_ops_conv_size(conv->out_width, 3, 2, 1, 1);
    uint32_t from = task % conv->bands * conv->band;
    uint32_t to = from + conv->band < height ? from + conv->band : height;
    uint32_t above = from > 0 ? 2 * from - 1 : 0, below = 2 * to;
    if (below > conv->out_height) below = conv->out_height;
    band of = {.member = task / conv->bands,
               .row = (int32_t)above,
               .rows = below - above,
               .sums = scratch};
    of.picture = scratch + (size_t)(2 * conv->band + 1) * conv->out_width *
                               conv->op.weight->source.out;
    compute(step, &of);
    for (uint32_t row = from; row < to; row++)
        for (uint32_t col = 0; col < width; col++)
            pool_pixel(
                conv, &of, row, col,
                td_native_cpu_row(&conv->op.out, of.member, row * width + col));
}

static void run_direct(const td_native_cpu_step *step, uint32_t task,
                       float *scratch)
{
    const td_native_cpu_direct *conv = &step->as.direct;
    uint32_t row = task % conv->bands * conv->band;
    uint32_t left = conv->out_height - row;
    band of = {.member = task / conv->bands,
               .row = (int32_t)row,
               .rows = left < conv->band ? left : conv->band,
               .picture = scratch};
    of.sums =
        td_native_cpu_row(&conv->op.out, of.member, row * conv->out_width);
    compute(step, &of);
}

typedef struct packing {
    td_ops_conv_weight *weight;
    uint32_t panel;
} packing;

// A panel of output channels, in the order of a window: rows, columns, input
// channels.
static void pack(void *user, uint32_t task, uint32_t thread)
{
    (void)thread;
    const packing *self = user;
    const td_ops_conv_weight *weight = self->weight;
    const td_ops_conv_source *source = &weight->source;
    uint32_t area = source->kernel * source->kernel, first = task * self->panel;
    float *to = weight->direct + (size_t)first * area * source->in;
    for (uint32_t col = 0; col < self->panel && first + col < source->out;
         col++) {
        size_t from = (size_t)(first + col) * source->in * area;
        float scale = weight->scale ? weight->scale[first + col] : 1.0f;
        for (uint32_t c = 0; c < source->in; c++)
            for (uint32_t i = 0; i < area; i++)
                to[((size_t)i * source->in + c) * self->panel + col] =
                    scale * td_native_cpu_number(&source->weight, from++);
    }
}

static td_err prepare(td_ops_backend *backend, td_ops_conv_weight *weight,
                      td_errinfo *info)
{
    if (weight->direct) return TD_OK;
    void *packed = NULL;
    const td_ops_conv_source *source = &weight->source;
    uint32_t panel = td_native_cpu_backend_step(backend).kernel->panel;
    uint32_t panels = td_native_cpu_ceil(source->out, panel);
    size_t depth = (size_t)source->kernel * source->kernel * source->in;
    TD_TRY(td_native_cpu_backend_alloc(
        backend, depth * panels * panel * sizeof(float), &packed, info));
    weight->direct = packed;
    packing work = {.weight = weight, .panel = panel};
    td_native_cpu_pool_run(td_native_cpu_backend_pool(backend), panels, pack,
                           &work);
    return TD_OK;
}

// Where the pieces of a window begin in the copy of the picture.
static void place_runs(td_native_cpu_direct *conv)
{
    const td_ops_conv_source *source = &conv->op.weight->source;
    size_t line = (size_t)picture_width(conv) * source->in * source->dilation;
    bool whole = source->dilation == 1; // a row of the window is one piece
    uint32_t across = whole ? 1 : source->kernel;
    conv->runs = source->kernel * across;
    conv->depth = whole ? source->kernel * source->in : source->in;
    for (uint32_t i = 0; i < conv->runs; i++)
        conv->starts[i] = i / across * line +
                          (size_t)(i % across) * source->dilation * source->in;
}

// Returns the scratch memory of a task.
static size_t place_bands(td_native_cpu_direct *conv, uint32_t threads)
{
    uint32_t height = conv->out_height, rows = 0;
    size_t sums = 0;
    if (conv->op.pool) {
        conv->band = POOL_BAND;
        height = td_ops_conv_size(height, 3, 2, 1, 1);
        rows = 2 * conv->band + 1;
        sums = (size_t)rows * conv->out_width * conv->op.weight->source.out;
    } else {
        rows = td_native_cpu_ceil(BAND_PIXELS, conv->out_width);
        uint32_t bands =
            td_native_cpu_even(td_native_cpu_ceil(height, rows), threads);
        rows = conv->band = td_native_cpu_ceil(height, bands);
    }
    conv->bands = td_native_cpu_ceil(height, conv->band);
    return sums + (size_t)picture_height(conv, rows) * picture_width(conv) *
                      conv->op.weight->source.in;
}

static td_err add_direct(td_ops_backend *backend, const td_ops_conv *op,
                         td_errinfo *info)
{
    td_ops_conv_weight *weight = op->weight;
    const td_ops_conv_source *source = &weight->source;
    td_native_cpu_step step = td_native_cpu_backend_step(backend);
    td_native_cpu_direct *conv = &step.as.direct;
    *conv = (td_native_cpu_direct){
        .op = *op,
        .out_height =
            td_ops_conv_size(op->height, source->kernel, source->stride,
                             source->pad, source->dilation),
        .out_width = td_ops_conv_size(op->width, source->kernel, source->stride,
                                      source->pad, source->dilation),
    };
    if (op->pixels) conv->pixels = *op->pixels;
    TD_TRY(prepare(backend, weight, info));
    place_runs(conv);
    size_t scratch = place_bands(conv, td_native_cpu_backend_threads(backend));
    step.task = op->pool ? run_pooled : run_direct;
    step.tasks = op->x.batch * conv->bands;
    return td_native_cpu_backend_add(backend, &step, scratch, info);
}

static uint32_t out_size(const td_ops_conv *op, uint32_t size)
{
    const td_ops_conv_source *source = &op->weight->source;
    size = td_ops_conv_size(size, source->kernel, source->stride, source->pad,
                            source->dilation);
    return op->pool ? td_ops_conv_size(size, 3, 2, 1, 1) : size;
}

static td_err check(const td_ops_conv *op, td_errinfo *info)
{
    const td_ops_conv_source *source = &op->weight->source;
    uint32_t channels = op->pixels ? 3 : source->in;
    if (source->in != channels || op->x.cols != channels ||
        op->x.rows != op->height * op->width || op->out.cols != source->out ||
        op->out.rows != out_size(op, op->height) * out_size(op, op->width) ||
        op->x.batch != op->out.batch || (op->pool && !op->pixels) ||
        (op->pixels && op->x.dtype != TD_OPS_U8) ||
        op->activation == TD_OPS_GELU ||
        source->kernel * source->kernel > TD_NATIVE_CPU_MAX_RUNS)
        return td_fail(info, TD_ERR_INVALID,
                       "a convolution of %u to %u channels does not fit its "
                       "views",
                       source->in, source->out);
    return TD_OK;
}

static td_err add_one(td_ops_backend *backend, const td_ops_conv *op,
                      td_errinfo *info)
{
    TD_TRY(check(op, info));
    if (td_native_cpu_winograd_can(td_native_cpu_backend_step(backend).kernel,
                                   op))
        return td_native_cpu_winograd_add(backend, op, info);
    return add_direct(backend, op, info);
}

// The shortcut goes into the output first, and is added from there.
td_err td_native_cpu_conv(td_ops_backend *backend, const td_ops_conv *op,
                          td_errinfo *info)
{
    td_ops_conv last = *op;
    if (op->shortcut_weight) {
        const td_ops_conv first = {
            .weight = op->shortcut_weight,
            .height = op->shortcut_height,
            .width = op->shortcut_width,
            .x = op->shortcut,
            .add = op->add,
            .out = op->out,
        };
        TD_TRY(add_one(backend, &first, info));
        last.add = op->out;
        last.shortcut_weight = NULL;
    }
    return add_one(backend, &last, info);
}
