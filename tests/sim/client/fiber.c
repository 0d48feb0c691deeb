/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The first entry is made by makecontext, every later switch by _setjmp and _longjmp: swapcontext
 * saves the signal mask with a system call each time, which would be most of what a switch costs.
 */
#include "tests/sim/client/fiber.h"

#include <setjmp.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

#define STACK_BYTES (512u << 10)
#define GUARD_BYTES 4096u

struct stack {
    struct stack *next;
};

struct fiber {
    jmp_buf own, caller;
    void (*fn)(void *arg);
    void *arg;
    char *memory; /* guard page and stack */
    bool started, ended;
    /* What AddressSanitizer wants to know of a switch. */
    void *fake_stack;
    const void *caller_bottom;
    size_t caller_bytes;
};

static struct fiber *running;
static struct stack *spare; /* stacks of fibers that are over */

static char *stack_new(void)
{
    if (spare) {
        char *memory = (char *)spare - GUARD_BYTES;
        spare = spare->next;
        return memory;
    }
    char *memory = mmap(NULL, GUARD_BYTES + STACK_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory, GUARD_BYTES, PROT_NONE) < 0)
        return NULL;
    return memory;
}

struct fiber *fiber_new(void (*fn)(void *arg), void *arg)
{
    struct fiber *f = calloc(1, sizeof *f);

    if (!f)
        return NULL;
    f->fn = fn;
    f->arg = arg;
    f->memory = stack_new();
    if (!f->memory) {
        free(f);
        return NULL;
    }
    return f;
}

void fiber_free(struct fiber *f)
{
    if (!f)
        return;
#if defined(__SANITIZE_ADDRESS__)
    __asan_unpoison_memory_region(f->memory + GUARD_BYTES, STACK_BYTES);
#endif
    struct stack *s = (struct stack *)(void *)(f->memory + GUARD_BYTES);
    s->next = spare;
    spare = s;
    free(f);
}

static void switch_begins(struct fiber *f, bool into, bool for_ever)
{
#if defined(__SANITIZE_ADDRESS__)
    if (into)
        __sanitizer_start_switch_fiber(&f->fake_stack, f->memory + GUARD_BYTES, STACK_BYTES);
    else
        __sanitizer_start_switch_fiber(for_ever ? NULL : &f->fake_stack, f->caller_bottom,
                                       f->caller_bytes);
#else
    (void)f, (void)into, (void)for_ever;
#endif
}

/* A fiber has begun or goes on; its caller's stack is what was left. */
static void switch_into_ends(struct fiber *f)
{
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(f->started ? f->fake_stack : NULL, &f->caller_bottom,
                                    &f->caller_bytes);
#else
    (void)f;
#endif
}

static void switch_back_ends(void)
{
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(NULL, NULL, NULL);
#endif
}

static void fiber_main(void)
{
    struct fiber *f = running;

    switch_into_ends(f);
    f->started = true;
    f->fn(f->arg);
    f->ended = true;
    switch_begins(f, false, true);
    _longjmp(f->caller, 1);
}

static void fiber_begin(struct fiber *f)
{
    /* Not on the stack: nobody returns from here, so AddressSanitizer would keep what is around it
     * for forbidden. There is one thread. */
    static ucontext_t context;

    getcontext(&context);
    context.uc_stack.ss_sp = f->memory + GUARD_BYTES;
    context.uc_stack.ss_size = STACK_BYTES;
    context.uc_link = NULL;
    makecontext(&context, fiber_main, 0);
    setcontext(&context);
}

void fiber_resume(struct fiber *f)
{
    running = f;
    if (_setjmp(f->caller) == 0) {
        switch_begins(f, true, false);
        if (f->started)
            _longjmp(f->own, 1);
        else
            fiber_begin(f);
    }
    switch_back_ends();
    running = NULL;
}

void fiber_yield(void)
{
    struct fiber *f = running;

    if (_setjmp(f->own) == 0) {
        switch_begins(f, false, false);
        _longjmp(f->caller, 1);
    }
    switch_into_ends(running);
}

bool fiber_has_ended(const struct fiber *f)
{
    return f->ended;
}
