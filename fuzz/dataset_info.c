// SPDX-License-Identifier: Apache-2.0
#include "dataset/meta/info.h"
#include "dataset/meta/path.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_features(const td_dataset_info *dataset)
{
    for (size_t i = 0; i < dataset->feature_count; i++) {
        const td_dataset_feature *feature = &dataset->features[i];
        char path[TD_DATASET_MAX_PATH];
        if (td_dataset_feature_size(feature) > TD_DATASET_MAX_SIZE) abort();
        if (td_dataset_info_find(dataset, feature->key) != feature) abort();
        if (feature->dtype == TD_DATASET_DTYPE_VIDEO &&
            (td_dataset_path_fill(dataset->video_path, feature->key, 1, 2, path,
                                  NULL) != TD_OK ||
             !td_dataset_path_is_inside(path)))
            abort();
    }
}

// What is read is within the limits, and is read again as it is written.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    TD_AUTO(td_dataset_info) *dataset = NULL;
    TD_AUTO(td_dataset_info) *again = NULL;
    td_errinfo info = {""};
    if (td_dataset_info_parse((td_slice){data, size}, &dataset, &info)) {
        if (info.text[0] == '\0') abort();
        return 0;
    }
    if (dataset->fps == 0 || dataset->chunks_size == 0) abort();
    check_features(dataset);
    char *text = NULL, *note = NULL;
    if (td_dataset_info_text(dataset, &text) ||
        td_dataset_info_note(dataset, &note))
        abort();
    if (td_dataset_info_parse((td_slice){text, strlen(text)}, &again, &info) ||
        again->feature_count != dataset->feature_count)
        abort();
    free(text);
    free(note);
    return 0;
}
