// SPDX-License-Identifier: Apache-2.0
#ifndef TENDON_SCORE_H
#define TENDON_SCORE_H

// A score that users write: a library that `scheduling.plugin` of a manifest
// names.
//
//   static double score(const td_score_request *request) { ... }
//   TD_SCORE_PLUGIN(score)
//
//   cc -shared -fPIC -o my_score.so my_score.c
//
// Of the requests that wait, the one with the highest score goes first; one
// whose score is not finite goes last. The function is asked while a server
// decides, once for each that waits: it must be pure (equal requests, equal
// scores, and nothing kept), must not block, and has nanoseconds.

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TD_SCORE_VERSION 2

// What is known of a request that waits. A newer version may have more members,
// at the end; these stay what they are.
typedef struct td_score_request {
    double age_ms;          // since when its client has waited
    double budget_ms;       // its client's latency_budget_ms
    double urgency;         // 0 to 1
    double priority;        // 0 is the highest
    double steps_remaining; // -1: not known
    double slack_ms;    // until its robot runs dry, or its budget is used up
    double overdue_ms;  // its client's next observation is; 0: it is not
    double score;       // the published one
    const char *client; // who asks, and which model: ids, of version 2 on;
    const char *model;  // never NULL, borrowed for the call
} td_score_request;

typedef double (*td_score_function)(const td_score_request *request);

typedef struct td_score_plugin {
    uint32_t version; // TD_SCORE_VERSION of the header it was made with
    td_score_function score;
} td_score_plugin;

// What the server looks for in the library.
__attribute__((
    visibility("default"))) extern const td_score_plugin tendon_score_plugin;

#define TD_SCORE_PLUGIN(function)                                              \
    const td_score_plugin tendon_score_plugin = {TD_SCORE_VERSION, function};

#ifdef __cplusplus
}
#endif

#endif
