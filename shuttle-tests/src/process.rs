//! One schedule: applications, a host that toggles, the packet processors and two handler threads.

use crate::gpu::{Event, Gpu};
use hsa_serializer::{
    AqlPacket, DispatchError, Domain, Handler, MAX_PACKETS, Queue, Serializer, StallPolicy,
    Statistics,
};
use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::atomic::{AtomicBool, Ordering};
use shuttle::thread::{self, JoinHandle};
use std::sync::Arc;
use std::time::Duration;

/// Attempts to finish a shutdown, everything having completed, after which it is taken for endless.
const ATTEMPTS: usize = 1_000;

/// What happens in one schedule.
#[derive(Clone, Copy, Debug)]
pub struct Process {
    /// Applications, each with a thread and a queue of its own.
    pub applications: usize,
    /// Kernels that are in the queues before anything else begins.
    pub before: usize,
    /// Kernels that each application dispatches.
    pub dispatches: usize,
    /// Transitions, by the host's thread.
    pub toggles: usize,
    /// How often the host then takes what stands in the way for a stall, and releases it.
    pub stalls: usize,
    /// The host then lets everything through, or does not, and shuts down while applications
    /// dispatch. Otherwise every queue is destroyed at the end.
    pub shuts_down: bool,
    /// Whether kernels are serialized at the start.
    pub enabled: bool,
    /// The first application destroys its queue after its dispatches and goes on, as often, with
    /// another one.
    pub destroys: bool,
}

fn dispatch(gpu: &Gpu, queue: &mut Queue<Gpu>) {
    let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
    match queue.dispatch(&mut packets) {
        Ok(d) => gpu.submit(&packets[..d.packets], d.ticket, d.serialized),
        // It is passed on as it is, and is nobody's business here.
        Err(DispatchError::ShutDown) => {}
        Err(e) => gpu.breach(e.to_string()),
    }
}

/// Does handlers' work until told to stop.
fn handle(gpu: &Gpu, serializer: &Serializer<Gpu>, ready: bool, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) && !gpu.is_breached() {
        match gpu.event(ready) {
            None => {
                thread::yield_now();
                continue;
            }
            Some(Event::Ready(id)) => {
                if serializer.ready(id) == Handler::Drop {
                    gpu.unwatch(id);
                }
            }
            Some(Event::Ended(ticket)) => {
                if serializer.complete(ticket).is_err() {
                    gpu.breach("a completion was refused");
                }
            }
        }
        gpu.end();
    }
}

impl Process {
    /// Runs it, within a schedule, and returns what the serializer counted.
    pub(crate) fn run(self) -> Statistics {
        let (gpu, domain) = (Gpu::new(), Domain::new());
        let serializer = Serializer::<Gpu>::builder()
            .domain(domain.clone())
            .build(gpu.clone());
        if self.enabled {
            serializer.enable().expect("a signal");
        }
        let mut queues: Vec<_> = (0..self.applications)
            .map(|_| serializer.add_queue().expect("there is room"))
            .collect();
        for queue in &mut queues {
            (0..self.before).for_each(|_| dispatch(&gpu, queue));
        }
        gpu.begin(self.applications + 1);
        let stop = Arc::new(AtomicBool::new(false));
        let mut hardware = vec![spawn(&gpu, &serializer, {
            let stop = stop.clone();
            move |gpu, _| {
                while !stop.load(Ordering::Relaxed) && !gpu.is_breached() {
                    if !gpu.step() {
                        thread::yield_now();
                    }
                }
            }
        })];
        for ready in [true, false] {
            let stop = stop.clone();
            hardware.push(spawn(&gpu, &serializer, move |gpu, s| {
                handle(gpu, s, ready, &stop);
            }));
        }
        let applications: Vec<_> = queues
            .into_iter()
            .enumerate()
            .map(|(i, queue)| {
                spawn(&gpu, &serializer, move |gpu, s| {
                    let queue = self.application(gpu, s, queue, i == 0);
                    gpu.end();
                    queue
                })
            })
            .collect();
        self.host(&gpu, &serializer);
        let queues: Vec<_> = applications.into_iter().flat_map(join).collect();
        while !gpu.is_breached() && !gpu.is_through() {
            thread::yield_now();
        }
        // Every kernel has completed, so every barrier has ended and every tag is drained.
        if !gpu.is_breached() && serializer.statistics().barriers_live > 0 {
            gpu.breach("a barrier never goes");
        }
        if self.shuts_down {
            shut_down(&gpu, &serializer);
            drop(queues);
        } else {
            for queue in queues {
                self.destroy(&gpu, &serializer, queue);
            }
        }
        while !gpu.is_breached() && gpu.watched() > 0 {
            thread::yield_now();
        }
        stop.store(true, Ordering::Relaxed);
        hardware.into_iter().for_each(join);
        gpu.raise();
        finish(gpu, &domain, serializer)
    }

    fn application(
        self,
        gpu: &Gpu,
        serializer: &Serializer<Gpu>,
        mut queue: Queue<Gpu>,
        first: bool,
    ) -> Option<Queue<Gpu>> {
        (0..self.dispatches).for_each(|_| dispatch(gpu, &mut queue));
        if first && self.destroys {
            self.destroy(gpu, serializer, queue);
            queue = match serializer.add_queue() {
                Ok(queue) => queue,
                Err(_) if self.shuts_down => return None,
                Err(e) => panic!("{e}"),
            };
            (0..self.dispatches).for_each(|_| dispatch(gpu, &mut queue));
        }
        Some(queue)
    }

    fn destroy(self, gpu: &Gpu, serializer: &Serializer<Gpu>, queue: Queue<Gpu>) {
        gpu.destroy_queue(queue.id());
        // A shutdown may have given it up already.
        if serializer.queue_destroyed(queue.id()).is_err() && !self.shuts_down {
            gpu.breach("a live queue is unknown");
        }
    }

    fn host(self, gpu: &Gpu, serializer: &Serializer<Gpu>) {
        for i in 0..self.toggles {
            let on = (i % 2 == 0) != self.enabled;
            let done = if on {
                serializer.enable()
            } else {
                serializer.disable()
            };
            done.expect("a signal");
        }
        if self.stalls > 0 {
            gpu.gives_up_exclusiveness();
            let mut watch = serializer.watch_stalls(Duration::ZERO, StallPolicy::Release);
            for _ in 0..self.stalls {
                watch.check_stalls(Duration::ZERO);
            }
        }
        if self.shuts_down {
            if thread_rng().gen_bool(0.5) {
                gpu.gives_up_exclusiveness();
                serializer.release_all();
            }
            // It can't finish yet, but removes what it can.
            let _ = serializer.try_finish_shutdown();
        }
        gpu.end();
    }
}

/// Everything has completed: nothing but handlers can hold up the end.
fn shut_down(gpu: &Gpu, serializer: &Serializer<Gpu>) {
    for _ in 0..ATTEMPTS {
        if serializer.try_finish_shutdown().is_ok() {
            gpu.is_over();
            return;
        }
        if gpu.is_breached() {
            return;
        }
        thread::yield_now();
    }
    gpu.breach("the shutdown never finishes");
}

fn spawn<T: Send + 'static>(
    gpu: &Gpu,
    serializer: &Serializer<Gpu>,
    run: impl FnOnce(&Gpu, &Serializer<Gpu>) -> T + Send + 'static,
) -> JoinHandle<T> {
    let (gpu, serializer) = (gpu.clone(), serializer.clone());
    thread::spawn(move || run(&gpu, &serializer))
}

fn join<T>(thread: JoinHandle<T>) -> T {
    thread.join().expect("no thread panics")
}

/// Everything has completed and every queue is gone: nothing may be left.
fn finish(gpu: Gpu, domain: &Domain, serializer: Serializer<Gpu>) -> Statistics {
    // A thread may still be giving up its handle of the domain.
    for _ in 0..1_000 {
        serializer.collect();
        if domain.pending() == 0 {
            break;
        }
        thread::yield_now();
    }
    gpu.raise();
    let statistics = serializer.statistics();
    if statistics.barriers_live > 0 {
        gpu.breach("a barrier was left");
    }
    drop(serializer);
    gpu.finish();
    statistics
}
