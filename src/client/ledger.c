// SPDX-License-Identifier: Apache-2.0
#include "client/ledger.h"

#include <string.h>

const char *td_client_why_text(td_client_why why)
{
    static const char *const texts[] = {
        [TD_CLIENT_WHY_NONE] = "",
        [TD_CLIENT_WHY_GONE] = "its server is gone",
        [TD_CLIENT_WHY_OVERTAKEN] =
            "it, or its answer, got lost: a newer one was answered",
        [TD_CLIENT_WHY_STOPPED] = "the model was stopped",
        [TD_CLIENT_WHY_UNANSWERED] = "no answer came within its limit",
        [TD_CLIENT_WHY_UNSENT] = "no server took it within its limit",
        [TD_CLIENT_WHY_CROWDED] = "too many newer ones wait for an answer",
    };
    return texts[why];
}

void td_client_ledger_init(td_client_ledger *ledger, void (*drop)(void *answer))
{
    *ledger = (td_client_ledger){.drop = drop, .next_seq = 1};
}

static void drop(td_client_ledger *ledger, const td_client_ended *ended)
{
    if (ended->answer) ledger->drop(ended->answer);
}

void td_client_ledger_done(td_client_ledger *ledger)
{
    while (ledger->ended_count > 0) {
        drop(ledger, td_client_ledger_first(ledger));
        td_client_ledger_take(ledger);
    }
}

static void remove_open(td_client_ledger *ledger, uint32_t index)
{
    td_client_asked *at = &ledger->open[index];
    memmove(at, at + 1, (--ledger->open_count - index) * sizeof *at);
}

static td_client_asked *find(td_client_ledger *ledger, uint64_t seq)
{
    for (uint32_t i = 0; i < ledger->open_count; i++)
        if (ledger->open[i].seq == seq) return &ledger->open[i];
    return NULL;
}

static uint32_t index_of(const td_client_ledger *ledger,
                         const td_client_asked *asked)
{
    return (uint32_t)(asked - ledger->open);
}

static void push(td_client_ledger *ledger, const td_client_ended *ended)
{
    if (ledger->ended_count == TD_CLIENT_LEDGER_UNREAD) {
        drop(ledger, &ledger->ended[ledger->first]);
        ledger->first = (ledger->first + 1) % TD_CLIENT_LEDGER_UNREAD;
        ledger->ended_count--;
        ledger->counts.unread++;
    }
    uint32_t last =
        (ledger->first + ledger->ended_count++) % TD_CLIENT_LEDGER_UNREAD;
    ledger->ended[last] = *ended;
}

static void end(td_client_ledger *ledger, int64_t now_ns, uint32_t index,
                td_model_outcome outcome, td_client_why why, void *answer)
{
    const td_client_asked *asked = &ledger->open[index];
    const td_client_ended ended = {
        .seq = asked->seq,
        .outcome = outcome,
        .why = why,
        .took_ns = now_ns - asked->asked_ns,
        .answer = answer,
    };
    ledger->counts.outcomes[outcome]++;
    remove_open(ledger, index);
    push(ledger, &ended);
}

static void name_superseded(td_client_ledger *ledger, uint64_t seq)
{
    if (ledger->superseded_count == TD_CLIENT_LEDGER_OPEN) {
        memmove(ledger->superseded, ledger->superseded + 1,
                --ledger->superseded_count * sizeof ledger->superseded[0]);
        ledger->counts.unnamed++;
    }
    ledger->superseded[ledger->superseded_count++] = seq;
}

static void supersede(td_client_ledger *ledger, uint32_t index)
{
    name_superseded(ledger, ledger->open[index].seq);
    ledger->counts.outcomes[TD_MODEL_SUPERSEDED]++;
    remove_open(ledger, index);
}

void td_client_ledger_ask(td_client_ledger *ledger, int64_t now_ns,
                          int64_t limit_ns, bool sent)
{
    for (uint32_t i = ledger->open_count; i-- > 0;)
        if (!ledger->open[i].sent) supersede(ledger, i);
    if (ledger->open_count == TD_CLIENT_LEDGER_OPEN)
        end(ledger, now_ns, 0, TD_MODEL_EXPIRED, TD_CLIENT_WHY_CROWDED, NULL);
    int64_t due_ns;
    if (__builtin_add_overflow(now_ns, limit_ns, &due_ns)) due_ns = INT64_MAX;
    ledger->open[ledger->open_count++] = (td_client_asked){
        .seq = ledger->next_seq++,
        .asked_ns = now_ns,
        .due_ns = due_ns,
        .sent = sent,
    };
    ledger->counts.observed++;
}

bool td_client_ledger_sent(td_client_ledger *ledger, uint64_t seq)
{
    td_client_asked *asked = find(ledger, seq);
    if (asked) asked->sent = true;
    return asked;
}

void td_client_ledger_unask(td_client_ledger *ledger, uint64_t seq)
{
    const td_client_asked *asked = find(ledger, seq);
    if (!asked) return;
    remove_open(ledger, index_of(ledger, asked));
    ledger->counts.observed--;
}

void td_client_ledger_supersede(td_client_ledger *ledger, uint64_t seq)
{
    const td_client_asked *asked = find(ledger, seq);
    if (asked) supersede(ledger, index_of(ledger, asked));
}

bool td_client_ledger_answer(td_client_ledger *ledger, int64_t now_ns,
                             uint64_t seq, bool error, void *answer)
{
    const td_client_asked *asked = find(ledger, seq);
    if (!asked) {
        ledger->counts.late++;
        ledger->drop(answer);
        return false;
    }
    uint32_t index = index_of(ledger, asked);
    for (; !error && index > 0; index--)
        end(ledger, now_ns, 0, TD_MODEL_LOST, TD_CLIENT_WHY_OVERTAKEN, NULL);
    end(ledger, now_ns, index, error ? TD_MODEL_ERROR : TD_MODEL_ANSWERED,
        TD_CLIENT_WHY_NONE, answer);
    return true;
}

void td_client_ledger_lose(td_client_ledger *ledger, int64_t now_ns,
                           td_client_why why)
{
    for (uint32_t i = 0; i < ledger->open_count;)
        if (ledger->open[i].sent || why == TD_CLIENT_WHY_STOPPED)
            end(ledger, now_ns, i, TD_MODEL_LOST, why, NULL);
        else
            i++;
}

uint32_t td_client_ledger_expire(td_client_ledger *ledger, int64_t now_ns)
{
    uint32_t sent = 0;
    for (uint32_t i = 0; i < ledger->open_count;) {
        const td_client_asked *asked = &ledger->open[i];
        if (asked->due_ns > now_ns) {
            i++;
            continue;
        }
        sent += asked->sent;
        end(ledger, now_ns, i, TD_MODEL_EXPIRED,
            asked->sent ? TD_CLIENT_WHY_UNANSWERED : TD_CLIENT_WHY_UNSENT,
            NULL);
    }
    return sent;
}

int64_t td_client_ledger_due_ns(const td_client_ledger *ledger)
{
    int64_t due_ns = INT64_MAX;
    for (uint32_t i = 0; i < ledger->open_count; i++)
        if (ledger->open[i].due_ns < due_ns) due_ns = ledger->open[i].due_ns;
    return due_ns;
}

const td_client_ended *td_client_ledger_first(const td_client_ledger *ledger)
{
    return ledger->ended_count > 0 ? &ledger->ended[ledger->first] : NULL;
}

void td_client_ledger_take(td_client_ledger *ledger)
{
    ledger->first = (ledger->first + 1) % TD_CLIENT_LEDGER_UNREAD;
    ledger->ended_count--;
    ledger->superseded_count = 0;
}
