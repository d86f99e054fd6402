//! agewell's store beside other stores: durable transactions of 64 random blocks of 4 KiB, on files.
//!
//!     agewell-stores --place NAME=FOLDER... [--full 50,90,98] [--gib 0.25] [--rounds 3] [--seconds 2]
//!                    [--stores all] [--clients 1] [--out FILE.json]
//!
//! Every store is filled with the same blocks, in a process of its own; then they are measured in turns,
//! and who is not measured stands still. Every value is read back at the end.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program")]

mod load;
mod machine;
mod report;
mod runner;
mod stores;
mod trial;

use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::json;

use crate::report::{Row, table};
use crate::stores::{Failure, NAMES};
use crate::trial::Trial;

/// What is asked for.
struct Wish {
    places: Vec<(String, PathBuf)>,
    full_percent: Vec<f64>,
    stores: Vec<String>,
    clients: Vec<u32>,
    gib: f64,
    rounds: u32,
    seconds: f64,
    out: Option<PathBuf>,
}

fn list<T: std::str::FromStr>(text: &str) -> Result<Vec<T>, Failure> {
    let each = |part: &str| part.parse().map_err(|_| format!("{part:?} cannot be read").into());
    text.split(',').map(each).collect()
}

fn wish(arguments: &[String]) -> Result<Wish, Failure> {
    let mut wish = Wish {
        places: Vec::new(),
        full_percent: vec![50.0, 90.0, 98.0],
        stores: NAMES.iter().map(|(name, _)| (*name).to_owned()).collect(),
        clients: vec![1],
        gib: 0.25,
        rounds: 3,
        seconds: 2.0,
        out: None,
    };
    for pair in arguments.chunks(2) {
        let [option, value] = pair else { return Err(format!("{} has no value", pair[0]).into()) };
        match option.as_str() {
            "--place" => {
                let (name, folder) = value.split_once('=').ok_or("--place takes NAME=FOLDER")?;
                wish.places.push((name.to_owned(), folder.into()));
            }
            "--full" => wish.full_percent = list(value)?,
            "--stores" => wish.stores = list(value)?,
            "--clients" => wish.clients = list(value)?,
            "--gib" => wish.gib = value.parse()?,
            "--rounds" => wish.rounds = value.parse()?,
            "--seconds" => wish.seconds = value.parse()?,
            "--out" => wish.out = Some(value.into()),
            _ => return Err(format!("no option is called {option}").into()),
        }
    }
    if let Some(name) = wish.stores.iter().find(|name| NAMES.iter().all(|known| known.0 != **name))
    {
        return Err(format!("no store is called {name:?}").into());
    }
    if wish.places.is_empty() {
        return Err("say where: --place NAME=FOLDER".into());
    }
    Ok(wish)
}

/// Versions of the crates of the other stores, as they were locked.
fn versions() -> serde_json::Map<String, serde_json::Value> {
    let locked = include_str!("../Cargo.lock");
    let field = |package: &str, name: &str| {
        let line = package.lines().find_map(|line| line.strip_prefix(name));
        line.map(|value| value.trim_matches([' ', '=', '"']).to_owned())
    };
    let packages = locked.split("[[package]]").skip(1);
    let named =
        packages.filter_map(|package| Some((field(package, "name")?, field(package, "version")?)));
    let mut versions: serde_json::Map<_, _> = named
        .filter(|(name, _)| ["redb", "fjall", "rusqlite"].contains(&name.as_str()))
        .map(|(name, version)| (name, version.into()))
        .collect();
    versions.insert("sqlite".into(), rusqlite::version().into());
    versions
}

fn run(wish: &Wish) -> Result<bool, Failure> {
    let budget_bytes = (wish.gib * f64::from(1 << 30)) as u64 / (1 << 20) * (1 << 20);
    let mut rows = Vec::new();
    let mut is_good = true;
    for (place, folder) in &wish.places {
        for full_percent in &wish.full_percent {
            let blocks = stores::live_blocks(budget_bytes, *full_percent)?;
            for clients in &wish.clients {
                let trials = wish.stores.iter().map(|store| Trial {
                    store: store.clone(),
                    folder: folder.join(format!("agewell-stores-{}-{store}", std::process::id())),
                    budget_bytes,
                    blocks,
                    clients: *clients,
                });
                let title = format!("{place}, {full_percent} % full, {clients} clients");
                let tell = |what: &str| eprintln!("{title}: {what}");
                let outcomes = runner::run(trials.collect(), wish.rounds, wish.seconds, &tell);
                let new: Vec<Row> = outcomes
                    .iter()
                    .map(|outcome| Row::new(place, *full_percent, outcome))
                    .collect();
                println!("{title}: {blocks} blocks live, files of {} MiB", budget_bytes >> 20);
                table(&new).iter().for_each(|line| println!("{line}"));
                println!();
                is_good &= new.iter().all(|row| row.failure.is_none() && row.blocks_wrong == 0);
                rows.extend(new);
            }
        }
    }
    let (kernel, processors) = machine::describe();
    let places: Vec<_> = wish
        .places
        .iter()
        .map(|(name, folder)| json!({ "name": name, "mount": machine::mount_of(folder) }))
        .collect();
    let document = json!({
        "kernel": kernel,
        "processors": processors,
        "places": places,
        "versions": versions(),
        "budget_bytes": budget_bytes,
        "rounds": wish.rounds,
        "seconds": wish.seconds,
        "stores": NAMES.iter().map(|(name, what)| json!({ "name": name, "is": what })).collect::<Vec<_>>(),
        "rows": rows,
    });
    if let Some(path) = &wish.out {
        std::fs::write(path, serde_json::to_string_pretty(&document)? + "\n")?;
    }
    Ok(is_good)
}

fn act(arguments: &[String]) -> Result<bool, Failure> {
    if let [command, store, folder, budget_bytes, blocks, clients] = arguments
        && command == "serve"
    {
        let trial = Trial {
            store: store.clone(),
            folder: folder.into(),
            budget_bytes: budget_bytes.parse()?,
            blocks: blocks.parse()?,
            clients: clients.parse()?,
        };
        trial::serve(&trial)?;
        return Ok(true);
    }
    run(&wish(arguments)?)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match act(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!("agewell-stores: error: a store failed, or gave what was not written");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("agewell-stores: error: {error}");
            ExitCode::FAILURE
        }
    }
}
