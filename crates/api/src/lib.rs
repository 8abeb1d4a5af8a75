//! Everything with a wire: wire types, HTTP and SSE, the daemon and its client
