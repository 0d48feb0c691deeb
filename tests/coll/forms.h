/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The three forms of a collective: blocking, nonblocking, persistent.
 *
 * RUN(form, Bcast, Ibcast, args...) carries one out. The persistent form is started `n_starts`
 * times: twice unless the call works in place.
 */
#ifndef MOTET_TESTS_COLL_FORMS_H
#define MOTET_TESTS_COLL_FORMS_H

#include <mpi.h>

enum form { FORM_BLOCKING, FORM_NONBLOCKING, FORM_PERSISTENT, N_FORMS };

extern enum form form;
extern int n_starts;

#define RUN(Name, Iname, ...)                                                                      \
    do {                                                                                           \
        MPI_Request run_request = MPI_REQUEST_NULL;                                                \
        if (form == FORM_BLOCKING) {                                                               \
            MPI_##Name(__VA_ARGS__);                                                               \
        } else if (form == FORM_NONBLOCKING) {                                                     \
            MPI_##Iname(__VA_ARGS__, &run_request);                                                \
            MPI_Wait(&run_request, MPI_STATUS_IGNORE);                                             \
        } else {                                                                                   \
            MPI_##Name##_init(__VA_ARGS__, MPI_INFO_NULL, &run_request);                           \
            for (int run_start = 0; run_start < n_starts; run_start++) {                           \
                MPI_Start(&run_request);                                                           \
                MPI_Wait(&run_request, MPI_STATUS_IGNORE);                                         \
            }                                                                                      \
            MPI_Request_free(&run_request);                                                        \
        }                                                                                          \
    } while (0)

#endif
