// SPDX-License-Identifier: Apache-2.0
#ifndef TD_TESTS_MERGE_LOG_LAB_H
#define TD_TESTS_MERGE_LOG_LAB_H

// The real edge core on a seeded, faulty network in virtual time, with a server
// that now and then answers what it should not. Everything that goes into the
// core and comes out of it is written down, for tests/test_merge.py to do once
// more by docs/merge.md.
//
// One thread. Nothing here fails for a reason other than memory or a bug, and
// lab_check() ends the program for both.

#include "base/clock.h"
#include "base/rand.h"
#include "edge/core/core.h"
#include "net/inproc/inproc.h"

#define LAB_SERVERS 2
#define LAB_MAX_ROWS 64
#define LAB_MAX_CHANNELS 32

typedef struct lab_options {
    uint64_t seed;
    bool limits;     // of position, step and acceleration
    bool sequential; // no faults, g = 0, inference longer than a chunk
} lab_options;

void lab_check(td_err err, const td_errinfo *info);
void *lab_calloc(size_t size); // never NULL

// Dice.
uint32_t lab_below(td_rand *rand, uint32_t n);
bool lab_one_in(td_rand *rand, uint32_t n);
double lab_between(td_rand *rand, double low, double high);

// The log: records of eight numbers, and the bytes and rows that they mean.
typedef enum lab_event {
    LAB_START,  // boot, route, episode: another core
    LAB_ATTACH, // server
    LAB_PLACE,  // offset: the gate starts from this reading
    LAB_TICK,   // now_ns, cursor after it, commands, fresh, fail-safe reason
    LAB_SENT,   // seq, episode, cursor, captured_ns, put_ns, whether it went
    LAB_UNSENT, // seq
    LAB_ANSWER, // now_ns, offset, size, outcome or -1, why stray or -1
    LAB_RESET,
    LAB_OUTCOME, // which, count, at the end of a core
    LAB_STRAY,   // likewise
    LAB_TOTAL,   // sent, likewise
} lab_event;

typedef struct lab_bytes {
    unsigned char *data;
    size_t size, room;
} lab_bytes;

typedef struct lab_log {
    lab_bytes events;
    lab_bytes messages; // what LAB_ANSWER and LAB_PLACE mean
    lab_bytes wanted;   // a row for each tick, before the gate
    lab_bytes commands; // after it; not finite where there was none
} lab_log;

void lab_log_event(lab_log *log, lab_event event, size_t count,
                   const int64_t *values);
#define LAB_LOG(log, event, ...)                                               \
    do {                                                                       \
        const int64_t lab_values_[] = {__VA_ARGS__};                           \
        lab_log_event(log, event, TD_COUNT_OF(lab_values_), lab_values_);      \
    } while (0)

// Returns the offset.
int64_t lab_log_bytes(lab_bytes *bytes, const void *data, size_t size);
// One line of JSON, then the four parts.
void lab_log_write(const lab_log *log, const lab_options *options,
                   const td_edge_core_settings *settings);
void lab_log_done(lab_log *log);

// What came over the network, oldest first.
typedef struct lab_inbox {
    td_net_msg *msgs[512];
    uint32_t first, count;
} lab_inbox;

void lab_inbox_add(void *inbox, const td_net_sample *sample);
td_net_msg *lab_inbox_take(lab_inbox *inbox); // NULL: empty; owned

void lab_settings(const lab_options *options, td_rand *rand,
                  td_edge_core_settings *ret_settings);

typedef struct lab_server lab_server;

lab_server *lab_server_new(const lab_options *options, td_rand *rand,
                           td_net_hub *hub,
                           const td_edge_core_settings *settings);
void lab_server_free(lab_server *server);
const char *lab_server_name(uint32_t number);
// Which of the servers it is from now on.
void lab_server_be(lab_server *server, uint32_t number);
// Answers what came. Returns when it must be called again: INT64_MAX, or when
// an inference is done.
int64_t lab_server_act(lab_server *server, int64_t now_ns);

typedef struct lab_robot lab_robot;

lab_robot *lab_robot_new(const lab_options *options, td_rand *rand,
                         td_net_hub *hub, const td_edge_core_settings *settings,
                         lab_log *log);
void lab_robot_free(lab_robot *robot);
void lab_robot_attach(lab_robot *robot, uint32_t server);
void lab_robot_detach(lab_robot *robot);
void lab_robot_reset(lab_robot *robot);
void lab_robot_restart(lab_robot *robot);
void lab_robot_driver(lab_robot *robot, bool down);
// Hears, sends and ticks what is due, and returns when it must be called again.
int64_t lab_robot_act(lab_robot *robot, int64_t now_ns);

#endif
