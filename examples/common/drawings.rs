//! The drawings of what ran when, for the examples that run something twice.

use crate::output::Output;
use clap::Args;
use hsa_serializer_inspect::timeline::{Timeline, perfetto, svg};
use std::io::Write;
use std::path::PathBuf;

/// The drawings that are wanted.
#[derive(Args, Clone, Debug)]
pub(crate) struct Outputs {
    /// Write what ran when, and what it waited for, as a trace that https://ui.perfetto.dev opens.
    #[arg(long = "trace", value_name = "OUT.json")]
    trace_file: Option<PathBuf>,
    /// Draw the runs side by side, without and with serialization, on a page.
    #[arg(long = "svg", value_name = "OUT.svg")]
    svg_file: Option<PathBuf>,
    /// Which kernels are on that page, as the application submits them, counted from 0.
    #[arg(long, value_name = "FROM..TO", default_value = "0..60", value_parser = range)]
    svg_kernels: (u64, u64),
}

/// More can't be told apart on a page.
const MOST: u64 = 2_000;

fn range(text: &str) -> Result<(u64, u64), String> {
    let numbers = text.split_once("..");
    let numbers = numbers.and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    let (from, to): (u64, u64) = numbers.ok_or("two numbers are expected, as in 0..60")?;
    match to.checked_sub(from) {
        None | Some(0) => Err("there are no kernels in it".into()),
        Some(n) if n > MOST => Err(format!(
            "{n} kernels are more than the {MOST} for which there is room"
        )),
        Some(_) => Ok((from, to)),
    }
}

impl Outputs {
    /// Whether anything is to be drawn.
    pub(crate) fn any(&self) -> bool {
        self.trace_file.is_some() || self.svg_file.is_some()
    }

    /// Whether the page shows this kernel.
    pub(crate) fn shows(&self, number: u64) -> bool {
        (self.svg_kernels.0..self.svg_kernels.1).contains(&number)
    }

    /// What stands above the page.
    pub(crate) fn title(&self, kernels: u64) -> String {
        let (from, to) = self.svg_kernels;
        match to.min(kernels).checked_sub(from) {
            None | Some(0) => format!("None of {kernels} kernels"),
            Some(n) if n == kernels => format!("All {kernels} kernels"),
            Some(_) => format!("Kernels {from} to {} of {kernels}", to.min(kernels) - 1),
        }
    }

    /// Opens the files, so that a wrong path is known before anything runs.
    ///
    /// # Errors
    /// The option, the path, and what is wrong with it.
    pub(crate) fn open(&self) -> Result<Opened, String> {
        if self.any() && self.trace_file == self.svg_file {
            return Err("--trace and --svg name the same file".into());
        }
        let open = |option, path: &Option<PathBuf>| {
            path.as_ref()
                .map(|path| Output::open(option, path))
                .transpose()
        };
        Ok(Opened {
            trace: open("--trace", &self.trace_file)?,
            svg: open("--svg", &self.svg_file)?,
        })
    }
}

/// The files.
#[derive(Debug)]
pub(crate) struct Opened {
    trace: Option<Output>,
    svg: Option<Output>,
}

impl Opened {
    /// Writes the runs into the trace, and onto the page what it has room for.
    ///
    /// # Errors
    /// The option, the path, and what went wrong.
    pub(crate) fn write(
        self,
        title: &str,
        all: &[Timeline],
        shown: &[Timeline],
    ) -> Result<(), String> {
        if let Some(file) = self.trace {
            file.write(|out| perfetto(out, all))?;
        }
        if let Some(file) = self.svg {
            file.write(|out| writeln!(out, "{}", svg(title, shown)))?;
        }
        Ok(())
    }
}
