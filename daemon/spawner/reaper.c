/* SPDX-License-Identifier: BSD-3-Clause */
#include "daemon/spawner/reaper.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"

struct process {
    pid_t pid, parent, group, session;
    bool dead;
};

struct process_table {
    struct process *at;
    size_t n, room;
};

static ssize_t reaper_read_file(const char *path, char *buf, size_t room)
{
    FD_AUTO fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t n = 0;

    if (fd < 0)
        return -1;
    while (n < room) {
        ssize_t got = read(fd, buf + n, room - n);
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    return (ssize_t)n;
}

/* Parses /proc/PID/stat; the command name in it may contain anything, so what counts starts after
 * the last ')'. */
static bool reaper_read_process(pid_t pid, struct process *ret_process)
{
    char path[64], text[1024], state;
    int parent, group, session;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    ssize_t n = reaper_read_file(path, text, sizeof text - 1);
    if (n <= 0)
        return false;
    text[n] = '\0';
    const char *end = strrchr(text, ')');
    if (!end || sscanf(end + 1, " %c %d %d %d", &state, &parent, &group, &session) != 4)
        return false;
    *ret_process = (struct process){.pid = pid,
                                    .parent = parent,
                                    .group = group,
                                    .session = session,
                                    .dead = state == 'Z' || state == 'X'};
    return true;
}

static int by_pid(const void *a, const void *b)
{
    pid_t x = ((const struct process *)a)->pid, y = ((const struct process *)b)->pid;
    return (x > y) - (x < y);
}

static void reaper_read_processes(struct process_table *table)
{
    DIR *dir = opendir("/proc");
    struct dirent *entry;

    if (!dir)
        return;
    while ((entry = readdir(dir)) != NULL) {
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        if (table->n == table->room) {
            size_t room = table->room ? table->room * 2 : 256;
            struct process *at = realloc(table->at, room * sizeof *at);
            if (!at)
                break;
            table->at = at;
            table->room = room;
        }
        if (reaper_read_process((pid_t)atoi(entry->d_name), &table->at[table->n]))
            table->n++;
    }
    closedir(dir);
    if (table->n > 0)
        qsort(table->at, table->n, sizeof *table->at, by_pid);
}

static const struct process *reaper_find(const struct process_table *table, pid_t pid)
{
    struct process key = {.pid = pid};
    return table->n ? bsearch(&key, table->at, table->n, sizeof key, by_pid) : NULL;
}

/* The job that a process was given in its environment. */
static bool job_of_environment(pid_t pid, uint64_t *ret_job)
{
    static const char name[] = "MOTET_JOB=";
    static char env[256 * 1024];
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    ssize_t n = reaper_read_file(path, env, sizeof env - 1);
    if (n <= 0)
        return false;
    env[n] = '\0';
    for (const char *p = env; p < env + n; p += strlen(p) + 1) {
        if (strncmp(p, name, sizeof name - 1) == 0) {
            *ret_job = strtoull(p + sizeof name - 1, NULL, 16);
            return true;
        }
    }
    return false;
}

/* Whether `p` is below `root`, and which rank it comes from (ret_owned false: none known). The
 * steps are bounded: the table is not an instant's picture, so parents in it could form a
 * circle. */
static bool reaper_descends(const struct process_table *table, const struct process *p, pid_t root,
                            reaper_owner_fn *owner, void *arg, bool *ret_owned, uint64_t *ret_job,
                            uint32_t *ret_rank)
{
    bool owned = false;

    for (int steps = 0; p && steps < 1024; steps++) {
        if (!owned)
            owned =
                owner(arg, p->pid, true, ret_job, ret_rank) ||
                owner(arg, p->session, reaper_find(table, p->session) != NULL, ret_job, ret_rank) ||
                owner(arg, p->group, reaper_find(table, p->group) != NULL, ret_job, ret_rank);
        if (p->parent == root) {
            *ret_owned = owned;
            return true;
        }
        p = reaper_find(table, p->parent);
    }
    return false;
}

/* What reaper_kill does, for the descendants of `root`; never the caller itself. */
static int reaper_kill_below(pid_t root, const struct reaper_filter *filter, reaper_owner_fn *owner,
                             void *arg, int signal)
{
    struct process_table table = {0};
    pid_t self = getpid();
    int n_hit = 0;

    reaper_read_processes(&table);
    for (size_t i = 0; i < table.n; i++) {
        const struct process *p = &table.at[i];
        uint64_t job = 0;
        uint32_t rank = 0;
        bool owned = false;

        if (p->dead || p->pid == self ||
            !reaper_descends(&table, p, root, owner, arg, &owned, &job, &rank))
            continue;
        if (!filter->everything) {
            bool rank_known = owned;
            if (!owned)
                owned = job_of_environment(p->pid, &job);
            if (!owned || job != filter->job)
                continue;
            if (filter->rank >= 0 && (!rank_known || rank != (uint32_t)filter->rank))
                continue;
        }
        if (kill(p->pid, signal) == 0)
            n_hit++;
    }
    free(table.at);
    return n_hit;
}

int reaper_kill(const struct reaper_filter *filter, reaper_owner_fn *owner, void *arg, int signal)
{
    return reaper_kill_below(getpid(), filter, owner, arg, signal);
}

static bool owner_nobody(void *arg, pid_t pid, bool alive, uint64_t *ret_job, uint32_t *ret_rank)
{
    (void)arg, (void)pid, (void)alive, (void)ret_job, (void)ret_rank;
    return false;
}

void reaper_kill_siblings(pid_t parent)
{
    struct reaper_filter everything = {.everything = true};
    uint64_t until_ns = clock_now_ns() + 2 * CLOCK_NS_PER_S;

    while (getppid() == parent &&
           reaper_kill_below(parent, &everything, owner_nobody, NULL, SIGKILL) > 0 &&
           clock_now_ns() < until_ns)
        poll(NULL, 0, 5);
}
