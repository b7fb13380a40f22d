// SPDX-License-Identifier: Apache-2.0
// A plug-in for a server of tomorrow.
#include "tendon/score.h"

static double score(const td_score_request *request)
{
    return request->score;
}

const td_score_plugin tendon_score_plugin = {TD_SCORE_VERSION + 1, score};
