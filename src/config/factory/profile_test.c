// SPDX-License-Identifier: Apache-2.0
#include "config/factory/profile.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define HEAD                                                                   \
    "profile: 1\n"                                                             \
    "model: acme/arm-1\n"                                                      \
    "engine: worker\n"                                                         \
    "gpu: NVIDIA H200\n"                                                       \
    "memory_gb: 2\n"                                                           \
    "origin: measured\n"
#define SERVICE                                                                \
    "service:\n"                                                               \
    "  - {batch: 1, alone_ms: [12, 10, 11, 13]}\n"                             \
    "  - {batch: 2, alone_ms: [20]}\n"                                         \
    "  - {batch: 4, alone_ms: [40], padded_ms: [34]}\n"                        \
    "  - {batch: 8, alone_ms: [80]}\n"
#define LANGUAGE                                                               \
    "language:\n"                                                              \
    "  {prompt_tokens: 924, output_tokens: 100, kv_bytes_per_token: "          \
    "1048576,\n"                                                               \
    "   prefill_ms: [50], step: [{concurrency: 1, ms: [2]},\n"                 \
    "                            {concurrency: 5, ms: [4]}]}\n"
#define END "complete: true\n"

static td_config_profile *parsed(const char *text)
{
    td_config_profile *profile = NULL;
    td_errinfo info = {""};
    td_err err =
        td_config_profile_parse("p.yaml", text, strlen(text), &profile, &info);
    if (err != TD_OK) fail_msg("%s: %s", td_err_name(err), info.text);
    return profile;
}

static void a_batch_takes_what_was_measured_for_its_size(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t n;
        double mean, low, high;
    } cases[] = {
        {"its own size", 1, 11.5, 10, 13},
        {"another", 2, 20, 20, 20},
        {"the fewest of a size, padded", 3, 34, 34, 34},
        {"a full one", 4, 40, 40, 40},
        {"between two, nothing padded", 5, 80, 80, 80},
        {"the largest", 8, 80, 80, 80},
    };
    TD_AUTO(td_config_profile) *profile = parsed(HEAD SERVICE END);
    assert_false(td_config_profile_continuous(profile));
    assert_int_equal(td_config_profile_max_batch(profile), 8);
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        double mean = td_config_profile_mean_ms(profile, cases[i].n);
        double low = td_config_profile_quantile_ms(profile, cases[i].n, 0);
        double high = td_config_profile_quantile_ms(profile, cases[i].n, 1);
        if (mean != cases[i].mean || low != cases[i].low ||
            high != cases[i].high)
            fail_msg("%s: %g, %g to %g", cases[i].name, mean, low, high);
    }
}

static void quantiles_go_through_the_samples(void **state)
{
    (void)state;
    TD_AUTO(td_config_profile) *profile = parsed(HEAD SERVICE END);
    static const double expected[] = {10, 11, 12, 13};
    for (int i = 0; i < 4; i++)
        assert_true(td_config_profile_quantile_ms(profile, 1, i * 0.25 + 0.1) ==
                    expected[i]);
}

static void a_request_takes_its_prefill_and_its_steps(void **state)
{
    (void)state;
    TD_AUTO(td_config_profile) *profile = parsed(HEAD LANGUAGE END);
    assert_true(td_config_profile_continuous(profile));
    assert_int_equal(td_config_profile_max_batch(profile), 5);
    assert_true(td_config_profile_mean_ms(profile, 1) == 250);
    assert_true(td_config_profile_mean_ms(profile, 3) == 350);
    assert_true(td_config_profile_quantile_ms(profile, 5, 0.99) == 450);
}

static void memory_grows_with_what_is_kept(void **state)
{
    (void)state;
    TD_AUTO(td_config_profile) *batches = parsed(HEAD SERVICE END);
    assert_true(td_config_profile_memory_gb(batches, 8) == 2);
    TD_AUTO(td_config_profile) *language = parsed(HEAD LANGUAGE END);
    assert_true(td_config_profile_memory_gb(language, 5) == 7);
}

static char *written(const td_config_profile *profile)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    assert_int_equal(td_config_profile_write(profile, out), TD_OK);
    fclose(out);
    return text;
}

static void what_is_written_reads_back_the_same(void **state)
{
    (void)state;
    static const char *const texts[] = {
        HEAD SERVICE
        "source: \"a \\\"b\\\": c\\n# d \\x85 \u00e9 \\uFEFF\"\nnoise: 0.125\n"
        "rates: [{batch: 2, percent: 10, rate_hz: 10, "
        "predicted_p50_ms: 1, predicted_p99_ms: 2, "
        "measured_p50_ms: 3, measured_p99_ms: 4.5}]\n" END,
        HEAD LANGUAGE END,
    };
    for (size_t i = 0; i < TD_COUNT_OF(texts); i++) {
        TD_AUTO(td_config_profile) *first = parsed(texts[i]);
        char *once = written(first);
        TD_AUTO(td_config_profile) *second = parsed(once);
        char *twice = written(second);
        assert_string_equal(once, twice);
        assert_string_equal(first->source, second->source);
        free(once);
        free(twice);
    }
}

#define AGAIN "; `tendon profile` measures a new one"
static const struct {
    const char *name, *text, *error;
} broken[] = {
    {"cut off in a list", HEAD "service: [{batch: 1, alone_ms: [1, 2,",
     "p.yaml:8: not YAML: did not find expected node content" AGAIN},
    {"cut off at a line", HEAD SERVICE,
     "p.yaml:1: complete: is missing, must be true or false" AGAIN},
    {"cut off in a number", HEAD SERVICE "noise: 0.1x\n" END,
     "p.yaml:12: noise: must be 0 to 1000, got 0.1x" AGAIN},
    {"a later format",
     "profile: 2\nmodel: a\nengine: b\ngpu: c\n"
     "origin: fitted\n" SERVICE END,
     "p.yaml:1: profile: must be 1, got 2" AGAIN},
    {"nothing in it", HEAD END,
     "p.yaml:1: must have service or language, one of the two" AGAIN},
    {"both", HEAD SERVICE LANGUAGE END,
     "p.yaml:1: must have service or language, one of the two" AGAIN},
    {"sizes that shrink",
     HEAD "service:\n- {batch: 2, alone_ms: [1]}\n"
          "- {batch: 1, alone_ms: [1]}\n" END,
     "p.yaml:9: service[1].batch: must be above that before it, 2, got "
     "1" AGAIN},
    {"a size without samples", HEAD "service: [{batch: 2, alone_ms: []}]\n" END,
     "p.yaml:7: service[0].alone_ms: must have 1 to 16384 members, got "
     "0" AGAIN},
    {"a negative time", HEAD "service: [{batch: 2, alone_ms: [1, -2]}]\n" END,
     "p.yaml:7: service[0].alone_ms[1]: must be 0 to 600000, got -2" AGAIN},
    {"steps without a prefill",
     HEAD "language: {step: [{concurrency: 1, ms: [1]}]}\n" END,
     "p.yaml:7: language: steps need prefill_ms and output_tokens too" AGAIN},
    {"not finished", HEAD SERVICE "complete: false\n",
     "p.yaml: is not complete; the `tendon profile` that began it goes on "
     "with it"},
};

static void a_corrupt_profile_is_refused_with_the_way_out(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(broken); i++) {
        td_config_profile *profile = NULL;
        td_errinfo info = {""};
        td_err err = td_config_profile_parse(
            "p.yaml", broken[i].text, strlen(broken[i].text), &profile, &info);
        if (err == TD_OK || profile || strcmp(info.text, broken[i].error) != 0)
            fail_msg("%s:\n got  %s\n want %s", broken[i].name, info.text,
                     broken[i].error);
    }
}

static void the_shipped_profiles_are_whole(void **state)
{
    (void)state;
    TD_AUTO(td_config_profiles) *profiles = NULL;
    td_errinfo info = {""};
    td_err err =
        td_config_profiles_load(TD_SOURCE_DIR "/profiles", &profiles, &info);
    if (err != TD_OK) fail_msg("%s", info.text);
    static const char *const models[] = {
        "nvidia/GR00T-N1.6-3B", "physical-intelligence/pi0.5",
        "Qwen2.5-VL-7B-Instruct", "Qwen2.5-VL-3B-Instruct"};
    for (size_t i = 0; i < TD_COUNT_OF(models); i++) {
        const td_config_profile *profile = NULL;
        err = td_config_profiles_find(profiles, models[i], "", "NVIDIA H200",
                                      &profile, &info);
        if (err != TD_OK) fail_msg("%s", info.text);
        assert_int_equal(profile->origin, TD_CONFIG_FITTED);
        assert_non_null(strstr(profile->source, "itted"));
        assert_true(profile->memory_gb > 0 && profile->gpu_memory_gb > 0);
    }
}

// A folder of profiles; gone with the test.
typedef struct folder {
    char path[32];
    td_config_profiles *profiles;
} folder;

static void add_file(const folder *f, const char *name, const char *text)
{
    char path[64];
    snprintf(path, sizeof path, "%s/%s", f->path, name);
    FILE *out = fopen(path, "we");
    assert_non_null(out);
    fputs(text, out);
    fclose(out);
}

static int make_folder(void **state)
{
    static folder f;
    f = (folder){.path = "/tmp/td-profiles-XXXXXX"};
    assert_non_null(mkdtemp(f.path));
    add_file(&f, "a.yaml", HEAD SERVICE END);
    add_file(&f, "b.yaml",
             "profile: 1\nmodel: twice\nengine: x\ngpu: A\norigin: fitted\n"
             "service: [{batch: 1, alone_ms: [1]}]\ncomplete: true\n");
    add_file(&f, "c.yaml",
             "profile: 1\nmodel: twice\nengine: y\ngpu: A\norigin: fitted\n"
             "service: [{batch: 1, alone_ms: [2]}]\ncomplete: true\n");
    add_file(&f, "d.yaml.part", "not one");
    td_errinfo info = {""};
    td_err err = td_config_profiles_load(f.path, &f.profiles, &info);
    if (err != TD_OK) fail_msg("%s", info.text);
    *state = &f;
    return 0;
}

static int drop_folder(void **state)
{
    static const char *const names[] = {"a.yaml", "b.yaml", "c.yaml",
                                        "d.yaml.part"};
    folder *f = *state;
    for (size_t i = 0; i < TD_COUNT_OF(names); i++) {
        char path[64];
        snprintf(path, sizeof path, "%s/%s", f->path, names[i]);
        unlink(path);
    }
    rmdir(f->path);
    td_config_profiles_free(f->profiles);
    return 0;
}

static void a_profile_is_found_by_model_engine_and_gpu(void **state)
{
    static const struct {
        const char *model, *engine, *gpu;
        double ms;
    } cases[] = {
        {"acme/arm-1", "", "NVIDIA H200", 11.5},
        {"arm-1", "worker", "NVIDIA H200", 11.5},
        {"twice", "x", "A", 1},
        {"someone/twice", "y", "A", 2},
    };
    const folder *f = *state;
    assert_int_equal(f->profiles->count, 3);
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        const td_config_profile *found = NULL;
        td_errinfo info = {""};
        td_err err = td_config_profiles_find(f->profiles, cases[i].model,
                                             cases[i].engine, cases[i].gpu,
                                             &found, &info);
        if (err != TD_OK || td_config_profile_mean_ms(found, 1) != cases[i].ms)
            fail_msg("%s: %s", cases[i].model, info.text);
    }
}

static void a_profile_that_is_not_there_is_named_with_the_way_out(void **state)
{
    static const struct {
        const char *model, *engine, *gpu;
        td_err err;
        const char *text;
    } cases[] = {
        {"arm-2", "", "A", TD_ERR_NOTFOUND,
         "there is no profile of arm-2 on A; measure it with `tendon profile`"},
        {"other/arm-1", "", "NVIDIA H200", TD_ERR_NOTFOUND,
         "there is no profile of other/arm-1 on NVIDIA H200; measure it with "
         "`tendon profile`"},
        {"arm-1", "", "NVIDIA L4", TD_ERR_MISMATCH,
         "the profile of arm-1, a.yaml, is for another GPU, NVIDIA H200; "
         "measure it on NVIDIA L4 with `tendon profile`"},
        {"arm-1", "native", "NVIDIA H200", TD_ERR_MISMATCH,
         "the profile of arm-1 on NVIDIA H200, a.yaml, is of the engine "
         "worker, not native; measure it with `tendon profile`"},
        {"twice", "", "A", TD_ERR_INVALID,
         "two profiles of twice on A: b.yaml and c.yaml; say `engine` in the "
         "component, or take one away"},
    };
    const folder *f = *state;
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        const td_config_profile *found = NULL;
        td_errinfo info = {""};
        td_err err = td_config_profiles_find(f->profiles, cases[i].model,
                                             cases[i].engine, cases[i].gpu,
                                             &found, &info);
        if (err != cases[i].err || found ||
            strcmp(info.text, cases[i].text) != 0)
            fail_msg("%s: %s", td_err_name(err), info.text);
    }
}

static void a_folder_that_is_not_there_is_named(void **state)
{
    (void)state;
    td_config_profiles *profiles = NULL;
    td_errinfo info = {""};
    assert_int_equal(td_config_profiles_load("/nowhere", &profiles, &info),
                     TD_ERR_IO);
    assert_null(profiles);
    assert_string_equal(info.text,
                        "/nowhere: No such file or directory; it should hold "
                        "the profiles that `tendon profile` writes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_batch_takes_what_was_measured_for_its_size),
        cmocka_unit_test(quantiles_go_through_the_samples),
        cmocka_unit_test(a_request_takes_its_prefill_and_its_steps),
        cmocka_unit_test(memory_grows_with_what_is_kept),
        cmocka_unit_test(what_is_written_reads_back_the_same),
        cmocka_unit_test(a_corrupt_profile_is_refused_with_the_way_out),
        cmocka_unit_test(the_shipped_profiles_are_whole),
        cmocka_unit_test_setup_teardown(
            a_profile_is_found_by_model_engine_and_gpu, make_folder,
            drop_folder),
        cmocka_unit_test_setup_teardown(
            a_profile_that_is_not_there_is_named_with_the_way_out, make_folder,
            drop_folder),
        cmocka_unit_test(a_folder_that_is_not_there_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
