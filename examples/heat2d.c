/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The heat equation on a square plate, explicit finite differences. The plate is cut into a grid of
 * rectangles, one per rank; in each step a rank exchanges the rim of its rectangle with its four
 * neighbours (rows as they lie in memory, columns by a vector datatype), computes the inside while
 * the rims travel, then the rest. At the end rank 0 gathers the plate and compares it with the same
 * steps done by itself alone.
 *
 *     mpicc -O2 -o heat2d heat2d.c -lm && mpiexec -n 4 ./heat2d [points a side] [steps]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

enum { UP, DOWN, LEFT, RIGHT, N_SIDES };

/* A rectangle of the plate with a rim of one point on each side, row after row. */
struct field {
    int rows, columns; /* without the rim */
    double *now, *next;
};

static const double DIFFUSION = 0.2; /* stable below 0.25 */

static int at(const struct field *f, int row, int column)
{
    return (row + 1) * (f->columns + 2) + column + 1;
}

/* Start: a hot disc off the middle on a cold plate; the border of the plate stays at zero. */
static double start_value(int row, int column, int n)
{
    double y = (row + 0.5) / n - 0.4, x = (column + 0.5) / n - 0.55;
    return x * x + y * y < 0.04 ? 100.0 : 0.0;
}

static struct field field_new(int rows, int columns, int first_row, int first_column, int n)
{
    struct field f = {.rows = rows, .columns = columns};
    size_t n_points = (size_t)(rows + 2) * (size_t)(columns + 2);
    f.now = calloc(n_points, sizeof *f.now);
    f.next = calloc(n_points, sizeof *f.next);
    if (!f.now || !f.next) {
        fprintf(stderr, "heat2d: no memory for %d x %d points\n", rows, columns);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < columns; c++)
            f.now[at(&f, r, c)] = start_value(first_row + r, first_column + c, n);
    return f;
}

static void field_free(struct field *f)
{
    free(f->now);
    free(f->next);
}

/* One step of the points in rows [r0, r1) and columns [c0, c1). */
static void compute(struct field *f, int r0, int r1, int c0, int c1)
{
    int width = f->columns + 2;
    for (int r = r0; r < r1; r++) {
        for (int c = c0; c < c1; c++) {
            const double *p = &f->now[at(f, r, c)];
            f->next[at(f, r, c)] =
                p[0] + DIFFUSION * (p[-width] + p[width] + p[-1] + p[1] - 4.0 * p[0]);
        }
    }
}

static void swap(struct field *f)
{
    double *old = f->now;
    f->now = f->next;
    f->next = old;
}

/* One step of the whole rectangle, with the rims of the neighbours. */
static void step(struct field *f, const int neighbour[N_SIDES], MPI_Datatype column)
{
    MPI_Request request[2 * N_SIDES];
    int rows = f->rows, columns = f->columns;
    double *rim[N_SIDES] = {&f->now[at(f, -1, 0)], &f->now[at(f, rows, 0)], &f->now[at(f, 0, -1)],
                            &f->now[at(f, 0, columns)]};
    double *edge[N_SIDES] = {&f->now[at(f, 0, 0)], &f->now[at(f, rows - 1, 0)],
                             &f->now[at(f, 0, 0)], &f->now[at(f, 0, columns - 1)]};

    /* A message is tagged by the side of the plate it travels to: what I get from above was sent
     * downwards. */
    for (int side = 0; side < N_SIDES; side++) {
        int is_row = side == UP || side == DOWN;
        int count = is_row ? columns : 1;
        MPI_Datatype type = is_row ? MPI_DOUBLE : column;
        MPI_Irecv(rim[side], count, type, neighbour[side], side ^ 1, MPI_COMM_WORLD,
                  &request[side]);
        MPI_Isend(edge[side], count, type, neighbour[side], side, MPI_COMM_WORLD,
                  &request[N_SIDES + side]);
    }
    compute(f, 1, rows - 1, 1, columns - 1);
    MPI_Waitall(2 * N_SIDES, request, MPI_STATUSES_IGNORE);
    compute(f, 0, 1, 0, columns);
    if (rows > 1)
        compute(f, rows - 1, rows, 0, columns);
    compute(f, 1, rows - 1, 0, 1);
    if (columns > 1)
        compute(f, 1, rows - 1, columns - 1, columns);
    swap(f);
}

/* First point of part `i` of `n` points in `parts`. */
static int part_start(int i, int parts, int n)
{
    return (int)((long long)n * i / parts);
}

/* Collects the plate on rank 0: the rectangles as one contiguous message each. */
static void gather(const struct field *f, int rank, int down, int across, int n, double *plate)
{
    double *packed = malloc(sizeof *packed * (size_t)f->rows * (size_t)f->columns);
    if (!packed)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int r = 0; r < f->rows; r++)
        memcpy(packed + (size_t)r * (size_t)f->columns, &f->now[at(f, r, 0)],
               sizeof *packed * (size_t)f->columns);
    if (rank != 0) {
        MPI_Send(packed, f->rows * f->columns, MPI_DOUBLE, 0, N_SIDES, MPI_COMM_WORLD);
        free(packed);
        return;
    }
    for (int source = 0; source < down * across; source++) {
        int r0 = part_start(source / across, down, n),
            r1 = part_start(source / across + 1, down, n);
        int c0 = part_start(source % across, across, n),
            c1 = part_start(source % across + 1, across, n);
        int n_points = (r1 - r0) * (c1 - c0);
        double *from = packed;
        if (source != 0) {
            from = malloc(sizeof *from * (size_t)n_points);
            if (!from)
                MPI_Abort(MPI_COMM_WORLD, 1);
            MPI_Recv(from, n_points, MPI_DOUBLE, source, N_SIDES, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        }
        for (int r = r0; r < r1; r++)
            memcpy(plate + (size_t)r * (size_t)n + c0, from + (size_t)(r - r0) * (size_t)(c1 - c0),
                   sizeof *from * (size_t)(c1 - c0));
        if (from != packed)
            free(from);
    }
    free(packed);
}

/* The largest difference between the gathered plate and the same steps on one rank. */
static double compare_with_serial(const double *plate, int n, int n_steps, double *ret_heat)
{
    struct field whole = field_new(n, n, 0, 0, n);
    for (int i = 0; i < n_steps; i++) {
        compute(&whole, 0, n, 0, n);
        swap(&whole);
    }
    double worst = 0.0, heat = 0.0;
    for (int r = 0; r < n; r++) {
        for (int c = 0; c < n; c++) {
            double value = plate[(size_t)r * (size_t)n + c];
            double difference = fabs(value - whole.now[at(&whole, r, c)]);
            worst = difference > worst || isnan(difference) ? difference : worst;
            heat += value;
        }
    }
    field_free(&whole);
    *ret_heat = heat;
    return worst;
}

int main(int argc, char **argv)
{
    int rank, size;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int n = argc > 1 ? atoi(argv[1]) : 256, n_steps = argc > 2 ? atoi(argv[2]) : 200;

    int down = 1; /* the squarest grid of ranks: the largest divisor up to the root */
    for (int i = 1; i * i <= size; i++)
        down = size % i == 0 ? i : down;
    int across = size / down, row = rank / across, column = rank % across;
    if (n < 2 * across || n_steps < 1) {
        if (rank == 0)
            fprintf(stderr, "heat2d: at least %d points a side and one step for %d ranks\n",
                    2 * across, size);
        MPI_Finalize();
        return 2;
    }
    int neighbour[N_SIDES] = {
        row > 0 ? rank - across : MPI_PROC_NULL, row < down - 1 ? rank + across : MPI_PROC_NULL,
        column > 0 ? rank - 1 : MPI_PROC_NULL, column < across - 1 ? rank + 1 : MPI_PROC_NULL};
    int r0 = part_start(row, down, n), r1 = part_start(row + 1, down, n);
    int c0 = part_start(column, across, n), c1 = part_start(column + 1, across, n);
    struct field f = field_new(r1 - r0, c1 - c0, r0, c0, n);

    MPI_Datatype column_type;
    MPI_Type_vector(f.rows, 1, f.columns + 2, MPI_DOUBLE, &column_type);
    MPI_Type_commit(&column_type);
    for (int i = 0; i < n_steps; i++)
        step(&f, neighbour, column_type);
    MPI_Type_free(&column_type);

    /* The heat of all rectangles, by a reduction, must be that of the gathered plate. */
    double own = 0.0, total = 0.0;
    for (int r = 0; r < f.rows; r++)
        for (int c = 0; c < f.columns; c++)
            own += f.now[at(&f, r, c)];
    MPI_Allreduce(&own, &total, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);

    int failed = 0;
    double *plate = rank == 0 ? calloc((size_t)n * (size_t)n, sizeof *plate) : NULL;
    gather(&f, rank, down, across, n, plate);
    if (rank == 0) {
        double heat, worst = compare_with_serial(plate, n, n_steps, &heat);
        failed = !(worst <= 1e-12) || !(fabs(heat - total) <= 1e-9 * fabs(heat));
        printf("heat2d: %d ranks as %d x %d, %d x %d points, %d steps, heat %.6f, difference to "
               "serial %.1e: %s\n",
               size, down, across, n, n, n_steps, heat, worst, failed ? "FAILED" : "ok");
    }
    MPI_Bcast(&failed, 1, MPI_INT, 0, MPI_COMM_WORLD);
    free(plate);
    field_free(&f);
    MPI_Finalize();
    return failed;
}
