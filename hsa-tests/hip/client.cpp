// An ordinary HIP application, of what needs no code for a GPU: memory, copies, streams, events.
//
// Kernels of our own would take code objects, which the emulated GPU could not run. hipMemset
// dispatches kernels of HIP's; here they last for a time, and the memory stays as it was. So every
// scenario has some of them between its copies and events, on memory of their own.

#include "../c/emulated.h"

#include <hip/hip_runtime_api.h>

#include <chrono>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

[[noreturn]] [[gnu::format(printf, 2, 3)]] void fail(int line, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "FAILED at client.cpp:%d: ", line);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    fflush(nullptr);
    // Not exit: other threads are at work.
    _exit(1);
}

#define CHECK(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition)) fail(__LINE__, #condition "; " __VA_ARGS__);                             \
    } while (0)

#define HIP(call)                                                                                  \
    do {                                                                                           \
        hipError_t error_ = (call);                                                                \
        if (error_ != hipSuccess) fail(__LINE__, #call " gave %s", hipGetErrorName(error_));       \
    } while (0)

void fill(std::vector<unsigned char> &memory, unsigned seed) {
    for (size_t i = 0; i < memory.size(); i++)
        memory[i] = static_cast<unsigned char>(i * 31 + i / 251 + seed);
}

class Device {
  public:
    explicit Device(size_t size) { HIP(hipMalloc(&memory, size)); }
    Device(const Device &) = delete;
    Device &operator=(const Device &) = delete;
    ~Device() { HIP(hipFree(memory)); }

    void *memory = nullptr;
};

// Host memory that a copy can read without a copy in between.
class Pinned {
  public:
    explicit Pinned(size_t size) { HIP(hipHostMalloc(&memory, size, hipHostMallocDefault)); }
    Pinned(const Pinned &) = delete;
    Pinned &operator=(const Pinned &) = delete;
    ~Pinned() { HIP(hipHostFree(memory)); }

    unsigned char *bytes() const { return static_cast<unsigned char *>(memory); }
    void *memory = nullptr;
};

// Kernels of HIP's own, on memory that nobody looks at.
class Kernels {
  public:
    void start(hipStream_t stream) const { HIP(hipMemsetAsync(device.memory, 1, SIZE, stream)); }

  private:
    enum { SIZE = 1 << 14 };
    Device device{SIZE};
};

// There and back, in many sizes, beside the kernels of two streams.
void copies() {
    static const size_t sizes[] = {1, 100, 4096, 65537, (1 << 20) + 3, 5 << 20};
    hipStream_t beside[2];
    for (auto &stream : beside) HIP(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    for (size_t size : sizes) {
        std::vector<unsigned char> from(size), to(size, 0);
        fill(from, static_cast<unsigned>(size));
        Device device(size);
        Kernels kernels;
        for (unsigned i = 0; i < 8; i++)
            for (auto stream : beside) kernels.start(stream);
        kernels.start(nullptr);
        HIP(hipMemcpy(device.memory, from.data(), size, hipMemcpyHostToDevice));
        kernels.start(nullptr);
        HIP(hipMemcpy(to.data(), device.memory, size, hipMemcpyDeviceToHost));
        CHECK(from == to, "%zu bytes differ", size);
    }
    for (auto stream : beside) HIP(hipStreamDestroy(stream));
    printf("ok copies sizes=%zu\n", sizeof sizes / sizeof *sizes);
}

// A thread's own streams, memory and data.
void stream_work(unsigned seed, unsigned rounds) {
    enum { STREAMS = 3, SIZE = 40000 };
    hipStream_t streams[STREAMS];
    for (auto &stream : streams) HIP(hipStreamCreate(&stream));
    {
        Pinned from(STREAMS * SIZE), to(STREAMS * SIZE);
        Device device(STREAMS * SIZE);
        Kernels kernels;
        auto *there = static_cast<unsigned char *>(device.memory);
        for (unsigned round = 0; round < rounds; round++) {
            for (size_t i = 0; i < STREAMS * SIZE; i++)
                from.bytes()[i] = static_cast<unsigned char>(i * 7 + i / 253 + seed + round);
            memset(to.bytes(), 0, STREAMS * SIZE);
            for (unsigned s = 0; s < STREAMS; s++) {
                size_t at = s * SIZE;
                kernels.start(streams[s]);
                HIP(hipMemcpyAsync(there + at, from.bytes() + at, SIZE, hipMemcpyHostToDevice,
                                   streams[s]));
                kernels.start(streams[s]);
                HIP(hipMemcpyAsync(to.bytes() + at, there + at, SIZE, hipMemcpyDeviceToHost,
                                   streams[s]));
                kernels.start(streams[s]);
            }
            for (auto stream : streams) HIP(hipStreamSynchronize(stream));
            CHECK(memcmp(from.bytes(), to.bytes(), STREAMS * SIZE) == 0, "round %u", round);
        }
    }
    for (auto stream : streams) HIP(hipStreamDestroy(stream));
}

void streams() {
    stream_work(1, 30);
    printf("ok streams\n");
}

void threads() {
    std::vector<std::thread> all;
    for (unsigned i = 0; i < 4; i++) all.emplace_back(stream_work, i, 15);
    for (auto &thread : all) thread.join();
    HIP(hipDeviceSynchronize());
    printf("ok threads=4\n");
}

void events() {
    enum { SIZE = 1 << 20, ROUNDS = 15 };
    Pinned from(SIZE);
    Device device(SIZE);
    Kernels kernels;
    hipStream_t stream, beside;
    hipEvent_t begin, end;
    HIP(hipStreamCreate(&stream));
    HIP(hipStreamCreate(&beside));
    HIP(hipEventCreate(&begin));
    HIP(hipEventCreate(&end));
    float sum = 0;
    auto start = std::chrono::steady_clock::now();
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < 6; i++) kernels.start(beside);
        kernels.start(stream);
        HIP(hipEventRecord(begin, stream));
        kernels.start(stream);
        HIP(hipMemcpyAsync(device.memory, from.memory, SIZE, hipMemcpyHostToDevice, stream));
        kernels.start(stream);
        HIP(hipEventRecord(end, stream));
        HIP(hipEventSynchronize(end));
        HIP(hipEventQuery(begin));
        float milliseconds = -1;
        HIP(hipEventElapsedTime(&milliseconds, begin, end));
        CHECK(milliseconds >= 0, "%f ms", milliseconds);
        sum += milliseconds;
    }
    // The copies and kernels took a time, which is part of ours.
    std::chrono::duration<float, std::milli> took = std::chrono::steady_clock::now() - start;
    CHECK(sum > 0 && sum < took.count() + 1, "%f ms of %f ms", sum, took.count());
    printf("info events us=%d of=%d\n", int(sum * 1000), int(took.count() * 1000));
    HIP(hipEventDestroy(begin));
    HIP(hipEventDestroy(end));
    HIP(hipStreamDestroy(beside));
    HIP(hipStreamDestroy(stream));
    printf("ok events=%u\n", ROUNDS);
}

// One buffer handed from stream to stream, each waiting for the event of the one before: the data
// is right only if all of them waited.
void chains() {
    enum { STREAMS = 4, LINKS = 40, SIZE = 50000 };
    hipStream_t streams[STREAMS];
    hipEvent_t passed[LINKS];
    for (auto &stream : streams) HIP(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    for (auto &event : passed) HIP(hipEventCreateWithFlags(&event, hipEventDisableTiming));
    {
        Pinned buffers((LINKS + 1) * SIZE);
        Device device(SIZE);
        Kernels kernels;
        for (unsigned round = 0; round < 4; round++) {
            memset(buffers.bytes(), 0, (LINKS + 1) * SIZE);
            for (size_t i = 0; i < SIZE; i++)
                buffers.bytes()[i] = static_cast<unsigned char>(i * 13 + round);
            // Up from one place of the host's memory, down to the next, on another stream. A link's
            // first kernel waits for nobody else's, and may run beside those of other streams.
            for (unsigned link = 0; link < LINKS; link++) {
                auto stream = streams[link % STREAMS];
                kernels.start(stream);
                if (link > 0) HIP(hipStreamWaitEvent(stream, passed[link - 1], 0));
                HIP(hipMemcpyAsync(device.memory, buffers.bytes() + link * SIZE, SIZE,
                                   hipMemcpyHostToDevice, stream));
                kernels.start(stream);
                HIP(hipMemcpyAsync(buffers.bytes() + (link + 1) * SIZE, device.memory, SIZE,
                                   hipMemcpyDeviceToHost, stream));
                kernels.start(stream);
                HIP(hipEventRecord(passed[link], stream));
            }
            HIP(hipEventSynchronize(passed[LINKS - 1]));
            CHECK(memcmp(buffers.bytes(), buffers.bytes() + LINKS * SIZE, SIZE) == 0,
                  "the data did not come through, round %u", round);
        }
    }
    for (auto event : passed) HIP(hipEventDestroy(event));
    for (auto stream : streams) HIP(hipStreamDestroy(stream));
    printf("ok chains links=%u\n", LINKS);
}

// Nothing but kernels.
void memsets() {
    enum { SIZE = 1 << 16, ROUNDS = 20 };
    Device device(SIZE);
    hipStream_t stream;
    HIP(hipStreamCreate(&stream));
    for (unsigned i = 0; i < ROUNDS; i++)
        HIP(hipMemsetAsync(device.memory, static_cast<int>(i), SIZE, stream));
    HIP(hipStreamSynchronize(stream));
    HIP(hipMemset(device.memory, 1, SIZE));
    HIP(hipDeviceSynchronize());
    HIP(hipStreamDestroy(stream));
    printf("ok memsets=%u\n", ROUNDS + 1);
}

// What the emulated GPU has run for this process. As much in every run, unless HIP itself differs.
void count_kernels() {
    typedef int get(softgpu_counts *, size_t);
    softgpu_counts counted{};
    auto *counts = reinterpret_cast<get *>(emulated("softgpu_get_counts"));
    CHECK(counts && counts(&counted, sizeof counted) == 0, "the emulated GPU does not count");
    printf("info kernels=%lu running=%lu gated=%lu\n", counted.kernels_ended, counted.most_running,
           counted.gated);
}

// An object in static storage, as applications have them: its destructor runs after main, and
// waits.
struct Context {
    ~Context() {
        for (hipStream_t stream : streams) HIP(hipStreamSynchronize(stream));
        if (streams.empty()) return;
        printf("ok context=%zu\n", streams.size());
        // Again, for by now all of them have run.
        count_kernels();
        fflush(stdout);
    }

    std::vector<hipStream_t> streams;
};

Context context;

void destructor() {
    enum { SIZE = 1 << 16, STREAMS = 3, ROUNDS = 40 };
    void *memory[STREAMS];
    for (auto &one : memory) {
        HIP(hipMalloc(&one, SIZE));
        context.streams.emplace_back();
        HIP(hipStreamCreate(&context.streams.back()));
    }
    for (int round = 0; round < ROUNDS; round++)
        for (unsigned i = 0; i < STREAMS; i++)
            HIP(hipMemsetAsync(memory[i], round, SIZE, context.streams[i]));
}

} // namespace

int main(int count, char **arguments) {
    static const struct {
        const char *name;
        void (*run)();
    } scenarios[] = {{"copies", copies}, {"streams", streams}, {"threads", threads},
                     {"events", events}, {"chains", chains},   {"memsets", memsets},
                     {"destructor", destructor}};
    if (count == 2 || count == 3) {
        int seconds = count == 3 ? atoi(arguments[2]) : 60;
        for (auto &scenario : scenarios) {
            if (std::string(scenario.name) != arguments[1]) continue;
            CHECK(set_deadline(static_cast<unsigned>(seconds)), "no deadline");
            int devices = 0;
            HIP(hipGetDeviceCount(&devices));
            printf("ok devices=%d\n", devices);
            scenario.run();
            count_kernels();
            fflush(stdout);
            return 0;
        }
    }
    fprintf(stderr, "usage: %s SCENARIO [SECONDS]; scenarios:\n", arguments[0]);
    for (auto &scenario : scenarios) fprintf(stderr, "  %s\n", scenario.name);
    return 2;
}
