// Asynchronous copies between the pools of the CPU and the GPUs.
#include "client.h"

#include <stdio.h>
#include <string.h>

static hsa_status_t take_pool(hsa_amd_memory_pool_t pool, void *found) {
    hsa_amd_segment_t segment;
    bool allowed;
    HSA(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_SEGMENT, &segment));
    HSA(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED,
                                     &allowed));
    if (segment != HSA_AMD_SEGMENT_GLOBAL || !allowed) return HSA_STATUS_SUCCESS;
    *(hsa_amd_memory_pool_t *)found = pool;
    return HSA_STATUS_INFO_BREAK;
}

static unsigned char *memory_of(hsa_agent_t agent, size_t size) {
    hsa_amd_memory_pool_t pool = {0};
    hsa_status_t status = hsa_amd_agent_iterate_memory_pools(agent, take_pool, &pool);
    CHECK(status == HSA_STATUS_INFO_BREAK, "no memory pool (%#x)", status);
    void *memory;
    HSA(hsa_amd_memory_pool_allocate(pool, size, 0, &memory));
    HSA(hsa_amd_agents_allow_access(gpu_count, gpus, NULL, memory));
    return memory;
}

static void fill(unsigned char *memory, size_t size, unsigned seed) {
    for (size_t i = 0; i < size; i++) memory[i] = (unsigned char)(i * 31 + i / 251 + seed);
}

// To a GPU, on to the last GPU, and back, each copy behind the one before it and all behind a signal
// of ours; then there and back for several at a time that share a signal.
static void copies(void) {
    start();
    CHECK(gpu_count >= 2, "a copy within one GPU is a kernel, and kernels are not executed");
    static const size_t sizes[] = {1, 3, 64, 4096, 65537, (3 << 20) + 5};
    enum { LARGEST = 4 << 20 };
    unsigned char *from = memory_of(cpu, LARGEST), *to = memory_of(cpu, LARGEST);
    hsa_agent_t first = gpus[0], last = gpus[gpu_count - 1];
    unsigned char *here = memory_of(first, LARGEST), *there = memory_of(last, LARGEST);
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t size = sizes[i];
        fill(from, size, i);
        memset(to, 0, size + 1);
        hsa_signal_t over[3] = {signal_of(1), signal_of(1), signal_of(1)};
        hsa_signal_t go = signal_of(1);
        // In this order: copies share engines, and an engine waits in its own.
        HSA(hsa_amd_memory_async_copy(here, first, from, cpu, size, 1, &go, over[0]));
        HSA(hsa_amd_memory_async_copy(there, last, here, first, size, 1, &over[0], over[1]));
        HSA(hsa_amd_memory_async_copy(to, cpu, there, last, size, 1, &over[1], over[2]));
        pause_us(300);
        CHECK(hsa_signal_load_scacquire(over[2]) == 1 && to[0] == 0, "it did not wait");
        hsa_signal_store_screlease(go, 0);
        CHECK(wait_for(over[2]) == 0, "a copy failed");
        HSA(hsa_signal_destroy(go));
        CHECK(memcmp(from, to, size) == 0, "%zu bytes differ", size);
        CHECK(to[size] == 0, "more than %zu bytes", size);
        for (unsigned k = 0; k < 3; k++) HSA(hsa_signal_destroy(over[k]));
    }
    info("copies copies=%lu", counts().copies);
    ok("copies sizes=%zu", sizeof sizes / sizeof *sizes);

    enum { PARTS = 32, PART = 4096 + 16 };
    fill(from, PARTS * PART, 77);
    memset(to, 0, PARTS * PART);
    hsa_signal_t there_over = signal_of(PARTS), over = signal_of(PARTS);
    for (unsigned i = 0; i < PARTS; i++)
        HSA(hsa_amd_memory_async_copy(here + i * PART, first, from + i * PART, cpu, PART, 0, NULL,
                                      there_over));
    for (unsigned i = 0; i < PARTS; i++)
        HSA(hsa_amd_memory_async_copy(to + i * PART, cpu, here + i * PART, first, PART, 1,
                                      &there_over, over));
    CHECK(wait_for(over) == 0, "a copy failed");
    CHECK(memcmp(from, to, PARTS * PART) == 0, "parts differ");
    HSA(hsa_signal_destroy(there_over));
    HSA(hsa_signal_destroy(over));
    ok("copies parts=%u", PARTS);

    HSA(hsa_amd_profiling_async_copy_enable(true));
    uint64_t second = ticks_per_second(), slack = second / 100;
    for (unsigned i = 0; i < 5; i++) {
        hsa_signal_t done = signal_of(1);
        uint64_t before = now();
        HSA(hsa_amd_memory_async_copy(here, first, from, cpu, LARGEST, 0, NULL, done));
        CHECK(wait_for(done) == 0, "a copy failed");
        uint64_t after = now();
        hsa_amd_profiling_async_copy_time_t time;
        HSA(hsa_amd_profiling_get_async_copy_time(done, &time));
        CHECK(time.start < time.end, "from %lu to %lu", time.start, time.end);
        CHECK(time.start + slack > before && time.end < after + slack,
              "[%lu, %lu] is not within [%lu, %lu]", time.start, time.end, before, after);
        HSA(hsa_signal_destroy(done));
    }
    ok("copies times");
    unsigned char *all[] = {from, to, here, there};
    for (unsigned i = 0; i < 4; i++) HSA(hsa_amd_memory_pool_free(all[i]));
    stop();
}

// A copy that waits for a kernel, and a kernel that waits for the copy.
static void copies_and_kernels(void) {
    start();
    enum { SIZE = 1 << 16, ROUNDS = 20 };
    unsigned char *from = memory_of(cpu, SIZE), *to = memory_of(gpus[0], SIZE);
    hsa_queue_t *queue = queue_of(gpus[0], 64);
    for (unsigned round = 0; round < ROUNDS; round++) {
        hsa_signal_t kernel = signal_of(1), copy = signal_of(1), over = signal_of(1);
        hsa_queue_t *other = queue_of(gpus[gpu_count - 1], 64);
        dispatch(other, (struct kernel){.ns = 400000, .completion = kernel});
        HSA(hsa_amd_memory_async_copy(to, gpus[0], from, cpu, SIZE, 1, &kernel, copy));
        barrier(queue, false, &copy, 1, (hsa_signal_t){0});
        dispatch(queue, (struct kernel){.ns = 1000, .completion = over});
        wait_for(over);
        CHECK(hsa_signal_load_scacquire(copy) == 0, "it did not wait for the copy");
        CHECK(hsa_signal_load_scacquire(kernel) == 0, "the copy did not wait for the kernel");
        HSA(hsa_queue_destroy(other));
        hsa_signal_t signals[] = {kernel, copy, over};
        for (unsigned i = 0; i < 3; i++) HSA(hsa_signal_destroy(signals[i]));
    }
    HSA(hsa_queue_destroy(queue));
    HSA(hsa_amd_memory_pool_free(from));
    HSA(hsa_amd_memory_pool_free(to));
    ok("copies-and-kernels rounds=%u", ROUNDS);
    stop();
}

const struct scenario memory_scenarios[] = {
    {"copies", copies},
    {"copies-and-kernels", copies_and_kernels},
    {NULL, NULL},
};
