// SPDX-License-Identifier: Apache-2.0
#include "engine/warmup.h"

#include "engine/question.h"

td_err td_engine_warmup(td_engine *engine, td_errinfo *info)
{
    const td_engine_spec *spec = engine->ops->spec(engine);
    TD_AUTO(td_engine_question) *question = NULL;
    TD_TRY(td_engine_question_new(spec, &question));
    TD_TRY(td_engine_question_ask(question, engine, 1, NULL, info));
    if (spec->max_batch == 1 || spec->continuous) return TD_OK;
    return td_engine_question_ask(question, engine, spec->max_batch, NULL,
                                  info);
}
