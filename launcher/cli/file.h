/* SPDX-License-Identifier: BSD-3-Clause */
/* Small text files, read whole. */
#pragma once

/* The contents of a file or pipe ("-": standard input) of at most 16 MiB as a string to free. 0;
 * -EFBIG; -ENOMEM; -EILSEQ when it contains a zero byte; or what open and read return. */
int file_read_text(const char *path, char **ret_text);
