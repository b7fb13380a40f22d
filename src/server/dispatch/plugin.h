// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SERVER_DISPATCH_PLUGIN_H
#define TD_SERVER_DISPATCH_PLUGIN_H

// A library with a score of the user's own (tendon/score.h).

#include "base/err.h"
#include "tendon/score.h"

typedef struct td_server_plugin td_server_plugin;

// Owned by the caller. Blocks on the file, and runs what the library runs when
// it is loaded. IO (no such file, not a library), NOTFOUND (it has no score),
// VERSION; with the path and the reason.
TD_NODISCARD td_err td_server_plugin_open(const char *path,
                                          td_server_plugin **ret_plugin,
                                          td_errinfo *info);

// Nobody may call its function any more.
void td_server_plugin_close(td_server_plugin *plugin);
TD_AUTO_FREE(td_server_plugin, td_server_plugin_close)

// Asks the function of `plugin`, a td_server_plugin.
double td_server_plugin_ask(void *plugin, const td_score_request *request);

#endif
