//! The families of workloads of Matthews 1999, Table 4-1, and the long-term one, as tables.
//!
//! A key has the name of the parameter, which is documented with its generator
//! (`agewell_trace::workload`); what is out of range, the generator refuses.

use agewell_config::{Form, keys, natural, number, time};
use agewell_trace::workload::{
    DecisionSupportParameters, LongTermParameters, MultimediaParameters,
    ScientificSimulationParameters, SoftwareDevelopmentParameters, TransactionProcessingParameters,
};

keys! {
    /// Films recorded once and played often, at their own rate.
    pub(super) struct MultimediaKeys for MultimediaParameters, ..MultimediaParameters::default(), {
        /// films there are
        films = "films" natural().or(MultimediaParameters::default().films);
        /// blocks of the shortest film
        film_blocks_min = "film_blocks_min"
            natural().or(MultimediaParameters::default().film_blocks_min);
        /// blocks of the longest
        film_blocks_max = "film_blocks_max"
            natural().or(MultimediaParameters::default().film_blocks_max);
        /// players at work side by side
        players = "players" natural().or(MultimediaParameters::default().players);
        /// films played in all
        plays = "plays" natural().or(MultimediaParameters::default().plays);
        /// recorders at work side by side
        recorders = "recorders" natural().or(MultimediaParameters::default().recorders);
        /// films recorded in all
        recordings = "recordings" natural().or(MultimediaParameters::default().recordings);
        /// blocks of a request
        request_blocks = "request_blocks"
            natural().or(MultimediaParameters::default().request_blocks);
        /// time that a block plays for: 1.5 Mbit/s at 8 KiB
        block_time = "block_time" time().or(MultimediaParameters::default().block_time);
    }
}

keys! {
    /// Edit, compile, link, run, think.
    pub(super) struct SoftwareDevelopmentKeys for SoftwareDevelopmentParameters,
        ..SoftwareDevelopmentParameters::default(),
    {
        /// developers at work side by side
        developers = "developers" natural().or(SoftwareDevelopmentParameters::default().developers);
        /// projects
        projects = "projects" natural().or(SoftwareDevelopmentParameters::default().projects);
        /// source files of a project
        sources = "sources" natural().or(SoftwareDevelopmentParameters::default().sources);
        /// headers that all share
        headers = "headers" natural().or(SoftwareDevelopmentParameters::default().headers);
        /// headers that a source includes
        includes = "includes" natural().or(SoftwareDevelopmentParameters::default().includes);
        /// cycles of edit, compile, link and run in all
        cycles = "cycles" natural().or(SoftwareDevelopmentParameters::default().cycles);
        /// sources edited in a cycle at most
        edits_max = "edits_max" natural().or(SoftwareDevelopmentParameters::default().edits_max);
        /// cycles after which all is built
        rebuild_every = "rebuild_every"
            natural().or(SoftwareDevelopmentParameters::default().rebuild_every);
        /// least time of thinking, to 64 times that
        think = "think" time().or(SoftwareDevelopmentParameters::default().think);
        /// time from one request to the next
        pace = "pace" time().or(SoftwareDevelopmentParameters::default().pace);
        /// blocks of a request
        request_blocks = "request_blocks"
            natural().or(SoftwareDevelopmentParameters::default().request_blocks);
    }
}

keys! {
    /// An index path read, an account read and written, a branch and the log written, a sync.
    pub(super) struct TransactionProcessingKeys for TransactionProcessingParameters,
        ..TransactionProcessingParameters::default(),
    {
        /// accounts
        accounts = "accounts" natural().or(TransactionProcessingParameters::default().accounts);
        /// blocks of branches
        branch_blocks = "branch_blocks"
            natural().or(TransactionProcessingParameters::default().branch_blocks);
        /// blocks of the log
        log_blocks = "log_blocks"
            natural().or(TransactionProcessingParameters::default().log_blocks);
        /// terminals at work side by side
        terminals = "terminals" natural().or(TransactionProcessingParameters::default().terminals);
        /// transactions in all
        transactions = "transactions"
            natural().or(TransactionProcessingParameters::default().transactions);
        /// time from one transaction of a terminal to the next
        interval = "interval" time().or(TransactionProcessingParameters::default().interval);
        /// time from one request to the next
        pace = "pace" time().or(TransactionProcessingParameters::default().pace);
    }
}

keys! {
    /// Scans, common queries that follow an index, ad-hoc ones, loads.
    pub(super) struct DecisionSupportKeys for DecisionSupportParameters,
        ..DecisionSupportParameters::default(),
    {
        /// blocks of the table
        table_blocks = "table_blocks"
            natural().or(DecisionSupportParameters::default().table_blocks);
        /// indices over it
        indices = "indices" natural().or(DecisionSupportParameters::default().indices);
        /// analysts at work side by side
        analysts = "analysts" natural().or(DecisionSupportParameters::default().analysts);
        /// queries in all
        queries = "queries" natural().or(DecisionSupportParameters::default().queries);
        /// share of queries that scan the table
        scan_share = "scan_share"
            number(0.0, 1.0).or(DecisionSupportParameters::default().scan_share);
        /// share of the others that are common ones
        common_share = "common_share"
            number(0.0, 1.0).or(DecisionSupportParameters::default().common_share);
        /// common queries, which follow an index in the same order each time
        common_queries = "common_queries"
            natural().or(DecisionSupportParameters::default().common_queries);
        /// entries that a query reads
        query_entries = "query_entries"
            natural().or(DecisionSupportParameters::default().query_entries);
        /// blocks that a load adds
        load_blocks = "load_blocks" natural().or(DecisionSupportParameters::default().load_blocks);
        /// leaves of each index that a load changes
        load_leaves = "load_leaves" natural().or(DecisionSupportParameters::default().load_leaves);
        /// queries from one load to the next
        load_every = "load_every" natural().or(DecisionSupportParameters::default().load_every);
        /// least time of thinking, to 1,024 times that
        think = "think" time().or(DecisionSupportParameters::default().think);
        /// time from one request to the next
        pace = "pace" time().or(DecisionSupportParameters::default().pace);
        /// blocks of a request
        request_blocks = "request_blocks"
            natural().or(DecisionSupportParameters::default().request_blocks);
    }
}

keys! {
    /// An input read, an output written step by step and read once, failures run again.
    pub(super) struct ScientificSimulationKeys for ScientificSimulationParameters,
        ..ScientificSimulationParameters::default(),
    {
        /// input files
        inputs = "inputs" natural().or(ScientificSimulationParameters::default().inputs);
        /// blocks of the smallest input, to four times that
        input_blocks_min = "input_blocks_min"
            natural().or(ScientificSimulationParameters::default().input_blocks_min);
        /// experiments in all
        experiments = "experiments"
            natural().or(ScientificSimulationParameters::default().experiments);
        /// blocks of the smallest output, to four times that
        output_blocks_min = "output_blocks_min"
            natural().or(ScientificSimulationParameters::default().output_blocks_min);
        /// blocks written in a step
        step_blocks = "step_blocks"
            natural().or(ScientificSimulationParameters::default().step_blocks);
        /// share of experiments that fail and are run again
        failure_share = "failure_share"
            number(0.0, 1.0).or(ScientificSimulationParameters::default().failure_share);
        /// share of inputs read in strides
        strided_share = "strided_share"
            number(0.0, 1.0).or(ScientificSimulationParameters::default().strided_share);
        /// scientists at work side by side
        scientists = "scientists"
            natural().or(ScientificSimulationParameters::default().scientists);
        /// least time of computing, to 256 times that
        compute = "compute" time().or(ScientificSimulationParameters::default().compute);
        /// time from one request to the next
        pace = "pace" time().or(ScientificSimulationParameters::default().pace);
        /// blocks of a request
        request_blocks = "request_blocks"
            natural().or(ScientificSimulationParameters::default().request_blocks);
    }
}

keys! {
    /// Three months of a research group's file system of programs (Matthews 1999, §6.5.2.1).
    pub(super) struct LongTermKeys for LongTermParameters, ..LongTermParameters::default(), {
        /// machines
        machines = "machines" natural().or(LongTermParameters::default().machines);
        /// weeks
        weeks = "weeks" natural().or(LongTermParameters::default().weeks);
        /// programs
        programs = "programs" natural().or(LongTermParameters::default().programs);
        /// libraries
        libraries = "libraries" natural().or(LongTermParameters::default().libraries);
        /// runs of programs in all
        runs = "runs" natural().or(LongTermParameters::default().runs);
        /// blocks read for each written
        read_write_ratio = "read_write_ratio"
            number(0.1, 1e6).or(LongTermParameters::default().read_write_ratio);
        /// share of programs read page by page
        paged_share = "paged_share" number(0.0, 1.0).or(LongTermParameters::default().paged_share);
        /// time from one request to the next
        pace = "pace" time().or(LongTermParameters::default().pace);
        /// blocks of a request
        request_blocks = "request_blocks"
            natural().or(LongTermParameters::default().request_blocks);
    }
}
