// SPDX-License-Identifier: Apache-2.0
#include "wire/msgpack/literal.h"
#include "wire/wire.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static td_wire_encoder *encoder;
static td_wire_decoder *decoder;

static int set_up(void **state)
{
    (void)state;
    return td_wire_encoder_new(&encoder) != TD_OK ||
           td_wire_decoder_new(&decoder) != TD_OK;
}

static int tear_down(void **state)
{
    (void)state;
    td_wire_encoder_free(encoder);
    td_wire_decoder_free(decoder);
    return 0;
}

// Decoders of one signature, for tables.
typedef td_err decode_fn(const void *data, size_t size, td_errinfo *info);
#define DECODE(name)                                                           \
    static td_err name(const void *data, size_t size, td_errinfo *info)        \
    {                                                                          \
        td_wire_##name message;                                                \
        return td_wire_##name##_decode(decoder, data, size, &message, info);   \
    }
TD_WIRE_MESSAGES(DECODE)
#undef DECODE

#define ID "'seq_id': 1, 'client_uuid': 'r1'"
#define STATE "'state': {'dtype': '<f4', 'shape': [2], 'data': <8*00>}"
#define OBS(more) "{" ID ", " STATE ", " more "}"
#define TENSOR(more) "{" ID ", 'state': {" more "}}"
#define CHUNK "'actions': {'dtype': '<f4', 'shape': [1, 2], 'data': <8*00>}"
#define ACTION(more) "{'response_to_seq_id': 1, " CHUNK ", " more "}"
#define STATUS(more)                                                           \
    "{'model_id': 'm', 'model_version': 'v1', 'action_dim': 2, "               \
    "'max_actions_per_chunk': 50, " more "}"
#define NEWER(kind, schema)                                                    \
    kind ": schema " schema " is newer than 1, which this version speaks: "    \
         "update Tendon"
#define GRANT(more)                                                            \
    "{'client_uuid': 'r1', 'generation': 1, 'components': "                    \
    "{'system1': {'server_id': 's1', " more "}}}"

static const struct {
    const char *name;
    decode_fn *decode;
    const char *literal;
    td_err err;
    const char *info;
} cases[] = {
    {"the least observation", obs, "{" ID ", " STATE "}", TD_OK, ""},
    {"unknown fields are ignored", obs, OBS("'x': [1, {'y': null}]"), TD_OK,
     ""},
    {"nil is as good as missing", obs, OBS("'task': null, 'cursor': null"),
     TD_OK, ""},
    {"our schema", obs, OBS("'schema': 1"), TD_OK, ""},
    {"a newer schema", obs, "{'x': 1, 'schema': 2}", TD_ERR_VERSION,
     NEWER("obs", "2")},
    {"a schema beyond 32 bits", obs, OBS("'schema': 4294967296"),
     TD_ERR_VERSION, NEWER("obs", "4294967296")},
    {"a newer schema, and deeper", obs,
     "{'x': [[[[[[[[[1]]]]]]]]], 'schema': 2}", TD_ERR_VERSION,
     NEWER("obs", "2")},
    {"a newer schema, and extensions", obs,
     "{'a': @1, 'b': @16, 'c': @0, 'd': @300, 'e': @70000, 'schema': 2}",
     TD_ERR_VERSION, NEWER("obs", "2")},
    {"our schema, and an extension", obs, OBS("'a': @3"), TD_ERR_FORMAT,
     "obs: holds an extension type"},
    {"a schema of nil", obs, OBS("'schema': null"), TD_OK, ""},
    {"a schema of text", obs, OBS("'schema': 'one'"), TD_ERR_FORMAT,
     "obs: schema: must be an integer of at least 0, got text"},
    {"a field twice", obs, OBS("'seq_id': 2"), TD_ERR_FORMAT,
     "obs: seq_id is there twice"},
    {"a key that is no text", obs, OBS("7: 2"), TD_ERR_FORMAT,
     "obs: a key must be text, got an integer"},
    {"no seq", obs, "{'client_uuid': 'r1', " STATE "}", TD_ERR_FORMAT,
     "obs: seq_id is missing"},
    {"no client", obs, "{'seq_id': 1, " STATE "}", TD_ERR_FORMAT,
     "obs: client_uuid is missing"},
    {"no state", obs, "{" ID "}", TD_ERR_FORMAT, "obs: state is missing"},
    {"no state when asking again", obs, "{" ID ", 'again': 3}", TD_OK, ""},
    {"another chunk of nothing", obs, OBS("'anew': true"), TD_ERR_FORMAT,
     "obs: anew is without again"},
    {"a negative seq", obs, "{'seq_id': -1}", TD_ERR_FORMAT,
     "obs: seq_id: must be an integer of at least 0, got a negative integer"},
    {"a client with a slash", obs, "{'seq_id': 1, 'client_uuid': 'a/b'}",
     TD_ERR_FORMAT,
     "obs: client_uuid: holds something other than A-Z a-z 0-9 . _ -"},
    {"an empty client", obs, "{'seq_id': 1, 'client_uuid': ''}", TD_ERR_FORMAT,
     "obs: client_uuid: is empty"},
    {"a long client", obs,
     "{'client_uuid': "
     "'0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef0'}",
     TD_ERR_LIMIT, "obs: client_uuid: is longer than 64 bytes"},

    {"a state of bare bytes", obs, "{" ID ", 'state': <8*00>}", TD_ERR_FORMAT,
     "obs: state: must be a map, got binary"},
    {"bytes too few", obs,
     TENSOR("'dtype': '<f4', 'shape': [2, 7], 'data': <40*00>"), TD_ERR_FORMAT,
     "obs: state: shape 2x7 of <f4 needs 56 bytes, got 40"},
    {"bytes too many", obs,
     TENSOR("'dtype': 'bf16', 'shape': [3], 'data': <7*00>"), TD_ERR_FORMAT,
     "obs: state: shape 3 of bf16 needs 6 bytes, got 7"},
    {"an unknown dtype", obs,
     TENSOR("'dtype': '>f4', 'shape': [1], 'data': <4*00>"), TD_ERR_FORMAT,
     "obs: state: dtype: '>f4' is not known"},
    {"no dtype", obs, TENSOR("'shape': [1], 'data': <4*00>"), TD_ERR_FORMAT,
     "obs: state: dtype is missing"},
    {"no shape", obs, TENSOR("'dtype': '<f4', 'data': <4*00>"), TD_ERR_FORMAT,
     "obs: state: shape is missing"},
    {"an empty shape", obs,
     TENSOR("'dtype': '<f4', 'shape': [], 'data': <4*00>"), TD_ERR_FORMAT,
     "obs: state: shape is empty"},
    {"nine sides", obs,
     TENSOR("'dtype': '|u1', 'shape': [1,1,1,1,1,1,1,1,1], 'data': <1*00>"),
     TD_ERR_LIMIT, "obs: state: shape: 9 members, limit 8"},
    {"a negative side", obs,
     TENSOR("'dtype': '|u1', 'shape': [-1], 'data': <1*00>"), TD_ERR_FORMAT,
     "obs: state: shape: must be an integer of at least 0, got a negative "
     "integer"},
    {"a side of 2^32", obs,
     TENSOR("'dtype': '|u1', 'shape': [4294967296], 'data': <1*00>"),
     TD_ERR_FORMAT, "obs: state: shape: must be below 2^32, got 4294967296"},
    {"sides whose product wraps to the size", obs,
     TENSOR("'dtype': '|u1', 'shape': [2147483648, 2147483648, 4], "
            "'data': <0*00>"),
     TD_ERR_FORMAT,
     "obs: state: shape 2147483648x2147483648x4 of |u1 needs "
     "18446744073709551615 bytes, got 0"},
    {"text as data", obs, TENSOR("'dtype': '|u1', 'shape': [1], 'data': 'x'"),
     TD_ERR_FORMAT, "obs: state: data: must be binary, got text"},
    {"not a number, of 32 bits", obs,
     TENSOR("'dtype': '<f4', 'shape': [2], 'data': <8*ff>"), TD_ERR_FORMAT,
     "obs: state: a value is not finite"},
    {"not a number, of 64 bits", obs,
     TENSOR("'dtype': '<f8', 'shape': [1], 'data': <8*ff>"), TD_ERR_FORMAT,
     "obs: state: a value is not finite"},
    {"not a number, of 16 bits", obs,
     TENSOR("'dtype': '<f2', 'shape': [1], 'data': <2*7c>"), TD_ERR_FORMAT,
     "obs: state: a value is not finite"},
    {"large, of 16 bits", obs,
     TENSOR("'dtype': '<f2', 'shape': [1], 'data': <2*7b>"), TD_OK, ""},
    {"not a number, of bf16", obs,
     TENSOR("'dtype': 'bf16', 'shape': [1], 'data': <2*ff>"), TD_ERR_FORMAT,
     "obs: state: a value is not finite"},
    {"integers may have all bits", obs,
     TENSOR("'dtype': '<i4', 'shape': [1], 'data': <4*ff>"), TD_OK, ""},
    {"a negative age", obs,
     TENSOR("'dtype': '|u1', 'shape': [1], 'data': <1*00>, 'age_us': -1"),
     TD_ERR_FORMAT, "obs: state: age_us: must be at least 0, got -1"},
    {"a tensor of no rows", obs,
     OBS("'tensors': {'t': {'dtype': '<f4', 'shape': [0, 7], 'data': <0*0>}}"),
     TD_OK, ""},
    {"other tensors may hold anything", obs,
     OBS("'tensors': {'t': {'dtype': '<f4', 'shape': [1], 'data': <4*ff>}}"),
     TD_OK, ""},

    {"images of every kind", obs,
     OBS("'images': {'a': <9*ff>, 'b': {'codec': 'jpeg', 'data': <9*ff>}, "
         "'c': {'codec': 'png', 'data': <9*ff>, 'shape': [2, 3, 1]}, "
         "'d.e': {'codec': 'raw', 'data': <18*ff>, 'shape': [2, 3, 3]}}"),
     TD_OK, ""},
    {"an image of text", obs, OBS("'images': {'a': 'jpeg'}"), TD_ERR_FORMAT,
     "obs: images: a: must be a map, got text"},
    {"an empty image", obs, OBS("'images': {'a': <0*00>}"), TD_ERR_FORMAT,
     "obs: images: a: is empty"},
    {"an unknown codec", obs,
     OBS("'images': {'a': {'codec': 'webp', 'data': <9*ff>}}"), TD_ERR_FORMAT,
     "obs: images: a: codec: 'webp' is not known"},
    {"raw bytes that do not fit", obs,
     OBS("'images': {'a': {'codec': 'raw', 'data': <9*ff>, "
         "'shape': [2, 2, 3]}}"),
     TD_ERR_FORMAT, "obs: images: a: raw 2x2x3 needs 12 bytes, got 9"},
    {"raw without a shape", obs,
     OBS("'images': {'a': {'codec': 'raw', 'data': <9*ff>}}"), TD_ERR_FORMAT,
     "obs: images: a: raw 0x0x0 needs 0 bytes, got 9"},
    {"a shape of two sides", obs,
     OBS("'images': {'a': {'codec': 'raw', 'data': <9*ff>, 'shape': [3, 3]}}"),
     TD_ERR_FORMAT, "obs: images: a: shape: must be an array of 3 sides"},
    {"two images of one name", obs, OBS("'images': {'a': <1*0>, 'a': <1*0>}"),
     TD_ERR_FORMAT, "obs: images: a is there twice"},
    {"an image without a name", obs, OBS("'images': {'': <1*0>}"),
     TD_ERR_FORMAT, "obs: images: a name is empty"},
    {"a name with a control character", obs,
     OBS("'images': {'a\x1b[2J': <1*0>}"), TD_ERR_FORMAT,
     "obs: images: a name is not printable UTF-8"},
    {"a name with a control character of two bytes", obs,
     OBS("'images': {'a\xc2\x9b': <1*0>}"), TD_ERR_FORMAT,
     "obs: images: a name is not printable UTF-8"},
    {"a name beyond ASCII", obs, OBS("'images': {'cam\xc3\xa9ra': <1*0>}"),
     TD_OK, ""},

    {"text beyond ASCII", obs,
     OBS("'task': 'caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\xa4\x96'"), TD_OK, ""},
    {"a byte that starts nothing", obs, OBS("'task': 'a\xff'"), TD_ERR_FORMAT,
     "obs: task: text is not valid UTF-8"},
    {"a character longer than it need be", obs, OBS("'task': '\xc0\xaf'"),
     TD_ERR_FORMAT, "obs: task: text is not valid UTF-8"},
    {"a surrogate", obs, OBS("'task': '\xed\xa0\x80'"), TD_ERR_FORMAT,
     "obs: task: text is not valid UTF-8"},
    {"beyond the last character", obs, OBS("'task': '\xf4\x90\x80\x80'"),
     TD_ERR_FORMAT, "obs: task: text is not valid UTF-8"},
    {"a character cut short", obs, OBS("'task': 'eight..\xe2\x82'"),
     TD_ERR_FORMAT, "obs: task: text is not valid UTF-8"},
    {"a task of bytes", obs, OBS("'task': <3*41>"), TD_ERR_FORMAT,
     "obs: task: must be text, got binary"},

    {"the greatest urgency", obs, OBS("'urgency': 1"), TD_OK, ""},
    {"too urgent", obs, OBS("'urgency': 1.5"), TD_ERR_FORMAT,
     "obs: urgency: must be 0 to 1, got 1.5"},
    {"urgency that is no number", obs, OBS("'urgency': nan"), TD_ERR_FORMAT,
     "obs: urgency: must be 0 to 1, got nan"},
    {"urgency of text", obs, OBS("'urgency': 'high'"), TD_ERR_FORMAT,
     "obs: urgency: must be a number, got text"},
    {"a budget already spent", obs, OBS("'budget_us': -3000"), TD_OK, ""},
    {"a budget beyond 63 bits", obs, OBS("'budget_us': 9223372036854775808"),
     TD_ERR_FORMAT, "obs: budget_us: must be a 64-bit integer, got an integer"},
    {"must_go of 1", obs, OBS("'must_go': 1"), TD_ERR_FORMAT,
     "obs: must_go: must be a boolean, got an integer"},
    {"a prefix of one side", obs,
     OBS("'rtc': {'base_chunk': 1, 'prefix': {'dtype': '<f4', 'shape': [2], "
         "'data': <8*00>}}"),
     TD_ERR_FORMAT, "obs: rtc: prefix: must have 2 sides, has 1"},
    {"a prefix that is not finite", obs,
     OBS("'rtc': {'base_chunk': 1, 'prefix': {'dtype': '<f4', "
         "'shape': [1, 1], 'data': <4*ff>}}"),
     TD_ERR_FORMAT, "obs: rtc: prefix: a value is not finite"},
    {"metadata of numbers", obs, OBS("'metadata': {'k': 1}"), TD_ERR_FORMAT,
     "obs: metadata: k: must be text, got an integer"},

    {"the least action", action, ACTION("'x': 1"), TD_OK, ""},
    {"an action without actions", action, "{'response_to_seq_id': 1}",
     TD_ERR_FORMAT, "action: actions is missing"},
    {"an error without actions", action,
     "{'response_to_seq_id': 1, 'error': {'code': 'FORMAT'}}", TD_OK, ""},
    {"an error with actions", action, ACTION("'error': {'code': 'FORMAT'}"),
     TD_ERR_FORMAT, "action: both actions and an error"},
    {"an error without a code", action, ACTION("'error': {'text': 'bad'}"),
     TD_ERR_FORMAT, "action: error: code is missing"},
    {"a plan without actions", action,
     "{'response_to_seq_id': 1, 'kind': 'plan', 'text': 'first'}", TD_OK, ""},
    {"an unknown kind", action, ACTION("'kind': 'dance'"), TD_ERR_FORMAT,
     "action: kind: 'dance' is not known"},
    {"actions of one side", action,
     "{'response_to_seq_id': 1, 'actions': {'dtype': '<f4', 'shape': [2], "
     "'data': <8*00>}}",
     TD_ERR_FORMAT, "action: actions: must have 2 sides, has 1"},
    {"actions without rows", action,
     "{'response_to_seq_id': 1, 'actions': {'dtype': '<f4', 'shape': [0, 2], "
     "'data': <0*00>}}",
     TD_ERR_FORMAT, "action: actions have no rows"},
    {"large actions", action,
     "{'response_to_seq_id': 1, 'actions': {'dtype': '<f4', 'shape': [1, 2], "
     "'data': <8*7f>}}",
     TD_OK, ""},
    {"actions that are not finite", action,
     "{'response_to_seq_id': 1, 'actions': {'dtype': '<f4', 'shape': [1, 1], "
     "'data': <4*ff>}}",
     TD_ERR_FORMAT, "action: actions: a value is not finite"},
    {"a time that runs back", action, ACTION("'inference_time_ms': -1.0"),
     TD_ERR_FORMAT,
     "action: inference_time_ms: must be 0 to 3.40282e+38, got -1"},
    {"a time beyond a float", action, ACTION("'inference_time_ms': 1.0e39"),
     TD_ERR_FORMAT,
     "action: inference_time_ms: must be 0 to 3.40282e+38, got 1e+39"},

    {"the least status", status, STATUS("'x': 1"), TD_OK, ""},
    {"a newer status, deeper and with extensions", status,
     STATUS("'x': [[[[[[[[[@4]]]]]]]]], 'schema': 2"), TD_ERR_VERSION,
     NEWER("status", "2")},
    {"a status without a model", status, "{'model_version': 'v1'}",
     TD_ERR_FORMAT, "status: model_id is missing"},
    {"names fewer than the dimension", status, STATUS("'action_names': ['a']"),
     TD_ERR_FORMAT, "status: action_dim is 2 but there are 1 action_names"},
    {"kinds before names", status,
     STATUS("'action_kinds': ['hold', 'angle'], 'action_names': ['a', 'b']"),
     TD_OK, ""},
    {"kinds without names", status, STATUS("'state_kinds': ['hold']"),
     TD_ERR_FORMAT, "status: 0 state_names but 1 state_kinds"},
    {"kinds fewer than names", status,
     STATUS("'action_names': ['a', 'b'], 'action_kinds': ['hold']"),
     TD_ERR_FORMAT, "status: 2 action_names but 1 action_kinds"},
    {"an unknown channel kind", status, STATUS("'state_kinds': ['round']"),
     TD_ERR_FORMAT, "status: state_kinds: 'round' is not known"},
    {"a channel without a name", status, STATUS("'state_names': ['']"),
     TD_ERR_FORMAT, "status: state_names: a name is empty"},
    {"a camera of no width", status,
     STATUS("'expected_cameras': {'left': [96, 0]}"), TD_ERR_FORMAT,
     "status: expected_cameras: left: a side is 0"},
    {"a camera of three sides", status,
     STATUS("'expected_cameras': {'left': [96, 128, 3]}"), TD_ERR_FORMAT,
     "status: expected_cameras: left: must be an array of 2 sides"},
    {"a server in no state", status, STATUS("'state': 'asleep'"), TD_ERR_FORMAT,
     "status: state: 'asleep' is not known"},
    {"an attach without an answer", status, STATUS("'attach': {}"),
     TD_ERR_FORMAT, "status: attach: accepted is missing"},

    {"the least attach", attach, "{'client_uuid': 'r1', 'server_id': 's1'}",
     TD_OK, ""},
    {"an attach to nobody", attach, "{'client_uuid': 'r1'}", TD_ERR_FORMAT,
     "attach: server_id is missing"},
    {"the least reset", reset, "{'client_uuid': 'r1', 'episode': 2}", TD_OK,
     ""},
    {"a reset to no episode", reset, "{'client_uuid': 'r1'}", TD_ERR_FORMAT,
     "reset: episode is missing"},
    {"the least grant", grant, GRANT("'x': 1"), TD_OK, ""},
    {"a grant of nothing", grant, "{'client_uuid': 'r1', 'generation': 1}",
     TD_OK, ""},
    {"an infinite rate", grant, GRANT("'rate_hz': inf"), TD_ERR_FORMAT,
     "grant: components: system1: rate_hz: must be 0 to 1.79769e+308, got "
     "inf"},
    {"a phase that runs back", grant, GRANT("'phase_us': -1"), TD_ERR_FORMAT,
     "grant: components: system1: phase_us: must be at least 0, got -1"},
    {"a component without a server", grant,
     "{'client_uuid': 'r1', 'generation': 1, 'components': {'a': {}}}",
     TD_ERR_FORMAT, "grant: components: a: server_id is missing"},
    {"the least metrics", metrics, "{'source': 'r1'}", TD_OK, ""},
    {"a gauge may be no number", metrics,
     "{'source': 'r1', 'gauges': {'g': nan}}", TD_OK, ""},
    {"a counter that fell", metrics,
     "{'source': 'r1', 'counters': {'late': -1}}", TD_ERR_FORMAT,
     "metrics: counters: late: must be an integer of at least 0, got a "
     "negative integer"},
    {"quantiles of nothing known", metrics,
     "{'source': 'r1', 'quantiles': {'rtt_us': {'p50': 1}}}", TD_ERR_FORMAT,
     "metrics: quantiles: rtt_us: count is missing"},
};

static void each_decoder_says_what_is_wrong(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(cases); i++) {
        msgpack_sbuffer bytes;
        msgpack_sbuffer_init(&bytes);
        td_wire_literal(&bytes, cases[i].literal);
        td_errinfo info = {0};
        td_err err = cases[i].decode(bytes.data, bytes.size, &info);
        msgpack_sbuffer_destroy(&bytes);
        if (err != cases[i].err || strcmp(info.text, cases[i].info) != 0)
            fail_msg("%s: %s, '%s'", cases[i].name, td_err_name(err),
                     info.text);
    }
}

// Decodes `head` with `count` members of different names.
static td_err decode_many(decode_fn *decode, const char *head,
                          const char *member, unsigned count, td_errinfo *info)
{
    char *literal = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&literal, &size);
    assert_non_null(out);
    fputs(head, out);
    for (unsigned i = 0; i < count; i++) {
        if (i) fputs(", ", out);
        fprintf(out, "'n%u': %s", i, member);
    }
    fputs("}}", out);
    fclose(out);
    msgpack_sbuffer bytes;
    msgpack_sbuffer_init(&bytes);
    td_wire_literal(&bytes, literal);
    free(literal);
    td_err err = decode(bytes.data, bytes.size, info);
    msgpack_sbuffer_destroy(&bytes);
    return err;
}

static const struct {
    const char *name;
    decode_fn *decode;
    const char *head, *member;
    unsigned max;
} limits[] = {
    {"images", obs, "{" ID ", " STATE ", 'images': {", "<1*00>",
     TD_WIRE_MAX_IMAGES},
    {"tensors", obs, "{" ID ", " STATE ", 'tensors': {",
     "{'dtype': '|u1', 'shape': [1], 'data': <1*00>}", TD_WIRE_MAX_TENSORS},
    {"metadata", obs, "{" ID ", " STATE ", 'metadata': {", "''",
     TD_WIRE_MAX_METADATA},
    {"components", grant,
     "{'client_uuid': 'r1', 'generation': 1, 'components': {",
     "{'server_id': 's1'}", TD_WIRE_MAX_COMPONENTS},
    {"counters", metrics, "{'source': 'r1', 'counters': {", "1",
     TD_WIRE_MAX_METRICS},
    {"quantiles", metrics, "{'source': 'r1', 'quantiles': {", "{'count': 0}",
     TD_WIRE_MAX_METRICS},
};

static void one_member_beyond_the_limit_is_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < TD_COUNT_OF(limits); i++) {
        td_errinfo info = {0};
        print_message("%s\n", limits[i].name);
        assert_int_equal(decode_many(limits[i].decode, limits[i].head,
                                     limits[i].member, limits[i].max, &info),
                         TD_OK);
        assert_int_equal(decode_many(limits[i].decode, limits[i].head,
                                     limits[i].member, limits[i].max + 1,
                                     &info),
                         TD_ERR_LIMIT);
        assert_non_null(strstr(info.text, limits[i].name));
        assert_non_null(strstr(info.text, "members, limit"));
    }
}

static void a_newer_message_may_hold_more_than_we_allow(void **state)
{
    (void)state;
    const unsigned many = TD_WIRE_MAX_ITEMS + 1;
    assert_int_equal(decode_many(obs, "{'x': {", "1", many, NULL),
                     TD_ERR_LIMIT);
    assert_int_equal(decode_many(obs, "{'schema': 2, 'x': {", "1", many, NULL),
                     TD_ERR_VERSION);
}

static const float zeros[256 * 1024];

static td_wire_tensor floats(uint32_t rows, uint32_t columns)
{
    return (td_wire_tensor){.rank = 2,
                            .shape = {rows, columns},
                            .data = zeros,
                            .size = sizeof(float) * rows * columns};
}

static td_wire_obs some_obs(void)
{
    return (td_wire_obs){.ident.seq = 1,
                         .client = td_wire_text_of("r1"),
                         .priority = 1,
                         .state = floats(1, 14)};
}

static void an_encoder_refuses_what_its_decoder_would(void **state)
{
    (void)state;
    static const float bad[1] = {NAN};
    td_wire_obs nothing = {0}, nan_state = some_obs(), urgent = some_obs(),
                twins = some_obs(), short_state = some_obs(),
                crowded = some_obs(), strange = some_obs();
    nan_state.state = floats(1, 1);
    nan_state.state.data = bad;
    urgent.urgency = 2;
    twins.image_count = 2;
    for (int i = 0; i < 2; i++)
        twins.images[i] = (td_wire_image){
            .name = td_wire_text_of("left"), .data = zeros, .size = 9};
    short_state.state.size -= 4;
    crowded.tensor_count = TD_WIRE_MAX_TENSORS + 1;
    memset(&strange.state.dtype, 1, sizeof strange.state.dtype);

    const struct {
        const td_wire_obs *obs;
        td_err err;
        const char *info;
    } refused[] = {
        {&nothing, TD_ERR_FORMAT, "obs: client_uuid: is empty"},
        {&nan_state, TD_ERR_FORMAT, "obs: state: a value is not finite"},
        {&urgent, TD_ERR_FORMAT, "obs: urgency: must be 0 to 1, got 2"},
        {&twins, TD_ERR_FORMAT, "obs: images: left is there twice"},
        {&short_state, TD_ERR_FORMAT,
         "obs: state: shape 1x14 of <f4 needs 56 bytes, got 52"},
        {&crowded, TD_ERR_LIMIT, "obs: tensors: 33 members, limit 32"},
        {&strange, TD_ERR_FORMAT, "obs: state: dtype: 16843009 is not known"},
    };
    for (size_t i = 0; i < TD_COUNT_OF(refused); i++) {
        td_errinfo info = {0};
        assert_int_equal(td_wire_obs_encode(encoder, refused[i].obs, &info),
                         refused[i].err);
        assert_string_equal(info.text, refused[i].info);
        assert_int_equal(td_wire_encoder_size(encoder), 0);
    }
}

static void a_message_beyond_64_mib_is_not_made(void **state)
{
    (void)state;
    td_wire_obs obs = some_obs();
    obs.image_count = 1;
    obs.images[0] = (td_wire_image){.name = td_wire_text_of("left"),
                                    .data = zeros,
                                    .size = TD_WIRE_MAX_BYTES};
    td_errinfo info = {0};
    assert_int_equal(td_wire_obs_encode(encoder, &obs, &info), TD_ERR_LIMIT);
    assert_non_null(strstr(info.text, "bytes, limit 67108864"));
}

static void a_failed_decode_leaves_the_output_untouched(void **state)
{
    (void)state;
    td_wire_reset reset_out, before;
    memset(&before, 0x5a, sizeof before);
    reset_out = before;
    static const char bad[] = "\x81\xa7"
                              "episode\x01";
    assert_int_equal(
        td_wire_reset_decode(decoder, bad, sizeof bad - 1, &reset_out, NULL),
        TD_ERR_FORMAT);
    assert_memory_equal(&reset_out, &before, sizeof before);
}

static void a_bad_second_image_leaves_the_output_untouched(void **state)
{
    (void)state;
    static td_wire_obs out, before;
    memset(&before, 0x5a, sizeof before);
    out = before;
    msgpack_sbuffer bytes;
    msgpack_sbuffer_init(&bytes);
    td_wire_literal(&bytes, OBS("'images': {'a': <9*ff>, 'b': <0*00>}"));
    assert_int_equal(
        td_wire_obs_decode(decoder, bytes.data, bytes.size, &out, NULL),
        TD_ERR_FORMAT);
    assert_memory_equal(&out, &before, sizeof before);
    msgpack_sbuffer_destroy(&bytes);
}

static void decode_obs(const char *literal, td_wire_obs *ret_obs)
{
    static char kept[4096]; // the views are into it
    msgpack_sbuffer bytes;
    msgpack_sbuffer_init(&bytes);
    td_wire_literal(&bytes, literal);
    assert_true(bytes.size <= sizeof kept);
    memcpy(kept, bytes.data, bytes.size);
    assert_int_equal(
        td_wire_obs_decode(decoder, kept, bytes.size, ret_obs, NULL), TD_OK);
    msgpack_sbuffer_destroy(&bytes);
}

static void a_member_has_nothing_of_the_message_before(void **state)
{
    (void)state;
    td_wire_obs got;
    decode_obs(OBS("'images': {'a': {'codec': 'raw', 'data': <18*ff>, 'shape': "
                   "[2, 3, 3]}, 'b': <3*ff>}, 'tensors': {'t': {'dtype': "
                   "'<f4', 'shape': [1, 1], 'age_us': 7, 'data': <4*00>}}"),
               &got);
    assert_int_equal(got.image_count, 2);
    assert_int_equal(got.images[0].shape[1], 3);
    assert_memory_equal(got.images[1].name.data, "b", 1);
    assert_true(got.tensors[0].tensor.has_age);
    decode_obs(OBS("'images': {'a': <9*ff>}, 'tensors': {'t': {'dtype': '<f4', "
                   "'shape': [1], 'data': <4*00>}}"),
               &got);
    assert_int_equal(got.image_count, 1);
    assert_int_equal(got.images[0].codec, TD_WIRE_JPEG);
    assert_int_equal(got.images[0].shape[1], 0);
    assert_int_equal(got.tensors[0].tensor.rank, 1);
    assert_int_equal(got.tensors[0].tensor.shape[1], 0);
    assert_false(got.tensors[0].tensor.has_age);
    decode_obs("{" ID ", " STATE "}", &got);
    assert_int_equal(got.image_count + got.tensor_count, 0);
}

static void missing_fields_have_their_defaults(void **state)
{
    (void)state;
    msgpack_sbuffer bytes;
    msgpack_sbuffer_init(&bytes);
    td_wire_literal(&bytes, "{" ID ", " STATE "}");
    td_wire_obs got;
    assert_int_equal(
        td_wire_obs_decode(decoder, bytes.data, bytes.size, &got, NULL), TD_OK);
    assert_int_equal(got.priority, 1);
    assert_int_equal(got.ident.boot, 0);
    assert_int_equal(got.task.size, 0);
    assert_false(got.has_steps_remaining || got.has_budget || got.has_again ||
                 got.has_rtc || got.must_go);
    assert_int_equal(got.image_count + got.tensor_count + got.metadata_count,
                     0);
    msgpack_sbuffer_destroy(&bytes);
}

static void every_large_tensor_is_a_part_of_its_own(void **state)
{
    (void)state;
    static const char names[] = "abcdefghijklmnopqrstuvwxyzABCDEF";
    td_wire_obs obs = some_obs();
    obs.state = floats(16, 16);
    obs.has_rtc = true;
    obs.rtc_prefix = floats(16, 16);
    for (uint32_t i = 0; i < TD_WIRE_MAX_TENSORS; i++)
        obs.tensors[obs.tensor_count++] =
            (td_wire_named){{names + i, 1}, floats(16, 16)};
    for (uint32_t i = 0; i < TD_WIRE_MAX_IMAGES; i++)
        obs.images[obs.image_count++] =
            (td_wire_image){.name = {names + i, 1}, .data = zeros, .size = 512};
    assert_int_equal(td_wire_obs_encode(encoder, &obs, NULL), TD_OK);
    size_t count = 0;
    (void)td_wire_encoder_parts(encoder, &count);
    assert_int_equal(count, 2 * (2 + TD_WIRE_MAX_TENSORS + TD_WIRE_MAX_IMAGES));

    size_t size = td_wire_encoder_size(encoder);
    char *joined = malloc(size);
    assert_non_null(joined);
    td_wire_encoder_join(encoder, joined);
    td_wire_obs got;
    assert_int_equal(td_wire_obs_decode(decoder, joined, size, &got, NULL),
                     TD_OK);
    assert_int_equal(got.tensor_count, TD_WIRE_MAX_TENSORS);
    assert_int_equal(got.images[15].size, 512);
    free(joined);
}

static void an_image_may_be_written_after_the_encoding(void **state)
{
    (void)state;
    char raw[3] = "no", jpeg[4] = "not";
    td_wire_obs obs = some_obs();
    obs.image_count = 2;
    obs.images[0] = (td_wire_image){.name = {"a", 1},
                                    .codec = TD_WIRE_RAW,
                                    .shape = {1, 1, 3},
                                    .data = raw,
                                    .size = sizeof raw};
    obs.images[1] =
        (td_wire_image){.name = {"b", 1}, .data = jpeg, .size = sizeof jpeg};
    assert_int_equal(td_wire_obs_encode(encoder, &obs, NULL), TD_OK);
    memcpy(raw, "RGB", sizeof raw);
    memcpy(jpeg, "JFIF", sizeof jpeg);

    char joined[1024];
    assert_true(td_wire_encoder_size(encoder) <= sizeof joined);
    td_wire_encoder_join(encoder, joined);
    td_wire_obs got;
    assert_int_equal(td_wire_obs_decode(decoder, joined,
                                        td_wire_encoder_size(encoder), &got,
                                        NULL),
                     TD_OK);
    assert_memory_equal(got.images[0].data, "RGB", sizeof raw);
    assert_memory_equal(got.images[1].data, "JFIF", sizeof jpeg);
}

static void a_cut_message_is_refused_at_every_length(void **state)
{
    (void)state;
    td_wire_obs obs = some_obs();
    obs.task = td_wire_text_of("pick");
    assert_int_equal(td_wire_obs_encode(encoder, &obs, NULL), TD_OK);
    size_t size = td_wire_encoder_size(encoder);
    char *joined = malloc(size);
    assert_non_null(joined);
    td_wire_encoder_join(encoder, joined);
    for (size_t cut = 0; cut < size; cut++) {
        td_wire_obs got;
        char *part = malloc(cut + !cut);
        assert_non_null(part);
        memcpy(part, joined, cut);
        td_err err = td_wire_obs_decode(decoder, part, cut, &got, NULL);
        free(part);
        assert_int_equal(err, TD_ERR_FORMAT);
    }
    free(joined);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_decoder_says_what_is_wrong),
        cmocka_unit_test(one_member_beyond_the_limit_is_refused),
        cmocka_unit_test(a_newer_message_may_hold_more_than_we_allow),
        cmocka_unit_test(an_encoder_refuses_what_its_decoder_would),
        cmocka_unit_test(a_message_beyond_64_mib_is_not_made),
        cmocka_unit_test(a_failed_decode_leaves_the_output_untouched),
        cmocka_unit_test(a_bad_second_image_leaves_the_output_untouched),
        cmocka_unit_test(a_member_has_nothing_of_the_message_before),
        cmocka_unit_test(missing_fields_have_their_defaults),
        cmocka_unit_test(every_large_tensor_is_a_part_of_its_own),
        cmocka_unit_test(an_image_may_be_written_after_the_encoding),
        cmocka_unit_test(a_cut_message_is_refused_at_every_length),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
