// SPDX-License-Identifier: Apache-2.0
#include "server/report/view.h"

#include <stdlib.h>
#include <string.h>

// The next client from `number` on that is to be seen.
static bool next_client(const td_server_stats *stats, uint32_t *number,
                        int64_t now_ns, int64_t window_ns, const char *only,
                        td_server_client_numbers *ret_client)
{
    while (*number < td_server_stats_capacity(stats)) {
        uint32_t at = (*number)++;
        if (!td_server_stats_client(stats, at, now_ns, window_ns, ret_client))
            continue;
        if (!only || strcmp(only, ret_client->id) == 0) return true;
    }
    return false;
}

static td_err add_client(td_server_view *view, uint32_t *room,
                         const td_server_client_numbers *client)
{
    if (view->client_count == *room) {
        uint32_t more = *room ? 2 * *room : 16;
        td_server_client_numbers *clients =
            realloc(view->clients, more * sizeof *clients);
        if (!clients) return TD_ERR_NOMEM;
        view->clients = clients;
        *room = more;
    }
    view->clients[view->client_count++] = *client;
    return TD_OK;
}

td_err td_server_view_read(td_server_view *view, td_server_stats *stats,
                           int64_t now_ns, int64_t window_ns,
                           const char *client)
{
    td_server_stats_model(stats, now_ns, window_ns, &view->numbers);
    view->departed_count = td_server_stats_departed(stats, view->departed);
    if (client && client[0] == '\0') return TD_OK;
    td_server_client_numbers found;
    uint32_t number = 0, room = 0;
    while (next_client(stats, &number, now_ns, window_ns, client, &found))
        TD_TRY(add_client(view, &room, &found));
    return TD_OK;
}

void td_server_view_done(td_server_view *view)
{
    free(view->clients);
}
