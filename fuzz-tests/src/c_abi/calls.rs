//! Which number is which function, and how everything ends.

use super::*;

/// How many numbers there are.
const FUNCTIONS: u8 = 68;
/// A waiting function waits so long at most, in nanoseconds.
const SOON: u64 = 100;

impl Run {
    pub(super) fn call(&mut self, call: Call) {
        let number = call.number;
        let host = self.host;
        let data = host.userdata();
        let told = call.nulls & 4 == 0;
        // SAFETY: (of all calls) pointers are null or point to what is said; one thread calls.
        match call.function % FUNCTIONS {
            0..=2 => {
                if !self.one_more() {
                    return;
                }
                let ((options, standing), runtime) = (self.options(call), self.runtime(call));
                let (options, standing, runtime) = given(call, &options, standing, &runtime);
                let bad_runtime = runtime.is_null();
                let made = self.output(call, standing, true, |out| {
                    // SAFETY: as above.
                    let status = unsafe { hsa_serializer_create(options, runtime, out) };
                    assert!(!bad_runtime || status != HSA_SERIALIZER_SUCCESS);
                    status
                });
                self.made(Kind::Serializer, made.map(|made| made.handle));
            }
            3..=6 => {
                let (owner, standing) = self.pool.pick(Kind::Serializer, call.handle);
                let serializer = hsa_serializer_t { handle: owner };
                let queue = self.output(call, standing, true, |out| {
                    // SAFETY: as above.
                    unsafe { hsa_serializer_queue_add(serializer, out) }
                });
                self.queue_added(owner, queue);
            }
            7..=13 => self.dispatch(call, None),
            14 => self.dispatch(call, Some(number)),
            15..=20 => self.with_ticket(call, Kind::Serializer, |handle, ticket| {
                hsa_serializer_complete(hsa_serializer_t { handle }, ticket)
            }),
            21 => self.with_ticket(call, Kind::Serializer, |handle, ticket| {
                hsa_serializer_check(hsa_serializer_t { handle }, ticket)
            }),
            22 | 23 => self.with_ticket(call, Kind::BarrierSet, |handle, ticket| {
                hsa_serializer_barrier_set_complete(hsa_serializer_barrier_set_t { handle }, ticket)
            }),
            24 => self.gap(call),
            25 => self.ends(call, Kind::Queue, |handle| {
                hsa_serializer_queue_destroyed(hsa_serializer_queue_t { handle })
            }),
            26 => {
                self.one(call, Kind::Queue, true, |handle, out| {
                    let queue = hsa_serializer_queue_t { handle };
                    // SAFETY: as above.
                    unsafe { hsa_serializer_queue_in_flight(queue, out) }
                });
            }
            27 => {
                let (handle, standing) = self.pool.pick(Kind::Queue, call.handle);
                // It stays its own.
                let standing = match standing {
                    Standing::Stale => Standing::Live,
                    other => other,
                };
                let queue = hsa_serializer_queue_t { handle };
                // SAFETY: as above.
                self.output(call, standing, true, |out| unsafe {
                    hsa_serializer_queue_id(queue, out)
                });
            }
            28 | 29 => {
                self.one(call, Kind::Serializer, false, |handle, out| {
                    // SAFETY: as above.
                    unsafe { hsa_serializer_enable(hsa_serializer_t { handle }, out) }
                });
            }
            30 | 31 => {
                self.one(call, Kind::Serializer, false, |handle, out| {
                    // SAFETY: as above.
                    unsafe { hsa_serializer_disable(hsa_serializer_t { handle }, out) }
                });
            }
            32 => {
                let made = self.one(call, Kind::Serializer, true, |handle, out| {
                    // SAFETY: as above.
                    unsafe { hsa_serializer_request(hsa_serializer_t { handle }, out) }
                });
                self.made(
                    Kind::Request,
                    made.map(|made: hsa_serializer_request_t| made.handle),
                );
            }
            33 => {
                let (handle, standing) = self.pool.pick(Kind::Request, call.handle);
                let request = hsa_serializer_request_t { handle };
                let mut ended = false;
                self.output(call, standing, false, |out| {
                    // SAFETY: as above.
                    let status = unsafe { hsa_serializer_request_end(request, out) };
                    ended = status == HSA_SERIALIZER_SUCCESS;
                    status
                });
                if ended {
                    self.pool.ended(Kind::Request, handle);
                }
            }
            34 => {
                self.one(call, Kind::Serializer, false, |handle, out| {
                    // SAFETY: as above.
                    unsafe { hsa_serializer_acquire(hsa_serializer_t { handle }, out) }
                });
            }
            35 => {
                self.one(call, Kind::Serializer, false, |handle, out| {
                    // SAFETY: as above.
                    unsafe { hsa_serializer_release(hsa_serializer_t { handle }, out) }
                });
            }
            36 => {
                self.one(call, Kind::Serializer, true, |handle, out| {
                    // SAFETY: as above.
                    unsafe { hsa_serializer_requests(hsa_serializer_t { handle }, out) }
                });
                self.one(call, Kind::Serializer, true, |handle, out| {
                    // SAFETY: as above.
                    unsafe { hsa_serializer_mode(hsa_serializer_t { handle }, out) }
                });
            }
            37 => {
                self.none(call, Kind::Serializer, |handle| {
                    let call = told.then_some(on_stuck as _);
                    let serializer = hsa_serializer_t { handle };
                    // SAFETY: as above.
                    unsafe { hsa_serializer_drain(serializer, number.min(SOON), call, data) }
                });
            }
            38 => {
                let made = self.one(call, Kind::Serializer, true, |handle, out| {
                    // SAFETY: as above.
                    unsafe { hsa_serializer_cut(hsa_serializer_t { handle }, out) }
                });
                self.made(
                    Kind::Cut,
                    made.map(|made: hsa_serializer_cut_t| made.handle),
                );
            }
            39 => {
                let null = call.nulls & 2 != 0;
                self.one(call, Kind::Cut, true, |handle, out| {
                    let mut queues = [SENTINEL; WORDS];
                    let array = if null {
                        ptr::null_mut()
                    } else {
                        queues.as_mut_ptr().cast()
                    };
                    let capacity = (number as usize).min(WORDS / 2);
                    let cut = hsa_serializer_cut_t { handle };
                    // SAFETY: as above.
                    unsafe { hsa_serializer_cut_in_flight(cut, array, capacity, out) }
                });
            }
            40 => self.ends(call, Kind::Cut, |handle| {
                hsa_serializer_cut_end(hsa_serializer_cut_t { handle })
            }),
            41 => self.ends(call, Kind::Cut, |handle| {
                // SAFETY: as above.
                unsafe {
                    hsa_serializer_cut_withdraw(hsa_serializer_cut_t { handle }, ptr::null_mut())
                }
            }),
            42 => {
                self.none(call, Kind::Serializer, |handle| {
                    hsa_serializer_begin_shutdown(hsa_serializer_t { handle })
                });
            }
            43 => {
                self.none(call, Kind::Serializer, |handle| {
                    let call = told.then_some(on_remaining as _);
                    let serializer = hsa_serializer_t { handle };
                    let soon = number.min(SOON);
                    // SAFETY: as above.
                    unsafe { hsa_serializer_finish_shutdown(serializer, soon, call, data) }
                });
            }
            44 => {
                self.none(call, Kind::Serializer, |handle| {
                    let call = told.then_some(on_remaining as _);
                    let serializer = hsa_serializer_t { handle };
                    // SAFETY: as above.
                    unsafe { hsa_serializer_try_finish_shutdown(serializer, call, data) }
                });
            }
            45 => {
                self.none(call, Kind::Serializer, |handle| {
                    hsa_serializer_release_all(hsa_serializer_t { handle })
                });
            }
            46 => {
                let (_, left) = self.none(call, Kind::Serializer, |handle| {
                    hsa_serializer_leave(hsa_serializer_t { handle })
                });
                self.left |= left;
            }
            47 => self.ends(call, Kind::Serializer, |handle| {
                hsa_serializer_destroy(hsa_serializer_t { handle })
            }),
            48 => {
                self.none(call, Kind::Serializer, |handle| {
                    hsa_serializer_collect(hsa_serializer_t { handle })
                });
            }
            49 => {
                let made = self.one(call, Kind::Serializer, true, |handle, out| {
                    let policy = u32::from(call.item.how % 3);
                    let serializer = hsa_serializer_t { handle };
                    // SAFETY: as above.
                    unsafe { hsa_serializer_stall_watch_create(serializer, number, policy, out) }
                });
                self.made(
                    Kind::StallWatch,
                    made.map(|made: hsa_serializer_stall_watch_t| made.handle),
                );
            }
            50 => {
                self.one(call, Kind::StallWatch, false, |handle, out| {
                    let call = told.then_some(on_stall as _);
                    let watch = hsa_serializer_stall_watch_t { handle };
                    // SAFETY: as above.
                    unsafe { hsa_serializer_stall_watch_check(watch, number, call, data, out) }
                });
            }
            51 => self.ends(call, Kind::StallWatch, |handle| {
                hsa_serializer_stall_watch_destroy(hsa_serializer_stall_watch_t { handle })
            }),
            52 => self.statistics(call, number),
            53 => {
                self.none(call, Kind::Serializer, |handle| {
                    let serializer = hsa_serializer_t { handle };
                    // SAFETY: as above.
                    unsafe { hsa_serializer_snapshot_text(serializer, Some(on_text), data) }
                });
            }
            54 => {
                let made = self.output(call, Standing::Live, true, |out| {
                    // SAFETY: as above.
                    unsafe { hsa_serializer_domain_create(out) }
                });
                self.made(
                    Kind::Domain,
                    made.map(|made: hsa_serializer_domain_t| made.handle),
                );
            }
            55 => self.ends(call, Kind::Domain, |handle| {
                hsa_serializer_domain_destroy(hsa_serializer_domain_t { handle })
            }),
            56 => {
                let (handle, standing) = self.pool.pick(Kind::Domain, call.handle);
                let standing = match standing {
                    Standing::Null => Standing::Live,
                    other => other,
                };
                let domain = hsa_serializer_domain_t { handle };
                // SAFETY: as above.
                self.output(call, standing, true, |out| unsafe {
                    hsa_serializer_domain_pending(domain, out)
                });
            }
            57..=60 => self.agents(call, number),
            61..=63 => self.barriers(call, number),
            64 => match call.handle.how % 4 {
                0 => host.refuse_nothing(),
                1 => host.refuse_signals((number % 4) as usize, NoSignal::Null),
                2 => host.refuse_signals((number % 4) as usize, NoSignal::Status(0x1008)),
                _ => host.state().no_watch = told.then_some(0x1001),
            },
            65 => {
                hsa_serializer_ready(number);
                host.call_handlers();
            }
            66 => {
                // A queue gets to its next serialized kernel.
                let mut state = host.state();
                let mut fired: Vec<_> = state.ready.values().copied().collect();
                fired.sort_unstable();
                if let Some(ready) = fired.get(usize::from(call.handle.which) % fired.len().max(1))
                {
                    if state.signals.get(ready) == Some(&0) {
                        state.signals.insert(*ready, -1);
                    }
                }
                drop(state);
                host.call_handlers();
            }
            _ => {
                host.state().is_handler_thread = told && number & 1 != 0;
                hsa_serializer_status_string(number as u32);
            }
        }
    }

    fn statistics(&mut self, call: Call, number: u64) {
        let mut counted = [SENTINEL; WORDS];
        let size = match call.item.how % 4 {
            0 => (number as usize).min(size_of_val(&counted)),
            _ => size_of::<hsa_serializer_statistics_t>(),
        };
        counted[0] = size as u64;
        let before = counted;
        let (handle, standing) = self.pool.pick(Kind::Serializer, call.handle);
        let serializer = hsa_serializer_t { handle };
        // SAFETY: there is so much memory.
        let status = unsafe { hsa_serializer_statistics(serializer, counted.as_mut_ptr().cast()) };
        self.check(standing, false, status, call);
        let written = if status == HSA_SERIALIZER_SUCCESS {
            size / 8
        } else {
            0
        };
        assert_eq!(before[written..], counted[written..], "{call:?}");
    }

    fn agents(&mut self, call: Call, number: u64) {
        let data = self.host.userdata();
        let agent = u64::from(call.item.which % 8);
        match (call.function, call.item.how % 6) {
            (_, 0) => {
                if !self.one_more() {
                    return;
                }
                let (options, standing) = self.options(call);
                let function = (call.nulls & 4 == 0).then_some(make as _);
                let made = self.output(call, standing, true, |out| {
                    // SAFETY: pointers are good or null.
                    let status = unsafe {
                        hsa_serializer_agents_create(&raw const options, function, data, out)
                    };
                    assert!(function.is_some() || status != HSA_SERIALIZER_SUCCESS);
                    status
                });
                self.made(
                    Kind::Agents,
                    made.map(|made: hsa_serializer_agents_t| made.handle),
                );
            }
            (_, 1 | 2) => {
                // An agent that is new has a serializer.
                if !self.one_more() {
                    return;
                }
                let (group, standing) = self.pool.pick(Kind::Agents, call.handle);
                let agents = hsa_serializer_agents_t { handle: group };
                let of = self.output(call, standing, true, |out| {
                    // SAFETY: as above.
                    unsafe { hsa_serializer_agents_of(agents, agent, out) }
                });
                self.touched(group, of);
            }
            (_, 3) => {
                let (group, standing) = self.pool.pick(Kind::Agents, call.handle);
                let agents = hsa_serializer_agents_t { handle: group };
                let list = [agent, u64::from(call.nulls % 8)];
                let made = self.output(call, standing, true, |out| {
                    // SAFETY: as above.
                    unsafe { hsa_serializer_agents_request(agents, list.as_ptr(), 2, out) }
                });
                self.made(
                    Kind::Request,
                    made.map(|made: hsa_serializer_request_t| made.handle),
                );
                // Those that it has touched have handles.
                for agent in list {
                    let mut out = hsa_serializer_t { handle: 0 };
                    // SAFETY: as above.
                    let got = unsafe { hsa_serializer_agents_get(agents, agent, &raw mut out) };
                    if got == HSA_SERIALIZER_SUCCESS {
                        self.touched(group, Some(out));
                    }
                }
            }
            (_, 4) => {
                let made = self.one(call, Kind::Agents, true, |handle, out| {
                    let agents = hsa_serializer_agents_t { handle };
                    // SAFETY: as above.
                    unsafe { hsa_serializer_agents_request_all(agents, out) }
                });
                self.made(
                    Kind::Request,
                    made.map(|made: hsa_serializer_request_t| made.handle),
                );
                self.one(call, Kind::Agents, true, |handle, out| {
                    let agents = hsa_serializer_agents_t { handle };
                    let mut list = [0; WORDS];
                    let capacity = (number as usize).min(WORDS);
                    // SAFETY: as above.
                    unsafe { hsa_serializer_agents_list(agents, list.as_mut_ptr(), capacity, out) }
                });
            }
            _ => {
                let (group, ended) = self.none(call, Kind::Agents, |handle| {
                    hsa_serializer_agents_destroy(hsa_serializer_agents_t { handle })
                });
                if ended {
                    self.agents_ended(group);
                }
            }
        }
    }

    fn touched(&mut self, group: u64, of: Option<hsa_serializer_t>) {
        if let Some(of) = of {
            if !self.pool.knows(of.handle) {
                self.pool.made(Kind::Serializer, of.handle);
                self.agents.push((group, of.handle));
            }
        }
    }

    fn agents_ended(&mut self, group: u64) {
        self.pool.ended(Kind::Agents, group);
        for (of, serializer) in self.agents.clone() {
            if of == group && self.pool.is_live(serializer) {
                self.pool.ended(Kind::Serializer, serializer);
            }
        }
    }

    fn barriers(&mut self, call: Call, number: u64) {
        let data = self.host.userdata();
        match call.item.how % 8 {
            0 => {
                if !self.one_more() {
                    return;
                }
                let ((options, standing), runtime) = (self.options(call), self.runtime(call));
                let (options, standing, runtime) = given(call, &options, standing, &runtime);
                let made = self.output(call, standing, true, |out| {
                    // SAFETY: pointers are good or null.
                    unsafe { hsa_serializer_barrier_set_create(options, runtime, out) }
                });
                self.made(
                    Kind::BarrierSet,
                    made.map(|made: hsa_serializer_barrier_set_t| made.handle),
                );
            }
            1 | 2 => {
                let (owner, standing) = self.pool.pick(Kind::BarrierSet, call.handle);
                let set = hsa_serializer_barrier_set_t { handle: owner };
                let queue = self.output(call, standing, true, |out| {
                    // SAFETY: as above.
                    unsafe { hsa_serializer_barrier_set_queue_add(set, out) }
                });
                self.queue_added(owner, queue);
            }
            3 | 4 => {
                let made = self.one(call, Kind::BarrierSet, false, |handle, out| {
                    let set = hsa_serializer_barrier_set_t { handle };
                    let call = (call.nulls & 4 == 0).then_some(on_end as _);
                    // SAFETY: as above.
                    unsafe { hsa_serializer_barrier_set_arm(set, call, data, out) }
                });
                self.made(
                    Kind::Barrier,
                    made.map(|made: hsa_serializer_barrier_t| made.handle),
                );
            }
            5 => {
                self.one(call, Kind::Barrier, true, |handle, out| {
                    let barrier = hsa_serializer_barrier_t { handle };
                    // SAFETY: as above.
                    unsafe { hsa_serializer_barrier_drain_queue(barrier, number, out) }
                });
                self.one(call, Kind::Barrier, true, |handle, out| {
                    let barrier = hsa_serializer_barrier_t { handle };
                    // SAFETY: as above.
                    unsafe { hsa_serializer_barrier_state(barrier, out) }
                });
            }
            6 => self.ends(call, Kind::Barrier, |handle| {
                hsa_serializer_barrier_destroy(hsa_serializer_barrier_t { handle })
            }),
            _ => self.ends(call, Kind::BarrierSet, |handle| {
                hsa_serializer_barrier_set_destroy(hsa_serializer_barrier_set_t { handle })
            }),
        }
    }

    /// Everything is given up, in an order that a host may choose.
    pub(super) fn end(&mut self) {
        let host = self.host;
        host.refuse_nothing();
        host.state().is_handler_thread = false;
        let ok = |status| assert_eq!(status, HSA_SERIALIZER_SUCCESS);
        for handle in self.pool.live(Kind::Queue) {
            ok(hsa_serializer_queue_destroyed(hsa_serializer_queue_t {
                handle,
            }));
        }
        for handle in self.pool.live(Kind::Request) {
            let request = hsa_serializer_request_t { handle };
            // SAFETY: the output may be null.
            ok(unsafe { hsa_serializer_request_end(request, ptr::null_mut()) });
        }
        for handle in self.pool.live(Kind::Cut) {
            ok(hsa_serializer_cut_end(hsa_serializer_cut_t { handle }));
        }
        for handle in self.pool.live(Kind::StallWatch) {
            let watch = hsa_serializer_stall_watch_t { handle };
            ok(hsa_serializer_stall_watch_destroy(watch));
        }
        for handle in self.pool.live(Kind::Barrier) {
            ok(hsa_serializer_barrier_destroy(hsa_serializer_barrier_t {
                handle,
            }));
        }
        for handle in self.pool.live(Kind::BarrierSet) {
            let set = hsa_serializer_barrier_set_t { handle };
            self.until(|| hsa_serializer_barrier_set_destroy(set));
        }
        let of_agents: Vec<u64> = self.agents.iter().map(|(_, of)| *of).collect();
        for handle in self.pool.live(Kind::Serializer) {
            let serializer = hsa_serializer_t { handle };
            // SAFETY: what it tells may be null.
            self.until(|| unsafe {
                hsa_serializer_try_finish_shutdown(serializer, None, ptr::null_mut())
            });
            if !of_agents.contains(&handle) {
                ok(hsa_serializer_destroy(serializer));
            }
        }
        for handle in self.pool.live(Kind::Agents) {
            ok(hsa_serializer_agents_destroy(hsa_serializer_agents_t {
                handle,
            }));
        }
        for handle in self.pool.live(Kind::Domain) {
            ok(hsa_serializer_domain_destroy(hsa_serializer_domain_t {
                handle,
            }));
        }
    }

    /// Tries until it has finished, with the handlers called in between.
    fn until(&self, mut step: impl FnMut() -> Status) {
        for _ in 0..STEPS {
            self.host.call_handlers();
            match step() {
                HSA_SERIALIZER_SUCCESS => return,
                status => assert_eq!(status, HSA_SERIALIZER_NOT_FINISHED),
            }
        }
        panic!("it does not end");
    }
}

/// Options and a runtime as pointers, which may be null; with null options the domain does not matter.
fn given(
    call: Call,
    options: &hsa_serializer_options_t,
    standing: Standing,
    runtime: &hsa_serializer_runtime_t,
) -> (
    *const hsa_serializer_options_t,
    Standing,
    *const hsa_serializer_runtime_t,
) {
    let (options, standing) = if call.nulls & 2 != 0 {
        (ptr::null(), Standing::Live)
    } else {
        (&raw const *options, standing)
    };
    let runtime = if call.nulls & 8 != 0 {
        ptr::null()
    } else {
        &raw const *runtime
    };
    (options, standing, runtime)
}
