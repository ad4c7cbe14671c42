// hsa_init and hsa_shut_down: counted, repeated, with work pending; exit without the latter, by one
// thread or another, or in a signal handler; work that goes on after it; fork; files that can't be
// written.
#include "client.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

// Two queues at work: one with kernels that last long, one blocked for ever.
static void leave_work(void) {
    static const struct kernel kernel = {.ns = 50000000};
    hsa_signal_t never = signal_of(1);
    hsa_queue_t *running = queue_of(gpus[0], 64), *blocked = queue_of(gpus[0], 64);
    barrier(blocked, false, &never, 1, (hsa_signal_t){0});
    for (unsigned i = 0; i < 8; i++) {
        struct kernel one = kernel;
        one.completion = signal_of(1);
        dispatch(i % 2 ? running : blocked, one);
    }
    pause_us(2000);
}

static void use(void) {
    hsa_queue_t *queue = queue_of(gpus[gpu_count - 1], 64);
    hsa_signal_t over = signal_of(20);
    for (unsigned i = 0; i < 20; i++)
        dispatch(queue, (struct kernel){.ns = 2000, .completion = over});
    wait_for(over);
    HSA(hsa_queue_destroy(queue));
    HSA(hsa_signal_destroy(over));
}

static void shutdown_pending(void) {
    for (unsigned round = 0; round < 3; round++) {
        start();
        leave_work();
        stop();
    }
    // Nothing of it is left.
    start();
    use();
    stop();
    ok("shutdown-pending");
}

// What the emulated GPU has seen of a serializer, for who asks whether there was one.
static void tell(void) { info("gated=%lu", counts().gated); }

// What a program does that just returns from main.
static void exit_pending(void) {
    start();
    use();
    leave_work();
    tell();
    ok("exit-pending leaves");
}

static void *end_the_process(void *unused) {
    (void)unused;
    exit(0);
}

// Another thread ends the process, while this one waits in the runtime.
static void exit_thread(void) {
    start();
    use();
    leave_work();
    tell();
    ok("exit-thread leaves");
    spawn(end_the_process, NULL);
    wait_for(signal_of(1));
    CHECK(false, "the process went on");
}

// The same when the runtime was shut down under the work, and this thread just waits.
static void exit_shut_down(void) {
    start();
    use();
    leave_work();
    tell();
    stop();
    ok("exit-shut-down leaves");
    spawn(end_the_process, NULL);
    for (;;) pause();
}

enum { LEFT = 30 };
static hsa_queue_t *left[3];
static hsa_signal_t left_over;

// As the destructor of an object in static storage does, it waits for what the program has begun.
static void clean_up(void) {
    hsa_signal_value_t value = hsa_signal_wait_scacquire(
        left_over, HSA_SIGNAL_CONDITION_LT, 1, 10 * ticks_per_second(), HSA_WAIT_STATE_BLOCKED);
    CHECK(value == 0, "%ld kernels have not ended", (long)value);
    for (unsigned i = 0; i < 3; i++) HSA(hsa_queue_destroy(left[i]));
    stop();
    ok("exit-cleanup %u", LEFT);
}

static void exit_cleanup(void) {
    // Before hsa_init: it comes after everything that hsa_init registers.
    CHECK(atexit(clean_up) == 0, "atexit");
    start();
    left_over = signal_of(LEFT);
    for (unsigned i = 0; i < 3; i++) left[i] = queue_of(gpus[0], 64);
    for (unsigned i = 0; i < LEFT; i++)
        dispatch(left[i % 3], (struct kernel){.ns = 3000000, .completion = left_over});
}

static void leave(int signal) {
    (void)signal;
    exit(0);
}

static atomic_bool no_more;

static void *go_on(void *argument) {
    unsigned *kernels = argument;
    while (!atomic_load(&no_more)) {
        use();
        *kernels += 20;
    }
    return NULL;
}

// A child has none of the threads, and what it knows is its parent's; it has to end all the same.
static void end_of(pid_t child) {
    for (unsigned ms = 0; ms < 5000; ms++) {
        int status;
        pid_t ended = waitpid(child, &status, WNOHANG);
        CHECK(ended != -1, "waitpid");
        if (ended == child) {
            CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a child's status %#x", status);
            return;
        }
        pause_us(1000);
    }
    kill(child, SIGKILL);
    CHECK(false, "a child hangs");
}

// Children that just end, while their parent's kernels run on, each of them once.
static void forks(void) {
    enum { FORKS = 30 };
    start();
    unsigned kernels = 0;
    pthread_t thread = spawn(go_on, &kernels);
    for (unsigned i = 0; i < FORKS; i++) {
        pause_us(i % 5 * 700);
        pid_t child = fork();
        CHECK(child != -1, "fork");
        if (child == 0) {
            if (i % 2) _exit(0);
            exit(0);
        }
        end_of(child);
    }
    atomic_store(&no_more, true);
    join(thread);
    CHECK(kernels > 0 && counts().kernels_ended == kernels, "%lu of %u kernels ran",
          counts().kernels_ended, kernels);
    CHECK(counts().stale_packets == 0, "%lu", counts().stale_packets);
    tell();
    ok("forks %u", FORKS);
    stop();
}

// The threads that a tool has given a name, each of which has to leave the application's signals
// alone.
static unsigned deaf_threads(const char *name, int signal) {
    unsigned found = 0;
    DIR *threads = opendir("/proc/self/task");
    CHECK(threads != NULL, "no threads");
    for (struct dirent *thread; (thread = readdir(threads)) != NULL;) {
        char path[300], line[256];
        snprintf(path, sizeof path, "/proc/self/task/%s/status", thread->d_name);
        FILE *status = thread->d_name[0] == '.' ? NULL : fopen(path, "r");
        bool named = false;
        while (status != NULL && fgets(line, sizeof line, status) != NULL) {
            unsigned long blocked;
            if (strncmp(line, "Name:\t", 6) == 0)
                named = strncmp(line + 6, name, strlen(name)) == 0;
            if (!named || sscanf(line, "SigBlk: %lx", &blocked) != 1) continue;
            CHECK(blocked >> (signal - 1) & 1, "a thread of a tool's takes signals");
            found++;
        }
        if (status != NULL) fclose(status);
    }
    closedir(threads);
    return found;
}

// A signal's handler ends the process, on whichever thread the signal finds.
static void interrupted(void) {
    start();
    use();
    info("deaf=%u", deaf_threads("hsa-serializer", SIGUSR1));
    ok("interrupted");
    CHECK(signal(SIGUSR1, leave) != SIG_ERR, "a handler");
    CHECK(kill(getpid(), SIGUSR1) == 0, "a signal");
    pause_us(5000000);
    CHECK(false, "the process went on");
}

enum { INTERRUPTS = 12345 };

static _Thread_local volatile bool allocates;

// All that allocates in this process does it here. As in the C library's own, who is interrupted in it can't do it once
// more, and would wait for itself.
void *malloc(size_t size) {
    extern void *__libc_malloc(size_t size);
    CHECK(!allocates, "an allocation in the middle of another one");
    if (size == INTERRUPTS) {
        allocates = true;
        raise(SIGUSR1);
        allocates = false;
    }
    return __libc_malloc(size);
}

static void *allocate(void *unused) {
    (void)unused;
    return malloc(INTERRUPTS);
}

// The application's own cleaning up may allocate again.
static void allocate_again(void) { allocates = false; }

// The same on a thread that has not used the runtime, nor any tool, in the middle of an allocation.
static void interrupted_allocating(void) {
    // Before hsa_init: it comes after everything that hsa_init registers.
    CHECK(atexit(allocate_again) == 0, "atexit");
    start();
    use();
    ok("interrupted-allocating");
    CHECK(signal(SIGUSR1, leave) != SIG_ERR, "a handler");
    join(spawn(allocate, NULL));
    CHECK(false, "the process went on");
}

// Until the tool's own have all ended.
static void wait_for_threads(void) {
    while (deaf_threads("hsa-serializer", SIGUSR1) > 0) pause_us(1000);
    ok("exit-switched leaves none");
}

// A tool's threads that use the runtime end before what is registered before hsa_init runs.
static void exit_switched(void) {
    CHECK(atexit(wait_for_threads) == 0, "atexit");
    start();
    use();
    info("threads=%u", deaf_threads("hsa-serializer", SIGUSR1));
}

static void *create_queues(void *unused) {
    (void)unused;
    while (!atomic_load(&no_more)) HSA(hsa_queue_destroy(queue_of(gpus[0], 64)));
    return NULL;
}

// Children that go on to use the runtime, while their parent is in the middle of it. It works in
// none of them, and may hang: this is for a tool that refuses.
static void fork_use(void) {
    enum { FORKS = 100 };
    start();
    pthread_t thread = spawn(create_queues, NULL);
    for (unsigned i = 0; i < FORKS; i++) {
        pause_us(i % 5 * 300);
        pid_t child = fork();
        CHECK(child != -1, "fork");
        if (child == 0) {
            hsa_queue_t *queue;
            hsa_status_t status =
                hsa_queue_create(gpus[0], 64, HSA_QUEUE_TYPE_MULTI, NULL, NULL, 0, 0, &queue);
            CHECK(status == HSA_STATUS_ERROR_NOT_INITIALIZED, "%#x", status);
            status = hsa_amd_profiling_set_profiler_enabled(NULL, 1);
            CHECK(status == HSA_STATUS_ERROR_NOT_INITIALIZED, "%#x", status);
            _exit(0);
        }
        end_of(child);
    }
    atomic_store(&no_more, true);
    join(thread);
    stop();
}

static hsa_status_t take_gpu(hsa_agent_t agent, void *gpu) {
    hsa_device_type_t type;
    HSA(hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type));
    if (type == HSA_DEVICE_TYPE_GPU) *(hsa_agent_t *)gpu = agent;
    return HSA_STATUS_SUCCESS;
}

static void *come_and_go(void *unused) {
    (void)unused;
    for (unsigned i = 0; i < 100; i++) {
        HSA(hsa_init());
        hsa_agent_t gpu = {0};
        HSA(hsa_iterate_agents(take_gpu, &gpu));
        hsa_queue_t *queue = queue_of(gpu, 64);
        hsa_signal_t over = signal_of(1);
        dispatch(queue, (struct kernel){.ns = 1000, .completion = over});
        wait_for(over);
        HSA(hsa_queue_destroy(queue));
        HSA(hsa_signal_destroy(over));
        HSA(hsa_shut_down());
    }
    return NULL;
}

// Two libraries that know nothing of each other: neither sees that the other one has shut the
// runtime down.
static void users(void) {
    pthread_t one = spawn(come_and_go, NULL), two = spawn(come_and_go, NULL);
    join(one);
    join(two);
    ok("users");
}

// No file may become long, and nobody reads what is written to standard error.
static void unwritable(void) {
    struct rlimit limit = {.rlim_cur = 4096, .rlim_max = 4096};
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0, "a limit");
    start();
    for (unsigned i = 0; i < 10; i++) use();
    stop();
    int ends[2];
    CHECK(pipe(ends) == 0 && dup2(ends[1], 2) == 2 && close(ends[0]) == 0, "a pipe");
    ok("unwritable");
}

static void rounds(void) {
    enum { ROUNDS = 20 };
    for (unsigned round = 0; round < ROUNDS; round++) {
        start();
        use();
        stop();
    }
    ok("rounds %u", ROUNDS);
}

static void refcount(void) {
    for (unsigned i = 0; i < 3; i++) start();
    stop();
    use();
    stop();
    use();
    stop();
    hsa_status_t status = hsa_shut_down();
    CHECK(status == HSA_STATUS_ERROR_NOT_INITIALIZED, "%#x", status);
    hsa_signal_t signal;
    status = hsa_signal_create(1, 0, NULL, &signal);
    CHECK(status == HSA_STATUS_ERROR_NOT_INITIALIZED, "%#x", status);
    start();
    use();
    stop();
    ok("refcount");
}

// HSA hands out the handle of a destroyed signal at once.
static void recycled(void) {
    start();
    enum { ROUNDS = 200 };
    unsigned same = 0;
    for (unsigned i = 0; i < ROUNDS; i++) {
        hsa_signal_t old = signal_of(1);
        HSA(hsa_signal_destroy(old));
        hsa_signal_t new = signal_of(2);
        same += new.handle == old.handle;
        CHECK(hsa_signal_load_scacquire(new) == 2, "a new signal's value");
        HSA(hsa_signal_destroy(new));
    }
    info("recycled same=%u", same);
    unsigned queues = 0;
    hsa_queue_t *last = NULL;
    uint64_t last_id = 0;
    for (unsigned i = 0; i < 20; i++) {
        hsa_queue_t *queue = queue_of(gpus[0], 64);
        queues += queue == last;
        CHECK(i == 0 || queue->id != last_id, "an id came back");
        last = queue;
        last_id = queue->id;
        HSA(hsa_queue_destroy(queue));
    }
    info("recycled queues=%u", queues);
    ok("recycled rounds=%u", ROUNDS);
    stop();
}

const struct scenario lifetime_scenarios[] = {
    {"shutdown-pending", shutdown_pending},
    {"exit-pending", exit_pending},
    {"exit-thread", exit_thread},
    {"exit-shut-down", exit_shut_down},
    {"exit-cleanup", exit_cleanup},
    {"interrupted", interrupted},
    {"interrupted-allocating", interrupted_allocating},
    {"exit-switched", exit_switched},
    {"forks", forks},
    {"fork-use", fork_use},
    {"users", users},
    {"unwritable", unwritable},
    {"rounds", rounds},
    {"refcount", refcount},
    {"recycled", recycled},
    {NULL, NULL},
};
