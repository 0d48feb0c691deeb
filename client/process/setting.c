/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/process/setting.h"

#include <stdlib.h>
#include <string.h>

#include "client/client.h"
#include "mpi.h"

struct setting {
    const char *variable;
    char *value;
};

struct settings {
    struct setting *put; /* few; searched in a row */
    int n;
};
static struct settings setting_first;
static struct settings *setting_here = &setting_first;

static void setting_part_deinit(void)
{
    for (int i = 0; i < setting_here->n; i++)
        free(setting_here->put[i].value);
    free(setting_here->put);
}
CLIENT_PART(setting_here, setting_first, .deinit = setting_part_deinit);

static struct setting *setting_find(const char *variable)
{
    for (int i = 0; i < setting_here->n; i++)
        if (strcmp(setting_here->put[i].variable, variable) == 0)
            return &setting_here->put[i];
    return NULL;
}

const char *setting_of(const char *variable)
{
    const struct setting *setting = setting_find(variable);

    if (!setting)
        return getenv(variable);
    return *setting->value ? setting->value : NULL;
}

int setting_put(const char *variable, const char *value)
{
    struct setting *setting = setting_find(variable);
    char *copy = strdup(value);

    if (!copy)
        return MPI_ERR_NO_MEM;
    if (!setting) {
        struct setting *grown =
            realloc(setting_here->put, ((size_t)setting_here->n + 1) * sizeof *grown);
        if (!grown) {
            free(copy);
            return MPI_ERR_NO_MEM;
        }
        setting_here->put = grown;
        setting = &grown[setting_here->n++];
        *setting = (struct setting){.variable = variable};
    }
    free(setting->value);
    setting->value = copy;
    return MPI_SUCCESS;
}
