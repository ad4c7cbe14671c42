//! Instructions of the hot operations, by callgrind, beside `benches/instructions.txt`; growth is a
//! failure. `-- --write` records what is counted.
//!
//! Without valgrind nothing is counted, which is said; where `CI` is set it is a failure.

use anyhow::{Context, Result, bail};
use measure::instructions;
use std::path::Path;
use std::process::ExitCode;

/// What stands above the record.
const HEAD: &str = "\
# Instructions an operation, counted by callgrind: cargo bench --bench instructions
# Recorded by the same command with -- --write. What it says of the compiler and the processor is not
# exact: a count may grow by 8 %, or by 3 instructions, before that is a failure.
";

fn main() -> Result<ExitCode> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [perform, name] if perform == "--perform" => {
            return instructions::perform(name).map(|()| ExitCode::SUCCESS);
        }
        _ => {}
    }
    if !arguments.iter().any(|a| a == "--bench") {
        // `cargo test --benches` runs it without optimization: there is nothing to compare with.
        return Ok(ExitCode::SUCCESS);
    }
    if !instructions::valgrind_is_there() {
        if std::env::var_os("CI").is_some() {
            bail!("valgrind, which counts instructions, is missing");
        }
        eprintln!("SKIPPED: no instructions were counted, for there is no valgrind");
        return Ok(ExitCode::SUCCESS);
    }
    let counts = instructions::count(&std::env::current_exe()?)?;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/instructions.txt");
    if arguments.iter().any(|a| a == "--write") {
        std::fs::write(&path, format!("{HEAD}{}", instructions::record(&counts)))?;
        return Ok(ExitCode::SUCCESS);
    }
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let (table, fine) = instructions::compare(&counts, &instructions::recorded(&text)?)?;
    println!(
        "{:<34} {:>8} {:>8}",
        "instructions an operation", "now", "recorded"
    );
    print!("{table}");
    Ok(if fine {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
