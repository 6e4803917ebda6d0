"""Each noun once: one class is the core's value, the stored document, the request, the answer and the options."""
