/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/sim/client/client_process.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>

#include "client/client.h"
#include "tests/sim/client/fiber.h"

/* A clock read costs this, so that a process that polls does not stop time. */
#define READ_NS 25

struct process *process_here;
bool process_news;
static struct sim *clock_sim;
static struct list living;

static struct list *living_list(void)
{
    if (!living.next)
        list_init(&living);
    return &living;
}

void process_use_clock(struct sim *s)
{
    clock_sim = s;
}

struct process *process_new(struct sim *s, uint32_t pid, void (*fn)(void *arg), void *arg)
{
    struct process *p = calloc(1, sizeof *p);

    if (!p || !(p->client = client_new()) || !(p->fiber = fiber_new(fn, arg)))
        sim_fail(s, "memory");
    list_init(&p->memory);
    p->pid = pid;
    p->alive = process_news = true;
    list_append(living_list(), &p->node);
    return p;
}

/* ---- memory ---- */

struct held {
    _Alignas(64) struct list node;
    struct process *owner;
    size_t n_bytes;
    void *start;  /* of what malloc gave */
    void *caller; /* who asked for it */
};

static void *block_new(size_t n_bytes, size_t align, void *caller)
{
    struct held *b;
    char *start;

    if (align < sizeof *b)
        align = sizeof *b;
    if (posix_memalign((void **)&start, align, align + (n_bytes ? n_bytes : 1)))
        return NULL;
    b = (struct held *)(void *)(start + align - sizeof *b);
    b->owner = process_here;
    b->n_bytes = n_bytes;
    b->start = start;
    b->caller = caller;
    list_init(&b->node);
    if (process_here) {
        list_append(&process_here->memory, &b->node);
        process_here->n_blocks++;
    }
    return b + 1;
}

void *sim_realloc(void *old, size_t n);
void *sim_reallocarray(void *old, size_t n, size_t size);
int sim_posix_memalign(void **ret, size_t align, size_t n);
void *sim_aligned_alloc(size_t align, size_t n);
char *sim_strdup(const char *text);
char *sim_strndup(const char *text, size_t n);

void *sim_malloc(size_t n)
{
    return block_new(n, 0, __builtin_return_address(0));
}

void *sim_calloc(size_t n, size_t size)
{
    void *p = block_new(n * size, 0, __builtin_return_address(0));

    return p ? memset(p, 0, n * size) : NULL;
}

void sim_free(void *p)
{
    if (!p)
        return;
    struct held *b = (struct held *)p - 1;
    if (b->owner) {
        list_remove(&b->node);
        b->owner->n_blocks--;
    }
    free(b->start);
}

void *sim_realloc(void *old, size_t n)
{
    void *p = block_new(n, 0, __builtin_return_address(0));

    if (!p || !old)
        return p;
    const struct held *b = (struct held *)old - 1;
    memcpy(p, old, b->n_bytes < n ? b->n_bytes : n);
    sim_free(old);
    return p;
}

void *sim_reallocarray(void *old, size_t n, size_t size)
{
    return sim_realloc(old, n * size);
}

int sim_posix_memalign(void **ret, size_t align, size_t n)
{
    *ret = block_new(n, align, __builtin_return_address(0));
    return *ret ? 0 : ENOMEM;
}

void *sim_aligned_alloc(size_t align, size_t n)
{
    return block_new(n, align, __builtin_return_address(0));
}

char *sim_strndup(const char *text, size_t n)
{
    size_t len = strnlen(text, n);
    char *p = block_new(len + 1, 0, __builtin_return_address(0));

    if (!p)
        return NULL;
    memcpy(p, text, len);
    p[len] = '\0';
    return p;
}

char *sim_strdup(const char *text)
{
    return sim_strndup(text, strlen(text));
}

/* A process that ended has not freed all it had. */
static void report_blocks(const struct process *p)
{
    list_foreach(it, &p->memory) {
        const struct held *b = list_entry(it, struct held, node);
        fprintf(stderr, "%zu bytes, asked for at %p\n", b->n_bytes, b->caller);
    }
    sim_fail(clock_sim, "process %u has ended and left %llu blocks of memory", p->pid,
             (unsigned long long)p->n_blocks);
}

void process_free(struct process *p)
{
    if (!p)
        return;
    client_free(p->client);
    if (!p->alive && p->n_blocks > 0)
        report_blocks(p);
    list_foreach_safe(it, &p->memory)
        free(list_entry(it, struct held, node)->start);
    fiber_free(p->fiber);
    list_remove(&p->node);
    free(p);
}

/* ---- turns ---- */

bool process_can_run(const struct process *p, uint64_t now_ns)
{
    return p->alive && now_ns >= p->stopped_ns && (p->woken || now_ns >= p->until_ns);
}

uint64_t process_next_ns(const struct process *p)
{
    uint64_t at = p->woken ? 0 : p->until_ns;

    return !p->alive ? UINT64_MAX : at < p->stopped_ns ? p->stopped_ns : at;
}

bool process_run(struct process *p)
{
    struct client *before = client_enter(p->client);

    calls_now = p->calls;
    process_here = p;
    fiber_resume(p->fiber);
    process_here = NULL;
    p->calls = calls_now;
    client_enter(before);
    if (fiber_has_ended(p->fiber))
        p->alive = false;
    return !p->alive;
}

static void process_give_turn(void)
{
    fiber_yield();
}

void process_pause(uint64_t ns)
{
    process_here->until_ns = clock_sim->now_ns + ns;
    process_give_turn();
    process_here->until_ns = 0;
}

/* ---- what belongs to a thread ---- */

int sim_pthread_key_create(pthread_key_t *key, void (*destroy)(void *value));
void *sim_pthread_getspecific(pthread_key_t key);
int sim_pthread_setspecific(pthread_key_t key, const void *value);

static void (*destroyers[PROCESS_KEYS])(void *value);
static pthread_key_t n_keys;

int sim_pthread_key_create(pthread_key_t *key, void (*destroy)(void *value))
{
    if (n_keys == PROCESS_KEYS)
        return EAGAIN;
    destroyers[n_keys] = destroy;
    *key = n_keys++;
    return 0;
}

void *sim_pthread_getspecific(pthread_key_t key)
{
    return process_here ? process_here->specifics[key] : NULL;
}

int sim_pthread_setspecific(pthread_key_t key, const void *value)
{
    process_here->specifics[key] = (void *)(uintptr_t)value;
    return 0;
}

void process_end_thread(void)
{
    for (pthread_key_t key = 0; key < n_keys; key++)
        if (process_here->specifics[key] && destroyers[key])
            destroyers[key](process_here->specifics[key]);
}

/* ---- the kernel ---- */

int sim_clock_gettime(clockid_t id, struct timespec *ret);
int sim_sched_yield(void);
char *sim_getenv(const char *name);
int sim_n_cores(void);
ssize_t sim_process_vm_readv(pid_t pid, const struct iovec *local, unsigned long n_local,
                             const struct iovec *remote, unsigned long n_remote,
                             unsigned long flags);
ssize_t sim_process_vm_writev(pid_t pid, const struct iovec *local, unsigned long n_local,
                              const struct iovec *remote, unsigned long n_remote,
                              unsigned long flags);
void sim_exit(int code) __attribute__((noreturn));
void sim_exit_early(int code) __attribute__((noreturn));
void sim_exit_at_once(int code) __attribute__((noreturn));
int __wrap_thread_futex_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns);
void __wrap_thread_futex_wake(_Atomic uint32_t *word, int n);

int sim_clock_gettime(clockid_t id, struct timespec *ret)
{
    (void)id;
    if (!clock_sim)
        return clock_gettime(id, ret);
    clock_sim->now_ns += READ_NS;
    ret->tv_sec = (time_t)(clock_sim->now_ns / CLOCK_NS_PER_S);
    ret->tv_nsec = (long)(clock_sim->now_ns % CLOCK_NS_PER_S);
    return 0;
}

int sim_sched_yield(void)
{
    process_give_turn();
    return 0;
}

char *sim_getenv(const char *name)
{
    static char none[] = "none";

    /* The simulation has no threads. */
    return strcmp(name, "MOTET_PROGRESS") == 0 ? none : NULL;
}

int sim_n_cores(void)
{
    /* The same on every machine. */
    return 4;
}

void sim_exit(int code)
{
    sim_fail(clock_sim, "process %u exits with %d", process_here ? process_here->pid : 0, code);
}

void sim_exit_early(int code)
{
    sim_exit(code);
}

void sim_exit_at_once(int code)
{
    sim_exit(code);
}

int __wrap_thread_futex_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns)
{
    struct process *p = process_here;

    if (atomic_load(word) != expected)
        return 0;
    p->word = word;
    p->woken = false;
    p->until_ns = timeout_ns == UINT64_MAX ? UINT64_MAX : clock_sim->now_ns + timeout_ns;
    process_give_turn();
    p->word = NULL;
    p->until_ns = 0;
    bool woken = p->woken;
    p->woken = false;
    return woken ? 0 : -ETIMEDOUT;
}

void __wrap_thread_futex_wake(_Atomic uint32_t *word, int n)
{
    list_foreach(it, living_list()) {
        struct process *p = list_entry(it, struct process, node);
        if (n > 0 && p->word == word && !p->woken) {
            p->woken = process_news = true;
            n--;
        }
    }
}

/* Copies between the running process and the one of this pid. */
static ssize_t copy(pid_t pid, const struct iovec *local, unsigned long n_local,
                    const struct iovec *remote, bool write)
{
    const char *from = remote->iov_base;
    size_t left = remote->iov_len;
    ssize_t n = 0;
    struct process *other = NULL;

    if (!process_here->may_read) {
        errno = EPERM;
        return -1;
    }
    /* A system call of this kind takes long: everybody else may get on meanwhile. */
    if (sim_draw(clock_sim, 2))
        process_give_turn();
    list_foreach(it, living_list())
        if (list_entry(it, struct process, node)->pid == (uint32_t)pid)
            other = list_entry(it, struct process, node);
    if (!other) {
        errno = ESRCH;
        return -1;
    }
    for (unsigned long i = 0; i < n_local && left > 0; i++) {
        size_t len = local[i].iov_len < left ? local[i].iov_len : left;
        if (write)
            memcpy((void *)(uintptr_t)from, local[i].iov_base, len);
        else
            memcpy(local[i].iov_base, from, len);
        from += len;
        left -= len;
        n += (ssize_t)len;
    }
    return n;
}

ssize_t sim_process_vm_readv(pid_t pid, const struct iovec *local, unsigned long n_local,
                             const struct iovec *remote, unsigned long n_remote,
                             unsigned long flags)
{
    (void)n_remote, (void)flags;
    return copy(pid, local, n_local, remote, false);
}

ssize_t sim_process_vm_writev(pid_t pid, const struct iovec *local, unsigned long n_local,
                              const struct iovec *remote, unsigned long n_remote,
                              unsigned long flags)
{
    (void)n_remote, (void)flags;
    return copy(pid, local, n_local, remote, true);
}
