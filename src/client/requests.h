// SPDX-License-Identifier: Apache-2.0
#ifndef TD_CLIENT_REQUESTS_H
#define TD_CLIENT_REQUESTS_H

// What was asked of a model and how each of it ended: every observation exactly
// once, under one name of td_model_outcome. Those that were superseded wait to
// be named beside the next outcome, the others to be taken one by one.
//
// Pure: the time is an argument. One thread at a time.

#include "tendon/connect.h"

#define TD_CLIENT_REQUESTS_OPEN 256  // not ended, and superseded ones not named
#define TD_CLIENT_REQUESTS_UNREAD 64 // ended and not taken; with `every` OPEN

typedef enum td_client_why {
    TD_CLIENT_WHY_NONE,
    TD_CLIENT_WHY_GONE,       // lost: the server is
    TD_CLIENT_WHY_OVERTAKEN,  // lost: it, or its answer, was on the way
    TD_CLIENT_WHY_STOPPED,    // lost: the program ended it
    TD_CLIENT_WHY_UNANSWERED, // expired: by its server
    TD_CLIENT_WHY_UNSENT,     // expired: there was no server
    TD_CLIENT_WHY_CROWDED,    // expired: too many were open
} td_client_why;

// For a person: "its server is gone".
const char *td_client_why_text(td_client_why why);

// One that was asked.
typedef struct td_client_asked {
    uint64_t seq;
    int64_t asked_ns, due_ns;
    bool sent;
} td_client_asked;

// One that ended, and was not superseded.
typedef struct td_client_ended {
    uint64_t seq;
    td_model_outcome outcome;
    td_client_why why;
    int64_t took_ns;
    void *answer; // of ANSWERED and ERROR
} td_client_ended;

typedef struct td_client_counts {
    uint64_t observed; // sum of outcomes, and of what is open
    uint64_t outcomes[TD_MODEL_EXPIRED + 1];
    uint64_t unread;  // ended, and dropped before they were taken
    uint64_t unnamed; // superseded, likewise
    uint64_t late;    // answers to what had ended
} td_client_counts;

typedef struct td_client_requests {
    void (*drop)(void *answer);
    bool every; // each is answered: none takes another's place
    uint64_t next_seq;
    td_client_asked open[TD_CLIENT_REQUESTS_OPEN]; // by seq
    uint32_t open_count;
    td_client_ended ended[TD_CLIENT_REQUESTS_OPEN]; // a ring
    uint32_t first, ended_count;
    uint64_t superseded[TD_CLIENT_REQUESTS_OPEN];
    uint32_t superseded_count;
    td_client_counts counts;
} td_client_requests;

// `drop` frees answers that nobody takes.
void td_client_requests_init(td_client_requests *requests, bool every,
                             void (*drop)(void *answer));
void td_client_requests_done(td_client_requests *requests);

// Whether one more may be asked: with `every` there must be room for its end.
bool td_client_requests_has_room(const td_client_requests *requests);

// Enters requests->next_seq. An older one that was not sent is superseded; with
// too many open the oldest expires. With `every` neither.
void td_client_requests_ask(td_client_requests *requests, int64_t now_ns,
                            int64_t limit_ns, bool sent);

// It has been sent after all. False: it has ended meanwhile.
bool td_client_requests_sent(td_client_requests *requests, uint64_t seq);

// It could not be sent, and who asked is told: as if it had never been asked.
void td_client_requests_withdraw(td_client_requests *requests, uint64_t seq);

// The server will not run it.
void td_client_requests_supersede(td_client_requests *requests, uint64_t seq);

// An answer came; consumed. A good one ends older ones too, since a server
// answers in order; not with `every`. False: it had ended; the answer was
// dropped and counted.
bool td_client_requests_answer(td_client_requests *requests, int64_t now_ns,
                               uint64_t seq, bool error, void *answer);

// GONE: all that were sent are lost. STOPPED: all.
void td_client_requests_lose(td_client_requests *requests, int64_t now_ns,
                             td_client_why why);

// Ends what is due. Returns how many of it had been sent.
uint32_t td_client_requests_expire(td_client_requests *requests,
                                   int64_t now_ns);

// When the next one expires; INT64_MAX.
int64_t td_client_requests_due_ns(const td_client_requests *requests);

// The next to be taken, NULL: none, with requests->superseded to be named; and
// taking it.
const td_client_ended *
td_client_requests_first(const td_client_requests *requests);
void td_client_requests_take(td_client_requests *requests);

#endif
