/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/launcher/memory.h"

#include <stddef.h>

long memory_until_none = -1;

static int memory_none_left(void)
{
    if (memory_until_none == 0)
        return 1;
    memory_until_none -= memory_until_none > 0;
    return 0;
}

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size)
{
    return memory_none_left() ? NULL : __real_calloc(n, size);
}

void *__real_realloc(void *at, size_t size);
void *__wrap_realloc(void *at, size_t size);
void *__wrap_realloc(void *at, size_t size)
{
    return memory_none_left() ? NULL : __real_realloc(at, size);
}

char *__real_strndup(const char *text, size_t n);
char *__wrap_strndup(const char *text, size_t n);
char *__wrap_strndup(const char *text, size_t n)
{
    return memory_none_left() ? NULL : __real_strndup(text, n);
}
