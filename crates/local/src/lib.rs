//! A language model on this machine, with nothing else to install: what it takes, how it is fetched, and the engine,
//! which runs in a process of its own.
