// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SERVER_CLIENT_TOPICS_H
#define TD_SERVER_CLIENT_TOPICS_H

// A client's topics on the network: what the server subscribes to and
// publishes for it, and its inbox.

#include "server/client/inbox.h"
#include "server/context.h"

struct td_server_topics {
    const td_server_context *ctx;
    struct td_server_intake *intake; // takes what comes
    td_net_pub *action;
    td_net_decl *obs;
    td_net_decl *reset;
    td_server_inbox inbox;
    // The loop's, so that the log has a line now and then.
    uint64_t refused[TD_SERVER_OUTCOME_COUNT];
    uint64_t bad_resets;
};

// Who is called, with the client, when it sends something.
typedef struct td_server_topics_calls {
    td_net_on_sample on_obs, on_reset;
    struct td_server_intake *intake;
} td_server_topics_calls;

// Declares them; the client may send from then on. After an error close them,
// too.
// Loop's thread; blocks in the network.
TD_NODISCARD td_err td_server_topics_open(const td_server_context *ctx,
                                          td_server_client *client,
                                          const td_server_topics_calls *calls,
                                          td_errinfo *info);
// Undeclares them and counts what nobody has read; nothing if none is open.
// Nothing of the client waits or runs any more. Loop's thread; blocks until no
// callback runs.
void td_server_topics_close(td_server_client *client);

// Puts an answer on its key. Whoever sees to it that the client stays, with an
// encoder of its own; blocks in the network.
void td_server_topics_put(const td_server_client *client,
                          td_wire_encoder *encoder,
                          const td_wire_action *action);

#endif
