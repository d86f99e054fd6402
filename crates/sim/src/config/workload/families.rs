//! The families of workloads of Matthews 1999, Table 4-1, and the long-term one, as tables.
//!
//! A key has the name of the parameter, which is documented with its generator
//! (`agewell_trace::workload`); what is out of range, the generator refuses.

use agewell_config::{keys, natural, number, time};
use agewell_trace::workload::{
    DecisionSupportParameters, LongTermParameters, MultimediaParameters,
    ScientificSimulationParameters, SoftwareDevelopmentParameters, TransactionProcessingParameters,
};

keys! {
    /// Films recorded once and played often, at their own rate.
    pub(super) struct MultimediaKeys
        over MultimediaParameters::default() => MultimediaParameters
    {
        /// films there are
        films = "films" natural();
        /// blocks of the shortest film
        film_blocks_min = "film_blocks_min" natural();
        /// blocks of the longest
        film_blocks_max = "film_blocks_max" natural();
        /// players at work side by side
        players = "players" natural();
        /// films played in all
        plays = "plays" natural();
        /// recorders at work side by side
        recorders = "recorders" natural();
        /// films recorded in all
        recordings = "recordings" natural();
        /// blocks of a request
        request_blocks = "request_blocks" natural();
        /// time that a block plays for: 1.5 Mbit/s at 8 KiB
        block_time = "block_time" time();
    }
}

keys! {
    /// Edit, compile, link, run, think.
    pub(super) struct SoftwareDevelopmentKeys
        over SoftwareDevelopmentParameters::default() => SoftwareDevelopmentParameters
    {
        /// developers at work side by side
        developers = "developers" natural();
        /// projects
        projects = "projects" natural();
        /// source files of a project
        sources = "sources" natural();
        /// headers that all share
        headers = "headers" natural();
        /// headers that a source includes
        includes = "includes" natural();
        /// cycles of edit, compile, link and run in all
        cycles = "cycles" natural();
        /// sources edited in a cycle at most
        edits_max = "edits_max" natural();
        /// cycles after which all is built
        rebuild_every = "rebuild_every" natural();
        /// least time of thinking, to 64 times that
        think = "think" time();
        /// time from one request to the next
        pace = "pace" time();
        /// blocks of a request
        request_blocks = "request_blocks" natural();
    }
}

keys! {
    /// An index path read, an account read and written, a branch and the log written, a sync.
    pub(super) struct TransactionProcessingKeys
        over TransactionProcessingParameters::default() => TransactionProcessingParameters
    {
        /// accounts
        accounts = "accounts" natural();
        /// blocks of branches
        branch_blocks = "branch_blocks" natural();
        /// blocks of the log
        log_blocks = "log_blocks" natural();
        /// terminals at work side by side
        terminals = "terminals" natural();
        /// transactions in all
        transactions = "transactions" natural();
        /// time from one transaction of a terminal to the next
        interval = "interval" time();
        /// time from one request to the next
        pace = "pace" time();
    }
}

keys! {
    /// Scans, common queries that follow an index, ad-hoc ones, loads.
    pub(super) struct DecisionSupportKeys
        over DecisionSupportParameters::default() => DecisionSupportParameters
    {
        /// blocks of the table
        table_blocks = "table_blocks" natural();
        /// indices over it
        indices = "indices" natural();
        /// analysts at work side by side
        analysts = "analysts" natural();
        /// queries in all
        queries = "queries" natural();
        /// share of queries that scan the table
        scan_share = "scan_share" number(0.0, 1.0);
        /// share of the others that are common ones
        common_share = "common_share" number(0.0, 1.0);
        /// common queries, which follow an index in the same order each time
        common_queries = "common_queries" natural();
        /// entries that a query reads
        query_entries = "query_entries" natural();
        /// blocks that a load adds
        load_blocks = "load_blocks" natural();
        /// leaves of each index that a load changes
        load_leaves = "load_leaves" natural();
        /// queries from one load to the next
        load_every = "load_every" natural();
        /// least time of thinking, to 1,024 times that
        think = "think" time();
        /// time from one request to the next
        pace = "pace" time();
        /// blocks of a request
        request_blocks = "request_blocks" natural();
    }
}

keys! {
    /// An input read, an output written step by step and read once, failures run again.
    pub(super) struct ScientificSimulationKeys
        over ScientificSimulationParameters::default() => ScientificSimulationParameters
    {
        /// input files
        inputs = "inputs" natural();
        /// blocks of the smallest input, to four times that
        input_blocks_min = "input_blocks_min" natural();
        /// experiments in all
        experiments = "experiments" natural();
        /// blocks of the smallest output, to four times that
        output_blocks_min = "output_blocks_min" natural();
        /// blocks written in a step
        step_blocks = "step_blocks" natural();
        /// share of experiments that fail and are run again
        failure_share = "failure_share" number(0.0, 1.0);
        /// share of inputs read in strides
        strided_share = "strided_share" number(0.0, 1.0);
        /// scientists at work side by side
        scientists = "scientists" natural();
        /// least time of computing, to 256 times that
        compute = "compute" time();
        /// time from one request to the next
        pace = "pace" time();
        /// blocks of a request
        request_blocks = "request_blocks" natural();
    }
}

keys! {
    /// Three months of a research group's file system of programs (Matthews 1999, §6.5.2.1).
    pub(super) struct LongTermKeys over LongTermParameters::default() => LongTermParameters {
        /// machines
        machines = "machines" natural();
        /// weeks
        weeks = "weeks" natural();
        /// programs
        programs = "programs" natural();
        /// libraries
        libraries = "libraries" natural();
        /// runs of programs in all
        runs = "runs" natural();
        /// blocks read for each written
        read_write_ratio = "read_write_ratio" number(0.1, 1e6);
        /// share of programs read page by page
        paged_share = "paged_share" number(0.0, 1.0);
        /// time from one request to the next
        pace = "pace" time();
        /// blocks of a request
        request_blocks = "request_blocks" natural();
    }
}
