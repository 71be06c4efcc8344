package relay

// The comments of tests count: volley.
