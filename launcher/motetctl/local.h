/* SPDX-License-Identifier: BSD-3-Clause */
/* What motetctl tells without a daemon: this installation, and the environment. */
#pragma once

#include <jansson.h>

/* Two tables as show_data() takes them: the installation (version, library, ABI, thread level,
 * providers) and the variables with their values. A new reference; never NULL. */
json_t *local_tables(void);
