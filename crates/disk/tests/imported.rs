//! The catalogue files that come from DiskSim parameters are what the importer makes of them today.
//!
//! Run with `AGEWELL_UPDATE_DOCS=1` to write them again after a change of the importer.

// A skipped test says why.
#![allow(clippy::print_stdout)]

use std::fmt::Write as _;
use std::path::Path;

use agewell_disk::import;

const PARAMETERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/disk");
const CATALOGUE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../devices");

struct Source {
    specification: &'static str,
    name: &'static str,
    title: &'static str,
    /// What the file says first.
    remark: &'static str,
}

const SOURCES: [Source; 6] = [
    Source {
        specification: "hp_c2247a.diskspecs",
        name: "hp-c2247a",
        title: "HP C2247A, 1.05 GB, SCSI-2",
        remark: "HP C2247A.",
    },
    Source {
        specification: "hp_c2249a.diskspecs",
        name: "hp-c2249a",
        title: "HP C2249A, 1.38 GB, SCSI-2",
        remark: "HP C2249A: the mechanism of the C2247A with 17 surfaces.",
    },
    Source {
        specification: "hp_c3323a_validate.diskspecs",
        name: "hp-c3323a",
        title: "HP C3323A, 1.05 GB, SCSI-2",
        remark: "HP C3323A: the second disk of Matthews 1999, chapter 6. The rotation period is that of the \
                 measured unit\n(5396 rpm); the nominal speed is 5400 rpm.",
    },
    Source {
        specification: "st41601n.diskspecs",
        name: "seagate-st41601n",
        title: "Seagate ST41601N (Elite 2), 1.37 GB, SCSI-2",
        remark: "Seagate ST41601N (Elite 2).",
    },
    Source {
        specification: "cheetah4LP.diskspecs",
        name: "seagate-st34501n",
        title: "Seagate ST34501N (Cheetah 4LP), 4.55 GB, Ultra SCSI",
        remark: "Seagate ST34501N (Cheetah 4LP).",
    },
    Source {
        specification: "barracuda.diskspecs",
        name: "seagate-st32171w",
        title: "Seagate ST32171W (Barracuda 4LP), 2.1 GB, Ultra Wide SCSI",
        remark: "Seagate ST32171W (Barracuda 4LP).",
    },
];

const ORIGIN: &str = "\
Every figure is a parameter of the DiskSim 4.0 distribution (Bucy, Schindler, Schlosser & Ganger, CMU-PDL-08-101),
converted by \"agewell devices import\". Overheads are as fitted there to traces of the drive.";

fn file_text(source: &Source) -> String {
    let specification = Path::new(PARAMETERS).join(source.specification);
    let mut imported =
        import::disksim(&specification, Some(source.name)).expect("an importable specification");
    source.title.clone_into(&mut imported.parameters.title);
    if imported.notes.iter().any(|note| note.contains("leaves the bus to the host")) {
        let sources = &mut imported.parameters.sources;
        let reason = "chosen by us: the DiskSim specification leaves the bus to the host; 0, which \
                      means as fast as the medium delivers";
        sources.insert("bus.read_sector_ms".to_owned(), reason.to_owned());
        sources.insert("bus.write_sector_ms".to_owned(), "as bus.read_sector_ms".to_owned());
    }
    let mut text = String::new();
    for line in source.remark.lines().chain([""]).chain(ORIGIN.lines()) {
        writeln!(text, "{}", format!("# {line}").trim_end()).expect("a string takes everything");
    }
    if !imported.notes.is_empty() {
        text.push_str("#\n");
        for note in &imported.notes {
            writeln!(text, "# {note}").expect("a string takes everything");
        }
    }
    text + "\n" + &imported.parameters.to_toml()
}

#[test]
fn imported_files_are_what_the_importer_makes() {
    if !Path::new(PARAMETERS).is_dir() {
        println!("skipped: the DiskSim parameter files are not there");
        return;
    }
    for source in &SOURCES {
        let path = Path::new(CATALOGUE).join(format!("{}.toml", source.name));
        let text = file_text(source);
        if std::env::var_os("AGEWELL_UPDATE_DOCS").is_some() {
            std::fs::write(&path, text).expect("a writable catalogue");
            continue;
        }
        let file = std::fs::read_to_string(&path).expect("a readable catalogue file");
        assert!(
            file == text,
            "{}: the importer makes another file now; AGEWELL_UPDATE_DOCS=1 writes it",
            path.display()
        );
    }
}
