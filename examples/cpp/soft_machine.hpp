// The emulated GPU as a runtime of the serializer's, and as the machine of profiler.hpp.

#ifndef EXAMPLE_SOFT_MACHINE_HPP
#define EXAMPLE_SOFT_MACHINE_HPP

#include <hsa_serializer.hpp>
#include <softgpu.h>

namespace example {

/// What hsa_serializer::adapt() wants, in a dozen lines.
class soft_runtime {
  public:
    explicit soft_runtime(softgpu_t *gpu) noexcept : gpu_(gpu) {}

    std::uint32_t create_signal(hsa_serializer::signal_kind kind, std::int64_t initial, std::uint64_t &signal) {
        return softgpu_signal_create(gpu_, static_cast<std::uint32_t>(kind), initial, &signal);
    }
    std::uint32_t destroy_signal(std::uint64_t signal) { return softgpu_signal_destroy(gpu_, signal); }
    void store(std::uint64_t signal, std::int64_t value) noexcept { softgpu_signal_store(gpu_, signal, value); }
    std::int64_t compare_exchange(std::uint64_t signal, std::int64_t expected, std::int64_t desired) noexcept {
        return softgpu_signal_compare_exchange(gpu_, signal, expected, desired);
    }
    std::uint32_t watch_ready(std::uint64_t ready, std::uint64_t queue_id) {
        // The id by value, never a pointer: a handler may come late.
        const auto handler = [](void *id, std::int64_t) noexcept {
            return hsa_serializer::profiler_serializer::queue_ready(reinterpret_cast<std::uintptr_t>(id));
        };
        return softgpu_signal_on(gpu_, ready, SOFTGPU_EQ, -1, handler, reinterpret_cast<void *>(queue_id));
    }
    bool is_handler_thread() { return softgpu_is_handler_thread(); }

  private:
    softgpu_t *gpu_;
};

class soft_machine {
  public:
    explicit soft_machine(softgpu_t *gpu) noexcept : gpu_(gpu) {}

    softgpu_t *gpu() const noexcept { return gpu_; }

    bool create_signal(std::int64_t initial, std::uint64_t &signal) noexcept {
        return softgpu_signal_create(gpu_, SOFTGPU_FOR_HOST, initial, &signal) == 0 && signal != 0;
    }
    void destroy_signal(std::uint64_t signal) noexcept { softgpu_signal_destroy(gpu_, signal); }
    void store(std::uint64_t signal, std::int64_t value) noexcept { softgpu_signal_store(gpu_, signal, value); }
    void subtract_one(std::uint64_t signal) noexcept { softgpu_signal_subtract(gpu_, signal, 1); }
    bool on_below_one(std::uint64_t signal, bool (*handler)(std::int64_t, void *), void *arg) noexcept {
        // The emulated GPU's handlers get their argument first; this one is freed with its only call.
        struct both {
            bool (*handler)(std::int64_t, void *);
            void *arg;
        };
        auto *const call = new (std::nothrow) both{handler, arg};
        if (call == nullptr) return false;
        const auto turned = [](void *made, std::int64_t value) noexcept {
            const std::unique_ptr<both> the(static_cast<both *>(made));
            return the->handler(value, the->arg);
        };
        if (softgpu_signal_on(gpu_, signal, SOFTGPU_LT, 1, turned, call) == 0) return true;
        delete call;
        return false;
    }

  private:
    softgpu_t *gpu_;
};

} // namespace example

#endif // EXAMPLE_SOFT_MACHINE_HPP
