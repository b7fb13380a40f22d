// SPDX-License-Identifier: Apache-2.0
#ifndef TD_CONFIG_MANIFEST_MANIFEST_TEXT_H
#define TD_CONFIG_MANIFEST_MANIFEST_TEXT_H

// For tests: the smallest manifest, line by line, so that a case can replace or
// add some.
#define HEAD                                                                   \
    "cluster_uuid: jupiter\n"                                                  \
    "experiment_tag: fabio2\n"                                                 \
    "models:\n"
#define NAMES                                                                  \
    "- model_id: pi0\n"                                                        \
    "  model_version: v1\n"                                                    \
    "  application_tag: cookie\n"
#define PLACE "  endpoint: tcp/192.168.1.50:7447\n"
#define CLIENTS                                                                \
    "  clients:\n"                                                             \
    "  - client_uuid: cookie-worker-4269\n"
#define ENGINE "  engine: {kind: synthetic}\n"
#define WHOLE HEAD NAMES PLACE CLIENTS // and then line 10

#endif
