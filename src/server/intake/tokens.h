// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SERVER_INTAKE_TOKENS_H
#define TD_SERVER_INTAKE_TOKENS_H

// Which starts of which clients are alive: liveliness tokens of the form
// ".../CLIENT/alive/BOOT". Loop's thread only.

#include "base/err.h"
#include "tendon/wire.h"

typedef struct td_server_token {
    char client[TD_WIRE_MAX_NAME + 1];
    uint64_t boot;
} td_server_token;

typedef struct td_server_tokens {
    td_server_token *list; // owned; free()
    size_t count, room;
} td_server_tokens;

// FORMAT if the key is not a client's token. Any thread; never blocks.
TD_NODISCARD td_err td_server_token_parse(const char *key,
                                          td_server_token *ret_token);

// Adding one that is there already changes nothing. NOMEM, LIMIT.
TD_NODISCARD td_err td_server_tokens_add(td_server_tokens *tokens,
                                         const td_server_token *token);
void td_server_tokens_remove(td_server_tokens *tokens,
                             const td_server_token *token);
bool td_server_tokens_has(const td_server_tokens *tokens, const char *client,
                          uint64_t boot);

#endif
