//! `docs/scenarios.md` is true: every number that a test has in its name, or that a text cites, has a row; every test
//! and every heading that a row names is there; and no row is without one.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

const DOCUMENT: &str = "docs/scenarios.md";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn ends(path: &Path, extensions: &[&str]) -> bool {
    let extension = path.extension().and_then(|e| e.to_str());
    extension.is_some_and(|e| extensions.contains(&e))
}

/// The files with these extensions below a directory, or the file itself. What was built is left out.
fn files(at: &Path, extensions: &[&str], found: &mut Vec<PathBuf>) {
    if !at.is_dir() {
        if ends(at, extensions) {
            found.push(at.into());
        }
        return;
    }
    for entry in fs::read_dir(at).unwrap_or_else(|e| panic!("{}: {e}", at.display())) {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy();
        if name != "target" && !name.starts_with('.') {
            files(&path, extensions, found);
        }
    }
}

fn files_of(at: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    files(at, extensions, &mut found);
    found.sort();
    found
}

fn shown(path: &Path) -> String {
    let path = path.strip_prefix(root()).unwrap_or(path);
    path.display().to_string()
}

struct Function {
    name: String,
    is_test: bool,
}

/// What `text` begins with, as far as it is a name.
fn name_at(text: &str) -> String {
    let is_name = |c: &char| c.is_ascii_alphanumeric() || *c == '_';
    text.chars().take_while(is_name).collect()
}

/// The functions of a source in Rust, or the tests of one in C++.
fn functions(path: &Path) -> Vec<Function> {
    let (mut found, mut is_test) = (Vec::new(), false);
    for line in read(path).lines().map(str::trim_start) {
        if ends(path, &["cpp"]) {
            let test = ["TEST(", "TEST_EXIT("]
                .iter()
                .find_map(|t| line.strip_prefix(t));
            found.extend(test.map(|rest| Function {
                name: name_at(rest),
                is_test: true,
            }));
        } else if line == "#[test]" {
            is_test = true;
        } else if let (false, Some(at)) = (line.starts_with("//"), line.find("fn ")) {
            let name = name_at(&line[at + 3..]);
            if !name.is_empty() && (at == 0 || line[..at].ends_with(' ')) {
                found.push(Function { name, is_test });
                is_test = false;
            }
        }
    }
    found
}

/// `7` and `07` are 7; `r2b` and `R2b` are R2b.
fn number(text: &str) -> Option<String> {
    if let Some(rest) = text.strip_prefix(['r', 'R']) {
        let digits = rest.strip_suffix('b').unwrap_or(rest);
        return (digits.len() == 1 && digits.parse::<u8>().is_ok()).then(|| format!("R{rest}"));
    }
    let digits = matches!(text.len(), 1 | 2) && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse::<u8>().unwrap().to_string())
}

/// The numbers in a test's name: `s14_r1_r2_dispatches` has 14, R1 and R2.
fn numbers(name: &str) -> Vec<String> {
    let of = |part: &str| match part.strip_prefix('s') {
        Some(digits) => number(digits).filter(|n| !n.starts_with('R')),
        None => number(part).filter(|n| n.starts_with('R')),
    };
    name.split('_').filter_map(of).collect()
}

struct Row {
    line: usize,
    checked: String,
}

/// The rows of the document by their numbers.
fn rows(problems: &mut Vec<String>) -> BTreeMap<String, Row> {
    let mut rows = BTreeMap::new();
    for (n, text) in read(&root().join(DOCUMENT)).lines().enumerate() {
        let line = n + 1;
        let cells: Vec<_> = text.split('|').map(str::trim).collect();
        let Some(number) = cells.get(1).and_then(|first| number(first)) else {
            continue;
        };
        let [_, _, _, _, checked, ""] = cells[..] else {
            problems.push(format!("{DOCUMENT}:{line}: a row has four cells"));
            continue;
        };
        let checked = checked.to_string();
        if rows.insert(number.clone(), Row { line, checked }).is_some() {
            problems.push(format!("{DOCUMENT}:{line}: {number} is there twice"));
        }
    }
    assert!(rows.len() > 50, "{DOCUMENT} has {} rows", rows.len());
    rows
}

/// What stands in backticks: `path: name`.
fn citations(checked: &str) -> Vec<&str> {
    checked.split('`').skip(1).step_by(2).collect()
}

fn headings(text: &str) -> Vec<&str> {
    let mut in_code = false;
    let mut is_heading = |line: &&str| {
        in_code ^= line.starts_with("```");
        !in_code && line.starts_with('#')
    };
    let lines = text.lines().filter(&mut is_heading);
    lines.map(|l| l.trim_start_matches('#').trim()).collect()
}

/// What is wrong with one citation of the row with that number.
fn wrong(row: &str, citation: &str) -> Option<String> {
    let Some((path, name)) = citation.split_once(": ") else {
        return Some(format!("`{citation}` is not `path: name`"));
    };
    let file = root().join(path);
    if !file.exists() {
        return Some(format!("there is no {path}"));
    }
    if file.is_file() && !ends(&file, &["rs", "cpp"]) {
        let text = read(&file);
        let (what, is_there) = if ends(&file, &["md"]) {
            ("heading", headings(&text).contains(&name))
        } else {
            ("text", text.contains(name))
        };
        return (!is_there).then(|| format!("{path} has no {what} \"{name}\""));
    }
    let all = files_of(&file, &["rs", "cpp"]);
    let names = all.iter().flat_map(|file| functions(file)).map(|f| f.name);
    let meant: Vec<_> = match name.strip_suffix('*') {
        Some(prefix) => names.filter(|n| n.starts_with(prefix)).collect(),
        None => names.filter(|n| n == name).collect(),
    };
    if meant.is_empty() {
        return Some(format!("{path} has no test {name}"));
    }
    let other = meant.iter().find(|name| {
        let its = numbers(name);
        !its.is_empty() && !its.iter().any(|n| n == row)
    });
    other.map(|other| format!("{path}: {other} is about another number"))
}

fn none(problems: &[String]) {
    let mut text = String::new();
    for problem in problems {
        write!(text, "\n- {problem}").unwrap();
    }
    assert!(problems.is_empty(), "{} problems:{text}", problems.len());
}

#[test]
fn every_number_in_a_tests_name_has_a_row() {
    let mut problems = Vec::new();
    let (rows, mut seen) = (rows(&mut problems), 0);
    for file in files_of(root(), &["rs", "cpp"]) {
        for test in functions(&file).iter().filter(|f| f.is_test) {
            for number in numbers(&test.name) {
                seen += 1;
                if !rows.contains_key(&number) {
                    let (file, name) = (shown(&file), &test.name);
                    problems.push(format!("{file}: {name}: {DOCUMENT} has no row {number}"));
                }
            }
        }
    }
    assert!(seen > 200, "only {seen} numbers were found in names");
    none(&problems);
}

#[test]
fn every_number_that_a_text_cites_has_a_row() {
    let mut problems = Vec::new();
    let (rows, mut seen) = (rows(&mut problems), 0);
    for file in files_of(root(), &["rs", "cpp", "md"]) {
        for after in read(&file).split("SCENARIOS ").skip(1) {
            let words = after.split_whitespace();
            let cited = words.map_while(|word| number(name_at(word).as_str()));
            for number in cited {
                seen += 1;
                if !rows.contains_key(&number) {
                    let file = shown(&file);
                    problems.push(format!(
                        "{file}: SCENARIOS {number}: {DOCUMENT} has no such row"
                    ));
                }
            }
        }
    }
    assert!(seen > 20, "only {seen} citations were found");
    none(&problems);
}

#[test]
fn everything_that_a_row_names_is_there() {
    let mut problems = Vec::new();
    for (number, row) in rows(&mut problems) {
        let wrong = citations(&row.checked)
            .into_iter()
            .filter_map(|citation| wrong(&number, citation));
        let at = |what| format!("{DOCUMENT}:{}: row {number}: {what}", row.line);
        problems.extend(wrong.map(at));
    }
    none(&problems);
}

#[test]
fn no_row_is_without_a_test_or_a_document() {
    let mut problems = Vec::new();
    for (number, row) in rows(&mut problems) {
        if citations(&row.checked).is_empty() {
            let (line, checked) = (row.line, row.checked);
            problems.push(format!(
                "{DOCUMENT}:{line}: row {number} names neither a test nor a document: \"{checked}\""
            ));
        }
    }
    none(&problems);
}

/// SCENARIOS 59: the runtime has given a wrong index.
#[test]
fn s59_nothing_waits_for_any_of_several_signals() {
    let mut looked_at = 0;
    for directory in ["src", "capi/src", "capi/include", "tool/src"] {
        for file in files_of(&root().join(directory), &["rs", "h", "hpp"]) {
            let text = read(&file);
            looked_at += 1;
            for call in ["signal_wait_any", "signal_wait_all", "wait_multiple"] {
                assert!(!text.contains(call), "{} has {call}", shown(&file));
            }
        }
    }
    assert!(looked_at > 50, "only {looked_at} files were looked at");
}
