"""The ops on datasets and iterators: their records and shape functions."""
