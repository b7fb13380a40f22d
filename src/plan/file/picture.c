// SPDX-License-Identifier: Apache-2.0
// Draws a plan as one SVG: nodes from the top down, the GPUs of each side by
// side, and in each GPU its servers with who asks them and how much of what
// they can take is asked.
//
// Heights follow from the content: the functions that draw return where the
// next thing begins, and with no stream to write to they only measure, so that
// the picture's size is known before its first line is written.
//
// Models have colours in the order in which they first stand in the plan, from
// a palette that the colour-blind can tell apart. Texts that are too long for
// their box end in an ellipsis, and all of them are escaped. The output depends
// on the plan alone, byte for byte.
#include "plan/file/show.h"

#include <string.h>

#define BOX_WIDTH 250
#define GAP 14
#define COLUMNS 4
#define TOP 66
#define INSET 10
#define LINE 15       // from one line of text to the next
#define NODE_LINE 26  // the name of a node above its GPUs
#define HEAD_LINE 24  // the name of a GPU
#define MOST_CHARS 36 // of a line that stays in its box
#define MOST_USERS 6  // tasks that are named

// Of Okabe and Ito's palette, as base/chart has it.
static const char *const colours[] = {"#0072b2", "#e69f00", "#009e73",
                                      "#d55e00", "#cc79a7", "#56b4e9"};

// Texts too long for a box end in an ellipsis.
static void put_text(const char *text, size_t most, FILE *out)
{
    size_t size = strlen(text);
    for (size_t i = 0; i < size; i++) {
        if (size > most && i == most - 1) {
            (void)fputs("\xe2\x80\xa6", out);
            return;
        }
        if (text[i] == '<')
            (void)fputs("&lt;", out);
        else if (text[i] == '>')
            (void)fputs("&gt;", out);
        else if (text[i] == '&')
            (void)fputs("&amp;", out);
        else if (text[i] == '"')
            (void)fputs("&quot;", out);
        else
            (void)fputc((unsigned char)text[i] < ' ' ? ' ' : text[i], out);
    }
}

// Models in the order in which they first stand in the plan.
static const char *colour_of(const td_plan *plan, uint32_t server)
{
    size_t kinds = 0;
    for (size_t i = 0; i < server; i++) {
        size_t before = 0;
        while (before < i &&
               strcmp(plan->servers[before].model, plan->servers[i].model) != 0)
            before++;
        if (strcmp(plan->servers[i].model, plan->servers[server].model) == 0)
            break;
        kinds += before == i;
    }
    return colours[kinds % TD_COUNT_OF(colours)];
}

static void draw_text(int x, int y, const char *style, const char *text,
                      FILE *out)
{
    (void)fprintf(out, "<text x=\"%d\" y=\"%d\" class=\"%s\">", x, y, style);
    put_text(text, MOST_CHARS, out);
    (void)fputs("</text>\n", out);
}

static bool is_on(const td_plan_server *server, const char *node, uint32_t gpu)
{
    return server->gpu == gpu && strcmp(server->node, node) == 0;
}

static uint32_t count_tasks(const td_plan *plan, uint32_t server)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < plan->class_count; i++)
        count += td_plan_users(plan, server, i) > 0;
    return count;
}

static int server_height(const td_plan *plan, uint32_t index)
{
    uint32_t tasks = count_tasks(plan, index);
    if (plan->servers[index].standby) return LINE;
    if (tasks > MOST_USERS) tasks = MOST_USERS;
    return LINE * (2 + (int)tasks) + 16;
}

static int gpu_height(const td_plan *plan, const char *node, uint32_t gpu)
{
    int height = HEAD_LINE + INSET;
    for (uint32_t i = 0; i < plan->server_count; i++)
        if (is_on(&plan->servers[i], node, gpu))
            height += server_height(plan, i);
    return height;
}

// One task a line; the last one stands for those that do not fit.
static int draw_users(const td_plan *plan, uint32_t index, int x, int y,
                      FILE *out)
{
    uint32_t left = count_tasks(plan, index);
    uint32_t lines = 0;
    char text[128];
    for (uint32_t i = 0; i < plan->class_count && lines < MOST_USERS; i++) {
        uint32_t users = td_plan_users(plan, index, i);
        if (users == 0) continue;
        if (lines == MOST_USERS - 1 && left > 1)
            (void)snprintf(text, sizeof text, "and robots of %u more tasks",
                           left);
        else
            (void)snprintf(text, sizeof text, "%u %s", users,
                           plan->classes[i].task);
        draw_text(x, y, "s", text, out);
        y += LINE;
        lines++;
        left--;
    }
    return y;
}

// How much of what it can take is asked of it.
static int draw_load(const td_plan_server *server, const char *colour, int x,
                     int y, FILE *out)
{
    int width = BOX_WIDTH - 2 * INSET;
    char text[128];
    double part =
        server->capacity_hz > 0 ? server->rate_hz / server->capacity_hz : 0;
    if (part > 1) part = 1;
    (void)snprintf(text, sizeof text, "%.1f of %.1f a second, %.0f %% left",
                   server->rate_hz, server->capacity_hz, 100 * (1 - part));
    draw_text(x, y, "s", text, out);
    (void)fprintf(out,
                  "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"6\" "
                  "class=\"b\"/>\n<rect x=\"%d\" y=\"%d\" width=\"%.1f\" "
                  "height=\"6\" fill=\"%s\"/>\n",
                  x, y + 5, width, x, y + 5, width * part, colour);
    return y + LINE + 10;
}

static int draw_server(const td_plan *plan, uint32_t index, int x, int y,
                       FILE *out)
{
    const td_plan_server *server = &plan->servers[index];
    const char *colour = colour_of(plan, index);
    const char *slash = strrchr(server->model, '/');
    char text[300];
    (void)fputs("<g><title>", out);
    put_text(server->id, SIZE_MAX, out);
    (void)fprintf(out,
                  "</title><rect x=\"%d\" y=\"%d\" width=\"9\" height=\"9\" "
                  "fill=\"%s\"/>\n",
                  x, y - 9, colour);
    (void)snprintf(text, sizeof text, "%s%s", slash ? slash + 1 : server->model,
                   server->standby ? ", standby" : "");
    if (!server->standby)
        (void)snprintf(text + strlen(text), sizeof text - strlen(text),
                       ", batch %u", server->batch_most);
    if (!server->standby && server->wait == TD_CONFIG_WAIT_FIXED)
        (void)snprintf(text + strlen(text), sizeof text - strlen(text),
                       " within %.0f ms", server->wait_ms);
    draw_text(x + 14, y, "s", text, out);
    y += LINE;
    if (!server->standby) {
        y = draw_load(server, colour, x, y, out);
        y = draw_users(plan, index, x, y, out) + 6;
    }
    (void)fputs("</g>\n", out);
    return y;
}

static void draw_gpu(const td_plan *plan, const char *node, uint32_t gpu, int x,
                     int y, FILE *out)
{
    char text[32];
    bool standby = false;
    for (uint32_t i = 0; i < plan->server_count; i++)
        if (is_on(&plan->servers[i], node, gpu))
            standby = plan->servers[i].standby;
    (void)fprintf(out,
                  "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"4\" "
                  "class=\"g\"%s/>\n",
                  x, y, BOX_WIDTH, gpu_height(plan, node, gpu),
                  standby ? " stroke-dasharray=\"5 4\"" : "");
    (void)snprintf(text, sizeof text, "GPU %u", gpu);
    draw_text(x + INSET, y + 20, "h", text, out);
    y += HEAD_LINE + 14;
    for (uint32_t i = 0; i < plan->server_count; i++)
        if (is_on(&plan->servers[i], node, gpu))
            y = draw_server(plan, i, x + INSET, y, out);
}

// The next GPU of a node that has a model; from 0 on. False: none.
static bool next_gpu(const td_plan *plan, const char *node, uint32_t from,
                     uint32_t *ret_gpu)
{
    bool found = false;
    for (size_t i = 0; i < plan->server_count; i++) {
        const td_plan_server *server = &plan->servers[i];
        if (strcmp(server->node, node) != 0 || server->gpu < from ||
            (found && server->gpu >= *ret_gpu))
            continue;
        *ret_gpu = server->gpu;
        found = true;
    }
    return found;
}

// The next node by name after one; NULL: none.
static const char *next_node(const td_plan *plan, const char *after)
{
    const char *best = NULL;
    for (size_t i = 0; i < plan->server_count; i++) {
        const char *node = plan->servers[i].node;
        if (strcmp(node, after) > 0 && (!best || strcmp(node, best) < 0))
            best = node;
    }
    return best;
}

// The GPUs of a node below its name. Returns where the next one begins; without
// a stream it only looks.
static int draw_node(const td_plan *plan, const char *node, int y, FILE *out)
{
    uint32_t gpu = 0;
    int column = 0;
    int highest = 0;
    if (out) draw_text(GAP, y + 16, "h", node, out);
    y += NODE_LINE;
    for (uint32_t from = 0; next_gpu(plan, node, from, &gpu); from = gpu + 1) {
        if (column == COLUMNS) {
            y += highest + GAP;
            column = highest = 0;
        }
        if (out)
            draw_gpu(plan, node, gpu, GAP + column * (BOX_WIDTH + GAP), y, out);
        int height = gpu_height(plan, node, gpu);
        if (height > highest) highest = height;
        column++;
    }
    return y + highest + GAP;
}

static int draw_nodes(const td_plan *plan, FILE *out)
{
    int y = TOP;
    for (const char *node = next_node(plan, ""); node;
         node = next_node(plan, node))
        y = draw_node(plan, node, y, out);
    return y;
}

void td_plan_picture(const td_plan *plan, FILE *out)
{
    int width = GAP + COLUMNS * (BOX_WIDTH + GAP);
    int height = draw_nodes(plan, NULL);
    (void)fprintf(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
        "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\">\n"
        "<style>text{fill:#222}.t{font-size:16px}.h{font-size:13px;"
        "font-weight:bold}.s{font-size:11px}.g{fill:none;stroke:#888;"
        "stroke-width:1.5}.b{fill:#8884}"
        "@media(prefers-color-scheme:dark){text{fill:#ddd}}</style>\n",
        width, height, width, height);
    (void)fprintf(
        out,
        "<text x=\"%d\" y=\"28\" class=\"t\">%zu robots on %u of %u "
        "GPUs: %.1f actions a second</text>\n"
        "<text x=\"%d\" y=\"48\" class=\"s\">each box is a GPU with "
        "its models and who asks them; a bar is what is asked of what "
        "can be answered in time</text>\n",
        GAP, plan->robot_count, plan->gpus_used, plan->gpus, plan->actions_hz,
        GAP);
    (void)draw_nodes(plan, out);
    (void)fputs("</svg>\n", out);
}
