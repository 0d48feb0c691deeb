/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Categories of variables and events (MPI-5.0 section 15.3.9): one above all others. Each variable
 * and event names its own; nothing comes or goes while a program runs.
 */
#ifndef MOTET_CLIENT_TOOLS_CATEGORY_H
#define MOTET_CLIENT_TOOLS_CATEGORY_H

enum category_index {
    CATEGORY_ALL,
    CATEGORY_START,
    CATEGORY_CHECKING,
    CATEGORY_MESSAGES,
    CATEGORY_COLLECTIVES,
    CATEGORY_WAITING,
    CATEGORY_WINDOWS,
    CATEGORIES
};

#endif
