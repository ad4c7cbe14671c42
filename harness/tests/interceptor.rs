//! What the profiler's interceptor writes, and what becomes of completions.

use harness::{Around, Profiler, crate_serializer};
use hsa_serializer::Serializer;
use hsa_sys::{AqlPacket, FenceScope, PacketType, header, hsa_barrier_and_packet_t, hsa_signal_t};
use softgpu::{Config, Ends, Kernel, Queue, QueueConfig, SignalKind, VirtualGpu};

type Crate = Serializer<harness::SoftRuntime>;

fn machine(seed: u64) -> (VirtualGpu, Profiler<Crate>) {
    let gpu = VirtualGpu::new(Config::seed(seed));
    let profiler = Profiler::new(gpu.gpu(), gpu.agent(0), crate_serializer);
    (gpu, profiler)
}

fn queue(profiler: &Profiler<Crate>) -> Queue {
    let config = QueueConfig {
        check_fences: true,
        ..QueueConfig::default()
    };
    profiler.create_queue(config).unwrap()
}

fn vendor(n: u64) -> AqlPacket {
    AqlPacket::from_words([0, n, 0, 0, 0, 0, 0, 0])
}

fn barrier_and(signal: hsa_signal_t) -> AqlPacket {
    let mut packet = hsa_barrier_and_packet_t::default();
    let system = FenceScope::System;
    packet.header = header(PacketType::BarrierAnd, false, system, system);
    packet.dep_signal[2] = signal;
    packet.into()
}

/// All that was written to the ring so far.
fn ring(queue: &Queue) -> Vec<AqlPacket> {
    (0..queue.write_index()).map(|n| queue.slot(n)).collect()
}

/// Packets without what the profiler has to change: completion signals and barrier bits.
fn bare(packets: &[AqlPacket]) -> Vec<AqlPacket> {
    let bare = |packet: &AqlPacket| {
        let header = packet.header() & !(1 << 8);
        let packet = packet.with_completion_signal(hsa_signal_t::NULL);
        packet.with_header(header)
    };
    packets.iter().map(bare).collect()
}

// SCENARIOS 27.
#[test]
fn s27_what_is_no_kernel_passes_unchanged_and_in_order() {
    let (mut gpu, profiler) = machine(1);
    let queue = queue(&profiler);
    let app = gpu.signals().create(0, SignalKind::GpuOnly).unwrap();
    let batch = [
        vendor(1),
        barrier_and(app),
        Kernel::lasting(10).id(1).packet(),
        vendor(2),
        Kernel::lasting(10).id(2).barrier().packet(),
        barrier_and(app).with_barrier_bit(),
        AqlPacket::from_words([0x4321_00ff, 1, 2, 3, 4, 5, 6, 0]),
    ];
    queue.submit(&batch).unwrap();
    let written = ring(&queue);
    assert_eq!(bare(&written), bare(&batch));
    for (given, written) in batch.iter().zip(&written) {
        if given.packet_type() != Some(PacketType::KernelDispatch) {
            assert_eq!(given, written);
        }
        assert_eq!(given.barrier_bit(), written.barrier_bit());
    }
    gpu.run_until_idle().unwrap();
    assert_eq!(queue.foreign(), 3);
    gpu.witness().assert_clean();
}

#[test]
fn each_kernel_of_a_batch_has_its_own_gates_right_in_front_of_it() {
    let (mut gpu, profiler) = machine(2);
    let queue = queue(&profiler);
    queue.submit(&[Kernel::lasting(500).packet()]).unwrap();
    profiler.enable().unwrap();
    let kernels = [1, 2].map(|id| Kernel::lasting(10).id(id).packet());
    let batch = [vendor(1), kernels[0], vendor(2), kernels[1], vendor(3)];
    queue.submit(&batch).unwrap();
    let written = ring(&queue)[1..].to_vec();
    let injected = |n: usize| written[n].dependencies().is_some();
    // The transition packet once, then two gates for each kernel.
    let places: Vec<_> = (0..written.len()).filter(|n| injected(*n)).collect();
    assert_eq!(places, [1, 2, 3, 6, 7]);
    let passed: Vec<_> = (0..written.len())
        .filter(|n| !injected(*n))
        .map(|n| written[n])
        .collect();
    assert_eq!(bare(&passed), bare(&batch));
    assert!(written[4].barrier_bit() && written[8].barrier_bit());
    gpu.run_until_idle().unwrap();
    gpu.witness().assert_clean();
    assert_eq!(profiler.counters().grants, 2);
}

// SCENARIOS 34.
#[test]
fn s34_the_token_is_freed_after_the_profilers_last_packet() {
    let mut gpu = VirtualGpu::new(Config::seed(3));
    let hold = gpu.signals().create(1, SignalKind::GpuOnly).unwrap();
    let around = move |packet: &AqlPacket| match packet.as_kernel_dispatch() {
        // The first kernel's counters are read by a packet that is held up.
        Some(fields) if fields.kernel_object >> 32 == 1 => Around {
            before: vec![vendor(1)],
            after: vec![vendor(2), barrier_and(hold)],
        },
        _ => Around::default(),
    };
    let agent = gpu.agent(0);
    let profiler = Profiler::instrumented(gpu.gpu(), agent, crate_serializer, Box::new(around));
    let (first, second) = (queue(&profiler), queue(&profiler));
    profiler.enable().unwrap();
    let app = gpu.signals().create(1, SignalKind::Interrupt).unwrap();
    let kernel = Kernel::lasting(10).id(1).completion(app).packet();
    first.submit(&[kernel]).unwrap();
    let kinds: Vec<_> = ring(&first).iter().map(AqlPacket::packet_type).collect();
    use PacketType::{BarrierAnd, BarrierOr, KernelDispatch, VendorSpecific};
    let expected = [BarrierOr, BarrierOr, VendorSpecific, KernelDispatch];
    assert_eq!(kinds[..4], expected.map(Some));
    assert_eq!(kinds[4..], [VendorSpecific, BarrierAnd].map(Some));
    let witness = gpu.gpu().clone();
    gpu.run_until(|| witness.witness().kernels(agent).ended == 1)
        .unwrap();

    second
        .submit(&[Kernel::lasting(10).id(2).packet()])
        .unwrap();
    assert!(gpu.run_until_idle().is_err());
    assert_eq!(gpu.witness().kernels(agent).started, 1);
    assert_eq!(gpu.signals().load(app), 1, "the application was told early");

    gpu.signals().store(hold, 0);
    gpu.run_until_idle().unwrap();
    assert_eq!(gpu.witness().kernels(agent).ended, 2);
    assert_eq!(gpu.signals().load(app), 0);
    gpu.witness().assert_clean();
}

// SCENARIOS 22.
#[test]
fn s22_a_serialized_kernel_without_counters_gives_the_token_back() {
    let gpu = VirtualGpu::new(Config::seed(4));
    let none = Box::new(|_: &AqlPacket| Around::default());
    let profiler = Profiler::instrumented(gpu.gpu(), gpu.agent(0), crate_serializer, none);
    let queues = [queue(&profiler), queue(&profiler)];
    profiler.enable().unwrap();
    for n in 0..40 {
        let kernel = Kernel::lasting(10).packet();
        queues[n % 2].submit(&[kernel]).unwrap();
    }
    let mut gpu = gpu;
    gpu.run_until_idle().unwrap();
    assert_eq!(profiler.counters().grants, 40);
    assert_eq!(profiler.serializer().statistics().contenders, 0);
}

#[test]
fn the_application_is_told_once_and_what_the_packet_processor_would_have_said() {
    let (mut gpu, profiler) = machine(5);
    gpu.faults().change(|plan| {
        plan.handler_twice = 0.5;
        plan.handler_late = 0.5;
        plan.late_by = 1_000;
    });
    let queue = queue(&profiler);
    let many = gpu.signals().create(100, SignalKind::Interrupt).unwrap();
    for _ in 0..100 {
        let kernel = Kernel::lasting(10).completion(many).packet();
        queue.submit(&[kernel]).unwrap();
    }
    let bad = gpu.signals().create(1, SignalKind::Interrupt).unwrap();
    let kernel = Kernel::lasting(10).completion(bad).ends(Ends::Badly(-7));
    queue.submit(&[kernel.packet()]).unwrap();
    gpu.run_until_idle().unwrap();
    assert!(gpu.handlers().repeated > 0 && gpu.handlers().late > 0);
    assert_eq!(gpu.signals().load(many), 0);
    assert_eq!(gpu.signals().load(bad), -7);
    let s = profiler.serializer().statistics();
    assert_eq!((s.dispatches, s.completions, s.misuse), (101, 101, 0));
    gpu.witness().assert_clean();
}

#[test]
fn kernels_pass_as_they_are_once_the_serializer_shuts_down() {
    let (mut gpu, profiler) = machine(6);
    let queue = queue(&profiler);
    profiler.enable().unwrap();
    queue.submit(&[Kernel::lasting(10).packet()]).unwrap();
    profiler.serializer().begin_shutdown();
    let app = gpu.signals().create(1, SignalKind::Interrupt).unwrap();
    let kernel = Kernel::lasting(10).completion(app).packet();
    queue.submit(&[kernel]).unwrap();
    assert_eq!(ring(&queue).last(), Some(&kernel));
    assert_eq!(profiler.passed_on(), 1);
    gpu.run_until_idle().unwrap();
    assert_eq!(gpu.signals().load(app), 0);
    assert_eq!(profiler.in_flight(), 0);
}

#[test]
fn a_kernel_without_a_completion_signal_to_be_had_passes_as_it_is() {
    let (mut gpu, profiler) = machine(7);
    let queue = queue(&profiler);
    let failure = softgpu::Failure::NullHandle;
    gpu.faults().fail_next_creates(1, failure);
    let kernel = Kernel::lasting(10).packet();
    queue.submit(&[kernel]).unwrap();
    assert_eq!(ring(&queue), [kernel]);
    assert_eq!(profiler.passed_on(), 1);
    gpu.run_until_idle().unwrap();
    assert_eq!(profiler.serializer().statistics().dispatches, 0);
}

#[test]
fn a_queue_that_goes_or_faults_lets_the_others_go_on_and_leaves_nothing() {
    for faults in [false, true] {
        let (mut gpu, profiler) = machine(8);
        let (gone, other) = (queue(&profiler), queue(&profiler));
        profiler.enable().unwrap();
        let last = if faults {
            Kernel::lasting(10).ends(Ends::Fault)
        } else {
            Kernel::endless()
        };
        for kernel in [Kernel::lasting(10), last, Kernel::lasting(10)] {
            gone.submit(&[kernel.packet()]).unwrap();
            other.submit(&[Kernel::lasting(10).packet()]).unwrap();
        }
        profiler.disable().unwrap();
        other.submit(&[Kernel::lasting(10).packet()]).unwrap();
        if !faults {
            assert!(gpu.run_until_idle().is_err());
            profiler.destroy_queue(&gone).unwrap();
        }
        gpu.run_until_idle().unwrap();
        assert_eq!(gpu.witness().kernels(gpu.agent(0)).ended, 5);
        if faults {
            profiler.destroy_queue(&gone).unwrap();
        }
        profiler.destroy_queue(&other).unwrap();
        gpu.witness().assert_clean();
        assert_eq!(profiler.in_flight(), 0);
        assert_eq!(profiler.reports().list(), []);
        drop(profiler);
        assert_eq!(gpu.signals().stats().live, 0, "fault: {faults}");
    }
}
