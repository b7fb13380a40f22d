// SPDX-License-Identifier: Apache-2.0
#include "base/http/query.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// What parses holds names that are there once, and texts of printable bytes.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"window", "model", "client", NULL};
    td_query query;
    td_errinfo info;
    if (td_query_parse((const char *)data, size, &query, &info)) {
        if (info.text[0] == '\0') abort();
        return 0;
    }
    for (size_t i = 0; i < query.count; i++) {
        const td_query_field *field = &query.fields[i];
        if (td_query_text(&query, field->name) != field->text) abort();
        for (const char *at = field->text; *at; at++)
            if ((unsigned char)*at < ' ') abort();
    }
    int64_t number = 60;
    (void)!td_query_only(&query, names, &info);
    (void)!td_query_number(&query, "window", 1, 600, &number, &info);
    if (number < 1 || number > 600) abort();
    return 0;
}
