// SPDX-License-Identifier: Apache-2.0
#include "sched/slots.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static char payloads[8];

static td_sched_slots *slots_with(uint32_t clients)
{
    td_sched_slots *slots = NULL;
    assert_int_equal(td_sched_slots_new(8, &slots), TD_OK);
    for (uint32_t i = 0; i < clients; i++) {
        uint32_t client;
        assert_int_equal(td_sched_slots_add(slots, &client), TD_OK);
        assert_int_equal(client, i);
    }
    return slots;
}

static td_sched_request offer(td_sched_slots *slots, uint32_t client,
                              int64_t now_ns, uint64_t seq)
{
    td_sched_request displaced;
    td_sched_slots_offer(slots, client, now_ns, seq, &payloads[client],
                         &displaced);
    return displaced;
}

static void newer_takes_the_place_and_inherits_the_wait(void **state)
{
    (void)state;
    TD_AUTO(td_sched_slots) *slots = slots_with(1);
    assert_null(offer(slots, 0, 100, 1).payload);
    td_sched_request displaced = offer(slots, 0, 250, 2);
    assert_int_equal(displaced.seq, 1);
    assert_ptr_equal(displaced.payload, &payloads[0]);

    uint32_t client;
    td_sched_request request;
    assert_int_equal(td_sched_slots_next(slots, 1, &client, &request), 1);
    assert_int_equal(request.seq, 2);
    assert_int_equal(request.arrived_ns, 250);
    assert_int_equal(request.waiting_since_ns, 100);
}

static void turns_go_round_whoever_publishes_fastest(void **state)
{
    (void)state;
    TD_AUTO(td_sched_slots) *slots = slots_with(3);
    uint32_t served[3] = {0};
    for (uint64_t turn = 0; turn < 30; turn++) {
        for (int repeat = 0; repeat < 50; repeat++)
            (void)offer(slots, 0, 0, turn); // shouts
        (void)offer(slots, 1, 0, turn);
        (void)offer(slots, 2, 0, turn);
        uint32_t client;
        td_sched_request request;
        assert_int_equal(td_sched_slots_next(slots, 1, &client, &request), 1);
        served[client]++;
        td_sched_slots_done(slots, client);
    }
    for (int i = 0; i < 3; i++)
        assert_int_equal(served[i], 10);
}

static void one_runs_while_the_next_waits(void **state)
{
    (void)state;
    TD_AUTO(td_sched_slots) *slots = slots_with(2);
    uint32_t clients[4];
    td_sched_request requests[4];
    (void)offer(slots, 0, 0, 1);
    (void)offer(slots, 1, 0, 1);
    assert_int_equal(td_sched_slots_next(slots, 4, clients, requests), 2);
    assert_int_equal(td_sched_slots_waiting(slots), 0);

    (void)offer(slots, 0, 0, 2);
    assert_int_equal(td_sched_slots_waiting(slots), 1);
    assert_int_equal(td_sched_slots_next(slots, 4, clients, requests), 0);
    td_sched_slots_done(slots, 0);
    assert_int_equal(td_sched_slots_next(slots, 4, clients, requests), 1);
    assert_int_equal(requests[0].seq, 2);
}

static void a_running_client_cannot_be_removed(void **state)
{
    (void)state;
    TD_AUTO(td_sched_slots) *slots = slots_with(1);
    uint32_t client;
    td_sched_request request, waiting;
    (void)offer(slots, 0, 0, 1);
    (void)td_sched_slots_next(slots, 1, &client, &request);
    (void)offer(slots, 0, 0, 2);
    assert_int_equal(td_sched_slots_remove(slots, 0, &waiting), TD_ERR_BUSY);
    td_sched_slots_done(slots, 0);
    assert_int_equal(td_sched_slots_remove(slots, 0, &waiting), TD_OK);
    assert_int_equal(waiting.seq, 2);
    assert_int_equal(td_sched_slots_waiting(slots), 0);
}

static void a_full_house_refuses_the_next_client(void **state)
{
    (void)state;
    TD_AUTO(td_sched_slots) *slots = slots_with(8);
    uint32_t client;
    assert_int_equal(td_sched_slots_add(slots, &client), TD_ERR_FULL);
    td_sched_request waiting;
    assert_int_equal(td_sched_slots_remove(slots, 3, &waiting), TD_OK);
    assert_int_equal(td_sched_slots_add(slots, &client), TD_OK);
    assert_int_equal(client, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(newer_takes_the_place_and_inherits_the_wait),
        cmocka_unit_test(turns_go_round_whoever_publishes_fastest),
        cmocka_unit_test(one_runs_while_the_next_waits),
        cmocka_unit_test(a_running_client_cannot_be_removed),
        cmocka_unit_test(a_full_house_refuses_the_next_client),
    };
    return cmocka_run_group_tests_name("sched/slots", tests, NULL, NULL);
}
