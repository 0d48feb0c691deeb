/* SPDX-License-Identifier: BSD-3-Clause */
#include "client/init/leak.h"

#include "client/client.h"
#include "client/datatype/datatype.h"
#include "client/object/comm.h"
#include "client/object/err.h"
#include "client/object/handle.h"
#include "client/process/job.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FRAMES 32
#define MAX_LINES  50 /* of a report: a program that forgets its requests forgets many */

struct leak_state {
    void **callers; /* by index of the handle table; NULL where not known */
    uint32_t n_callers;
};
static struct leak_state leak_first;
static struct leak_state *leak_here = &leak_first;

/* The next word of a list separated by commas; NULL at its end. */
static const char *next_word(const char **list, size_t *ret_length)
{
    const char *word = *list + strspn(*list, ",");
    *ret_length = strcspn(word, ",");
    *list = word + *ret_length;
    return *ret_length ? word : NULL;
}

static bool is_word(const char *word, size_t length, const char *name)
{
    return strlen(name) == length && strncmp(word, name, length) == 0;
}

int leak_check_environment(void)
{
    const char *list = getenv("MOTET_DEBUG"), *word;
    size_t length;
    while (list && (word = next_word(&list, &length)))
        if (!is_word(word, length, "handles"))
            return err_set(MPI_ERR_OTHER, "MOTET_DEBUG has the word %.*s; known is handles",
                           (int)length, word);
    return MPI_SUCCESS;
}

/* The innermost frame outside of this library: the call of the application, or of the library that
 * it uses. */
static void *find_caller(void)
{
    void *frames[MAX_FRAMES];
    Dl_info own, at;
    int n = backtrace(frames, MAX_FRAMES);
    if (!dladdr((void *)find_caller, &own))
        return NULL;
    for (int i = 0; i < n; i++)
        if (dladdr(frames[i], &at) && at.dli_fbase != own.dli_fbase)
            return frames[i];
    return NULL;
}

/* The handle in this slot is new: remembers from where the application called the library. */
static void note(uint32_t index)
{
    if (index >= leak_here->n_callers) {
        uint32_t n = index + 4096;
        void **grown = realloc(leak_here->callers, n * sizeof *grown);
        if (!grown)
            return;
        memset(grown + leak_here->n_callers, 0, (n - leak_here->n_callers) * sizeof *grown);
        leak_here->callers = grown;
        leak_here->n_callers = n;
    }
    leak_here->callers[index] = find_caller();
}

/* Before main(): error handlers and info objects may be made before MPI_Init. */
static void leak_part_init(void)
{
    const char *list = getenv("MOTET_DEBUG"), *word;
    size_t length;
    while (list && (word = next_word(&list, &length)))
        if (is_word(word, length, "handles"))
            handle_here->on_new = note;
}

static void leak_part_deinit(void)
{
    free(leak_here->callers);
}
CLIENT_PART(leak_here, leak_first, .init = leak_part_init, .deinit = leak_part_deinit);

/* ---- the report ---- */

/* Live handles of one kind that were made at one place. */
struct leak {
    enum object_kind kind;
    void *caller;
    long n;
    const struct object *first;
};

struct leaks {
    struct leak at[MAX_LINES];
    int n_lines;
    long n, n_untold; /* handles: all; in none of the lines */
};

static void count(struct object *object, void *arg)
{
    struct leaks *leaks = arg;
    uint32_t index = (uint32_t)object->handle;
    void *caller = index < leak_here->n_callers ? leak_here->callers[index] : NULL;
    if (object->predefined)
        return;
    leaks->n++;
    for (int i = 0; i < leaks->n_lines; i++) {
        struct leak *leak = &leaks->at[i];
        if (leak->kind == (enum object_kind)object->kind && leak->caller == caller) {
            leak->n++;
            return;
        }
    }
    if (leaks->n_lines == MAX_LINES)
        leaks->n_untold++;
    else
        leaks->at[leaks->n_lines++] =
            (struct leak){(enum object_kind)object->kind, caller, 1, object};
}

static const char *name_of(const struct object *object)
{
    switch ((enum object_kind)object->kind) {
    case OBJECT_COMM:
        return ((const struct comm *)object)->name;
    case OBJECT_DATATYPE:
        return ((const struct datatype *)object)->name ? ((const struct datatype *)object)->name
                                                       : "";
    default:
        return "";
    }
}

/* "program+0x11f2 (function)": what addr2line(1) understands. */
static void describe_place(void *caller, char *text, size_t room)
{
    Dl_info at;
    if (!caller || !dladdr(caller, &at) || !at.dli_fname) {
        snprintf(text, room, "an unknown place");
        return;
    }
    const char *slash = strrchr(at.dli_fname, '/');
    /* The address before the return address belongs to the call. */
    snprintf(text, room, "%s+0x%zx%s%s%s", slash ? slash + 1 : at.dli_fname,
             (size_t)((char *)caller - 1 - (char *)at.dli_fbase), at.dli_sname ? " (" : "",
             at.dli_sname ? at.dli_sname : "", at.dli_sname ? ")" : "");
}

void leak_report(void)
{
    struct leaks leaks = {.n_lines = 0};
    if (!handle_here->on_new)
        return;
    handle_each(count, &leaks);
    if (leaks.n == 0)
        return;
    fflush(stdout);
    fprintf(stderr, "motet: rank %d: %ld handle%s not freed at the end of MPI\n", job_rank(),
            leaks.n, leaks.n == 1 ? " was" : "s were");
    for (int i = 0; i < leaks.n_lines; i++) {
        const struct leak *leak = &leaks.at[i];
        const char *name = name_of(leak->first);
        char place[512];
        describe_place(leak->caller, place, sizeof place);
        /* In one piece: other ranks write there, too. */
        fprintf(stderr, "motet: rank %d:   %ld %s%s%s%s%s%s, from %s\n", job_rank(), leak->n,
                object_kind_name(leak->kind), leak->n == 1 ? "" : "s", name[0] ? " (" : "",
                name[0] && leak->n > 1 ? "the first: " : "", name, name[0] ? ")" : "", place);
    }
    if (leaks.n_untold)
        fprintf(stderr, "motet: rank %d:   and %ld more\n", job_rank(), leaks.n_untold);
    fflush(stderr);
}
