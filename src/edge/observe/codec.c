// SPDX-License-Identifier: Apache-2.0
#include "edge/observe/codec.h"

void td_edge_codec_begin(td_edge_codec_choice *choice, td_edge_codec setting)
{
    *choice = (td_edge_codec_choice){
        .codec = setting,
        .cost_ns = {INT64_MAX, INT64_MAX},
    };
}

bool td_edge_codec_is_raw(const td_edge_codec_choice *choice)
{
    if (choice->codec != TD_EDGE_CODEC_AUTO)
        return choice->codec == TD_EDGE_CODEC_RAW;
    return choice->trials[TD_EDGE_CODEC_RAW] <=
           choice->trials[TD_EDGE_CODEC_JPEG];
}

bool td_edge_codec_tried(td_edge_codec_choice *choice, bool raw,
                         int64_t cost_ns)
{
    int kind = raw ? TD_EDGE_CODEC_RAW : TD_EDGE_CODEC_JPEG;
    if (choice->codec != TD_EDGE_CODEC_AUTO) return false;
    if (cost_ns < choice->cost_ns[kind]) choice->cost_ns[kind] = cost_ns;
    choice->trials[kind]++;
    for (int i = 0; i < 2; i++)
        if (choice->trials[i] < TD_EDGE_CODEC_TRIALS) return false;
    choice->codec =
        choice->cost_ns[TD_EDGE_CODEC_RAW] < choice->cost_ns[TD_EDGE_CODEC_JPEG]
            ? TD_EDGE_CODEC_RAW
            : TD_EDGE_CODEC_JPEG;
    return true;
}
