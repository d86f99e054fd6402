//! A flash drive, out of what was seen of it: only what reads show. What writes show (programming, erasing,
//! spare space, the write buffer) is that of the catalogue's typical drive, and the sources say so.

use agewell_core::SimDuration;
use agewell_disk::DeviceKind;
use agewell_disk::parameters::{FlashParameters, PageTimes, Placement};

use super::{Sources, device, measured, short};
use crate::disk::{DiskFacts, Extent, ProbedDisk};
use crate::estimate::statistics::{mean, median, quantile, spread, undisturbed};
use crate::measure::flash::{DEPTHS, FlashSeen, SIZES};
use crate::measure::session::{SMALL, Session};
use crate::modelled::{Disturbance, ModelledDisk};

/// The smallest piece that drives map.
const UNIT_BYTES: u64 = 4096;

/// Of a stripe of pages over all dies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Stripe {
    /// Small reads after which addresses come to the same die.
    pub(crate) period: usize,
    /// Small reads of a page.
    pub(crate) page: usize,
    /// By how much longer two reads of one die take, ns.
    pub(crate) collision_ns: f64,
}

/// The stripe, if pairs of reads at its multiples are in each other's way; `pairs_ns` holds the time of
/// pairs at distances from 1 on.
pub(crate) fn stripe(pairs_ns: &[f64]) -> Option<Stripe> {
    if pairs_ns.len() < 32 {
        return None;
    }
    let base = quantile(pairs_ns, 0.4);
    let noise = (quantile(pairs_ns, 0.4) - quantile(pairs_ns, 0.1)).max(0.02 * base);
    let is_slow: Vec<bool> = pairs_ns.iter().map(|time| *time > base + 3.0 * noise).collect();
    // Reads of one page are in each other's way as those of one die: distances from 1 on.
    let page = 1 + is_slow.iter().take_while(|slow| **slow).count();
    let share = is_slow.iter().filter(|slow| **slow).count() as f64 / is_slow.len() as f64;
    if share > 0.5 {
        return None;
    }
    let mut best: Option<(f64, usize)> = None;
    for period in 4..=pairs_ns.len() / 2 {
        let at: Vec<f64> = (period..=pairs_ns.len())
            .step_by(period)
            .map(|distance| f64::from(u8::from(is_slow[distance - 1])))
            .collect();
        // Half way between multiples nothing may be slow.
        let off: Vec<f64> = (period + period / 2..=pairs_ns.len())
            .step_by(period)
            .map(|distance| f64::from(u8::from(is_slow[distance - 1])))
            .collect();
        let score = mean(&at) - mean(&off);
        if score > 0.8 && best.is_none_or(|(most, _)| score > most + 1e-9) {
            best = Some((score, period));
        }
    }
    let (_, period) = best?;
    // The run of slow distances around the first multiple is centred on it.
    let first = (1..=period).rev().take_while(|distance| is_slow[distance - 1]).last()?;
    let last = (period..=pairs_ns.len()).take_while(|distance| is_slow[distance - 1]).last()?;
    let centre = usize::midpoint(first, last);
    let slow: Vec<f64> = (first..=last).map(|distance| pairs_ns[distance - 1]).collect();
    let width = (last - first + 1).max(page);
    let page = (width - 1).next_power_of_two().max(1);
    Some(Stripe {
        // A stripe is whole pages.
        period: ((centre + page / 2) / page).max(1) * page,
        page,
        collision_ns: quantile(&slow, 0.7) - base,
    })
}

/// What is compared: what was seen while nobody was in the way.
struct Wanted {
    by_size_ns: Vec<f64>,
    by_depth_ns: Vec<f64>,
}

/// The drive's parameters.
pub(crate) fn fit(facts: &DiskFacts, seen: &FlashSeen) -> (DeviceKind, Sources) {
    let wanted = Wanted {
        by_size_ns: seen.by_size_ns.iter().map(|times| undisturbed(times)).collect(),
        by_depth_ns: seen.by_depth_ns.clone(),
    };
    let stripe = stripe(&seen.pairs_ns);
    let small_ns = wanted.by_size_ns[0].max(1000.0);
    // What each further byte of a long read takes is the link's.
    let longest = SIZES.len() - 1;
    let slope = (wanted.by_size_ns[longest] - wanted.by_size_ns[longest - 1])
        / (SIZES[longest] - SIZES[longest - 1]) as f64;
    let sector_ns = if slope > 0.0 { slope } else { seen.sequential_sector_ns }.max(1e-3);
    let link = (512e9 / sector_ns).clamp(1e6, 1e12);
    let dies: Vec<u32> = match stripe {
        Some(stripe) => vec![(stripe.period / stripe.page).clamp(1, 256) as u32],
        None => vec![1, 2, 4, 8, 16, 32, 64, 128],
    };
    let page_bytes = stripe.map_or(4 * UNIT_BYTES, |stripe| stripe.page as u64 * UNIT_BYTES);
    let reading: Vec<f64> = match stripe {
        Some(stripe) => vec![stripe.collision_ns.clamp(500.0, 0.98 * small_ns)],
        None => [0.15, 0.3, 0.5, 0.7, 0.85, 0.95].iter().map(|share| share * small_ns).collect(),
    };
    let saturated = wanted.by_depth_ns.iter().copied().fold(f64::MAX, f64::min);
    let mut best: Option<(f64, FlashParameters)> = None;
    for dies in &dies {
        for read_ns in &reading {
            for share in [0.05, 0.15, 0.3, 0.5, 0.7, 0.85, 0.95, 1.0] {
                for per_channel in [1, 2, 4] {
                    for channel_share in [0.25, 0.5, 1.0, 2.0, 8.0] {
                        let channels = (dies / per_channel).max(1);
                        let request_ns = (share * saturated).min(0.9 * small_ns);
                        let command_ns = small_ns - read_ns - request_ns - 8.0 * sector_ns;
                        let candidate = FlashParameters {
                            capacity_sectors: facts.sectors,
                            channels,
                            dies_per_channel: dies.div_ceil(channels),
                            page_bytes,
                            mapping_bytes: UNIT_BYTES,
                            over_provisioning: 0.07,
                            placement: Placement::WriteOrder,
                            read: PageTimes::alike(*read_ns as u64),
                            program_ns: 1_100_000,
                            erase_ns: 4_500_000,
                            channel_bytes_per_s: ((link * channel_share) as u64).max(1_000_000),
                            link_bytes_per_s: link as u64,
                            request_overhead_ns: request_ns as u64,
                            command_ns: command_ns.max(0.0) as u64,
                            write_command_ns: command_ns.max(0.0) as u64,
                            queue_depth: 32,
                            write_buffer_bytes: 2 * u64::from(*dies) * page_bytes,
                            pages_per_block: 2,
                        };
                        let candidate = with_small_reads_of(candidate, small_ns);
                        let off = misfit(&candidate, &wanted);
                        if best.as_ref().is_none_or(|(least, _)| off < least - 1e-4) {
                            best = Some((off, candidate));
                        }
                    }
                }
            }
        }
    }
    let (_, mut flash) = best.expect("there is at least one candidate");
    flash.pages_per_block = pages_per_block(&flash);
    (DeviceKind::Flash(flash), sources(seen, stripe))
}

/// Erase blocks as large as usual, or smaller where the disk is so small that a die has none to spare.
fn pages_per_block(flash: &FlashParameters) -> u32 {
    let spare_pages =
        flash.over_provisioning * flash.units_per_die() as f64 / flash.units_per_page() as f64;
    let mut pages = 256;
    while pages > 2 && f64::from(pages) > spare_pages {
        pages /= 2;
    }
    pages
}

/// `candidate` with so much time for a command that a single small read takes `small_ns`.
fn with_small_reads_of(candidate: FlashParameters, small_ns: f64) -> FlashParameters {
    let mut model = small_model(&candidate);
    let Ok(answer) = model.read(Extent { first: 0, sectors: SMALL }) else { return candidate };
    let command = candidate.command_ns as f64 + small_ns - answer.taken_ns();
    let command_ns = command.clamp(0.0, 1e9) as u64;
    FlashParameters { command_ns, write_command_ns: command_ns, ..candidate }
}

/// A model of `candidate` with a small capacity, which its times do not depend on.
fn small_model(candidate: &FlashParameters) -> ModelledDisk {
    let small = FlashParameters { capacity_sectors: 1 << 21, ..*candidate };
    let facts = DiskFacts {
        name: String::new(),
        sectors: small.capacity_sectors,
        sector_bytes: 512,
        write_cache: None,
        is_modelled: true,
    };
    let parameters = device(&facts, DeviceKind::Flash(small), Sources::new());
    ModelledDisk::new(&parameters, Disturbance::default())
}

/// How badly `candidate` answers what was measured: the mean square of logarithms.
fn misfit(candidate: &FlashParameters, wanted: &Wanted) -> f64 {
    let mut model = small_model(candidate);
    let mut always = |_: f64, _: &str| true;
    let mut session = Session::new(&mut model, SimDuration(1 << 50), 1, &mut always);
    let mut squares = Vec::new();
    let mut note = |shown: f64, seen: f64, weight: f64| {
        let off = libm::log(shown.max(1.0) / seen.max(1.0));
        squares.push(weight * off * off);
    };
    for (sectors, seen) in SIZES.iter().zip(&wanted.by_size_ns) {
        let mut times = Vec::new();
        for _ in 0..6 {
            let place = session.place();
            let Ok(answer) = session.read(place, *sectors) else { return f64::MAX };
            times.push(answer.taken_ns());
        }
        note(median(&times), *seen, if *sectors == SMALL { 3.0 } else { 1.0 });
    }
    for (depth, seen) in DEPTHS.iter().zip(&wanted.by_depth_ns) {
        let extents = session.small_extents(64);
        let Ok(answers) = session.read_together(&extents, *depth) else { return f64::MAX };
        let begin = answers.iter().map(|answer| answer.begin.0).min().unwrap_or(0);
        let end = answers.iter().map(|answer| answer.end.0).max().unwrap_or(0);
        note((end - begin) as f64 / extents.len() as f64, *seen, 1.0);
    }
    mean(&squares)
}

fn sources(seen: &FlashSeen, stripe: Option<Stripe>) -> Sources {
    let small = &seen.by_size_ns[0];
    let reads: usize = seen.by_size_ns.iter().map(Vec::len).sum();
    let by_size = measured(reads, spread(small));
    let typical =
        "typical of the kind (flash-sata-tlc of the catalogue): reads do not show it".to_owned();
    let effective = "measured: as many as explain the rate at depths of 1 to 32; addresses that lie in write \
                     order were not seen, so that it is an effective number";
    let (layout, page, reading) = match stripe {
        Some(stripe) => (
            format!(
                "measured: pairs of reads are in each other's way every {} KiB",
                stripe.period * 4
            ),
            format!("measured: the width of those distances, {} KiB", stripe.page * 4),
            format!("measured: pairs on one die take {} ms more", short(stripe.collision_ns / 1e6)),
        ),
        None => (effective.to_owned(), effective.to_owned(), by_size.clone()),
    };
    let mut sources = Sources::new();
    for (key, text) in [
        ("capacity_sectors", "the size that the system gives".to_owned()),
        ("flash.channels", layout.clone()),
        ("flash.dies_per_channel", layout),
        ("flash.page", page),
        ("flash.mapping", "chosen by us: 4 KiB is usual".to_owned()),
        ("flash.pages_per_block", typical.clone()),
        ("flash.over_provisioning", typical.clone()),
        ("flash.program_ms", typical.clone()),
        ("flash.erase_ms", typical.clone()),
        ("flash.write_buffer", typical),
        ("flash.read_ms", reading),
        ("flash.command_ms", by_size.clone()),
        ("flash.write_command_ms", "as flash.command_ms".to_owned()),
        ("flash.request_overhead_ms", "measured: reads at depths of 1 to 32".to_owned()),
        ("flash.channel_rate", by_size.clone()),
        ("flash.link_rate", by_size),
        ("flash.queue_depth", "measured: up to 32 reads at the same time".to_owned()),
    ] {
        sources.insert(key.to_owned(), text);
    }
    sources
}
