// The load of on-hardware.sh: a HIP program with kernels of its own, which checks what they have computed.
//
// It needs no compiler for GPUs: its kernels are compiled while it runs (hiprtc). On an emulated GPU, which runs
// no kernels, it says so, and checks nothing.

#include <dlfcn.h>
#include <hip/hip_runtime_api.h>
#include <hip/hiprtc.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#define CHECK(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "FAILED at line %d: " #condition " ", __LINE__);                       \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fputc('\n', stderr);                                                                   \
            fflush(nullptr);                                                                       \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

#define HIP(call)                                                                                  \
    do {                                                                                           \
        hipError_t error_ = (call);                                                                \
        CHECK(error_ == hipSuccess, "%s", hipGetErrorName(error_));                                \
    } while (0)

namespace {

// `fill` takes its time, some 64 cycles a round. `spin` ends when the other one has begun, or after some seconds, so that no GPU is blocked for ever.
const char *const SOURCE = R"(
extern "C" __global__ void fill(unsigned *to, unsigned n, unsigned value, unsigned rounds) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    for (unsigned r = 0; r < rounds; r++) __builtin_amdgcn_s_sleep(1);
    if (i < n) to[i] = value + i;
}
extern "C" __global__ void add(unsigned *to, const unsigned *from, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = from[i] + 1;
}
extern "C" __global__ void spin(unsigned *flags, unsigned own) {
    atomicExch(&flags[own], 1u);
    __threadfence_system();
    for (unsigned n = 0; n < 20000000u && atomicAdd(&flags[1 - own], 0u) == 0; n++) {}
    flags[2 + own] = atomicAdd(&flags[1 - own], 0u);
}
)";

// A function of hiprtc's, which is in HIP's own library or, in later versions, in one of its own.
template <typename Function> Function *rtc(const char *name) {
    void *found = dlsym(RTLD_DEFAULT, name);
    for (const char *library : {"libhiprtc.so", "libhiprtc.so.7", "libhiprtc.so.6"}) {
        void *opened = found ? nullptr : dlopen(library, RTLD_NOW);
        if (opened) found = dlsym(opened, name);
    }
    CHECK(found, "%s is in no library", name);
    return reinterpret_cast<Function *>(found);
}
#define RTC(name) rtc<decltype(name)>(#name)

struct Kernels {
    hipFunction_t fill, add, spin;
};

Kernels compiled() {
    hipDeviceProp_t device;
    HIP(hipGetDeviceProperties(&device, 0));
    printf("device=%s arch=%s\n", device.name, device.gcnArchName);
    std::string architecture = std::string("--offload-arch=") + device.gcnArchName;
    const char *options[] = {architecture.c_str()};
    hiprtcProgram program;
    CHECK(RTC(hiprtcCreateProgram)(&program, SOURCE, "load.hip", 0, nullptr, nullptr) == HIPRTC_SUCCESS, "");
    hiprtcResult result = RTC(hiprtcCompileProgram)(program, 1, options);
    size_t size = 0;
    if (result != HIPRTC_SUCCESS) {
        RTC(hiprtcGetProgramLogSize)(program, &size);
        std::string log(size + 1, '\0');
        RTC(hiprtcGetProgramLog)(program, &log[0]);
        CHECK(false, "%s", log.c_str());
    }
    CHECK(RTC(hiprtcGetCodeSize)(program, &size) == HIPRTC_SUCCESS, "");
    std::vector<char> code(size);
    CHECK(RTC(hiprtcGetCode)(program, code.data()) == HIPRTC_SUCCESS, "");
    hipModule_t module;
    HIP(hipModuleLoadData(&module, code.data()));
    Kernels kernels;
    HIP(hipModuleGetFunction(&kernels.fill, module, "fill"));
    HIP(hipModuleGetFunction(&kernels.add, module, "add"));
    HIP(hipModuleGetFunction(&kernels.spin, module, "spin"));
    return kernels;
}

std::atomic<unsigned long> launched{0};

template <typename... Arguments>
void launch(hipFunction_t kernel, unsigned blocks, hipStream_t stream, Arguments... arguments) {
    void *all[] = {&arguments...};
    HIP(hipModuleLaunchKernel(kernel, blocks, 1, 1, 256, 1, 1, 0, stream, all, nullptr));
    launched++;
}

enum : unsigned { N = 1 << 14, BLOCKS = N / 256 };

// Whether kernels are really run.
bool executes(const Kernels &kernels) {
    unsigned *device, host[2] = {0, 0};
    HIP(hipMalloc(reinterpret_cast<void **>(&device), N * sizeof *device));
    HIP(hipMemcpy(device, host, sizeof host, hipMemcpyHostToDevice));
    launch(kernels.fill, BLOCKS, nullptr, device, unsigned(N), 7u, 1u);
    HIP(hipMemcpy(host, device, sizeof host, hipMemcpyDeviceToHost));
    HIP(hipFree(device));
    printf("kernels-are-run=%d\n", host[1] == 8);
    return host[1] == 8;
}

// One thread's streams: kernels of all lengths, in backlogs of all depths; each stream's copies back are checked, and
// some wait for another stream's event.
void work(const Kernels &kernels, unsigned seed, double seconds, bool check) {
    enum { STREAMS = 6 };
    struct {
        hipStream_t stream;
        hipEvent_t done;
        unsigned *filled, *added, *host;
    } all[STREAMS];
    for (auto &s : all) {
        HIP(hipStreamCreateWithFlags(&s.stream, hipStreamNonBlocking));
        HIP(hipEventCreateWithFlags(&s.done, hipEventDisableTiming));
        HIP(hipMalloc(reinterpret_cast<void **>(&s.filled), N * sizeof(unsigned)));
        HIP(hipMalloc(reinterpret_cast<void **>(&s.added), N * sizeof(unsigned)));
        HIP(hipHostMalloc(reinterpret_cast<void **>(&s.host), N * sizeof(unsigned), 0));
    }
    auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    for (unsigned round = seed; std::chrono::steady_clock::now() < end; round += 64) {
        for (unsigned i = 0; i < STREAMS; i++) {
            auto &s = all[i];
            unsigned backlog = 1 + unsigned(rand_r(&seed)) % 12;
            for (unsigned b = 0; b < backlog; b++)
                launch(kernels.fill, BLOCKS, s.stream, s.filled, unsigned(N), round + i,
                       unsigned(rand_r(&seed)) % 5000);
            if (i % 2) HIP(hipStreamWaitEvent(s.stream, all[i - 1].done, 0));
            launch(kernels.add, BLOCKS, s.stream, s.added, static_cast<const unsigned *>(s.filled), unsigned(N));
            HIP(hipMemcpyAsync(s.host, s.added, N * sizeof(unsigned), hipMemcpyDeviceToHost, s.stream));
            HIP(hipEventRecord(s.done, s.stream));
        }
        for (unsigned i = 0; i < STREAMS; i++) {
            HIP(hipStreamSynchronize(all[i].stream));
            for (unsigned k = 0; check && k < N; k++)
                CHECK(all[i].host[k] == round + i + k + 1, "stream %u, element %u: %u", i, k, all[i].host[k]);
        }
    }
    for (auto &s : all) {
        HIP(hipStreamDestroy(s.stream));
        HIP(hipEventDestroy(s.done));
        HIP(hipFree(s.filled));
        HIP(hipFree(s.added));
        HIP(hipHostFree(s.host));
    }
}

// What a short kernel costs, submitted from one stream and from four.
void rate(const Kernels &kernels, unsigned count) {
    for (unsigned streams : {1u, 4u}) {
        std::vector<hipStream_t> all(streams);
        for (auto &stream : all) HIP(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
        unsigned *device;
        HIP(hipMalloc(reinterpret_cast<void **>(&device), N * sizeof *device));
        auto start = std::chrono::steady_clock::now();
        for (unsigned i = 0; i < count; i++) {
            launch(kernels.fill, 1, all[i % streams], device, 256u, i, 1u);
            if (i % 500 == 499) HIP(hipDeviceSynchronize());
        }
        HIP(hipDeviceSynchronize());
        std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
        printf("us-per-kernel-%u-streams=%.2f\n", streams, took.count() / count);
        HIP(hipFree(device));
        for (auto &stream : all) HIP(hipStreamDestroy(stream));
    }
}

// Two kernels that need each other: no serializer can run them one at a time.
void stall(const Kernels &kernels, bool check) {
    unsigned *flags, host[4] = {0, 0, 0, 0};
    HIP(hipMalloc(reinterpret_cast<void **>(&flags), sizeof host));
    HIP(hipMemcpy(flags, host, sizeof host, hipMemcpyHostToDevice));
    hipStream_t streams[2];
    for (auto &stream : streams) HIP(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    for (unsigned own = 0; own < 2; own++) {
        void *all[] = {&flags, &own};
        HIP(hipModuleLaunchKernel(kernels.spin, 1, 1, 1, 1, 1, 1, 0, streams[own], all, nullptr));
    }
    HIP(hipDeviceSynchronize());
    HIP(hipMemcpy(host, flags, sizeof host, hipMemcpyDeviceToHost));
    CHECK(!check || (host[2] && host[3]), "one has given up: %u %u", host[2], host[3]);
    printf("stall=over\n");
}

} // namespace

int main(int count, char **arguments) {
    // What it has said is there if it has to be killed.
    setvbuf(stdout, nullptr, _IOLBF, 0);
    std::string what = count > 1 ? arguments[1] : "";
    double seconds = count > 2 ? atof(arguments[2]) : 1;
    unsigned threads = count > 3 ? unsigned(atoi(arguments[3])) : 1;
    Kernels kernels = compiled();
    bool check = executes(kernels);
    if (what == "work") {
        std::vector<std::thread> all;
        for (unsigned t = 0; t < threads; t++) all.emplace_back([=] { work(kernels, t, seconds, check); });
        for (auto &thread : all) thread.join();
    } else if (what == "rate") {
        rate(kernels, check ? 20000 : 2000);
    } else if (what == "stall") {
        stall(kernels, check);
    } else if (what != "probe") {
        fprintf(stderr, "usage: %s probe | work SECONDS THREADS | rate | stall\n", arguments[0]);
        return 2;
    }
    printf("launched=%lu\n", launched.load());
    return 0;
}
