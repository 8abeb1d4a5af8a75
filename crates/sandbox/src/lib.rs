//! A command held in a directory: keeper, agent, namespaces, Landlock, seccomp
