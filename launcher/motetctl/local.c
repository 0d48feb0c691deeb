/* SPDX-License-Identifier: BSD-3-Clause */
#include "launcher/motetctl/local.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launcher/cli/node_daemon.h"
#include "launcher/motetctl/variables.h"

/* MPI_THREAD_MULTIPLE is the highest level, and the library grants whatever is asked for. */
#define THREAD_LEVEL "multiple"

/* Asks the library itself: its functions for versions may be called before MPI_Init. */
static void add_library(json_t *row)
{
    char path[PATH_MAX], text[8192] = "";
    int version = 0, subversion = 0, length, major, minor;
    if (node_daemon_beside(MOTET_LIBDIR_RELATIVE "/libmpi_abi.so.1", "../client/libmpi_abi.so.1",
                           path, sizeof path) < 0)
        snprintf(path, sizeof path, "%s/libmpi_abi.so.1", MOTET_LIBDIR);
    json_object_set_new(row, "library", json_string(path));
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        json_object_set_new(row, "library_says", json_string(dlerror()));
        return;
    }
    int (*get_text)(char *, int *), (*get_version)(int *, int *), (*get_abi)(int *, int *);
    *(void **)&get_text = dlsym(library, "MPI_Get_library_version");
    *(void **)&get_version = dlsym(library, "MPI_Get_version");
    *(void **)&get_abi = dlsym(library, "MPI_Abi_get_version");
    if (!get_text || !get_version || !get_abi || get_text(text, &length) ||
        get_version(&version, &subversion) || get_abi(&major, &minor)) {
        json_object_set_new(row, "library_says", json_string("no library of the standard ABI"));
    } else {
        json_object_set_new(row, "library_says", json_string(text));
        json_object_set_new(row, "mpi", json_sprintf("%d.%d", version, subversion));
        json_object_set_new(row, "abi", json_sprintf("%d.%d", major, minor));
        json_object_set_new(row, "thread_level", json_string(THREAD_LEVEL));
    }
    dlclose(library);
}

/* Of the networks, as the daemon finds them. */
static void add_providers(json_t *row)
{
    char path[PATH_MAX], command[PATH_MAX + 32], line[128];
    json_t *names = json_array();
    json_object_set_new(row, "providers", names);
    if (node_daemon_program(path, sizeof path) < 0 || strchr(path, '\''))
        return;
    json_object_set_new(row, "daemon", json_string(path));
    snprintf(command, sizeof command, "'%s' --providers 2>/dev/null", path);
    FILE *output = popen(command, "re");
    while (output && fgets(line, sizeof line, output)) {
        line[strcspn(line, "\n")] = '\0';
        json_array_append_new(names, json_string(line));
    }
    if (output)
        pclose(output);
}

static json_t *variable_rows(void)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < n_variables; i++) {
        const struct variable *v = &variables[i];
        const char *value = getenv(v->name);
        json_array_append_new(rows, json_pack("{s:s, s:s?, s:s, s:s, s:s}", "variable", v->name,
                                              "value", value, "default", v->otherwise, "read_by",
                                              v->reader, "meaning", v->meaning));
    }
    return rows;
}

json_t *local_tables(void)
{
    json_t *row = json_pack("{s:s}", "version", MOTET_VERSION);
    add_library(row);
    add_providers(row);
    return json_pack("[{s:s, s:[o]}, {s:s, s:o}]", "subject", "installation", "rows", row,
                     "subject", "variables", "rows", variable_rows());
}
