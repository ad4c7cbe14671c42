/* An application on the emulated GPU, and a profiler in it (profiler.c) that serializes its kernels: threads dispatch
 * to queues of their own, queues come and go, and the profiler is turned on and off all the time. At the end
 * everything has been counted once, nothing overlapped that must not, and nothing is left: exit code 0, else 1.
 *
 *     emulated [SECONDS [unseen]]
 *
 * With `unseen` the profiler passes kernels on behind the serializer's back, which the checks have to find.
 *
 * With the library installed under $P (docs/embedding.md), in the root of the repository:
 *
 *     cargo build --release -p softgpu-c
 *     cc -std=c11 -O2 examples/c/emulated.c examples/c/profiler.c -o target/emulated -pthread \
 *         -I"$P/include" -L"$P/lib" -lhsa_serializer -Wl,-rpath,"$P/lib" \
 *         -Isoftgpu/c/include -Ltarget/release -lsoftgpu_c -Wl,-rpath,"$PWD/target/release"
 *     target/emulated 1
 */
#define _POSIX_C_SOURCE 200809L /* nanosleep */
#include "profiler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { APPLICATIONS = 4, AHEAD = 32, SLOTS = 1024 };

static const uint64_t SECOND = 1000000000, PATIENCE = 30000000000u;

static atomic_bool stop, failed;

static void fail(const char *what) {
    fprintf(stderr, "FAILED: %s\n", what);
    atomic_store(&failed, true);
    atomic_store(&stop, true);
}

static void print(void *userdata, const char *text) {
    (void)userdata;
    fprintf(stderr, "%s\n", text);
}

/* A thread of the application's: kernels to a queue of its own, some of which end badly with their queue. */
struct application {
    pthread_t thread;
    struct profiler *profiler;
    unsigned seed;
    uint64_t kernels;
};

static unsigned dice(unsigned *seed, unsigned sides) {
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 16) % sides;
}

/* Some kernels on one queue, which is destroyed in the end: `abruptly` with what it still holds. */
static void use_queue(struct application *self, unsigned kernels, bool abruptly) {
    softgpu_t *gpu = self->profiler->gpu;
    struct watched *queue = profiler_queue_create(self->profiler, SLOTS);
    uint64_t ended;
    if (!queue || softgpu_signal_create(gpu, SOFTGPU_FOR_HOST, 0, &ended) != 0) {
        fail("a queue and its signal");
        return;
    }
    for (unsigned i = 0; i < kernels && !atomic_load(&failed); i++) {
        /* It counts what is under way, as far as the application wants to run ahead. */
        softgpu_signal_subtract(gpu, ended, -1);
        struct packet kernel;
        softgpu_kernel(&kernel, i, 1000 * (1 + dice(&self->seed, 20)), ended);
        if (softgpu_submit(gpu, queue->queue, &kernel, 1) != 0) fail("a kernel is refused");
        self->kernels++;
        if (!softgpu_signal_wait(gpu, ended, AHEAD, PATIENCE)) fail("the kernels stand still");
    }
    if (!abruptly && !softgpu_signal_wait(gpu, ended, 1, PATIENCE)) fail("the last kernels stand still");
    profiler_queue_destroy(queue);
    /* A handler may be telling of the last kernel that ended. */
    if (abruptly && !softgpu_wait_idle(gpu, PATIENCE, print, NULL)) fail("it does not come to rest");
    softgpu_signal_destroy(gpu, ended);
}

static void *run(void *userdata) {
    struct application *self = userdata;
    while (!atomic_load(&stop)) use_queue(self, 50 + dice(&self->seed, 400), false);
    return NULL;
}

static bool check(struct profiler *profiler, uint64_t kernels) {
    hsa_serializer_statistics_t statistics = {.size = sizeof statistics};
    softgpu_checks_t seen;
    if (hsa_serializer_statistics(profiler->serializer, &statistics) != HSA_SERIALIZER_SUCCESS ||
        softgpu_checks(profiler->gpu, profiler->agent, &seen) != 0) {
        fail("the statistics");
        return false;
    }
    printf("%llu kernels, %llu of them serialized; %llu transitions, %llu of them over kernels in flight;\n"
           "%llu barriers, of which at most %llu at a time; %llu grants; %llu signal handles used again\n",
           (unsigned long long)kernels, (unsigned long long)profiler->serialized,
           (unsigned long long)statistics.transitions, (unsigned long long)statistics.transitions_that_counted,
           (unsigned long long)statistics.barriers, (unsigned long long)statistics.barriers_live_most,
           (unsigned long long)statistics.grants, (unsigned long long)seen.recycled_signals);
    if (seen.violations != 0) {
        softgpu_violations(profiler->gpu, print, NULL);
        fail("the emulated GPU saw what must not have happened");
    }
    if (profiler->dispatched + profiler->passed_on != kernels) fail("kernels that the profiler did not see");
    if (seen.started != seen.ended + seen.lost) fail("kernels that did not end");
    if (statistics.dispatches != profiler->dispatched) fail("dispatches that the serializer did not count");
    if (profiler->serialized == 0 || profiler->serialized == kernels) fail("all kernels ran in one mode");
    if (statistics.misuse != 0 || profiler->reports != 0) fail("misuse");
    return !atomic_load(&failed);
}

int main(int count, char **arguments) {
    double seconds = count > 1 ? atof(arguments[1]) : 2;
    softgpu_t *gpu = softgpu_create(1, 1, 2);
    struct profiler profiler;
    if (!gpu || !profiler_start(&profiler, gpu, softgpu_agent(gpu, 0))) return 1;
    profiler.unseen = count > 2 && strcmp(arguments[2], "unseen") == 0;

    struct application applications[APPLICATIONS];
    for (unsigned i = 0; i < APPLICATIONS; i++) {
        applications[i] = (struct application){.profiler = &profiler, .seed = i + 1};
        if (pthread_create(&applications[i].thread, NULL, run, &applications[i]) != 0) return 1;
    }
    /* On and off under load, and now and then everything that is in flight is waited for. */
    uint64_t end = softgpu_now(gpu) + (uint64_t)(seconds * (double)SECOND);
    bool on = false;
    for (unsigned i = 0; !atomic_load(&stop) && softgpu_now(gpu) < end; i++) {
        on = !on;
        if (!profiler_set(&profiler, on)) fail("on and off");
        if (i % 16 == 15 && !profiler_drain(&profiler, PATIENCE)) fail("a drain");
        struct timespec pause = {0, 1000000};
        nanosleep(&pause, NULL);
    }
    atomic_store(&stop, true);
    uint64_t kernels = 0;
    for (unsigned i = 0; i < APPLICATIONS; i++) {
        pthread_join(applications[i].thread, NULL);
        kernels += applications[i].kernels;
    }
    /* A queue that is destroyed with kernels in it holds nobody up. */
    struct application last = {.profiler = &profiler, .seed = 7};
    if (!atomic_load(&failed)) use_queue(&last, 20, true);
    kernels += last.kernels;

    bool good = check(&profiler, kernels);
    if (!profiler_finish(&profiler, PATIENCE)) fail("the shutdown");
    softgpu_checks_t seen;
    if (softgpu_checks(gpu, softgpu_agent(gpu, 0), &seen) != 0 || seen.live_signals != 0) fail("signals are left");
    if (profiler.signals != 0) fail("flights are left");
    if (!softgpu_destroy(gpu)) fail("a handler");
    good = good && !atomic_load(&failed);
    puts(good ? "all is well" : "something is wrong");
    return good ? 0 : 1;
}
