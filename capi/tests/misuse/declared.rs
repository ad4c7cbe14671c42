//! The table is that of the header: no function and no argument is left out.

use crate::table::{Arg, FUNCTIONS, OTHERS};
use crate::world::Kind;
use std::collections::BTreeSet;

/// A function of the header and the types of its parameters.
#[derive(Debug)]
struct Declared {
    name: String,
    parameters: Vec<String>,
}

/// The header without comments and the preprocessor's lines.
fn code(header: &str) -> String {
    let mut code = String::new();
    for (i, part) in header.split("/*").enumerate() {
        let behind = part.split_once("*/").map_or(part, |(_, behind)| behind);
        code += if i == 0 { part } else { behind };
    }
    let lines = code.lines().filter(|line| !line.starts_with('#'));
    lines.collect::<Vec<_>>().join("\n")
}

fn declared() -> Vec<Declared> {
    let code = code(include_str!("../../include/hsa_serializer.h"));
    let mut declared = Vec::new();
    for statement in code.split(';') {
        // A function's name is followed by its parameters; a pointer to one has a bracket in front.
        let Some((front, behind)) = statement.split_once('(') else {
            continue;
        };
        let name = front.split([' ', '*', '\n', '{', '}']).next_back();
        let name = name.unwrap_or_default();
        if !name.starts_with("hsa_serializer_") || front.contains("typedef") {
            continue;
        }
        let parameters = behind.trim_end().strip_suffix(')').expect("it ends");
        let parameters = parameters.split(',').map(|p| {
            let p = p.split_whitespace().collect::<Vec<_>>().join(" ");
            p.trim_start_matches("struct ")
                .replace("const struct", "const")
        });
        declared.push(Declared {
            name: name.to_owned(),
            parameters: parameters.filter(|p| p != "void").collect(),
        });
    }
    declared
}

/// Whether the table's idea of a parameter can be the header's.
fn fits(arg: Arg, parameter: &str) -> bool {
    let is = |kind: Kind| parameter.starts_with(&format!("{} ", kind.c_name()));
    let is_pointer = parameter.contains('*') && !parameter.contains("userdata");
    match arg {
        Arg::Handle(kind) | Arg::HandleOrNull(kind) => is(kind),
        Arg::Ticket => parameter.starts_with("hsa_serializer_ticket_t "),
        Arg::Out | Arg::OutOrNull => is_pointer && !parameter.starts_with("const "),
        Arg::In | Arg::InOrNull => is_pointer && parameter.starts_with("const "),
        Arg::Function | Arg::FunctionOrNull => parameter.contains("_fn "),
        Arg::Userdata => parameter == "void *userdata",
        Arg::Number(_) => ["uint64_t ", "uint32_t ", "size_t "]
            .iter()
            .any(|number| parameter.starts_with(number)),
    }
}

#[test]
fn every_function_of_the_header_is_in_the_table_with_its_arguments() {
    let declared = declared();
    // 57 when this was written: less means that the header is read wrongly.
    assert!(declared.len() >= 57, "{declared:#?}");
    for Declared { name, parameters } in &declared {
        if OTHERS.contains(&name.as_str()) {
            continue;
        }
        let function = FUNCTIONS.iter().find(|f| f.name == name);
        let function = function.unwrap_or_else(|| panic!("nobody misuses {name}"));
        assert_eq!(function.args.len(), parameters.len(), "{name}");
        for ((arg, _), parameter) in function.args.iter().zip(parameters) {
            assert!(fits(*arg, parameter), "{name}: {arg:?} for {parameter}");
        }
    }
    let named: BTreeSet<_> = declared.iter().map(|d| d.name.as_str()).collect();
    let tabled = FUNCTIONS
        .iter()
        .map(|f| f.name)
        .chain(OTHERS.iter().copied());
    let tabled: BTreeSet<_> = tabled.collect();
    assert_eq!(
        named, tabled,
        "the header on the left, the table on the right"
    );
}

/// The type of handles in the header is the table's.
#[test]
fn every_kind_of_handle_of_the_header_is_misused() {
    let code = code(include_str!("../../include/hsa_serializer.h"));
    let structures = code.split("typedef struct ").skip(1);
    let handles: BTreeSet<_> = structures
        .filter(|s| {
            s.split('}')
                .next()
                .is_some_and(|body| body.contains("uint64_t handle;"))
        })
        .filter_map(|s| s.split_whitespace().next())
        .collect();
    assert_eq!(handles, Kind::ALL.map(Kind::c_name).into());
}
