//! The canonical records as Arrow columns, and the Parquet keys that carry what a trace says about
//! itself.
//!
//! Schema version 1 of a block trace: `enqueue_ns` u64, `start_ns` u64?, `finish_ns` u64?, `device`
//! u32, `sector` u64, `sectors` u32, `operation` u8 (0 read, 1 write, 2 discard, 3 flush), `flags`
//! u16, `client` u32; `?` columns hold null where the format does not carry that time. The key
//! `agewell.metadata` holds [`crate::TraceMetadata`] as JSON, `agewell.kind` `block` or `file`,
//! `agewell.schema_version` the version.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, RecordBatch, UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use crate::record::{BlockBatch, TIME_MISSING};

/// Key of the trace's description.
pub const KEY_METADATA: &str = "agewell.metadata";
/// Key of the kind of record: `block` or `file`.
pub const KEY_KIND: &str = "agewell.kind";
/// Key of the schema version.
pub const KEY_SCHEMA_VERSION: &str = "agewell.schema_version";

/// Columns of a block trace.
pub fn block_schema() -> SchemaRef {
    let field = |name, kind| Field::new(name, kind, false);
    Arc::new(Schema::new(vec![
        field("enqueue_ns", DataType::UInt64),
        Field::new("start_ns", DataType::UInt64, true),
        Field::new("finish_ns", DataType::UInt64, true),
        field("device", DataType::UInt32),
        field("sector", DataType::UInt64),
        field("sectors", DataType::UInt32),
        field("operation", DataType::UInt8),
        field("flags", DataType::UInt16),
        field("client", DataType::UInt32),
    ]))
}

fn optional_times(times: &[u64]) -> ArrayRef {
    if times.contains(&TIME_MISSING) {
        Arc::new(
            times
                .iter()
                .map(|&time| (time != TIME_MISSING).then_some(time))
                .collect::<UInt64Array>(),
        )
    } else {
        Arc::new(UInt64Array::from(times.to_vec()))
    }
}

/// `batch` as Arrow columns.
///
/// # Panics
/// If the batch's columns differ in length, which is our own bug.
pub fn block_to_arrow(batch: &BlockBatch) -> RecordBatch {
    batch.verify();
    let columns: Vec<ArrayRef> = vec![
        Arc::new(UInt64Array::from(batch.enqueue_ns.clone())),
        optional_times(&batch.start_ns),
        optional_times(&batch.finish_ns),
        Arc::new(UInt32Array::from(batch.device.clone())),
        Arc::new(UInt64Array::from(batch.sector.clone())),
        Arc::new(UInt32Array::from(batch.sectors.clone())),
        Arc::new(UInt8Array::from(batch.operation.clone())),
        Arc::new(UInt16Array::from(batch.flags.clone())),
        Arc::new(UInt32Array::from(batch.client.clone())),
    ];
    RecordBatch::try_new(block_schema(), columns).expect("columns of one length and the schema's")
}

/// Checks that `schema` has every column of `wanted` with its type.
///
/// # Errors
/// The first column that is absent or of another type.
pub(crate) fn check_schema(schema: &Schema, wanted: &Schema) -> Result<(), String> {
    for field in wanted.fields() {
        let found = schema
            .field_with_name(field.name())
            .map_err(|_| format!("there is no column '{}'", field.name()))?;
        if found.data_type() != field.data_type() {
            return Err(format!(
                "column '{}' is {} but must be {}",
                field.name(),
                found.data_type(),
                field.data_type()
            ));
        }
    }
    Ok(())
}

/// Appends the columns of `columns`, which `check_schema` has passed, to `batch`.
///
/// # Errors
/// A null where none may be.
pub(crate) fn arrow_to_block(columns: &RecordBatch, batch: &mut BlockBatch) -> Result<(), String> {
    let column = |name: &str| -> Result<&ArrayRef, String> {
        let array =
            columns.column_by_name(name).ok_or_else(|| format!("there is no column '{name}'"))?;
        let may_be_null = name == "start_ns" || name == "finish_ns";
        if array.null_count() > 0 && !may_be_null {
            return Err(format!("column '{name}' holds a null"));
        }
        Ok(array)
    };
    let times = |name: &str, into: &mut Vec<u64>| -> Result<(), String> {
        let array = column(name)?.as_primitive::<UInt64Type>();
        if array.null_count() == 0 {
            into.extend_from_slice(array.values());
        } else {
            into.extend(array.iter().map(|time| time.unwrap_or(TIME_MISSING)));
        }
        Ok(())
    };
    times("enqueue_ns", &mut batch.enqueue_ns)?;
    times("start_ns", &mut batch.start_ns)?;
    times("finish_ns", &mut batch.finish_ns)?;
    batch.device.extend_from_slice(column("device")?.as_primitive::<UInt32Type>().values());
    batch.sector.extend_from_slice(column("sector")?.as_primitive::<UInt64Type>().values());
    batch.sectors.extend_from_slice(column("sectors")?.as_primitive::<UInt32Type>().values());
    batch.operation.extend_from_slice(column("operation")?.as_primitive::<UInt8Type>().values());
    batch.flags.extend_from_slice(column("flags")?.as_primitive::<UInt16Type>().values());
    batch.client.extend_from_slice(column("client")?.as_primitive::<UInt32Type>().values());
    Ok(())
}
