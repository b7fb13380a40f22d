// SPDX-License-Identifier: Apache-2.0
// Libraries that are loaded when something first needs them.
//
// Where one is looked for, in this order: the file that an environment variable
// names, and then nowhere else; the folder of the program or library that this
// code is linked into (a build, a wheel); the folder where `cmake --install`
// puts libraries, as seen from there; where the system's loader looks. The
// errors of the first two say which file it was, the last one all the places.
//
// td_library_load() goes on from there: it looks up the one function that such
// a library exports and asks it for its table. The library refuses a version
// or a size of the table that is not its own, so that a program never calls
// into a library of another release.
//
// Lock: `loading` is one for all libraries. It guards each `table` until that
// is set; threads that come at once wait for one load. After a success the
// table never changes, and is read without a lock. A failure leaves it NULL,
// and the next call tries again.
//
// Nothing is ever unloaded: functions of a table may be in use until the
// process ends.
#include "base/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// As seen from our own folder: in a build or a wheel, and installed.
static const char *const places[] = {"", "/../" TD_LIBRARY_FOLDER};

// Of the program or library that this code is in; empty when it cannot be said.
static void find_own_folder(char ret_folder[PATH_MAX])
{
    static const char here = 0;
    Dl_info about;
    void *object = NULL;
    const char *path = "";
    if (dladdr1(&here, &about, &object, RTLD_DL_LINKMAP))
        path = ((const struct link_map *)object)->l_name;
    if (!path[0]) path = "/proc/self/exe"; // a program has no name there
    if (!realpath(path, ret_folder)) ret_folder[0] = '\0';
    char *slash = strrchr(ret_folder, '/');
    ret_folder[slash ? slash - ret_folder : 0] = '\0';
}

static td_err load(const char *path, void **ret_library, td_errinfo *info)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) return td_fail(info, TD_ERR_IO, "%s", dlerror());
    *ret_library = library;
    return TD_OK;
}

static td_err load_named(const char *path, const char *variable,
                         void **ret_library, td_errinfo *info)
{
    if (access(path, R_OK) != 0)
        return td_fail(info, TD_ERR_NOTFOUND, "%s names %s: %s", variable, path,
                       strerror(errno));
    return load(path, ret_library, info);
}

static td_err load_from_system(const char *name, const char *folder,
                               void **ret_library, td_errinfo *info)
{
    td_errinfo why = {""};
    td_err err = load(name, ret_library, &why);
    if (err == TD_OK) return TD_OK;
    // Its own name comes first, unless what is missing is one that it needs.
    if (strncmp(why.text, name, strlen(name)) != 0)
        return td_fail(info, err, "%s", why.text);
    return td_fail(info, TD_ERR_NOTFOUND,
                   "it is not in %s%s, not in %s%s and not where the system "
                   "looks",
                   folder, places[0], folder, places[1]);
}

td_err td_library_open(const char *name, const char *variable,
                       void **ret_library, td_errinfo *info)
{
    char folder[PATH_MAX], path[PATH_MAX + 128];
    const char *named = getenv(variable);
    if (named && named[0])
        return load_named(named, variable, ret_library, info);
    find_own_folder(folder);
    for (size_t i = 0; folder[0] && i < TD_COUNT_OF(places); i++) {
        (void)snprintf(path, sizeof path, "%s%s/%s", folder, places[i], name);
        if (access(path, R_OK) == 0) return load(path, ret_library, info);
    }
    return load_from_system(name, folder, ret_library, info);
}

static td_err open_wanted(const td_library *library, void **ret_handle,
                          td_errinfo *info)
{
    td_errinfo why = {""};
    td_err err =
        td_library_open(library->name, library->variable, ret_handle, &why);
    if (err == TD_OK) return TD_OK;
    if (err != TD_ERR_NOTFOUND)
        return td_fail(info, TD_ERR_UNSUPPORTED, "%s without %s: %s; %s",
                       library->lack, library->name, library->broken, why.text);
    return td_fail(info, TD_ERR_UNSUPPORTED,
                   "%s without %s: %s, or name it in %s; %s", library->lack,
                   library->name, library->missing, library->variable,
                   why.text);
}

static td_err load_table(td_library *library, td_errinfo *info)
{
    void *handle = NULL;
    TD_TRY(open_wanted(library, &handle, info));
    td_library_entry *entry = (__typeof__(entry))dlsym(handle, library->entry);
    if (entry) library->table = entry(library->version, library->table_bytes);
    if (library->table) return TD_OK;
    return td_fail(info, TD_ERR_VERSION,
                   "%s without %s: the one that is here is of another release "
                   "than this program; install both from one",
                   library->lack, library->name);
}

td_err td_library_load(td_library *library, td_errinfo *info)
{
    static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER; // every table
    (void)pthread_mutex_lock(&loading);
    td_err err = library->table ? TD_OK : load_table(library, info);
    (void)pthread_mutex_unlock(&loading);
    return err;
}
