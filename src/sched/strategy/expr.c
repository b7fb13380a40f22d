// SPDX-License-Identifier: Apache-2.0
// A user's score as an expression: parsed once, evaluated at every decision.
//
// Recursive descent into postfix, with a table of operators and a fixed array
// for the result. The grammar is comparison, sum, product, unary minus,
// parentheses, min() and max() of any number of values, numbers, and the fields
// that the caller names. Depth and length are limited, so that no text can make
// the parser recurse or the program grow beyond them.
//
// The parser follows the height of the stack that evaluation will need, and
// refuses what would exceed it; evaluation therefore checks nothing. A value
// that is not finite becomes 0 where it arises (a division by zero, an
// overflow), so that one strange field cannot poison the order of all requests.
//
// An error names the place in the text and what was expected there. Pure; a
// parsed expression has no pointers and is copied by assignment.
#include "sched/strategy/expr.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NUMBER 32 // characters

enum {
    OP_NUMBER,
    OP_FIELD,
    OP_NEGATE,
    OP_ADD,
    OP_SUBTRACT,
    OP_MULTIPLY,
    OP_DIVIDE,
    OP_LESS,
    OP_AT_MOST,
    OP_GREATER,
    OP_AT_LEAST,
    OP_EQUAL,
    OP_UNEQUAL,
    OP_MIN,
    OP_MAX,
};

typedef struct parser {
    const char *text;
    size_t size;
    size_t at;
    uint32_t depth;
    uint32_t height; // of the stack, after what was emitted
    td_sched_expr_fields fields;
    td_sched_expr *out;
    td_errinfo *info;
} parser;

static td_err parse_comparison(parser *p);
static td_err parse_value(parser *p);

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static char peek(const parser *p)
{
    if (p->at == p->size) return '\0';
    return p->text[p->at];
}

static void skip_blanks(parser *p)
{
    while (p->at < p->size && strchr(" \t\r\n", p->text[p->at]) &&
           p->text[p->at])
        p->at++;
}

static bool take(parser *p, const char *token)
{
    skip_blanks(p);
    size_t size = strlen(token);
    if (p->size - p->at < size || memcmp(p->text + p->at, token, size) != 0)
        return false;
    p->at += size;
    return true;
}

// What stands at the parser's place, for an error.
static td_err refuse(parser *p, const char *wanted)
{
    skip_blanks(p);
    int column = (int)p->at + 1;
    if (p->at == p->size)
        return td_fail(p->info, TD_ERR_FORMAT,
                       "column %d: ends here, where %s should be", column,
                       wanted);
    char c = p->text[p->at];
    if (c < ' ' || c > '~')
        return td_fail(p->info, TD_ERR_FORMAT,
                       "column %d: byte 0x%02x, where %s should be", column,
                       (unsigned char)c, wanted);
    return td_fail(p->info, TD_ERR_FORMAT,
                   "column %d: '%c', where %s should be", column, c, wanted);
}

static td_err emit(parser *p, td_sched_expr_op op, int change)
{
    if (p->out->count == TD_SCHED_EXPR_MAX_OPS)
        return td_fail(p->info, TD_ERR_LIMIT,
                       "column %d: more than %d operations", (int)p->at + 1,
                       TD_SCHED_EXPR_MAX_OPS);
    p->height = (uint32_t)((int)p->height + change);
    if (p->height > TD_SCHED_EXPR_MAX_STACK)
        return td_fail(p->info, TD_ERR_LIMIT,
                       "column %d: more than %d values at a time",
                       (int)p->at + 1, TD_SCHED_EXPR_MAX_STACK);
    p->out->ops[p->out->count++] = op;
    return TD_OK;
}

static td_err emit_binary(parser *p, uint8_t what)
{
    return emit(p, (td_sched_expr_op){.what = what}, -1);
}

static void skip_digits(parser *p)
{
    while (is_digit(peek(p)))
        p->at++;
}

static td_err parse_number(parser *p)
{
    size_t from = p->at;
    skip_digits(p);
    if (peek(p) == '.') p->at++;
    skip_digits(p);
    if (peek(p) == 'e' || peek(p) == 'E') {
        p->at++;
        if (peek(p) == '+' || peek(p) == '-') p->at++;
        if (!is_digit(peek(p))) return refuse(p, "a digit of the exponent");
        skip_digits(p);
    }
    char digits[MAX_NUMBER + 1] = {0};
    if (p->at - from > MAX_NUMBER)
        return td_fail(p->info, TD_ERR_LIMIT,
                       "column %d: a number of more than %d characters",
                       (int)from + 1, MAX_NUMBER);
    memcpy(digits, p->text + from, p->at - from);
    char *end;
    double number = strtod(digits, &end);
    if (end == digits || *end != '\0' || !isfinite(number)) {
        p->at = from;
        return refuse(p, "a decimal number");
    }
    return emit(p, (td_sched_expr_op){.what = OP_NUMBER, .number = number}, 1);
}

static td_err close_paren(parser *p)
{
    return take(p, ")") ? TD_OK : refuse(p, "an operator or ')'");
}

// min and max fold what follows into what stands before it.
static td_err parse_fold(parser *p, uint8_t what)
{
    TD_TRY(parse_comparison(p));
    if (!take(p, ",")) return refuse(p, "an operator or ','");
    do {
        TD_TRY(parse_comparison(p));
        TD_TRY(emit_binary(p, what));
    } while (take(p, ","));
    return close_paren(p);
}

// max(low) then min(high), so that of crossed bounds the upper one holds.
static td_err parse_clamp(parser *p)
{
    static const uint8_t folds[] = {OP_MAX, OP_MIN};
    TD_TRY(parse_comparison(p));
    for (size_t i = 0; i < TD_COUNT_OF(folds); i++) {
        if (!take(p, ",")) return refuse(p, "an operator or ','");
        TD_TRY(parse_comparison(p));
        TD_TRY(emit_binary(p, folds[i]));
    }
    return close_paren(p);
}

static bool same(const char *name, const char *text, size_t size)
{
    return strlen(name) == size && memcmp(name, text, size) == 0;
}

static td_err unknown_name(parser *p, size_t from, size_t size)
{
    char known[300] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < p->fields.count; i++) {
        size_t length = strlen(p->fields.names[i]);
        if (used + length + 3 > sizeof known) break;
        if (i > 0) used = (size_t)(stpcpy(known + used, ", ") - known);
        used = (size_t)(stpcpy(known + used, p->fields.names[i]) - known);
    }
    return td_fail(p->info, TD_ERR_FORMAT,
                   "column %d: no field \"%.*s\": there is %s", (int)from + 1,
                   size > 40 ? 40 : (int)size, p->text + from, known);
}

static td_err parse_name(parser *p)
{
    size_t from = p->at;
    while (is_letter(peek(p)) || is_digit(peek(p)))
        p->at++;
    const char *name = p->text + from;
    size_t size = p->at - from;
    if (take(p, "(")) {
        if (same("min", name, size)) return parse_fold(p, OP_MIN);
        if (same("max", name, size)) return parse_fold(p, OP_MAX);
        if (same("clamp", name, size)) return parse_clamp(p);
        p->at = from;
        return refuse(p, "min(, max( or clamp(");
    }
    for (uint32_t i = 0; i < p->fields.count; i++)
        if (same(p->fields.names[i], name, size))
            return emit(
                p, (td_sched_expr_op){.what = OP_FIELD, .field = (uint16_t)i},
                1);
    return unknown_name(p, from, size);
}

static td_err parse_bare_value(parser *p)
{
    if (take(p, "-")) {
        TD_TRY(parse_value(p));
        return emit(p, (td_sched_expr_op){.what = OP_NEGATE}, 0);
    }
    if (take(p, "(")) {
        TD_TRY(parse_comparison(p));
        return close_paren(p);
    }
    skip_blanks(p);
    char c = peek(p);
    if (is_digit(c) || c == '.') return parse_number(p);
    if (is_letter(c)) return parse_name(p);
    return refuse(p, "a number, a field or '('");
}

static td_err parse_value(parser *p)
{
    if (++p->depth > TD_SCHED_EXPR_MAX_DEPTH)
        return td_fail(p->info, TD_ERR_LIMIT,
                       "column %d: nested more than %d deep", (int)p->at + 1,
                       TD_SCHED_EXPR_MAX_DEPTH);
    TD_TRY(parse_bare_value(p));
    p->depth--;
    return TD_OK;
}

static td_err parse_product(parser *p)
{
    TD_TRY(parse_value(p));
    for (;;) {
        uint8_t what = take(p, "*") ? OP_MULTIPLY : OP_DIVIDE;
        if (what == OP_DIVIDE && !take(p, "/")) return TD_OK;
        TD_TRY(parse_value(p));
        TD_TRY(emit_binary(p, what));
    }
}

static td_err parse_sum(parser *p)
{
    TD_TRY(parse_product(p));
    for (;;) {
        uint8_t what = take(p, "+") ? OP_ADD : OP_SUBTRACT;
        if (what == OP_SUBTRACT && !take(p, "-")) return TD_OK;
        TD_TRY(parse_product(p));
        TD_TRY(emit_binary(p, what));
    }
}

static td_err parse_comparison(parser *p)
{
    static const struct {
        const char *token; // a longer one before its own beginning
        uint8_t what;
    } comparisons[] = {
        {"<=", OP_AT_MOST}, {">=", OP_AT_LEAST}, {"==", OP_EQUAL},
        {"!=", OP_UNEQUAL}, {"<", OP_LESS},      {">", OP_GREATER},
    };
    TD_TRY(parse_sum(p));
    for (size_t i = 0; i < TD_COUNT_OF(comparisons); i++) {
        if (!take(p, comparisons[i].token)) continue;
        TD_TRY(parse_sum(p));
        return emit_binary(p, comparisons[i].what);
    }
    return TD_OK;
}

td_err td_sched_expr_compile(const char *text, size_t size,
                             td_sched_expr_fields fields,
                             td_sched_expr *ret_expr, td_errinfo *info)
{
    if (size > TD_SCHED_EXPR_MAX_TEXT)
        return td_fail(info, TD_ERR_LIMIT,
                       "%zu characters, an expression has at most %d", size,
                       TD_SCHED_EXPR_MAX_TEXT);
    td_sched_expr expr;
    expr.count = 0;
    parser p = {.text = text,
                .size = size,
                .fields = fields,
                .out = &expr,
                .info = info};
    TD_TRY(parse_comparison(&p));
    skip_blanks(&p);
    if (p.at < p.size) return refuse(&p, "an operator or the end");
    assert(p.height == 1);
    *ret_expr = expr;
    return TD_OK;
}

static double bounded(double value)
{
    if (value > DBL_MAX) return DBL_MAX;
    if (value < -DBL_MAX) return -DBL_MAX;
    return value;
}

static double apply(uint8_t what, double a, double b)
{
    switch (what) {
    case OP_ADD:
        return bounded(a + b);
    case OP_SUBTRACT:
        return bounded(a - b);
    case OP_MULTIPLY:
        return bounded(a * b);
    case OP_DIVIDE:
        return b == 0 ? 0 : bounded(a / b);
    case OP_LESS:
        return a < b;
    case OP_AT_MOST:
        return a <= b;
    case OP_GREATER:
        return a > b;
    case OP_AT_LEAST:
        return a >= b;
    case OP_EQUAL:
        return a == b;
    case OP_UNEQUAL:
        return a != b;
    case OP_MIN:
        return a < b ? a : b;
    default:
        return a > b ? a : b;
    }
}

double td_sched_expr_eval(const td_sched_expr *expr, const double *values)
{
    double stack[TD_SCHED_EXPR_MAX_STACK] = {0};
    uint32_t height = 0;
    for (uint32_t i = 0; i < expr->count; i++) {
        const td_sched_expr_op *op = &expr->ops[i];
        if (op->what == OP_NUMBER) {
            stack[height++] = op->number;
        } else if (op->what == OP_FIELD) {
            double value = values[op->field];
            stack[height++] = isfinite(value) ? value : 0;
        } else if (op->what == OP_NEGATE) {
            stack[height - 1] = -stack[height - 1];
        } else {
            height--;
            stack[height - 1] =
                apply(op->what, stack[height - 1], stack[height]);
        }
    }
    return stack[0];
}
