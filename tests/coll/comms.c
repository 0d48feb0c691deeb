/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Communicators, groups, attributes, error handlers, error codes, info objects and names. Any
 * number of ranks.
 */
#include "data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            failed("line %d: %s", __LINE__, #condition);                                           \
    } while (0)

static int rank, size;

static int sum_over(MPI_Comm comm, int value)
{
    int sum = -1;
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, comm);
    return sum;
}

/* ---- groups ---- */

static void test_groups(void)
{
    MPI_Group world, evens, odds, all, back, none;
    int result, n, *ranks = malloc((size_t)size * sizeof(int)),
                   *translated = malloc((size_t)size * sizeof(int));

    context = "groups";
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    int range[1][3] = {{0, size - 1, 2}};
    MPI_Group_range_incl(world, 1, range, &evens);
    MPI_Group_range_excl(world, 1, range, &odds);
    MPI_Group_size(evens, &n);
    CHECK(n == (size + 1) / 2);
    MPI_Group_size(odds, &n);
    CHECK(n == size / 2);
    MPI_Group_union(odds, evens, &all);
    MPI_Group_compare(world, all, &result);
    CHECK(result == (size == 1 ? MPI_IDENT : MPI_SIMILAR));
    MPI_Group_intersection(all, evens, &back);
    MPI_Group_compare(back, evens, &result);
    CHECK(result == MPI_IDENT);
    MPI_Group_free(&back);
    MPI_Group_difference(all, evens, &back);
    MPI_Group_compare(back, odds, &result);
    CHECK(result == MPI_IDENT);
    MPI_Group_intersection(odds, evens, &none);
    CHECK(none == MPI_GROUP_EMPTY);
    MPI_Group_free(&none);
    for (int i = 0; i < size; i++)
        ranks[i] = i;
    MPI_Group_translate_ranks(world, size, ranks, evens, translated);
    for (int i = 0; i < size; i++)
        CHECK(translated[i] == (i % 2 ? MPI_UNDEFINED : i / 2));
    ranks[0] = MPI_PROC_NULL;
    MPI_Group_translate_ranks(world, 1, ranks, evens, translated);
    CHECK(translated[0] == MPI_PROC_NULL);
    MPI_Group_rank(evens, &n);
    CHECK(n == (rank % 2 ? MPI_UNDEFINED : rank / 2));
    int down[1][3] = {{size - 1, 0, -1}};
    MPI_Group reversed, same;
    MPI_Group_range_incl(world, 1, down, &reversed);
    MPI_Group_rank(reversed, &n);
    CHECK(n == size - 1 - rank);
    for (int i = 0; i < size; i++)
        ranks[i] = size - 1 - i;
    MPI_Group_incl(world, size, ranks, &same);
    MPI_Group_compare(same, reversed, &result);
    CHECK(result == MPI_IDENT);
    MPI_Group_free(&same);
    MPI_Group_excl(world, size, ranks, &same);
    CHECK(same == MPI_GROUP_EMPTY);
    MPI_Group_free(&same);
    MPI_Group_free(&reversed);
    MPI_Group_free(&world);
    MPI_Group_free(&evens);
    MPI_Group_free(&odds);
    MPI_Group_free(&all);
    MPI_Group_free(&back);
    free(ranks);
    free(translated);
}

/* ---- communicators ---- */

static void test_split(void)
{
    MPI_Comm comm, self;
    int n, r;

    context = "split";
    MPI_Comm_split(MPI_COMM_WORLD, rank % 3, -rank, &comm);
    MPI_Comm_size(comm, &n);
    MPI_Comm_rank(comm, &r);
    CHECK(n == (size - rank % 3 + 2) / 3);
    CHECK(r == n - 1 - rank / 3);
    CHECK(sum_over(comm, 1) == n);
    MPI_Comm_free(&comm);
    CHECK(comm == MPI_COMM_NULL);
    MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? MPI_UNDEFINED : 5, 0, &comm);
    CHECK((comm == MPI_COMM_NULL) == (rank == 0));
    if (comm != MPI_COMM_NULL) {
        CHECK(sum_over(comm, 1) == size - 1);
        MPI_Comm_free(&comm);
    }
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &comm);
    CHECK(comm != MPI_COMM_NULL);
    MPI_Comm_size(comm, &n);
    CHECK(sum_over(comm, 1) == n && n >= 1 && n <= size);
    MPI_Comm_free(&comm);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_UNDEFINED, rank, MPI_INFO_NULL, &comm);
    CHECK(comm == MPI_COMM_NULL);
    MPI_Comm_dup(MPI_COMM_SELF, &self);
    CHECK(sum_over(self, rank) == rank);
    MPI_Comm_free(&self);
}

static void test_create(void)
{
    MPI_Group world, lower;
    MPI_Comm comm, grouped;
    int half = (size + 1) / 2, range[1][3] = {{0, half - 1, 1}}, result;

    context = "create";
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_range_incl(world, 1, range, &lower);
    MPI_Comm_create(MPI_COMM_WORLD, lower, &comm);
    CHECK((comm == MPI_COMM_NULL) == (rank >= half));
    if (rank < half) {
        MPI_Comm_create_group(MPI_COMM_WORLD, lower, 3, &grouped);
        MPI_Comm_compare(comm, grouped, &result);
        CHECK(result == MPI_CONGRUENT);
        CHECK(sum_over(comm, 1) == half && sum_over(grouped, 2) == 2 * half);
        MPI_Comm_free(&comm);
        MPI_Comm_free(&grouped);
    }
    MPI_Comm_create_from_group(world, "motet.test", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
    MPI_Comm_compare(MPI_COMM_WORLD, comm, &result);
    CHECK(result == MPI_CONGRUENT && sum_over(comm, 1) == size);
    MPI_Comm_free(&comm);
    if (rank >= half) { /* under the same string as others, on the other members only */
        int above[1][3] = {{half, size - 1, 1}};
        MPI_Group upper;
        MPI_Group_range_incl(world, 1, above, &upper);
        MPI_Comm_create_from_group(upper, "motet.part", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
        MPI_Group_free(&upper);
    } else {
        MPI_Comm_create_from_group(lower, "motet.part", MPI_INFO_NULL, MPI_ERRORS_RETURN, &comm);
    }
    CHECK(sum_over(comm, 1) == (rank < half ? half : size - half));
    MPI_Comm_free(&comm);
    MPI_Group_free(&world);
    MPI_Group_free(&lower);
}

/* More communicators than one word of the id table holds, freed out of order, twice. */
static void test_many(void)
{
    enum { N = 150 };
    MPI_Comm comms[N];

    context = "many communicators";
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < N; i++)
            MPI_Comm_dup(i > 0 && i % 3 == 0 ? comms[i - 1] : MPI_COMM_WORLD, &comms[i]);
        for (int i = 0; i < N; i += 10)
            CHECK(sum_over(comms[i], i) == i * size);
        for (int i = 0; i < N; i++)
            MPI_Comm_free(&comms[(i * 7 + round) % N]);
    }
}

static void test_idup(void)
{
    enum { N = 5 };
    MPI_Comm comms[N];
    MPI_Request requests[N];

    context = "idup";
    for (int i = 0; i < N; i++)
        MPI_Comm_idup(MPI_COMM_WORLD, &comms[i], &requests[i]);
    for (int i = 0; i < N; i++)
        MPI_Wait(&requests[(i + rank) % N], MPI_STATUS_IGNORE);
    for (int i = 0; i < N; i++)
        CHECK(sum_over(comms[i], i + 1) == (i + 1) * size);
    /* Interleaved with blocking creation on another communicator, in opposite order on odd
     * ranks. */
    MPI_Comm a, b;
    MPI_Request request[2];
    MPI_Comm_idup(rank % 2 ? comms[0] : comms[1], rank % 2 ? &a : &b, &request[0]);
    MPI_Comm_idup(rank % 2 ? comms[1] : comms[0], rank % 2 ? &b : &a, &request[1]);
    MPI_Wait(&request[0], MPI_STATUS_IGNORE);
    MPI_Wait(&request[1], MPI_STATUS_IGNORE);
    CHECK(sum_over(a, 1) == size && sum_over(b, 1) == size);
    MPI_Comm_free(&a);
    MPI_Comm_free(&b);
    for (int i = 0; i < N; i++)
        MPI_Comm_free(&comms[i]);
}

static void test_names(void)
{
    char name[MPI_MAX_OBJECT_NAME];
    int n;
    MPI_Comm comm;

    context = "names";
    MPI_Comm_get_name(MPI_COMM_WORLD, name, &n);
    CHECK(strcmp(name, "MPI_COMM_WORLD") == 0 && n == 14);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_get_name(comm, name, &n);
    CHECK(n == 0 && name[0] == '\0');
    MPI_Comm_set_name(comm, "a name");
    MPI_Comm_get_name(comm, name, &n);
    CHECK(n == 6 && strcmp(name, "a name") == 0);
    MPI_Comm_free(&comm);
}

/* ---- attributes ---- */

static int n_copied, n_deleted, refuse;
static int deleted[8];

static int copy_fn(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag)
{
    (void)comm;
    (void)keyval;
    CHECK(extra == &n_copied);
    n_copied++;
    *(void **)out = (char *)in + 1;
    *flag = 1;
    return MPI_SUCCESS;
}

static int delete_fn(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)comm;
    (void)value;
    (void)extra;
    if (refuse)
        return MPI_ERR_OTHER;
    deleted[n_deleted++ % 8] = keyval;
    return MPI_SUCCESS;
}

static void test_attributes(void)
{
    MPI_Comm comm, copy;
    int keys[3], first, flag, *predefined;
    char values[8];
    void *got;

    context = "attributes";
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_create_keyval(copy_fn, delete_fn, &keys[0], &n_copied);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_fn, &keys[1], NULL);
    MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &keys[2], NULL);
    MPI_Comm_get_attr(comm, keys[0], &got, &flag);
    CHECK(!flag);
    for (int i = 0; i < 3; i++)
        MPI_Comm_set_attr(comm, keys[i], &values[i]);
    MPI_Comm_dup(comm, &copy);
    CHECK(n_copied == 1);
    MPI_Comm_get_attr(copy, keys[0], &got, &flag);
    CHECK(flag && got == &values[1]);
    MPI_Comm_get_attr(copy, keys[1], &got, &flag);
    CHECK(!flag);
    MPI_Comm_get_attr(copy, keys[2], &got, &flag);
    CHECK(flag && got == &values[2]);
    MPI_Comm_set_attr(comm, keys[0], &values[5]);
    CHECK(n_deleted == 1 && deleted[0] == keys[0]);
    MPI_Comm_get_attr(comm, keys[0], &got, &flag);
    CHECK(flag && got == &values[5]);
    MPI_Comm_delete_attr(comm, keys[1]);
    CHECK(n_deleted == 2 && deleted[1] == keys[1]);
    first = keys[0];
    MPI_Comm_free_keyval(&keys[0]);
    CHECK(keys[0] == MPI_KEYVAL_INVALID);
    MPI_Comm_free(&copy);
    CHECK(n_deleted == 3 && deleted[2] == first);
    refuse = 1;
    /* MPICH raises this one on MPI_COMM_SELF, not on the communicator that the call is about. */
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK(MPI_Comm_free(&comm) != MPI_SUCCESS && comm != MPI_COMM_NULL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    refuse = 0;
    MPI_Comm_free(&comm);
    CHECK(comm == MPI_COMM_NULL);
    MPI_Comm_free_keyval(&keys[1]);
    MPI_Comm_free_keyval(&keys[2]);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &predefined, &flag);
    CHECK(flag && *predefined >= 32767);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &predefined, &flag);
    CHECK(!flag || *predefined >= size);
}

/* ---- errors ---- */

static int n_handled, last_error;
static MPI_Comm last_comm;

static void handler(MPI_Comm *comm, int *error, ...)
{
    n_handled++;
    last_error = *error;
    last_comm = *comm;
}

static void test_errors(void)
{
    MPI_Errhandler own, got;
    MPI_Comm comm, copy;
    int error_class, error_code, n, value = 0;
    char text[MPI_MAX_ERROR_STRING];

    context = "errors";
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_create_errhandler(handler, &own);
    MPI_Comm_set_errhandler(comm, own);
    MPI_Comm_get_errhandler(comm, &got);
    CHECK(got == own);
    MPI_Errhandler_free(&got);
    MPI_Errhandler_free(&own);
    CHECK(own == MPI_ERRHANDLER_NULL);
    int rc = MPI_Bcast(&value, 1, MPI_INT, size + 5, comm);
    MPI_Error_class(rc, &error_class);
    CHECK(error_class == MPI_ERR_ROOT && n_handled == 1 && last_comm == comm);
    MPI_Error_class(last_error, &error_class);
    CHECK(error_class == MPI_ERR_ROOT);
    MPI_Comm_dup(comm, &copy); /* the handler goes with it */
    MPI_Comm_call_errhandler(copy, MPI_ERR_OTHER);
    CHECK(n_handled == 2 && last_comm == copy && last_error == MPI_ERR_OTHER);
    MPI_Comm_free(&copy);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_get_errhandler(comm, &got);
    CHECK(got == MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&got);
    rc = MPI_Allreduce(&value, &value, 1, MPI_INT, MPI_OP_NULL, comm);
    MPI_Error_class(rc, &error_class);
    CHECK(error_class == MPI_ERR_OP);
    MPI_Comm_free(&comm);

    MPI_Add_error_class(&error_class);
    MPI_Add_error_code(error_class, &error_code);
    CHECK(error_class > MPI_ERR_LASTCODE && error_code > error_class);
    MPI_Error_string(error_code, text, &n);
    CHECK(n == 0);
    MPI_Add_error_string(error_code, "ran out of luck");
    MPI_Error_string(error_code, text, &n);
    CHECK(n == 15 && strcmp(text, "ran out of luck") == 0);
    MPI_Error_class(error_code, &n);
    CHECK(n == error_class);
    MPI_Error_string(MPI_ERR_TRUNCATE, text, &n);
    CHECK(n > 0 && n == (int)strlen(text));
    MPI_Remove_error_string(error_code);
    MPI_Remove_error_code(error_code);
    MPI_Remove_error_class(error_class);
}

/* ---- info ---- */

static void test_info(void)
{
    MPI_Info info, copy;
    char value[MPI_MAX_INFO_VAL + 1], key[MPI_MAX_INFO_KEY];
    int n, flag;

    context = "info";
    MPI_Info_create(&info);
    MPI_Info_set(info, "one", "1");
    MPI_Info_set(info, "two", "2");
    MPI_Info_set(info, "three", "a longer value");
    MPI_Info_set(info, "two", "22");
    MPI_Info_get_nkeys(info, &n);
    CHECK(n == 3);
    MPI_Info_get_nthkey(info, 1, key);
    CHECK(strcmp(key, "two") == 0);
    n = 7;
    MPI_Info_get_string(info, "three", &n, value, &flag);
    CHECK(flag && n == 15 && strcmp(value, "a long") == 0);
    n = 0;
    MPI_Info_get_string(info, "two", &n, NULL, &flag);
    CHECK(flag && n == 3);
    MPI_Info_get_string(info, "four", &n, value, &flag);
    CHECK(!flag);
    MPI_Info_dup(info, &copy);
    MPI_Info_delete(info, "one");
    MPI_Info_get_nkeys(info, &n);
    CHECK(n == 2);
    MPI_Info_get_nkeys(copy, &n);
    CHECK(n == 3);
    MPI_Info_free(&info);
    CHECK(info == MPI_INFO_NULL);

    MPI_Comm comm, other;
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, copy, &comm);
    MPI_Info_free(&copy);
    MPI_Comm_dup(comm, &other);
    MPI_Comm_get_info(other, &info);
    MPI_Info_free(&info);
    MPI_Comm_free(&other);
    MPI_Comm_free(&comm);
    n = sizeof value;
    MPI_Info_get_string(MPI_INFO_ENV, "maxprocs", &n, value, &flag);
    CHECK(!flag || atoi(value) == size);
}

static int n_at_end, end_order[2];

static int at_end(MPI_Comm comm, int keyval, void *value, void *extra)
{
    (void)keyval;
    (void)extra;
    int finalized = 1;
    MPI_Finalized(&finalized);
    if (comm == MPI_COMM_SELF && !finalized)
        end_order[n_at_end++ % 2] = *(int *)value;
    return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
    static int one = 1, two = 2;
    int keys[2], flag, finalized, level;

    MPI_Initialized(&flag);
    MPI_Init(&argc, &argv);
    CHECK(!flag);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    test_groups();
    test_split();
    test_create();
    test_many();
    test_idup();
    test_names();
    test_attributes();
    test_errors();
    test_info();
    context = "environment";
    MPI_Initialized(&flag);
    MPI_Query_thread(&level);
    CHECK(flag && level >= MPI_THREAD_SINGLE);
    double t0 = MPI_Wtime();
    CHECK(MPI_Wtime() >= t0 && MPI_Wtick() > 0 && MPI_Wtick() < 0.01);
    int all = n_failed;
    MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_end, &keys[0], NULL);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_end, &keys[1], NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, keys[0], &one);
    MPI_Comm_set_attr(MPI_COMM_SELF, keys[1], &two);
    MPI_Comm_free_keyval(&keys[0]);
    MPI_Comm_free_keyval(&keys[1]);
    MPI_Finalize();
    MPI_Finalized(&finalized);
    if (!finalized || n_at_end != 2 || end_order[0] != 2 || end_order[1] != 1) {
        printf("rank %d: callbacks at the end: %d, order %d %d\n", rank, n_at_end, end_order[0],
               end_order[1]);
        all = 1;
    }
    return all != 0;
}
