// Package console uses the console in headless Chromium, on a whole stack: the services, NATS,
// Postgres, an API server, and the HTTP API with the rights of its callers.
//
// The tests need a program chromium. With MUSTER_REQUIRE_SERVICES=1 a missing one is a failure.
// How each page, action and limit behaves without a browser is tested in services/console.
package console
