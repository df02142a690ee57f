//! Tables as Arrow data: a data frame uses the buffers without a copy, through the Arrow C stream
//! interface (`__arrow_c_stream__`, the "Arrow PyCapsule interface").

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    ArrayRef, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, RecordBatchOptions,
    StringArray,
};
use arrow_schema::{DataType, Field, Schema};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use weir_results::{Cells, Frame};

use crate::errors;

/// Columns of equal length. `polars.DataFrame(table)` and `pyarrow.table(table)` share its memory.
#[pyclass(frozen, module = "weir")]
#[derive(Clone, Debug)]
pub(crate) struct Table {
    batch: RecordBatch,
}

impl Table {
    pub(crate) fn of(frame: Frame) -> PyResult<Self> {
        let columns = frame.into_columns();
        let rows = columns.first().map_or(0, |column| match &column.cells {
            Cells::Text(cells) => cells.len(),
            Cells::Number(cells) => cells.len(),
            Cells::Count(cells) => cells.len(),
        });
        let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns
            .into_iter()
            .map(|column| {
                let (kind, array): (DataType, ArrayRef) = match column.cells {
                    Cells::Text(cells) => (DataType::Utf8, Arc::new(StringArray::from(cells))),
                    Cells::Number(cells) => {
                        (DataType::Float64, Arc::new(Float64Array::from(cells)))
                    }
                    Cells::Count(cells) => (DataType::Int64, Arc::new(Int64Array::from(cells))),
                };
                (Field::new(column.name, kind, true), array)
            })
            .unzip();
        let schema = Arc::new(Schema::new(fields));
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(schema, arrays, &options);
        Ok(Self {
            batch: batch.map_err(errors::simulation)?,
        })
    }
}

#[pymethods]
impl Table {
    /// Returns the rows as an Arrow C stream, always in their own schema.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // By the protocol, a producer that cannot convert ignores the requested schema, and the
        // consumer converts.
        drop(requested_schema);
        let batches = [Ok(self.batch.clone())];
        let reader = RecordBatchIterator::new(batches, self.batch.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// The number of rows.
    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    /// The column names.
    #[getter]
    fn columns(&self) -> Vec<String> {
        let schema = self.batch.schema();
        schema
            .fields()
            .iter()
            .map(|field| field.name().clone())
            .collect()
    }
}
