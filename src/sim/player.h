// SPDX-License-Identifier: Apache-2.0
#ifndef TD_SIM_PLAYER_H
#define TD_SIM_PLAYER_H

// A robot in virtual time that is shown a recorded session and plays what a
// policy answers, with the deciding core of a real one (edge/core/core.h): when
// it asks, how chunks join, its limits and its fail-safe are those of its file.
// Every answer comes as late as every other. Of the session it sees frame 0
// until it has something to play; from then on a policy step is a frame.
//
// Each control tick is: tick; where that asks, observe the frame and send, and
// where that is sent, the answer. One thread.

#include "config/robot/robot.h"
#include "edge/record/rows.h"
#include "tendon/engine.h"

typedef struct td_sim_player td_sim_player;

typedef struct td_sim_player_config {
    const td_engine_spec *spec; // of the policy
    uint32_t fps;               // of the session
    int64_t latency_ns;         // of an answer
    const float *start;         // where the joints are at the beginning
    // Whose settings; NULL: it asks when half a chunk is left, waits for the
    // answer however long that takes, and has no limits.
    const td_config_robot *robot;
} td_sim_player_config;

// Borrows for the call. Owned by the caller. MISMATCH (the robot is not the
// policy's or the session's; names what), INVALID (a quaternion that is not
// whole), NOMEM.
TD_NODISCARD td_err td_sim_player_new(const td_sim_player_config *config,
                                      td_sim_player **ret_player,
                                      td_errinfo *info);
void td_sim_player_free(td_sim_player *player);
TD_AUTO_FREE(td_sim_player, td_sim_player_free)

// The frame that it sees now. The session may have ended before.
uint64_t td_sim_player_frame(const td_sim_player *player);

typedef struct td_sim_played {
    // The next frame of the session, from 0, as a recorder has it; both are
    // borrowed until the next tick. NULL: this tick ended none.
    const td_edge_row *row;
    const float *command;
    bool asks;           // for an observation of the frame that it sees now,
    td_wire_ident ident; // of this name
} td_sim_played;

// One control tick further. INVALID where the robot plays none of the first
// answers, with why: too late for it, or not numbers. NOMEM.
TD_NODISCARD td_err td_sim_player_tick(td_sim_player *player,
                                       td_sim_played *ret_played,
                                       td_errinfo *info);

// What the tick asked for. False: it is left out, as much like the last one.
TD_NODISCARD bool td_sim_player_send(td_sim_player *player,
                                     const td_wire_obs *obs);

// The answer to what was sent. Copied. NOMEM.
TD_NODISCARD td_err td_sim_player_answer(td_sim_player *player,
                                         const td_engine_item *answer);

#endif
