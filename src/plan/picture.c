// SPDX-License-Identifier: Apache-2.0
#include "plan/show.h"

#include <string.h>

#define BOX_WIDTH 230
#define BOX_HEIGHT 92
#define GAP 14
#define COLUMNS 4
#define TOP 64

// Of Okabe and Ito's palette, as base/chart has it.
static const char *const colours[] = {"#0072b2", "#e69f00", "#009e73",
                                      "#d55e00", "#cc79a7", "#56b4e9"};

static void put_text(const char *text, FILE *out)
{
    for (; *text; text++) {
        if (*text == '<')
            (void)fputs("&lt;", out);
        else if (*text == '>')
            (void)fputs("&gt;", out);
        else if (*text == '&')
            (void)fputs("&amp;", out);
        else if (*text == '"')
            (void)fputs("&quot;", out);
        else
            (void)fputc((unsigned char)*text < ' ' ? ' ' : *text, out);
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

static void draw_line(int x, int y, const char *style, const char *text,
                      FILE *out)
{
    (void)fprintf(out, "<text x=\"%d\" y=\"%d\" class=\"%s\">", x, y, style);
    put_text(text, out);
    (void)fputs("</text>\n", out);
}

static void draw_users(const td_plan *plan, uint32_t index, int x, int y,
                       FILE *out)
{
    const char *before = "";
    (void)fprintf(out, "<text x=\"%d\" y=\"%d\" class=\"s\">", x, y);
    for (uint32_t i = 0; i < plan->class_count; i++) {
        uint32_t users = td_plan_users(plan, index, i);
        if (users == 0) continue;
        (void)fprintf(out, "%s%u ", before, users);
        put_text(plan->classes[i].task, out);
        before = ", ";
    }
    (void)fputs("</text>\n", out);
}

// How much of what it can take is asked of it.
static void draw_load(const td_plan_server *server, const char *colour, int x,
                      int y, FILE *out)
{
    int width = BOX_WIDTH - 20;
    double part =
        server->capacity_hz > 0 ? server->rate_hz / server->capacity_hz : 0;
    if (part > 1) part = 1;
    (void)fprintf(out,
                  "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"6\" "
                  "class=\"b\"/>\n<rect x=\"%d\" y=\"%d\" width=\"%.1f\" "
                  "height=\"6\" fill=\"%s\"/>\n",
                  x, y, width, x, y, width * part, colour);
    (void)fprintf(out,
                  "<text x=\"%d\" y=\"%d\" class=\"s\">%.1f of %.1f a second, "
                  "batch %u</text>\n",
                  x, y - 6, server->rate_hz, server->capacity_hz,
                  server->batch_most);
}

static void draw_server(const td_plan *plan, uint32_t index, FILE *out)
{
    const td_plan_server *server = &plan->servers[index];
    const char *colour = colour_of(plan, index);
    int x = GAP + (int)(index % COLUMNS) * (BOX_WIDTH + GAP);
    int y = TOP + (int)(index / COLUMNS) * (BOX_HEIGHT + GAP);
    (void)fprintf(out,
                  "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"4\" "
                  "class=\"g\" stroke=\"%s\"%s/>\n",
                  x, y, BOX_WIDTH, BOX_HEIGHT, colour,
                  server->standby ? " stroke-dasharray=\"5 4\"" : "");
    draw_line(x + 10, y + 20, "h", server->id, out);
    draw_line(x + 10, y + 37, "s", server->model, out);
    if (server->standby) {
        draw_line(x + 10, y + 54, "s", "standby", out);
        return;
    }
    draw_users(plan, index, x + 10, y + 54, out);
    draw_load(server, colour, x + 10, y + 78, out);
}

void td_plan_picture(const td_plan *plan, FILE *out)
{
    int rows = (int)((plan->server_count + COLUMNS - 1) / COLUMNS);
    int width = GAP + COLUMNS * (BOX_WIDTH + GAP);
    int height = TOP + rows * (BOX_HEIGHT + GAP);
    (void)fprintf(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
        "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\">\n"
        "<style>text{fill:#222}.t{font-size:16px}.h{font-size:13px;"
        "font-weight:bold}.s{font-size:11px}.g{fill:none;stroke-width:2}"
        ".b{fill:#8884}@media(prefers-color-scheme:dark){text{fill:#ddd}}"
        "</style>\n",
        width, height, width, height);
    (void)fprintf(out,
                  "<text x=\"%d\" y=\"28\" class=\"t\">%zu robots on %u of %u "
                  "GPUs: %.1f actions a second</text>\n"
                  "<text x=\"%d\" y=\"48\" class=\"s\">each box is a model on "
                  "a GPU; the bar is what is asked of what it can answer in "
                  "time</text>\n",
                  GAP, plan->robot_count, plan->gpus_used, plan->gpus,
                  plan->actions_hz, GAP);
    for (uint32_t i = 0; i < plan->server_count; i++)
        draw_server(plan, i, out);
    (void)fputs("</svg>\n", out);
}
