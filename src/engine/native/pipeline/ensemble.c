// SPDX-License-Identifier: Apache-2.0
#include "engine/native/pipeline/ensemble.h"

#include "wire/msgpack/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct client {
    struct client *next; // the next in the order of when they were heard last
    char *name;
    uint32_t name_size;
    uint64_t boot, episode, cursor;
    float *means;     // [rows][cols], from the cursor on
    uint32_t *counts; // [rows]: chunks that spoke of a step
} client;

struct td_native_ensemble {
    uint32_t rows, cols;
    float *weights, *sums; // [rows]; sums of the weights up to each
    client *clients;
    uint32_t count;
};

static void client_free(client *self)
{
    free(self->name);
    free(self->means);
    free(self->counts);
    free(self);
}
TD_AUTO_FREE(client, client_free)

td_err td_native_ensemble_new(double coefficient, uint32_t rows, uint32_t cols,
                              td_native_ensemble **ret_ensemble)
{
    TD_AUTO(td_native_ensemble) *self = calloc(1, sizeof *self);
    if (!self) return TD_ERR_NOMEM;
    self->rows = rows;
    self->cols = cols;
    self->weights = calloc(rows, sizeof *self->weights);
    self->sums = calloc(rows, sizeof *self->sums);
    if (!self->weights || !self->sums) return TD_ERR_NOMEM;
    for (uint32_t i = 0; i < rows; i++) {
        self->weights[i] = expf((float)-coefficient * (float)i);
        self->sums[i] = self->weights[i] + (i > 0 ? self->sums[i - 1] : 0);
    }
    *ret_ensemble = TD_TAKE(self);
    return TD_OK;
}

void td_native_ensemble_free(td_native_ensemble *ensemble)
{
    while (ensemble->clients) {
        client *next = ensemble->clients->next;
        client_free(ensemble->clients);
        ensemble->clients = next;
    }
    free(ensemble->weights);
    free(ensemble->sums);
    free(ensemble);
}

static td_err client_new(const td_native_ensemble *ensemble, td_wire_text name,
                         client **ret_client)
{
    TD_AUTO(client) *self = calloc(1, sizeof *self);
    if (!self) return TD_ERR_NOMEM;
    self->name = malloc(name.size + 1);
    self->means =
        calloc((size_t)ensemble->rows * ensemble->cols, sizeof *self->means);
    self->counts = calloc(ensemble->rows, sizeof *self->counts);
    if (!self->name || !self->means || !self->counts) return TD_ERR_NOMEM;
    if (name.size > 0) memcpy(self->name, name.data, name.size);
    self->name_size = name.size;
    *ret_client = TD_TAKE(self);
    return TD_OK;
}

// Takes a client out of the list; NULL: it is not there.
static client *take(td_native_ensemble *self, td_wire_text name)
{
    client **at = &self->clients;
    for (; *at; at = &(*at)->next) {
        td_wire_text known = {(*at)->name, (*at)->name_size};
        if (td_wire_text_same(known, name)) break;
    }
    client *found = *at;
    if (!found) return NULL;
    *at = found->next;
    self->count--;
    return found;
}

static void drop_last(td_native_ensemble *self)
{
    client **at = &self->clients;
    while (*at && (*at)->next)
        at = &(*at)->next;
    if (*at) client_free(*at);
    *at = NULL;
    self->count--;
}

static td_err find(td_native_ensemble *self, td_wire_text name,
                   client **ret_client)
{
    client *found = take(self, name);
    if (!found) {
        if (self->count == TD_NATIVE_ENSEMBLE_CLIENTS) drop_last(self);
        TD_TRY(client_new(self, name, &found));
    }
    found->next = self->clients;
    self->clients = found;
    self->count++;
    *ret_client = found;
    return TD_OK;
}

// How many steps the client has gone on; all that is known is past where it is
// another time.
static uint32_t steps_gone(const td_native_ensemble *self, const client *of,
                           const td_wire_obs *obs)
{
    bool same = of->boot == obs->ident.boot &&
                of->episode == obs->ident.episode && of->cursor <= obs->cursor;
    uint64_t gone = same ? obs->cursor - of->cursor : self->rows;
    return gone < self->rows ? (uint32_t)gone : self->rows;
}

static void forget(const td_native_ensemble *self, client *of, uint32_t gone)
{
    uint32_t left = self->rows - gone;
    memmove(of->means, of->means + (size_t)gone * self->cols,
            (size_t)left * self->cols * sizeof *of->means);
    memmove(of->counts, of->counts + gone, left * sizeof *of->counts);
    memset(of->counts + left, 0, gone * sizeof *of->counts);
}

static void join_row(const td_native_ensemble *self, client *of, uint32_t row,
                     float *actions)
{
    float *means = of->means + (size_t)row * self->cols;
    uint32_t count = of->counts[row];
    for (uint32_t i = 0; i < self->cols; i++) {
        if (count == 0) {
            means[i] = actions[i];
        } else {
            means[i] *= self->sums[count - 1];
            means[i] += actions[i] * self->weights[count];
            means[i] /= self->sums[count];
        }
        actions[i] = means[i];
    }
    if (count + 1 < self->rows) of->counts[row]++;
}

td_err td_native_ensemble_join(td_native_ensemble *ensemble,
                               const td_wire_obs *obs, float *actions)
{
    client *of = NULL;
    TD_TRY(find(ensemble, obs->client, &of));
    forget(ensemble, of, steps_gone(ensemble, of, obs));
    of->boot = obs->ident.boot;
    of->episode = obs->ident.episode;
    of->cursor = obs->cursor;
    for (uint32_t row = 0; row < ensemble->rows; row++)
        join_row(ensemble, of, row, actions + (size_t)row * ensemble->cols);
    return TD_OK;
}
