/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The layers below the collectives, replaced for tests: job, progress and point-to-point through a
 * mailbox in memory.
 *
 *     PROGRAM -n RANKS [-N NODES] [-t NETWORKS] [-p PLACEMENT] [-s SEED] [arguments of the test]
 *
 * Forks RANKS processes that run the test program's main (compiled as test_main) with the real MPI
 * layers on top of this file. What real networks do rarely, this does all the time, drawn from the
 * seed, which is printed when a run fails: a send leaves only in a later progress call, so that a
 * buffer touched too early shows; sends may complete only when they are received, so that a missing
 * receive shows as a deadlock; polls do nothing for a while. Ranks are spread over NODES nodes:
 * PLACEMENT t in turn, r in rows, d drawn from the seed, by default one of the first two by the
 * seed. NETWORKS says which nodes are on which networks (fake_networks.h). With
 * MOTET_TEST_ALGORITHM="family name" a rank fails that never took it. A rank that fails or hangs
 * for MOTET_TEST_TIMEOUT (FAKE_TIMEOUT_S) seconds ends the run.
 */
#include "fake_networks.h"

#include "client/coll/choice/name.h"
#include "client/coll/choice/select.h"
#include "client/object/err.h"
#include "client/object/group.h"
#include "client/object/handle.h"
#include "client/p2p/p2p.h"
#include "client/process/job.h"
#include "client/progress/async.h"
#include "client/progress/progress.h"
#include "client/progress/request.h"
#include "client/progress/sleepers.h"
#include "client/progress/status.h"
#include "client/transport/end.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FAKE_TIMEOUT_S 100
#define MAX_RANKS      64
#define ARENA_BYTES    (1ull << 30) /* address space; touched as needed */
#define N_CLASSES      32           /* of block sizes, powers of two */

int test_main(int argc, char **argv);

/* ---- shared memory ---- */

struct message {
    struct message *next; /* the arena lies at the same address in all ranks */
    uint32_t context;
    int source, tag, size_class;
    size_t n_bytes;
    _Atomic int *taken; /* of a synchronous send: set when it is received */
    unsigned char bytes[];
};

struct box {
    pthread_mutex_t lock;
    pthread_cond_t news;
    struct message *first, **last;
};

struct shared {
    pthread_mutex_t lock;
    struct message *free[N_CLASSES];
    size_t used;
    struct box boxes[MAX_RANKS];
    _Alignas(64) unsigned char arena[];
};

static struct shared *shared;
static int n_ranks = 1, n_nodes = 1, own_rank;
static unsigned seed = 1, start_seed;
static char placement;
static bool synchronous;

static unsigned draw(unsigned below)
{
    seed = seed * 1103515245u + 12345u;
    return (seed >> 16) % below;
}

static void *arena_take(size_t n, int size_class)
{
    pthread_mutex_lock(&shared->lock);
    struct message *m = shared->free[size_class];
    if (m) {
        shared->free[size_class] = m->next;
    } else if (shared->used + n <= ARENA_BYTES) {
        m = (struct message *)(shared->arena + shared->used);
        shared->used += (n + 63) & ~(size_t)63;
    }
    pthread_mutex_unlock(&shared->lock);
    if (!m)
        abort();
    return m;
}

static struct message *message_new(size_t n_bytes)
{
    int size_class = 7;
    while ((1ull << size_class) < sizeof(struct message) + n_bytes)
        size_class++;
    struct message *m = arena_take(1ull << size_class, size_class);
    m->size_class = size_class;
    m->n_bytes = n_bytes;
    m->next = NULL;
    return m;
}

static void message_free(struct message *m)
{
    pthread_mutex_lock(&shared->lock);
    m->next = shared->free[m->size_class];
    shared->free[m->size_class] = m;
    pthread_mutex_unlock(&shared->lock);
}

static void init_lock(pthread_mutex_t *lock)
{
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    pthread_mutex_init(lock, &attr);
}

static void make_shared(void)
{
    shared = mmap(NULL, sizeof *shared + ARENA_BYTES, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (shared == MAP_FAILED)
        abort();
    init_lock(&shared->lock);
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    for (int i = 0; i < n_ranks; i++) {
        init_lock(&shared->boxes[i].lock);
        pthread_cond_init(&shared->boxes[i].news, &attr);
        shared->boxes[i].last = &shared->boxes[i].first;
    }
}

/* ---- job ---- */

int job_attach(void)
{
    return 0;
}

void job_detach(void)
{
}

_Noreturn void end_job(int code, const char *text)
{
    fprintf(stderr, "rank %d: abort: %s\n", own_rank, text ? text : "");
    _exit(code ? code : 1);
}

_Noreturn void end_no_memory(const char *function, const char *what, size_t n_bytes)
{
    fprintf(stderr, "rank %d: %s: no memory for %s, %zu bytes\n", own_rank, function, what,
            n_bytes);
    end_job(1, "no memory");
}

bool job_attached(void)
{
    return true;
}

int job_size(void)
{
    return n_ranks;
}

int job_rank(void)
{
    return own_rank;
}

int job_n_nodes(void)
{
    return n_nodes;
}

int job_node_of(int world_rank)
{
    switch (placement) {
    case 'r':
        return world_rank * n_nodes / n_ranks;
    case 'd':
        return (int)((start_seed * 2654435761u ^ ((unsigned)world_rank + 1) * 2246822519u) >> 7) %
               n_nodes;
    default:
        return world_rank % n_nodes;
    }
}

int job_local_rank_of(int world_rank)
{
    return world_rank; /* asked for with cells only */
}

bool job_is_local(int world_rank)
{
    return job_node_of(world_rank) == job_node_of(job_rank());
}

const char *job_node_name(int node)
{
    (void)node;
    return "fake";
}

int job_n_networks(void)
{
    return fake_networks_n();
}

const char *job_network_name(int network)
{
    (void)network;
    return "fake";
}

bool job_on_network(int node, int network)
{
    return fake_networks_has(network, node);
}

int job_network_distance(int from, int to)
{
    return fake_networks_distance(from, to);
}

uint64_t job_node_id(int node)
{
    return (uint64_t)node + 1;
}

uint64_t job_id(void)
{
    return 0;
}

/* ---- point-to-point ---- */

struct fake_request {
    struct request request;
    struct fake_request *next;
    struct datatype *type;
    const void *send_buf;
    void *recv_buf;
    MPI_Count count;
    int peer, tag; /* world rank for sends, rank in the communicator for receives */
    int own_rank;  /* as the communicator knows it */
    uint32_t context;
    _Atomic int *taken; /* of a synchronous send */
};

static struct fake_request *unsent, **unsent_end = &unsent; /* in order */
static struct fake_request *untaken;                        /* synchronous sends that left */
static struct fake_request *posted, **posted_end = &posted;
static struct message *unexpected, **unexpected_end = &unexpected;
static _Atomic int *flags; /* shared; one per send, by turns */

static void request_destroy(struct request *r)
{
    struct fake_request *f = (struct fake_request *)r;
    type_unref(f->type);
    if (r->comm)
        comm_unref(r->comm);
    free(f);
}

static const struct request_ops fake_ops = {.destroy = request_destroy};

static struct fake_request *make_request(const struct buffer *buffer,
                                         const struct envelope *envelope)
{
    struct fake_request *f = calloc(1, sizeof *f);
    if (!f)
        abort();
    request_init(&f->request, &fake_ops, envelope->comm, false);
    comm_ref(envelope->comm);
    type_ref(buffer->type);
    f->type = buffer->type;
    f->count = buffer->count;
    f->tag = envelope->tag;
    f->context = envelope->comm->context_id + envelope->context;
    f->own_rank = envelope->comm->rank;
    return f;
}

static void put(struct box *box, struct message *m)
{
    pthread_mutex_lock(&box->lock);
    *box->last = m;
    box->last = &m->next;
    pthread_cond_signal(&box->news);
    pthread_mutex_unlock(&box->lock);
}

/* Packs and delivers the oldest unsent message. */
static void send_oldest(void)
{
    struct fake_request *f = unsent;
    unsent = f->next;
    if (!unsent)
        unsent_end = &unsent;
    size_t n = (size_t)(f->count * f->type->size);
    struct message *m = message_new(n);
    struct type_cursor cursor;
    type_cursor_init(&cursor, f->type, f->count, f->send_buf);
    if (type_cursor_pack(&cursor, m->bytes, n) != n)
        abort();
    m->context = f->context;
    m->source = f->own_rank;
    m->tag = f->tag;
    m->taken = NULL;
    if (synchronous) {
        static unsigned turn;
        f->taken = m->taken = &flags[(turn++ % 1024) * MAX_RANKS + (unsigned)own_rank];
        atomic_store(f->taken, 0);
        f->next = untaken;
        untaken = f;
    }
    int peer = f->peer;
    if (!synchronous)
        request_complete(&f->request, MPI_SUCCESS);
    fake_networks_count(job_node_of(own_rank), job_node_of(peer), (long)n);
    put(&shared->boxes[peer], m);
}

static bool matches(const struct fake_request *f, const struct message *m)
{
    return f->context == m->context && (f->peer == m->source || f->peer == MPI_ANY_SOURCE) &&
           (f->tag == m->tag || f->tag == MPI_ANY_TAG);
}

static void receive(struct fake_request *f, struct message *m)
{
    struct type_cursor cursor;
    type_cursor_init(&cursor, f->type, f->count, f->recv_buf);
    size_t n = type_cursor_unpack(&cursor, m->bytes, m->n_bytes);
    int err = n < m->n_bytes ? err_set(MPI_ERR_TRUNCATE, "%zu bytes into %zu", m->n_bytes, n)
                             : MPI_SUCCESS;
    f->request.source = m->source;
    f->request.tag = m->tag;
    f->request.bytes = (MPI_Count)n;
    if (m->taken)
        atomic_store(m->taken, 1);
    message_free(m);
    request_complete(&f->request, err);
}

static void arrive(struct message *m)
{
    for (struct fake_request **at = &posted; *at; at = &(*at)->next) {
        struct fake_request *f = *at;
        if (!matches(f, m))
            continue;
        *at = f->next;
        if (!*at)
            posted_end = at;
        receive(f, m);
        return;
    }
    m->next = NULL;
    *unexpected_end = m;
    unexpected_end = &m->next;
}

static int fetch(void)
{
    struct box *box = &shared->boxes[own_rank];
    pthread_mutex_lock(&box->lock);
    struct message *m = box->first, *next;
    box->first = NULL;
    box->last = &box->first;
    pthread_mutex_unlock(&box->lock);
    int n = 0;
    for (; m; m = next, n++) {
        next = m->next;
        arrive(m);
    }
    return n;
}

static int collect_taken(void)
{
    int n = 0;
    for (struct fake_request **at = &untaken; *at;) {
        struct fake_request *f = *at;
        if (!atomic_load(f->taken)) {
            at = &f->next;
            continue;
        }
        *at = f->next;
        request_complete(&f->request, MPI_SUCCESS);
        n++;
    }
    return n;
}

int p2p_isend(struct buffer message, struct envelope to, enum p2p_mode mode,
              struct request **ret_request)
{
    (void)mode;
    struct fake_request *f = make_request(&message, &to);
    f->send_buf = message.base;
    f->peer = comm_peers(to.comm)->procs[to.rank];
    *unsent_end = f;
    unsent_end = &f->next;
    *ret_request = &f->request;
    return MPI_SUCCESS;
}

int p2p_irecv(struct buffer room, struct envelope from, struct request **ret_request)
{
    struct fake_request *f = make_request(&room, &from);
    f->recv_buf = room.base;
    f->peer = from.rank;
    *ret_request = &f->request;
    for (struct message **at = &unexpected; *at; at = &(*at)->next) {
        struct message *m = *at;
        if (!matches(f, m))
            continue;
        *at = m->next;
        if (!*at)
            unexpected_end = at;
        receive(f, m);
        return MPI_SUCCESS;
    }
    *posted_end = f;
    posted_end = &f->next;
    return MPI_SUCCESS;
}

int p2p_send(struct buffer message, struct envelope to, enum p2p_mode mode)
{
    struct request *r;
    p2p_isend(message, to, mode, &r);
    return request_wait(r, MPI_STATUS_IGNORE);
}

int p2p_recv(struct buffer room, struct envelope from, MPI_Status *status)
{
    struct request *r;
    p2p_irecv(room, from, &r);
    return request_wait(r, status);
}

int p2p_sendrecv(struct buffer message, struct envelope to, struct buffer room,
                 struct envelope from, MPI_Status *status)
{
    struct request *in, *out;
    p2p_irecv(room, from, &in);
    p2p_isend(message, to, P2P_STANDARD, &out);
    int err = request_wait(in, status);
    int out_err = request_wait(out, MPI_STATUS_IGNORE);
    return err ? err : out_err;
}

int p2p_init(void)
{
    return 0;
}

/* Windows are not for this transport. */
void p2p_set_taker(p2p_taker *taker)
{
    (void)taker;
}

void p2p_taken(uint32_t src_world, uint64_t bytes)
{
    (void)src_world;
    (void)bytes;
}

void p2p_deinit(void)
{
    while (unsent)
        send_oldest();
}

/* ---- progress ---- */

static struct {
    int (*poll)(void);
    const int *n_active;
} pollers[8];
static int n_pollers;

static struct sleepers sleepers; /* one thread: nobody sleeps beside it */
struct sleepers *sleepers_here = &sleepers;

void sleepers_wake_now(void)
{
}

/* Nothing computes here while something is under way. */
static struct async async;
struct async *async_here = &async;

void async_wake(void)
{
}

void async_stop(void)
{
}

void progress_register(int (*poll)(void), const int *n_active, bool impatient)
{
    (void)impatient; /* nobody sleeps long here */
    pollers[n_pollers].poll = poll;
    pollers[n_pollers++].n_active = n_active;
}

void progress_on_sleep(enum progress_news (*fn)(void))
{
    (void)fn; /* no cells here: the job has no segment */
}

int progress_poll(void)
{
    int n = 0;
    if (draw(4) == 0)
        return 0;
    while (unsent && draw(3)) {
        send_oldest();
        n++;
    }
    if (draw(3))
        n += fetch();
    n += collect_taken();
    for (int i = 0; i < n_pollers; i++)
        if (*pollers[i].n_active > 0)
            n += pollers[i].poll();
    return n;
}

void progress_ask(void)
{
    progress_poll();
}

void progress_wait_idle(struct progress_wait *w)
{
    struct box *box = &shared->boxes[own_rank];
    struct timespec until;
    if (++w->idle_polls < 8 || unsent)
        return;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 200000; /* synchronous sends are told by no signal */
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_mutex_lock(&box->lock);
    if (!box->first)
        pthread_cond_timedwait(&box->news, &box->lock, &until);
    pthread_mutex_unlock(&box->lock);
}

/* ---- the MPI functions for requests that the tests use ---- */

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    struct request *r = request_from_handle(*request);
    if (!r || (r->persistent && !r->active))
        return MPI_SUCCESS;
    bool persistent = r->persistent;
    int err = request_wait(r, status);
    if (!persistent)
        *request = MPI_REQUEST_NULL;
    return err;
}

int MPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    struct request *r = request_from_handle(*request);
    *flag = !r || (r->persistent && !r->active) || request_test(r);
    return *flag ? MPI_Wait(request, status) : MPI_SUCCESS;
}

int MPI_Start(MPI_Request *request)
{
    struct request *r = request_from_handle(*request);
    return r->ops->start(r);
}

int MPI_Request_free(MPI_Request *request)
{
    request_release(request_from_handle(*request));
    *request = MPI_REQUEST_NULL;
    return MPI_SUCCESS;
}

/* ---- the choice of algorithms, as it is, but seen ---- */

static bool taken[ALGORITHMS];

const struct algorithm *__real_select_algorithm(enum coll_family family, const struct schedule *s,
                                                MPI_Count n_bytes, bool regular);
const struct algorithm *__wrap_select_algorithm(enum coll_family family, const struct schedule *s,
                                                MPI_Count n_bytes, bool regular);

const struct algorithm *__wrap_select_algorithm(enum coll_family family, const struct schedule *s,
                                                MPI_Count n_bytes, bool regular)
{
    const struct algorithm *chosen = __real_select_algorithm(family, s, n_bytes, regular);
    taken[chosen - algorithm_table] = true;
    return chosen;
}

/* MOTET_TEST_ALGORITHM="family name": was it taken? */
static bool was_taken(const char *wanted)
{
    for (int i = 0; i < ALGORITHMS; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s %s", name_of_family(algorithm_table[i].family),
                 algorithm_table[i].name);
        if (taken[i] && strcasecmp(name, wanted) == 0)
            return true;
    }
    return false;
}

/* ---- running ---- */

static pid_t pids[MAX_RANKS];

static int run_rank(int rank, int argc, char **argv)
{
    own_rank = rank;
    seed = start_seed * 7919u + (unsigned)rank * 104729u;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const char *limit = getenv("MOTET_TEST_TIMEOUT");
    alarm(limit ? (unsigned)atoi(limit) : FAKE_TIMEOUT_S);
    int rc = test_main(argc, argv);
    const char *wanted = getenv("MOTET_TEST_ALGORITHM");
    if (wanted && !was_taken(wanted)) {
        fprintf(stderr, "rank %d: no call took %s\n", rank, wanted);
        rc = rc ? rc : 1;
    }
    if (unsent || untaken || posted || unexpected || shared->boxes[rank].first) {
        fprintf(stderr, "rank %d: messages are left:%s%s%s%s\n", rank, unsent ? " unsent" : "",
                untaken ? " untaken" : "", posted ? " posted" : "",
                unexpected ? " unexpected" : "");
        rc = rc ? rc : 1;
    }
    if (handle_count()) {
        fprintf(stderr, "rank %d: %zu handles are left\n", rank, handle_count());
        rc = rc ? rc : 1;
    }
    return rc;
}

/* The worst exit code; all are killed once one has failed. */
static int reap(void)
{
    int worst = 0, status;
    for (int left = n_ranks; left > 0; left--) {
        pid_t pid = wait(&status);
        int rc = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        for (int i = 0; i < n_ranks; i++) {
            if (pids[i] != pid)
                continue;
            pids[i] = 0;
            if (rc && !worst)
                fprintf(stderr, "rank %d ended with %d (-n %d -N %d -p %c -s %u)\n", i, rc, n_ranks,
                        n_nodes, placement, start_seed);
        }
        if (rc && !worst)
            for (int i = 0; i < n_ranks; i++)
                if (pids[i])
                    kill(pids[i], SIGKILL);
        worst = worst ? worst : rc;
    }
    return worst;
}

int main(int argc, char **argv)
{
    int option;
    const char *networks = NULL;
    start_seed = 1;
    while ((option = getopt(argc, argv, "+n:N:p:s:t:")) != -1) {
        if (option == 'n')
            n_ranks = atoi(optarg);
        else if (option == 'N')
            n_nodes = atoi(optarg);
        else if (option == 's')
            start_seed = (unsigned)strtoul(optarg, NULL, 0);
        else if (option == 't')
            networks = optarg;
        else if (option == 'p')
            placement = optarg[0];
        else
            return 2;
    }
    if (n_ranks < 1 || n_ranks > MAX_RANKS || n_nodes < 1)
        return 2;
    if (n_nodes > n_ranks)
        n_nodes = n_ranks;
    if (!placement)
        placement = start_seed & 1 ? 'r' : 't';
    if (networks && !fake_networks_set(networks, n_nodes))
        return 2;
    synchronous = start_seed & 2;
    make_shared();
    flags = mmap(NULL, 1024 * MAX_RANKS * sizeof *flags, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    argv[optind - 1] = argv[0];
    for (int i = 0; i < n_ranks; i++) {
        pids[i] = fork();
        if (pids[i] == 0)
            exit(run_rank(i, argc - optind + 1, argv + optind - 1));
    }
    return reap();
}
