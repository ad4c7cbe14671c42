// A runtime of plain integers, whose handles are given out again last in, first out, as HSA's are; and the packet
// processor's part played by hand.

#ifndef STAGE_HPP
#define STAGE_HPP

#include "check.hpp"

#include <cstring>
#include <map>
#include <mutex>
#include <thread>

namespace stage {

using namespace hsa_serializer;

class runtime {
  public:
    enum class failure { none, refuses, gives_null, throws, has_no_memory };

    std::uint32_t create_signal(signal_kind, std::int64_t initial, std::uint64_t &signal) {
        const std::lock_guard<std::mutex> locked(lock_);
        ++calls_;
        switch (std::exchange(fail_next, failure::none)) {
        case failure::refuses:
            return 0x1008;
        case failure::gives_null:
            signal = 0;
            return 0;
        case failure::throws:
            throw std::runtime_error("no signal");
        case failure::has_no_memory:
            throw std::bad_alloc();
        case failure::none:
            break;
        }
        if (free_.empty()) free_.push_back(0x1000 + 64 * (values_.size() + 1));
        signal = free_.back();
        free_.pop_back();
        values_[signal] = {true, initial};
        ++created_;
        return 0;
    }
    std::uint32_t destroy_signal(std::uint64_t signal) {
        const std::lock_guard<std::mutex> locked(lock_);
        ++calls_;
        CHECK(values_.at(signal).first);
        values_[signal].first = false;
        free_.push_back(signal);
        return 0;
    }
    void store(std::uint64_t signal, std::int64_t value) noexcept {
        const std::lock_guard<std::mutex> locked(lock_);
        ++calls_;
        CHECK(values_.at(signal).first);
        values_[signal].second = value;
    }
    std::int64_t compare_exchange(std::uint64_t signal, std::int64_t expected, std::int64_t desired) noexcept {
        const std::lock_guard<std::mutex> locked(lock_);
        ++calls_;
        CHECK(values_.at(signal).first);
        const std::int64_t seen = values_[signal].second;
        if (seen == expected) values_[signal].second = desired;
        return seen;
    }
    std::uint32_t watch_ready(std::uint64_t ready, std::uint64_t queue_id) {
        const std::lock_guard<std::mutex> locked(lock_);
        ++calls_;
        if (std::exchange(watch_throws, false)) throw 7;
        watched_[queue_id] = ready;
        return 0;
    }

    /// The handlers whose signal is -1 run, until none is left; as HSA's thread does.
    void run_handlers() {
        for (bool again = true; std::exchange(again, false);) {
            for (const auto &[queue_id, signal] : watched()) {
                if (value(signal) != -1) continue;
                again = true;
                if (ready(queue_id)) continue;
                const std::lock_guard<std::mutex> locked(lock_);
                watched_.erase(queue_id);
            }
        }
    }

    std::map<std::uint64_t, std::uint64_t> watched() const {
        const std::lock_guard<std::mutex> locked(lock_);
        return watched_;
    }
    bool is_alive(std::uint64_t signal) const {
        const std::lock_guard<std::mutex> locked(lock_);
        const auto found = values_.find(signal);
        return found != values_.end() && found->second.first;
    }
    std::int64_t value(std::uint64_t signal) const {
        const std::lock_guard<std::mutex> locked(lock_);
        return values_.at(signal).second;
    }
    /// What the packet processor does; the serializer's calls are counted apart.
    void subtract_one(std::uint64_t signal) {
        const std::lock_guard<std::mutex> locked(lock_);
        CHECK(values_.at(signal).first);
        --values_[signal].second;
    }
    std::size_t live() const {
        const std::lock_guard<std::mutex> locked(lock_);
        std::size_t count = 0;
        for (const auto &value : values_) count += value.second.first;
        return count;
    }
    std::uint64_t created() const {
        const std::lock_guard<std::mutex> locked(lock_);
        return created_;
    }
    std::uint64_t calls() const {
        const std::lock_guard<std::mutex> locked(lock_);
        return calls_;
    }

    failure fail_next = failure::none;
    bool watch_throws = false;

  private:
    mutable std::mutex lock_;
    std::map<std::uint64_t, std::pair<bool, std::int64_t>> values_;
    std::map<std::uint64_t, std::uint64_t> watched_;
    std::vector<std::uint64_t> free_;
    std::uint64_t created_ = 0, calls_ = 0;
};

/// A kernel that was dispatched, with the packets in front of it.
struct sent {
    sent(runtime &machine, queue &on) : machine_(&machine) {
        CHECK_OK(on.dispatch(dispatch_));
        for (const aql_packet &packet : dispatch_.packets) {
            // Whoever has a completion signal is one of the two that take turns.
            if (completion(packet) == 0) {
                transition = field(packet, 8);
            } else {
                (ready == 0 ? ready : block) = completion(packet);
                escape = field(packet, 16);
            }
        }
        CHECK_EQ(dispatch_.serialized, block != 0);
    }

    ticket receipt() const { return dispatch_.ticket; }
    bool serialized() const { return dispatch_.serialized; }

    /// The queue gets to it: its handler runs.
    void arrive() const {
        machine_->subtract_one(ready);
        machine_->run_handlers();
    }
    bool is_granted() const { return machine_->value(block) == 0; }
    /// The kernel runs.
    void start() const {
        CHECK(is_granted());
        machine_->subtract_one(block);
    }

    std::uint64_t transition = 0, ready = 0, block = 0;
    /// The kill switch, which lets it through as well.
    std::uint64_t escape = 0;

  private:
    static std::uint64_t field(const aql_packet &packet, std::size_t offset) {
        std::uint64_t value;
        std::memcpy(&value, packet.bytes + offset, sizeof value);
        return value;
    }
    static std::uint64_t completion(const aql_packet &packet) { return field(packet, 56); }

    runtime *machine_;
    dispatched<aql_packet> dispatch_;
};

/// Waits until it holds, for so long at most.
template <class Condition> bool within(std::chrono::nanoseconds time, const Condition &condition) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (!condition()) {
        if (std::chrono::steady_clock::now() >= end) return false;
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    return true;
}

/// Ends the serializer, whose handlers run here.
inline void finish(const serializer_ref &serializer, runtime &machine) {
    serializer.begin_shutdown();
    CHECK(within(std::chrono::seconds(20), [&] {
        machine.run_handlers();
        return !serializer.try_finish_shutdown();
    }));
}

} // namespace stage

#endif // STAGE_HPP
