/* SPDX-License-Identifier: BSD-3-Clause */
/* What the spawner is made of: starting a rank, its words about failures, finding what ranks have
 * left behind, cores. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/spawner/bind.h"
#include "daemon/spawner/rank_exec.h"
#include "daemon/spawner/reaper.h"

#define SOON_MS 10000

/* ---- rank_exec ---- */

static char *const no_env[] = {NULL};

static struct rank_exec_plan plan_of(char **argv)
{
    struct rank_exec_plan plan = {.argv = argv,
                                  .env = (char **)no_env,
                                  .wdir = "/",
                                  .uid = geteuid(),
                                  .gid = getegid(),
                                  .umask = (mode_t)-1,
                                  .fds = {0, 1, 2}};
    return plan;
}

/* Returns the exit status; the failure, if exec failed, with step -1 if not. */
static int run(const struct rank_exec_plan *plan, struct rank_exec_failure *ret_failure)
{
    int pipe_end = -1, status = 0;
    pid_t pid = rank_exec_start(plan, &pipe_end);

    assert_true(pid > 0);
    struct pollfd p = {.fd = pipe_end, .events = POLLIN};
    assert_int_equal(poll(&p, 1, SOON_MS), 1);
    *ret_failure = (struct rank_exec_failure){.step = -1};
    ssize_t n = read(pipe_end, ret_failure, sizeof *ret_failure);
    assert_true(n == 0 || n == (ssize_t)sizeof *ret_failure);
    close(pipe_end);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void a_rank_gets_what_it_is_told(void **state)
{
    char script[] = "[ \"$A\" = 2 ] && [ \"$(umask)\" = 0027 ] && [ \"$PWD\" = /usr ] && read x && "
                    "[ \"$x\" = in ] && echo out && echo err >&2 && "
                    "[ \"$(ps -o pgid= -p $$ | tr -d ' ')\" = $$ ]";
    char shell[] = "sh", minus_c[] = "-c", path[] = "PATH=/usr/bin:/bin", a[] = "A=2";
    char *argv[] = {shell, minus_c, script, NULL}, *env[] = {path, a, NULL}, got[16] = "";
    struct rank_exec_plan plan = plan_of(argv);
    struct rank_exec_failure failure;
    int in[2], out[2], err[2];
    (void)state;

    assert_int_equal(pipe2(in, O_CLOEXEC) + pipe2(out, O_CLOEXEC) + pipe2(err, O_CLOEXEC), 0);
    assert_int_equal(write(in[1], "in\n", 3), 3);
    plan.env = env;
    plan.wdir = "/usr";
    plan.umask = 027;
    memcpy(plan.fds, (int[]){in[0], out[1], err[1]}, sizeof plan.fds);
    assert_int_equal(run(&plan, &failure), 0);
    assert_int_equal(failure.step, -1);
    assert_int_equal(read(out[0], got, sizeof got), 4);
    assert_memory_equal(got, "out\n", 4);
    assert_int_equal(read(err[0], got, sizeof got), 4);
    assert_memory_equal(got, "err\n", 4);
    for (int i = 0; i < 2; i++) {
        close(in[i]);
        close(out[i]);
        close(err[i]);
    }
}

static void what_fails_is_told(void **state)
{
    char missing[] = "no-such-program-here", folder[] = "/usr", truth[] = "/bin/true";
    char *argv_missing[] = {missing, NULL}, *argv_folder[] = {folder, NULL},
         *argv_true[] = {truth, NULL};
    struct rank_exec_failure failure;
    char text[256];
    (void)state;

    struct rank_exec_plan plan = plan_of(argv_missing);
    assert_true(WEXITSTATUS(run(&plan, &failure)) != 0);
    assert_int_equal(failure.step, STEP_EXEC);
    assert_int_equal(failure.error, ENOENT);
    rank_exec_explain(&failure, missing, "/", 0, 0, text, sizeof text);
    assert_string_equal(text, "execve 'no-such-program-here': No such file or directory");
    plan = plan_of(argv_folder);
    run(&plan, &failure);
    assert_int_equal(failure.step, STEP_EXEC);
    assert_int_equal(failure.error, EACCES);
    plan = plan_of(argv_true);
    plan.wdir = "/no/such/folder";
    run(&plan, &failure);
    assert_int_equal(failure.step, STEP_DIRECTORY);
    rank_exec_explain(&failure, truth, plan.wdir, 0, 0, text, sizeof text);
    assert_string_equal(text, "chdir '/no/such/folder': No such file or directory");
    plan = plan_of(argv_true);
    plan.bound = true; /* to no processor at all */
    run(&plan, &failure);
    assert_int_equal(failure.step, STEP_BIND);
    assert_int_equal(failure.error, EINVAL);
}

static void every_step_has_its_words(void **state)
{
    static const char *const words[] = {[STEP_PREPARE] = "cannot prepare the process: ",
                                        [STEP_GROUP] = "setgid 8: ",
                                        [STEP_USER] = "setuid 7: ",
                                        [STEP_DIRECTORY] = "chdir '/d': ",
                                        [STEP_BIND] = "sched_setaffinity: ",
                                        [STEP_EXEC] = "execve 'p': "};
    char text[256];
    (void)state;

    for (int step = STEP_PREPARE; step <= STEP_EXEC; step++) {
        struct rank_exec_failure failure = {.step = step, .error = EPERM};
        rank_exec_explain(&failure, "p", "/d", 7, 8, text, sizeof text);
        assert_int_equal(strncmp(text, words[step], strlen(words[step])), 0);
        assert_string_equal(text + strlen(words[step]), "Operation not permitted");
    }
}

static void the_last_value_of_a_name_stays(void **state)
{
    char a1[] = "A=1", ab[] = "AB=x", b[] = "B", a2[] = "A=2", b2[] = "B=", c[] = "C=3",
         d1[] = "D=1", d2[] = "D";
    char *env[] = {a1, ab, b, d1, a2, b2, d2, c, NULL}, *empty[] = {NULL};
    (void)state;

    rank_exec_unique_env(env);
    assert_ptr_equal(env[0], ab);
    assert_ptr_equal(env[1], a2);
    assert_ptr_equal(env[2], b2);
    assert_ptr_equal(env[3], d2);
    assert_ptr_equal(env[4], c);
    assert_null(env[5]);
    rank_exec_unique_env(empty);
    assert_null(empty[0]);
}

/* ---- the reaper ---- */

struct owners {
    pid_t pid; /* of a rank */
    bool dead; /* it lives on as a group only */
    uint64_t job;
    uint32_t rank;
};

static bool owned(void *arg, pid_t pid, bool alive, uint64_t *ret_job, uint32_t *ret_rank)
{
    const struct owners *o = arg;

    if (pid != o->pid || alive == o->dead)
        return false;
    *ret_job = o->job;
    *ret_rank = o->rank;
    return true;
}

/* A child that sits in a process group of its own, with a grandchild that has left for a session of
 * its own. Returns both. */
static void start_two(const char *job, pid_t *ret_child, pid_t *ret_grandchild)
{
    int ends[2];
    char environment[64];

    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        setpgid(0, 0);
        pid_t grandchild = fork();
        if (grandchild == 0) {
            setsid();
            snprintf(environment, sizeof environment, "MOTET_JOB=%s", job);
            char *env[] = {environment, NULL};
            execle("/bin/sleep", "sleep", "60", (char *)NULL, env);
            _exit(1);
        }
        if (write(ends[1], &grandchild, sizeof grandchild) < 0)
            _exit(1);
        for (;;)
            pause();
    }
    assert_int_equal(read(ends[0], ret_grandchild, sizeof *ret_grandchild),
                     (ssize_t)sizeof *ret_grandchild);
    close(ends[0]);
    close(ends[1]);
    *ret_child = child;
}

static bool has_state(pid_t pid, const char *states)
{
    for (int i = 0; i < SOON_MS / 10; i++) {
        char path[64], text[512] = "";
        snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
        FILE *f = fopen(path, "re");
        size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
        if (f)
            fclose(f);
        const char *end = n ? strrchr(text, ')') : NULL;
        if (!end ? strchr(states, '-') != NULL : strchr(states, end[2]) != NULL)
            return true;
        poll(NULL, 0, 10);
    }
    return false;
}

static void ends_both(pid_t child, pid_t grandchild)
{
    kill(child, SIGKILL);
    kill(grandchild, SIGKILL);
    waitpid(child, NULL, 0);
    waitpid(grandchild, NULL, 0);
}

static void whose_a_process_is(void **state)
{
    struct owners o = {.job = 5, .rank = 2};
    struct reaper_filter of_job = {.job = 5, .rank = -1}, of_rank = {.job = 5, .rank = 2},
                         of_other_rank = {.job = 5, .rank = 1}, of_other = {.job = 6, .rank = -1};
    pid_t child, grandchild;
    (void)state;

    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    start_two("7", &child, &grandchild);
    o.pid = child;
    /* By ancestry, though the grandchild has left group and session. */
    assert_int_equal(reaper_kill(&of_job, owned, &o, 0), 2);
    assert_int_equal(reaper_kill(&of_rank, owned, &o, 0), 2);
    assert_int_equal(reaper_kill(&of_other_rank, owned, &o, 0), 0);
    assert_int_equal(reaper_kill(&of_other, owned, &o, 0), 0);
    assert_int_equal(reaper_kill(&of_job, owned, &o, SIGSTOP), 2);
    assert_true(has_state(grandchild, "T"));
    ends_both(child, grandchild);
}

static void orphans_belong_to_the_job_of_their_environment(void **state)
{
    struct owners nobody = {.pid = -1};
    struct reaper_filter of_job = {.job = 0x7b, .rank = -1}, of_rank = {.job = 0x7b, .rank = 0},
                         of_other = {.job = 8, .rank = -1}, everything = {.everything = true};
    pid_t child, grandchild;
    (void)state;

    start_two("7b", &child, &grandchild);
    assert_true(has_state(grandchild, "S"));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    for (int i = 0; i < 500 && reaper_kill(&of_job, owned, &nobody, 0) != 1; i++)
        poll(NULL, 0, 10); /* until exec has set its environment */
    assert_int_equal(reaper_kill(&of_job, owned, &nobody, 0), 1);
    assert_int_equal(reaper_kill(&of_rank, owned, &nobody, 0), 0); /* of no rank that is known */
    assert_int_equal(reaper_kill(&of_other, owned, &nobody, 0), 0);
    /* The session of a rank that is dead. */
    struct owners session = {.pid = grandchild, .dead = true, .job = 9, .rank = 4};
    struct reaper_filter of_session = {.job = 9, .rank = 4};
    assert_int_equal(reaper_kill(&of_session, owned, &session, 0), 0); /* it lives */
    session.dead = false;
    assert_int_equal(reaper_kill(&of_session, owned, &session, 0), 1);
    assert_int_equal(reaper_kill(&everything, owned, &nobody, SIGKILL), 1);
    waitpid(grandchild, NULL, 0);
    assert_int_equal(reaper_kill(&everything, owned, &nobody, 0), 0);
}

static void siblings_go_but_not_the_caller(void **state)
{
    int status;
    (void)state;

    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    pid_t sitter = fork();
    if (sitter == 0)
        for (;;)
            pause();
    pid_t caller = fork();
    if (caller == 0) {
        /* No longer the parent: what is below that one is not to be killed. */
        pid_t other = getppid(), below = fork();
        if (below == 0) {
            reaper_kill_siblings(other);
            _exit(0);
        }
        waitpid(below, NULL, 0);
        _exit(kill(sitter, 0) == 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(caller, &status, 0), caller);
    assert_int_equal(status, 0);
    assert_int_equal(waitpid(sitter, &status, WNOHANG), 0);
    caller = fork();
    if (caller == 0) {
        reaper_kill_siblings(getppid());
        _exit(7);
    }
    assert_int_equal(waitpid(sitter, &status, 0), sitter);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(waitpid(caller, &status, 0), caller);
    assert_int_equal(WEXITSTATUS(status), 7);
}

/* ---- cores ---- */

/* Ranks 0, 1, ... have processors of their own until the first one's come again. */
static void cores_go_round(void **state)
{
    struct bind_request core = {.to = BINDING_CORE, .width = 1};
    cpu_set_t first, again, both;
    (void)state;

    if (bind_cpus(&core, &first) < 0)
        skip();
    assert_true(CPU_COUNT(&first) > 0);
    for (core.index = 1; core.index < 100000; core.index++) {
        assert_int_equal(bind_cpus(&core, &again), 0);
        if (CPU_EQUAL(&first, &again))
            break;
        CPU_AND(&both, &first, &again);
        assert_int_equal(CPU_COUNT(&both), 0);
    }
    unsigned n_cores = core.index;
    assert_true(n_cores <= (unsigned)sysconf(_SC_NPROCESSORS_CONF));

    core.index = 0;
    core.width = n_cores;
    assert_int_equal(bind_cpus(&core, &again), 0);
    struct bind_request machine = {.to = BINDING_MACHINE, .width = 1, .index = 7};
    assert_int_equal(bind_cpus(&machine, &both), 0);
    assert_true(CPU_EQUAL(&again, &both));
    core.width++;
    assert_int_equal(bind_cpus(&core, &again), BIND_E_WIDTH);

    if (n_cores < 4)
        skip();
    struct bind_request two = {.to = BINDING_CORE, .width = 2, .index = 1};
    core = (struct bind_request){.to = BINDING_CORE, .width = 1, .index = 1};
    assert_int_equal(bind_cpus(&two, &again), 0);
    assert_int_equal(bind_cpus(&core, &first), 0);
    CPU_AND(&both, &first, &again);
    assert_int_equal(CPU_COUNT(&both), 0);
}

/* Every level is there on every machine, if need be as the next larger one. */
static void every_level_has_processors(void **state)
{
    cpu_set_t cpus, all;
    (void)state;

    if (bind_cpus(&(struct bind_request){.to = BINDING_MACHINE, .width = 1}, &all) < 0)
        skip();
    for (uint32_t to = BINDING_CORE; to < BINDING_N_LEVELS; to++) {
        for (uint32_t over = BINDING_NONE; over < BINDING_N_LEVELS; over++) {
            for (uint32_t index = 0; index < 5; index++) {
                const struct bind_request request = {to, over, 1, index};
                assert_int_equal(bind_cpus(&request, &cpus), 0);
                assert_true(CPU_COUNT(&cpus) > 0 && CPU_COUNT(&cpus) <= CPU_COUNT(&all));
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rank_gets_what_it_is_told),
        cmocka_unit_test(what_fails_is_told),
        cmocka_unit_test(every_step_has_its_words),
        cmocka_unit_test(the_last_value_of_a_name_stays),
        cmocka_unit_test(whose_a_process_is),
        cmocka_unit_test(orphans_belong_to_the_job_of_their_environment),
        cmocka_unit_test(siblings_go_but_not_the_caller),
        cmocka_unit_test(cores_go_round),
        cmocka_unit_test(every_level_has_processors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
