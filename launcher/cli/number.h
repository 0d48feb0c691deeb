/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers as people type them: only digits, checked against both limits. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The n characters of text as a decimal number within [low, high]. 0 or -EINVAL. */
int number_parse(const char *text, size_t n, uint32_t low, uint32_t high, uint32_t *ret_value);
/* Seconds with an optional fraction, "2" or "0.5", greater than zero, at most 10 years. 0 or
 * -EINVAL. */
int number_parse_seconds(const char *text, uint64_t *ret_ns);
