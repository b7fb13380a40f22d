// SPDX-License-Identifier: Apache-2.0
#include "server/intake/tokens.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TOKENS 65536

static bool take_word(const char **end, const char *start, td_slice *ret_word)
{
    const char *p = *end;
    while (p > start && p[-1] != '/')
        p--;
    *ret_word = (td_slice){p, (size_t)(*end - p)};
    *end = p > start ? p - 1 : start;
    return ret_word->size > 0;
}

td_err td_server_token_parse(const char *key, td_server_token *ret_token)
{
    const char *end = key + strlen(key);
    td_slice boot, alive, client;
    if (!take_word(&end, key, &boot) || !take_word(&end, key, &alive) ||
        !take_word(&end, key, &client))
        return TD_ERR_FORMAT;
    if (alive.size != 5 || memcmp(alive.data, "alive", 5) != 0 ||
        client.size > TD_WIRE_MAX_NAME)
        return TD_ERR_FORMAT;
    char *rest;
    errno = 0;
    uint64_t number = strtoull(boot.data, &rest, 10);
    if (*rest != 0 || errno != 0 || !isdigit(*(const unsigned char *)boot.data))
        return TD_ERR_FORMAT;
    *ret_token = (td_server_token){.boot = number};
    memcpy(ret_token->client, client.data, client.size);
    return TD_OK;
}

static size_t find(const td_server_tokens *tokens, const char *client,
                   uint64_t boot)
{
    size_t i = 0;
    while (i < tokens->count && (tokens->list[i].boot != boot ||
                                 strcmp(tokens->list[i].client, client) != 0))
        i++;
    return i;
}

bool td_server_tokens_has(const td_server_tokens *tokens, const char *client,
                          uint64_t boot)
{
    return find(tokens, client, boot) < tokens->count;
}

static td_err grow(td_server_tokens *tokens)
{
    if (tokens->count < tokens->room) return TD_OK;
    if (tokens->room >= MAX_TOKENS) return TD_ERR_LIMIT;
    size_t room = tokens->room ? 2 * tokens->room : 16;
    td_server_token *list = realloc(tokens->list, room * sizeof *list);
    if (!list) return TD_ERR_NOMEM;
    tokens->list = list;
    tokens->room = room;
    return TD_OK;
}

td_err td_server_tokens_add(td_server_tokens *tokens,
                            const td_server_token *token)
{
    if (td_server_tokens_has(tokens, token->client, token->boot)) return TD_OK;
    TD_TRY(grow(tokens));
    tokens->list[tokens->count++] = *token;
    return TD_OK;
}

void td_server_tokens_remove(td_server_tokens *tokens,
                             const td_server_token *token)
{
    size_t i = find(tokens, token->client, token->boot);
    if (i == tokens->count) return;
    tokens->list[i] = tokens->list[--tokens->count];
}
