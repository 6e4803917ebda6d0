"""Ready-made processors, one definition a module, and whole processors in other languages, which use HTTP."""
