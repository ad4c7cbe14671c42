// What programs do while they are profiled: they pause and resume, try to unload the tool, are interrupted by
// timers, submit from handlers, do not ask for completions, and can't be serialized at all.
#include "client.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

// A function of a tool that is loaded, if one is and has it: among all libraries', or in the tools that the
// runtime has loaded for itself.
static void *of_tool(const char *name) {
    void *function = dlsym(RTLD_DEFAULT, name);
    char paths[4096];
    snprintf(paths, sizeof paths, "%s", getenv("HSA_TOOLS_LIB") ? getenv("HSA_TOOLS_LIB") : "");
    for (char *path = strtok(paths, " "); path && !function; path = strtok(NULL, " ")) {
        void *tool = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
        if (tool) function = dlsym(tool, name);
    }
    return function;
}

static void call(const char *name) {
    typedef int toggle(uint64_t);
    toggle *function = (toggle *)of_tool(name);
    if (function) CHECK(function(0) == 0, "%s", name);
}

enum { QUEUES = 4, KERNELS = 24 };

// So many kernels on four queues; how many of them had a gate.
static uint64_t kernels(hsa_queue_t **queues, bool wait) {
    uint64_t before = counts().gated;
    hsa_signal_t over = signal_of(KERNELS);
    for (unsigned i = 0; i < KERNELS; i++)
        dispatch(queues[i % QUEUES], (struct kernel){.ns = 500000, .completion = over});
    if (!wait) return 0;
    wait_for(over);
    HSA(hsa_signal_destroy(over));
    return counts().gated - before;
}

static void pause_and_resume(const char *pause, const char *resume) {
    // Before there is a runtime.
    call(pause);
    start();
    hsa_queue_t *queues[QUEUES];
    for (unsigned q = 0; q < QUEUES; q++) queues[q] = queue_of(gpus[0], 64);
    info("paused-gated=%lu", kernels(queues, true));
    // Twice is as good as once.
    call(resume);
    call(resume);
    info("resumed-gated=%lu", kernels(queues, true));
    call(pause);
    info("again-gated=%lu", kernels(queues, true));
    // In the middle of work, often.
    for (unsigned i = 0; i < 20; i++) {
        kernels(queues, false);
        call(i % 2 ? pause : resume);
    }
    kernels(queues, true);
    for (unsigned q = 0; q < QUEUES; q++) HSA(hsa_queue_destroy(queues[q]));
    stop();
    // After it, for the next round.
    call(resume);
    start();
    for (unsigned q = 0; q < QUEUES; q++) queues[q] = queue_of(gpus[0], 64);
    info("next-gated=%lu", kernels(queues, true));
    for (unsigned q = 0; q < QUEUES; q++) HSA(hsa_queue_destroy(queues[q]));
    stop();
}

static void roctx(void) {
    pause_and_resume("roctxProfilerPause", "roctxProfilerResume");
    typedef unsigned calls(void);
    calls *heard = (calls *)of_tool("roctx_calls");
    info("roctx-calls=%u", heard ? heard() : 0);
    ok("roctx");
}

static void own(void) {
    pause_and_resume("hsa_serializer_tool_pause", "hsa_serializer_tool_resume");
    ok("own");
}

// Whoever closes the tool's library more often than he has opened it: it stays.
static void unload(void) {
    start();
    hsa_queue_t *queues[QUEUES];
    for (unsigned q = 0; q < QUEUES; q++) queues[q] = queue_of(gpus[0], 64);
    kernels(queues, false);
    const char *path = getenv("HSA_TOOLS_LIB");
    void *tool = path ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : NULL;
    for (unsigned i = 0; tool && i < 3; i++) dlclose(tool);
    kernels(queues, true);
    for (unsigned q = 0; q < QUEUES; q++) HSA(hsa_queue_destroy(queues[q]));
    CHECK(counts().kernels_ended == 2 * KERNELS, "%lu", counts().kernels_ended);
    stop();
    // Nor does it go with the runtime, which has opened it.
    CHECK(!path || dlopen(path, RTLD_NOW | RTLD_NOLOAD), "the tool is gone");
    ok("unload");
}

static atomic_uint alarms;

static void on_alarm(int number) {
    (void)number;
    atomic_fetch_add(&alarms, 1);
}

// A timer that interrupts whatever runs, system calls of every thread among it, from before the start to
// behind the end; and not one of them is restarted.
static void storm(void) {
    struct sigaction action = {.sa_handler = on_alarm};
    CHECK(sigaction(SIGALRM, &action, NULL) == 0, "sigaction");
    struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
    CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0, "setitimer");
    for (unsigned round = 0; round < 3; round++) {
        start();
        hsa_queue_t *queues[QUEUES];
        for (unsigned q = 0; q < QUEUES; q++) queues[q] = queue_of(gpus[0], 64);
        for (unsigned i = 0; i < 5; i++) kernels(queues, true);
        kernels(queues, false);
        for (unsigned q = 0; q < QUEUES; q++) HSA(hsa_queue_destroy(queues[q]));
        stop();
    }
    CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0, "setitimer");
    CHECK(alarms > 50, "only %u alarms", alarms);
    ok("storm");
}

struct chain {
    hsa_queue_t *queue;
    hsa_signal_t over;
    atomic_uint links;
};

enum { LINKS = 40, EACH_LINK = 100 };

// Each end submits the next kernels, more than the ring was to hold, on the handlers' thread.
static bool next(hsa_signal_value_t value, void *argument) {
    struct chain *chain = argument;
    CHECK(value == 0, "%ld", (long)value);
    if (atomic_fetch_add(&chain->links, 1) + 1 == LINKS) return false;
    hsa_signal_store_relaxed(chain->over, EACH_LINK);
    for (unsigned i = 0; i < EACH_LINK; i++)
        dispatch(chain->queue, (struct kernel){.ns = 1000, .completion = chain->over});
    return true;
}

static void chained(void) {
    start();
    struct chain chain = {.queue = queue_of(gpus[0], 64), .over = signal_of(1)};
    HSA(hsa_amd_signal_async_handler(chain.over, HSA_SIGNAL_CONDITION_EQ, 0, next, &chain));
    dispatch(chain.queue, (struct kernel){.ns = 1000, .completion = chain.over});
    wait_count(&chain.links, LINKS);
    HSA(hsa_queue_destroy(chain.queue));
    HSA(hsa_signal_destroy(chain.over));
    ok("chained kernels=%lu", counts().kernels_ended);
    stop();
}

// More than the ring was to hold, and than any tool lets under way; fewer than the longer rings of tools have room for.
enum { FLOOD = 110 };

static bool flood(hsa_signal_value_t value, void *argument) {
    struct chain *chain = argument;
    CHECK(value == 0, "%ld", (long)value);
    for (unsigned i = 0; i < FLOOD; i++)
        dispatch(chain->queue, (struct kernel){.ns = 20000, .completion = chain->over});
    return false;
}

// The application's own handler is the first that the handlers' thread ever runs.
static void first_handler(void) {
    start();
    struct chain chain = {.queue = queue_of(gpus[0], 64), .over = signal_of(FLOOD)};
    hsa_signal_t go = signal_of(1);
    HSA(hsa_amd_signal_async_handler(go, HSA_SIGNAL_CONDITION_LT, 1, flood, &chain));
    hsa_signal_store_screlease(go, 0);
    wait_for(chain.over);
    HSA(hsa_queue_destroy(chain.queue));
    HSA(hsa_signal_destroy(chain.over));
    HSA(hsa_signal_destroy(go));
    ok("first-handler kernels=%lu", counts().kernels_ended);
    stop();
}

// Most kernels of a program have no completion signal; the last one tells of them all, by its barrier bit.
static void unsignalled(void) {
    start();
    enum { ROUNDS = 20, EACH = 9 };
    hsa_queue_t *queue = queue_of(gpus[0], 64);
    for (unsigned round = 0; round < ROUNDS; round++) {
        hsa_signal_t over = signal_of(1);
        for (unsigned i = 0; i + 1 < EACH; i++) dispatch(queue, (struct kernel){.ns = 20000});
        dispatch(queue, (struct kernel){.ns = 100, .barrier = true, .completion = over});
        wait_for(over);
        CHECK(counts().kernels_ended == (round + 1) * EACH, "%lu", counts().kernels_ended);
        HSA(hsa_signal_destroy(over));
    }
    HSA(hsa_queue_destroy(queue));
    ok("unsignalled kernels=%lu", counts().kernels_ended);
    stop();
}

// A kernel that ends when another one, submitted later, has: no serializer can run these one at a time.
static void mutual(void) {
    start();
    hsa_queue_t *first = queue_of(gpus[0], 64), *second = queue_of(gpus[0], 64);
    hsa_signal_t over = signal_of(1), other = signal_of(1);
    dispatch(first, (struct kernel){.runs = RUNS_UNTIL, .until = other, .completion = over});
    // That the first one has its turn.
    pause_us(20000);
    dispatch(second, (struct kernel){.ns = 1000, .completion = other});
    wait_for(over);
    HSA(hsa_queue_destroy(first));
    HSA(hsa_queue_destroy(second));
    ok("mutual");
    stop();
}

// Kernels on each GPU, so that it is seen whose are serialized. The program wants no times; a tool may.
static void everywhere(void) {
    start();
    for (unsigned g = 0; g < gpu_count; g++) {
        uint64_t before = counts().gated;
        hsa_queue_t *queues[QUEUES];
        for (unsigned q = 0; q < QUEUES; q++) {
            queues[q] = queue_of(gpus[g], 64);
            HSA(hsa_amd_profiling_set_profiler_enabled(queues[q], 0));
        }
        kernels(queues, true);
        info("gpu%u-gated=%lu", g, counts().gated - before);
        for (unsigned q = 0; q < QUEUES; q++) HSA(hsa_queue_destroy(queues[q]));
    }
    ok("everywhere gpus=%u", gpu_count);
    stop();
}

// What comes after the end is refused, and does no harm.
static void late(void) {
    start();
    hsa_queue_t *queue = queue_of(gpus[0], 64);
    hsa_signal_t over = signal_of(1);
    dispatch(queue, (struct kernel){.ns = 1000, .completion = over});
    wait_for(over);
    stop();
    hsa_status_t status = hsa_queue_destroy(queue);
    CHECK(status == HSA_STATUS_ERROR_NOT_INITIALIZED, "%#x", status);
    call("hsa_serializer_tool_pause");
    call("hsa_serializer_tool_resume");
    ok("late");
}

// For a while no signal can be made; the program has all of its own. Serializing is not switched then, kernels are
// passed on uncounted, beside serialized ones, and afterwards all is as before.
static void scarce(void) {
    typedef void set(unsigned);
    typedef int toggle(void);
    start();
    set *starve = (set *)of_tool("hsa_test_tool_fail_signals");
    toggle *pause = (toggle *)of_tool("hsa_serializer_tool_pause"),
           *resume = (toggle *)of_tool("hsa_serializer_tool_resume");
    hsa_queue_t *queues[QUEUES];
    for (unsigned q = 0; q < QUEUES; q++) queues[q] = queue_of(gpus[0], 64);
    unsigned refused = 0, rounds = 0;
    hsa_signal_t over = signal_of(0);
    for (; rounds < 30; rounds++) {
        hsa_signal_store_relaxed(over, 2 * KERNELS);
        if (starve) starve(rounds % 3 == 2 ? 0 : 1000000);
        for (unsigned i = 0; i < 2 * KERNELS; i++) {
            dispatch(queues[i % QUEUES], (struct kernel){.ns = 20000, .completion = over});
            if (i % 8 == 7 && pause && resume) refused += (i % 16 == 7 ? pause() : resume()) != 0;
        }
        wait_for(over);
        if (starve) starve(0);
        call("hsa_serializer_tool_resume");
    }
    // From here on there are signals, and what was uncounted has been waited for.
    uint64_t overlaps = counts().overlaps, gated = kernels(queues, true);
    info("scarce refused=%s then-gated=%lu then-overlaps=%lu", refused ? "some" : "none", gated,
         counts().overlaps - overlaps);
    for (unsigned q = 0; q < QUEUES; q++) HSA(hsa_queue_destroy(queues[q]));
    struct softgpu_counts counted = counts();
    CHECK(counted.kernels_ended == rounds * 2 * KERNELS + KERNELS, "%lu", counted.kernels_ended);
    ok("scarce kernels=%lu", counted.kernels_ended);
    stop();
}

const struct scenario profiled_scenarios[] = {
    {"roctx", roctx},
    {"own", own},
    {"unload", unload},
    {"storm", storm},
    {"chained", chained},
    {"first-handler", first_handler},
    {"unsignalled", unsignalled},
    {"mutual", mutual},
    {"everywhere", everywhere},
    {"late", late},
    {"scarce", scarce},
    {NULL, NULL},
};
