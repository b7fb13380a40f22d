// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.h"

#include "base/rand.h"
#include "engine/callback/callback.h"
#include "engine/native/native.h"
#include "engine/pool/pool.h"
#include "engine/synthetic/synthetic.h"
#include "engine/worker/worker.h"

#include <stdio.h>
#include <string.h>

static const td_engine_ops *const engines[] = {
    &td_engine_synthetic, &td_engine_worker, &td_engine_callback,
    &td_engine_native,    &td_engine_pool,
};

static void known_names(char *text, size_t room)
{
    size_t used = 0;
    for (size_t i = 0; i < TD_COUNT_OF(engines) && used < room; i++)
        used += (size_t)snprintf(text + used, room - used, "%s%s",
                                 i ? ", " : "", engines[i]->name);
}

td_err td_engine_open(const char *name, const td_engine_config *config,
                      td_engine **ret_engine, td_errinfo *info)
{
    for (size_t i = 0; i < TD_COUNT_OF(engines); i++)
        if (strcmp(engines[i]->name, name) == 0)
            return engines[i]->open(config, ret_engine, info);
    char known[128];
    known_names(known, sizeof known);
    return td_fail(info, TD_ERR_NOTFOUND,
                   "no engine called %.64s, known are %s", name, known);
}

void td_engine_close(td_engine *engine)
{
    engine->ops->close(engine);
}

bool td_engine_splits(const td_engine *engine)
{
    const td_engine_ops *ops = engine->ops;
    return ops->prefix && ops->decode && ops->drop;
}

td_engine_health td_engine_health_of(const td_engine *engine)
{
    return engine->ops->health ? engine->ops->health(engine) : TD_ENGINE_READY;
}

// FNV-1a.
static uint64_t hash_text(td_wire_text text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (uint32_t i = 0; i < text.size; i++)
        hash = (hash ^ (unsigned char)text.data[i]) * UINT64_C(0x100000001b3);
    return hash;
}

uint64_t td_engine_seed(td_wire_text client, uint64_t episode, uint64_t seq)
{
    td_rand of_client, of_episode, of_seq;
    td_rand_init(&of_client, hash_text(client));
    td_rand_fork(&of_client, episode, &of_episode);
    td_rand_fork(&of_episode, seq, &of_seq);
    return td_rand_u64(&of_seq);
}
