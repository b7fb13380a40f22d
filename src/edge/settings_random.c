// SPDX-License-Identifier: Apache-2.0
// Robot files at random, from the tables that read them.
//
// A field is left out, or has a value in its range, at an end of it or, for a
// few, a wrong one: beyond the range, of another type, misspelt, twice. The
// table of the field says what its range is, so that a new setting is covered
// when it has a row. Fields that must fit each other (limits and the safe
// place between them, rates, cameras) are chosen together first, as a plan, and
// the walk over the table takes them from there.
//
// The same seed makes the same file on every machine. What was made wrong is
// kept in the result, so that a test can ask whether a refusal names it.
#include "edge/settings_random.h"

#include "base/rand.h"
#include "config/yaml/value.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PLANNED 16
#define VALUE_BYTES 64

// What fields of one struct must be so that they fit each other. An empty value
// leaves the field out.
typedef struct plan {
    const char *name[MAX_PLANNED];
    char value[MAX_PLANNED][VALUE_BYTES];
    size_t count;
} plan;

typedef struct maker {
    td_rand rand;
    FILE *out;
    random_file *file;
    size_t wrongs_left;
    bool zero_velocity; // is the robot's fail-safe
} maker;

// Of those, 1 in n is wrong while some are still to be made.
#define WRONG_ODDS 25

static bool one_in(maker *m, uint64_t n)
{
    return td_rand_u64(&m->rand) % n == 0;
}

static uint64_t below(maker *m, uint64_t n)
{
    return td_rand_u64(&m->rand) % n;
}

static void note_wrong(maker *m, const char *name)
{
    random_file *file = m->file;
    (void)snprintf(file->wrong[file->wrong_count++], sizeof file->wrong[0],
                   "%s", name);
    m->wrongs_left--;
}

static void plan_field(plan *p, const char *name, const char *fmt, ...)
    TD_PRINTF(3, 4);

static void plan_field(plan *p, const char *name, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    p->name[p->count] = name;
    (void)vsnprintf(p->value[p->count++], VALUE_BYTES, fmt, args);
    va_end(args);
}

// Files that need not fit leave the plan now and then.
static const char *planned(maker *m, const plan *p, const char *name)
{
    if (!m->file->fits && one_in(m, 16)) return NULL;
    for (size_t i = 0; p && i < p->count; i++)
        if (strcmp(p->name[i], name) == 0) return p->value[i];
    return NULL;
}

// Inside, at an end, or close to nothing.
static double some_number(maker *m, double min, double max)
{
    double tiny = pow(10, -(double)below(m, 310));
    switch (below(m, 6)) {
    case 0:
        return min;
    case 1:
        return max;
    case 2:
        return fmin(fmax(tiny, min), max);
    default:
        return min + td_rand_unit(&m->rand) * (max - min);
    }
}

static void write_letters(maker *m, size_t count)
{
    static const char letters[] = "abcXYZ0189_-";
    for (size_t i = 0; i < count; i++)
        (void)fputc(letters[below(m, sizeof letters - 1)], m->out);
}

static void write_right(maker *m, const td_config_field *field)
{
    size_t choices = 1;
    switch (field->kind) {
    case TD_CONFIG_TEXT:
        (void)fputc('"', m->out);
        write_letters(m, (size_t)field->min + below(m, 40));
        (void)fputc('"', m->out);
        break;
    case TD_CONFIG_CHUNK:
        (void)fputc('a', m->out);
        write_letters(m, below(m, 64));
        break;
    case TD_CONFIG_ENDPOINT:
        (void)fprintf(m->out, "tcp/127.0.0.1:%llu",
                      (unsigned long long)below(m, 65536));
        break;
    case TD_CONFIG_BOOL:
        (void)fputs(one_in(m, 2) ? "true" : "false", m->out);
        break;
    case TD_CONFIG_INTEGER:
        (void)fprintf(m->out, "%.0f",
                      floor(some_number(m, field->min, field->max)));
        break;
    case TD_CONFIG_NUMBER:
        (void)fprintf(m->out, "%.17g", some_number(m, field->min, field->max));
        break;
    case TD_CONFIG_ENUM:
        while (field->choices[choices])
            choices++;
        (void)fprintf(m->out, "\"%s\"", field->choices[below(m, choices)]);
        break;
    case TD_CONFIG_STRUCT:
    case TD_CONFIG_REFUSED:
        break;
    }
}

static void write_wrong(maker *m, const td_config_field *field)
{
    static const char *const types[] = {"[1, 2]", "{a: 1}"};
    if (one_in(m, 3)) {
        (void)fputs(types[below(m, TD_COUNT_OF(types))], m->out);
        return;
    }
    switch (field->kind) {
    case TD_CONFIG_TEXT:
        write_letters(m, (size_t)field->max + 1 + below(m, 10));
        break;
    case TD_CONFIG_CHUNK:
        (void)fputs(one_in(m, 2) ? "a/b" : ".a", m->out);
        break;
    case TD_CONFIG_ENDPOINT:
        (void)fputs(one_in(m, 2) ? "localhost" : "tcp/", m->out);
        break;
    case TD_CONFIG_BOOL:
        (void)fputs(one_in(m, 2) ? "1" : "\"true\"", m->out);
        break;
    case TD_CONFIG_INTEGER:
    case TD_CONFIG_NUMBER:
        if (one_in(m, 2))
            (void)fputs(one_in(m, 2) ? ".nan" : "many", m->out);
        else
            (void)fprintf(m->out, "%.0f",
                          one_in(m, 2) ? floor(field->min) - 1
                                       : ceil(field->max) + 1);
        break;
    case TD_CONFIG_ENUM:
    case TD_CONFIG_STRUCT:
    case TD_CONFIG_REFUSED:
        (void)fputs("something", m->out);
        break;
    }
}

static void write_struct(maker *m, const td_config_table *table, int indent,
                         const plan *p);

// Limits in order with the safe place between them, or none.
static void plan_range(maker *m, plan *p, bool *ret_has_zero)
{
    double min = -100 * td_rand_unit(&m->rand) - 50 * (double)one_in(m, 2);
    double max = min + 200 * td_rand_unit(&m->rand) + 0.001;
    double safe = min + (max - min) * td_rand_unit(&m->rand);
    bool limited = !one_in(m, 3);
    if (!m->file->fits && one_in(m, 8)) safe = max = min;
    *ret_has_zero = !limited || (min <= 0 && max >= 0);
    if (!limited) {
        plan_field(p, "min", "%s", "");
        plan_field(p, "max", "%s", "");
        plan_field(p, "safe", "%.17g", safe);
        return;
    }
    plan_field(p, "min", "%.17g", min);
    plan_field(p, "max", "%.17g", max);
    plan_field(p, "safe", "%.17g", one_in(m, 4) ? max : safe);
}

static void plan_limit(maker *m, plan *p, const char *name, double max)
{
    double value = pow(10, 11 * td_rand_unit(&m->rand) - 6);
    plan_field(p, name, "%.17g", one_in(m, 3) ? 0 : fmin(value, max));
}

// `part` 0 to 3: of a quaternion; 4: something else.
static void plan_joint(maker *m, size_t part, plan *p)
{
    static const char *const kinds[] = {"linear", "angle", "hold"};
    static const char *const modes[] = {"hold", "safe_pose", "repeat",
                                        "zero_velocity"};
    bool has_zero = false;
    size_t kind = below(m, TD_COUNT_OF(kinds));
    p->count = 0;
    if (part < 4) {
        static const double units[] = {0, 0, -0.6, 0.8};
        double unit = units[part];
        plan_field(p, "kind", "quaternion");
        plan_field(p, "min", "%s", "");
        plan_field(p, "max", "%s", "");
        plan_field(p, "initial", "%g", unit);
        plan_field(p, "safe", "%g", -unit);
    } else {
        plan_field(p, "kind", "%s", kinds[kind]);
        plan_range(m, p, &has_zero);
    }
    bool may_zero = part == 4 && kind != 1 && has_zero;
    size_t mode = below(m, may_zero ? 4 : 3);
    bool as_robot = (may_zero || !m->zero_velocity) && one_in(m, 2);
    plan_field(p, "failsafe", "%s", as_robot ? "as_robot" : modes[mode]);
    plan_limit(m, p, "max_speed", 1e5);
    plan_limit(m, p, "max_acceleration", 1e7);
}

static void plan_state(maker *m, size_t part, plan *p)
{
    static const char *const kinds[] = {"linear", "angle", "hold"};
    const char *other = kinds[below(m, TD_COUNT_OF(kinds))];
    plan_field(p, "kind", "%s", part < 4 ? "quaternion" : other);
}

static void write_members(maker *m, const td_config_field *field, int indent,
                          size_t count)
{
    bool joints = strcmp(field->name, "joints") == 0;
    bool states = strcmp(field->name, "states") == 0;
    size_t part = 4;
    for (size_t i = 0; i < count; i++) {
        plan p = {.count = 0};
        if (part == 4 && count - i >= 4 && one_in(m, 4)) part = 0;
        if (joints) plan_joint(m, part, &p);
        if (states) plan_state(m, part, &p);
        if (part < 4) part++;
        (void)fprintf(m->out, "%*s%s_%zu:\n", indent, "", field->name, i);
        write_struct(m, field->table, indent + 2, &p);
    }
}

static size_t some_count(maker *m, const td_config_field *field, bool wrong)
{
    if (wrong) return field->most + 1;
    size_t most = one_in(m, 100) ? field->most : 10;
    if (most > field->most) most = field->most;
    return field->least + below(m, most - field->least + 1);
}

static void write_many(maker *m, const td_config_field *field, int indent)
{
    bool wrong = m->wrongs_left > 0 && one_in(m, WRONG_ODDS);
    size_t count = some_count(m, field, wrong);
    if (wrong) note_wrong(m, field->name);
    (void)fprintf(m->out, "%*s%s:%s\n", indent, "", field->name,
                  count ? "" : " {}");
    write_members(m, field, indent + 2, count);
}

static void write_scalar(maker *m, const td_config_field *field, int indent,
                         const char *value, bool wrong)
{
    (void)fprintf(m->out, "%*s%s: ", indent, "", field->name);
    if (wrong)
        write_wrong(m, field);
    else if (value)
        (void)fputs(value, m->out);
    else
        write_right(m, field);
    (void)fputc('\n', m->out);
}

// Only a replay has a dataset, which would have to be there.
static void plan_device(maker *m, plan *p)
{
    plan_field(p, "kind", "%s", one_in(m, 2) ? "synthetic" : "callback");
    plan_field(p, "dataset", "%s", "");
}

static void write_one(maker *m, const td_config_field *field, int indent,
                      const char *value)
{
    if (field->kind == TD_CONFIG_STRUCT) {
        plan p = {.count = 0};
        if (strcmp(field->name, "robot") == 0) plan_device(m, &p);
        (void)fprintf(m->out, "%*s%s:\n", indent, "", field->name);
        write_struct(m, field->table, indent + 2, &p);
        return;
    }
    write_scalar(m, field, indent, value, false);
}

// One of the ways to get a field wrong. A struct that is missing or of another
// type is one field wrong, whatever would have been in it.
static void write_badly(maker *m, const td_config_field *field, int indent)
{
    char name[64];
    switch (below(m, 4)) {
    case 0:
        (void)snprintf(name, sizeof name, "%sq", field->name);
        (void)fprintf(m->out, "%*s%s: 1\n", indent, "", name);
        note_wrong(m, name);
        if (!field->preset) write_one(m, field, indent, NULL);
        return;
    case 1:
        if (field->preset || field->kind == TD_CONFIG_REFUSED) break;
        note_wrong(m, field->name);
        return;
    case 2:
        if (field->kind == TD_CONFIG_STRUCT) break;
        write_scalar(m, field, indent, NULL, false);
        write_scalar(m, field, indent, NULL, false);
        note_wrong(m, field->name);
        return;
    default:
        break;
    }
    note_wrong(m, field->name);
    if (field->kind == TD_CONFIG_STRUCT)
        (void)fprintf(m->out, "%*s%s: 3\n", indent, "", field->name);
    else
        write_scalar(m, field, indent, NULL, true);
}

static void write_field(maker *m, const td_config_field *field, int indent,
                        const plan *p)
{
    const char *value = planned(m, p, field->name);
    bool may_miss =
        field->kind == TD_CONFIG_REFUSED || (field->preset && one_in(m, 2));
    if (field->shape != TD_CONFIG_ONE) {
        if (!may_miss) write_many(m, field, indent);
        return;
    }
    if (m->wrongs_left > 0 && one_in(m, WRONG_ODDS)) {
        write_badly(m, field, indent);
        return;
    }
    if (value ? value[0] : !may_miss) write_one(m, field, indent, value);
}

static void write_struct(maker *m, const td_config_table *table, int indent,
                         const plan *p)
{
    long before = ftell(m->out);
    for (size_t i = 0; i < table->field_count; i++)
        write_field(m, &table->fields[i], indent, p);
    if (ftell(m->out) == before) (void)fprintf(m->out, "%*s{}\n", indent, "");
}

// Each way to ask has its fields, and the control rate is a multiple.
static void plan_robot(maker *m, plan *p)
{
    static const char *const observes[] = {"threshold", "time", "auto"};
    size_t observe = below(m, TD_COUNT_OF(observes));
    uint64_t fps = 1 + below(m, 200);
    unsigned long long times = 1 + below(m, 1000 / fps);
    plan_field(p, "fps", "%llu", (unsigned long long)fps);
    plan_field(p, "control_hz", "%llu", (unsigned long long)fps * times);
    plan_field(p, "observe", "%s", observes[observe]);
    if (observe == 0)
        plan_field(p, "chunk_size_threshold", "%.17g", td_rand_unit(&m->rand));
    else
        plan_field(p, "chunk_size_threshold", "%s", "");
    if (observe == 1)
        plan_field(p, "buffer_time_s", "%.17g",
                   0.001 + 3 * td_rand_unit(&m->rand));
    else
        plan_field(p, "buffer_time_s", "%s", "");
    m->zero_velocity = one_in(m, 4);
    plan_field(p, "failsafe", "%s",
               m->zero_velocity ? "zero_velocity" : "safe_pose");
    plan_field(p, "dataset_repo_id", "%s", one_in(m, 2) ? "me/arm" : "");
    plan_field(p, "metrics_hz", "%.17g", 0.001 + td_rand_unit(&m->rand));
}

void random_file_make(uint64_t seed, random_file *ret_file)
{
    maker m = {.file = ret_file};
    plan p = {.count = 0};
    *ret_file = (random_file){.fits = false};
    td_rand_init(&m.rand, seed);
    m.out = open_memstream(&ret_file->text, &ret_file->size);
    if (!m.out) abort();
    ret_file->fits = one_in(&m, 2);
    if (one_in(&m, 3)) m.wrongs_left = 1 + below(&m, RANDOM_FILE_WRONGS);
    plan_robot(&m, &p);
    write_struct(&m, &td_config_robot_table, 0, &p);
    (void)fclose(m.out);
}

void random_file_free(random_file *file)
{
    free(file->text);
}

// "robot.joints.arm.min: must be ..." is about "min".
static bool is_about(const char *error, const char *field)
{
    size_t path = strcspn(error, ":"), size = strlen(field);
    const char *last = error;
    for (const char *at = error; at < error + path; at++)
        if (*at == '.') last = at + 1;
    return (size_t)(error + path - last) == size &&
           memcmp(last, field, size) == 0;
}

bool random_file_expects(const random_file *file, const char *error)
{
    static const char *const dependent[] = {
        "min",        "safe",     "max_speed",     "max_acceleration",
        "joints",     "failsafe", "observe",       "chunk_size_threshold",
        "initial",    "max",      "buffer_time_s", "control_hz",
        "metrics_hz", "states",   "dataset",       "dataset_repo_id"};
    for (size_t i = 0; i < file->wrong_count; i++)
        if (is_about(error, file->wrong[i])) return true;
    for (size_t i = 0; !file->fits && i < TD_COUNT_OF(dependent); i++)
        if (is_about(error, dependent[i])) return true;
    return false;
}
