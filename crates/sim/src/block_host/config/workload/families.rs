//! The families of workloads of Matthews 1999, Table 4-1, and the long-term one, as tables.
//!
//! A key has the name of the parameter, which is documented with its generator
//! (`agewell_trace::workload`); what is out of range, the generator refuses.

use agewell_core::SimDuration;
use agewell_trace::workload::{
    DecisionSupportParameters, LongTermParameters, MultimediaParameters,
    ScientificSimulationParameters, SoftwareDevelopmentParameters, TransactionProcessingParameters,
};
use serde_json::{Value, json};

use super::FileWorkloadKind;
use super::small;
use crate::config::{ConfigError, Table};

fn time(
    table: &mut Table,
    key: &'static str,
    default: SimDuration,
) -> Result<SimDuration, ConfigError> {
    Ok(table.duration(key)?.unwrap_or(default))
}

fn share(table: &mut Table, key: &'static str, default: f64) -> Result<f64, ConfigError> {
    Ok(table.number(key, 0.0, 1.0)?.unwrap_or(default))
}

/// A duration that reads back as itself.
fn nanoseconds(duration: SimDuration) -> Value {
    json!(format!("{} ns", duration.0))
}

pub(super) fn read_multimedia(table: &mut Table) -> Result<FileWorkloadKind, ConfigError> {
    let default = MultimediaParameters::default();
    Ok(FileWorkloadKind::Multimedia(MultimediaParameters {
        films: small(table, "films", default.films)?,
        film_blocks_min: small(table, "film_blocks_min", default.film_blocks_min)?,
        film_blocks_max: small(table, "film_blocks_max", default.film_blocks_max)?,
        players: small(table, "players", default.players)?,
        plays: small(table, "plays", default.plays)?,
        recorders: small(table, "recorders", default.recorders)?,
        recordings: small(table, "recordings", default.recordings)?,
        request_blocks: small(table, "request_blocks", default.request_blocks)?,
        block_time: time(table, "block_time", default.block_time)?,
    }))
}

pub(super) fn multimedia_table(parameters: &MultimediaParameters) -> Value {
    json!({
        "kind": "multimedia",
        "films": parameters.films,
        "film_blocks_min": parameters.film_blocks_min,
        "film_blocks_max": parameters.film_blocks_max,
        "players": parameters.players,
        "plays": parameters.plays,
        "recorders": parameters.recorders,
        "recordings": parameters.recordings,
        "request_blocks": parameters.request_blocks,
        "block_time": nanoseconds(parameters.block_time),
    })
}

pub(super) fn read_software_development(
    table: &mut Table,
) -> Result<FileWorkloadKind, ConfigError> {
    let default = SoftwareDevelopmentParameters::default();
    Ok(FileWorkloadKind::SoftwareDevelopment(SoftwareDevelopmentParameters {
        developers: small(table, "developers", default.developers)?,
        projects: small(table, "projects", default.projects)?,
        sources: small(table, "sources", default.sources)?,
        headers: small(table, "headers", default.headers)?,
        includes: small(table, "includes", default.includes)?,
        cycles: small(table, "cycles", default.cycles)?,
        edits_max: small(table, "edits_max", default.edits_max)?,
        rebuild_every: small(table, "rebuild_every", default.rebuild_every)?,
        think: time(table, "think", default.think)?,
        pace: time(table, "pace", default.pace)?,
        request_blocks: small(table, "request_blocks", default.request_blocks)?,
    }))
}

pub(super) fn software_development_table(parameters: &SoftwareDevelopmentParameters) -> Value {
    json!({
        "kind": "software-development",
        "developers": parameters.developers,
        "projects": parameters.projects,
        "sources": parameters.sources,
        "headers": parameters.headers,
        "includes": parameters.includes,
        "cycles": parameters.cycles,
        "edits_max": parameters.edits_max,
        "rebuild_every": parameters.rebuild_every,
        "think": nanoseconds(parameters.think),
        "pace": nanoseconds(parameters.pace),
        "request_blocks": parameters.request_blocks,
    })
}

pub(super) fn read_transaction_processing(
    table: &mut Table,
) -> Result<FileWorkloadKind, ConfigError> {
    let default = TransactionProcessingParameters::default();
    Ok(FileWorkloadKind::TransactionProcessing(TransactionProcessingParameters {
        accounts: small(table, "accounts", default.accounts)?,
        branch_blocks: small(table, "branch_blocks", default.branch_blocks)?,
        log_blocks: small(table, "log_blocks", default.log_blocks)?,
        terminals: small(table, "terminals", default.terminals)?,
        transactions: small(table, "transactions", default.transactions)?,
        interval: time(table, "interval", default.interval)?,
        pace: time(table, "pace", default.pace)?,
    }))
}

pub(super) fn transaction_processing_table(parameters: &TransactionProcessingParameters) -> Value {
    json!({
        "kind": "transaction-processing",
        "accounts": parameters.accounts,
        "branch_blocks": parameters.branch_blocks,
        "log_blocks": parameters.log_blocks,
        "terminals": parameters.terminals,
        "transactions": parameters.transactions,
        "interval": nanoseconds(parameters.interval),
        "pace": nanoseconds(parameters.pace),
    })
}

pub(super) fn read_decision_support(table: &mut Table) -> Result<FileWorkloadKind, ConfigError> {
    let default = DecisionSupportParameters::default();
    Ok(FileWorkloadKind::DecisionSupport(DecisionSupportParameters {
        table_blocks: small(table, "table_blocks", default.table_blocks)?,
        indices: small(table, "indices", default.indices)?,
        analysts: small(table, "analysts", default.analysts)?,
        queries: small(table, "queries", default.queries)?,
        scan_share: share(table, "scan_share", default.scan_share)?,
        common_share: share(table, "common_share", default.common_share)?,
        common_queries: small(table, "common_queries", default.common_queries)?,
        query_entries: small(table, "query_entries", default.query_entries)?,
        load_blocks: small(table, "load_blocks", default.load_blocks)?,
        load_leaves: small(table, "load_leaves", default.load_leaves)?,
        load_every: small(table, "load_every", default.load_every)?,
        think: time(table, "think", default.think)?,
        pace: time(table, "pace", default.pace)?,
        request_blocks: small(table, "request_blocks", default.request_blocks)?,
    }))
}

pub(super) fn decision_support_table(parameters: &DecisionSupportParameters) -> Value {
    json!({
        "kind": "decision-support",
        "table_blocks": parameters.table_blocks,
        "indices": parameters.indices,
        "analysts": parameters.analysts,
        "queries": parameters.queries,
        "scan_share": parameters.scan_share,
        "common_share": parameters.common_share,
        "common_queries": parameters.common_queries,
        "query_entries": parameters.query_entries,
        "load_blocks": parameters.load_blocks,
        "load_leaves": parameters.load_leaves,
        "load_every": parameters.load_every,
        "think": nanoseconds(parameters.think),
        "pace": nanoseconds(parameters.pace),
        "request_blocks": parameters.request_blocks,
    })
}

pub(super) fn read_scientific_simulation(
    table: &mut Table,
) -> Result<FileWorkloadKind, ConfigError> {
    let default = ScientificSimulationParameters::default();
    Ok(FileWorkloadKind::ScientificSimulation(ScientificSimulationParameters {
        inputs: small(table, "inputs", default.inputs)?,
        input_blocks_min: small(table, "input_blocks_min", default.input_blocks_min)?,
        experiments: small(table, "experiments", default.experiments)?,
        output_blocks_min: small(table, "output_blocks_min", default.output_blocks_min)?,
        step_blocks: small(table, "step_blocks", default.step_blocks)?,
        failure_share: share(table, "failure_share", default.failure_share)?,
        strided_share: share(table, "strided_share", default.strided_share)?,
        scientists: small(table, "scientists", default.scientists)?,
        compute: time(table, "compute", default.compute)?,
        pace: time(table, "pace", default.pace)?,
        request_blocks: small(table, "request_blocks", default.request_blocks)?,
    }))
}

pub(super) fn scientific_simulation_table(parameters: &ScientificSimulationParameters) -> Value {
    json!({
        "kind": "scientific-simulation",
        "inputs": parameters.inputs,
        "input_blocks_min": parameters.input_blocks_min,
        "experiments": parameters.experiments,
        "output_blocks_min": parameters.output_blocks_min,
        "step_blocks": parameters.step_blocks,
        "failure_share": parameters.failure_share,
        "strided_share": parameters.strided_share,
        "scientists": parameters.scientists,
        "compute": nanoseconds(parameters.compute),
        "pace": nanoseconds(parameters.pace),
        "request_blocks": parameters.request_blocks,
    })
}

pub(super) fn read_long_term(table: &mut Table) -> Result<FileWorkloadKind, ConfigError> {
    let default = LongTermParameters::default();
    Ok(FileWorkloadKind::LongTerm(LongTermParameters {
        machines: small(table, "machines", default.machines)?,
        weeks: small(table, "weeks", default.weeks)?,
        programs: small(table, "programs", default.programs)?,
        libraries: small(table, "libraries", default.libraries)?,
        runs: small(table, "runs", default.runs)?,
        read_write_ratio: table
            .number("read_write_ratio", 0.1, 1e6)?
            .unwrap_or(default.read_write_ratio),
        paged_share: share(table, "paged_share", default.paged_share)?,
        pace: time(table, "pace", default.pace)?,
        request_blocks: small(table, "request_blocks", default.request_blocks)?,
    }))
}

pub(super) fn long_term_table(parameters: &LongTermParameters) -> Value {
    json!({
        "kind": "long-term",
        "machines": parameters.machines,
        "weeks": parameters.weeks,
        "programs": parameters.programs,
        "libraries": parameters.libraries,
        "runs": parameters.runs,
        "read_write_ratio": parameters.read_write_ratio,
        "paged_share": parameters.paged_share,
        "pace": nanoseconds(parameters.pace),
        "request_blocks": parameters.request_blocks,
    })
}
