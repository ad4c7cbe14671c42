// The emulated GPU, as its clients in C and C++ see it: what it counted, and who waits for whom when
// a client is not finished in time.
#pragma once

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

struct softgpu_counts {
    uint64_t kernels_started, kernels_ended, gated, most_running, overlaps, stale_packets, packets,
        queues_created, queues_destroyed, copies, events_live;
};

// A function of the library that stands in for the driver's; NULL if that is the driver's own.
static inline void *emulated(const char *function) {
    void *library = dlopen("libhsakmt.so.1", RTLD_NOW | RTLD_NOLOAD);
    return library ? dlsym(library, function) : NULL;
}

// What a client that is late is in the middle of, if it matters.
static const char *volatile in_the_middle_of = "";

static inline void *end_when_late(void *seconds) {
    // Until a point in time, since a client may have signals that interrupt sleeping.
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += (time_t)(uintptr_t)seconds;
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) != 0) {
    }
    fprintf(stderr, "HUNG: not finished after %u s%s\n", (unsigned)(uintptr_t)seconds,
            in_the_middle_of);
    fflush(NULL);
    // If describing hangs too.
    alarm(5);
    typedef size_t describe(char *, size_t);
    describe *get = (describe *)emulated("softgpu_describe");
    static char text[1 << 16];
    if (get) {
        get(text, sizeof text - 1);
        fprintf(stderr, "%s\n", text);
    }
    fflush(NULL);
    _exit(3);
}

// From now on the program has so long. A thread and not a signal's handler, since describing takes
// locks. Whether it could be made.
static inline int set_deadline(unsigned seconds) {
    pthread_t thread;
    return pthread_create(&thread, NULL, end_when_late, (void *)(uintptr_t)seconds) == 0 &&
           pthread_detach(thread) == 0;
}
