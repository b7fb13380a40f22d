// SPDX-License-Identifier: Apache-2.0
#include "config/yaml/table.h"

#include "config/yaml/value.h"

#define PATH_BYTES 128

// A bar would end the cell.
static void write_text(const char *text, FILE *out)
{
    for (; *text; text++)
        (void)fprintf(out, *text == '|' ? "\\%c" : "%c", *text);
}

static void write_preset(const td_config_field *field, FILE *out)
{
    if (!field->preset) {
        (void)fprintf(out, "required");
        return;
    }
    (void)fputc('`', out);
    write_text(field->preset, out);
    (void)fputc('`', out);
}

static void write_takes(const td_config_field *field, FILE *out)
{
    char rule[TD_CONFIG_VALUE_TEXT];
    td_config_value_rule(field, rule);
    if (field->shape != TD_CONFIG_ONE)
        (void)fprintf(out, "%zu to %zu, each ", field->least, field->most);
    write_text(rule, out);
}

static void write_field(const td_config_field *field, const char *path,
                        bool live, FILE *out)
{
    (void)fprintf(out, "| `%s` | ", path);
    if (field->kind == TD_CONFIG_REFUSED) {
        (void)fprintf(out, "not taken | | ");
    } else {
        write_takes(field, out);
        (void)fprintf(out, " | ");
        write_preset(field, out);
        (void)fprintf(out, " | ");
    }
    write_text(field->help, out);
    if (field->also) (void)fprintf(out, "; also read as `%s`", field->also);
    (void)fprintf(out, "%s |\n", live ? "; reloads" : "");
}

static void write_table(const td_config_table *table, const char *before,
                        bool live, FILE *out)
{
    static const char *const many[] = {[TD_CONFIG_ONE] = "",
                                       [TD_CONFIG_LIST] = "[]",
                                       [TD_CONFIG_MAP] = ".NAME",
                                       [TD_CONFIG_REST] = ""};
    for (size_t i = 0; i < table->field_count; i++) {
        const td_config_field *field = &table->fields[i];
        char path[PATH_BYTES], inside[PATH_BYTES + 8];
        (void)snprintf(path, sizeof path, "%s%s", before,
                       field->shape == TD_CONFIG_REST ? "NAME" : field->name);
        bool reloads = live || field->live;
        write_field(field, path, reloads, out);
        (void)snprintf(inside, sizeof inside, "%s%s.", path,
                       many[field->shape]);
        if (field->table) write_table(field->table, inside, reloads, out);
    }
}

void td_config_page_write(const td_config_table *table, FILE *out)
{
    (void)fprintf(out, "| field | takes | default | what it is for |\n"
                       "|---|---|---|---|\n");
    write_table(table, "", false, out);
}
