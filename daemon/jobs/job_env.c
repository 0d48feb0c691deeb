/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/jobs/job_env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct env_list {
    char **items;
    size_t n, size;
    bool failed;
};

/* Takes the string over; an earlier one of the same name is replaced. */
static void env_put(struct env_list *env, char *item)
{
    size_t name_len = item ? strcspn(item, "=") : 0;

    if (!item || env->failed) {
        env->failed = true;
        free(item);
        return;
    }
    if (item[name_len] != '=' || name_len == 0) {
        free(item);
        return;
    }
    for (size_t i = 0; i < env->n; i++) {
        if (strncmp(env->items[i], item, name_len + 1) == 0) {
            free(env->items[i]);
            env->items[i] = item;
            return;
        }
    }
    if (env->n + 1 >= env->size) {
        size_t size = env->size ? env->size * 2 : 64;
        char **grown = realloc(env->items, size * sizeof *grown);
        if (!grown) {
            env->failed = true;
            free(item);
            return;
        }
        env->items = grown;
        env->size = size;
    }
    env->items[env->n++] = item;
    env->items[env->n] = NULL;
}

static void env_remove(struct env_list *env, const char *name)
{
    size_t len = strlen(name);

    for (size_t i = 0; i < env->n; i++) {
        if (strncmp(env->items[i], name, len) != 0 || env->items[i][len] != '=')
            continue;
        free(env->items[i]);
        env->items[i] = env->items[--env->n];
        env->items[env->n] = NULL;
        return;
    }
}

static void env_number(struct env_list *env, const char *name, uint64_t value)
{
    char *item;

    if (asprintf(&item, "%s=%llu", name, (unsigned long long)value) < 0)
        item = NULL;
    env_put(env, item);
}

static void env_text(struct env_list *env, const char *name, const char *value)
{
    char *item;

    if (asprintf(&item, "%s=%s", name, value) < 0)
        item = NULL;
    env_put(env, item);
}

char **job_env_new(const struct job *job, uint32_t local, const struct config *config,
                   size_t *ret_n)
{
    struct env_list env = {0};
    const struct job_rank *rank = &job->ranks[local];
    const Motet__App *app = job->launch->apps[rank->app];
    char text[64];

    for (size_t i = 0; i < job->launch->n_env; i++)
        env_put(&env, strdup(job->launch->env[i]));
    for (size_t i = 0; i < app->n_env; i++)
        env_put(&env, strdup(app->env[i]));
    env_text(&env, "MOTET_SOCKET", config->client_socket);
    snprintf(text, sizeof text, "%016llx", (unsigned long long)job->id);
    env_text(&env, "MOTET_JOB", text);
    for (size_t i = 0; i < sizeof job->key; i++)
        snprintf(text + 2 * i, 3, "%02x", job->key[i]);
    env_text(&env, "MOTET_KEY", text);
    env_text(&env, "MOTET_NODE", config->name);
    /* The same four numbers under the names that scripts know from Hydra, Open MPI and Intel
     * MPI. */
    static const char *const names[4][4] = {
        {"MOTET_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK"},
        {"MOTET_SIZE", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", NULL},
        {"MOTET_LOCAL_RANK", "MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "PMI_LOCAL_RANK"},
        {"MOTET_LOCAL_SIZE", "MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE", "PMI_LOCAL_SIZE"},
    };
    const uint64_t values[4] = {rank->world, job->layout.shape.n_world, local, job->n_local};
    for (int v = 0; v < 4; v++)
        for (int n = 0; n < 4 && names[v][n]; n++)
            env_number(&env, names[v][n], values[v]);
    env_number(&env, "MOTET_APP", rank->app);
    /* Of nobody's parent a program must hear, also when mpiexec itself ran in a spawned job. */
    env_remove(&env, "MOTET_PARENT");
    if (job->launch->has_parent_connection) {
        snprintf(text, sizeof text, "%016llx:%u",
                 (unsigned long long)job->launch->parent_connection, job->launch->parent_rank);
        env_text(&env, "MOTET_PARENT", text);
    }
    if (env.failed) {
        job_env_free(env.items);
        return NULL;
    }
    *ret_n = env.n;
    return env.items;
}

void job_env_free(char **env)
{
    for (size_t i = 0; env && env[i]; i++)
        free(env[i]);
    free(env);
}
