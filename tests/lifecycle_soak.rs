//! Everything that can happen to serializers, at random, on threads: what `stress` does, for as long as
//! is asked for: `LIFECYCLE_SOAK_SECONDS=600 cargo test --release --test lifecycle_soak -- --nocapture`.
#![cfg(target_os = "linux")]

use stress::Options;

fn number(name: &str, default: u64) -> u64 {
    let text = std::env::var(name).ok();
    text.map_or(default, |text| text.parse().expect(name))
}

#[test]
fn lifecycle_soak() {
    let default = Options::default();
    let report = stress::run(
        &Options {
            seconds: number("LIFECYCLE_SOAK_SECONDS", default.seconds),
            seed: number("LIFECYCLE_SOAK_SEED", default.seed),
            ..default
        },
        |_| {},
    );
    assert!(report.failures.is_empty(), "{report}");
    println!("{report}");
}
