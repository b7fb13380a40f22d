// SPDX-License-Identifier: Apache-2.0
#include "wire/msgpack/literal.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct parser {
    const char *at;
    msgpack_packer out;
} parser;

static char peek(parser *in)
{
    while (isspace((unsigned char)*in->at))
        in->at++;
    return *in->at;
}

static bool take(parser *in, char c)
{
    if (peek(in) != c) return false;
    in->at++;
    return true;
}

static void expect(parser *in, char c)
{
    if (!take(in, c)) fail_msg("expected '%c' at '%.30s'", c, in->at);
}

static void value(parser *in);

static void text(parser *in)
{
    expect(in, '\'');
    const char *end = strchr(in->at, '\'');
    if (!end) fail_msg("no end of '%.30s'", in->at);
    msgpack_pack_str_with_body(&in->out, in->at, (size_t)(end - in->at));
    in->at = end + 1;
}

static void binary(parser *in)
{
    expect(in, '<');
    char *next = NULL;
    size_t size = strtoul(in->at, &next, 10);
    in->at = next;
    expect(in, '*');
    unsigned char byte = (unsigned char)strtoul(in->at, &next, 16);
    in->at = next;
    expect(in, '>');
    unsigned char *body = test_malloc(size + 1);
    memset(body, byte, size);
    msgpack_pack_bin_with_body(&in->out, body, size);
    test_free(body);
}

static void extension(parser *in)
{
    char *next = NULL;
    size_t size = strtoul(in->at, &next, 10);
    in->at = next;
    unsigned char *body = test_calloc(size + 1, 1);
    msgpack_pack_ext_with_body(&in->out, body, size, 1);
    test_free(body);
}

static void number(parser *in)
{
    char *end = NULL;
    size_t length = strspn(in->at, "+-.0123456789einfa");
    if (memchr(in->at, '.', length) || strchr("in", *in->at))
        msgpack_pack_double(&in->out, strtod(in->at, &end));
    else if (*in->at == '-')
        msgpack_pack_int64(&in->out, strtoll(in->at, &end, 10));
    else
        msgpack_pack_uint64(&in->out, strtoull(in->at, &end, 10));
    if (end == in->at) fail_msg("not a value: '%.30s'", in->at);
    in->at = end;
}

static bool word(parser *in, const char *word)
{
    if (strncmp(in->at, word, strlen(word)) != 0) return false;
    in->at += strlen(word);
    return true;
}

// Members up to `close`, packed aside: their count comes before them.
static void members(parser *in, char close, bool keys)
{
    msgpack_sbuffer body;
    msgpack_sbuffer_init(&body);
    parser inner = {in->at, {0}};
    msgpack_packer_init(&inner.out, &body, msgpack_sbuffer_write);
    size_t count = 0;
    for (; !take(&inner, close); count++) {
        if (count) expect(&inner, ',');
        value(&inner);
        if (keys) expect(&inner, ':');
        if (keys) value(&inner);
    }
    if (keys)
        msgpack_pack_map(&in->out, count);
    else
        msgpack_pack_array(&in->out, count);
    in->out.callback(in->out.data, body.data, body.size);
    in->at = inner.at;
    msgpack_sbuffer_destroy(&body);
}

static void value(parser *in)
{
    char c = peek(in);
    if (c == '\'') {
        text(in);
    } else if (c == '<') {
        binary(in);
    } else if (take(in, '@')) {
        extension(in);
    } else if (take(in, '{')) {
        members(in, '}', true);
    } else if (take(in, '[')) {
        members(in, ']', false);
    } else if (word(in, "true")) {
        msgpack_pack_true(&in->out);
    } else if (word(in, "false")) {
        msgpack_pack_false(&in->out);
    } else if (word(in, "null")) {
        msgpack_pack_nil(&in->out);
    } else {
        number(in);
    }
}

void td_wire_literal(msgpack_sbuffer *into, const char *text)
{
    parser in = {text, {0}};
    msgpack_packer_init(&in.out, into, msgpack_sbuffer_write);
    value(&in);
    if (peek(&in)) fail_msg("after the value: '%.30s'", in.at);
}
