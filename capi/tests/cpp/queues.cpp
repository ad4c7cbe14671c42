// Queues that go: at any moment, from any thread, and what comes late; on plain integers.

#include "stage.hpp"

#include <condition_variable>

using namespace stage;

namespace {

struct theater {
    std::shared_ptr<runtime> machine = std::make_shared<runtime>();
    hsa_serializer::serializer serializer{machine};
};

/// A queue that one thread dispatches on while another tells of its end.
struct pair {
    std::mutex lock;
    std::condition_variable changed;
    queue *on = nullptr;
    int round = 0;

    /// Until the queue is gone; how many kernels there were.
    std::uint64_t dispatch(const serializer_ref &serializer, bool some_run) {
        queue mine = serializer.add_queue();
        {
            const std::lock_guard<std::mutex> locked(lock);
            on = &mine;
            ++round;
        }
        changed.notify_all();
        dispatched<aql_packet> dispatch;
        std::uint64_t count = 0;
        status code;
        while ((code = mine.dispatch(dispatch)) == HSA_SERIALIZER_SUCCESS) {
            if (some_run && count % 2 == 0) CHECK_OK(serializer.complete(dispatch.ticket));
            // Sixteen threads on few cores: the other one has to come by.
            if (++count % 16 == 0) std::this_thread::yield();
        }
        CHECK(!dispatch.ticket && dispatch.packets.empty());
        if (code != HSA_SERIALIZER_QUEUE_GONE) CHECK_EQ(code, HSA_SERIALIZER_STALE_HANDLE);
        CHECK_EQ(mine.dispatch(dispatch), HSA_SERIALIZER_STALE_HANDLE);
        // The queue's memory goes when the other is through with it.
        std::unique_lock<std::mutex> waiting(lock);
        changed.wait(waiting, [&] { return on == nullptr; });
        return count;
    }

    void destroy(int in_round) {
        std::unique_lock<std::mutex> waiting(lock);
        changed.wait(waiting, [&] { return on != nullptr && round == in_round; });
        waiting.unlock();
        for (int n = 0; n < in_round % 4; ++n) std::this_thread::yield();
        CHECK_OK(on->destroyed());
        CHECK_EQ(on->destroyed(), HSA_SERIALIZER_STALE_HANDLE);
        waiting.lock();
        on = nullptr;
        changed.notify_all();
    }
};

/// Sixteen threads; with `beside`, until they are through.
template <class Beside> void race(theater &the, bool some_run, const Beside &beside) {
    constexpr int pairs = 8, rounds = 250;
    std::vector<std::unique_ptr<pair>> all;
    std::vector<std::thread> threads;
    std::atomic<std::uint64_t> kernels{0};
    for (int n = 0; n < pairs; ++n) {
        pair &between = *all.emplace_back(std::make_unique<pair>());
        threads.emplace_back([&] {
            for (int round = 1; round <= rounds; ++round) kernels += between.dispatch(the.serializer, some_run);
        });
        threads.emplace_back([&] {
            for (int round = 1; round <= rounds; ++round) between.destroy(round);
        });
    }
    std::atomic<bool> stop{false};
    std::thread other([&] {
        while (!stop) beside();
    });
    for (std::thread &thread : threads) thread.join();
    stop = true;
    other.join();
    CHECK(kernels > 0);
    CHECK_EQ(the.serializer.statistics().misuse, 0U);
    CHECK_EQ(the.serializer.statistics().queues_gone, static_cast<std::uint64_t>(pairs * rounds));
    finish(the.serializer, *the.machine);
    CHECK_EQ(the.machine->live(), 0U);
}

} // namespace

TEST(s40_dispatches_against_the_queues_end) {
    theater the;
    race(the, true, [&] { the.machine->run_handlers(); });
}

/// None of the kernels runs: they are behind barriers, and wait for their turn.
TEST(s40_the_same_while_the_mode_changes) {
    theater the;
    race(the, false, [&] {
        the.serializer.enable();
        the.serializer.disable();
        the.machine->run_handlers();
    });
}

TEST(s41_the_turn_moves_on_whichever_queue_goes) {
    theater the;
    queue holder = the.serializer.add_queue(), waiting = the.serializer.add_queue();
    queue never_ready = the.serializer.add_queue(), next = the.serializer.add_queue();
    the.serializer.enable();
    const sent d1(*the.machine, holder), d2(*the.machine, waiting);
    const sent d3(*the.machine, never_ready), d4(*the.machine, next);
    d1.arrive();
    d1.start();
    d2.arrive();
    d4.arrive();
    CHECK_OK(never_ready.destroyed());
    CHECK_OK(waiting.destroyed());
    CHECK(!d4.is_granted());
    CHECK_OK(holder.destroyed());
    CHECK(d4.is_granted());
    d4.start();
    // Late, and of queues that are gone.
    CHECK_OK(the.serializer.complete(d1.receipt()));
    CHECK_OK(the.serializer.complete(d3.receipt()));
    CHECK_OK(the.serializer.complete(d4.receipt()));
    CHECK_EQ(the.serializer.statistics().misuse, 0U);
    finish(the.serializer, *the.machine);
    CHECK_EQ(the.machine->live(), 0U);
}

TEST(s47_a_queue_that_goes_after_the_end) {
    theater the;
    queue q0 = the.serializer.add_queue(), q1 = the.serializer.add_queue();
    finish(the.serializer, *the.machine);
    const std::uint64_t calls = the.machine->calls();
    CHECK_OK(q0.destroyed());
    CHECK_OK(hsa_serializer_destroy(the.serializer.handle()));
    CHECK_OK(q1.destroyed());
    CHECK_EQ(q1.destroyed(), HSA_SERIALIZER_STALE_HANDLE);
    CHECK_EQ(the.machine->calls(), calls);
}

/// The handler of a queue that is gone is called once more when its signal's handle is another queue's.
TEST(s66_a_late_handler_of_a_recycled_signal) {
    theater the;
    the.serializer.enable();
    queue gone = the.serializer.add_queue();
    const std::uint64_t id = gone.id();
    const sent old(*the.machine, gone);
    CHECK_OK(gone.destroyed());
    the.machine->run_handlers();
    CHECK(within(std::chrono::seconds(10), [&] {
        the.serializer.collect();
        return !the.machine->is_alive(old.ready) && !the.machine->is_alive(old.block);
    }));
    queue heir = the.serializer.add_queue();
    const sent young(*the.machine, heir);
    CHECK(young.ready == old.ready || young.ready == old.block);
    CHECK(heir.id() != id);
    CHECK(!ready(id));
    CHECK_EQ(the.machine->value(young.block), 1);
    young.arrive();
    CHECK(!ready(id));
    young.start();
}

/// The end against completions on other threads: the runtime of the stage fails where a signal is destroyed twice, or
/// touched afterwards.
TEST(s69_the_end_against_late_completions) {
    for (int round = 0; round < 100; ++round) {
        theater the;
        std::vector<queue> queues;
        std::vector<sent> kernels;
        for (int n = 0; n < 4; ++n) queues.push_back(the.serializer.add_queue());
        for (int n = 0; n < 16; ++n) {
            if (n == 8) the.serializer.request().end();
            kernels.emplace_back(*the.machine, queues[static_cast<std::size_t>(n % 4)]);
        }
        std::thread late([&] {
            for (const sent &kernel : kernels) {
                CHECK(!kernel.serialized());
                CHECK_OK(the.serializer.complete(kernel.receipt()));
            }
            // Whichever comes first, this or the end: both are good.
            for (queue &one : queues) CHECK_OK(one.destroyed());
        });
        finish(the.serializer, *the.machine);
        late.join();
        finish(the.serializer, *the.machine);
        CHECK_EQ(the.machine->live(), 0U);
    }
}

/// Somebody looks while barriers and queues come and go.
TEST(s67_looking_while_signals_are_recycled) {
    theater the;
    std::atomic<bool> stop{false};
    std::thread toggler([&] {
        for (int n = 0; n < 500; ++n) {
            queue q0 = the.serializer.add_queue();
            const sent d1(*the.machine, q0);
            the.serializer.enable();
            the.serializer.disable();
            CHECK_OK(the.serializer.complete(d1.receipt()));
            CHECK_OK(q0.destroyed());
            the.machine->run_handlers();
        }
        stop = true;
    });
    std::size_t looked = 0;
    while (!stop) {
        CHECK(!the.serializer.snapshot().empty());
        CHECK(!snapshots().empty());
        ++looked;
    }
    toggler.join();
    CHECK(looked > 0);
    finish(the.serializer, *the.machine);
    CHECK_EQ(the.machine->live(), 0U);
}
