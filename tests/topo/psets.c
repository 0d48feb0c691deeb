/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The process sets, as rank 0 tells them: a line for each with its name, kind, size and members
 * (ranks in the world). Checks that all ranks number them alike, that sizes agree with the groups,
 * and that a communicator of each set works.
 */
#include "tests/topo/check.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static int rank;

/* Whether a number and a text are the same everywhere. */
static void check_same(const char *what, int number, const char *text)
{
    char first[MPI_MAX_PSET_NAME_LEN];
    int first_number = number;
    snprintf(first, sizeof first, "%s", text);
    MPI_Bcast(&first_number, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Bcast(first, sizeof first, MPI_CHAR, 0, MPI_COMM_WORLD);
    CHECK(number == first_number && strcmp(text, first) == 0, "%s: %d %s here, %d %s at rank 0",
          what, number, text, first_number, first);
}

static void value_of(MPI_Info info, const char *key, char *value, int room)
{
    int flag;
    value[0] = '\0';
    MPI_Info_get_string(info, key, &room, value, &flag);
}

/* A sum over the members of a set. */
static void check_works(const char *name, MPI_Group group)
{
    MPI_Comm comm;
    int one = 1, sum = 0, n;
    MPI_Group_size(group, &n);
    MPI_Comm_create_from_group(group, name, MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    CHECK(sum == n, "%s: %d of %d", name, sum, n);
    MPI_Comm_free(&comm);
}

static void tell(MPI_Session session, int i)
{
    char name[MPI_MAX_PSET_NAME_LEN], kind[32], size_text[32], of[256];
    int length = sizeof name, needed = 0, n, own;
    MPI_Info info;
    MPI_Group group, world;
    MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &needed, NULL);
    MPI_Session_get_nth_pset(session, MPI_INFO_NULL, i, &length, name);
    CHECK(length == (int)strlen(name) + 1 && needed == length, "%s: length %d, then %d", name,
          needed, length);
    check_same("name of a set", i, name);
    MPI_Session_get_pset_info(session, name, &info);
    value_of(info, "mpi_size", size_text, sizeof size_text);
    value_of(info, "motet_kind", kind, sizeof kind);
    value_of(info, "motet_name", of, sizeof of);
    MPI_Info_free(&info);
    MPI_Group_from_session_pset(session, name, &group);
    MPI_Group_size(group, &n);
    MPI_Group_rank(group, &own);
    CHECK(atoi(size_text) == n, "%s: mpi_size %s, group of %d", name, size_text, n);
    CHECK(!of[0] || strcmp(name + strlen(name) - strlen(of), of) == 0, "%s is of %s", name, of);
    if (own != MPI_UNDEFINED)
        check_works(name, group);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    if (rank == 0)
        printf("pset %s %s %d:", name, kind, n);
    for (int k = 0; k < n; k++) {
        int in_world;
        MPI_Group_translate_ranks(group, 1, &k, world, &in_world);
        if (rank == 0)
            printf(" %d", in_world);
    }
    if (rank == 0)
        printf("\n");
    MPI_Group_free(&world);
    MPI_Group_free(&group);
}

int main(int argc, char **argv)
{
    MPI_Session session;
    MPI_Info info;
    int n;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    MPI_Session_get_num_psets(session, MPI_INFO_NULL, &n);
    check_same("number of sets", n, "");
    for (int i = 0; i < n; i++)
        tell(session, i);
    char name[MPI_MAX_PSET_NAME_LEN];
    int room = sizeof name;
    CHECK(MPI_Session_get_nth_pset(session, MPI_INFO_NULL, n, &room, name) != MPI_SUCCESS,
          "set %d of %d", n, n);
    CHECK(MPI_Session_get_pset_info(session, "motet://network/nowhere", &info) != MPI_SUCCESS,
          "nowhere is there%s", "");
    MPI_Session_finalize(&session);
    if (rank == 0)
        printf("psets: %d\n", n);
    MPI_Finalize();
    return 0;
}
