/* SPDX-License-Identifier: BSD-3-Clause */
#include "launcher/mpiexec/submit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "launcher/mpiexec/command/soft.h"
#include "proto/control.pb-c.h"
#include "proto/frame.h"

/* What tells a rank who it is. A rank that starts mpiexec must not pass its own identity on. */
static const char *const identity[] = {
    "MOTET_SOCKET=", "MOTET_JOB=",        "MOTET_RANK=",       "MOTET_SIZE=",     "MOTET_KEY=",
    "MOTET_NODE=",   "MOTET_LOCAL_RANK=", "MOTET_LOCAL_SIZE=", "MOTET_APP=",      "PMI_",
    "PMIX_",         "OMPI_COMM_WORLD_",  "MPI_LOCALRANKID=",  "MPI_LOCALNRANKS="};

static bool submit_is_identity(const char *pair)
{
    for (size_t i = 0; i < sizeof identity / sizeof *identity; i++) {
        if (strncmp(pair, identity[i], strlen(identity[i])) == 0)
            return true;
    }
    return false;
}

static const char *find_variable(char *const *environment, const char *name)
{
    size_t n = strlen(name);

    for (; *environment; environment++) {
        if (strncmp(*environment, name, n) == 0 && (*environment)[n] == '=')
            return *environment;
    }
    return NULL;
}

/* Whether "NAME=value" is of one of these names. */
static bool submit_is_named(const char *pair, const struct words *names)
{
    size_t n = strcspn(pair, "=");

    for (size_t i = 0; i < names->n; i++) {
        if (strlen(names->at[i]) == n && strncmp(pair, names->at[i], n) == 0)
            return true;
    }
    return false;
}

static void add_all(struct words *to, const struct words *from)
{
    for (size_t i = 0; i < from->n; i++)
        words_add(to, from->at[i]);
}

/* What of the environment passes by this mode. */
static void add_inherited(struct words *to, enum env_mode mode, const struct words *list,
                          char *const *environment)
{
    if (mode == ENV_LIST) {
        for (size_t i = 0; i < list->n; i++) {
            const char *pair = find_variable(environment, list->at[i]);
            if (pair)
                words_add(to, pair);
        }
    } else if (mode == ENV_ALL || mode == ENV_EXCEPT) {
        for (; *environment; environment++) {
            if (!submit_is_identity(*environment) &&
                !(mode == ENV_EXCEPT && submit_is_named(*environment, list)))
                words_add(to, *environment);
        }
    }
}

static void add_exported(struct words *to, const struct words *names, char *const *environment,
                         FILE *warnings)
{
    for (size_t i = 0; i < names->n; i++) {
        const char *pair = find_variable(environment, names->at[i]);
        if (pair)
            words_add(to, pair);
        else
            fprintf(warnings, "mpiexec: -x %s: there is no such variable here, ignoring\n",
                    names->at[i]);
    }
}

/* Later entries win at the spawner, so the order is: inherited, job's, program's. */
static void build_env(const struct options *o, char *const *environment, FILE *warnings,
                      struct words *ret_base, struct words *part_env)
{
    bool own_mode = false;

    for (size_t i = 0; i < o->n_parts; i++)
        own_mode |= o->parts[i].env.mode != ENV_AS_JOB;
    if (!own_mode) {
        add_inherited(ret_base, o->env.mode, &o->env.list, environment);
        add_all(ret_base, &o->env.set);
    }
    for (size_t i = 0; i < o->n_parts; i++) {
        const struct env_options *env = &o->parts[i].env;
        if (own_mode) {
            const struct env_options *inherit = env->mode == ENV_AS_JOB ? &o->env : env;
            add_inherited(&part_env[i], inherit->mode, &inherit->list, environment);
            add_all(&part_env[i], &o->env.set);
        }
        add_exported(&part_env[i], &env->export, environment, warnings);
        add_all(&part_env[i], &env->set);
    }
}

/* Ranks of a part when -n is not given: all slots of its hosts, else those of one host. */
static uint64_t default_ranks(const struct options *o, const struct part *part)
{
    if (part->hosts.n > 0)
        return hosts_n_slots(&part->hosts, o->mapping.ppn);
    if (o->hosts.n > 0 && o->n_parts == 1)
        return hosts_n_slots(&o->hosts, o->mapping.ppn);
    return o->mapping.ppn ? o->mapping.ppn : 1;
}

static int submit_place_part(struct options *o, struct part *part, struct words *ret_runs,
                             uint64_t *n_ranks, struct options_error *error)
{
    struct host_list *hosts = part->hosts.n ? &part->hosts : &o->hosts;
    uint64_t n = part->n_ranks ? part->n_ranks : default_ranks(o, part);
    struct host_error host_error;

    if (part->soft) {
        uint64_t room = hosts->n ? hosts_room(hosts) : UINT64_MAX, high = n < room ? n : room;
        n = soft_best(part->soft, (uint32_t)(high < UINT32_MAX ? high : UINT32_MAX));
        if (n == 0) {
            snprintf(error->text, sizeof error->text,
                     "-soft %.120s: no number of ranks up to %llu is in it", part->soft,
                     (unsigned long long)high);
            return -EINVAL;
        }
    }
    *n_ranks += n;
    if (*n_ranks > OPTIONS_MAX_RANKS) {
        snprintf(error->text, sizeof error->text, "a job has at most %u ranks", OPTIONS_MAX_RANKS);
        return -EINVAL;
    }
    part->n_ranks = (uint32_t)n;
    if (hosts->n > 0 && hosts_place(hosts, &o->mapping, part->n_ranks, ret_runs, &host_error) < 0) {
        snprintf(error->text, sizeof error->text, "%s", host_error.text);
        return -EINVAL;
    }
    return 0;
}

/* Numbers of ranks, and where they go. */
static int submit_place(struct options *o, struct words *ret_runs, uint64_t *ret_n_ranks,
                        struct options_error *error)
{
    int rc = 0;

    *ret_n_ranks = 0;
    for (size_t i = 0; rc == 0 && i < o->n_parts; i++)
        rc = submit_place_part(o, &o->parts[i], ret_runs, ret_n_ranks, error);
    return rc;
}

static size_t n_parts_with_hosts(const struct options *o)
{
    size_t n = 0;

    for (size_t i = 0; i < o->n_parts; i++)
        n += o->parts[i].hosts.n > 0 || o->hosts.n > 0;
    return n;
}

/* A part without hosts beside parts that have some could go anywhere; say so instead of
 * choosing. */
static int check_hosts(const struct options *o, struct options_error *error)
{
    size_t n_with = n_parts_with_hosts(o);

    if (n_with == 0 || n_with == o->n_parts)
        return 0;
    snprintf(error->text, sizeof error->text,
             "-host: some programs have hosts and some have not; name hosts for each, or for the "
             "first one only");
    return -EINVAL;
}

static int submit_pack(Motet__Submit *message, struct submit *ret_submit,
                       struct options_error *error)
{
    size_t n = motet__submit__get_packed_size(message);
    uint8_t *body = n <= FRAME_MAX_BYTES ? malloc(n + 1) : NULL;

    if (!body) {
        snprintf(
            error->text, sizeof error->text,
            "command line and environment are %zu bytes, more than the %u that can be passed on", n,
            FRAME_MAX_BYTES);
        return -EINVAL;
    }
    motet__submit__pack(message, body);
    ret_submit->body = body;
    ret_submit->n = (uint32_t)n;
    return 0;
}

static uint32_t current_umask(void)
{
    mode_t mask = umask(0);

    umask(mask);
    return mask;
}

static char *job_name(const struct options *o)
{
    const char *program = o->parts[0].argv.at[0], *slash = strrchr(program, '/');
    return strndup(slash && slash[1] ? slash + 1 : program, HOSTS_NAME_MAX);
}

int submit_build(struct options *o, char *const *environment, const char *wdir, FILE *warnings,
                 struct submit *ret_submit, struct options_error *ret_error)
{
    Motet__Submit message = MOTET__SUBMIT__INIT;
    Motet__Binding binding = MOTET__BINDING__INIT;
    struct words runs = {0}, base = {0};
    uint64_t n_ranks = 0;
    int rc = check_hosts(o, ret_error);

    if (rc == 0)
        rc = submit_place(o, &runs, &n_ranks, ret_error);
    if (rc < 0) {
        words_free(&runs);
        return rc;
    }

    binding.to = o->binding.to;
    binding.over = o->binding.over;
    binding.width = o->binding.width ? o->binding.width : 1;
    binding.report = o->binding.report;
    Motet__App *apps = calloc(o->n_parts, sizeof *apps);
    Motet__App **pointers = calloc(o->n_parts, sizeof *pointers);
    struct words *part_env = calloc(o->n_parts, sizeof *part_env);
    char *name = job_name(o);
    bool failed = !apps || !pointers || !part_env || !name;
    if (!failed) {
        build_env(o, environment, warnings, &base, part_env);
        failed = base.failed;
        for (size_t i = 0; i < o->n_parts; i++) {
            failed |= part_env[i].failed;
            motet__app__init(&apps[i]);
            apps[i].n_ranks = o->parts[i].n_ranks;
            apps[i].n_argv = o->parts[i].argv.n;
            apps[i].argv = o->parts[i].argv.at;
            apps[i].n_env = part_env[i].n;
            apps[i].env = part_env[i].at;
            apps[i].wdir = o->parts[i].wdir;
            apps[i].path = o->parts[i].path;
            pointers[i] = &apps[i];
        }
        message.n_apps = o->n_parts;
        message.apps = pointers;
        message.n_hosts = runs.n;
        message.hosts = runs.at;
        message.has_ranks_per_node = o->mapping.ppn > 0 && n_parts_with_hosts(o) == 0;
        message.ranks_per_node = o->mapping.ppn;
        message.wdir = (char *)wdir;
        message.n_env = base.n;
        message.env = base.at;
        if (o->binding.to != BINDING_NONE || o->binding.report)
            message.binding = &binding;
        message.wait_mode = o->wait_mode;
        message.name = name;
        message.stdin_to_rank0 = o->stdin_to_rank0;
        message.has_umask = true;
        message.umask = current_umask();
        if (!failed)
            rc = submit_pack(&message, ret_submit, ret_error);
        ret_submit->n_ranks = (uint32_t)n_ranks;
    }
    if (failed) {
        snprintf(ret_error->text, sizeof ret_error->text, "out of memory");
        rc = -EINVAL;
    }
    for (size_t i = 0; part_env && i < o->n_parts; i++)
        words_free(&part_env[i]);
    free(part_env);
    free(pointers);
    free(apps);
    free(name);
    words_free(&runs);
    words_free(&base);
    return rc;
}
