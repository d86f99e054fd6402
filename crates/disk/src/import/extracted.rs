//! The meaning of times in an extracted parameter file, where it differs from their names.
//!
//! Extraction measures sums (the least time between two completions) and splits them into overheads, a seek curve and
//! a head switch. Where requests never come in the order that a part was split by, the split is a guess; where a part
//! was not measured, the file holds what it held before. Each rule is read off the eight drives with measured traces
//! and judged by leaving each of them out (docs/concepts/disk-model.md, "What extracted parameters mean").

use crate::parameters::{FastWrite, MechanicalParameters};

/// The part of a drive's shortest seek that a read on the same cylinder takes too, where writes are reported early.
/// Chosen by us: leaving out each of the four such drives gives 0.55 to 0.75 on the others.
const SAME_CYLINDER_PER_SHORTEST_SEEK: f64 = 0.6;

/// Gives the times of `mechanical`, as a file has them, the meaning that they have here; one note a change.
pub(super) fn interpret(mechanical: &mut MechanicalParameters, notes: &mut Vec<String>) {
    if mechanical.buffer.fast_write == FastWrite::Never {
        decode_alike(mechanical, notes);
    } else {
        report_early(mechanical, notes);
    }
}

fn told(ns: u64) -> String {
    format!("{} ms", ns as f64 / 1e6)
}

/// Drives that report a write when it is on the medium: a command is decoded in the same time whatever it is and
/// whatever came before it, and the arm starts then.
fn decode_alike(mechanical: &mut MechanicalParameters, notes: &mut Vec<String>) {
    let overhead = &mut mechanical.overhead;
    let [after_read, after_write] = overhead.read_miss_ns;
    // After a read the drive also gives up its read-ahead, beside the arm. What is below a buffer hit was not measured.
    let measured = overhead.read_hit_ns[0] <= after_write;
    let decoded = if measured { after_read.min(after_write) } else { after_read };
    if overhead.read_miss_ns != [decoded; 2] {
        overhead.read_miss_ns = [decoded; 2];
        notes.push(format!(
            "Read misses cost {} after a read and {} after a write in the file, {} here: a command is \
             decoded alike whatever came before it.",
            told(after_read),
            told(after_write),
            told(decoded)
        ));
    }
    if overhead.extra_write_disconnect.is_some() {
        return;
    }
    for (ns, before) in overhead.write_miss_ns.iter_mut().zip(["read", "write"]) {
        if *ns < decoded {
            notes.push(format!(
                "A write after a {before} costs {} in the file, {} here: no write begins before its command \
                 is decoded, which takes a read so long.",
                told(*ns),
                told(decoded)
            ));
            *ns = decoded;
        }
    }
}

/// Drives that report writes early: every write is what the file calls a hit, and those at rest forget what they did last.
fn report_early(mechanical: &mut MechanicalParameters, notes: &mut Vec<String>) {
    let overhead = &mut mechanical.overhead;
    let hit = overhead.write_hit_ns[0];
    if overhead.write_miss_ns != [hit; 2] {
        notes.push(format!(
            "Writes are reported before they are on the medium, so that each costs what the file has for \
             a write hit after a read, {}; a write that continues one still on its way costs {}.",
            told(hit),
            told(overhead.write_hit_ns[1])
        ));
        overhead.write_miss_ns = [hit; 2];
    }
    let shortest = mechanical.seek.ms(1);
    let same_cylinder = (SAME_CYLINDER_PER_SHORTEST_SEEK * shortest * 1e6).round() as u64;
    if same_cylinder > 0 {
        mechanical.same_cylinder_ns = same_cylinder;
        notes.push(format!(
            "The overheads of drives that report early leave part of a command to the seek curve: a read \
             on the cylinder where the heads rest takes {}, {SAME_CYLINDER_PER_SHORTEST_SEEK} of the \
             shortest seek.",
            told(same_cylinder)
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DeviceKind, DeviceParameters};

    const FILE: &str = "\
name = \"d\"\ntitle = \"d\"\nkind = \"mechanical\"\nrpm = 6000\n[geometry]\nsurfaces = 2\ncylinders = 10\n[seek]\n\
points_ms = [[1, 2.0], [9, 5.0]]\nhead_switch_ms = 0.5\n[[zone]]\nfirst_cylinder = 0\nlast_cylinder = 9\n\
sectors_per_track = 10\n";

    fn drive(fast_write: FastWrite, times_us: [[u64; 2]; 4]) -> MechanicalParameters {
        let read = DeviceParameters::from_toml("d.toml", FILE).expect("a device file");
        let DeviceKind::Mechanical(mechanical) = read.kind else { panic!("a mechanical drive") };
        let mut mechanical = *mechanical;
        mechanical.buffer.fast_write = fast_write;
        let ns = |times: [u64; 2]| times.map(|us| us * 1000);
        mechanical.overhead.read_hit_ns = ns(times_us[0]);
        mechanical.overhead.read_miss_ns = ns(times_us[1]);
        mechanical.overhead.write_hit_ns = ns(times_us[2]);
        mechanical.overhead.write_miss_ns = ns(times_us[3]);
        mechanical
    }

    #[test]
    fn a_command_is_decoded_alike_after_reads_and_writes() {
        // HP C2490A: after-write times of writes left over from another drive.
        let times = [[1419, 0], [3616, 2275], [3283, 824], [3283, 824]];
        let mut drive = drive(FastWrite::Never, times);
        let mut notes = Vec::new();
        interpret(&mut drive, &mut notes);
        assert_eq!(drive.overhead.read_miss_ns, [2_275_000; 2]);
        assert_eq!(drive.overhead.write_miss_ns, [3_283_000, 2_275_000]);
        assert_eq!(drive.same_cylinder_ns, 0);
        assert_eq!(notes.len(), 2, "{notes:?}");
    }

    #[test]
    fn a_miss_that_costs_less_than_a_hit_was_not_measured() {
        let times = [[1229, 1229], [1489, 558], [2167, 824], [2167, 824]];
        let mut drive = drive(FastWrite::Never, times);
        interpret(&mut drive, &mut Vec::new());
        assert_eq!(drive.overhead.read_miss_ns, [1_489_000; 2]);
        assert_eq!(drive.overhead.write_miss_ns, [2_167_000, 1_489_000]);
    }

    #[test]
    fn what_does_not_contradict_itself_stays() {
        // HP C2247A, whose hits cost more than its misses both ways.
        let times = [[953, 953], [558, 558], [824, 824], [824, 824]];
        let mut drive = drive(FastWrite::Never, times);
        let before = drive.clone();
        let mut notes = Vec::new();
        interpret(&mut drive, &mut notes);
        assert_eq!(drive, before);
        assert_eq!(notes, Vec::<String>::new());
    }

    #[test]
    fn early_writes_are_hits_and_the_same_cylinder_costs_part_of_a_seek() {
        // IBM 18ES.
        let times = [[82, 121], [252, 424], [83, 185], [494, 793]];
        let mut drive = drive(FastWrite::Sequential, times);
        let mut notes = Vec::new();
        interpret(&mut drive, &mut notes);
        assert_eq!(drive.overhead.write_miss_ns, [83_000; 2]);
        assert_eq!(drive.overhead.write_hit_ns, [83_000, 185_000]);
        assert_eq!(drive.overhead.read_miss_ns, [252_000, 424_000]);
        assert_eq!(drive.same_cylinder_ns, 1_200_000);
        assert_eq!(notes.len(), 2, "{notes:?}");
    }
}
