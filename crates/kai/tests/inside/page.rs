//! Requests to the page's router, as a browser makes them.
