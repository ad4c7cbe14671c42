// hsa_init and hsa_shut_down: counted, repeated, with work pending; exit without the latter, by one thread
// or another; and fork.
#include "client.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
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
    {"forks", forks},
    {"rounds", rounds},
    {"refcount", refcount},
    {"recycled", recycled},
    {NULL, NULL},
};
