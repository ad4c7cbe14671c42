//! The commands of `docs/embedding.md`: its blocks marked `sh`, run as they stand, in one shell.

use super::clone::Clone;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// When a block is run: what its mark says behind `sh`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Nothing more: always.
    Always,
    /// `cmake`: where it is installed by CMake.
    CMake,
    /// `cargo-c`: where it is installed by cargo-c.
    CargoC,
    /// `hsa`: where AMD's runtime is there.
    Hsa,
}

/// A block of commands.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Block {
    kind: Kind,
    commands: String,
}

/// The guide's blocks, in order.
pub(super) fn read(root: &Path) -> Result<Vec<Block>> {
    let path = root.join("docs/embedding.md");
    let blocks = parse(&fs::read_to_string(&path).with_context(|| format!("{}", path.display()))?)?;
    for kind in [Kind::Always, Kind::CMake, Kind::CargoC, Kind::Hsa] {
        ensure!(
            blocks.iter().any(|block| block.kind == kind),
            "the guide has no commands of the kind {kind:?}"
        );
    }
    Ok(blocks)
}

fn parse(text: &str) -> Result<Vec<Block>> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(mark) = line.strip_prefix("```") else {
            continue;
        };
        let inside: Vec<_> = lines.by_ref().take_while(|line| *line != "```").collect();
        let kind = match mark.strip_prefix("sh") {
            Some("") => Kind::Always,
            Some(" cmake") => Kind::CMake,
            Some(" cargo-c") => Kind::CargoC,
            Some(" hsa") => Kind::Hsa,
            Some(_) => anyhow::bail!("a block is marked {mark}"),
            None => continue,
        };
        blocks.push(Block {
            kind,
            commands: inside.join("\n") + "\n",
        });
    }
    Ok(blocks)
}

/// Runs the blocks of these kinds; the directory in which the library was installed.
pub(super) fn run(clone: &Clone, blocks: &[Block], kinds: &[Kind]) -> Result<PathBuf> {
    let mut script = String::from("set -eux\n");
    for block in blocks.iter().filter(|block| kinds.contains(&block.kind)) {
        script += &block.commands;
    }
    script += "set +x\necho \"installed under $P\"\n";
    let file = clone.root().join("target/guide.sh");
    fs::write(&file, script)?;
    let output = clone.run(Command::new("sh").arg(file))?;
    let prefix = output
        .lines()
        .last()
        .and_then(|line| line.strip_prefix("installed under "));
    let prefix =
        prefix.with_context(|| format!("where it was installed was not told: {output}"))?;
    Ok(prefix.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_found_by_their_marks() {
        let text = "a\n```sh\none\ntwo\n```\n```c\nint x;\n```\nb\n```sh cargo-c\nthree\n```\n";
        let block = |kind, commands: &str| Block {
            kind,
            commands: commands.into(),
        };
        let expected = [
            block(Kind::Always, "one\ntwo\n"),
            block(Kind::CargoC, "three\n"),
        ];
        assert_eq!(parse(text).unwrap(), expected);
        assert!(parse("```sh other\n```\n").is_err());
    }

    #[test]
    fn a_command_that_fails_is_a_failure_of_the_guide() {
        let block = |commands: &str| Block {
            kind: Kind::Always,
            commands: commands.into(),
        };
        let root = std::env::temp_dir().join(format!("guide-{}", std::process::id()));
        fs::create_dir_all(root.join("target")).unwrap();
        let clone = Clone::at(root.clone());
        let run = |blocks: &[Block]| run(&clone, blocks, &[Kind::Always]);
        let well = run(&[block("P=where\n"), block("true\n")]).unwrap();
        assert_eq!(well, Path::new("where"));
        let failed = run(&[block("P=where\nfalse\n"), block("true\n")]);
        assert!(failed.is_err(), "{failed:?}");
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn the_skeletons_say_the_guides_lines() {
        let root = crate::build::workspace();
        let commands: String = read(root)
            .unwrap()
            .into_iter()
            .map(|b| b.commands)
            .collect();
        for file in ["examples/c/emulated.c", "examples/c/tool.c"] {
            let text = fs::read_to_string(root.join(file)).unwrap();
            let (comment, _) = text.split_once("*/").unwrap();
            let (_, said) = comment.split_once("(docs/embedding.md)").unwrap();
            let said: Vec<_> = said
                .lines()
                .filter_map(|line| line.strip_prefix(" *     "))
                .collect();
            assert!(!said.is_empty());
            assert!(
                commands.contains(&said.join("\n")),
                "{file} says other lines: {said:#?}"
            );
        }
    }

    #[test]
    fn the_guide_has_commands_of_every_kind() {
        read(crate::build::workspace()).unwrap();
    }
}
