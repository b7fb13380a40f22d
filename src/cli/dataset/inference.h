// SPDX-License-Identifier: Apache-2.0
#ifndef TD_CLI_DATASET_INFERENCE_H
#define TD_CLI_DATASET_INFERENCE_H

// A frame of a dataset as a request to a policy: its state, pictures and task,
// as a robot would send them. One at a time.

#include "dataset/read/reader.h"
#include "tendon/engine.h"

typedef struct td_cli_inference td_cli_inference;

// Borrows both, the engine READY. Owned by the caller. MISMATCH (the dataset is
// not what the policy takes; names it), NOMEM.
TD_NODISCARD td_err td_cli_inference_new(td_engine *engine,
                                         td_dataset_reader *reader,
                                         td_cli_inference **ret_inference,
                                         td_errinfo *info);
void td_cli_inference_free(td_cli_inference *inference);
TD_AUTO_FREE(td_cli_inference, td_cli_inference_free)

// A row of the dataset as the observation `ident`; borrowed until the next. As
// the reader's own errors, with what is wrong.
TD_NODISCARD td_err td_cli_inference_observe(td_cli_inference *inference,
                                             uint64_t row,
                                             const td_wire_ident *ident,
                                             const td_wire_obs **ret_obs,
                                             td_errinfo *info);

// Asks what was looked at last, and waits for the answer: of an engine, which
// always gives one. It is borrowed until the next. As the engine's own errors.
TD_NODISCARD td_err td_cli_inference_ask(td_cli_inference *inference,
                                         const td_engine_item **ret_answer,
                                         td_errinfo *info);

#endif
