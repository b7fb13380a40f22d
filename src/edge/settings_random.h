// SPDX-License-Identifier: Apache-2.0
#ifndef TD_EDGE_SETTINGS_RANDOM_H
#define TD_EDGE_SETTINGS_RANDOM_H

// For tests: a robot's file made at random from the table that reads it. Each
// field is left out, or has a value inside its range or at an end of it; some
// are made wrong: beyond the range, of another type, missing, twice, misspelt.

#include "base/clock.h"
#include "config/yaml/table.h"
#include "edge/settings.h"

#define RANDOM_FILE_WRONGS 2

typedef struct random_file {
    char *text;
    size_t size;
    // Fields that are fine by themselves also fit each other.
    bool fits;
    char wrong[RANDOM_FILE_WRONGS][64]; // fields that were made wrong
    size_t wrong_count;
} random_file;

// The same seed makes the same file. Free it.
void random_file_make(uint64_t seed, random_file *ret_file);
void random_file_free(random_file *file);

// Whether "field: what is wrong" may be why it was refused: the field was made
// wrong, or, if they need not fit, depends on another.
bool random_file_expects(const random_file *file, const char *error);

#endif
