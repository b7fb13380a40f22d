// SPDX-License-Identifier: Apache-2.0
#include "server/dispatch/plugin.h"

#include "sched/sched.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MS 1000000LL

// PLUGIN_DIR is where the build puts the libraries.
static td_err open_one(const char *name, td_server_plugin **ret_plugin,
                       td_errinfo *info)
{
    char path[512];
    snprintf(path, sizeof path, PLUGIN_DIR "/%s", name);
    return td_server_plugin_open(path, ret_plugin, info);
}

static const struct {
    const char *name;
    td_err err;
    const char *what;
} wrong[] = {
    {"none.so", TD_ERR_IO, "none.so: cannot open shared object file"},
    {"plugin_no_score.so", TD_ERR_NOTFOUND,
     "plugin_no_score.so has no tendon_score_plugin: end it with "
     "TD_SCORE_PLUGIN(function)"},
    {"plugin_next_version.so", TD_ERR_VERSION,
     "plugin_next_version.so was made for version 3 of tendon/score.h, this "
     "server knows 1 to 2"},
};

static void what_is_no_plugin_is_refused_by_its_reason(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(wrong); i++) {
        td_server_plugin *plugin = NULL;
        td_errinfo info = {""};
        td_err err = open_one(wrong[i].name, &plugin, &info);
        if (err != wrong[i].err || plugin || !strstr(info.text, wrong[i].what))
            fail_msg("%s: %s: %s", wrong[i].name, td_err_name(err), info.text);
    }
}

static void a_file_that_is_no_library_is_refused(void **state)
{
    (void)state;
    td_server_plugin *plugin = NULL;
    td_errinfo info = {""};
    assert_int_equal(
        td_server_plugin_open(TD_SOURCE_DIR "/CMakeLists.txt", &plugin, &info),
        TD_ERR_IO);
    assert_non_null(strstr(info.text, "CMakeLists.txt: "));
}

static td_sched *sched_of(td_server_plugin *plugin, uint32_t members)
{
    td_sched_settings settings = td_sched_defaults;
    settings.policy.score = td_server_plugin_ask;
    settings.policy.score_user = plugin;
    settings.batch.wait = TD_SCHED_WAIT_NONE;
    td_sched *sched = NULL;
    assert_int_equal(td_sched_new(&settings, &sched, NULL), TD_OK);
    for (uint32_t i = 0; i < members; i++) {
        const td_sched_member member = {.most_urgency = 1,
                                        .budget_ns = 50 * MS};
        uint32_t number;
        assert_int_equal(td_sched_join(sched, &member, &number), TD_OK);
        assert_int_equal(number, i);
    }
    return sched;
}

static void submit(td_sched *sched, uint32_t member, float urgency,
                   int64_t due_ns)
{
    static char payload;
    const td_sched_item item = {.member = member,
                                .payload = &payload,
                                .due_ns = due_ns,
                                .useless_ns = INT64_MAX,
                                .expected_ns = INT64_MAX,
                                .urgency = urgency,
                                .steps = TD_SCHED_STEPS_UNSET};
    td_sched_ended ended;
    assert_int_equal(td_sched_submit(sched, 0, &item, &ended),
                     TD_SCHED_WAITING);
}

// examples/my_score.c: about to run dry first, then the urgent.
static void the_example_orders_as_it_says(void **state)
{
    (void)state;
    TD_AUTO(td_server_plugin) *plugin = NULL;
    td_errinfo info = {""};
    if (open_one("example_my_score.so", &plugin, &info) != TD_OK)
        fail_msg("%s", info.text);
    TD_AUTO(td_sched) *sched = sched_of(plugin, 4);
    submit(sched, 0, 0, 80 * MS);    // calm, and time enough
    submit(sched, 1, 0.9F, 90 * MS); // urgent, and time enough
    submit(sched, 2, 0.1F, 15 * MS); // dry soon
    submit(sched, 3, 0.8F, 15 * MS); // dry soon, and urgent
    static const uint32_t order[] = {3, 2, 1, 0};
    for (size_t i = 0; i < TD_COUNT_OF(order); i++) {
        td_sched_pick pick;
        assert_int_equal(td_sched_next(sched, 0, TD_SCHED_ALL_MODELS, 1, &pick),
                         1);
        assert_int_equal(pick.member, order[i]);
        (void)td_sched_done(sched, 0, pick.ticket, TD_SCHED_ANSWERED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_plugin_is_refused_by_its_reason),
        cmocka_unit_test(a_file_that_is_no_library_is_refused),
        cmocka_unit_test(the_example_orders_as_it_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
