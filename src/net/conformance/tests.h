// SPDX-License-Identifier: Apache-2.0
#ifndef TD_NET_CONFORMANCE_TESTS_H
#define TD_NET_CONFORMANCE_TESTS_H

// The tests of the suite, each with a world of its own. A test is written in
// messages.c, loans.c, queries.c or presence.c and named here; conformance.c
// runs them.

#include "net/conformance/world.h"

#define TD_CONF_TESTS(X)                                                       \
    X(messages_arrive_whole_and_in_order)                                      \
    X(best_effort_messages_that_arrive_are_whole)                              \
    X(slow_callback_keeps_the_order)                                           \
    X(parts_arrive_joined)                                                     \
    X(buffers_are_released_exactly_once)                                       \
    X(kept_messages_outlive_their_callback)                                    \
    X(key_expressions_match_as_zenoh_has_it)                                   \
    X(every_subscriber_gets_its_copy)                                          \
    X(what_arrives_is_not_counted_as_dropped)                                  \
    X(undeclared_subscriber_is_called_no_more)                                 \
    X(undeclare_inside_a_callback_is_busy)                                     \
    X(undeclare_waits_for_a_running_callback)                                  \
    X(publisher_knows_whether_it_is_matched)                                   \
    X(lent_messages_arrive_as_written)                                         \
    X(kept_messages_survive_later_loans)                                       \
    X(loans_are_sent_in_the_order_of_their_puts)                               \
    X(loans_are_parts_of_messages_again_and_again)                             \
    X(loan_may_outlive_its_publisher)                                          \
    X(dropped_loan_sends_nothing)                                              \
    X(small_messages_are_not_lent)                                             \
    X(query_gathers_every_reply_then_ends_once)                                \
    X(query_that_nobody_serves_ends_without_reply)                             \
    X(request_may_be_answered_from_another_thread)                             \
    X(reply_must_match_what_was_asked)                                         \
    X(unanswered_query_ends_when_its_time_is_up)                               \
    X(token_is_seen_until_undeclared)                                          \
    X(watcher_sees_tokens_already_there)                                       \
    X(links_are_reported_up_and_down)                                          \
    X(each_session_has_its_own_id)                                             \
    X(bad_keys_are_refused_with_a_text)

#define TD_CONF_DECLARE(name) void td_conf_##name(void **state);
TD_CONF_TESTS(TD_CONF_DECLARE)
#undef TD_CONF_DECLARE

#endif
