"""The definitions of files of measured kernels, a module a topic."""
