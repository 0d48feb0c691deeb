/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls every MPI function with wrong arguments, each function in a process of its own: fuzz [SEED]
 * [FUNCTION].
 *
 * First one wrong argument at a time, in all variants of its kind: the call must return an error
 * class that makes sense. Then several at random. Nothing may crash or hang, whatever is passed:
 * null handles, freed handles, numbers out of range, null pointers where data are needed. The calls
 * come from the description of the interface (fuzz_calls.py). Uses mpi.h alone.
 */
#include "tests/abi/fuzz.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define RANDOM_ROUNDS 100
#define LIMIT_S       60
#define PLACE_BYTES   16384

char fuzz_buffer[PLACE_BYTES];
const char fuzz_text[] = "motet";

static uintptr_t good[FUZZ_KINDS], freed[FUZZ_KINDS];
static int comm_keyval, type_keyval, win_keyval;
static char fuzz_window[4096];

static const uintptr_t null_handles[FUZZ_KINDS] = {
    [FUZZ_COMM] = (uintptr_t)MPI_COMM_NULL,
    [FUZZ_GROUP] = (uintptr_t)MPI_GROUP_NULL,
    [FUZZ_TYPE] = (uintptr_t)MPI_DATATYPE_NULL,
    [FUZZ_OP] = (uintptr_t)MPI_OP_NULL,
    [FUZZ_INFO] = (uintptr_t)MPI_INFO_NULL,
    [FUZZ_ERRHANDLER] = (uintptr_t)MPI_ERRHANDLER_NULL,
    [FUZZ_REQUEST] = (uintptr_t)MPI_REQUEST_NULL,
    [FUZZ_MESSAGE] = (uintptr_t)MPI_MESSAGE_NULL,
    [FUZZ_WIN] = (uintptr_t)MPI_WIN_NULL,
    [FUZZ_FILE] = (uintptr_t)MPI_FILE_NULL,
    [FUZZ_SESSION] = (uintptr_t)MPI_SESSION_NULL,
};

/* ---- arguments ---- */

/* Places for the arguments of one call; the next call takes them anew. */
static union {
    char bytes[PLACE_BYTES];
    int64_t words[PLACE_BYTES / 8];
} places[FUZZ_MAX_ARGUMENTS];
static int n_places;

void *fuzz_place(void)
{
    return memset(places[n_places++ % FUZZ_MAX_ARGUMENTS].bytes, 0, PLACE_BYTES);
}

void *fuzz_handle_at(uintptr_t handle)
{
    uintptr_t *place = fuzz_place();
    *place = handle;
    return place;
}

void *fuzz_handle_place(void)
{
    return fuzz_place();
}

void *fuzz_number_at(int64_t value, size_t bytes)
{
    return memcpy(fuzz_place(), &value, bytes);
}

char *fuzz_text_place(void)
{
    return fuzz_place();
}

MPI_Status *fuzz_status(void)
{
    return fuzz_place();
}

void *fuzz_counts(int variant, size_t element_bytes)
{
    char *counts = fuzz_place();
    const int64_t value = variant == 1 ? -1 : 1;
    memcpy(counts, &value, element_bytes);
    return variant == 2 ? NULL : counts;
}

int fuzz_function(void)
{
    return MPI_SUCCESS;
}

int fuzz_keyval(enum fuzz_kind kind)
{
    return kind == FUZZ_TYPE ? type_keyval : kind == FUZZ_WIN ? win_keyval : comm_keyval;
}

static uintptr_t fresh_handle(enum fuzz_kind kind)
{
    static int number;
    MPI_Comm comm;
    MPI_Group group;
    MPI_Datatype type;
    MPI_Op op;
    MPI_Info info;
    MPI_Errhandler handler;
    MPI_Request request;
    MPI_Message message;
    MPI_Session session;
    MPI_Win win;
    MPI_File file;
    switch (kind) {
    case FUZZ_COMM:
        MPI_Comm_dup(MPI_COMM_SELF, &comm);
        MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
        return (uintptr_t)comm;
    case FUZZ_GROUP:
        MPI_Comm_group(MPI_COMM_WORLD, &group);
        return (uintptr_t)group;
    case FUZZ_TYPE:
        MPI_Type_contiguous(2, MPI_INT, &type);
        MPI_Type_commit(&type);
        return (uintptr_t)type;
    case FUZZ_OP:
        MPI_Op_create((MPI_User_function *)(uintptr_t)fuzz_function, 1, &op);
        return (uintptr_t)op;
    case FUZZ_INFO:
        MPI_Info_create(&info);
        MPI_Info_set(info, fuzz_text, "a value");
        return (uintptr_t)info;
    case FUZZ_ERRHANDLER:
        MPI_Comm_create_errhandler((MPI_Comm_errhandler_function *)(uintptr_t)fuzz_function,
                                   &handler);
        return (uintptr_t)handler;
    case FUZZ_REQUEST: /* a persistent one, which nobody has started: waits for nothing */
        MPI_Send_init(&number, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_SELF, &request);
        return (uintptr_t)request;
    case FUZZ_MESSAGE:
        MPI_Isend(&number, 1, MPI_INT, 0, 77, MPI_COMM_SELF, &request);
        MPI_Request_free(&request);
        MPI_Mprobe(0, 77, MPI_COMM_SELF, &message, MPI_STATUS_IGNORE);
        return (uintptr_t)message;
    case FUZZ_SESSION:
        MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
        return (uintptr_t)session;
    case FUZZ_WIN: /* of its own, so that nobody else has to do his part */
        MPI_Win_create(fuzz_window, sizeof fuzz_window, 1, MPI_INFO_NULL, MPI_COMM_SELF, &win);
        MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
        return (uintptr_t)win;
    case FUZZ_FILE: /* takes everything and keeps nothing, sizes included */
        MPI_File_open(MPI_COMM_SELF, "/dev/null", MPI_MODE_RDWR, MPI_INFO_NULL, &file);
        return (uintptr_t)file;
    default:
        return 0;
    }
}

/* By the library's own functions: their own processes find out whether those work. */
static void free_handle(enum fuzz_kind kind, uintptr_t handle)
{
    static int number;
    switch (kind) {
    case FUZZ_COMM:
        MPI_Comm_free(&(MPI_Comm){(MPI_Comm)handle});
        break;
    case FUZZ_GROUP:
        MPI_Group_free(&(MPI_Group){(MPI_Group)handle});
        break;
    case FUZZ_TYPE:
        MPI_Type_free(&(MPI_Datatype){(MPI_Datatype)handle});
        break;
    case FUZZ_OP:
        MPI_Op_free(&(MPI_Op){(MPI_Op)handle});
        break;
    case FUZZ_INFO:
        MPI_Info_free(&(MPI_Info){(MPI_Info)handle});
        break;
    case FUZZ_ERRHANDLER:
        MPI_Errhandler_free(&(MPI_Errhandler){(MPI_Errhandler)handle});
        break;
    case FUZZ_REQUEST:
        MPI_Request_free(&(MPI_Request){(MPI_Request)handle});
        break;
    case FUZZ_MESSAGE:
        MPI_Mrecv(&number, 1, MPI_INT, &(MPI_Message){(MPI_Message)handle}, MPI_STATUS_IGNORE);
        break;
    case FUZZ_WIN:
        MPI_Win_free(&(MPI_Win){(MPI_Win)handle});
        break;
    case FUZZ_FILE:
        MPI_File_close(&(MPI_File){(MPI_File)handle});
        break;
    case FUZZ_SESSION:
        MPI_Session_finalize(&(MPI_Session){(MPI_Session)handle});
        break;
    default:
        break;
    }
}

uintptr_t fuzz_handle(enum fuzz_kind kind, int variant, bool fresh)
{
    switch (variant) {
    case 0:
        return fresh ? fresh_handle(kind) : good[kind];
    case 1:
        return 0;
    case 2:
        return (uintptr_t)0xdeadbeefcafe1234;
    case 3:
        return UINTPTR_MAX;
    case 4:
        return kind == FUZZ_TYPE ? (uintptr_t)MPI_COMM_WORLD : (uintptr_t)MPI_INT;
    case 5:
        return freed[kind];
    default:
        return null_handles[kind];
    }
}

/* ---- calls ---- */

/* What the child does now, for the parent to tell when it crashes. */
struct progress {
    int variants[FUZZ_MAX_ARGUMENTS];
    int n_calls;
    char complaint[256];
};
static struct progress *progress;

static int call(const struct fuzz_function *f, const int *variants)
{
    memcpy(progress->variants, variants, sizeof progress->variants);
    progress->n_calls++;
    n_places = 0;
    return f->call(variants);
}

static bool makes_sense(const struct fuzz_argument *a, int err)
{
    for (int i = 0; i < 8 && a->classes[i]; i++)
        if (a->classes[i] == err)
            return true;
    return false;
}

static bool has_variants(const struct fuzz_function *f)
{
    for (int a = 0; a < f->n_arguments; a++)
        if (f->arguments[a].n_bad + f->arguments[a].n_wild > 0)
            return true;
    return false;
}

static void complain(int err, const char *what)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    MPI_Error_string(err, text, &length);
    snprintf(progress->complaint, sizeof progress->complaint, "%s: %.200s", what, text);
    MPI_Finalize();
    exit(1);
}

static void try_one_by_one(const struct fuzz_function *f)
{
    if (f->may_succeed && !has_variants(f))
        call(f, (int[FUZZ_MAX_ARGUMENTS]){0});
    for (int a = 0; a < f->n_arguments; a++) {
        const struct fuzz_argument *argument = &f->arguments[a];
        for (int variant = 1; variant <= argument->n_bad + argument->n_wild; variant++) {
            int variants[FUZZ_MAX_ARGUMENTS] = {0};
            variants[a] = variant;
            if (variant > argument->n_bad && !f->may_succeed)
                continue;
            int err = call(f, variants), class = err;
            if (variant > argument->n_bad)
                continue;
            if (err < MPI_T_ERR_CANNOT_INIT)
                MPI_Error_class(err, &class);
            if (!makes_sense(argument, class))
                complain(err, err ? "wrong error class" : "not refused");
        }
    }
}

static uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void try_at_random(const struct fuzz_function *f, uint64_t seed)
{
    for (int round = 0; round < RANDOM_ROUNDS; round++) {
        int variants[FUZZ_MAX_ARGUMENTS] = {0};
        bool any_bad = false;
        for (int a = 0; a < f->n_arguments; a++) {
            const struct fuzz_argument *argument = &f->arguments[a];
            int n = argument->n_bad + argument->n_wild;
            if (n > 0 && next_random(&seed) % 3 == 0) {
                variants[a] = 1 + (int)(next_random(&seed) % (uint64_t)n);
                any_bad |= variants[a] <= argument->n_bad;
            }
        }
        if (!any_bad)
            continue;
        int err = call(f, variants);
        /* Others may make it count for nothing: no data, no matter where they lie. Refused or not,
         * it returns. */
        (void)err;
    }
}

/* Communicators of one process with each kind of topology: what is wrong only there is found
 * there. */
static MPI_Comm cart_comm(void)
{
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Cart_create(MPI_COMM_WORLD, 2, (int[]){1, 1}, (int[]){1, 1}, 0, &comm);
    return comm;
}

static MPI_Comm graph_comm(void)
{
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Graph_create(MPI_COMM_WORLD, 1, (int[]){1}, (int[]){0}, 0, &comm);
    return comm;
}

static MPI_Comm dist_graph_comm(void)
{
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, (int[]){0}, MPI_UNWEIGHTED, 1, (int[]){0},
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &comm);
    return comm;
}

static void child(const struct fuzz_function *f, uint64_t seed)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(LIMIT_S);
    int level;
    MPI_Init(NULL, NULL);
    MPI_T_init_thread(MPI_THREAD_SINGLE, &level);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    for (int kind = 0; kind < FUZZ_KINDS; kind++) {
        freed[kind] = fresh_handle((enum fuzz_kind)kind);
        free_handle((enum fuzz_kind)kind, freed[kind]);
        if (freed[kind] == null_handles[kind])
            freed[kind] = (uintptr_t)0x1234567;
    }
    for (int kind = 0; kind < FUZZ_KINDS; kind++)
        good[kind] = fresh_handle((enum fuzz_kind)kind);
    good[FUZZ_TYPE] = (uintptr_t)MPI_INT;
    good[FUZZ_OP] = (uintptr_t)MPI_SUM;
    good[FUZZ_ERRHANDLER] = (uintptr_t)MPI_ERRORS_RETURN;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &comm_keyval, NULL);
    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &type_keyval, NULL);
    MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, &win_keyval, NULL);
    MPI_Comm worlds[] = {MPI_COMM_WORLD, cart_comm(), graph_comm(), dist_graph_comm()};
    for (size_t i = 0; i < sizeof worlds / sizeof worlds[0]; i++) {
        good[FUZZ_COMM] = (uintptr_t)worlds[i];
        try_one_by_one(f);
        try_at_random(f, seed + i);
    }
    MPI_Finalize();
    exit(0);
}

/* ---- the parent ---- */

static void report(const struct fuzz_function *f, int status)
{
    printf("%s: ", f->name);
    if (WIFSIGNALED(status))
        printf("%s", WTERMSIG(status) == SIGALRM ? "hangs" : strsignal(WTERMSIG(status)));
    else if (progress->complaint[0])
        printf("%s", progress->complaint);
    else
        printf("exit status %d", WEXITSTATUS(status));
    printf(" after %d calls; variants:", progress->n_calls);
    for (int a = 0; a < f->n_arguments; a++)
        if (progress->variants[a])
            printf(" %s=%d", f->arguments[a].name, progress->variants[a]);
    printf("\n");
}

int main(int argc, char **argv)
{
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
    int n_bad = 0, n_calls = 0, n_functions = 0;
    progress =
        mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (progress == MAP_FAILED) {
        perror("mmap");
        return 1;
    }
    for (int i = 0; i < fuzz_n_functions; i++) {
        const struct fuzz_function *f = &fuzz_functions[i];
        int status;
        if (argc > 2 && strcmp(argv[2], f->name) != 0)
            continue;
        memset(progress, 0, sizeof *progress);
        fflush(stdout);
        pid_t pid = fork();
        if (pid == 0)
            child(f, seed * 2654435761u + (uint64_t)i + 1);
        if (pid < 0 || waitpid(pid, &status, 0) != pid) {
            perror("fork");
            return 1;
        }
        n_functions++;
        n_calls += progress->n_calls;
        if (status) {
            n_bad++;
            report(f, status);
        }
    }
    printf("seed %llu: %d functions, %d calls, %d functions failed\n", (unsigned long long)seed,
           n_functions, n_calls, n_bad);
    return n_bad || !n_functions;
}
