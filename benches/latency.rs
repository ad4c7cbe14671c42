//! Latencies of single calls while another thread toggles and a third one completes.

use measure::{latency, report};
use std::time::Duration;

fn main() {
    // `cargo test --benches` runs it too, to see that it runs.
    let lasts = if std::env::args().any(|a| a == "--bench") {
        Duration::from_secs(10)
    } else {
        Duration::from_millis(200)
    };
    let latencies = latency::measure(lasts, Duration::from_millis(1));
    print!("{}", report::latencies(&latencies));
    println!(
        "{} transitions meanwhile; reading the clock takes {} ns, which are subtracted",
        latencies.transitions, latencies.clock
    );
}
