/* SPDX-License-Identifier: BSD-3-Clause */
#include "launcher/variables.h"

const struct variable variables[] = {
    {"MOTET_CHECK", "library", "1", "0: arguments are not checked; collectives: calls that do not fit together are found"},
    {"MOTET_DEBUG", "library", "", "handles: list the handles that a program has not freed"},
    {"MOTET_THREAD_LEVEL", "library", "as asked for", "single, funneled, serialized or multiple: the level that programs get"},
    {"MOTET_PROGRESS", "library", "", "none: no helper thread advances transfers while the program computes"},
    {"MOTET_LANES", "library", "8 up to 32 ranks of a node, 4 up to 96", "sets of rings for threads of different communicators; 1: the common one alone"},
    {"MOTET_COLL_TABLE", "library", "collectives.json in the configuration folder", "file with rules for the choice of collective algorithms"},
    {"MOTET_COLL_*", "library", "by the rules", "algorithm of one collective, as MOTET_COLL_BCAST"},
    {"MOTET_UNIVERSE_SIZE", "library", "size of the job", "value of the attribute MPI_UNIVERSE_SIZE"},
    {"MOTET_APPNUM", "library", "0", "value of the attribute MPI_APPNUM"},
    {"MOTET_CLIENT_SOCKET", "mpiexec", "client.sock in the runtime folder", "the daemon's socket for jobs"},
    {"MOTET_STATUS_SOCKET", "motetctl", "status.sock in the runtime folder", "the daemon's socket for questions"},
    {"MOTET_MOTETD", "mpiexec", "the installed one", "the daemon that is started where none runs"},
    {"MOTET_SPAWNER", "motetd", "the installed one", "the program that starts ranks"},
    {"MOTET_CC", "mpicc", "cc", "the C compiler"},
    {"MOTET_CXX", "mpicxx", "c++", "the C++ compiler"},
    {"MOTET_RANK", "programs", "", "rank in MPI_COMM_WORLD"},
    {"MOTET_SIZE", "programs", "", "size of MPI_COMM_WORLD"},
    {"MOTET_LOCAL_RANK", "programs", "", "rank among those of the node"},
    {"MOTET_LOCAL_SIZE", "programs", "", "number of ranks on the node"},
    {"MOTET_NODE", "programs", "", "name of the node"},
    {"MOTET_APP", "programs", "", "number of the program of an MPMD command line"},
    {"MOTET_JOB", "programs", "", "id of the job"},
    {"MOTET_SOCKET", "programs", "", "where the library attaches to the daemon"},
    {"MOTET_KEY", "programs", "", "the key with which it does"},
};
const size_t n_variables = sizeof variables / sizeof *variables;
