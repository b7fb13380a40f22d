// SPDX-License-Identifier: Apache-2.0
#include "client/requests.h"

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

void td_client_requests_init(td_client_requests *requests, bool every,
                             void (*drop)(void *answer))
{
    *requests =
        (td_client_requests){.drop = drop, .every = every, .next_seq = 1};
}

bool td_client_requests_has_room(const td_client_requests *requests)
{
    return !requests->every || requests->open_count + requests->ended_count <
                                   TD_CLIENT_REQUESTS_OPEN;
}

static void drop(td_client_requests *requests, const td_client_ended *ended)
{
    if (ended->answer) requests->drop(ended->answer);
}

void td_client_requests_done(td_client_requests *requests)
{
    while (requests->ended_count > 0) {
        drop(requests, td_client_requests_first(requests));
        td_client_requests_take(requests);
    }
}

static void remove_open(td_client_requests *requests, uint32_t index)
{
    td_client_asked *at = &requests->open[index];
    memmove(at, at + 1, (--requests->open_count - index) * sizeof *at);
}

static td_client_asked *find(td_client_requests *requests, uint64_t seq)
{
    for (uint32_t i = 0; i < requests->open_count; i++)
        if (requests->open[i].seq == seq) return &requests->open[i];
    return NULL;
}

static uint32_t index_of(const td_client_requests *requests,
                         const td_client_asked *asked)
{
    return (uint32_t)(asked - requests->open);
}

static void push(td_client_requests *requests, const td_client_ended *ended)
{
    if (requests->ended_count == TD_CLIENT_REQUESTS_UNREAD &&
        !requests->every) {
        drop(requests, &requests->ended[requests->first]);
        requests->first = (requests->first + 1) % TD_CLIENT_REQUESTS_OPEN;
        requests->ended_count--;
        requests->counts.unread++;
    }
    uint32_t last =
        (requests->first + requests->ended_count++) % TD_CLIENT_REQUESTS_OPEN;
    requests->ended[last] = *ended;
}

static void end(td_client_requests *requests, int64_t now_ns, uint32_t index,
                td_model_outcome outcome, td_client_why why, void *answer)
{
    const td_client_asked *asked = &requests->open[index];
    const td_client_ended ended = {
        .seq = asked->seq,
        .outcome = outcome,
        .why = why,
        .took_ns = now_ns - asked->asked_ns,
        .answer = answer,
    };
    requests->counts.outcomes[outcome]++;
    remove_open(requests, index);
    push(requests, &ended);
}

static void name_superseded(td_client_requests *requests, uint64_t seq)
{
    if (requests->superseded_count == TD_CLIENT_REQUESTS_OPEN) {
        memmove(requests->superseded, requests->superseded + 1,
                --requests->superseded_count * sizeof requests->superseded[0]);
        requests->counts.unnamed++;
    }
    requests->superseded[requests->superseded_count++] = seq;
}

static void supersede(td_client_requests *requests, uint32_t index)
{
    name_superseded(requests, requests->open[index].seq);
    requests->counts.outcomes[TD_MODEL_SUPERSEDED]++;
    remove_open(requests, index);
}

void td_client_requests_ask(td_client_requests *requests, int64_t now_ns,
                            int64_t limit_ns, bool sent)
{
    for (uint32_t i = requests->open_count; i-- > 0 && !requests->every;)
        if (!requests->open[i].sent) supersede(requests, i);
    if (requests->open_count == TD_CLIENT_REQUESTS_OPEN)
        end(requests, now_ns, 0, TD_MODEL_EXPIRED, TD_CLIENT_WHY_CROWDED, NULL);
    int64_t due_ns;
    if (__builtin_add_overflow(now_ns, limit_ns, &due_ns)) due_ns = INT64_MAX;
    requests->open[requests->open_count++] = (td_client_asked){
        .seq = requests->next_seq++,
        .asked_ns = now_ns,
        .due_ns = due_ns,
        .sent = sent,
    };
    requests->counts.observed++;
}

bool td_client_requests_sent(td_client_requests *requests, uint64_t seq)
{
    td_client_asked *asked = find(requests, seq);
    if (asked) asked->sent = true;
    return asked;
}

void td_client_requests_withdraw(td_client_requests *requests, uint64_t seq)
{
    const td_client_asked *asked = find(requests, seq);
    if (!asked) return;
    remove_open(requests, index_of(requests, asked));
    requests->counts.observed--;
}

void td_client_requests_supersede(td_client_requests *requests, uint64_t seq)
{
    const td_client_asked *asked = find(requests, seq);
    if (asked) supersede(requests, index_of(requests, asked));
}

bool td_client_requests_answer(td_client_requests *requests, int64_t now_ns,
                               uint64_t seq, bool error, void *answer)
{
    const td_client_asked *asked = find(requests, seq);
    if (!asked) {
        requests->counts.late++;
        requests->drop(answer);
        return false;
    }
    uint32_t index = index_of(requests, asked);
    for (; !error && !requests->every && index > 0; index--)
        end(requests, now_ns, 0, TD_MODEL_LOST, TD_CLIENT_WHY_OVERTAKEN, NULL);
    end(requests, now_ns, index, error ? TD_MODEL_ERROR : TD_MODEL_ANSWERED,
        TD_CLIENT_WHY_NONE, answer);
    return true;
}

void td_client_requests_lose(td_client_requests *requests, int64_t now_ns,
                             td_client_why why)
{
    for (uint32_t i = 0; i < requests->open_count;)
        if (requests->open[i].sent || why == TD_CLIENT_WHY_STOPPED)
            end(requests, now_ns, i, TD_MODEL_LOST, why, NULL);
        else
            i++;
}

uint32_t td_client_requests_expire(td_client_requests *requests, int64_t now_ns)
{
    uint32_t sent = 0;
    for (uint32_t i = 0; i < requests->open_count;) {
        const td_client_asked *asked = &requests->open[i];
        if (asked->due_ns > now_ns) {
            i++;
            continue;
        }
        sent += asked->sent;
        end(requests, now_ns, i, TD_MODEL_EXPIRED,
            asked->sent ? TD_CLIENT_WHY_UNANSWERED : TD_CLIENT_WHY_UNSENT,
            NULL);
    }
    return sent;
}

int64_t td_client_requests_due_ns(const td_client_requests *requests)
{
    int64_t due_ns = INT64_MAX;
    for (uint32_t i = 0; i < requests->open_count; i++)
        if (requests->open[i].due_ns < due_ns)
            due_ns = requests->open[i].due_ns;
    return due_ns;
}

const td_client_ended *
td_client_requests_first(const td_client_requests *requests)
{
    return requests->ended_count > 0 ? &requests->ended[requests->first] : NULL;
}

void td_client_requests_take(td_client_requests *requests)
{
    requests->first = (requests->first + 1) % TD_CLIENT_REQUESTS_OPEN;
    requests->ended_count--;
    requests->superseded_count = 0;
}
