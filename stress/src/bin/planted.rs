//! Faults, planted one at a time, that a sanitizer has to report, and the same programs without them,
//! that it has to pass: `cargo xtask sanitize` runs them before anything else.
//!
//! They go through what the crate is built on: an epoch collector of their own, `Arc`s, and the standard
//! library's locks and channels. So a suppression that hid a fault in the crate would hide these.

use clap::{Parser, ValueEnum};
use crossbeam_epoch::{Atomic, Collector, Owned};
use std::cell::UnsafeCell;
use std::hint::black_box;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Arc, Barrier, Condvar, Mutex, OnceLock, RwLock, mpsc};
use std::thread;
use std::time::Duration;

#[derive(Parser)]
struct Arguments {
    #[arg(value_enum)]
    fault: Fault,
    /// The same program without the fault.
    #[arg(long)]
    mended: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Fault {
    /// A node is published without a release, and read under a pin.
    RacePublished,
    /// A node is freed at once, and not after the pins that may still look at it.
    RaceFreed,
    /// A plain word is written beside a lock, not under it.
    RaceBesideLock,
    /// Who found an `Arc`'s count to be the last one looks at it without having acquired the others'.
    RaceLastHandle,
    /// A node is read after the pin has ended, and it was freed.
    UseAfterUnpin,
    /// A node is unlinked, and nobody defers its destruction.
    Leak,
}

/// How often what may go unseen once is repeated.
const TIMES: usize = 200;

/// A plain word that threads share.
#[derive(Default)]
struct Word(UnsafeCell<u64>);

// SAFETY: it is none: that is what the sanitizer is to say. The twins order their accesses.
unsafe impl Sync for Word {}

impl Word {
    fn read(&self) -> u64 {
        // SAFETY: as above.
        unsafe { self.0.get().read_volatile() }
    }

    fn write(&self, value: u64) {
        // SAFETY: as above.
        unsafe { self.0.get().write_volatile(value) };
    }
}

/// `store`: by which ordering a node becomes visible.
fn published(mended: bool) {
    let store = if mended { Release } else { Relaxed };
    let collector = Collector::new();
    for _ in 0..TIMES {
        let slot = Atomic::<Word>::null();
        thread::scope(|scope| {
            scope.spawn(|| {
                let pinned = collector.register();
                let guard = pinned.pin();
                loop {
                    let node = slot.load(Acquire, &guard);
                    // SAFETY: it is freed below only, when this thread has ended.
                    if let Some(node) = unsafe { node.as_ref() } {
                        break black_box(node.read());
                    }
                    thread::yield_now();
                }
            });
            let node = Word::default();
            node.write(1);
            slot.store(Owned::new(node), store);
        });
        // SAFETY: nobody else has it.
        drop(unsafe { slot.into_owned() });
    }
}

/// A reader is pinned and looks at a node again and again; the writer unlinks it and frees it.
fn freed(mended: bool) {
    let collector = Collector::new();
    for _ in 0..TIMES {
        let slot = Atomic::new(Word::default());
        let (begin, looked) = (Barrier::new(2), AtomicUsize::new(0));
        thread::scope(|scope| {
            scope.spawn(|| {
                let pinned = collector.register();
                let guard = pinned.pin();
                let node = slot.load(Acquire, &guard);
                // SAFETY: pinned; but without the deferral that is worth nothing.
                let node = unsafe { node.deref() };
                begin.wait();
                black_box(node.read());
                looked.fetch_add(1, Relaxed);
            });
            let pinned = collector.register();
            // Before the reader looks: a first pin collects, which would order it behind a reader that is
            // through.
            let guard = pinned.pin();
            begin.wait();
            let node = slot.swap(crossbeam_epoch::Shared::null(), Release, &guard);
            // Without this order the reader is through by the time, and by that alone.
            while looked.load(Relaxed) == 0 {
                thread::yield_now();
            }
            if mended {
                // SAFETY: it is unlinked, and freed when the reader has unpinned.
                unsafe { guard.defer_destroy(node) };
            } else {
                // SAFETY: there is none: this is the fault.
                drop(unsafe { node.into_owned() });
            }
            guard.flush();
        });
    }
}

/// Many threads under locks that they have to wait for, a condition, a value that is made once, a
/// channel, and a scope that waits for its threads: each orders what is plain beside it.
fn beside_lock(mended: bool) {
    static MADE: OnceLock<Word> = OnceLock::new();
    let (lock, condition) = (Mutex::new(0), Condvar::new());
    let (word, shared) = (Word::default(), RwLock::new(0));
    let add = || {
        let mut held = lock.lock().unwrap();
        while *held % 3 == 2 {
            // Somebody may always have to wait; nobody for ever.
            held = condition
                .wait_timeout(held, Duration::from_micros(50))
                .unwrap()
                .0;
            *held += 1;
        }
        *held += 1;
        if !mended {
            drop(held);
        }
        word.write(word.read() + 1);
        condition.notify_all();
        *shared.write().unwrap() += 1;
        black_box(*shared.read().unwrap());
    };
    let (send, receive) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..4 {
            let send = send.clone();
            scope.spawn(move || {
                for _ in 0..TIMES {
                    add();
                    let made = MADE.get_or_init(|| {
                        let word = Word::default();
                        word.write(7);
                        word
                    });
                    send.send(Box::new(made.read())).unwrap();
                }
            });
        }
        drop(send);
        assert_eq!(receive.iter().count(), 4 * TIMES);
    });
    black_box(word.read());
}

/// Threads that write different words of what they share, and go; the last one frees it.
fn last_handle(mended: bool) {
    for _ in 0..TIMES {
        let shared = Arc::new((Word::default(), Word::default(), AtomicUsize::new(2)));
        let begin = Arc::new(Barrier::new(2));
        let threads = [0, 1].map(|n| {
            let (shared, begin) = (shared.clone(), begin.clone());
            thread::spawn(move || {
                begin.wait();
                if n == 0 {
                    shared.0.write(1);
                } else {
                    shared.1.write(1);
                }
                // Its own count of handles, which does what an `Arc`'s does but for the fault.
                let last = shared
                    .2
                    .fetch_sub(1, if mended { Release } else { Relaxed })
                    == 1;
                if last {
                    std::sync::atomic::fence(Acquire);
                    black_box(shared.0.read() + shared.1.read());
                }
            })
        });
        drop(shared);
        for thread in threads {
            thread.join().unwrap();
        }
    }
}

/// A node's destructor has run, and somebody who was pinned once still looks at it.
fn after_unpin(mended: bool) {
    let collector = Collector::new();
    let pinned = collector.register();
    let slot = Atomic::new([7_u64; 16]);
    let guard = pinned.pin();
    let node = slot.swap(crossbeam_epoch::Shared::null(), Release, &guard);
    let place = node.as_raw();
    // SAFETY: it is unlinked.
    unsafe { guard.defer_destroy(node) };
    guard.flush();
    if mended {
        // SAFETY: still pinned.
        black_box(unsafe { place.read_volatile() });
    }
    drop(guard);
    for _ in 0..8 {
        pinned.pin().flush();
    }
    if !mended {
        // SAFETY: there is none: this is the fault.
        black_box(unsafe { place.read_volatile() });
    }
}

fn leak(mended: bool) {
    let collector = Collector::new();
    let pinned = collector.register();
    for n in 0..TIMES {
        let slot = Atomic::new([n as u64; 16]);
        let guard = pinned.pin();
        let node = slot.swap(crossbeam_epoch::Shared::null(), Release, &guard);
        black_box(&node);
        if mended {
            // SAFETY: it is unlinked.
            unsafe { guard.defer_destroy(node) };
        }
    }
}

fn main() {
    let Arguments { fault, mended } = Arguments::parse();
    match fault {
        Fault::RacePublished => published(mended),
        Fault::RaceFreed => freed(mended),
        Fault::RaceBesideLock => beside_lock(mended),
        Fault::RaceLastHandle => last_handle(mended),
        Fault::UseAfterUnpin => after_unpin(mended),
        Fault::Leak => leak(mended),
    }
}
