// SPDX-License-Identifier: Apache-2.0
// A score for the scheduler: robots about to run dry first, and the urgent ones
// among them. Build it and name it in the manifest:
//
//   cc -shared -fPIC -Iinclude -o my_score.so examples/my_score.c
//
//   scheduling:
//     plugin: my_score.so   # beside the manifest
#include "tendon/score.h"

static double score(const td_score_request *request)
{
    double pressure = request->slack_ms < 20 ? 1000 : 0;
    return pressure + 100 * request->urgency - request->slack_ms;
}

TD_SCORE_PLUGIN(score)
