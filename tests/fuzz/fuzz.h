/* SPDX-License-Identifier: BSD-3-Clause */
/* What a fuzzer defines. Called by libFuzzer, or by replay.c with every file of a corpus. */
#pragma once

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
