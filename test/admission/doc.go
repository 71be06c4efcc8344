// Package admission plays one table of requests through a real API server, with the
// admission policies and with intake's webhooks in their place, and compares the verdicts.
package admission
